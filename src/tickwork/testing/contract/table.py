"""Every operation crossed with every status, made from the table: what it allows happens, and nothing else does."""

from __future__ import annotations

from typing import Any

import pytest

from tickwork.model.policy import Policy
from tickwork.model.table import TABLE, Op
from tickwork.model.tasks import ENDS, Lease, Status
from tickwork.store.contract import Claim
from tickwork.testing.contract.bench import OUTCOMES, Bench

SOURCES: list[Status | None] = [None, *Status]


async def operate(bench: Bench, op: Op, lease: Lease) -> None:
    """Send one operation at the task `it`, as any caller might at any time."""
    store = bench.store
    if op in OUTCOMES:
        await store.tasks.finish([OUTCOMES[op](lease)])
        return
    match op:
        case Op.SUBMIT:
            await bench.submit("it", nonce="another")
        case Op.RESOLVE:
            await bench.resolve("it", "upstream", True)
        case Op.PROMOTE:
            await bench.pass_time(60)
            await store.tasks.extend([lease], 30_000)
            await store.tasks.promote(10)
        case Op.RUN_NOW:
            await bench.run_now("it")
        case Op.RESCHEDULE:
            await bench.reschedule("it", bench.clock.now() + 7000)
        case Op.CLAIM:
            await bench.claim(10, worker="w2", inboxes=("w2",))
        case Op.ASSIGN:
            await bench.assign("it", "w3")
        case Op.UNASSIGN:
            await store.tasks.unassign(["w2"], 10)
        case Op.OVERDUE:
            bench.clock.advance(30)
            await store.tasks.promote(10)
        case Op.EXPIRE:
            await bench.pass_time(31)
            await store.tasks.reclaim(10)
        case Op.CANCEL | Op.FORCE_CANCEL:
            await bench.cancel("it", op is Op.FORCE_CANCEL)
        case Op.RETRY:
            await bench.retry("it")
        case Op.DELETE:
            await bench.delete("it")
        case Op.PRUNE:
            bench.clock.advance(Policy().retention / 1000 + 1)
            await store.operators.prune(100)
        case _:
            raise AssertionError(f"no way to send {op}")


@pytest.mark.parametrize("source", [source for source in SOURCES if source is not Status.FAILED], ids=str)
@pytest.mark.parametrize("op", Op, ids=str)
async def test_the_table_is_the_law(bench: Bench, op: Op, source: Status | None) -> None:
    await check(bench, op, source)


@pytest.mark.parametrize("policy", [Policy(dlq=False)], ids=["dlq-off"])
@pytest.mark.parametrize("op", Op, ids=str)
async def test_without_dead_letters(bench: Bench, op: Op, policy: Policy) -> None:
    await check(bench, op, Status.FAILED)


async def check(bench: Bench, op: Op, source: Status | None) -> None:
    more: dict[str, Any] = {"expires_at": bench.clock.now() + 30_000} if op is Op.OVERDUE else {}
    lease = await bench.bring(source, **more)
    assert await bench.status("it") == source
    facts_before = await bench.facts("it")
    await operate(bench, op, lease)
    after = await bench.status("it")
    rule = next((rule for rule in TABLE if rule.source == source and rule.op == op), None)
    facts = (await bench.facts("it"))[len(facts_before) :]
    if rule is None:
        assert after == source, f"{op} must not move a {source} task"
        assert facts == [], "what is refused leaves no fact"
    else:
        assert after in rule.targets
        assert len(facts) == 1 or op is Op.PRUNE, "every transition leaves its fact in the log"


@pytest.mark.parametrize("op", [Op.FAIL, Op.ABORT, Op.SNOOZE, Op.HOLD, Op.RELEASE, Op.STOP, Op.EXPIRE], ids=str)
async def test_every_exit_of_a_force_cancelled_run_but_success_is_cancelled(bench: Bench, op: Op) -> None:
    lease = await bench.bring(Status.RUNNING)
    await bench.cancel("it", True)
    await operate(bench, op, lease)
    assert await bench.status("it") is Status.CANCELLED


async def test_success_wins_over_a_forced_cancel(bench: Bench) -> None:
    lease = await bench.bring(Status.RUNNING)
    await bench.cancel("it", True)
    await operate(bench, Op.SUCCEED, lease)
    assert await bench.status("it") is Status.SUCCESS


@pytest.mark.parametrize("source", [s for s in SOURCES if s not in (Status.RUNNING, Status.FAILED)], ids=str)
@pytest.mark.parametrize("op", list(OUTCOMES), ids=str)
async def test_a_lease_that_was_never_given_is_refused(bench: Bench, op: str, source: Status | None) -> None:
    await bench.bring(source)
    assert await bench.end(OUTCOMES[op](Lease("it", 12345, "forged"))) == "lost"
    assert await bench.status("it") == source


async def test_table_names_every_status_that_can_be_left() -> None:
    sources = {rule.source for rule in TABLE}
    assert sources == set(SOURCES)
    reachable = {target for rule in TABLE for target in rule.targets}
    assert reachable == {None, *Status}
    assert all(rule.op in (Op.RETRY, Op.DELETE, Op.PRUNE) for rule in TABLE if rule.source in ENDS)


async def test_then_claim_takes_the_next_batch_in_the_same_step(bench: Bench) -> None:
    lease = await bench.bring(Status.RUNNING)
    await bench.submit("next")
    claim = Claim("w1", ("default",), frozenset({"job"}), 5, 30_000, "n")
    done = await bench.store.tasks.finish([OUTCOMES["succeed"](lease)], claim)
    assert [verdict.kind for verdict in done.verdicts] == ["done"]
    assert done.claimed is not None
    assert [grant.spec.id for grant in done.claimed.grants] == ["next"]
