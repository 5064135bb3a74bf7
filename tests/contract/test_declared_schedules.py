"""The duty that stops schedules which were declared in code, and which no process declares any more."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from tickwork.clock import ManualClock
from tickwork.model.members import Worker
from tickwork.model.schedules import UNDECLARED, Schedule
from tickwork.model.tasks import Spec
from tickwork.node.declarations import GRACE, Declarations
from tickwork.node.duties import LOG
from tickwork.store.contract import Store
from tickwork.testing.contract.bench import START, Bench

DECLARED = Schedule(
    id="nightly", cron="@daily", task=Spec(id="", type="job", nonce=""), next_at=START + 60_000, declared=True
)


@pytest.fixture
async def store(bench: Bench) -> Store:
    await bench.store.schedules.put(DECLARED)
    return bench.store


@pytest.fixture
def manual(bench: Bench) -> ManualClock:
    return bench.clock


async def stopped(store: Store) -> str:
    schedule = await store.schedules.get("nightly")
    assert schedule is not None
    return schedule.stopped


async def look_for(watch: Declarations, manual: ManualClock, milliseconds: int, *up: Worker, store: Store) -> None:
    """Let time go by as a leader meets it: with a look a minute, and members that send heartbeats."""
    for _ in range(milliseconds // 60_000):
        for worker in up:
            await store.members.beat(worker, 120_000)
        await watch.look()
        manual.advance(60)
    for worker in up:
        await store.members.beat(worker, 120_000)
    await watch.look()


async def test_it_stops_when_nobody_has_declared_it_for_a_while(store: Store, manual: ManualClock) -> None:
    watch = Declarations(store, tuple, LOG)
    other = Worker(id="w", node="n", declares=("other",))
    await look_for(watch, manual, GRACE - 60_000, other, store=store)
    assert await stopped(store) == ""
    await look_for(watch, manual, 60_000, other, store=store)
    assert await stopped(store) == UNDECLARED
    assert await store.schedules.due(10) == ([], None)
    await look_for(watch, manual, 60_000, other, Worker(id="new", node="m", declares=("nightly",)), store=store)
    assert await stopped(store) == ""
    (due,), _ = await store.schedules.due(10)
    assert due.next_at == START + 60_000, "the misfire rule decides about the ticks that were missed"


@pytest.mark.parametrize("who", ["member", "leader", "silent", "api"])
async def test_it_goes_on_while_anybody_may_declare_it(store: Store, manual: ManualClock, who: str) -> None:
    watch = Declarations(store, lambda: ("nightly",) if who == "leader" else (), LOG)
    if who == "api":
        await store.schedules.put(replace(DECLARED, declared=False))
    said = {"member": ("nightly",), "silent": None}.get(who, ())
    await look_for(watch, manual, 3 * GRACE, Worker(id="w", node="n", declares=said), store=store)
    assert await stopped(store) == ""


async def test_a_lost_member_counts_for_a_while(store: Store, manual: ManualClock) -> None:
    watch = Declarations(store, tuple, LOG)
    await look_for(watch, manual, 60_000, Worker(id="w", node="n", declares=("nightly",)), store=store)
    await store.tasks.reclaim(10, ("w",), "killed")
    for _ in range(2 * GRACE // 60_000 - 1):
        manual.advance(60)
        await watch.look()
        assert await stopped(store) == ""
    manual.advance(120)
    await watch.look()
    assert await stopped(store) == UNDECLARED


async def test_a_new_leader_waits_as_long_as_the_first(store: Store, manual: ManualClock) -> None:
    for _ in range(3):
        await look_for(Declarations(store, tuple, LOG), manual, GRACE - 60_000, store=store)
    assert await stopped(store) == ""
    watch = Declarations(store, tuple, LOG)
    await watch.look()
    manual.advance(2 * GRACE / 1000)  # another node has led meanwhile
    await watch.look()
    assert await stopped(store) == ""


async def test_one_that_is_put_by_hand_goes_on(store: Store, manual: ManualClock) -> None:
    watch = Declarations(store, tuple, LOG)
    await look_for(watch, manual, GRACE, store=store)
    assert await stopped(store) == UNDECLARED
    await store.schedules.put(replace(DECLARED, declared=False))
    await watch.look()
    assert await stopped(store) == ""
