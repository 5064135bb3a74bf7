"""One worker: claims at most its free slots, runs handlers, and hands outcomes back in batches.

    free slot? -> claim -> start handlers -> wait(min(scan_interval, next due));  outcomes -> finish + claim in one step

A claim is never ahead of a free slot, so there is no buffer to lose, drain, or starve others with.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from typing import Literal

from msgspec.structs import replace

from tickwork import outcomes
from tickwork.config import Config
from tickwork.context import TaskContext, storable
from tickwork.deadlines import Deadlines
from tickwork.errors import StoreError, StoreUnavailable
from tickwork.events import Bus, Event, Fact
from tickwork.executors.local import LocalExecutor
from tickwork.handlers import Entry, Registry
from tickwork.ids import new_nonce
from tickwork.model import Aborted, Failed, Lease, Outcome, Released, Snoozed, Stopped, Succeeded
from tickwork.notes import Notes
from tickwork.run import Reason, Run
from tickwork.store.base import Claim, Claimed, Grant, Store, Verdict
from tickwork.store.hints import WORK, Hint
from tickwork.submission import completed

CANCEL_GRACE = 2.0  # for a handler that was told to stop; after that its slot is free and it counts as leaked
RELEASE_GRACE = 0.5  # the same at shutdown, where nobody likes to wait
STOP_STEP = 0.1
OUTCOMES_MAX = 100
BACKOFF_MAX = 0.5  # work must go on within a second of the store's return

_log = logging.getLogger("tickwork.worker")


class Worker:
    def __init__(
        self,
        worker_id: str,
        store: Store,
        registry: Registry,
        config: Config,
        bus: Bus,
        on_exhausted: Callable[[], None] = lambda: None,
    ) -> None:
        self.id = worker_id
        self.running: dict[str, Run] = {}
        self.abandoned: set[Run] = set()
        self.started_total = 0
        self._store = store
        self._registry = registry
        self._config = config
        self._bus = bus
        self._on_exhausted = on_exhausted
        self._executor = LocalExecutor(registry, config.concurrency, worker_id)
        self._queues = tuple(config.queues)
        self._types: frozenset[str] | None = None
        self._outcomes: list[Outcome] = []
        self._sending: list[Outcome] = []
        self._unanswered: Claim | None = None
        self._singly = 0  # so many are to be sent one by one, as one of them was refused
        self._deadlines = Deadlines(lambda run: self._stop_run(run, "timeout"))
        self._notes = Notes(store, lambda run: self._stop_run(run, "lost"))
        self._stopping = False
        self._look_at = 0.0
        self._failures = 0
        self._hint: Hint | None = None  # while it runs
        self._loop: asyncio.AbstractEventLoop
        registry.on_change(self._forget_types)

    # --- life

    async def run(self) -> None:
        """Work until `stop` was called and all is handed back."""
        self._loop = asyncio.get_running_loop()
        self._notes.begin(self._loop)
        with self._store.hint(WORK) as hint:
            self._hint = hint
            while not (self._stopping and not self.running and not self._outcomes):
                now = time.monotonic()
                stuck = self._stuck
                free = 0 if self._stopping or stuck else self._config.concurrency - len(self.running)
                if self._outcomes or (free > 0 and now >= self._look_at):
                    await self._exchange(free)
                    continue
                # A thread that was told to stop is mostly gone in a moment, and nobody tells.
                full = STOP_STEP if stuck else self._config.scan_interval
                if await hint.wait(max(self._look_at - now, 0.0) if free > 0 else full, idle=free > 0):
                    self._look_at = 0.0

    async def stop(self, grace: float) -> None:
        """Claim no more, wait for what runs, then give back the rest without blame."""
        self._stopping = True
        self._wake()
        deadline = time.monotonic() + grace
        while self.running and (left := deadline - time.monotonic()) > 0:
            # In short steps: one that was given up meanwhile (`hurry`) leaves `running`, but its task may never end.
            await asyncio.wait([run.task for run in self.running.values() if run.task], timeout=min(left, STOP_STEP))
            await asyncio.sleep(0)
        self.release_all()

    def release_all(self) -> None:
        self._stopping = True  # or it would claim them again
        for run in list(self.running.values()):
            self._stop_run(run, "release", grace=RELEASE_GRACE)

    def _wake(self) -> None:
        if self._hint is not None:
            self._hint.set()

    async def close(self) -> None:
        self._notes.close()
        self._deadlines.close()
        for run in self.running.values():
            if run.timer is not None:
                run.timer.cancel()
        self._registry.off_change(self._forget_types)
        await self._executor.close()

    async def warm(self) -> None:
        entries = [entry for kind in self.types if (entry := self._registry.find(kind)) is not None]
        await self._executor.warm(entries)

    @property
    def types(self) -> frozenset[str]:
        if self._types is None:
            known = frozenset(self._registry.list())
            wanted = self._config.task_types
            self._types = known if wanted is None else known & frozenset(wanted)
        return self._types

    def _forget_types(self) -> None:
        self._types = None
        self._wake()

    @property
    def leaked(self) -> int:
        return len(self.abandoned) + self._executor.leaked

    @property
    def has_outcomes(self) -> bool:
        return bool(self._outcomes or self._sending)

    def leases(self) -> list[Lease]:
        """What the heart must renew; called from its thread."""
        ended = [outcome.lease for outcome in (*self._sending, *self._outcomes)]  # but the store does not know yet
        return [run.grant.lease for run in list(self.running.values())] + ended

    # --- the exchange with the store

    async def _exchange(self, free: int) -> None:
        size = 1 if self._singly else OUTCOMES_MAX
        batch, self._outcomes = self._outcomes[:size], self._outcomes[size:]
        self._sending = batch
        # One that was not answered is sent again as it was: what the store may have granted it gives once more.
        wish = self._unanswered or (self._wish(min(free, self._config.batch_size)) if free > 0 else None)
        try:
            if batch:
                await self._notes.last_words(batch)
                finished = await self._store.finish(batch, wish)
                self._report(batch, finished.verdicts)
                claimed = finished.claimed
            elif wish is not None:
                claimed = await self._store.claim(wish)
            else:
                return
        except StoreUnavailable as error:
            self._outcomes, self._unanswered = batch + self._outcomes, wish
            await self._back_off(error)
            return
        except StoreError as error:
            if not batch:
                raise
            self._set_aside(batch, error)
            return
        finally:
            self._sending = []
        self._failures, self._unanswered = 0, None
        self._singly = max(self._singly - len(batch), 0)
        if claimed is not None and wish is not None:
            self._start_all(claimed, wish)

    def _set_aside(self, batch: list[Outcome], error: StoreError) -> None:
        """An outcome that the store will never take must neither stop the worker nor spoil those that go with it."""
        if len(batch) > 1:
            self._singly = len(batch)
            self._outcomes = batch + self._outcomes
            return
        (refused,) = batch
        self._singly = max(self._singly - 1, 0)
        _log.error("task %s: the store refused its outcome: %s", refused.lease.id, error)
        if not isinstance(refused, Aborted):
            text = f"the handler ended, but its outcome could not be stored: {error}"
            self._outcomes.insert(0, Aborted(refused.lease, storable(text)[:1000]))

    def _wish(self, limit: int) -> Claim:
        if len(self._queues) > 1:
            self._queues = (*self._queues[1:], self._queues[0])
        lease_ttl = round(self._config.lease_ttl * 1000)
        return Claim(self.id, self._queues, self.types, limit, lease_ttl, new_nonce())

    def _start_all(self, claimed: Claimed, wish: Claim) -> None:
        if len(claimed.grants) < wish.limit:  # drained: look again when told, when something is due, or by and by
            pause = self._config.scan_interval
            if claimed.next_due_in is not None:
                pause = min(pause, claimed.next_due_in / 1000)
            self._look_at = time.monotonic() + pause
        else:
            self._look_at = 0.0
        if self._stopping:  # it was told to stop while this claim was on its way
            self._outcomes += [Released(grant.lease) for grant in claimed.grants]
            return
        for grant in claimed.grants:
            self._start(grant)
        if self._bus.wants(Fact.TASK_CLAIMED):
            for grant in claimed.grants:
                self._tell(Fact.TASK_CLAIMED, grant)

    async def _back_off(self, error: StoreUnavailable) -> None:
        if self._failures == 0:
            _log.warning("the store cannot be reached, trying again: %s", error)
        self._failures += 1
        await asyncio.sleep(min(0.05 * 2 ** min(self._failures, 10), BACKOFF_MAX))

    def _report(self, batch: list[Outcome], verdicts: list[Verdict]) -> None:
        for outcome, verdict in zip(batch, verdicts, strict=True):
            if verdict.kind == "lost":
                _log.warning("task %s was finished here, but is not ours any more: refused", outcome.lease.id)

    # --- runs

    def _start(self, grant: Grant) -> None:
        entry = self._registry.find(grant.spec.type)
        if entry is None:  # unregistered since the claim
            self._outcomes.append(Released(grant.lease))
            return
        spec = completed(grant.spec, entry, self._config)
        run = Run(grant if spec is grant.spec else replace(grant, spec=spec), entry.run_in != "thread")
        timeout = spec.timeout or 0.0
        if entry.context_name is not None:
            run.context = TaskContext(
                task_id=spec.id,
                type=spec.type,
                attempt=grant.attempt,
                fence=grant.lease.fence,
                nonce=grant.lease.nonce,
                timeout=timeout,
                tags=spec.tags,
                context=spec.context,
                wake=lambda: self._notes.later(run),
            )
        self.running[spec.id] = run
        self.started_total += 1
        run.task = self._loop.create_task(self._execute(run, entry))
        if timeout:
            self._deadlines.add(run, run.started + timeout, len(self.running))

    async def _execute(self, run: Run, entry: Entry) -> None:
        try:
            result = await self._executor.run(entry, run.grant, run.context)
        except asyncio.CancelledError:
            self._end(run, self._outcome_of_stop(run))
        except BaseException as error:  # SystemExit and its like too: they end the attempt, not the node
            if self._loop.is_closed():
                raise
            seconds = time.monotonic() - run.started
            self._end(run, outcomes.of_error(error, run.grant, self._config.retry, seconds))
        else:
            self._end(run, self._success(run, result))

    def _success(self, run: Run, result: bytes | None) -> Outcome:
        seconds, limit = time.monotonic() - run.started, self._config.payload_limit
        if result is not None and len(result) > limit:
            text = f"the result has {len(result):,} bytes, payload_limit is {limit:,}: return a reference to it instead"
            return Aborted(run.grant.lease, text, seconds)
        return Succeeded(run.grant.lease, result, 0, "", seconds)

    def _end(self, run: Run, outcome: Outcome | None) -> None:
        if run.ended:  # it was given up before; its outcome is known
            self.abandoned.discard(run)
            return
        run.ended = True
        if run.timer is not None:
            run.timer.cancel()
        if run.reason is not None and self._executor.leaked:  # a thread that obeys is gone by then
            self._loop.call_later(CANCEL_GRACE, self.check_leaks)
        task_id = run.grant.spec.id
        if self.running.get(task_id) is run:
            del self.running[task_id]
        if outcome is not None:
            self._outcomes.append(outcome)
            if self._bus.wants(fact := fact_of(outcome)):
                self._tell(fact, run.grant, outcome)
        self._wake()

    def _stop_run(self, run: Run, reason: Reason, grace: float = CANCEL_GRACE) -> None:
        """Tell a handler to end. If it does not, its slot is freed all the same and it counts as leaked."""
        if run.ended or run.reason == "lost" or (run.reason is not None and reason not in ("lost", "fenced")):
            return
        run.reason = reason
        if run.context is not None:
            run.context._stopped = True
        assert run.task is not None
        run.task.cancel()
        if run.timer is not None:
            run.timer.cancel()
        run.timer = self._loop.call_later(grace, self._abandon, run)

    def _abandon(self, run: Run) -> None:
        if run.ended:
            return
        self.abandoned.add(run)
        _log.warning(
            "task %s (%s) ignores that it was told to stop (%s); it goes on without a slot, %d leaked",
            run.grant.spec.id, run.grant.spec.type, run.reason, self.leaked,
        )  # fmt: skip
        # One that goes on is not given back: it would run twice.
        self._end(run, None if run.reason == "fenced" else self._outcome_of_stop(run))
        self.check_leaks()

    @property
    def _stuck(self) -> bool:
        return self.leaked >= self._config.concurrency

    def check_leaks(self) -> None:
        if self._stuck:
            _log.error("%d handlers are stuck, as many as there are slots: draining this node", self.leaked)
            self._on_exhausted()
        elif self.leaked:
            _log.warning("%d handlers do not stop though they were told to; they go on without a slot", self.leaked)

    def _outcome_of_stop(self, run: Run) -> Outcome | None:
        seconds = time.monotonic() - run.started
        grant = run.grant
        match run.reason:
            case "timeout":
                text = f"timed out after {grant.spec.timeout:g} s"
                return outcomes.failed(grant, text, self._config.retry, seconds)
            case "cancel":
                return Stopped(grant.lease, seconds)
            case "release":
                return Released(grant.lease)
            case "fenced" if run.stoppable:  # without blame, and refused if another has it by then
                return Released(grant.lease)
            case "lost" | "fenced":
                return None
            case None:
                return outcomes.failed(grant, "the handler was cancelled from inside", self._config.retry, seconds)

    # --- what the heart has to say

    def renewed(self, leases: list[Lease], answers: list[Literal["held", "cancel", "lost"]]) -> None:
        for lease, answer in zip(leases, answers, strict=True):
            run = self.running.get(lease.id)
            if answer == "held" or run is None or run.grant.lease != lease:
                continue
            if answer == "lost":
                _log.warning("task %s is not ours any more: its handler is told to stop", lease.id)
            self._stop_run(run, "cancel" if answer == "cancel" else "lost")
        self.check_leaks()

    def fence_off(self) -> None:
        """The leases could not be renewed in time: others may run these tasks now, so nobody here may go on."""
        for run in list(self.running.values()):
            self._stop_run(run, "fenced")

    # --- facts

    def _tell(self, fact: Fact, grant: Grant, outcome: Outcome | None = None) -> None:
        spec = grant.spec
        duration = getattr(outcome, "duration", 0.0)
        detail = getattr(outcome, "error", "")
        at = self._store.now()
        self._bus.publish(Event(0, at, fact, spec.id, spec.type, spec.queue, self.id, grant.attempt, duration, detail))


def fact_of(outcome: Outcome) -> Fact:
    return _FACTS[type(outcome)]


_FACTS: dict[type, Fact] = {
    Succeeded: Fact.TASK_SUCCEEDED,
    Failed: Fact.TASK_RETRYING,
    Aborted: Fact.TASK_DIED,
    Snoozed: Fact.TASK_SNOOZED,
    Released: Fact.TASK_RELEASED,
    Stopped: Fact.TASK_CANCELLED,
}
