"""Cron lines around every change of every clock in the tz database, against a slow walk over real time.

The walk looks at one instant after the other, asks `zoneinfo` what the clocks show, and applies the stated
rule as it stands: it knows nothing of masks, stretches or jumps. The changes are read from the compiled zone
files, not probed for, so a change that the engine overlooks shows as a difference.

`test_cron_zones.py` runs a sample. All of it, with progress and from 1900 to 2100:

    python -m tests.unit.cron_zones --full
"""

from __future__ import annotations

import argparse
import math
import random
import struct
import sys
import time
import zoneinfo
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cache
from importlib import resources
from itertools import pairwise
from pathlib import Path
from typing import Literal

from tickwork.cron import Cron

Dst = Literal["once", "instant"]
HOUR, DAY, WEEK = 3600, 86400, 7 * 86400
RULES: tuple[Dst, Dst] = ("once", "instant")


def second_of(year: int) -> int:
    return int(datetime(year, 1, 1, tzinfo=UTC).timestamp())


# --- the changes of clocks, from the compiled files ---------------------------------------------------------


@dataclass(frozen=True, order=True)
class Change:
    """At UTC second `at` the offset goes from `before` to `after`."""

    at: int
    before: int
    after: int

    @property
    def size(self) -> int:
        return abs(self.after - self.before)


def zone_bytes(name: str) -> bytes:
    for folder in zoneinfo.TZPATH:
        path = Path(folder, name)
        if path.is_file():
            return path.read_bytes()
    return resources.files("tzdata").joinpath("zoneinfo", *name.split("/")).read_bytes()


def offset_at(zone: zoneinfo.ZoneInfo, second: int) -> int:
    offset = datetime.fromtimestamp(second, zone).utcoffset()
    assert offset is not None
    return int(offset.total_seconds())


def recorded_changes(data: bytes) -> tuple[list[Change], bool]:
    """The changes listed in a zone file (RFC 9636), and whether a rule goes on after the last of them."""
    header = struct.Struct(">4sc15x6l")
    _, version, isut, isstd, leap, times, types, chars = header.unpack_from(data)
    start = header.size
    width = 4
    if version >= b"2":
        start += times * 5 + types * 6 + chars + leap * 8 + isstd + isut
        _, _, isut, isstd, leap, times, types, chars = header.unpack_from(data, start)
        start += header.size
        width = 8
    instants = struct.unpack_from(f">{times}{'q' if width == 8 else 'l'}", data, start)
    kinds = data[start + times * width : start + times * (width + 1)]
    offsets = [struct.unpack_from(">l", data, start + times * (width + 1) + kind * 6)[0] for kind in range(types)]
    changes = []
    offset = offsets[0]
    for at, kind in zip(instants, kinds, strict=True):
        if offsets[kind] != offset:
            changes.append(Change(at, offset, offsets[kind]))
        offset = offsets[kind]
    return changes, b"," in data.rpartition(b"\n")[0].rpartition(b"\n")[2]


def ruled_changes(zone: zoneinfo.ZoneInfo, start: int, end: int) -> Iterator[Change]:
    """The changes a zone's yearly rule makes: never two in a week."""
    for low, high in pairwise(range(start, end, WEEK)):
        before, after = offset_at(zone, low), offset_at(zone, high)
        while before != after and high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if offset_at(zone, middle) == before else (low, middle)
        if before != after:
            yield Change(high, before, after)


def changes_of(name: str, start: int, end: int) -> tuple[Change, ...]:
    changes, goes_on = recorded_changes(zone_bytes(name))
    if goes_on:
        last = changes[-1].at if changes else start
        changes += ruled_changes(zoneinfo.ZoneInfo(name), last + 1, end)
    return tuple(change for change in changes if start <= change.at < end)


@cache
def distinct_zones(first_year: int, last_year: int) -> dict[str, tuple[Change, ...]]:
    """One zone for each different history of offsets in those years, with its changes."""
    start, end = second_of(first_year), second_of(last_year + 1)
    names: dict[bytes, str] = {}
    for name in sorted(zoneinfo.available_timezones()):
        names.setdefault(zone_bytes(name), name)
    histories: dict[tuple[int, tuple[Change, ...]], str] = {}
    for name in names.values():
        offset = offset_at(zoneinfo.ZoneInfo(name), start)
        histories.setdefault((offset, changes_of(name, start, end)), name)
    return {name: changes for (_, changes), name in histories.items()}


# --- the oracle ---------------------------------------------------------------------------------------------


class Line:
    """A cron line as plain sets, read by a reader of its own."""

    def __init__(self, text: str) -> None:
        self.text = text
        fields = text.split()
        if len(fields) == 5:
            fields.insert(0, "0")
        ranges = ((0, 59), (0, 59), (0, 23), (1, 31), (1, 12), (0, 6))
        self.seconds, self.minutes, self.hours, self.days, self.months, self.weekdays = (
            self._values(field, low, high) for field, (low, high) in zip(fields, ranges, strict=True)
        )
        self.both_days = fields[3] == "*" or fields[5] == "*"
        self.interval_like = fields[1].startswith("*") or fields[2].startswith("*")

    @staticmethod
    def _values(field: str, low: int, high: int) -> frozenset[int]:
        values: set[int] = set()
        for item in field.split(","):
            span, _, step = item.partition("/")
            first, _, last = span.partition("-")
            start = low if first == "*" else int(first)
            stop = int(last) if last else high if first == "*" or step else start
            values.update(range(start, stop + 1, int(step or 1)))
        return frozenset(values)

    def matches(self, local: datetime) -> bool:
        if (
            local.minute not in self.minutes
            or local.hour not in self.hours
            or local.second not in self.seconds
            or local.month not in self.months
        ):
            return False
        day, weekday = local.day in self.days, local.isoweekday() % 7 in self.weekdays
        return day and weekday if self.both_days else day or weekday


def walk(zone: zoneinfo.ZoneInfo, line: Line, rule: Dst, start: int, end: int, tick: int) -> list[int]:
    """Every fire from `start` up to `end`, by looking at each tick of real time in between.

    What counts as a second pass is known only from the start of the walk on: begin it a fold early.
    """
    fixed = rule == "once" and not line.interval_like
    step = timedelta(seconds=tick)
    fires = []
    seen: set[datetime] = set()
    expected: datetime | None = None
    for second in range(start, end, tick):
        local = datetime.fromtimestamp(second, zone).replace(tzinfo=None, fold=0)
        lost = False
        if fixed:
            while expected is not None and expected < local:
                lost = lost or line.matches(expected)
                expected += step
            expected = local + step
        if line.matches(local) and not (fixed and local in seen):
            fires.append(second)
            seen.add(local)
        elif lost:
            fires.append(second)
    return fires


def tick_for(line: Line, changes: tuple[Change, ...]) -> int:
    """The longest tick that still meets every fire, every change and every local time that matters."""
    numbers = [HOUR, *(60 * minute for minute in line.minutes), *line.seconds]
    for change in changes:
        numbers += [change.at, change.before, change.after]
    return math.gcd(*numbers)


# --- lines to try -------------------------------------------------------------------------------------------

FIXED = (
    "{m} {h} * * *",
    "{m} {h} {d} {mon} *",
    "{m},{m2} {h},{h2} * * *",
    "{m}/7 {lo}-{hi} * * {w}",
    "{m} {h} */2 * {w}",
    "0-59/10 0-23 * * *",
    "{m} {h} * * {w},{w2}",
    "30 {h} 1-{d} * *",
    "0 0 * * *",
    "{s} {m} {h} * * *",
    "*/30 {m} {h} * * *",
)
INTERVAL = (
    "*/15 {h} * * *",
    "{m} * * * *",
    "*/5 * * * *",
    "*/7 {lo}-{hi} * * *",
    "{m} */2 * * *",
    "* {h} {d} * *",
    "*/30 {m} * * * *",
    "{s} */10 * * * {w}",
)


def aimed(template: str, change: Change, rng: random.Random) -> str:
    """A line whose times lie among those that the change loses or repeats."""
    low, high = sorted((change.at + change.before, change.at + change.after))
    local = datetime(1970, 1, 1) + timedelta(seconds=rng.randrange(low, high))
    other = rng.choice((local.hour, (local.hour + 1) % 24, rng.randrange(24)))
    return template.format(
        m=local.minute,
        m2=rng.randrange(60),
        h=local.hour,
        h2=other,
        lo=min(local.hour, other),
        hi=max(local.hour, other),
        d=local.day,
        mon=local.month,
        w=local.isoweekday() % 7,
        w2=rng.randrange(7),
        s=rng.choice((0, 30)),
    )


# --- comparing ----------------------------------------------------------------------------------------------


@cache
def line_of(text: str) -> Line:
    return Line(text)


@cache
def cron_of(text: str, zone: str, rule: Dst) -> Cron:
    return Cron(text, zone, rule)


# Zones that share a change share what a line does around it.
walks: dict[tuple[Change, str, Dst], list[int]] = {}


def check_change(name: str, change: Change, text: str, rule: Dst, rng: random.Random) -> str | None:
    """Compare a line around one change; None, or what differs."""
    line = line_of(text)
    tick = tick_for(line, (change,))
    start = (change.at - 90 * 60) // tick * tick
    end = change.at + change.size + 90 * 60
    key = (change, text, rule)
    if key not in walks:
        lead = -(-change.size // tick) * tick
        whole = walk(zoneinfo.ZoneInfo(name), line, rule, start - lead, end, tick)
        walks[key] = [fire for fire in whole if fire >= start]
    points = [change.at - 1, change.at, change.at + change.size - 1, rng.randrange(start, end)]
    return compare(name, text, rule, walks[key], start, end, points)


def compare(name: str, text: str, rule: Dst, fires: list[int], start: int, end: int, points: list[int]) -> str | None:
    """The engine's fires from `start` up to `end`, in a row and from single points, against the walk's."""
    cron = cron_of(text, name, rule)
    got = []
    at = cron.next_ms(start * 1000 - 1)
    while at is not None and at < end * 1000:
        got.append(at // 1000)
        if len(got) > len(fires):
            break
        at = cron.next_ms(at)
    if got != fires:
        return f"{cron!r} from {show(start, name)}: {differ(got, fires, name)}"
    for point in points:
        wanted = next((fire for fire in fires if fire > point), None)
        at = cron.next_ms(point * 1000)
        if at != (None if wanted is None else wanted * 1000) and not (
            wanted is None and (at is None or at >= end * 1000)
        ):
            return f"{cron!r} after {show(point, name)}: got {at}, expected {wanted}"
    return None


def differ(got: list[int], fires: list[int], name: str) -> str:
    extra = [show(fire, name) for fire in sorted(set(got) - set(fires))[:3]]
    missing = [show(fire, name) for fire in sorted(set(fires) - set(got))[:3]]
    return f"fires too much at {extra}, misses {missing}"


def show(second: int, name: str) -> str:
    return datetime.fromtimestamp(second, zoneinfo.ZoneInfo(name)).isoformat()


def check_stretch(name: str, changes: tuple[Change, ...], start: int, days: int, text: str) -> str | None:
    """Compare a line over many days, wherever they lie."""
    line = line_of(text)
    near = tuple(change for change in changes if start - 2 * DAY <= change.at < start + (days + 1) * DAY)
    offset = offset_at(zoneinfo.ZoneInfo(name), start)
    tick = tick_for(line, (*near, Change(0, offset, offset)))
    start = start // tick * tick
    end = start + days * DAY
    whole = walk(zoneinfo.ZoneInfo(name), line, "once", start - 2 * DAY // tick * tick, end, tick)
    return compare(name, text, "once", [fire for fire in whole if fire >= start], start, end, [])


SPARSE = (
    "0 2 1 * *",
    "0 1-3 29 2 *",
    "30 2 8-14 3,11 0",
    "0 0 31 12 *",
    "0 */6 13 * 5",
    "30 1 * 10 0",
    "*/30 2 1-7 3,4,10,11 *",
)


def check_sparse(zones: dict[str, tuple[Change, ...]], rng: random.Random, first: int, last: int) -> str | None:
    """A line that is far apart in a random zone, over three years: the engine jumps over whole changes."""
    name = rng.choice(sorted(zones))
    start = rng.randrange(second_of(first), second_of(last - 3))
    return check_stretch(name, zones[name], start, 3 * 366, rng.choice(SPARSE))


def check_anywhere(zones: dict[str, tuple[Change, ...]], rng: random.Random, first: int, last: int) -> str | None:
    """An ordinary line over two days, anywhere."""
    name = rng.choice(sorted(zones))
    start = rng.randrange(second_of(first), second_of(last))
    day = Change(start, 0, DAY)
    return check_stretch(name, zones[name], start, 2, aimed(rng.choice(FIXED + INTERVAL), day, rng))


def lines_for(change: Change, count: int) -> list[tuple[str, Dst]]:
    """The lines to try at a change: the same for all zones that share it, the first always a fixed one."""
    rng = random.Random(f"{change.at} {change.before} {change.after}")
    first: tuple[str, Dst] = (aimed(rng.choice(FIXED), change, rng), "once")
    return [first] + [(aimed(rng.choice(FIXED + INTERVAL), change, rng), rng.choice(RULES)) for _ in range(count - 1)]


def since(began: float) -> str:
    return f"{time.monotonic() - began:.0f} s"


def main() -> int:
    parser = argparse.ArgumentParser(description="Check cron lines around every change of every clock.")
    parser.add_argument("--full", action="store_true", help="more lines, 1900 to 2100 (else 1970 to 2037)")
    full = parser.parse_args().full
    first, last, count, samples = (1900, 2100, 12, 400) if full else (1970, 2037, 2, 40)
    rng = random.Random(20)
    began = time.monotonic()
    zones = distinct_zones(first, last)
    checked = failed = 0
    for number, (name, changes) in enumerate(zones.items(), 1):
        for change in changes:
            for text, rule in lines_for(change, count):
                checked += 1
                if problem := check_change(name, change, text, rule, rng):
                    failed += 1
                    print(problem)
        if number % 25 == 0 or number == len(zones):
            print(f"{number}/{len(zones)} zones, {checked} checks, {failed} failed, {since(began)}")
    for _ in range(samples):
        for check in (check_sparse, check_anywhere):
            checked += 1
            if problem := check(zones, rng, first, last):
                failed += 1
                print(problem)
    print(f"{checked} checks, {failed} failed, {since(began)}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
