"""Two exchanges with a store that answers when it is told to."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import cast

import pytest

from tests.support.waiting import wait_until
from tickwork.config import Config
from tickwork.errors import StoreError, StoreUnavailable
from tickwork.model.outcomes import Aborted, Outcome, Succeeded
from tickwork.model.tasks import Lease, Spec
from tickwork.observe.loggers import Log
from tickwork.store.contact import Contact
from tickwork.store.contract import Capabilities, Claim, Claimed, Finished, Grant, Store, Verdict
from tickwork.store.hints import WORK, Hint, Hints
from tickwork.worker.exchange import Exchange
from tickwork.worker.notes import Notes
from tickwork.worker.sources import Sources


class Call:
    def __init__(self, batch: list[Outcome], claim: Claim | None) -> None:
        self.batch = batch
        self.claim = claim
        self.answer: asyncio.Future[int | Exception] = asyncio.get_running_loop().create_future()
        self.out_of_reach: set[str] = set()  # outcomes of a partition that cannot be reached now

    @property
    def limit(self) -> int:
        return 0 if self.claim is None else self.claim.limit

    @property
    def nonce(self) -> str:
        return "" if self.claim is None else self.claim.nonce

    @property
    def ids(self) -> list[str]:
        return [outcome.lease.id for outcome in self.batch]


LOG = Log.of(None, "worker")


class SlowStore:
    """Holds every call until the test answers it with the number of tasks to grant."""

    def __init__(self, remote: bool) -> None:
        self.capabilities = Capabilities(shared=True, remote=remote, own_clock=True, durabilities=("memory",))
        self.tasks = self
        self.calls: list[Call] = []
        self.granted = 0
        self.hints = Hints()
        self.contact = Contact(LOG)

    def hint(self, topic: str) -> Hint:
        return self.hints.add(topic)

    async def claim(self, claim: Claim) -> Claimed:
        claimed = (await self.finish([], claim)).claimed
        assert claimed is not None
        return claimed

    async def finish(self, batch: list[Outcome], claim: Claim | None = None) -> Finished:
        call = Call(batch, claim)
        self.calls.append(call)
        answer = await call.answer
        if isinstance(answer, Exception):
            raise answer
        grants = [self._grant() for _ in range(answer)]
        verdicts = [Verdict("later" if task_id in call.out_of_reach else "done") for task_id in call.ids]
        claimed = None if claim is None else Claimed(grants, None)
        return Finished(verdicts, claimed, incomplete=bool(call.out_of_reach))

    def _grant(self) -> Grant:
        self.granted += 1
        task_id = f"t{self.granted}"
        return Grant(Spec(id=task_id, type="a", nonce=""), Lease(task_id, 1, "n"), 1, 0, 0)

    async def call(self, number: int) -> Call:
        await wait_until(lambda: len(self.calls) > number)
        return self.calls[number]


class Slots:
    id = "w"
    node = "n"
    wanted = frozenset({"a"})
    crowded: frozenset[str] = frozenset()
    stuck = False
    sources = Sources(("default",))

    def __init__(self, concurrency: int) -> None:
        self.capacity = concurrency
        self.queues: tuple[str, ...] = ("default",)
        self.running: list[Lease] = []
        self.stopping = False

    @property
    def free(self) -> int:
        return 0 if self.stopping else self.capacity - len(self.running)

    @property
    def done(self) -> bool:
        return self.stopping and not self.running

    def start(self, grants: list[Grant]) -> None:
        self.running += [grant.lease for grant in grants]
        assert len(self.running) <= self.capacity


class Scene:
    def __init__(self, concurrency: int, remote: bool = True) -> None:
        self.store = SlowStore(remote)
        self.slots = Slots(concurrency)
        config, store = Config(concurrency=concurrency, scan_interval=60.0), cast(Store, self.store)
        self.ended: list[tuple[list[str], list[str]]] = []  # ids and verdicts, as they were told
        self.exchange = Exchange(self.slots, store, config, Notes(store, lambda run: None, LOG), self.tell)
        self.exchange.pace.two = True

    def tell(self, batch: list[Outcome], verdicts: list[Verdict]) -> None:
        self.ended.append(([outcome.lease.id for outcome in batch], [verdict.kind for verdict in verdicts]))

    def pending(self) -> list[str]:
        """The ids of outcomes whose leases the heart renews."""
        return sorted(outcome.lease.id for outcome in self.exchange.pending())

    def run_at_once(self, grants: list[Grant]) -> None:
        for grant in grants:
            self.exchange.add(Succeeded(grant.lease))

    def end(self, count: int) -> None:
        ended = [self.slots.running.pop(0) for _ in range(count)]
        for lease in ended:
            self.exchange.add(Succeeded(lease))


@asynccontextmanager
async def scene(concurrency: int) -> AsyncIterator[Scene]:
    it = Scene(concurrency)
    running = asyncio.ensure_future(it.exchange.run())
    (await it.store.call(0)).answer.set_result(concurrency)
    await wait_until(lambda: len(it.slots.running) == concurrency)
    try:
        yield it
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)


async def test_a_full_house_that_ends_at_once_goes_back_in_two_halves() -> None:
    async with scene(10) as it:
        it.end(10)
        first, second = await it.store.call(1), await it.store.call(2)
        assert (len(first.ids), len(second.ids)) == (5, 5)
        assert (first.limit, second.limit) == (5, 5)
        first.answer.set_result(5)
        await wait_until(lambda: len(it.slots.running) == 5)
        it.end(5)  # while the other is still under way
        third = await it.store.call(3)
        assert (len(third.ids), third.limit) == (5, 5)


async def test_where_a_second_does_not_pay_all_go_back_together() -> None:
    async with scene(10) as it:
        it.exchange.pace.two = False
        it.end(5)
        first = await it.store.call(1)
        it.end(5)
        first.answer.set_result(5)
        second = await it.store.call(2)
        assert (len(first.ids), len(second.ids), len(it.store.calls)) == (5, 5, 3)


async def test_what_is_started_and_ends_at_once_goes_with_those_that_wait() -> None:
    async with scene(10) as it:
        it.exchange.pace.two = False
        it.end(5)
        first = await it.store.call(1)
        it.end(5)
        it.slots.start = lambda grants: asyncio.get_running_loop().call_soon(it.run_at_once, grants)  # type: ignore[method-assign, assignment]
        first.answer.set_result(5)
        assert (len((await it.store.call(2)).ids)) == 10


async def test_no_more_than_two_are_under_way_and_no_slot_is_promised_twice() -> None:
    async with scene(12) as it:
        it.end(3)
        first = await it.store.call(1)
        it.end(9)
        second = await it.store.call(2)
        assert (first.limit, second.limit) == (3, 9)
        assert [call.claim is None for call in it.store.calls] == [False] * 3
        second.answer.set_result(9)
        first.answer.set_result(3)
        await wait_until(lambda: len(it.slots.running) == 12)
        assert len(it.store.calls) == 3


async def test_a_few_wait_for_the_one_that_is_under_way() -> None:
    async with scene(10) as it:
        it.end(1)
        first = await it.store.call(1)
        it.end(4)
        first.answer.set_result(1)
        second = await it.store.call(2)
        assert (len(second.ids), len(it.store.calls)) == (4, 3)


async def test_what_was_not_answered_is_sent_again_as_it_was() -> None:
    async with scene(10) as it:
        it.end(10)
        first, second = await it.store.call(1), await it.store.call(2)
        second.answer.set_result(StoreUnavailable("gone"))
        first.answer.set_result(StoreUnavailable("gone"))
        await wait_until(lambda: len(it.store.calls) == 5)
        assert {call.nonce for call in it.store.calls[3:]} == {first.nonce, second.nonce}
        ids = sorted(task_id for call in it.store.calls[3:] for task_id in call.ids)
        assert ids == sorted(first.ids + second.ids)


async def test_a_refused_outcome_is_found_and_replaced_by_an_error() -> None:
    async with scene(8) as it:
        it.end(2)
        (await it.store.call(1)).answer.set_result(StoreError("too odd"))
        one, other = await it.store.call(2), None
        assert one.ids == ["t1"]
        one.answer.set_result(StoreError("too odd"))
        instead = await it.store.call(3)
        assert isinstance(instead.batch[0], Aborted)
        instead.answer.set_result(0)
        other = await it.store.call(4)
        assert other.ids == ["t2"]


async def test_outcomes_of_a_partition_that_cannot_be_reached_are_kept_and_sent_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("tickwork.worker.exchange.BACKOFF_MAX", 3600)  # this test says when the pause is over
    async with scene(8) as it:
        it.exchange.pace.two = False
        it.end(4)
        first = await it.store.call(1)
        first.out_of_reach = {"t2", "t4"}
        first.answer.set_result(0)
        await wait_until(lambda: it.ended)
        assert it.ended == [(["t1", "t3"], ["done"] * 2)]
        assert it.pending() == ["t2", "t4"]
        it.end(2)
        second = await it.store.call(2)
        assert second.ids == ["t5", "t6"], "they hold up no other"
        second.out_of_reach = {"t6"}
        second.answer.set_result(0)
        await wait_until(lambda: len(it.ended) == 2)
        assert it.ended[1] == (["t5"], ["done"])
        assert it.pending() == ["t2", "t4", "t6"]
        it.exchange._resume()
        third = await it.store.call(3)
        assert third.ids == ["t2", "t4", "t6"]
        third.out_of_reach = {"t4"}
        third.answer.set_result(0)
        await wait_until(lambda: len(it.ended) == 3)
        assert it.pending() == ["t4"]
        it.exchange._resume()
        fourth = await it.store.call(4)
        assert fourth.ids == ["t4"]
        fourth.answer.set_result(0)
        await wait_until(lambda: it.pending() == [])
        assert it.ended[2:] == [(["t2", "t6"], ["done"] * 2), (["t4"], ["done"])]


async def test_it_does_not_end_before_those_are_handed_in() -> None:
    it = Scene(2)
    running = asyncio.ensure_future(it.exchange.run())
    (await it.store.call(0)).answer.set_result(2)
    await wait_until(lambda: len(it.slots.running) == 2)
    it.slots.stopping = True
    it.end(2)
    first = await it.store.call(1)
    first.out_of_reach = {"t1"}
    first.answer.set_result(0)
    again = await it.store.call(2)
    assert (again.ids, running.done()) == (["t1"], False)
    again.answer.set_result(0)
    await running


async def test_a_claim_that_failed_is_sent_again_though_nothing_runs() -> None:
    it = Scene(10)
    running = asyncio.ensure_future(it.exchange.run())
    first = await it.store.call(0)
    first.answer.set_result(StoreUnavailable("gone"))
    again = await it.store.call(1)
    assert (again.nonce, again.limit) == (first.nonce, 10)
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)


async def test_slots_that_the_second_could_not_fill_are_the_firsts_to_wait_for() -> None:
    async with scene(10) as it:
        it.end(1)
        first = await it.store.call(1)
        it.end(5)
        second = await it.store.call(2)
        first.answer.set_result(1)
        await wait_until(lambda: not it.exchange._first.busy)
        second.answer.set_result(2)
        assert (await it.store.call(3)).limit == 3
        it.store.calls[3].answer.set_result(0)
        await wait_until(lambda: it.store.hints.idles(WORK))


async def test_what_the_second_brought_back_goes_with_the_next() -> None:
    async with scene(10) as it:
        it.slots.stopping = True
        it.end(10)
        first, second = await it.store.call(1), await it.store.call(2)
        first.answer.set_result(0)
        await wait_until(lambda: not it.exchange._first.busy)
        second.answer.set_result(StoreUnavailable("gone"))
        assert (await it.store.call(3)).ids == second.ids


async def test_a_turn_has_its_own_number() -> None:
    async with scene(10) as it:
        it.end(10)
        first, second = await it.store.call(1), await it.store.call(2)
        assert [call.claim.turn for call in (first, second) if call.claim is not None] == [0, 1]


async def test_a_store_that_refuses_a_claim_ends_the_worker() -> None:
    it = Scene(10)
    running = asyncio.ensure_future(it.exchange.run())
    (await it.store.call(0)).answer.set_result(StoreError("no"))
    with pytest.raises(StoreError, match="no"):
        await running


async def test_a_store_in_this_process_gets_everything_at_once() -> None:
    it = Scene(10, remote=False)
    running = asyncio.ensure_future(it.exchange.run())
    (await it.store.call(0)).answer.set_result(10)
    await wait_until(lambda: len(it.slots.running) == 10)
    it.end(10)
    assert len((await it.store.call(1)).ids) == 10
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)


async def test_a_wake_up_is_kept_while_an_exchange_is_under_way() -> None:
    it = Scene(10)
    running = asyncio.ensure_future(it.exchange.run())
    first = await it.store.call(0)
    it.exchange.wake()
    first.answer.set_result(0)
    assert (await it.store.call(1)).limit == 10
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)


async def test_it_ends_when_both_halves_are_handed_in() -> None:
    it = Scene(10)
    running = asyncio.ensure_future(it.exchange.run())
    (await it.store.call(0)).answer.set_result(10)
    await wait_until(lambda: len(it.slots.running) == 10)
    it.slots.stopping = True
    it.end(10)
    first, second = await it.store.call(1), await it.store.call(2)
    assert (first.claim, second.claim) == (None, None)
    first.answer.set_result(0)
    await asyncio.sleep(0)
    assert not running.done()
    second.answer.set_result(0)
    await running


async def test_an_answer_that_comes_so_late_that_its_leases_may_be_over_is_asked_for_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now = [1000.0]
    monkeypatch.setattr("tickwork.worker.exchange.time", SimpleNamespace(monotonic=lambda: now[0]))
    it = Scene(concurrency=2)
    running = asyncio.ensure_future(it.exchange.run())
    first = await it.store.call(0)
    now[0] += Config().lease_ttl  # this process was stopped
    first.answer.set_result(2)
    again = await it.store.call(1)
    assert again.nonce == first.nonce
    assert it.slots.running == []
    again.answer.set_result(2)
    await wait_until(lambda: len(it.slots.running) == 2)
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
