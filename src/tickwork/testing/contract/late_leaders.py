"""Leadership keeps nothing correct: a leader that was stopped in between, and goes on late, does no harm."""

from __future__ import annotations

import pytest

from tickwork.model.outcomes import Aborted, Succeeded
from tickwork.model.policy import Policy
from tickwork.model.schedules import Schedule
from tickwork.model.tasks import Lease, Spec, Status
from tickwork.node import duties, firing
from tickwork.observe.bus import Bus
from tickwork.store.contract import OutboxEntry
from tickwork.testing.contract.bench import Bench, edges_of


async def take(bench: Bench) -> Lease:
    (grant,) = await bench.claim()
    return grant.lease


async def tell(bench: Bench, entry: OutboxEntry) -> None:
    """What the leader does with an entry of the outbox."""
    await bench.store.tasks.resolve(edges_of(entry))
    if entry.schedule_id is not None:
        await bench.store.schedules.report_run(entry.schedule_id, entry.id, entry.status, entry.fence)
    await bench.store.tasks.clear_outbox([entry])


async def propagate(bench: Bench) -> None:
    await duties.propagate(bench.store, 10, Bus())


# --- ticks


@pytest.mark.parametrize(
    ("policy", "forget"), [(Policy(), "delete"), (Policy(retention_max=0), "prune")], ids=["deleted", "pruned"]
)
async def test_a_tick_runs_once_though_its_task_is_gone_when_a_late_leader_goes_on(
    bench: Bench, policy: Policy, forget: str
) -> None:
    now, task = bench.clock.now(), Spec(id="", type="job", nonce="")
    await bench.store.schedules.put(Schedule(id="s", cron="* * * * *", next_at=now, task=task))
    ((seen,), _) = await bench.store.schedules.due(10)
    await firing.fire_schedules(bench.store, 10, Bus())
    await bench.end(Succeeded(await take(bench)))
    await propagate(bench)
    if forget == "delete":
        await bench.delete(f"s@{now}")
    else:
        assert await bench.store.operators.prune(10) == 1
    await firing.fire(bench.store, seen, Bus())
    assert await bench.claimed_ids() == []


# --- the outbox


async def test_a_late_leader_cancels_nobody_whose_upstream_was_retried(bench: Bench) -> None:
    await bench.submit("up")
    await bench.submit("it", depends_on=("up",))
    await bench.end(Aborted(await take(bench), "boom"))
    (late,) = await bench.store.tasks.outbox(10)
    await bench.retry("up")
    lease = await take(bench)
    await tell(bench, late)
    assert await bench.status("it") is Status.BLOCKED
    await bench.end(Succeeded(lease))
    await propagate(bench)
    assert await bench.claimed_ids() == ["it"]


async def test_a_late_leader_strikes_out_no_later_end(bench: Bench) -> None:
    await bench.submit("up")
    await bench.submit("it", depends_on=("up",))
    await bench.end(Aborted(await take(bench), "boom"))
    (late,) = await bench.store.tasks.outbox(10)
    await bench.retry("up")
    await bench.end(Succeeded(await take(bench)))
    await tell(bench, late)
    assert [(entry.id, entry.status) for entry in await bench.store.tasks.outbox(10)] == [("up", Status.SUCCESS)]
    await propagate(bench)
    assert await bench.status("it") is Status.READY
    assert await bench.store.tasks.outbox(10) == []


async def run_of_schedule(bench: Bench) -> str:
    now = bench.clock.now()
    task = Spec(id="", type="job", nonce="")
    await bench.store.schedules.put(Schedule(id="s", cron="* * * * *", next_at=now, on_exhausted="stop", task=task))
    await firing.fire_schedules(bench.store, 10, Bus())
    return f"s@{now}"


async def test_a_late_report_overwrites_no_later_one(bench: Bench) -> None:
    run = await run_of_schedule(bench)
    await bench.end(Aborted(await take(bench), "boom"))
    (late,) = await bench.store.tasks.outbox(10)
    await bench.retry(run)
    await bench.end(Succeeded(await take(bench)))
    await propagate(bench)
    await tell(bench, late)
    schedule = await bench.store.schedules.get("s")
    assert schedule is not None
    assert (schedule.last_status, schedule.stopped) == ("success", "")


async def test_a_late_report_stops_no_schedule_whose_run_was_retried(bench: Bench) -> None:
    run = await run_of_schedule(bench)
    await bench.end(Aborted(await take(bench), "boom"))
    (late,) = await bench.store.tasks.outbox(10)
    await bench.retry(run)
    await duties._report(bench.store, late, Bus())
    schedule = await bench.store.schedules.get("s")
    assert schedule is not None
    assert (schedule.last_status, schedule.stopped) == ("", "")


async def test_the_end_of_a_task_that_is_gone_is_told_all_the_same(bench: Bench) -> None:
    await bench.submit("up")
    await bench.submit("it", depends_on=("up",))
    await bench.end(Succeeded(await take(bench)))
    (before,) = await bench.store.tasks.outbox(10)
    await bench.delete("up")
    (after,) = await bench.store.tasks.outbox(10)
    assert (before.fence, after.fence) == (before.fence or -1, None)
    await tell(bench, before)
    assert await bench.claimed_ids() == ["it"]
    assert await bench.store.tasks.outbox(10) == []
