"""The standing claim of a worker, in a store that answers when it is told to."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, cast

import pytest

from tests.support.waiting import wait_until
from tests.unit.test_exchange import LOG, Call, Slots, SlowStore
from tickwork.config import Config
from tickwork.errors import StoreUnavailable
from tickwork.model.outcomes import Outcome, Succeeded
from tickwork.store.contract import STANDING_TURN, Capabilities, Claim, Claimed, Finished, Store
from tickwork.worker.exchange import Exchange
from tickwork.worker.notes import Notes
from tickwork.worker.standing import STAND_MAX


class StandingStore(SlowStore):
    """Standing claims are calls of their own; the test answers a refusal with -1."""

    def __init__(self) -> None:
        super().__init__(remote=True)
        self.capabilities = Capabilities(
            shared=True, remote=True, own_clock=True, durabilities=("memory",), standing_claims=True
        )
        self.stood: list[Call] = []
        self.recalled: list[str] = []
        self.next_due_in: int | None = None

    async def finish(self, batch: list[Outcome], claim: Claim | None = None) -> Finished:
        finished = await super().finish(batch, claim)
        if finished.claimed is not None:
            return Finished(finished.verdicts, Claimed(finished.claimed.grants, self.next_due_in))
        return finished

    async def stand(self, claim: Claim, seconds: float) -> Claimed | None:
        call = Call([], claim)
        self.stood.append(call)
        answer = await call.answer
        if isinstance(answer, Exception):
            raise answer
        return None if answer < 0 else Claimed([self._grant() for _ in range(answer)], self.next_due_in)

    async def recall(self, claim: Claim) -> None:
        self.recalled.append(claim.nonce)

    async def standing(self, number: int) -> Call:
        await wait_until(lambda: len(self.stood) > number, what=f"standing claim {number}")
        return self.stood[number]


class Scene:
    def __init__(self, concurrency: int, **options: Any) -> None:
        self.store = StandingStore()
        self.slots = Slots(concurrency)
        config = Config(**{"concurrency": concurrency, "scan_interval": 60.0, "lease_ttl": 600.0, **options})
        store = cast(Store, self.store)
        self.exchange = Exchange(self.slots, store, config, Notes(store, lambda run: None, LOG), lambda *_: None)

    def end(self, count: int) -> None:
        for lease in [self.slots.running.pop(0) for _ in range(count)]:
            self.exchange.add(Succeeded(lease))

    def stop(self) -> None:
        self.slots.stopping = True
        self.exchange.wake()


@asynccontextmanager
async def scene(concurrency: int, first: int = 0, **options: Any) -> AsyncIterator[Scene]:
    """A worker whose first claim was answered with so many tasks."""
    on = Scene(concurrency, **options)
    running = asyncio.create_task(on.exchange.run())
    (await on.store.call(0)).answer.set_result(first)
    await wait_until(lambda: len(on.slots.running) == first)
    try:
        yield on
        assert not running.done(), running
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)


async def rounds_of_the_loop() -> None:
    for _ in range(20):
        await asyncio.sleep(0)


async def test_a_worker_that_found_nothing_stands() -> None:
    async with scene(4) as on:
        standing = await on.store.standing(0)
        assert standing.claim is not None
        assert (standing.limit, standing.claim.turn) == (4, STANDING_TURN)
        standing.answer.set_result(1)
        await wait_until(lambda: len(on.slots.running) == 1)


async def test_it_stands_for_a_few_tasks_only() -> None:
    async with scene(100) as on:
        assert (await on.store.standing(0)).limit == STAND_MAX


async def test_beside_what_runs_it_stands_for_two() -> None:
    async with scene(10, first=3) as on:
        assert (await on.store.standing(0)).limit == 2


async def test_while_it_stands_outcomes_go_without_a_claim() -> None:
    async with scene(10, first=3) as on:
        await on.store.standing(0)
        on.end(1)
        call = await on.store.call(1)
        assert (len(call.batch), call.claim) == (1, None)


async def test_the_last_outcome_goes_without_a_claim_and_a_claim_stands_beside_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("tickwork.worker.standing.LINGER", 60.0)
    async with scene(10) as on:
        (await on.store.standing(0)).answer.set_result(1)
        await wait_until(lambda: on.slots.running)
        on.end(1)
        call = await on.store.call(1)
        assert (len(call.batch), call.claim) == (1, None)
        assert (await on.store.standing(1)).limit == 10
        assert not call.answer.done(), "it stands before the outcome is confirmed"


async def test_where_tasks_come_while_outcomes_are_handed_in_the_next_go_with_a_claim(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("tickwork.worker.standing.LINGER", 60.0)
    async with scene(10) as on:
        (await on.store.standing(0)).answer.set_result(1)
        await wait_until(lambda: on.slots.running)
        on.end(1)
        first = await on.store.call(1)
        (await on.store.standing(1)).answer.set_result(1)  # before the outcome is confirmed
        await wait_until(lambda: on.slots.running)
        first.answer.set_result(0)
        on.end(1)
        second = await on.store.call(2)
        assert (len(second.batch), second.limit) == (1, 10)
        second.answer.set_result(0)
        assert (await on.store.standing(2)).limit == 10, "nothing has come this time"


async def test_where_there_is_more_work_outcomes_go_with_a_claim() -> None:
    async with scene(3, first=3) as on:
        on.end(3)
        call = await on.store.call(1)
        assert (len(call.batch), call.limit) == (3, 3)
        assert on.store.stood == []


async def test_slots_beyond_the_standing_claim_do_not_keep_the_loop_busy() -> None:
    async with scene(100, scan_interval=0.001) as on:
        await on.store.standing(0)
        await asyncio.sleep(0.02)  # many scans; if one never waited, this would not return
        assert len(on.store.calls) == 1, "while a claim stands, nothing else is claimed"


async def test_a_task_that_becomes_due_is_claimed_beside_the_standing_claim() -> None:
    on = Scene(10)
    on.store.next_due_in = 30
    running = asyncio.create_task(on.exchange.run())
    (await on.store.call(0)).answer.set_result(0)
    assert (await on.store.standing(0)).limit == 8
    due = await on.store.call(1)
    assert (due.batch, due.limit) == ([], 2)
    assert on.store.recalled == []
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)


async def test_a_worker_with_one_slot_does_not_hold_it_from_what_is_due() -> None:
    on = Scene(1)
    on.store.next_due_in = 30
    running = asyncio.create_task(on.exchange.run())
    (await on.store.call(0)).answer.set_result(0)
    assert (await on.store.call(1)).limit == 1
    assert on.store.stood == []
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)


async def test_an_answer_that_is_lost_is_asked_for_again_before_it_stands_again() -> None:
    async with scene(4, scan_interval=0.001) as on:
        standing = await on.store.standing(0)
        standing.answer.set_exception(StoreUnavailable("cut"))
        first = await on.store.call(1)
        assert (first.nonce, first.limit) == (standing.nonce, 0)
        first.answer.set_exception(StoreUnavailable("cut"))
        again = await on.store.call(2)
        assert (again.nonce, again.limit) == (standing.nonce, 0)
        assert len(on.store.stood) == 1
        again.answer.set_result(2)
        await wait_until(lambda: len(on.slots.running) == 2)
        (await on.store.call(3)).answer.set_result(0)
        assert (await on.store.standing(1)).nonce != standing.nonce


async def test_an_answer_that_comes_so_late_that_its_leases_may_be_over_is_asked_for_again() -> None:
    async with scene(4, lease_ttl=0.05, renew_interval=0.01) as on:
        standing = await on.store.standing(0)
        await asyncio.sleep(0.05)
        standing.answer.set_result(3)
        again = await on.store.call(1)
        assert (again.nonce, again.limit) == (standing.nonce, 0)
        assert on.slots.running == []
        again.answer.set_result(1)
        await wait_until(lambda: len(on.slots.running) == 1)


async def test_a_worker_that_was_refused_claims_in_the_usual_way_for_a_scan_interval() -> None:
    async with scene(4) as on:
        (await on.store.standing(0)).answer.set_result(-1)
        (await on.store.call(1)).answer.set_result(0)
        await rounds_of_the_loop()
        assert len(on.store.stood) == 1


async def test_a_worker_that_stops_recalls_its_claim_and_reads_the_answer() -> None:
    on = Scene(4)
    running = asyncio.create_task(on.exchange.run())
    (await on.store.call(0)).answer.set_result(0)
    standing = await on.store.standing(0)
    on.stop()
    await wait_until(lambda: on.store.recalled == [standing.nonce])
    await rounds_of_the_loop()
    assert not running.done(), "its claim is not answered yet"
    standing.answer.set_result(0)
    await asyncio.wait_for(running, 30)


async def test_a_recall_that_fails_does_not_end_the_worker() -> None:
    async with scene(4) as on:
        tried = 0

        async def fail(claim: Claim) -> None:
            nonlocal tried
            tried += 1
            raise StoreUnavailable("full, or gone")

        on.store.recall = fail  # type: ignore[method-assign]
        await on.store.standing(0)
        on.slots.wanted = frozenset({"a", "b"})
        on.exchange.wake()
        await wait_until(lambda: tried)
        await rounds_of_the_loop()


async def test_a_claim_is_recalled_when_the_handlers_have_changed() -> None:
    async with scene(4) as on:
        standing = await on.store.standing(0)
        on.slots.wanted = frozenset({"a", "b"})
        on.exchange.wake()
        await wait_until(lambda: on.store.recalled == [standing.nonce])
        standing.answer.set_result(0)
        at_once = await on.store.call(1)
        assert cast(Claim, at_once.claim).types == {"a", "b"}
        at_once.answer.set_result(0)
        assert cast(Claim, (await on.store.standing(1)).claim).types == {"a", "b"}


async def test_with_several_workers_of_a_process_each_stands_for_itself() -> None:
    async with scene(2) as one, scene(2) as other:
        assert (await one.store.standing(0)).nonce != (await other.store.standing(0)).nonce
