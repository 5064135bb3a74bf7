"""Tasks at the gates: a worker asks for those that it was granted, and tells when they run no more."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine, Iterable

from tickwork.errors import StoreError, StoreUnavailable
from tickwork.model.outcomes import Aborted, Failed, Held, Outcome, Released, Stopped, Succeeded
from tickwork.model.tasks import Lease, ParkReason, Status
from tickwork.model.transitions import EXPIRED
from tickwork.observe.loggers import Log
from tickwork.store.contract import Ask, Gate, Grant, Left, Refusal, RunVerdict, Store, Woken
from tickwork.timeouts import TimeLimit
from tickwork.worker.gatekeeper import Gatekeeper

AGAIN = 0.2  # seconds until the gates are asked again that could not be reached
HOLD, HOLD_EACH, HOLD_MAX = 30_000, 20, 3_600_000  # milliseconds for which one is held that will be woken
LAST_CALLS = 2.0  # seconds that the end of a worker waits for a store that may not answer
WAKE_TRIES = 6  # to wake a task that is about to be given back
WAKE_ROUNDS = 100  # of tasks that are gone, each of which has left its room to others
ENOUGH = 1000  # milliseconds for which tasks wait at a rate from which on a worker brings no more of them for a while
ENOUGH_WAIT = 10  # tasks that wait at a limit of runs at a time, likewise
WHILE_MAX = 2000  # the longest such while: among those that are not brought may be some whose deadline is over

Start = Callable[[list[Grant]], None]
Give = Callable[[Outcome], None]


class Admission:
    """`start` is called with those that may run, `give` with the outcomes of those that may not, `follow` when more
    tasks may be claimed again of what was crowded."""

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
        self._passed: dict[str, tuple[Lease, tuple[str, ...]]] = {}
        self.leaving: dict[str, Outcome] = {}  # of runs that are over, while the gates are told
        self._told: list[tuple[Outcome, tuple[str, ...]]] = []  # those of which they are to be told next
        # Types and queues (`type:mail`) at whose limit enough tasks wait, until when. Of these a worker claims only
        # tasks that have waited there and may go on, so that it does not claim and give back the whole backlog.
        self._crowded: dict[str, float] = {}
        self.crowded: frozenset[str] = frozenset()  # their names: the same object while nothing changes
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
            elif self.is_late(grant):
                self._answered(grant, Stopped(grant.lease, message=EXPIRED))
                if refusal is None:
                    self._leave([Left(grant.spec.id, tuple(gate.name for gate in gates), "none")])
            elif refusal is not None:
                self._answered(grant, self._held(grant, refusal))
            else:
                del self.asking[grant.spec.id]
                self._passed[grant.spec.id] = grant.lease, tuple(gate.name for gate in gates)
                passed.append(grant)
        if passed:
            self._start(passed)

    def _answered(self, grant: Grant, outcome: Outcome) -> None:
        if self.asking.get(grant.spec.id) is grant:
            del self.asking[grant.spec.id]
            self._give(outcome)

    def is_late(self, grant: Grant) -> bool:
        """Whether it should have started by now. Stores know this only of tasks that were never claimed."""
        deadline = _deadline(grant)
        return deadline is not None and deadline <= self._store.now()

    def _held(self, grant: Grant, refusal: Refusal) -> Held:
        wait = HOLD + HOLD_EACH * refusal.waiting  # it will be woken; this is for when that fails
        if refusal.wait is not None:  # of a rate it is told its time
            wait = refusal.wait if refusal.reason == "rate" else wait + refusal.wait
        wait = min(wait, HOLD_MAX)
        if (deadline := _deadline(grant)) is not None:
            wait = min(wait, max(deadline - self._store.now(), 0))
        self._note_crowd(refusal)
        return Held(grant.lease, refusal.gate, _why(refusal), wait)

    # --- types and queues at whose limits enough tasks wait

    def _note_crowd(self, refusal: Refusal) -> None:
        of = refusal.gate.partition(":")[2]
        if "/" in of or not of.startswith(("type:", "queue:")):
            return
        wait = ENOUGH if refusal.wait is None else refusal.wait
        if refusal.reason == "rate" and refusal.wait is not None:
            wait = 0 if wait < ENOUGH else wait // 2
        elif refusal.reason == "full" and refusal.waiting < ENOUGH_WAIT:
            wait = 0
        if wait := min(wait, WHILE_MAX):
            until = time.monotonic() + wait / 1000
            if until > self._crowded.get(of, 0.0):
                self._crowded[of] = until
                self.crowded = self.crowded if of in self.crowded else self.crowded | {of}
                asyncio.get_running_loop().call_later(wait / 1000 + 0.001, self._bring_more)

    def _bring_more(self, names: Iterable[str] = ()) -> None:
        now = time.monotonic()
        kept = {of: until for of, until in self._crowded.items() if until > now and of not in names}
        if kept != self._crowded:
            self._crowded, self.crowded = kept, frozenset(kept)
            self._follow()

    # --- out

    def hand_in(self, outcome: Outcome) -> None:
        """A run is over. The gates are told before the store: the task may not start again, and be inside again, while
        its end is still on its way to them."""
        passed = self._passed.pop(outcome.lease.id, None)
        if passed is None:
            self._give(outcome)
            return
        self.leaving[outcome.lease.id] = outcome
        self._told.append((outcome, passed[1]))
        if len(self._told) == 1:
            self._run(self._leave_together())

    async def _leave_together(self) -> None:
        """Those that end in the same moment leave by one call."""
        await asyncio.sleep(0)
        ended, self._told = self._told, []
        woken: list[Woken] = []
        left = [Left(outcome.lease.id, gates, _verdict(outcome)) for outcome, gates in ended]
        try:
            with TimeLimit(LAST_CALLS, makes_up=True):
                woken = await self._store.gates.leave(left)
        except (TimeoutError, StoreError) as error:
            self._log.debug("gates could not be told of ends: %s", error or "no answer")
        for outcome, _ in ended:
            self.leaving.pop(outcome.lease.id, None)
            self._give(outcome)
        await self._after(left, woken)

    def ended_elsewhere(self, task_id: str) -> None:
        """How it has ended is known to the store alone."""
        if (passed := self._passed.pop(task_id, None)) is not None:
            self._run(self._leave_after(task_id, passed[1]))

    async def _leave_after(self, task_id: str, gates: tuple[str, ...]) -> None:
        record = await self._store.queries.get(task_id)
        status = None if record is None else record.status
        failed = status in (Status.RETRYING, Status.DEAD, Status.FAILED)
        verdict: RunVerdict = "ok" if status is Status.SUCCESS else "failed" if failed else "none"
        await self._tell([Left(task_id, gates, verdict)])

    def _leave(self, left: list[Left]) -> None:
        self._run(self._tell(left))

    async def _tell(self, left: list[Left]) -> None:
        await self._after(left, await self._store.gates.leave(left))

    async def _after(self, left: list[Left], woken: list[Woken]) -> None:
        if len(woken) < len(left) and self._crowded:  # nobody waits any more
            self._bring_more({gate.partition(":")[2] for each in left for gate in each.gates})
        await wake(self._store, woken)

    def forget(self, lease: Lease) -> None:
        """It runs no more here, and somebody else may run it."""
        if (passed := self._passed.get(lease.id)) is not None and passed[0] == lease:
            del self._passed[lease.id]

    def inside(self) -> list[tuple[str, tuple[str, ...]]]:
        """Those that run, for the heart, which renews them. Called from its thread."""
        return [(task_id, gates) for task_id, (_, gates) in list(self._passed.items())]

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


async def wake(store: Store, woken: list[Woken]) -> None:
    """Make tasks ready that were held. The room of those that are gone is for others."""
    for _ in range(WAKE_ROUNDS):
        gone = await _make_ready(store, woken) if woken else []
        if not gone:
            return
        woken = await store.gates.leave([Left(each.id, (each.gate,), "none") for each in gone])


async def _make_ready(store: Store, woken: list[Woken]) -> list[Woken]:
    """Answers those that have ended, or are there no more. One that was refused a moment ago still runs: it is about to
    be given back."""
    gone: list[Woken] = []
    for attempt in range(WAKE_TRIES):
        if attempt:
            await asyncio.sleep(0.02 * 2**attempt)
        found = await store.operators.run_now([each.id for each in woken], held=True)
        pairs = list(zip(woken, found, strict=True))
        gone += [each for each, status in pairs if status is None or status.ended]
        woken = [each for each, status in pairs if status is Status.RUNNING]
        if not woken:
            break
    return gone


def _deadline(grant: Grant) -> int | None:
    """By when its first run is to start. Where it is known when it has become ready, that counts: it may have been
    moved to another time than it was submitted for."""
    if grant.attempt > 1 or grant.losses:
        return None
    return grant.spec.deadline(grant.due_at if grant.ready_at is None else grant.ready_at)


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
