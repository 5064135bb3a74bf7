"""What is kept beside a task: the runs before its last one, and its log lines."""

from __future__ import annotations

import pytest

from tickwork.model.outcomes import Aborted, Failed, Released, Snoozed, Stopped, Succeeded
from tickwork.model.policy import Policy
from tickwork.model.tasks import Attempt, History, Status
from tickwork.store.contract import Query
from tickwork.testing.contract.bench import START, Bench


async def _attempts(bench: Bench, task_id: str = "it") -> list[Attempt]:
    return (await bench.store.queries.history(task_id)).attempts


async def _fail(bench: Bench, error: str = "boom", worker: str = "w1") -> None:
    """One run of two seconds by the clock, and another one after a second."""
    (grant,) = await bench.claim(worker=worker)
    bench.clock.advance(2)
    await bench.end(Failed(grant.lease, error, 1000, 1.5))
    bench.clock.advance(1)


async def test_a_task_that_is_not_there_has_no_history(bench: Bench) -> None:
    assert await bench.store.queries.history("nobody") == History()


async def test_failed_runs_are_kept(bench: Bench) -> None:
    await bench.submit("it")
    await _fail(bench, "first", "w1")
    await _fail(bench, "second\nwith a traceback", "w2")
    (grant,) = await bench.claim()
    await bench.end(Succeeded(grant.lease, b"1"))
    assert await _attempts(bench) == [
        Attempt(1, START, START + 2000, "w1", "failed", 1.5, "first"),
        Attempt(2, START + 3000, START + 5000, "w2", "failed", 1.5, "second\nwith a traceback"),
    ]


async def test_a_snoozed_run_gives_its_number_back(bench: Bench) -> None:
    lease = await bench.start("it")
    bench.clock.advance(1)
    await bench.end(Snoozed(lease, delay=1000))
    bench.clock.advance(1)
    (grant,) = await bench.claim()
    await bench.end(Snoozed(grant.lease, delay=1000, error="no room"))
    assert await _attempts(bench) == [
        Attempt(1, START, START + 1000, "w1", "snoozed"),
        Attempt(1, START + 2000, START + 2000, "w1", "snoozed", None, "no room"),
    ]


async def test_a_lost_run_is_kept_with_what_became_of_its_worker(bench: Bench) -> None:
    await bench.start("it")
    bench.clock.advance(1)
    await bench.store.tasks.reclaim(10, ("w1",), "killed")
    assert await _attempts(bench) == [
        Attempt(1, START, START + 1000, "w1", "lost", None, "worker w1 was lost (killed)"),
    ]


@pytest.mark.parametrize("policy", [Policy(max_losses=1)], ids=["one-loss"])
async def test_a_run_that_ended_its_task_by_its_loss_is_kept_too_and_once(bench: Bench, policy: Policy) -> None:
    await bench.start("it")
    await bench.store.tasks.reclaim(10, ("w1",), "killed")
    assert await bench.status("it") is Status.DEAD
    error = "worker w1 was lost (killed); not run again after 1 lost workers"
    expected = [Attempt(1, START, START, "w1", "lost", None, error)]
    assert await _attempts(bench) == expected
    await bench.retry("it")
    assert await _attempts(bench) == expected


@pytest.mark.parametrize("outcome", [Released, Succeeded, Stopped], ids=lambda kind: str(kind.__name__))
async def test_what_ends_a_task_or_gives_it_back_is_not_kept(bench: Bench, outcome: type[Released]) -> None:
    await bench.end(outcome(await bench.start("it")))
    assert await _attempts(bench) == []


async def test_the_last_run_is_in_the_record_and_not_in_the_history(bench: Bench) -> None:
    await bench.end(Aborted(await bench.start("it"), "boom", 0.5))
    assert await _attempts(bench) == []
    record = await bench.record("it")
    assert (record.attempt, record.last_error, record.execution_time) == (1, "boom", 0.5)


async def test_a_run_that_was_to_be_cancelled_is_the_last_one(bench: Bench) -> None:
    lease = await bench.start("it")
    await bench.cancel("it", True)
    await bench.end(Failed(lease, "boom", 1000))
    assert await bench.status("it") is Status.CANCELLED
    assert await _attempts(bench) == []


async def test_a_retry_by_hand_keeps_the_run_that_ended_the_task(bench: Bench) -> None:
    lease = await bench.start("it")
    bench.clock.advance(2)
    await bench.end(Aborted(lease, "boom", 1.5))
    bench.clock.advance(10)
    await bench.retry("it")
    assert await _attempts(bench) == [Attempt(1, START, START + 2000, "w1", "dead", 1.5, "boom")]
    bench.clock.advance(1)
    (grant,) = await bench.claim(worker="w2")
    await bench.end(Succeeded(grant.lease, b"1", duration=0.25))
    await bench.retry("it")
    assert (await _attempts(bench))[1:] == [Attempt(1, START + 13_000, START + 13_000, "w2", "success", 0.25)]


async def test_a_retry_by_hand_of_a_task_that_never_ran_keeps_nothing(bench: Bench) -> None:
    await bench.bring(Status.CANCELLED)
    await bench.retry("it")
    assert await _attempts(bench) == []


async def test_a_run_before_a_task_was_cancelled_while_it_waited_is_kept_once(bench: Bench) -> None:
    await bench.submit("it")
    await _fail(bench)
    kept = await _attempts(bench)
    await bench.cancel("it", False)
    await bench.retry("it")
    assert await _attempts(bench) == kept


async def test_a_retry_that_changes_nothing_keeps_nothing(bench: Bench) -> None:
    await bench.bring(Status.DEAD)
    await bench.retry("it", Status.SUCCESS)
    assert await _attempts(bench) == []


@pytest.mark.parametrize("policy", [Policy(attempts_max=3)], ids=["three"])
async def test_only_the_last_runs_are_kept(bench: Bench, policy: Policy) -> None:
    await bench.submit("it")
    for number in range(1, 6):
        await _fail(bench, f"error {number}")
    assert [(run.number, run.error) for run in await _attempts(bench)] == [(n, f"error {n}") for n in (3, 4, 5)]


@pytest.mark.parametrize("policy", [Policy(attempts_max=0)], ids=["none"])
async def test_a_bound_of_no_runs_keeps_none(bench: Bench, policy: Policy) -> None:
    await bench.submit("it")
    await _fail(bench)
    assert await _attempts(bench) == []


async def test_lines_of_all_runs_are_kept_together(bench: Bench) -> None:
    lease = await bench.start("it")
    await bench.store.tasks.note(lease, None, "", ["one"])
    await bench.end(Failed(lease, "boom", 0))
    (grant,) = await bench.claim()
    await bench.store.tasks.note(grant.lease, None, "", ["two"])
    await bench.end(Aborted(grant.lease, "boom"))
    await bench.retry("it")
    assert await bench.lines("it") == ["one", "two"]


async def test_a_note_of_lines_leaves_the_record_alone(bench: Bench) -> None:
    lease = await bench.start("it")
    before = await bench.record("it")
    await bench.store.tasks.note(lease, None, "", ["line"] * 10)
    assert await bench.record("it") == before
    assert await bench.lines("it") == ["line"] * 10


@pytest.mark.parametrize("way", ["delete", "prune", "drop"])
@pytest.mark.parametrize("policy", [Policy(dlq_max=1, retention_max=0)], ids=["tight"])
async def test_the_history_goes_with_the_task(bench: Bench, policy: Policy, way: str) -> None:
    lease = await bench.start("it")
    await bench.store.tasks.note(lease, None, "", ["line"])
    await bench.end(Failed(lease, "boom", 0))
    (grant,) = await bench.claim()
    await bench.end(Aborted(grant.lease, "boom"))
    assert await bench.store.queries.history("it") != History()
    if way == "delete":
        await bench.delete("it")
    elif way == "prune":
        await bench.store.operators.prune(10)
    else:
        await bench.end(Aborted(await bench.start("another"), "boom"))
    assert await bench.status("it") is None
    assert await bench.store.queries.history("it") == History()
    await bench.submit("it")
    assert await bench.store.queries.history("it") == History(), "another task of the same name begins anew"


async def test_histories_are_apart(bench: Bench) -> None:
    for task_id in ("a", "b"):
        await bench.submit(task_id)
        await _fail(bench, task_id)
        await bench.cancel(task_id, False)
    assert [run.error for run in await _attempts(bench, "a")] == ["a"]
    assert [run.error for run in await _attempts(bench, "b")] == ["b"]
    assert len((await bench.store.queries.page(Query()))[0]) == 2
