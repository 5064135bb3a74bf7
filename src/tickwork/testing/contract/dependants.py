"""Tasks that depend on others, once they are retried: they never run before, or without, what they depend on."""

from __future__ import annotations

from typing import Any

import pytest

from tickwork.model.outcomes import Aborted, Succeeded
from tickwork.model.policy import Policy
from tickwork.model.tasks import Lease, Status
from tickwork.testing.contract.bench import Bench


async def end(bench: Bench, lease: Lease, ok: bool) -> None:
    assert await bench.end(Succeeded(lease) if ok else Aborted(lease, "boom")) == "done"
    await bench.propagate()


async def cancelled_with_its_upstream(bench: Bench) -> None:
    """`it` depends on `up`, which is dead."""
    lease = await bench.start("up")
    await bench.submit("it", depends_on=("up",))
    await end(bench, lease, ok=False)
    assert await bench.status("it") is Status.CANCELLED


async def test_a_retried_dependant_waits_for_the_second_life_of_its_upstream(bench: Bench) -> None:
    await cancelled_with_its_upstream(bench)
    await bench.retry("up")
    assert await bench.retry("it") is Status.CANCELLED
    record = await bench.record("it")
    assert (record.status, record.waiting, record.message) == (Status.BLOCKED, ["up"], "")
    assert await bench.store.queries.dependants("up", 10) == ["it"]
    assert await bench.store.queries.audit() == []
    (grant,) = await bench.claim(10)
    await end(bench, grant.lease, ok=True)
    assert await bench.claimed_ids() == ["it"]
    assert await bench.store.queries.dependants("up", 10) == []


async def test_a_retried_dependant_is_cancelled_again_when_its_upstream_fails_again(bench: Bench) -> None:
    await cancelled_with_its_upstream(bench)
    await bench.retry("up")
    await bench.retry("it")
    (grant,) = await bench.claim(10)
    await end(bench, grant.lease, ok=False)
    assert await bench.status("it") is Status.CANCELLED
    assert await bench.store.queries.audit() == []


async def test_a_dependant_of_a_dead_task_is_left_as_it_is(bench: Bench) -> None:
    await cancelled_with_its_upstream(bench)
    before = await bench.record("it")
    assert await bench.retry("it") is Status.CANCELLED
    assert await bench.record("it") == before
    assert await bench.store.tasks.outbox(10) == []


async def test_a_dependant_that_never_ran_is_left_as_it_is_when_its_upstream_is_gone(bench: Bench) -> None:
    await cancelled_with_its_upstream(bench)
    await bench.delete("up")
    assert await bench.retry("it") is Status.CANCELLED
    assert await bench.status("it") is Status.CANCELLED


async def test_a_dependant_that_has_run_is_ready_again_though_its_upstream_is_gone(bench: Bench) -> None:
    lease = await bench.start("up")
    await bench.submit("it", depends_on=("up",))
    await end(bench, lease, ok=True)
    (grant,) = await bench.claim(10)
    await end(bench, grant.lease, ok=False)
    await bench.delete("up")
    assert await bench.retry("it") is Status.DEAD
    assert await bench.claimed_ids() == ["it"]


async def test_one_that_needs_only_the_end_of_another_runs_after_a_failure_and_without_it(bench: Bench) -> None:
    await bench.submit("up")
    await bench.submit("it", depends_on=("up",), run_after="end")
    await bench.cancel("it", False)
    await bench.retry("it")
    assert await bench.status("it") is Status.BLOCKED
    await bench.cancel("it", False)
    (grant,) = await bench.claim(10)
    await end(bench, grant.lease, ok=False)
    await bench.retry("it")
    assert await bench.status("it") is Status.READY
    await bench.cancel("it", False)
    await bench.delete("up")
    await bench.retry("it")
    assert await bench.status("it") is Status.READY


async def test_a_submit_that_is_repeated_changes_nothing_of_what_was_asked_for_first(bench: Bench) -> None:
    lease = await bench.start("up")
    await bench.submit("it", nonce="same", depends_on=("up",))
    assert await bench.end(Aborted(lease, "boom")) == "done"
    again = await bench.submit("it", nonce="same", depends_on=("up",), run_after="end")
    assert again.verdict == "created"
    record = await bench.record("it")
    assert (record.status, record.waiting, record.spec.run_after) == (Status.BLOCKED, ["up"], "success")
    await bench.propagate()
    assert await bench.status("it") is Status.CANCELLED


async def test_a_retried_dependant_waits_only_for_those_that_have_not_ended(bench: Bench) -> None:
    lease = await bench.start("done")
    await bench.submit("slow")
    await bench.submit("it", depends_on=("done", "slow", "done"))
    await end(bench, lease, ok=True)
    await bench.cancel("it", False)
    await bench.retry("it")
    assert (await bench.record("it")).waiting == ["slow"]


async def test_a_retried_dependant_keeps_its_time(bench: Bench) -> None:
    lease = await bench.start("up")
    await bench.submit("it", depends_on=("up",), delay=3_600_000)
    await end(bench, lease, ok=True)
    await bench.cancel("it", False)
    await bench.retry("it")
    record = await bench.record("it")
    assert (record.status, record.due_at) == (Status.PENDING, record.submitted_at + 3_600_000)
    assert await bench.store.queries.audit() == []


async def test_only_a_task_in_the_status_named_is_retried(bench: Bench) -> None:
    await cancelled_with_its_upstream(bench)
    await bench.retry("up")
    assert await bench.retry("it", Status.DEAD) is Status.CANCELLED
    assert await bench.status("it") is Status.CANCELLED


async def test_dependants_are_listed_up_to_a_limit(bench: Bench) -> None:
    await bench.submit("up")
    for name in ("c", "a", "b"):
        await bench.submit(name, depends_on=("up",))
    assert await bench.store.queries.dependants("up", 10) == ["a", "b", "c"]
    assert len(await bench.store.queries.dependants("up", 2)) == 2
    assert await bench.store.queries.dependants("nobody", 10) == []


@pytest.mark.parametrize("policy", [Policy(events=False)], ids=["no-log"])
async def test_a_large_result_leaves_no_trace_in_a_retried_dependant(bench: Bench, policy: Policy) -> None:
    lease = await bench.start("up")
    await bench.submit("it", depends_on=("up",), payload=b"x" * 50_000)
    await end(bench, lease, ok=True)
    (grant,) = await bench.claim(10)
    assert await bench.end(Succeeded(grant.lease, b"y" * 50_000)) == "done"
    await bench.retry("up")
    await bench.retry("it")
    record = await bench.record("it")
    assert (record.status, record.waiting, record.result) == (Status.BLOCKED, ["up"], None)
    assert record.spec.payload == b"x" * 50_000


@pytest.mark.parametrize("way", ["alone", "delayed", "with a dedup key", "after another"])
@pytest.mark.parametrize("ok", [True, False], ids=["ends well", "dies"])
async def test_an_upstream_that_is_created_anew_before_its_end_was_told_tells_its_own(
    bench: Bench, way: str, ok: bool
) -> None:
    """The first task of that id has ended the other way, and was deleted before the leader came to tell of it."""
    bench.together()
    lease = await bench.start("up")
    await bench.submit("it", depends_on=("up",))
    assert await bench.end(Aborted(lease, "boom") if ok else Succeeded(lease)) == "done"
    await bench.delete("up")
    fields: dict[str, Any] = {}
    if way == "after another":
        other = await bench.start("other")
        assert await bench.end(Succeeded(other)) == "done"
        fields = {"depends_on": ("other",)}
    elif way == "with a dedup key":
        fields = {"dedup_key": "k"}
    elif way == "delayed":
        fields = {"delay": 1000}
    assert (await bench.submit("up", **fields)).verdict == "created"
    bench.clock.advance(1)
    (grant,) = await bench.claim(10)
    await end(bench, grant.lease, ok)
    assert await bench.status("it") is (Status.READY if ok else Status.CANCELLED)
    assert await bench.store.queries.dependants("up", 10) == []
