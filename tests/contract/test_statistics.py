"""Statistics that the leader makes of the log, and the reports from them, on every store."""

from __future__ import annotations

import random
from collections import Counter
from datetime import timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from tickwork.client.client import Client
from tickwork.clock import to_datetime
from tickwork.config import Config
from tickwork.errors import ConfigError, ScheduleNotFound, StoreError, StoreUnavailable
from tickwork.handlers.registry import Registry
from tickwork.model import runs as model_runs
from tickwork.model.failures import FAILURES
from tickwork.model.outcomes import Aborted, Failed, Held, Snoozed, Succeeded
from tickwork.model.policy import Policy
from tickwork.model.reports import Report, ReportRow
from tickwork.model.schedules import Schedule
from tickwork.model.statistics import COUNTS, OPEN, SIZES, mark_of
from tickwork.model.tasks import Lease, ParkReason
from tickwork.model.ticks import run_of
from tickwork.monitor import statistics
from tickwork.monitor.statistics import Statistics
from tickwork.observe.loggers import Log
from tickwork.store.contract import Advance, Store
from tickwork.testing.contract.bench import START, Bench

MINUTE, HOUR, DAY = SIZES["minute"], SIZES["hour"], SIZES["day"]
NAMES = {
    "task.submitted": "submitted", "task.claimed": "started", "task.succeeded": "success", "task.failed": "failed",
    "task.died": "dead", "task.cancelled": "cancelled", "task.expired": "cancelled", "task.retrying": "retries",
    "task.lost": "losses", "task.snoozed": "snoozes",
}  # fmt: skip


def duty_on(store: Store) -> Statistics:
    return Statistics(store, Log.of(None, "statistics"), save_every=0.0)


async def catch_up(duty: Statistics) -> None:
    while await duty.work() == 0:
        pass


def client_of(bench: Bench) -> Client:
    async def opened() -> Store:
        return bench.store

    return Client(opened, Registry(), Config())


async def report(bench: Bench, since: Any = None, until: Any = None, **options: Any) -> Report:
    return await client_of(bench).report(since, until, **options)


def counts(row: ReportRow) -> dict[str, int]:
    return {name: count for name in COUNTS if (count := getattr(row, name))}


def rows(found: Report) -> dict[str, dict[str, int]]:
    return {row.name: counts(row) for row in found if counts(row)}


async def live(bench: Bench, numbers: random.Random, steps: int) -> None:
    """A history of all kinds of changes, over several minutes."""
    held: list[Lease] = []
    for step in range(steps):
        chance = numbers.random()
        task_type, queue = numbers.choice(("pay", "mail")), numbers.choice(("fast", "slow"))
        if chance < 0.4:
            await bench.submit(type=task_type, queue=queue, delay=numbers.choice((0, 0, 5000)))
        elif chance < 0.6:
            found = await bench.claim(3, queues=("fast", "slow"), types=("pay", "mail"), lease_ttl=3_600_000)
            held += [grant.lease for grant in found]
        elif chance < 0.9 and held:
            lease = held.pop(numbers.randrange(len(held)))
            took = numbers.uniform(0.001, 2)
            await bench.end(
                numbers.choice(
                    (
                        Succeeded(lease, b"1", duration=took),
                        Failed(lease, "ValueError: no", 1000, duration=took),
                        Aborted(lease, "ValueError: never", duration=took),
                        Snoozed(lease, delay=1000),
                    )
                )
            )
        elif chance < 0.95:
            await bench.cancel(f"t{step}")
        bench.clock.advance(numbers.uniform(0, 8))
        await bench.witness()
        await bench.store.tasks.promote(100)


async def counted(bench: Bench, of: str) -> dict[str, dict[str, int]]:
    """The same from the facts themselves."""
    found: dict[str, Counter[str]] = {}
    for event in await bench.events():
        if event.kind in NAMES:
            found.setdefault(getattr(event, of), Counter())[NAMES[event.kind]] += 1
    return {name: dict(counter) for name, counter in found.items()}


@pytest.mark.parametrize("seed", range(3))
async def test_reports_agree_with_the_history(bench: Bench, seed: int) -> None:
    numbers, duty = random.Random(seed), duty_on(bench.store)
    for _ in range(4):
        await live(bench, numbers, 40)
        await catch_up(duty)
    assert rows(await report(bench)) == await counted(bench, "type")
    assert rows(await report(bench, by="queue")) == await counted(bench, "queue")
    total = Counter[str]()
    for row in (await counted(bench, "type")).values():
        total.update(row)
    for by in ("type", "minute", "hour", "day"):
        found = await report(bench, timedelta(hours=1), by=by)
        assert counts(found.total) == total
        assert sum(row.ended for row in found) == found.total.ended


async def test_a_report_may_be_narrowed_down(bench: Bench) -> None:
    for queue, task_type in (("fast", "pay"), ("slow", "pay"), ("slow", "mail")):
        await bench.submit(type=task_type, queue=queue)
    await catch_up(duty_on(bench.store))
    assert rows(await report(bench, type="pay", by="queue")) == {"fast": {"submitted": 1}, "slow": {"submitted": 1}}
    assert rows(await report(bench, queue="slow")) == {"mail": {"submitted": 1}, "pay": {"submitted": 1}}


async def test_leaders_that_take_turns_lose_and_double_nothing(bench: Bench) -> None:
    numbers = random.Random(7)
    first, second = duty_on(bench.store), duty_on(bench.store)
    first._save_every = 1e9  # it reads, and is deposed before it has written
    for _ in range(3):
        await live(bench, numbers, 30)
        await catch_up(first)
        await live(bench, numbers, 10)
        await catch_up(second)
    await live(bench, numbers, 10)
    first._save_every = 0.0
    await catch_up(first)  # it fails to write and forgets
    await catch_up(first)
    assert rows(await report(bench)) == await counted(bench, "type")
    failed = sum(group.total for group in await client_of(bench).failures())
    assert failed == sum(event.kind in ("task.retrying", "task.died") for event in await bench.events())


@pytest.mark.parametrize("before", [True, False], ids=["not-written", "written"])
async def test_a_leader_that_dies_while_it_writes_loses_and_doubles_nothing(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, before: bool
) -> None:
    """Closed buckets and failures are in the store already, the open ones are not, or nobody has heard of it."""
    numbers = random.Random(11)
    await live(bench, numbers, 60)
    swap = bench.store.marks.swap

    async def dies(name: str, seen: str | None, new: str | None, *facts: Any) -> bool:
        if name == OPEN:
            if not before:
                await swap(name, seen, new)
            raise StoreUnavailable("gone")
        return await swap(name, seen, new)

    duty = duty_on(bench.store)
    with monkeypatch.context() as patch:
        patch.setattr(bench.store.marks, "swap", dies)
        with pytest.raises(StoreUnavailable):
            await catch_up(duty)
    await live(bench, numbers, 30)
    await catch_up(duty_on(bench.store))
    await catch_up(duty)
    assert rows(await report(bench)) == await counted(bench, "type")
    failed = sum(group.total for group in await client_of(bench).failures())
    assert failed == sum(event.kind in ("task.retrying", "task.died") for event in await bench.events())


async def test_facts_are_counted_in_the_buckets_of_their_time(bench: Bench) -> None:
    duty = duty_on(bench.store)
    bench.clock.set(START - START % DAY + DAY)
    begin = bench.clock.now()
    for later in (0, 59_999, 60_000, HOUR, 23 * HOUR, DAY + HOUR):
        bench.clock.set(begin + later)
        await bench.submit()
        await catch_up(duty)
    by_day = await report(bench, to_datetime(begin), by="day")
    assert [(row.at, row.submitted) for row in by_day] == [(to_datetime(begin), 5), (to_datetime(begin + DAY), 1)]
    by_hour = await report(bench, to_datetime(begin), by="hour")
    assert [row.submitted for row in by_hour] == [3, 1] + 21 * [0] + [1, 0, 1]
    first_hour = await report(bench, to_datetime(begin), to_datetime(begin + HOUR), by="hour")
    assert [row.submitted for row in first_hour] == [3]
    assert (await report(bench, to_datetime(begin), to_datetime(begin + HOUR))).total.submitted == 3
    assert (await report(bench, to_datetime(begin), to_datetime(begin + DAY))).total.submitted == 5
    assert (await report(bench, to_datetime(begin))).total.submitted == 6
    assert (await report(bench, timedelta(minutes=2), by="minute")).total.submitted == 1
    bench.clock.advance(120)
    recent = await report(bench, timedelta(minutes=2), by="minute")
    assert [row.submitted for row in recent] == [1, 0, 0]


async def test_the_time_of_a_report_is_that_of_whole_buckets(bench: Bench) -> None:
    bench.clock.set(START - START % DAY + DAY + 20 * HOUR + 30 * MINUTE + 1)
    found = await report(bench, timedelta(minutes=90))
    assert (found.since, found.until) == (
        to_datetime(bench.clock.now() - 90 * MINUTE - 1), to_datetime(bench.clock.now())
    )  # fmt: skip
    assert (await report(bench, timedelta(hours=24))).since == to_datetime(
        bench.clock.now() - 24 * HOUR - 30 * MINUTE - 1
    )
    assert (await report(bench, timedelta(days=30))).since.hour == 0
    assert (await report(bench, timedelta(days=5000))).since >= to_datetime(bench.clock.now() - 401 * DAY)


async def test_old_buckets_are_removed(bench: Bench) -> None:
    store, duty = bench.store, duty_on(bench.store)
    for _ in range(3):
        await bench.submit()
        await catch_up(duty)
        bench.clock.advance(timedelta(minutes=61))
    first = mark_of("minute", START)
    assert await store.marks.get(first) is not None
    assert await store.marks.get(mark_of("hour", START)) is not None
    for _ in range(3):
        bench.clock.advance(timedelta(minutes=61))
        await bench.submit()
        await catch_up(duty)
    assert await store.marks.get(first) is None
    assert await store.marks.get(mark_of("hour", START)) is not None
    bench.clock.advance(timedelta(days=9))
    await bench.submit()
    await catch_up(duty)
    assert await store.marks.get(mark_of("hour", START)) is None
    assert await store.marks.get(mark_of("day", START)) is not None
    assert (await report(bench, timedelta(days=30))).total.submitted == 7
    bench.clock.advance(timedelta(days=402))
    await bench.submit()
    await catch_up(duty)
    assert await store.marks.get(mark_of("day", START)) is None


async def test_waits_and_runs_are_measured(bench: Bench) -> None:
    duty = duty_on(bench.store)
    for _ in range(10):
        await bench.submit(delay=1000)
    bench.clock.advance(2)
    await bench.store.tasks.promote(100)
    bench.clock.advance(5)
    grants = await bench.claim(10)
    for number, grant in enumerate(grants):
        await bench.end(Succeeded(grant.lease, b"1", duration=1.0 + number))
    await catch_up(duty)
    (row,) = await report(bench)
    assert row.wait is not None
    assert row.run is not None
    assert row.wait.p50 == pytest.approx(5, rel=0.02)  # since it was due, and not since it was submitted
    assert row.run.p50 == pytest.approx(5, rel=0.02)
    assert row.run.p99 == pytest.approx(9, rel=0.02)
    assert row.failure_rate == 0.0


async def test_the_wait_of_a_task_that_is_held_goes_on(bench: Bench) -> None:
    duty = duty_on(bench.store)
    for name in ("first", "second", "third", "fourth"):  # but for the first one the type was held before
        await bench.submit(name)
        for _ in range(2):
            bench.clock.advance(1)
            (grant,) = await bench.claim()
            await bench.end(Held(grant.lease, "limit:type:job", ParkReason.LIMITED, 3000))
            await catch_up(duty)
            bench.clock.advance(3)
        (grant,) = await bench.claim()
        await bench.end(Succeeded(grant.lease, duration=0.5))
    await catch_up(duty)
    found = (await report(bench)).total
    assert counts(found) == {"submitted": 4, "started": 4, "success": 4}
    assert found.wait is not None
    assert found.wait.p95 == pytest.approx(8, rel=0.02)


async def test_a_task_that_is_lost_for_good_has_no_run(bench: Bench) -> None:
    """The duration that its last fact has is that of an earlier attempt."""
    await bench.submit()
    (grant,) = await bench.claim(lease_ttl=1000)
    await bench.end(Failed(grant.lease, "ValueError: no", 0, duration=3.0))
    for _ in range(3):
        await bench.store.tasks.promote(10)
        await bench.claim(lease_ttl=1000)
        await bench.pass_time(10)
        await bench.store.tasks.reclaim(10)
    assert "task.died" in await bench.facts()
    await catch_up(duty_on(bench.store))
    (row,) = await report(bench)
    assert (row.dead, row.losses, row.retries) == (1, 2, 1)
    assert row.run is not None
    assert row.run.p99 == pytest.approx(3, rel=0.02)
    assert row.failure_rate == 1.0


@pytest.mark.parametrize("policy", [Policy(events_max=10)], ids=["ten"])
async def test_facts_that_left_the_log_are_told(bench: Bench, policy: Policy) -> None:
    duty = duty_on(bench.store)
    await bench.submit_many(2)
    await catch_up(duty)
    await bench.submit_many(60, "more")
    await bench.store.operators.prune(100)
    await catch_up(duty)
    total = (await report(bench)).total
    if bench.store.capabilities.partitions == 1:
        assert total.missed > 0
        assert total.submitted + total.missed == 62
    else:  # the bound is that of each partition, and how many are gone is not known
        assert (total.missed > 0) == (total.submitted < 62)


@pytest.mark.parametrize("policy", [Policy(events_max=10)], ids=["ten"])
async def test_what_was_before_the_first_statistics_is_not_missed(bench: Bench, policy: Policy) -> None:
    await bench.submit_many(60)
    await bench.store.operators.prune(100)
    await catch_up(duty_on(bench.store))
    total = (await report(bench)).total
    assert total.missed == 0
    assert 0 < total.submitted <= 60


async def test_a_report_says_up_to_when_it_is_complete(bench: Bench) -> None:
    duty = duty_on(bench.store)
    assert (await report(bench)).through is None
    await bench.submit()
    await catch_up(duty)
    bench.clock.advance(60)
    assert (await report(bench)).through == to_datetime(START + 60_000)
    await bench.submit()
    bench.clock.advance(60)
    assert (await report(bench)).through == to_datetime(START)


async def test_an_idle_log_is_not_written_about(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    duty = duty_on(bench.store)
    await bench.submit()
    await catch_up(duty)
    await catch_up(duty)
    before = await bench.store.marks.get(OPEN)

    async def refuse(*args: Any) -> Any:
        raise AssertionError("nothing has happened")

    monkeypatch.setattr(bench.store.log, "read", refuse)
    monkeypatch.setattr(bench.store.marks, "swap", refuse)
    assert await duty.work() == statistics.IDLE_PAUSE
    assert await bench.store.marks.get(OPEN) == before


async def test_many_types_are_bounded(bench: Bench) -> None:
    duty = duty_on(bench.store)
    for number in range(260):
        await bench.submit(type=f"type{number}")
    await catch_up(duty)
    found = await report(bench)
    assert found.total.submitted == 260
    assert len(found) == 201
    assert rows(found)["other"] == {"submitted": 60}
    text = await bench.store.marks.get(OPEN)
    assert text is not None
    assert len(text) < 20_000


async def test_statistics_of_a_later_version_are_left_alone(bench: Bench) -> None:
    await bench.store.marks.swap(OPEN, None, "9x")
    await bench.submit()
    duty = duty_on(bench.store)
    assert await duty.work() is None
    assert await bench.store.marks.get(OPEN) == "9x"
    with pytest.raises(StoreError, match="cannot be read by this version of Tickwork: it is of version '9'"):
        await report(bench)


async def test_failures_are_grouped(bench: Bench) -> None:
    duty, client = duty_on(bench.store), client_of(bench)
    await bench.submit_many(8)
    for number, grant in enumerate(await bench.claim(8)):
        story = f'TimeoutError: no answer in {number} s\n\n  File "/srv/shop/pay.py", line {number}, in charge'
        await bench.end(Aborted(grant.lease, story) if number < 2 else Failed(grant.lease, story, 60_000))
    await bench.submit("other", type="mail")
    (grant,) = await bench.claim(types=("mail",))
    bench.clock.advance(HOUR / 1000)
    await bench.witness()
    await bench.end(Failed(grant.lease, "KeyError: 'x'", 60_000))
    await catch_up(duty)
    late, first = await client.failures()
    assert (late.error, late.message, late.types, late.tasks) == ("KeyError", "'…'", ("mail",), ("other",))
    assert (first.error, first.message, first.place) == ("TimeoutError", "no answer in # s", "shop/pay.py in charge")
    assert (first.total, first.dead, first.types) == (8, 2, ("job",))
    assert (first.first_seen, first.last_seen) == (to_datetime(START), to_datetime(START))
    assert first.hours == 22 * (0,) + (8, 0)
    assert len(first.tasks) == 5
    assert [group.error for group in await client.failures(since=timedelta(minutes=5))] == ["KeyError"]
    assert [group.error for group in await client.failures(type="job")] == ["TimeoutError"]
    assert [group.error for group in await client.failures(limit=1)] == ["KeyError"]


async def test_groups_of_failures_are_bounded(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tickwork.model.failures.GROUPS_MAX", 3)
    duty = duty_on(bench.store)
    await bench.submit_many(5)
    words = iter(("one", "two", "three", "four", "one"))
    for grant in await bench.claim(5):
        await bench.end(Failed(grant.lease, f"ValueError: {next(words)}", 60_000))
        bench.clock.advance(1)
        await catch_up(duty)
    found = await client_of(bench).failures()
    assert [(group.message, group.total) for group in found] == [("one", 1), ("four", 1), ("three", 1)]


async def tick(bench: Bench, schedule: Schedule, late: int = 0) -> str:
    """Fire the next tick, so many milliseconds late."""
    at = schedule.next_at or 0
    bench.clock.set(at + late)
    await bench.witness()
    run = run_of(schedule, at)
    step = Advance(at + 60_000, fired=run.id, fire_at=at)
    assert await bench.store.schedules.advance(schedule.id, at, step, (run,)) is not None
    return run.id


async def test_the_last_runs_of_a_schedule_are_kept(bench: Bench) -> None:
    duty, client = duty_on(bench.store), client_of(bench)
    schedule = Schedule(id="nightly", cron="* * * * *", task=bench.spec("x"), next_at=START + 1000)
    await bench.put(schedule)
    ids = []
    for number in range(4):
        at = START + 1000 + 60_000 * number
        ids.append(await tick(bench, replace(schedule, next_at=at), late=250))
        (grant,) = await bench.claim()
        if number < 3:
            await bench.end(Succeeded(grant.lease, b"1", duration=2.0) if number else Aborted(grant.lease, "boom"))
    await catch_up(duty)
    found = await client.schedules.runs("nightly")
    assert [(run.task_id, run.outcome) for run in found] == [
        (ids[2], "success"), (ids[1], "success"), (ids[0], "dead")
    ]  # fmt: skip
    assert (found[0].at, found[0].late, found[0].duration) == (to_datetime(START + 121_000), 0.25, 2.0)
    at = START + 1000 + 60_000 * 4
    bench.clock.set(at)
    await bench.store.schedules.advance("nightly", at, Advance(at + 60_000, skipped=ids[3], missed=7))
    await catch_up(duty)
    skipped, missed = (await client.schedules.runs("nightly"))[:2]
    assert {(skipped.outcome, skipped.count), (missed.outcome, missed.count)} == {("skipped", 1), ("missed", 7)}
    await bench.store.schedules.drop("nightly")
    await catch_up(duty)
    assert await bench.store.marks.get(model_runs.mark_of("nightly")) is None
    with pytest.raises(ScheduleNotFound):
        await client.schedules.runs("nightly")


async def test_a_task_whose_id_looks_like_a_run_is_none(bench: Bench) -> None:
    duty = duty_on(bench.store)
    await bench.submit("ada@1700000000000")
    (grant,) = await bench.claim()
    await bench.end(Succeeded(grant.lease, b"1"))
    await catch_up(duty)
    assert await bench.store.marks.get(model_runs.mark_of("ada")) is None


async def test_only_the_last_sixty_runs_are_kept(bench: Bench) -> None:
    runs = [model_runs.Run(number, "success", f"@{number}") for number in range(100)]
    kept = model_runs.joined(runs[:50], runs[40:])
    assert kept == runs[40:]
    assert len(model_runs.text_of(kept)) < 2000


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"by": "week"}, "by must be one of type, queue, day, hour, minute, not 'week'"),
        ({"since": timedelta(hours=1), "until": timedelta(hours=2)}, "since must be before until"),
        ({"since": timedelta(hours=5), "by": "minute"}, "by='minute' goes back to .* or by='hour' or by='day'"),
        ({"since": "yesterday"}, "since must be a time, or a timedelta that says how long ago, not 'yesterday'"),
    ],
)
async def test_a_report_that_cannot_be_made_says_why(bench: Bench, options: Any, error: str) -> None:
    with pytest.raises(ConfigError, match=error):
        await report(bench, **options)


async def test_failures_of_a_later_version_are_told(bench: Bench) -> None:
    await bench.store.marks.swap(FAILURES, None, "9x")
    with pytest.raises(StoreError, match="cannot be read"):
        await client_of(bench).failures()
