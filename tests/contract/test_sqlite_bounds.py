"""What must not grow with what a SQLite file holds: steps of SQLite's virtual machine (not times), and memory."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tickwork.clock import ManualClock
from tickwork.model.members import Worker
from tickwork.model.outcomes import Aborted, Succeeded
from tickwork.model.policy import Policy
from tickwork.model.tasks import Status
from tickwork.store.contract import Ask, Gate, Left, Query
from tickwork.store.sqlite import SqliteStore, spec_cache
from tickwork.testing.contract.bench import START, Bench

FEW, MANY = 100, 2000  # of each kind
GROWTH = 1.5  # the trees grow deeper, nothing is walked
STEP = 10  # steps between two counts


class Counted(Bench):
    """A bench over a file with so many tasks of each kind, none of which is to be touched."""

    store: Any
    count = 0

    async def fill(self, count: int) -> None:
        self.count = count
        await self.submit_many(count, "ended", queue="old")
        grants = await self.claim(count, queues=("old",))
        half = count // 2
        await self.store.tasks.finish([Succeeded(grant.lease) for grant in grants[:half]])
        await self.store.tasks.finish([Aborted(grant.lease, "boom") for grant in grants[half:]])
        await self.submit_many(count, "strange", type="strange")
        await self.submit_many(count, "other", queue="other")
        await self.submit_many(count, "running", queue="busy")
        await self.claim(count, queues=("busy",), worker="busy")
        await self.submit_many(count, "delayed", delay=3_600_000)
        await self.submit_many(count, "blocked", depends_on=("delayed0",))
        while (await self.store.queries.stats()).parked.get(("default", "strange"), 0) < count:
            await self.claim(types=("job",))
        for who in ("inside", "waits"):
            await self.store.gates.enter([_ask(f"{who}{key}", str(key)) for key in range(count)])
        for number in range(count):
            await self.store.control.swap("view", f"{number:05}", None, "x")
        await self.store.control.append("audit", ["x"] * count, count)

    async def steps(self, call: Callable[[], Awaitable[Any]]) -> int:
        """How many steps SQLite took for it, on either connection."""
        count = 0

        def one() -> None:
            nonlocal count
            count += 1

        store = self.store
        sides = ((store.core.write, store.core.writer), (store.core.read, store.core.reader))
        for thread, side in sides:
            await thread.call(lambda side=side: side.db.set_progress_handler(one, STEP))
        before = count
        await call()
        taken = count - before
        for thread, side in sides:
            await thread.call(lambda side=side: side.db.set_progress_handler(None, STEP))
        return taken * STEP


def _ask(who: str, key: str) -> Ask:
    return Ask(who, (Gate(f"limit:type:mail/key={key}", rate=0.001, burst=100, slots=1),))


@pytest.fixture
async def benches(tmp_path: Path) -> AsyncIterator[tuple[Counted, Counted]]:
    """The same with few and with many."""
    made: list[Counted] = []
    for name, count in (("few", FEW), ("many", MANY)):
        clock = ManualClock(START)
        store = SqliteStore(str(tmp_path / name), "test", Policy(dlq_max=count // 2), clock)
        await store.open()
        made.append(Counted(store, clock))
        await made[-1].fill(count)
    yield made[0], made[1]
    for bench in made:
        assert await bench.store.queries.audit() == []
        await bench.store.close()


async def submit(bench: Counted) -> None:
    await bench.submit(queue="left")


async def claim_nothing(bench: Counted) -> None:
    assert await bench.claim(10) == []


async def one_life(bench: Counted) -> None:
    await bench.submit(queue="mine")
    (grant,) = await bench.claim(10, queues=("mine",))
    await bench.store.tasks.extend([grant.lease], 30_000)
    await bench.store.tasks.note(grant.lease, 0.5, "half", ["line"])
    assert await bench.end(Succeeded(grant.lease)) == "done"


async def one_death(bench: Counted) -> None:
    await bench.submit(queue="mine")
    (grant,) = await bench.claim(10, queues=("mine",))
    assert await bench.end(Aborted(grant.lease, "boom")) == "done"


async def two_deaths(bench: Counted) -> None:
    await one_death(bench)
    await one_death(bench)


async def operators(bench: Counted) -> None:
    await bench.submit("mine", queue="mine", delay=60_000)
    await bench.run_now("mine")
    await bench.cancel("mine", False)
    await bench.retry("mine")
    await bench.cancel("mine", False)
    await bench.delete("mine")


async def gates(bench: Counted) -> None:
    store = bench.store.gates
    assert await store.enter([_ask("first", "mine")]) == [None]
    assert await store.enter([_ask("second", "mine")]) != [None]
    assert [each.id for each in await store.leave([Left("first", ("limit:type:mail/key=mine",))])] == ["second"]
    assert await store.enter([_ask("second", "mine")]) == [None]
    assert await store.leave([Left("second", ("limit:type:mail/key=mine",))]) == []
    await store.renew([("inside1", ("limit:type:mail/key=1",))])
    assert await store.wake(10) == []
    assert len(await store.look(["limit:type:mail/key=1"])) == 1
    await store.opened()


async def control(bench: Counted) -> None:
    store = bench.store.control
    assert await store.swap("view", "00050x", None, "x")
    assert await store.swap("view", "00050y", None, "x", 50) is False
    assert len(await store.page("view", "00050", 5)) == 5
    assert await store.swap("view", "00050x", "x", None)
    last = await store.append("audit", ["x"], bench.count)  # one comes, one goes
    assert len(await store.read("audit", last - 5, 5)) == 5


async def duties(bench: Counted) -> None:
    await bench.store.tasks.promote(10)
    await bench.store.tasks.reclaim(10)
    await bench.store.tasks.outbox(10)
    await bench.store.operators.prune(10)
    await bench.store.members.beat(Worker(id="w1"))
    await bench.store.members.campaign("n1", 10_000)


async def read_one(bench: Counted) -> None:
    await bench.store.queries.get("delayed1")
    await bench.store.log.read(await bench.store.log.last() - 5, 5)


async def read_pages(bench: Counted) -> None:
    for status in (Status.BLOCKED, Status.SUCCESS, Status.DEAD, None):  # those that run are as few as there are slots
        await bench.store.queries.page(Query(status, limit=5))


CALLS = [submit, claim_nothing, one_life, two_deaths, operators, gates, control, duties, read_one, read_pages]


async def test_no_call_walks_what_it_does_not_touch(benches: tuple[Counted, Counted]) -> None:
    found: dict[str, tuple[int, int]] = {}
    for call in CALLS:
        for bench in benches:
            await call(bench)  # what is found out once a process
        few, many = [await bench.steps(partial(call, bench)) for bench in benches]
        found[call.__name__] = few, many
    walked = {name: counts for name, counts in found.items() if counts[1] > counts[0] * GROWTH}
    assert walked == {}, found


@pytest.fixture
async def bench(tmp_path: Path) -> AsyncIterator[Counted]:
    store = SqliteStore(str(tmp_path / "tick.db"), "test")
    await store.open()
    yield Counted(store, ManualClock(START))
    await store.close()


async def test_a_process_that_only_submits_keeps_nothing(bench: Counted) -> None:
    await bench.submit_many(20, payload=bytes(10_000))
    assert bench.store.core.writer.specs.bytes == 0


async def test_specs_are_kept_by_their_size(bench: Counted, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spec_cache, "CACHE_BYTES", 100_000)
    assert await bench.claim() == []
    caches = (bench.store.core.writer.specs, bench.store.queries._rows._specs)
    for number in range(30):
        await bench.submit(f"t{number}", payload=bytes(10_000))
        await bench.record(f"t{number}")
        assert all(10_000 < cache.bytes <= 100_000 for cache in caches)
    await bench.submit("large", payload=bytes(90_000))
    assert [grant.spec.id for grant in await bench.claim(100)] == [*(f"t{number}" for number in range(30)), "large"]
    assert all(cache.bytes <= 100_000 for cache in caches)
    for cache in caches:
        assert cache.bytes == sum(cache._sizes.values())
        cache.clear()
        assert cache.bytes == 0


# --- lists by type, queue and key


@pytest.fixture
async def indexed(benches: tuple[Counted, Counted]) -> tuple[Counted, Counted]:
    for bench in benches:
        await bench.store.operators.index(True)
    return benches


async def test_the_indexes_of_lists_are_not_taken_for_other_calls(indexed: tuple[Counted, Counted]) -> None:
    await test_no_call_walks_what_it_does_not_touch(indexed)


async def test_no_page_of_fifty_thousand_tasks_looks_at_more_than_it_may(bench: Counted) -> None:
    await bench.submit_many(25_000, "often", type="often", queue="a", key="x")
    await bench.submit_many(25_000, "mixed", type="often", queue="b", key="y")
    await bench.submit_many(3, "rare", type="rare", queue="a", key="z")
    await bench.store.operators.index(True)
    store = bench.store
    newest = [f"rare{n}" for n in (2, 1, 0)]
    for few in (Query(type="rare"), Query(key="z"), Query(queue="a", limit=3)):
        assert await bench.steps(partial(store.queries.page, few)) < 2000
        assert [record.id for record in (await store.queries.page(few))[0]] == newest
    found: list[str] = []
    cursor = None
    while True:
        query = Query(type="often", limit=1000, cursor=cursor)
        pages: list[Any] = []

        async def look(query: Query = query, pages: list[Any] = pages) -> None:
            pages.append(await store.queries.page(query))

        assert await bench.steps(look) < 100_000, "some ten steps for each of a thousand tasks"
        ((records, cursor),) = pages
        found += [record.id for record in records]
        if cursor is None:
            break
    assert found == [f"{name}{n}" for name in ("mixed", "often") for n in reversed(range(25_000))]


async def test_a_claim_looks_at_no_empty_queue(tmp_path: Path) -> None:
    clock = ManualClock(START)
    store = SqliteStore(str(tmp_path / "queues"), "test", Policy(), clock)
    await store.open()
    bench = Counted(store, clock)

    async def claim_from(count: int) -> None:
        assert await bench.claim(10, queues=tuple(f"q{number}" for number in range(count))) == []

    await bench.submit(queue="elsewhere")
    few, many = await bench.steps(lambda: claim_from(10)), await bench.steps(lambda: claim_from(1000))
    assert many <= 1.5 * few
    await store.close()
