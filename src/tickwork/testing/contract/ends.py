"""What an end leaves behind, for how long, and how a task leaves it again."""

from __future__ import annotations

import logging

import pytest

from tickwork.model.outcomes import Aborted, Failed, Held, Outcome, Released, Snoozed, Stopped, Succeeded
from tickwork.model.policy import Policy
from tickwork.model.tasks import ENDS, Lease, ParkReason, Status
from tickwork.observe.loggers import Log
from tickwork.store import rules
from tickwork.store.contract import Retried
from tickwork.testing.contract.bench import OUTCOMES, Bench

DAY = 86_400
EACH_END = pytest.mark.parametrize("status", [Status.SUCCESS, Status.DEAD, Status.CANCELLED], ids=str)


async def die(bench: Bench, task_id: str) -> None:
    assert await bench.end(Aborted(await bench.start(task_id), f"{task_id} broke")) == "done"


async def succeed(bench: Bench, task_id: str) -> None:
    assert await bench.end(Succeeded(await bench.start(task_id))) == "done"


# --- what is kept


async def test_who_stops_a_run_may_say_why(bench: Bench) -> None:
    await bench.end(Stopped(await bench.start("it"), 0.5, "not needed any more"))
    record = await bench.record("it")
    assert (record.status, record.message, record.execution_time) == (
        Status.CANCELLED,
        "not needed any more",
        0.5,
    )
    lease = await bench.start("other")
    await bench.store.operators.cancel(["other"], True, "asked for before")
    await bench.end(Stopped(lease, 0.5))
    assert (await bench.record("other")).message == "asked for before"


async def test_a_success_keeps_result_code_message_and_times(bench: Bench) -> None:
    lease = await bench.start("it")
    bench.clock.advance(2)
    await bench.end(Succeeded(lease, b"\x00\xff", 7, "fine", 1.25))
    record = await bench.record("it")
    assert (record.result, record.code, record.message, record.execution_time) == (b"\x00\xff", 7, "fine", 1.25)
    assert (record.started_at, record.finished_at) == (bench.clock.now() - 2000, bench.clock.now())
    assert (record.attempt, record.lease_until, record.last_error) == (1, 0, None)


async def test_no_result_is_not_an_empty_result(bench: Bench) -> None:
    await bench.end(Succeeded(await bench.start("none"), None))
    await bench.end(Succeeded(await bench.start("empty"), b""))
    assert [(await bench.record(name)).result for name in ("none", "empty")] == [None, b""]


async def test_a_failure_keeps_its_error_and_the_time_it_took(bench: Bench) -> None:
    await bench.end(Failed(await bench.start("it"), "ValueError: Ärger\nline 2", 1000, 0.5))
    record = await bench.record("it")
    assert (record.last_error, record.execution_time) == ("ValueError: Ärger\nline 2", 0.5)
    assert (record.due_at, record.finished_at, record.attempt) == (bench.clock.now() + 1000, None, 1)


async def test_the_last_error_is_the_last_one(bench: Bench) -> None:
    await bench.end(Failed(await bench.start("it"), "first", 0))
    (grant,) = await bench.claim()
    assert grant.attempt == 2
    await bench.end(Aborted(grant.lease, "second", 3.0))
    record = await bench.record("it")
    assert (record.status, record.last_error, record.execution_time, record.attempt) == (
        Status.DEAD,
        "second",
        3.0,
        2,
    )


async def test_a_success_after_a_failure_still_tells_the_error(bench: Bench) -> None:
    await bench.end(Failed(await bench.start("it"), "hiccup", 0))
    (grant,) = await bench.claim()
    await bench.end(Succeeded(grant.lease, b"1"))
    record = await bench.record("it")
    assert (record.status, record.last_error, record.result) == (Status.SUCCESS, "hiccup", b"1")


async def test_a_stopped_run_keeps_the_time_it_took(bench: Bench) -> None:
    await bench.end(Stopped(await bench.start("it"), 1.5))
    assert (await bench.record("it")).execution_time == 1.5


async def test_a_snooze_gives_the_attempt_back_and_waits(bench: Bench) -> None:
    await bench.end(Snoozed(await bench.start("it"), delay=5000))
    record = await bench.record("it")
    assert (record.status, record.attempt, record.due_at) == (Status.PENDING, 0, bench.clock.now() + 5000)
    assert await bench.store.tasks.promote(10) == 5000


async def test_a_snooze_until_a_moment(bench: Bench) -> None:
    moment = bench.clock.now() + 90_000
    await bench.end(Snoozed(await bench.start("it"), at=moment, delay=5))
    assert (await bench.record("it")).due_at == moment


@pytest.mark.parametrize("error", ["at", "at!", "!", "it does not fit:\nnot at all ☃"])
async def test_a_snooze_may_say_why(bench: Bench, error: str) -> None:
    await bench.end(Snoozed(await bench.start("it"), delay=5000, error=error))
    record = await bench.record("it")
    assert (record.status, record.attempt, record.last_error) == (Status.PENDING, 0, error)
    assert record.due_at == bench.clock.now() + 5000

    bench.clock.advance(5)
    moment = bench.clock.now() + 90_000
    await bench.end(Snoozed(await bench.start("other"), at=moment, error=error))
    other = await bench.record("other")
    assert (other.due_at, other.last_error) == (moment, error)


async def test_a_snooze_without_a_reason_leaves_the_last_error(bench: Bench) -> None:
    await bench.end(Failed(await bench.start("it"), "boom", 0))
    (grant,) = await bench.claim()
    await bench.end(Snoozed(grant.lease, delay=5000))
    assert (await bench.record("it")).last_error == "boom"


async def test_a_snooze_into_the_past_is_due_at_once(bench: Bench) -> None:
    await bench.end(Snoozed(await bench.start("it"), at=bench.clock.now() - 1))
    assert await bench.claimed_ids() == ["it"]


async def test_a_release_gives_the_attempt_back(bench: Bench) -> None:
    await bench.end(Released(await bench.start("it")))
    record = await bench.record("it")
    assert (record.status, record.attempt, record.losses) == (Status.READY, 0, 0)


async def test_a_retry_at_once_is_due_at_once(bench: Bench) -> None:
    await bench.end(Failed(await bench.start("it"), "boom", 0))
    assert await bench.status("it") is Status.RETRYING
    assert await bench.claimed_ids() == ["it"]


async def test_what_was_read_does_not_change_under_the_reader(bench: Bench) -> None:
    lease = await bench.start("it")
    before = await bench.record("it")
    await bench.store.tasks.note(lease, 0.5, "half", ["line"])
    await bench.end(Succeeded(lease))
    assert (before.status, before.progress) == (Status.RUNNING, None)


# --- notes


async def test_notes_keep_progress_and_lines(bench: Bench) -> None:
    lease = await bench.start("it")
    assert await bench.store.tasks.note(lease, 0.25, "a quarter", ["one"]) is True
    assert await bench.store.tasks.note(lease, None, "ignored without progress", ["two", "three"]) is True
    record = await bench.record("it")
    assert (record.progress, record.progress_note) == (0.25, "a quarter")
    assert await bench.lines("it") == ["one", "two", "three"]


async def test_a_note_may_be_empty(bench: Bench) -> None:
    lease = await bench.start("it")
    before = await bench.record("it")
    assert await bench.store.tasks.note(lease, None, "", []) is True
    assert await bench.record("it") == before


@pytest.mark.parametrize("way", sorted([*OUTCOMES, "expire"]))
async def test_progress_is_that_of_one_run(bench: Bench, way: str) -> None:
    lease = await bench.start("it")
    await bench.store.tasks.note(lease, 0.4, "row 40 of 100", ["a line"])
    if way == "expire":
        await bench.store.tasks.reclaim(10, ("w1",))
    else:
        await bench.end(OUTCOMES[way](lease))
    record = await bench.record("it")
    kept = (0.4, "row 40 of 100") if record.status.ended else (None, "")
    assert (record.progress, record.progress_note) == kept
    assert await bench.lines("it") == ["a line"]


async def test_progress_may_go_back_to_zero(bench: Bench) -> None:
    lease = await bench.start("it")
    await bench.store.tasks.note(lease, 0.9, "nearly", [])
    await bench.store.tasks.note(lease, 0.0, "", [])
    record = await bench.record("it")
    assert (record.progress, record.progress_note) == (0.0, "")


async def test_notes_outlive_the_run(bench: Bench) -> None:
    lease = await bench.start("it")
    await bench.store.tasks.note(lease, 1.0, "all", ["line"])
    await bench.end(Succeeded(lease))
    assert (await bench.record("it")).progress == 1.0
    assert await bench.lines("it") == ["line"]
    assert await bench.store.tasks.note(lease, 0.1, "late", ["late"]) is False


@pytest.mark.parametrize("policy", [Policy(log_lines_max=5)], ids=["five"])
async def test_only_the_last_lines_are_kept(bench: Bench, policy: Policy) -> None:
    lease = await bench.start("it")
    await bench.store.tasks.note(lease, None, "", [f"line {n}" for n in range(4)])
    await bench.store.tasks.note(lease, None, "", [f"line {n}" for n in range(4, 7)])
    assert await bench.lines("it") == [f"line {n}" for n in range(2, 7)]
    await bench.store.tasks.note(lease, None, "", [f"line {n}" for n in range(100)])
    assert await bench.lines("it") == [f"line {n}" for n in range(95, 100)]


@pytest.mark.parametrize("policy", [Policy(log_lines_max=0)], ids=["none"])
async def test_a_bound_of_no_lines_keeps_none(bench: Bench, policy: Policy) -> None:
    lease = await bench.start("it")
    await bench.store.tasks.note(lease, None, "", ["line"])
    assert await bench.lines("it") == []


# --- cancel


@pytest.mark.parametrize("status", [Status.READY, Status.PENDING, Status.BLOCKED, Status.RETRYING], ids=str)
@pytest.mark.parametrize("force", [False, True], ids=["plain", "force"])
async def test_a_waiting_task_is_cancelled_with_its_reason(bench: Bench, status: Status, force: bool) -> None:
    await bench.bring(status)
    assert await bench.cancel("it", force, "changed my mind") is status
    record = await bench.record("it")
    assert (record.status, record.message, record.finished_at) == (
        Status.CANCELLED,
        "changed my mind",
        bench.clock.now(),
    )
    assert (await bench.events("it"))[-1].detail == "changed my mind"


async def test_a_running_task_is_left_without_force(bench: Bench) -> None:
    lease = await bench.bring(Status.RUNNING)
    assert await bench.cancel("it", False, "please") is Status.RUNNING
    assert await bench.store.tasks.extend([lease], 1000) == ["held"]
    assert (await bench.record("it")).message == ""


async def test_a_forced_cancel_keeps_its_reason_to_the_end(bench: Bench) -> None:
    lease = await bench.bring(Status.RUNNING)
    assert await bench.cancel("it", True, "operator") is Status.RUNNING
    assert (await bench.record("it")).cancel is True
    await bench.end(Stopped(lease, 0.1))
    record = await bench.record("it")
    assert (record.status, record.message, record.cancel) == (Status.CANCELLED, "operator", False)


async def test_a_failure_of_a_force_cancelled_run_keeps_both_error_and_reason(bench: Bench) -> None:
    lease = await bench.bring(Status.RUNNING)
    await bench.cancel("it", True, "operator")
    await bench.end(Failed(lease, "interrupted", 1000))
    record = await bench.record("it")
    assert (record.status, record.message, record.last_error) == (Status.CANCELLED, "operator", "interrupted")


async def test_success_after_a_forced_cancel_leaves_no_trace_of_it(bench: Bench) -> None:
    lease = await bench.bring(Status.RUNNING)
    await bench.cancel("it", True, "operator")
    await bench.end(Succeeded(lease))
    record = await bench.record("it")
    assert (record.status, record.message, record.cancel) == (Status.SUCCESS, "", False)


@EACH_END
async def test_an_end_cannot_be_cancelled(bench: Bench, status: Status) -> None:
    await bench.bring(status)
    before = await bench.record("it")
    assert await bench.cancel("it", True, "too late") is status
    assert await bench.record("it") == before


async def test_operators_get_none_for_a_task_that_is_not_there(bench: Bench) -> None:
    store = bench.store
    assert await store.operators.cancel(["nobody"], True) == [None]
    assert await store.operators.run_now(["nobody"]) == [None]
    assert await store.operators.retry(["nobody"]) == [Retried(None)]
    assert await store.operators.delete(["nobody"]) == [None]
    assert await store.queries.get("nobody") is None


# --- retry and delete


async def test_retry_resets_all_but_what_was_asked(bench: Bench) -> None:
    await bench.end(Failed(await bench.start("it"), "first", 0))
    (grant,) = await bench.claim()
    await bench.store.tasks.note(grant.lease, 0.5, "half", [])
    await bench.end(Aborted(grant.lease, "second", 2.0))
    old = await bench.record("it")
    assert await bench.retry("it") is Status.DEAD
    new = await bench.record("it")
    assert (new.status, new.attempt, new.losses, new.retry_count) == (Status.READY, 0, 0, 0)
    assert (new.started_at, new.finished_at, new.execution_time, new.progress) == (None, None, None, None)
    assert (new.spec, new.submitted_at, new.fence > old.fence) == (old.spec, old.submitted_at, True)
    assert (await bench.claim())[0].attempt == 1


async def test_retry_of_a_success_forgets_its_result(bench: Bench) -> None:
    await bench.end(Succeeded(await bench.start("it"), b"1", 3, "fine"))
    await bench.retry("it")
    record = await bench.record("it")
    assert (record.result, record.code, record.message) == (None, 0, "")


async def test_retry_of_a_cancelled_task_forgets_the_cancel(bench: Bench) -> None:
    lease = await bench.bring(Status.RUNNING)
    await bench.cancel("it", True, "operator")
    await bench.end(Stopped(lease))
    assert await bench.retry("it") is Status.CANCELLED
    (grant,) = await bench.claim()
    assert await bench.store.tasks.extend([grant.lease], 1000) == ["held"]
    assert await bench.end(Failed(grant.lease, "boom", 1000)) == "done"
    assert await bench.status("it") is Status.RETRYING


async def test_retry_sent_twice_retries_once(bench: Bench) -> None:
    await bench.bring(Status.DEAD)
    assert await bench.retry("it") is Status.DEAD
    assert await bench.retry("it") is Status.READY
    assert (await bench.facts("it")).count("task.retried") == 1


@EACH_END
async def test_delete_removes_an_end(bench: Bench, status: Status) -> None:
    await bench.bring(status)
    assert await bench.delete("it") is status
    assert await bench.store.queries.get("it") is None
    assert await bench.delete("it") is None
    assert await bench.walk() == []
    assert (await bench.store.queries.stats()).statuses[status] == 0
    assert (await bench.facts("it"))[-1] == "task.deleted"


@pytest.mark.parametrize("only", [Status.SUCCESS, Status.DEAD, Status.READY, Status.RUNNING], ids=str)
async def test_retry_and_delete_can_be_held_to_one_end(bench: Bench, only: Status) -> None:
    await bench.bring(Status.DEAD)
    before = await bench.record("it")
    if only is not Status.DEAD:
        assert await bench.retry("it", only) is Status.DEAD
        assert await bench.delete("it", only) is Status.DEAD
        assert await bench.record("it") == before
        return
    assert await bench.retry("it", only) is Status.DEAD
    assert await bench.status("it") is Status.READY
    assert await bench.delete("it", only) is Status.READY
    assert await bench.status("it") is Status.READY


async def test_no_word_makes_retry_or_delete_move_what_has_not_ended(bench: Bench) -> None:
    await bench.bring(Status.RUNNING)
    assert await bench.retry("it", Status.RUNNING) is Status.RUNNING
    assert await bench.delete("it", Status.RUNNING) is Status.RUNNING
    assert await bench.status("it") is Status.RUNNING


# --- dead letters


@pytest.mark.parametrize("policy", [Policy(dlq_max=3)], ids=["three"])
async def test_a_full_dead_letter_queue_drops_its_oldest(bench: Bench, policy: Policy) -> None:
    bench.together()
    for number in range(5):
        await die(bench, f"t{number}")
        bench.clock.advance(1)
    assert sorted(await bench.walk(status=Status.DEAD)) == ["t2", "t3", "t4"]
    assert [await bench.status(f"t{number}") for number in range(2)] == [None, None]
    assert (await bench.store.queries.stats()).dropped == 2
    assert await bench.facts("t0") == ["task.submitted", "task.claimed", "task.died", "task.dropped"]
    assert await bench.facts("t2") == ["task.submitted", "task.claimed", "task.died"]


@pytest.mark.parametrize("policy", [Policy(dlq_max=2)], ids=["two"])
async def test_the_oldest_dead_letter_is_the_one_that_died_first(bench: Bench, policy: Policy) -> None:
    """Whatever was submitted or started first, and whatever the clock said."""
    bench.together()
    await bench.submit_many(3)
    leases = [grant.lease for grant in await bench.claim(3)]
    for number, seconds in ((2, 0), (0, -5), (1, 0)):
        await bench.end(Aborted(leases[number], "boom"))
        bench.clock.advance(seconds)
    assert sorted(await bench.walk(status=Status.DEAD)) == ["t0", "t1"]


@pytest.mark.parametrize("policy", [Policy(dlq_max=1)], ids=["one"])
async def test_a_batch_of_deaths_keeps_the_last(bench: Bench, policy: Policy) -> None:
    bench.together()
    await bench.submit_many(3)
    leases = [grant.lease for grant in await bench.claim(3)]
    done = await bench.store.tasks.finish([Aborted(lease, "boom") for lease in leases])
    assert [(verdict.kind, verdict.status) for verdict in done.verdicts] == [("done", Status.DEAD)] * 3
    assert await bench.walk() == ["t2"]
    assert (await bench.store.queries.stats()).dropped == 2
    for name in ("t0", "t1"):
        assert (await bench.facts(name))[-2:] == ["task.died", "task.dropped"]


@pytest.mark.parametrize("policy", [Policy(dlq_max=0)], ids=["no-room"])
async def test_without_room_a_death_is_dropped_after_it_was_told(bench: Bench, policy: Policy) -> None:
    await bench.submit_many(2)
    leases = [grant.lease for grant in await bench.claim(2)]
    await bench.store.tasks.finish([Aborted(lease, "boom") for lease in leases])
    for name in ("t0", "t1"):
        assert await bench.facts(name) == ["task.submitted", "task.claimed", "task.died", "task.dropped"]
    assert (await bench.store.queries.stats()).dropped == 2


@pytest.mark.parametrize("policy", [Policy(dlq_max=1)], ids=["one"])
async def test_a_finish_sent_again_is_known_though_its_batch_pushes_the_task_out(bench: Bench, policy: Policy) -> None:
    bench.together()
    await bench.submit_many(2)
    first, second = (grant.lease for grant in await bench.claim(2))
    await bench.end(Aborted(first, "boom"))
    done = await bench.store.tasks.finish([Aborted(second, "boom"), Aborted(first, "boom")])
    assert [verdict.kind for verdict in done.verdicts] == ["done", "already"]
    assert await bench.walk() == ["t1"]


@pytest.mark.parametrize("policy", [Policy(dlq_max=2, max_losses=1)], ids=["two"])
async def test_poison_tasks_obey_the_bound_too(bench: Bench, policy: Policy) -> None:
    bench.together()
    await bench.submit_many(5)
    await bench.claim(5)
    await bench.store.tasks.reclaim(10, gone=("w1",))
    assert await bench.walk(status=Status.DEAD) == ["t4", "t3"]
    assert (await bench.store.queries.stats()).dropped == 3


@pytest.mark.parametrize("policy", [Policy(dlq_max=2)], ids=["two"])
async def test_a_retried_dead_letter_makes_room(bench: Bench, policy: Policy) -> None:
    bench.together()
    await die(bench, "a")
    await die(bench, "b")
    await bench.retry("a")
    (grant,) = await bench.claim()
    await die(bench, "c")
    assert sorted(await bench.walk(status=Status.DEAD)) == ["b", "c"]
    bench.clock.advance(0.001)
    await bench.end(Aborted(grant.lease, "again"))
    assert sorted(await bench.walk(status=Status.DEAD)) == ["a", "c"], "a died last, b is the oldest now"


@pytest.mark.parametrize("policy", [Policy(dlq_max=1)], ids=["one"])
async def test_other_ends_do_not_count_as_dead_letters(bench: Bench, policy: Policy) -> None:
    await die(bench, "dead")
    await succeed(bench, "fine")
    await bench.submit("gone")
    await bench.cancel("gone", False)
    assert sorted(await bench.walk()) == ["dead", "fine", "gone"]
    assert (await bench.store.queries.stats()).dropped == 0


@pytest.mark.parametrize("policy", [Policy(dlq=False, dlq_max=0)], ids=["dlq-off"])
async def test_without_dead_letters_a_task_has_failed(bench: Bench, policy: Policy) -> None:
    await die(bench, "it")
    record = await bench.record("it")
    assert (record.status, record.last_error) == (Status.FAILED, "it broke")
    assert (await bench.facts("it"))[-1] == "task.failed"
    assert (await bench.store.queries.stats()).dropped == 0


# --- retention


@EACH_END
async def test_an_end_is_kept_for_its_retention(bench: Bench, status: Status) -> None:
    await bench.bring(status)
    bench.clock.advance(7 * DAY - 0.001)
    assert await bench.store.operators.prune(100) == 0
    bench.clock.advance(0.001)
    assert await bench.store.operators.prune(100) == 1
    assert await bench.status("it") is None


@pytest.mark.parametrize("status", [s for s in Status if s not in ENDS and s is not Status.ASSIGNED], ids=str)
async def test_what_has_not_ended_is_never_pruned(bench: Bench, status: Status) -> None:
    await bench.bring(status)
    bench.clock.advance(365 * DAY)
    assert await bench.store.operators.prune(100) == 0
    assert await bench.status("it") is status


async def test_retention_counts_from_the_end_not_from_the_submit(bench: Bench) -> None:
    lease = await bench.start("it")
    bench.clock.advance(30 * DAY)
    await bench.end(Succeeded(lease))
    assert await bench.store.operators.prune(100) == 0


@pytest.mark.parametrize("policy", [Policy(retention_max=3)], ids=["three"])
async def test_of_too_many_ends_the_oldest_go(bench: Bench, policy: Policy) -> None:
    bench.together()
    for number in range(6):
        if number % 2:
            await die(bench, f"t{number}")
        else:
            await succeed(bench, f"t{number}")
        bench.clock.advance(1)
    assert await bench.store.operators.prune(100) == 3
    assert sorted(await bench.walk()) == ["t3", "t4", "t5"]
    assert await bench.store.operators.prune(100) == 0


@pytest.mark.parametrize("policy", [Policy(retention_max=1)], ids=["one"])
async def test_ends_go_in_the_order_they_ended_whatever_their_kind(bench: Bench, policy: Policy) -> None:
    bench.together()
    await bench.submit_many(4)
    leases = {grant.spec.id: grant.lease for grant in await bench.claim(4)}
    ends: list[tuple[Outcome, float]] = [
        (Succeeded(leases["t3"]), 0),
        (Aborted(leases["t1"], "boom"), -5),
        (Stopped(leases["t2"]), 0),
        (Succeeded(leases["t0"]), 1),
    ]
    for outcome, seconds in ends:
        await bench.end(outcome)
        bench.clock.advance(seconds)
    for gone in ("t3", "t1", "t2"):
        assert await bench.store.operators.prune(1) == 1
        assert await bench.status(gone) is None
    assert await bench.store.operators.prune(1) == 0
    assert await bench.walk() == ["t0"]


async def test_prune_removes_no_more_than_its_limit(bench: Bench) -> None:
    bench.together()
    for number in range(5):
        await succeed(bench, f"t{number}")
    bench.clock.advance(8 * DAY)
    assert [await bench.store.operators.prune(2) for _ in range(4)] == [2, 2, 1, 0]


async def test_prune_stops_at_the_first_end_that_is_kept(bench: Bench) -> None:
    """A clock that was set back does not let a later end go before an earlier one."""
    await succeed(bench, "first")
    bench.clock.advance(DAY)
    await die(bench, "by-a-fast-clock")
    bench.clock.advance(-DAY)
    await succeed(bench, "last")
    bench.clock.advance(7 * DAY)
    assert await bench.store.operators.prune(100) == 1
    assert sorted(await bench.walk()) == ["by-a-fast-clock", "last"]
    bench.clock.advance(DAY)
    assert await bench.store.operators.prune(100) == 2


async def test_an_untold_end_that_is_kept_does_not_stop_prune(bench: Bench) -> None:
    bench.clock.advance(DAY)
    await bench.bring(Status.SUCCESS, "untold", schedule_id="nightly")
    bench.clock.advance(-DAY)
    await succeed(bench, "told")
    bench.clock.advance(7 * DAY)
    assert await bench.store.operators.prune(100) == 1
    assert await bench.walk() == ["untold"]


@pytest.mark.parametrize("policy", [Policy(retention_max=1)], ids=["one"])
async def test_too_many_ends_go_though_their_retention_is_not_over(bench: Bench, policy: Policy) -> None:
    bench.together()
    await bench.bring(Status.SUCCESS, "untold", schedule_id="nightly")
    for name in ("a", "b", "c"):
        await succeed(bench, name)
    assert await bench.store.operators.prune(2) == 2
    assert sorted(await bench.walk()) == ["c", "untold"]
    assert await bench.store.operators.prune(2) == 1, "the untold one counts, and cannot go"
    assert await bench.walk() == ["untold"]


async def test_prune_leaves_what_the_outbox_has_yet_to_tell(bench: Bench) -> None:
    await bench.submit("up")
    await bench.submit("it", depends_on=("up",))
    (grant,) = await bench.claim()
    await bench.end(Succeeded(grant.lease))
    bench.clock.advance(8 * DAY)
    assert await bench.store.operators.prune(100) == 0
    await bench.propagate()
    assert await bench.store.operators.prune(100) == 1
    assert await bench.status("it") is Status.READY


async def test_what_the_outbox_holds_does_not_keep_others(bench: Bench) -> None:
    await bench.bring(Status.SUCCESS, "untold", schedule_id="nightly")
    await succeed(bench, "told")
    bench.clock.advance(8 * DAY)
    assert await bench.store.operators.prune(100) == 1
    assert await bench.walk() == ["untold"]


@pytest.mark.parametrize("policy", [Policy(retention_max=0)], ids=["keep-none"])
async def test_a_pruned_task_is_gone_for_late_writes(bench: Bench, policy: Policy) -> None:
    lease: Lease = await bench.start("it")
    await bench.end(Succeeded(lease))
    assert await bench.store.operators.prune(100) == 1
    assert await bench.end(Succeeded(lease)) == "lost"
    assert await bench.retry("it") is None
    assert await bench.walk() == []


async def test_a_retried_task_is_not_pruned_for_its_first_end(bench: Bench) -> None:
    await bench.bring(Status.DEAD)
    await bench.retry("it")
    bench.clock.advance(30 * DAY)
    assert await bench.store.operators.prune(100) == 0
    (grant,) = await bench.claim()
    await bench.end(Succeeded(grant.lease))
    assert await bench.store.operators.prune(100) == 0


# --- a full dead-letter queue


@pytest.mark.parametrize("policy", [Policy(dlq_max=2)], ids=["two dead letters"])
async def test_many_dropped_dead_letters_are_one_warning(
    bench: Bench, policy: Policy, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench.together()

    async def die(count: int, prefix: str) -> None:
        await bench.submit_many(count, prefix)
        await bench.store.tasks.finish([Aborted(grant.lease, "boom") for grant in await bench.claim(count)])

    def warnings() -> list[str]:
        return [line.getMessage() for line in caplog.records if "dead-letter queue is full" in line.getMessage()]

    with caplog.at_level(logging.WARNING):
        await die(50, "a")
        (first,) = warnings()
        assert first.startswith("the dead-letter queue is full: dropped 1 of its oldest tasks, the last one a0 (job); ")
        monkeypatch.setattr(rules, "OVERFLOW_PAUSE", 0.0)
        await die(2, "b")
        assert len(warnings()) == 1, "it has just been said"
    assert (await bench.store.queries.stats()).dropped == 50


async def test_what_was_dropped_in_silence_is_told_with_the_next_warning(caplog: pytest.LogCaptureFixture) -> None:
    overflow, log = rules.Overflow(), Log.of(None, "store")
    with caplog.at_level(logging.WARNING):
        for number in range(5):
            overflow.add(log, f"t{number}", "job")
        overflow._quiet_until = 0.0
        overflow.add(log, "t5", "job")
    texts = [line.getMessage() for line in caplog.records]
    assert [text.split(";")[0][-58:] for text in texts] == [
        "full: dropped 1 of its oldest tasks, the last one t0 (job)",
        "full: dropped 5 of its oldest tasks, the last one t5 (job)",
    ]


def _held(lease: Lease, delay: int = 5000) -> Held:
    return Held(lease, "type:job", ParkReason.LIMITED, delay)


async def test_a_held_task_gives_the_attempt_back_and_leaves_no_run(bench: Bench) -> None:
    await bench.end(_held(await bench.start("it")))
    record = await bench.record("it")
    assert (record.status, record.attempt, record.parked) == (Status.PENDING, 0, ParkReason.LIMITED)
    assert record.due_at == bench.clock.now() + 5000
    assert (await bench.store.queries.history("it")).attempts == []
    events = await bench.events()
    assert (events[-1].kind, events[-1].detail) == ("task.held", "type:job")


@pytest.mark.parametrize("woken", [False, True], ids=["at its time", "woken"])
async def test_a_held_task_starts_next(bench: Bench, woken: bool) -> None:
    bench.together()
    await bench.end(_held(await bench.start("held")))
    await bench.submit("other")
    if woken:
        await bench.run_now("held")
    else:
        bench.clock.advance(5)
    record = await bench.record("held")
    assert [grant.spec.id for grant in await bench.claim(2)] == ["held", "other"]
    assert record.parked is None or record.status is Status.PENDING


async def test_a_held_task_that_is_moved_to_another_time_is_not_held(bench: Bench) -> None:
    bench.together()
    await bench.end(_held(await bench.start("held")))
    await bench.reschedule("held", bench.clock.now() + 60_000)
    assert (await bench.record("held")).parked is None
    await bench.submit("other", delay=60_000)
    await bench.pass_time(60)
    assert [grant.spec.id for grant in await bench.claim(2)] == ["held", "other"]


async def test_a_held_task_is_cancelled_like_any_other(bench: Bench) -> None:
    await bench.end(_held(await bench.start("held")))
    await bench.cancel("held")
    record = await bench.record("held")
    assert (record.status, record.parked) == (Status.CANCELLED, None)


async def test_a_task_that_was_held_and_then_snoozed_is_not_held(bench: Bench) -> None:
    await bench.end(_held(await bench.start("it")))
    await bench.run_now("it")
    (grant,) = await bench.claim(1)
    await bench.end(Snoozed(grant.lease, delay=1000))
    assert (await bench.record("it")).parked is None
