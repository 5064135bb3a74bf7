"""One worker: slots in which handlers run. The exchange fills the slots with claimed tasks and hands in their
outcomes."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import Callable

from msgspec.structs import replace

from tickwork.client.specs import completed
from tickwork.config import Config
from tickwork.errors import Abort, StoreError
from tickwork.executors.base import EndedElsewhere, Executor
from tickwork.executors.calling import UnfitPayload, encode_task_result
from tickwork.executors.registry import Executors
from tickwork.handlers.context import TaskContext
from tickwork.handlers.executor_names import LOCAL
from tickwork.handlers.registry import Entry, Registry
from tickwork.handlers.retrying import Decision
from tickwork.model.info import TaskResult
from tickwork.model.members import Order, Orders
from tickwork.model.outcomes import Aborted, Outcome, Released, Stopped, Succeeded
from tickwork.model.tasks import Lease
from tickwork.model.transitions import EXPIRED
from tickwork.observe.bus import Bus
from tickwork.observe.loggers import Log
from tickwork.store.contract import Extended, Grant, Store
from tickwork.worker import outcomes
from tickwork.worker.admission import Admission
from tickwork.worker.deadlines import Deadlines
from tickwork.worker.exchange import STOP_STEP, Exchange
from tickwork.worker.gatekeeper import Gatekeeper
from tickwork.worker.last_runs import LastRuns
from tickwork.worker.middleware import RunChain
from tickwork.worker.misfits import Misfits
from tickwork.worker.notes import Notes
from tickwork.worker.run import Reason, Run
from tickwork.worker.run_facts import RunFacts
from tickwork.worker.sources import Sources, sources_of

CANCEL_GRACE = 2.0  # seconds for a handler that was asked to stop; then its slot is free and it counts as leaked
RELEASE_GRACE = 0.5  # the same at a shutdown, which should be quick


class Worker:
    only_executor = ""  # where one runs all tasks of this kind of worker, whatever they say

    def __init__(
        self,
        worker_id: str,
        node: str,
        store: Store,
        registry: Registry,
        executors: Executors,
        config: Config,
        bus: Bus,
        on_exhausted: Callable[[], None] = lambda: None,
        is_led: Callable[[], bool] = lambda: True,
    ) -> None:
        self._is_led = is_led
        self.id = worker_id
        self.node = node
        self.capacity = config.concurrency
        self.queues = tuple(config.queues)
        self.running: dict[str, Run] = {}
        self.abandoned: set[Run] = set()
        self._store = store
        self._registry = registry
        self.config = self._config = config
        self._log = Log.of(config.logger, "worker")
        self._facts = RunFacts(bus, store, worker_id, self._log)
        self._on_exhausted = on_exhausted
        self._local, self._executors = executors.of_worker(worker_id, config)
        self._types: frozenset[str] | None = None
        self._deadlines = Deadlines(lambda run: self._stop_run(run, "timeout"))
        self._notes = Notes(store, lambda run: self._stop_run(run, "lost"), self._log)
        self._exchange = Exchange(self, store, config, self._notes, self._facts.ended)
        self._gatekeeper = Gatekeeper(store, registry, config, self._log)
        self._admission = Admission(
            self._gatekeeper, store, self._begin, self._exchange.add, self._exchange.follow, self._log
        )
        self._wanted: frozenset[str] = frozenset()
        self._chain = RunChain.of(registry, worker_id)
        self._misfits = Misfits(config.version_grace, store.now, self._log)
        self._orders = Orders()  # those of the store that it follows
        self._stopping = False
        self._closed = False  # takes no tasks, as it is stopping or draining
        self._loop: asyncio.AbstractEventLoop
        registry.on_change(self._forget_types)

    # --- life

    async def run(self) -> None:
        """Work until `stop` was called and all outcomes are handed in."""
        self._loop = asyncio.get_running_loop()
        self._notes.begin(self._loop)
        with contextlib.suppress(StoreError):
            await self._gatekeeper.read()
        following = asyncio.ensure_future(self._gatekeeper.run())
        try:
            await self._exchange.run()
            await self._admission.finish()
        finally:
            following.cancel()

    async def stop(self, grace: float) -> None:
        """Claim no more, wait for running handlers up to `grace`, then release the rest without charging an attempt."""
        self._stopping = self._closed = True
        self._admission.give_back()
        self._exchange.wake()
        deadline = time.monotonic() + grace
        last = LastRuns(self.id, self._log)
        while self.running and (left := deadline - time.monotonic()) > 0:
            last.tell(self.running.values(), deadline)
            # In short steps: a run that was abandoned meanwhile leaves `running`, though its coroutine may never end.
            await asyncio.wait([run.task for run in self.running.values() if run.task], timeout=min(left, STOP_STEP))
            await asyncio.sleep(0)
        last.give_back(self.running.values())
        self.release_all()

    def release_all(self) -> None:
        self._stopping = self._closed = True  # or it would claim the released tasks again
        self._admission.give_back()
        for run in list(self.running.values()):
            self._stop_run(run, "release", grace=RELEASE_GRACE)

    async def close(self) -> None:
        self._notes.close()
        self._deadlines.close()
        for run in self.running.values():
            if run.timer is not None:
                run.timer.cancel()
        self.leave_registry()
        await self._local.stop(0.0)

    def leave_registry(self) -> None:
        self._registry.off_change(self._forget_types)
        self._gatekeeper.close()

    async def warm(self) -> None:
        entries = [entry for kind in self.types if (entry := self._registry.find(kind)) is not None]
        await self._local.warm(entries)

    @property
    def types(self) -> frozenset[str]:
        if self._types is None:
            known = self._registry.types_for(self._executors)
            wanted = self._config.task_types
            self._types = known if wanted is None else known & frozenset(wanted)
        return self._types

    @property
    def wanted(self) -> frozenset[str]:
        """The types that it asks for: not those that are stopped. The same object while nothing changes."""
        keeper = self._gatekeeper
        if not keeper.stops:
            return self.types
        stopped = {kind for kind in self.types if keeper.stopped(kind)}
        wanted = self.types - stopped if stopped else self.types
        if wanted != self._wanted:
            self._wanted = wanted
        return self._wanted

    @property
    def crowded(self) -> frozenset[str]:
        """See `Claim.front_only`."""
        return self._admission.crowded

    @property
    def sources(self) -> Sources:
        return sources_of(self.id, self.queues, self._config, self._is_led)

    def look_again(self) -> None:
        """Claim now: it may get tasks from elsewhere than before."""
        self._exchange.follow()

    def _forget_types(self) -> None:
        self._types = None
        self._exchange.wake()

    @property
    def leaked(self) -> int:
        return len(self.abandoned) + self._local.leaked

    @property
    def takes(self) -> bool:
        """Whether it may be given tasks."""
        return not (self._closed or self.stuck)

    @property
    def stuck(self) -> bool:
        return self.leaked >= self.capacity

    @property
    def free(self) -> int:
        slots = self.capacity
        if self._closed or self.leaked >= slots:
            return 0
        return slots - len(self.running) - len(self._admission.asking)

    @property
    def done(self) -> bool:
        return self._stopping and not (self.running or self._admission.asking or self._admission.leaving)

    @property
    def has_outcomes(self) -> bool:
        return bool(self._exchange.pending())

    def leases(self) -> list[Lease]:
        """The leases that the heart has to renew. Called from its thread."""
        ended = [outcome.lease for outcome in self._exchange.pending()]
        ended += [outcome.lease for outcome in list(self._admission.leaving.values())]
        asking = [grant.lease for grant in list(self._admission.asking.values())]
        return [run.grant.lease for run in list(self.running.values())] + asking + ended

    def inside(self) -> list[tuple[str, tuple[str, ...]]]:
        """The tasks that were let through gates, which the heart has to renew too. Called from its thread."""
        return self._admission.inside()

    # --- runs

    def start(self, grants: list[Grant]) -> None:
        room = self.capacity - len(self.running) - len(self._admission.asking) if self.takes else 0
        if len(grants) > room:  # it was stopped, drained, made smaller or stuck while this claim was under way
            for grant in grants[max(room, 0) :]:
                self._exchange.add(Released(grant.lease))
            grants = grants[: max(room, 0)]
        if self._admission.watches:
            grants = self._admission.ask(grants)
        self._begin(grants)

    def _begin(self, grants: list[Grant]) -> None:
        given_back = set()
        for grant in grants:
            try:
                if not self._start(grant):
                    given_back.add(grant.lease.id)
            except Exception as error:  # an error in one task must not end the worker
                self._cannot_start(grant, error)
        self._facts.started([grant for grant in grants if grant.lease.id not in given_back] if given_back else grants)

    def _start(self, grant: Grant) -> bool:
        """Whether its run has begun. If not, it is given back."""
        if grant.ready_at is None and self._admission.is_late(grant):  # it was held until then
            self._hand_in(Stopped(grant.lease, message=EXPIRED))
            return False
        entry = self._registry.find(grant.spec.type)
        spec = completed(grant.spec, entry, self._config)
        name = (
            self.only_executor
            or spec.executor
            or (self._registry.executor_of(spec.type) if entry is None else entry.executor)
        )
        executor = self._executors.get(name)
        is_local = executor is self._local
        if executor is None or (is_local and entry is None):
            self._hand_in(self._give_back(grant, name))
            return False
        stoppable = entry is None or not is_local or entry.run_in != "thread"
        run = Run(grant if spec is grant.spec else replace(grant, spec=spec), stoppable)
        timeout = spec.timeout or 0.0
        if entry is None or not is_local or entry.needs_context or self._chain is not None:
            run.context = self._context(run, timeout)
        if (first := self.running.get(spec.id)) is not None:  # it was taken back from here, unnoticed until now
            self._stop_run(first, "lost")
        self.running[spec.id] = run
        run.task = self._loop.create_task(self._execute(run, executor, entry))
        if timeout:
            self._deadlines.add(run, run.started + timeout, len(self.running))
        return True

    def _context(self, run: Run, timeout: float) -> TaskContext:
        grant, spec = run.grant, run.grant.spec
        return TaskContext(
            task_id=spec.id,
            type=spec.type,
            attempt=grant.attempt,
            fence=grant.lease.fence,
            nonce=grant.lease.nonce,
            timeout=timeout,
            tags=spec.tags,
            context=spec.context,
            queue=spec.queue,
            max_retry=spec.max_retry or 0,
            due_at=grant.due_at,
            depends_on=spec.depends_on,
            wake=lambda: self._notes.later(run),
            state=self._registry.lifespan.state,
        )

    def _give_back(self, grant: Grant, executor: str) -> Outcome:
        """The outcome of a task that cannot be run here."""
        if grant.spec.type not in self.types:  # unregistered since the claim
            return Released(grant.lease)
        missing = "handler for its type" if executor == LOCAL else f"executor {executor!r}"
        return self._misfits.wait(grant, f"worker {self.id} has no {missing}; it waits for a worker that has")

    def _cannot_start(self, grant: Grant, error: Exception) -> None:
        self._log.error("task %s (%s) could not be started", grant.spec.id, grant.spec.type, exc_info=error)
        outcome = outcomes.never_started(error, grant)
        self._facts.ending(grant, outcome, error)
        self._hand_in(outcome)

    async def _execute(self, run: Run, executor: Executor, entry: Entry | None) -> None:
        try:
            if self._chain is None:
                # Only the local executor is given no context, for a handler that takes none.
                result = await executor.run(run.grant, entry, run.context)  # type: ignore[arg-type]
            else:
                result = await self._chain.run(executor, entry, run)
            outcome = self._success(run, result)
        except asyncio.CancelledError:
            self._end(run, self._outcome_of_stop(run))
        except EndedElsewhere:
            self._admission.ended_elsewhere(run.grant.spec.id)
            self._end(run, None)
        except BaseException as error:  # also SystemExit and KeyboardInterrupt: they end the attempt, not the node
            if self._loop.is_closed():
                raise
            self._end(run, self._outcome_of_error(run, error), error)
        else:
            self._end(run, outcome)

    def _outcome_of_error(self, run: Run, error: BaseException) -> Outcome:
        seconds = time.monotonic() - run.started
        if isinstance(error, UnfitPayload):
            return self._misfits.outcome(run.grant, error, seconds)
        return outcomes.of_error(error, run.grant, self._config.retry, seconds, self._decide(run.grant, error))

    def _decide(self, grant: Grant, error: BaseException) -> Decision:
        """What the handler has declared about such an error: whether it is worth a retry, and when that comes."""
        entry = self._registry.find(grant.spec.type)
        if entry is None or entry.retry_rules is None:
            return outcomes.UNDECIDED
        decision = outcomes.decide(entry.retry_rules, error, grant)
        if decision.trouble:
            self._log.line(
                logging.ERROR, "Retry rules of the handler failed, the default strategy is used", task_id=grant.spec.id,
                type=grant.spec.type, error=decision.trouble,
            )  # fmt: skip
        return decision

    def _success(self, run: Run, result: TaskResult | bytes | None) -> Outcome:
        seconds, limit = time.monotonic() - run.started, self._config.payload_limit
        code, message = 0, ""
        if result is not None and type(result) is not bytes:
            if not isinstance(result, TaskResult):
                kind = type(result).__name__
                raise Abort(f"an executor must return a TaskResult, JSON as bytes, or None; it returned {kind}")
            encoded = encode_task_result(result)
            result = None if encoded.data is None else bytes(encoded.data)
            code, message = encoded.code, encoded.message
        if result is not None and len(result) > limit:
            text = f"the result has {len(result):,} bytes, payload_limit is {limit:,}: return a reference to it instead"
            return Aborted(run.grant.lease, text, seconds)
        return Succeeded(run.grant.lease, result, code, message, seconds)

    def _end(self, run: Run, outcome: Outcome | None, error: BaseException | None = None) -> None:
        if run.ended:  # it was abandoned before, and its outcome is handed in already
            self.abandoned.discard(run)
            return
        run.ended = True
        if run.timer is not None:
            run.timer.cancel()
        if run.reason is not None and self._local.leaked:  # a thread that stops when asked has ended by then
            self._loop.call_later(CANCEL_GRACE, self.check_leaks)
        task_id = run.grant.spec.id
        if self.running.get(task_id) is run:
            del self.running[task_id]
        if outcome is None:
            self._admission.forget(run.grant.lease)
            self._exchange.wake()  # its slot is free
        else:
            self._facts.ending(run.grant, outcome, error)
            self._hand_in(outcome)

    def _hand_in(self, outcome: Outcome) -> None:
        """Of a task that was let through its gates, if it has any."""
        if self._admission.has_passed:
            self._admission.hand_in(outcome)
        else:
            self._exchange.add(outcome)

    def _stop_run(self, run: Run, reason: Reason, grace: float = CANCEL_GRACE) -> None:
        """Ask a handler to stop. If it has not after `grace`, its slot is freed all the same and it counts as
        leaked."""
        if run.ended or run.reason == "lost" or (run.reason is not None and reason not in ("lost", "fenced")):
            return
        run.reason = reason
        if run.context is not None:
            run.context._stopped_by = reason
        assert run.task is not None
        run.task.cancel()
        if run.timer is not None:
            run.timer.cancel()
        run.timer = self._loop.call_later(grace, self._abandon, run)

    def _abandon(self, run: Run) -> None:
        if run.ended:
            return
        self.abandoned.add(run)
        self._log.warning(
            "task %s (%s) did not stop when it was asked to (%s); it goes on without a slot, %d leaked",
            run.grant.spec.id, run.grant.spec.type, run.reason, self.leaked,
        )  # fmt: skip
        # A handler that goes on is not released, or the task would run twice at a time.
        self._end(run, None if run.reason == "fenced" else self._outcome_of_stop(run))
        self.check_leaks()

    def check_leaks(self) -> None:
        """Log leaked handlers, and drain the node if there are as many as slots. Called only when the grace of a
        handler is over, as it may clean up until then."""
        count = self.leaked
        if self.stuck:
            stuck = "1 handler is" if count == 1 else f"{count} handlers are"
            self._log.error("%s stuck, as many as there are slots: draining this node", stuck)
            self._on_exhausted()
        elif count:
            one = "1 handler does not stop though it was asked to; it goes on without a slot"
            more = f"{count} handlers do not stop though they were asked to; they go on without a slot"
            self._log.warning("%s", one if count == 1 else more)

    def _outcome_of_stop(self, run: Run) -> Outcome | None:
        seconds = time.monotonic() - run.started
        grant = run.grant
        match run.reason:
            case "timeout":
                text = f"timed out after {grant.spec.timeout:g} s"
                decision = self._decide(grant, TimeoutError(text))
                return outcomes.failed(grant, text, self._config.retry, seconds, decision=decision)
            case "cancel":
                return Stopped(grant.lease, seconds)
            case "release":
                return Released(grant.lease)
            case "fenced" if run.stoppable:  # no attempt is charged; refused if another worker has the task by then
                return Released(grant.lease)
            case "lost" | "fenced":
                return None
            case None:
                text = "the handler was cancelled from inside"
                decision = self._decide(grant, asyncio.CancelledError(text))
                return outcomes.failed(grant, text, self._config.retry, seconds, decision=decision)

    # --- called by the heart

    @property
    def follows(self) -> Order:
        return self._orders.text

    def obey(self, order: Order) -> None:
        """Follow the orders of the store, and go back to the options where there is none. Those of a later version are
        not known here, and change nothing. Tasks that run are not touched."""
        before, now = self._orders, Orders.of(order)
        if now == before:
            return
        self._orders = now
        self._closed = self._stopping or now.drain
        self.capacity = now.capacity or self._config.concurrency
        self.queues = now.queues or tuple(self._config.queues)
        if now.capacity != before.capacity:
            self._local.resize(self.capacity)
            self._tell("Worker runs so many tasks at a time", concurrency=self.capacity)
        if now.queues != before.queues:
            self._tell("Worker takes tasks from these queues", queues=",".join(self.queues))
        if now.drain != before.drain:
            self._tell("Worker drains: it takes no more tasks" if now.drain else "Worker takes tasks again")
        self._exchange.follow()

    def _tell(self, text: str, **facts: object) -> None:
        self._log.line(logging.INFO, text, worker=self.id, running=len(self.running), **facts)

    def renewed(self, leases: list[Lease], answers: list[Extended]) -> None:
        for lease, answer in zip(leases, answers, strict=True):
            run = self.running.get(lease.id)
            if answer in ("held", "unknown") or run is None or run.grant.lease != lease:
                continue
            if answer == "lost" and not (run.context is not None and run.context._ends_elsewhere):
                self._log.warning("task %s: this worker has lost its lease, so its handler is asked to stop", lease.id)
            self._stop_run(run, "cancel" if answer == "cancel" else "lost")

    def cut_off(self, leases: set[Lease] | None = None) -> None:
        """These leases (None: all) could not be renewed in time, so other workers may run these tasks now. Handlers are
        asked to stop, except where `when_cut_off` of the type says that they run on."""
        runs = [run for run in self.running.values() if leases is None or run.grant.lease in leases]
        stopping = [run for run in runs if not self._runs_on(run)]
        if runs:
            self._log.error(
                "no contact with %s for a whole lease: %d handlers are asked to stop, %d run on",
                "the store" if leases is None else "a partition of the store", len(stopping), len(runs) - len(stopping),
            )  # fmt: skip
        for run in stopping:
            self._stop_run(run, "fenced")

    def _runs_on(self, run: Run) -> bool:
        entry = self._registry.find(run.grant.spec.type)
        return ((entry and entry.when_cut_off) or self._config.when_cut_off) == "run_on"
