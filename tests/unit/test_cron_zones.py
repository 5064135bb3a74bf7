"""The short form of `cron_zones`: every change of every distinct clock since 1970, at least one line each."""

from __future__ import annotations

import random
import zoneinfo

import pytest

from tests.unit import cron_zones
from tests.unit.cron_zones import Change, Line, distinct_zones, second_of, walk

FIRST, LAST = 1970, 2037


def test_the_changes_of_known_clocks_are_all_there() -> None:
    zones = distinct_zones(FIRST, LAST)
    assert len(zones) > 250
    assert sum(map(len, zones.values())) > 15_000
    day_long = {change for changes in zones.values() for change in changes if change.size >= 86400}
    assert Change(1325239200, -36000, 50400) in day_long, "Samoa lost 30 December 2011"
    assert len(day_long) >= 3


@pytest.mark.timeout(600)
def test_lines_around_every_change_fire_as_the_walk_says() -> None:
    rng = random.Random(FIRST)
    problems = []
    checked = 0
    for number, (name, changes) in enumerate(distinct_zones(FIRST, LAST).items()):
        for change in changes:
            for text, rule in cron_zones.lines_for(change, 2 if (number + change.at // 86400) % 4 == 0 else 1):
                checked += 1
                problems.append(cron_zones.check_change(name, change, text, rule, rng))
    assert [problem for problem in problems if problem][:5] == []
    assert checked > 18_000


def test_lines_far_apart_and_lines_anywhere_fire_as_the_walk_says() -> None:
    rng = random.Random(LAST)
    zones = distinct_zones(FIRST, LAST)
    problems = [
        check(zones, rng, FIRST, LAST)
        for check in (cron_zones.check_sparse, cron_zones.check_anywhere)
        for _ in range(25)
    ]
    assert [problem for problem in problems if problem] == []


@pytest.mark.parametrize(
    ("text", "rule", "local_times"),
    [
        ("30 2 * * *", "once", ["03:00"]),
        ("0,20,40 2 * * *", "once", ["03:00"]),
        ("0 1-3 * * *", "once", ["01:00", "03:00"]),
        ("*/30 2 * * *", "once", []),
        ("0 * * * *", "once", ["00:00", "01:00", "03:00", "04:00"]),
        ("30 2 * * *", "instant", []),
    ],
)
def test_the_walk_itself_by_hand_in_a_gap(text: str, rule: cron_zones.Dst, local_times: list[str]) -> None:
    berlin = zoneinfo.ZoneInfo("Europe/Berlin")
    midnight = 1711839600  # 31 March 2024; at 02:00 clocks went to 03:00
    fires = walk(berlin, Line(text), rule, midnight, midnight + 4 * 3600, 60)
    assert [cron_zones.show(fire, "Europe/Berlin")[11:16] for fire in fires] == local_times


@pytest.mark.parametrize(
    ("text", "rule", "local_times"),
    [
        ("30 2 * * *", "once", ["02:30+02:00"]),
        ("30 2 * * *", "instant", ["02:30+02:00", "02:30+01:00"]),
        ("*/30 2 * * *", "once", ["02:00+02:00", "02:30+02:00", "02:00+01:00", "02:30+01:00"]),
        ("0 2,3 * * *", "once", ["02:00+02:00", "03:00+01:00"]),
    ],
)
def test_the_walk_itself_by_hand_in_an_overlap(text: str, rule: cron_zones.Dst, local_times: list[str]) -> None:
    berlin = zoneinfo.ZoneInfo("Europe/Berlin")
    midnight = 1729980000  # 27 October 2024; at 03:00 clocks went to 02:00
    fires = walk(berlin, Line(text), rule, midnight, midnight + 5 * 3600, 60)
    shown = [cron_zones.show(fire, "Europe/Berlin") for fire in fires]
    assert [time[11:16] + time[19:] for time in shown] == local_times


def test_the_reader_of_zone_files_agrees_with_zoneinfo() -> None:
    rng = random.Random(3)
    zones = distinct_zones(FIRST, LAST)
    for name in rng.sample(sorted(zones), 40):
        zone = zoneinfo.ZoneInfo(name)
        for change in zones[name]:
            assert cron_zones.offset_at(zone, change.at - 1) == change.before, (name, change)
            assert cron_zones.offset_at(zone, change.at) == change.after, (name, change)
        for _ in range(20):
            second = rng.randrange(second_of(FIRST), second_of(LAST + 1))
            past = [change for change in zones[name] if change.at <= second]
            if past:
                assert cron_zones.offset_at(zone, second) == past[-1].after, (name, second)
