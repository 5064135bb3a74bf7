"""What the memory store keeps, and what its calls cost, does not grow with what is over."""

from __future__ import annotations

from typing import Any

import pytest

from tickwork.clock import ManualClock
from tickwork.model.outcomes import Succeeded
from tickwork.model.policy import Policy
from tickwork.model.tasks import Status
from tickwork.store.contract import Query
from tickwork.store.memory import MemoryStore
from tickwork.testing.contract.bench import START, Bench


@pytest.fixture
def bench() -> Bench:
    clock = ManualClock(START)
    return Bench(MemoryStore(Policy(retention_max=0), clock), clock)


@pytest.fixture
def store(bench: Bench) -> Any:
    return bench.store


@pytest.mark.parametrize("way", ["cancelled", "resolved"])
async def test_dependants_leave_nothing_behind(bench: Bench, store: Any, way: str) -> None:
    for number in range(50):
        await bench.submit(f"up{number}")
        await bench.submit(f"up{number}-b")
        await bench.submit(f"down{number}", depends_on=(f"up{number}", f"up{number}-b"))
    assert len(store.tasks._homes.dependants) == 100
    if way == "cancelled":
        for number in range(50):
            await bench.cancel(f"down{number}", False)
    else:
        await bench.store.tasks.finish([Succeeded(grant.lease) for grant in await bench.claim(200)])
        await bench.propagate()
    assert store.tasks._homes.dependants == {}
    assert await bench.store.queries.audit() == []


async def test_one_event_of_many_is_not_all_of_them(bench: Bench, store: Any) -> None:
    await bench.submit_many(2000)
    taken: list[int] = []

    class Watched(list[Any]):
        def __getitem__(self, place: Any) -> Any:
            found = super().__getitem__(place)
            if isinstance(place, slice):
                taken.append(len(found))
            return found

    store.log._events = Watched(store.log._events)
    last = await bench.store.log.last()
    events, _ = await bench.store.log.read(last - 5, 1)
    assert [event.seq for event in events] == [last - 4]
    events, _ = await bench.store.log.read(0, 10, "t1500")
    assert [event.seq for event in events] == [last - 499]
    assert sum(taken) <= 1


async def test_counts_are_kept_and_not_counted(bench: Bench, store: Any) -> None:
    await bench.submit_many(100)

    class Unwalked(dict[str, Any]):
        def values(self) -> Any:
            raise AssertionError("it looks at every task")

    store.tasks._homes.tasks = Unwalked(store.tasks._homes.tasks)
    assert (await bench.store.queries.stats()).statuses[Status.READY] == 100


async def test_pages_of_delayed_tasks_sort_once(bench: Bench, store: Any) -> None:
    for number in range(50):
        await bench.submit(f"t{number}", delay=1000 * (50 - number))
    states = [store.tasks._homes.delayed._sorted]
    assert len(await bench.walk(status=Status.PENDING, limit=7)) == 50
    assert [*states, store.tasks._homes.delayed._sorted] == [False, True]
    bench.clock.advance(10)
    assert len(await bench.claimed_ids(100)) == 10
    assert await bench.walk(status=Status.PENDING, limit=7) == [f"t{number}" for number in range(39, -1, -1)]
    await bench.store.queries.page(Query(Status.RETRYING))
    bench.clock.advance(100)
    assert len(await bench.claimed_ids(100)) == 40


async def test_prune_forgets_locks_that_ran_out_long_ago() -> None:
    clock = ManualClock(START)
    store = MemoryStore(clock=clock)
    for number in range(5):
        await store.locks.acquire(f"user-{number}", "a", 1000)
    clock.advance(1)
    await store.operators.prune(100)
    assert len(store.locks._locks) == 5
    clock.advance(3600)
    await store.operators.prune(3)
    assert len(store.locks._locks) == 2


async def test_the_memory_log_is_cut_also_when_it_has_no_room() -> None:
    store = MemoryStore(Policy(events_max=0))
    for number in range(3):
        await store.operators.pause("queue", f"q{number}")
    assert store.log._events == []
