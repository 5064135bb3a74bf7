"""Tasks at the gates: a worker asks for those that it was granted, and tells when they run no more."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine, Iterable

from tickwork.errors import StoreError, StoreUnavailable
from tickwork.model.outcomes import Aborted, Failed, Held, Outcome, Released, Stopped, Succeeded
from tickwork.model.tasks import ParkReason, Status
from tickwork.model.transitions import EXPIRED
from tickwork.observe.loggers import Log
from tickwork.store.contract import Ask, Gate, Grant, Left, Refusal, RunVerdict, Store, Verdict
from tickwork.worker.gatekeeper import Gatekeeper

AGAIN = 0.2  # seconds until the gates are asked again that could not be reached
HOLD, HOLD_EACH, HOLD_MAX = 30_000, 20, 3_600_000  # milliseconds for which one is held that will be woken
LAST_CALLS = 2.0  # seconds that the end of a worker waits for a store that may not answer
WAKE_TRIES = 6  # to wake a task that is about to be given back
LEAVE_OUT = 1000  # milliseconds of waiting from which on a worker asks for no more of that kind for a while
LEAVE_OUT_MAX = 2000  # the longest such while: among those left out may be some whose deadline is over

Start = Callable[[list[Grant]], None]
Give = Callable[[Outcome], None]


class Admission:
    """`start` is called with those that may run, `give` with the outcomes of those that may not, `follow` when tasks
    may be claimed again that were left out."""

    def __init__(
        self, keeper: Gatekeeper, store: Store, start: Start, give: Give, follow: Callable[[], None], log: Log
    ) -> None:
        self._keeper = keeper
        self._store = store
        self._start = start
        self._give = give
        self._follow = follow
        self._log = log
        self.asking: dict[str, Grant] = {}
        self._passed: dict[str, tuple[str, ...]] = {}
        self._left_out: dict[str, float] = {}  # `type:mail` or `queue:orders`, until when
        self._busy: set[asyncio.Task[None]] = set()

    @property
    def watches(self) -> bool:
        return self._keeper.watches

    @property
    def has_passed(self) -> bool:
        return bool(self._passed)

    # --- in

    def ask(self, grants: list[Grant]) -> list[Grant]:
        """Those that need not ask. The others hold their slots until they are answered."""
        free: list[Grant] = []
        asked: list[tuple[Grant, tuple[Gate, ...]]] = []
        for grant in grants:
            gates = self._keeper.gates_of(grant.spec)
            if gates:
                self.asking[grant.spec.id] = grant
                asked.append((grant, gates))
            else:
                free.append(grant)
        if asked:
            self._run(self._enter(asked))
        return free

    def _run(self, work: Coroutine[None, None, None]) -> None:
        task = asyncio.get_running_loop().create_task(self._attempt(work))
        self._busy.add(task)
        task.add_done_callback(self._busy.discard)

    async def _attempt(self, work: Coroutine[None, None, None]) -> None:
        """What is not told is made up for: those inside are let out when their leases would have ended, and those who
        wait ask again by themselves."""
        try:
            await work
        except StoreError as error:
            self._log.debug("gates could not be told of tasks: %s", error)

    async def _enter(self, asked: list[tuple[Grant, tuple[Gate, ...]]]) -> None:
        asks = [Ask(grant.spec.id, gates, _order(grant)) for grant, gates in asked]
        while True:
            try:
                answers = await self._store.gates.enter(asks)
                break
            except StoreUnavailable:
                await asyncio.sleep(AGAIN)
                if not any(self.asking.get(grant.spec.id) is grant for grant, _ in asked):
                    return  # they were given back meanwhile
            except StoreError as error:
                self._log.error("the limits of %d tasks could not be asked, they are given back: %s", len(asks), error)
                for grant, _ in asked:
                    self._answered(grant, Released(grant.lease))
                return
        passed: list[Grant] = []
        for (grant, gates), refusal in zip(asked, answers, strict=True):
            if self.asking.get(grant.spec.id) is not grant:  # it was given back meanwhile
                self._leave([Left(grant.spec.id, tuple(gate.name for gate in gates), "none")])
            elif self._is_late(grant):
                self._answered(grant, Stopped(grant.lease, message=EXPIRED))
                if refusal is None:
                    self._leave([Left(grant.spec.id, tuple(gate.name for gate in gates), "none")])
            elif refusal is not None:
                self._answered(grant, self._held(grant, refusal))
            else:
                del self.asking[grant.spec.id]
                self._passed[grant.spec.id] = tuple(gate.name for gate in gates)
                passed.append(grant)
        if passed:
            self._start(passed)

    def _answered(self, grant: Grant, outcome: Outcome) -> None:
        if self.asking.get(grant.spec.id) is grant:
            del self.asking[grant.spec.id]
            self._give(outcome)

    def _is_late(self, grant: Grant) -> bool:
        """Whether it should have started by now. Stores know this only of tasks that were never claimed."""
        if grant.attempt > 1 or grant.losses:
            return False
        deadline = grant.spec.deadline(grant.due_at)
        return deadline is not None and deadline <= self._store.now()

    def _held(self, grant: Grant, refusal: Refusal) -> Held:
        wait = min(HOLD + HOLD_EACH * refusal.waiting, HOLD_MAX)  # it will be woken; this is for when that fails
        if refusal.wait is not None:  # of a rate it is told its time, which may have changed until then
            wait = min(refusal.wait, wait) if refusal.reason == "rate" else wait + refusal.wait
        if (deadline := grant.spec.deadline(grant.due_at)) is not None and grant.attempt == 1 and not grant.losses:
            wait = min(wait, max(deadline - self._store.now(), 0))
        self._leave_out(refusal)
        return Held(grant.lease, refusal.gate, _why(refusal), wait)

    # --- kinds of tasks that are left out of claims while they would not be let through

    def may_claim(self, of: str) -> bool:
        until = self._left_out.get(of)
        return until is None or until <= time.monotonic()

    @property
    def leaves_out(self) -> bool:
        return bool(self._left_out)

    def _leave_out(self, refusal: Refusal) -> None:
        of = refusal.gate.partition(":")[2]
        if "/" in of or not of.startswith(("type:", "queue:")):
            return
        wait = refusal.wait if refusal.wait is not None else LEAVE_OUT
        if refusal.reason == "rate" and refusal.wait is not None:
            wait = 0 if wait < LEAVE_OUT else wait // 2
        elif refusal.reason == "full" and refusal.waiting < 10:
            wait = 0
        if wait := min(wait, LEAVE_OUT_MAX):
            until = time.monotonic() + wait / 1000
            if until > self._left_out.get(of, 0.0):
                self._left_out[of] = until
                asyncio.get_running_loop().call_later(wait / 1000 + 0.001, self._take_in)

    def _take_in(self, names: Iterable[str] = ()) -> None:
        now = time.monotonic()
        kept = {of: until for of, until in self._left_out.items() if until > now and of not in names}
        if kept != self._left_out:
            self._left_out = kept
            self._follow()

    # --- out

    def ended(self, batch: list[Outcome], verdicts: list[Verdict]) -> None:
        left = [
            Left(outcome.lease.id, gates, _verdict(outcome))
            for outcome, verdict in zip(batch, verdicts, strict=True)
            if verdict.kind != "lost" and (gates := self._passed.pop(outcome.lease.id, None)) is not None
        ]
        if left:
            self._leave(left)

    def ended_elsewhere(self, task_id: str) -> None:
        """How it has ended is known to the store alone."""
        if (gates := self._passed.pop(task_id, None)) is not None:
            self._run(self._leave_after(task_id, gates))

    async def _leave_after(self, task_id: str, gates: tuple[str, ...]) -> None:
        record = await self._store.queries.get(task_id)
        status = None if record is None else record.status
        failed = status in (Status.RETRYING, Status.DEAD, Status.FAILED)
        verdict: RunVerdict = "ok" if status is Status.SUCCESS else "failed" if failed else "none"
        await self._tell([Left(task_id, gates, verdict)])

    def _leave(self, left: list[Left]) -> None:
        self._run(self._tell(left))

    async def _tell(self, left: list[Left]) -> None:
        woken = await self._store.gates.leave(left)
        if len(woken) < len(left) and self._left_out:  # nobody waits any more
            self._take_in({gate.partition(":")[2] for each in left for gate in each.gates})
        await wake(self._store, woken)

    def forget(self, task_id: str) -> None:
        """It runs no more here, and somebody else may run it."""
        self._passed.pop(task_id, None)

    def inside(self) -> list[tuple[str, tuple[str, ...]]]:
        """Those that run, for the heart, which renews them. Called from its thread."""
        return list(self._passed.items())

    def give_back(self) -> None:
        """The worker stops: those that still ask are released."""
        for grant in list(self.asking.values()):
            self._answered(grant, Released(grant.lease))

    async def finish(self) -> None:
        """Wait a moment for what is under way; called when all outcomes are handed in."""
        if self._busy:
            await asyncio.wait(self._busy, timeout=LAST_CALLS)
        for task in self._busy:
            task.cancel()


async def wake(store: Store, ids: list[str]) -> None:
    """Make tasks ready that were held. One that was refused a moment ago is not given back yet: it still runs."""
    for attempt in range(WAKE_TRIES):
        if not ids:
            return
        if attempt:
            await asyncio.sleep(0.02 * 2**attempt)
        found = await store.operators.run_now(ids, Status.PENDING)
        ids = [task_id for task_id, status in zip(ids, found, strict=True) if status is Status.RUNNING]


def _order(grant: Grant) -> int:
    """By band, then those with fewer failed attempts, so that not the same one is tried again and again while a breaker
    is open; then the oldest. It fits into a float without loss."""
    return (grant.spec.band << 50) + (min(grant.attempt - 1, 255) << 42) + grant.submitted_at


def _why(refusal: Refusal) -> ParkReason:
    if refusal.reason in ("full", "rate"):
        return ParkReason.LIMITED
    return ParkReason.SWITCHED_OFF if refusal.gate.startswith("switch:") else ParkReason.BREAKER_OPEN


def _verdict(outcome: Outcome) -> RunVerdict:
    if isinstance(outcome, Succeeded):
        return "ok"
    return "failed" if isinstance(outcome, Failed | Aborted) else "none"
