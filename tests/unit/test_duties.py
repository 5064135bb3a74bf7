"""Duties, each for itself."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from tests.support.waiting import wait_until
from tickwork.config import Config
from tickwork.cron import Cron
from tickwork.errors import StoreError, StoreUnavailable
from tickwork.model.members import Worker
from tickwork.model.outcomes import Succeeded
from tickwork.model.policy import Policy
from tickwork.model.schedules import Misfire, Schedule
from tickwork.model.tasks import Spec, Status
from tickwork.model.ticks import ticks_to_run
from tickwork.node import duties, firing
from tickwork.node.standard import standard_duties
from tickwork.observe.bus import Bus
from tickwork.store.contract import MANY_MAX, Claim, Edge, Store
from tickwork.store.memory import MemoryStore

NOW = 1_700_000_000_000
SPEC = Spec(id="", type="job", nonce="")


async def test_all_tasks_of_a_gone_process_come_back(monkeypatch: pytest.MonkeyPatch) -> None:
    store = MemoryStore(Policy())
    await store.members.beat(Worker(id="dead", host="here", pid=1, pid_started="x"))
    await store.tasks.submit([Spec(id=f"t{n}", type="job", nonce="n") for n in range(25)])
    await store.tasks.claim(Claim("dead", ("default",), frozenset({"job"}), 25, 30_000, "n"))
    monkeypatch.setattr(duties, "is_gone", lambda host, pid, started: True)
    await duties.take_back(store, 10)
    assert (await store.queries.stats()).statuses[Status.RUNNING] == 0


async def test_one_schedule_that_cannot_fire_holds_up_no_other() -> None:
    store = MemoryStore(Policy())
    bad = Schedule(id="bad", cron="* * * * * *", timezone="Nowhere/Land", task=SPEC, next_at=NOW - 10_000)
    good = Schedule(id="good", cron="* * * * * *", task=SPEC, next_at=store.now() - 1000)
    await store.schedules.put(bad)
    await store.schedules.put(good)
    await firing.fire_schedules(store, 10, Bus())
    fired = await store.schedules.get("good")
    assert fired is not None
    assert fired.last_task_id is not None


async def test_more_schedules_that_cannot_fire_than_a_batch_hold_up_no_other() -> None:
    store = MemoryStore(Policy())
    for number in range(25):
        bad = Schedule(id=f"bad{number}", cron="* * * * * *", timezone="Nowhere/Land", task=SPEC, next_at=NOW - 10_000)
        await store.schedules.put(bad)
    for number in range(25):
        good = Schedule(id=f"good{number}", cron="* * * * * *", task=SPEC, next_at=store.now() - 1000)
        await store.schedules.put(good)
    assert await firing.fire_schedules(store, 10, Bus()) == 1.0
    found, _ = await store.schedules.page()
    assert [each.id for each in found if each.last_task_id is None] == [each.id for each in found if "bad" in each.id]


async def test_after_an_error_no_schedule_is_fired_unwatched(monkeypatch: pytest.MonkeyPatch) -> None:
    store = MemoryStore(Policy())
    for name in ("quick", "slow"):
        await store.schedules.put(Schedule(id=name, cron="* * * * * *", task=SPEC, next_at=store.now() - 1000))
    ended: list[str] = []

    async def fire(_store: Store, schedule: Schedule, *_: object) -> None:
        if schedule.id == "quick":
            raise StoreUnavailable("the store is away")
        await asyncio.sleep(0.01)
        ended.append(schedule.id)

    monkeypatch.setattr(firing, "fire", fire)
    with pytest.raises(StoreUnavailable):
        await firing.fire_schedules(store, 10, Bus())
    assert ended == ["slow"], "it was still under way when the duty had given up"


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (StoreUnavailable("away"), "the store can be used again"),
        (StoreError("a wrong answer"), "look failed, trying again in 0.0 s: a wrong answer"),
    ],
)
async def test_a_duty_that_fails_is_told_of_and_done_again(
    error: Exception, told: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    for pause in ("BACKOFF_MAX", "UNAVAILABLE_MAX"):
        monkeypatch.setattr(duties, pause, 0.001)
    calls: list[str] = []

    async def look() -> float | None:
        calls.append("look")
        if len(calls) < 3:
            raise error
        return None

    repeating = asyncio.create_task(duties.repeat(duties.Duty("look", look, 60), MemoryStore(Policy())))
    await wait_until(lambda: len(calls) == 3, what="the duty is done a third time")
    repeating.cancel()
    assert told in caplog.text


@pytest.mark.parametrize(("line", "hours_down"), [("* * * * * *", 0.5), ("* * * * *", 48)])
def test_misfire_all_runs_the_newest_ticks(line: str, hours_down: float) -> None:
    cron, now = Cron(line), NOW + 500
    first = cron.next_ms(now - round(hours_down * 3_600_000))
    assert first is not None
    schedule = Schedule(id="s", cron=line, task=SPEC, misfire=Misfire.ALL, misfire_cap=5)
    run, missed = ticks_to_run(schedule, cron, first, now)
    assert len(run) == 5
    assert cron.next_ms(run[-1]) is not None
    assert (cron.next_ms(run[-1]) or 0) > now, "the newest tick is among them"
    assert missed > 0


def test_the_newest_tick_is_found_where_ticks_come_in_bursts() -> None:
    cron = Cron("* * 3 * * *")  # every second from three to four
    ten_past_five = 1_700_025_000_000 // 86_400_000 * 86_400_000 + 5 * 3_600_000 + 600_000
    first = cron.next_ms(ten_past_five - 86_400_000)
    assert first is not None
    run, _ = ticks_to_run(Schedule(id="s", task=SPEC, misfire_grace=86_400_000), cron, first, ten_past_five)
    assert run == [ten_past_five - 600_000 - 3_600_000 - 1000]


async def test_what_was_pruned_is_looked_at_again_soon() -> None:
    store = MemoryStore(Policy(retention_max=2))
    assert await duties.prune(store, 3) is None, "nothing is too many, so the usual interval will do"
    await store.tasks.submit([Spec(id=f"t{n}", type="job", nonce="n") for n in range(6)])
    await store.operators.cancel([f"t{n}" for n in range(6)], False)
    assert [await duties.prune(store, 3) for _ in range(3)] == [0, duties.PRUNE_AGAIN, None]


async def test_what_remains_to_be_told_is_told_at_once() -> None:
    store = MemoryStore(Policy())
    await fan_out(store, MANY_MAX + 1)
    assert await duties.propagate(store, 10, Bus()) == 0
    assert await duties.propagate(store, 10, Bus()) is None
    assert (await store.queries.stats()).statuses[Status.READY] == MANY_MAX + 1
    assert await store.tasks.outbox(10) == []


async def test_an_end_stays_in_the_outbox_until_every_dependant_could_be_told(monkeypatch: pytest.MonkeyPatch) -> None:
    store = MemoryStore(Policy())
    await fan_out(store, 2)
    honest = store.tasks.resolve

    async def cut_off(edges: Sequence[Edge]) -> list[bool | None]:
        """One of the tasks is kept in a place that cannot be reached."""
        reached = await honest([edge for edge in edges if edge.dependant != "d1"])
        return [None if edge.dependant == "d1" else reached[0] for edge in edges]

    monkeypatch.setattr(store.tasks, "resolve", cut_off)
    assert await duties.propagate(store, 1, Bus()) is None, "there is nothing that could be done at once"
    (entry,) = await store.tasks.outbox(10)
    assert entry.dependants == ("d1",)
    monkeypatch.undo()
    await duties.propagate(store, 1, Bus())
    assert await store.tasks.outbox(10) == []


async def fan_out(store: MemoryStore, count: int) -> None:
    """A task has ended for which so many wait."""
    await store.tasks.submit([Spec(id="up", type="job", nonce="n")])
    await store.tasks.submit([Spec(id=f"d{n}", type="job", nonce="n", depends_on=("up",)) for n in range(count)])
    (grant,) = (await store.tasks.claim(Claim("w", ("default",), frozenset({"job"}), 1, 30_000, "n"))).grants
    await store.tasks.finish([Succeeded(grant.lease)])


async def test_of_many_nodes_each_looks_for_expired_leases_less_often() -> None:
    store, crowd = MemoryStore(Policy()), duties.Crowd()
    assert await duties.reclaim(store, 10, crowd=crowd, every=0.5) == 0.5
    for number, pause in ((4, 0.5), (8, 1.0), (16, 2.0)):
        for node in range(number):
            for worker in ("a", "b"):
                await store.members.beat(Worker(id=f"{node}{worker}", node=f"n{node}"))
        await duties.take_back(store, 10, crowd=crowd)
        assert await duties.reclaim(store, 10, crowd=crowd, every=0.5) == pause


@pytest.mark.parametrize(("lease", "renew", "longest"), [(30.0, 10.0, 5.0), (3.0, 2.0, 0.5), (1.5, 1.4, 0.05)])
async def test_a_node_looks_so_often_that_it_keeps_the_pulse_alone(lease: float, renew: float, longest: float) -> None:
    config = Config(lease_ttl=lease, renew_interval=renew)
    found = standard_duties(MemoryStore(Policy()), config, Bus(), duties.LOG, None)
    (duty,) = [duty for duty in found if duty.name == "reclaim"]
    assert duty.every == pytest.approx(longest)
