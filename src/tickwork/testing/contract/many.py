"""Methods that take many tasks: an answer for each, in order; what cannot be done to one hinders no other."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest

from tickwork.model.outcomes import Aborted, Succeeded
from tickwork.model.tasks import Status
from tickwork.store.contract import MANY_MAX, Edge, Retried
from tickwork.testing.contract.bench import Bench, edges_of

MIXED = ["pending", "nobody", "ready", "running", "dead", "pending"]
FOUND = [Status.PENDING, None, Status.READY, Status.RUNNING, Status.DEAD, Status.PENDING]


async def bring_mixed(bench: Bench) -> None:
    """A task in each of these statuses, named after it."""
    await bench.bring(Status.DEAD, "dead")
    await bench.bring(Status.RUNNING, "running")
    await bench.bring(Status.PENDING, "pending")
    await bench.bring(Status.READY, "ready")


async def end_all(bench: Bench, ids: list[str]) -> None:
    """All of them are ready, and become dead."""
    grants = await bench.claim(len(ids))
    finished = await bench.store.tasks.finish([Aborted(grant.lease, "boom") for grant in grants])
    assert [verdict.kind for verdict in finished.verdicts] == ["done"] * len(ids)


async def count(bench: Bench, status: Status) -> int:
    return (await bench.store.queries.stats()).statuses[status]


async def test_a_cancel_of_many_is_answered_for_each_in_order(bench: Bench) -> None:
    await bring_mixed(bench)
    assert await bench.store.operators.cancel(MIXED, False, "enough") == FOUND
    assert [await bench.status(name) for name in ("pending", "ready")] == [Status.CANCELLED] * 2
    assert (await bench.record("ready")).message == "enough"
    assert not (await bench.record("running")).cancel
    assert (await bench.facts("pending")).count("task.cancelled") == 1
    assert (await bench.store.operators.cancel(["running", "dead"], True))[0] is Status.RUNNING
    assert (await bench.record("running")).cancel


async def test_a_run_now_of_many_is_answered_for_each_in_order(bench: Bench) -> None:
    await bring_mixed(bench)
    assert await bench.store.operators.run_now(MIXED) == FOUND
    assert await bench.claimed_ids() == ["ready", "pending"]
    assert (await bench.facts("pending")).count("task.hastened") == 1


async def test_a_retry_of_many_is_answered_for_each_in_order(bench: Bench) -> None:
    bench.together()
    await bring_mixed(bench)
    assert await bench.store.operators.retry(MIXED) == list(map(Retried, FOUND))
    assert await bench.claimed_ids() == ["dead", "ready"]


async def test_a_delete_of_many_is_answered_for_each_in_order(bench: Bench) -> None:
    await bring_mixed(bench)
    assert await bench.store.operators.delete([*MIXED, "dead"]) == [*FOUND, Status.DEAD]
    assert await bench.status("dead") is None
    assert await bench.status("ready") is Status.READY
    assert (await bench.facts("dead")).count("task.deleted") == 1


async def test_only_the_status_named_is_retried_and_deleted_among_many(bench: Bench) -> None:
    await bench.bring(Status.DEAD, "dead")
    await bench.bring(Status.SUCCESS, "success")
    both = ["success", "dead"]
    assert await bench.store.operators.delete(both, Status.CANCELLED) == [Status.SUCCESS, Status.DEAD]
    assert await bench.store.operators.retry(both, Status.DEAD) == [Retried(Status.SUCCESS), Retried(Status.DEAD)]
    assert await bench.store.operators.delete(both, Status.SUCCESS) == [Status.SUCCESS, Status.READY]
    assert [await bench.status(name) for name in both] == [None, Status.READY]


async def test_only_the_status_named_is_cancelled_and_run_now_among_many(bench: Bench) -> None:
    for status in (Status.RETRYING, Status.RUNNING, Status.PENDING, Status.READY):
        await bench.bring(status, status.value)
    operators = bench.store.operators
    both, found = ["retrying", "pending"], [Status.RETRYING, Status.PENDING]
    assert await operators.run_now(both, Status.READY) == found
    assert await operators.run_now(both, Status.RETRYING) == found
    assert [await bench.status(name) for name in both] == [Status.READY, Status.PENDING]
    ids = ["running", "pending", "ready"]
    before = [Status.RUNNING, Status.PENDING, Status.READY]
    assert await operators.cancel(ids, True, "enough", Status.PENDING) == before
    assert [await bench.status(name) for name in ids] == [Status.RUNNING, Status.CANCELLED, Status.READY]
    assert not (await bench.record("running")).cancel
    assert await operators.cancel(ids, True, "enough", Status.RUNNING) == [
        Status.RUNNING, Status.CANCELLED, Status.READY,
    ]  # fmt: skip
    assert (await bench.record("running")).cancel
    assert await bench.status("ready") is Status.READY


@pytest.mark.parametrize("verb", ["cancel", "run_now", "retry", "delete", "resolve"])
async def test_none_is_answered_by_nothing(bench: Bench, verb: str) -> None:
    operators, tasks = bench.store.operators, bench.store.tasks
    calls: dict[str, Callable[[], Awaitable[object]]] = {
        "cancel": lambda: operators.cancel([], True),
        "run_now": lambda: operators.run_now([]),
        "retry": lambda: operators.retry([]),
        "delete": lambda: operators.delete([]),
        "resolve": lambda: tasks.resolve([]),
    }
    assert await calls[verb]() == []


async def test_as_many_as_one_call_takes(bench: Bench) -> None:
    operators = bench.store.operators
    ids = await bench.submit_many(MANY_MAX, delay=60_000)
    assert set(await operators.run_now(ids)) == {Status.PENDING}
    await end_all(bench, ids)
    assert {retried.found for retried in await operators.retry(ids, Status.DEAD)} == {Status.DEAD}
    assert await count(bench, Status.READY) == MANY_MAX
    assert set(await operators.cancel(ids, False)) == {Status.READY}
    assert await count(bench, Status.CANCELLED) == MANY_MAX
    assert set(await operators.delete(ids)) == {Status.CANCELLED}
    assert await bench.walk() == []


async def test_cancelled_and_retried_tasks_keep_the_order_of_the_call(bench: Bench) -> None:
    ids = await bench.submit_many(250)
    backwards = ids[::-1]
    await bench.store.operators.cancel(backwards, False)
    if bench.store.capabilities.partitions == 1:
        assert await bench.walk(status=Status.CANCELLED) == ids
    await bench.store.operators.retry(backwards)
    claimed = await bench.claimed_ids(250)
    assert sorted(claimed) == sorted(ids)
    if bench.store.capabilities.partitions == 1:
        assert claimed == backwards


async def test_what_keeps_a_task_from_running_again_is_told(bench: Bench) -> None:
    lease = await bench.start("up")
    await bench.submit("first", depends_on=("up",))
    await bench.submit("second", depends_on=("first",))
    assert await bench.end(Aborted(lease, "boom")) == "done"
    await bench.propagate()
    retry = bench.store.operators.retry
    assert await retry(["first", "second"]) == [Retried(Status.CANCELLED, "up"), Retried(Status.CANCELLED, "first")]
    assert await retry(["second", "up", "first"]) == [
        Retried(Status.CANCELLED, "first"), Retried(Status.DEAD), Retried(Status.CANCELLED),
    ]  # fmt: skip
    assert await bench.status("first") is Status.BLOCKED
    assert await bench.status("second") is Status.CANCELLED


async def test_a_chain_is_retried_in_one_call(bench: Bench) -> None:
    lease = await bench.start("up")
    await bench.submit("first", depends_on=("up",))
    await bench.submit("second", depends_on=("first", "up"))
    assert await bench.end(Aborted(lease, "boom")) == "done"
    await bench.propagate()
    retried = await bench.store.operators.retry(["up", "first", "second"])
    assert [each.upstream for each in retried] == [""] * 3
    assert (await bench.record("first")).waiting == ["up"]
    assert sorted((await bench.record("second")).waiting) == ["first", "up"]
    for name in ("up", "first", "second"):
        (grant,) = await bench.claim(10)
        assert grant.spec.id == name
        assert await bench.end(Succeeded(grant.lease)) == "done"
        await bench.propagate()


async def test_many_dependants_are_told_in_one_call(bench: Bench) -> None:
    lease = await bench.start("up")
    await bench.submit("other", delay=60_000)
    await bench.submit("plain", depends_on=("up",))
    await bench.submit("both", depends_on=("up", "other"))
    await bench.submit("later", depends_on=("up",), delay=60_000)
    assert await bench.end(Succeeded(lease)) == "done"
    (entry,) = await bench.store.tasks.outbox(10)
    assert sorted(entry.dependants) == ["both", "later", "plain"]
    edges = [Edge("nobody", "up", True), *edges_of(entry), Edge("other", "up", True), *edges_of(entry)]
    answers = await bench.store.tasks.resolve(edges)
    assert answers == [False, True, True, True, False, False, False, False]
    statuses = [await bench.status(name) for name in ("plain", "both", "later")]
    assert statuses == [Status.READY, Status.BLOCKED, Status.PENDING]
    assert await bench.store.queries.dependants("up", 10) == []


async def test_a_task_that_waits_for_two_is_told_of_both_in_one_call(bench: Bench) -> None:
    await bench.submit_many(2)
    await bench.submit("it", depends_on=("t0", "t1"))
    for grant in await bench.claim(2):
        await bench.end(Succeeded(grant.lease))
    edges = [edge for entry in await bench.store.tasks.outbox(10) for edge in edges_of(entry)]
    assert await bench.store.tasks.resolve(edges) == [True, True]
    assert await bench.claimed_ids() == ["it"]


async def test_an_end_cancels_many_dependants_in_one_call(bench: Bench) -> None:
    lease = await bench.start("up")
    await bench.submit_many(3, "d", depends_on=("up",))
    await bench.submit("any", depends_on=("up",), run_after="end")
    await bench.submit("last", depends_on=("d1",))
    assert await bench.end(Aborted(lease, "boom")) == "done"
    await bench.propagate()
    assert await count(bench, Status.CANCELLED) == 4
    assert await bench.claimed_ids() == ["any"]


async def test_the_outbox_names_as_many_dependants_as_one_call_tells(bench: Bench) -> None:
    lease = await bench.start("up")
    await bench.submit_many(MANY_MAX + 1, "d", depends_on=("up",))
    small = await bench.start("small", queue="default")
    await bench.submit("last", depends_on=("small",))
    for each in (lease, small):
        assert await bench.end(Succeeded(each)) == "done"
    entries = await bench.store.tasks.outbox(10)
    assert sum(len(entry.dependants) for entry in entries) == MANY_MAX
    for _ in range(4):
        entries = await bench.store.tasks.outbox(10)
        await bench.store.tasks.resolve([edge for entry in entries for edge in edges_of(entry)])
        await bench.store.tasks.clear_outbox(entries)
    assert await bench.store.tasks.outbox(10) == []
    assert await count(bench, Status.READY) == MANY_MAX + 2
