"""The exchange with the store: outcomes are handed in and new tasks claimed in the same call, many at a time.

A claim never asks for more than there are free slots, so there is no buffer of tasks to lose, to drain, or to keep from
other workers. Two calls may be under way with a store outside of this process, each for about half of the slots:

    first turn    finish A, claim |---- store ----| A's handlers run    finish A, claim |---- store ----|
    second turn   B's handlers run      finish B, claim |---- store ----| B's handlers run

While the store works on one half, the handlers of the other run. With one turn, worker and store would wait for each
other half of the time. The first turn does everything while there is little to do; the second joins when enough
outcomes wait for a call of their own (`_worth_a_second`), and only claims when it hands outcomes in. Whether that pays
is measured (`pace.py`).

A worker that found the queues empty leaves its claim in the store, if the store can do that (`standing.py`). While it
stands there, the turns hand in outcomes, and claim only what has become due.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Callable
from typing import Protocol

from tickwork.config import Config
from tickwork.errors import StoreError, StoreUnavailable
from tickwork.ids import new_claim_nonce
from tickwork.model.outcomes import Aborted, Outcome
from tickwork.observe.loggers import Log
from tickwork.store.contract import Claim, Claimed, Finished, Grant, Store, Verdict
from tickwork.store.hints import WORK, Hint
from tickwork.texts import storable
from tickwork.worker.notes import Notes
from tickwork.worker.pace import Pace
from tickwork.worker.sources import Sources
from tickwork.worker.standing import Standing

OUTCOMES_MAX = 100  # in one call
SHARE_MIN = 2  # outcomes; with fewer, there is nothing to share
STOP_STEP = 0.1  # seconds between two looks at something whose end raises no event
BACKOFF_MAX = 0.5  # longest pause in seconds: work must go on within a second of the store's return


class Slots(Protocol):
    """The worker, as the exchange sees it: slots in which granted tasks run."""

    id: str
    node: str  # the process that it is part of

    capacity: int

    @property
    def free(self) -> int: ...
    @property
    def stuck(self) -> bool: ...
    @property
    def done(self) -> bool: ...
    @property
    def wanted(self) -> frozenset[str]: ...
    @property
    def crowded(self) -> frozenset[str]: ...
    @property
    def sources(self) -> Sources: ...
    def start(self, grants: list[Grant]) -> None: ...


# Called with the outcomes that were handed in and the store's verdicts on them.
OnEnded = Callable[[list[Outcome], list[Verdict]], None]


class Turn:
    """One of the two calls to the store that may be under way at a time."""

    __slots__ = ("busy", "claim", "number", "sending")

    def __init__(self, number: int) -> None:
        self.number = number
        self.busy = False
        self.sending: list[Outcome] = []
        self.claim: Claim | None = None  # not answered yet


class Exchange:
    def __init__(self, slots: Slots, store: Store, config: Config, notes: Notes, on_ended: OnEnded) -> None:
        self._slots = slots
        self._store = store
        self._config = config
        self._log = Log.of(config.logger, "worker")
        self._notes = notes
        self._on_ended = on_ended
        self._turns = 0
        self._outcomes: list[Outcome] = []
        self._postponed: list[Outcome] = []  # their part of the store cannot be reached now
        self._first, self._second = Turn(0), Turn(1)
        self._share = self._share_of(slots.capacity)
        self.pace = Pace()
        self._one_by_one = 0  # how many outcomes are still to be sent one by one, since one of them was refused
        self._look_at = 0.0
        self._hurried = False  # tasks come while outcomes are handed in
        self._due_at = math.inf  # when a delayed task is due, as far as the last claim knew
        stands = store.capabilities.standing_claims
        self._standing = Standing(slots, store, config, self._next_claim, self._take_standing) if stands else None
        self._failures = 0
        self._hint: Hint | None = None  # set while `run` runs
        self._second_waits: asyncio.Future[None] | None = None  # set while the second turn has nothing to do

    # --- what comes back

    def add(self, outcome: Outcome) -> None:
        self._outcomes.append(outcome)
        if not self._first.busy:
            self.wake()
        elif self._worth_a_second:
            self._wake_second()

    def pending(self) -> list[Outcome]:
        """Outcomes that the store has not confirmed yet. Called from the heart's thread, which renews their leases."""
        return [*self._first.sending, *self._second.sending, *self._outcomes, *self._postponed]

    def wake(self) -> None:
        """Make the first turn look again. If a call is under way, it looks again after that."""
        if self._hint is not None:
            self._hint.set()

    def follow(self) -> None:
        """The worker has other slots or queues, or takes tasks again: claim what there is for it now."""
        self._share = self._share_of(self._slots.capacity)
        if self._standing is not None:  # it was made for other queues
            self._standing.recall()
        self._look_at = 0.0
        self.wake()

    def _share_of(self, capacity: int) -> int:
        """Outcomes that are worth a second call. A store in this process gains nothing from two calls at a time, and is
        fastest with large batches."""
        return capacity // 2 if self._store.capabilities.remote else capacity + 1

    def _wake_second(self) -> None:
        if self._second_waits is not None and not self._second_waits.done():
            self._second_waits.set_result(None)

    @property
    def _worth_a_second(self) -> bool:
        """Enough outcomes wait for a second call beside the one that is under way."""
        return self.pace.two and len(self._outcomes) >= self._share >= SHARE_MIN and not self._one_by_one

    # --- the two turns: see the picture above

    async def run(self) -> None:
        """Run both turns, and the standing claim, until the worker is done and all outcomes are handed in."""
        beside = [asyncio.ensure_future(self._run_second())]
        if self._standing is not None:
            beside.append(asyncio.ensure_future(self._standing.run()))
        for each in beside:
            each.add_done_callback(lambda _: self.wake())
        try:
            with self._store.hint(WORK) as hint:
                self._hint = hint
                while not self._done:
                    for each in beside:
                        if each.done():
                            each.result()
                    await self._run_first(hint)
        finally:
            self._hint = None
            self._store.contact.forget(f"worker {self._slots.id}")
            for each in beside:
                each.cancel()
            await asyncio.gather(*beside, return_exceptions=True)

    @property
    def _done(self) -> bool:
        stands = self._standing is not None and self._standing.claim is not None
        return self._slots.done and not (self._outcomes or self._postponed or self._second.busy or stands)

    async def _run_first(self, hint: Hint) -> None:
        if self._outcomes or self._first.claim is not None:
            await self._call_store(self._first)
            return
        now, free = time.monotonic(), self._free
        if free > 0 and now >= self._look_at:
            await self._call_store(self._first)
            return
        # A thread that was asked to stop mostly ends within a moment, but its end raises no event.
        full = STOP_STEP if self._slots.stuck else self._config.scan_interval
        if self._standing is not None and (pause := self._standing.stand(free, self._due_at, now)) is not None:
            await hint.wait(pause, idle=False)
        elif await hint.wait(max(self._look_at - now, 0.0) if free > 0 else full, idle=free > 0):
            self._look_at = 0.0

    async def _run_second(self) -> None:
        while True:
            if self._second.claim is not None or (self._first.busy and self._worth_a_second):
                await self._call_store(self._second)
                if not self._first.busy and (self._outcomes or self._free > 0 or self._slots.done):
                    self.wake()  # new outcomes, and slots that got no task, are left to the first turn
            else:
                self._second_waits = asyncio.get_running_loop().create_future()
                await self._second_waits

    @property
    def _free(self) -> int:
        """Slots for which a turn may claim. While a claim stands, the store has no task but what has become due."""
        first, second = self._first.claim, self._second.claim
        asked_for = (0 if first is None else first.limit) + (0 if second is None else second.limit)
        if self._standing is not None and self._standing.claim is not None:
            if time.monotonic() < self._due_at:
                return 0
            asked_for += self._standing.claim.limit
        return self._slots.free - asked_for

    async def _call_store(self, turn: Turn) -> None:
        turn.busy = True
        try:
            await self._send(turn)
        finally:
            turn.busy = False
            turn.sending = []

    async def _send(self, turn: Turn) -> None:
        halved = len(self._outcomes) >= 2 * self._share and self._worth_a_second
        size = 1 if self._one_by_one else min(self._share, OUTCOMES_MAX) if halved else OUTCOMES_MAX
        batch = turn.sending = self._outcomes[:size]
        self._outcomes = self._outcomes[size:]
        # A claim whose answer was lost is sent again unchanged: the store grants the same tasks again.
        unanswered = turn.claim
        if unanswered is None and not (batch and self._stand_instead()) and (free := self._free) > 0:
            turn.claim = self._next_claim(
                turn.number, min(free, self._config.batch_size, self._share if halved else free)
            )
        claim = turn.claim
        if self._worth_a_second:
            self._wake_second()
        asked_at = time.monotonic()
        try:
            if batch and (unwritten := await self._notes.write_last(batch)):
                batch = turn.sending = self._postpone(batch, unwritten)
            if batch:
                finished = await self._store.tasks.finish(batch, claim)
                self._ended(batch, finished)
                self.pace.exchanged(len(batch))
                claimed = finished.claimed
            elif claim is not None:
                claimed = await self._store.tasks.claim(claim)
            else:
                return
        except StoreUnavailable as error:
            self._outcomes = batch + self._outcomes
            await self._back_off(error)
            return
        except StoreError as error:
            if not batch:
                raise
            turn.claim = unanswered
            self._refused(batch, error)
            return
        turn.claim = None
        if self._failures:
            self._failures = 0
            self._store.contact.made(f"worker {self._slots.id}")
        self._one_by_one = max(self._one_by_one - len(batch), 0)
        if claimed is not None and claim is not None:
            # A process that was stopped meanwhile may read an answer whose leases have run out: it is asked for again.
            if claimed.grants and time.monotonic() - asked_at > self._config.lease_ttl / 2:
                turn.claim = claim
                return
            self._hurried = self._hurried and bool(claimed.grants)
            self._take(claimed, claim)
            if self._outcomes and not self.pace.two:
                await asyncio.sleep(0)  # what was started just now may end at once, and go with those that wait

    def _stand_instead(self) -> bool:
        """Whether a claim stands beside these outcomes: for a worker that runs nothing any more and found the queues
        empty. They go without a claim then, so that their results are known sooner."""
        now = time.monotonic()
        if self._standing is None or now >= self._look_at or self._slots.free < self._slots.capacity:
            return False
        if self._slots.sources.assigned:  # whoever assigns has to hear that slots are free
            return False
        if self._hurried:  # one call for both is cheaper, where it gets what the standing claim would
            return False
        return self._standing.stand(self._free, self._due_at, now) is not None

    def _ended(self, batch: list[Outcome], finished: Finished) -> None:
        verdicts = finished.verdicts
        if finished.incomplete:
            pairs = zip(batch, verdicts, strict=True)
            batch = self._postpone(batch, {outcome.lease.id for outcome, verdict in pairs if verdict.kind == "later"})
            verdicts = [verdict for verdict in verdicts if verdict.kind != "later"]
        self._on_ended(batch, verdicts)

    def _postpone(self, batch: list[Outcome], ids: set[str]) -> list[Outcome]:
        """Keep outcomes of a part of the store that cannot be reached, to send them again. Answers the others."""
        if not self._postponed:
            asyncio.get_running_loop().call_later(BACKOFF_MAX, self._resume)
        self._postponed += [outcome for outcome in batch if outcome.lease.id in ids]
        return [outcome for outcome in batch if outcome.lease.id not in ids]

    def _resume(self) -> None:
        self._outcomes += self._postponed
        self._postponed = []
        self.wake()

    def _next_claim(self, turn: int, limit: int) -> Claim:
        slots, lease_ttl = self._slots, round(self._config.lease_ttl * 1000)
        queues, inboxes, assigned = slots.sources
        if len(queues) > 1:
            self._turns = (self._turns + 1) % len(queues)
            queues = (*queues[self._turns :], *queues[: self._turns])
        return Claim(slots.id, queues, slots.wanted, limit, lease_ttl, new_claim_nonce(), turn, slots.node,
                     self._config.labels, inboxes, assigned, slots.crowded)  # fmt: skip

    def _take(self, claimed: Claimed, claim: Claim) -> None:
        due_in = claimed.next_due_in
        self._due_at = math.inf if due_in is None else time.monotonic() + due_in / 1000
        if len(claimed.grants) + len(claimed.unreadable) < claim.limit:
            # The queues are empty: look again at a hint, when a delayed task is due, or after the scan interval.
            pause = self._config.scan_interval
            if claimed.next_due_in is not None:
                pause = min(pause, claimed.next_due_in / 1000)
            self._look_at = time.monotonic() + pause
            self.pace.pause()
        else:
            self._look_at = 0.0
        self._slots.start(claimed.grants)
        for lost in claimed.unreadable:
            self._log.error("task %s goes to the dead letters: %s", lost.lease.id, lost.why)
            self.add(Aborted(lost.lease, lost.why))

    def _take_standing(self, claimed: Claimed, claim: Claim) -> None:
        if claimed.grants and (self._first.busy or self._second.busy):
            self._hurried = True
        self._take(claimed, claim)
        self.wake()

    # --- what goes wrong

    async def _back_off(self, error: StoreUnavailable) -> None:
        self._store.contact.lost(f"worker {self._slots.id}", error)
        self._failures += 1
        await asyncio.sleep(min(0.05 * 2 ** min(self._failures, 10), BACKOFF_MAX))

    def _refused(self, batch: list[Outcome], error: StoreError) -> None:
        """The store refused a batch. It is sent again one by one, so that one outcome which the store can never take
        does not keep the others back; for that one an error is handed in instead."""
        if len(batch) > 1:
            self._one_by_one = len(batch)
            self._outcomes = batch + self._outcomes
            return
        (outcome,) = batch
        self._one_by_one = max(self._one_by_one - 1, 0)
        self._log.error("task %s: the store refused its outcome: %s", outcome.lease.id, error)
        if not isinstance(outcome, Aborted):
            text = f"the handler ended, but its outcome could not be stored: {error}"
            self._outcomes.insert(0, Aborted(outcome.lease, storable(text)[:1000]))
