"""A node: the workers, the heart, the candidate leader and the duties of one process."""

from __future__ import annotations

import asyncio
import functools
import math
import os
import socket
import time
from collections.abc import Awaitable, Callable, Collection

from tickwork import __version__
from tickwork.client.middleware import SubmitChain
from tickwork.config import Config
from tickwork.dispatch.strategies import Strategy, least_tasks
from tickwork.errors import StoreError, StoreUnavailable
from tickwork.executors.registry import Executors
from tickwork.handlers.registry import Registry
from tickwork.host import host_id, process_started
from tickwork.ids import new_tail
from tickwork.model.members import DRAIN
from tickwork.model.members import Worker as Member
from tickwork.node import duties
from tickwork.node.declarations import declares
from tickwork.node.duties import Duty
from tickwork.node.heart import Heart
from tickwork.node.leader import Candidate
from tickwork.node.parts import Parts
from tickwork.node.services import Service, Supervisor, tell_loop_lag
from tickwork.node.standard import standard_duties
from tickwork.node.unled import StandIn
from tickwork.node.vitals import Pulse
from tickwork.observe.bus import Bus
from tickwork.observe.loggers import Log
from tickwork.observe.observations import LoopLagged
from tickwork.store.contract import MANY_MAX, Store
from tickwork.store.hints import OUTBOX, RESET, Hint
from tickwork.store.joining import taken
from tickwork.worker.worker import Worker

STEP = 0.25  # seconds between two looks at what is still to be handed in
LAST_CALLS = 2.0  # seconds that a shutdown waits for a store that may not answer
LEAVE_TIME = 0.4  # seconds of them that are kept for leaving the store's members


def new_node_id() -> str:
    """Unique for every start of a process, and readable: host, pid and a random part."""
    host = "".join(char if char.isalnum() or char in ".-" else "-" for char in socket.gethostname())[:64]
    return f"{host}-{os.getpid()}-{new_tail()}"


class Node:
    """The workers, heart, candidate and duties of this process. `name` is the name that people gave it; `identity` is
    unique to this process, even if another process has the same name."""

    def __init__(
        self,
        name: str,
        identity: str,
        store: Store,
        registry: Registry,
        executors: Executors,
        config: Config,
        bus: Bus,
        parts: Parts | None = None,
        *,
        work: bool = True,
        lead: bool = True,
        on_exhausted: Callable[[], None] = lambda: None,
        on_reset: Callable[[], Awaitable[None]] | None = None,
        strategy: Strategy = least_tasks,
        declared: Callable[[], Collection[str]] = tuple,
    ) -> None:
        self.id = identity
        self._store = store
        self._config = config
        self._log = Log.of(config.logger, "node")
        self._duty_log = Log.of(config.logger, "duties")
        self._bus = bus
        self._parts = parts or Parts()
        chain = SubmitChain.of(registry, config)
        self._declared = declared
        standard = standard_duties(store, config, bus, self._duty_log, chain, declared, strategy)
        self.duties = [*standard, *self._parts.duties]
        self._lead_wanted = lead
        self._on_exhausted = on_exhausted
        self._on_reset = on_reset
        self._rewriting: Hint | None = None
        self._rewrite_wanted = False
        count = config.worker_count if work else 0
        names = [name] if count == 1 else [f"{name}-{number}" for number in range(1, count + 1)]
        self._executors = executors
        self.workers = [
            Worker(name, identity, store, registry, executors, config, bus, on_exhausted, self.is_led) for name in names
        ]
        self.workers += [
            own.make(f"{name}-{own.name}", identity, store, own.registry, own.executors, own.config, bus)
            for own in (self._parts.workers if work else ())
        ]
        self.heart: Heart | None = None
        self._pulse = Pulse(lambda: 0.0 if self.heart is None else self.heart.take_lag())
        self.candidate = Candidate(store, identity, config.leader_lease_ttl, config.leader_renew_interval, self._lead,
                                   Log.of(config.logger, "leader"), bus)  # fmt: skip
        self.supervisor = Supervisor(self._log, self._drain, bus)
        self._tasks: list[asyncio.Task[None]] = []
        self._working: list[asyncio.Task[None]] = []  # those of them that are workers
        self._added: list[tuple[Service, asyncio.Task[None]]] = []  # and those that the program has added
        self._hurry_until = math.inf
        self._pid_started = process_started(os.getpid())
        self._loop: asyncio.AbstractEventLoop | None = None

    async def start(self) -> None:
        config = self._config
        self._loop = asyncio.get_running_loop()
        for service in self._parts.services:
            if service.start is not None:
                await service.start()
            self._added.append((service, self._run(service)))
        if self.workers:
            await self._executors.start()
            # Before the rest, since a dead process may still be a member under the name of this node.
            await duties.take_back(self._store, config.batch_size, log=self._duty_log)
            self.heart = Heart(self._store, self.workers, self._member, config.lease_ttl, config.renew_interval,
                               Log.of(config.logger, "heart"), self._give_way, self._bus)  # fmt: skip
            await self.heart.start()
            self._run(Service("the heart", self.heart.run, vital=True))
            for worker in self.workers:
                # A node that is alive but does not work would be worse than one that is gone.
                self._working.append(self._run(Service(f"worker {worker.id}", worker.run, vital=True)))
                self._run(Service(f"the warming up of worker {worker.id}", worker.warm, again=False))
        for duty in self.duties:
            if duty.who == "all":
                self._run(self._repeated(duty))
        if self._bus.wants(LoopLagged):
            self._run(Service("the measuring of the event loop", functools.partial(tell_loop_lag, self._bus)))
        if self._on_reset is not None:
            rewrite = functools.partial(self._rewrite_after_reset, self._on_reset)
            self._run(Service("the writing of schedules", rewrite))
        if self._lead_wanted:
            self._run(Service("the candidate for leadership", self.candidate.run))
        elif self.heart is not None:
            self._stand_in(self.heart)

    def is_led(self) -> bool:
        """Whether some node leads, as far as is known here. False when there was none for a whole lease of a leader."""
        if self.candidate.leads or self.heart is None:
            return True
        return self.heart.unled_for < self._config.leader_lease_ttl

    def is_drained(self) -> bool:
        """Whether all of its workers were asked to take no more tasks."""
        return bool(self.workers) and all(DRAIN in worker.follows.split() for worker in self.workers)

    def _stand_in(self, heart: Heart) -> None:
        config, log = self._config, self._duty_log
        stand_in = StandIn(self._store, config.batch_size, self._bus, lambda: heart.leader, log)
        self._run(self._repeated(Duty("stand in", stand_in.work, config.renew_interval, OUTBOX, "all")))

    async def _rewrite_after_reset(self, rewrite: Callable[[], Awaitable[None]]) -> None:
        """Write the schedules of this program again when the store was found empty, or when one was added in code."""
        with self._store.hint(RESET) as hint:
            self._rewriting = hint
            if self._rewrite_wanted:  # since before it listened
                hint.set()
            while True:
                if not await hint.wait(3600):
                    continue
                try:
                    await rewrite()
                    self._store.contact.made("rewrite")
                except StoreUnavailable as error:
                    self._store.contact.lost("rewrite", error)
                    hint.set()
                    await asyncio.sleep(1)
                except StoreError as error:
                    self._log.warning("the schedules could not be written again, trying once more: %s", error)
                    hint.set()
                    await asyncio.sleep(1)

    def rewrite_soon(self) -> None:
        """Write the schedules of this program now, since one was added. May be called from any thread."""
        self._rewrite_wanted = True
        if self._rewriting is not None:
            self._rewriting.set()

    async def stop(self, grace: float) -> None:
        if self._loop is not None and self._loop.is_closed():
            self._log.warning("the event loop of this node was closed without a shutdown()")
            self._executors.forget_started()
            await self._leave(LEAVE_TIME)
        else:
            await self._wind_up(grace)

    async def _wind_up(self, grace: float) -> None:
        """Stop claiming, wait for running handlers, release the rest, resign and leave. It takes no longer than the
        grace and a second, whether the store answers or not."""
        end = time.monotonic() + grace + 1.0
        working = self._working
        lasting = {*working, *(task for _, task in self._added)}
        for task in self._tasks:
            if task not in lasting:
                task.cancel()
        # One second of the grace is kept for handing in the last outcomes.
        await asyncio.gather(*(worker.stop(max(grace - 1.0, grace / 2)) for worker in self.workers))
        deadline = end - LEAVE_TIME
        if working:  # a short wait: a worker that only waits for the store has nothing to hand in
            await asyncio.wait(working, timeout=min(LAST_CALLS, max(deadline - time.monotonic(), 0.0)))
        while any(worker.has_outcomes for worker in self.workers) and time.monotonic() < min(
            deadline, self._hurry_until
        ):
            await asyncio.wait(working, timeout=STEP)
        await asyncio.gather(*(self._stop_service(service, task, deadline) for service, task in self._added))
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for worker in self.workers:
            await worker.close()
        await self._executors.stop(max(end - LEAVE_TIME - time.monotonic(), LEAVE_TIME), self._log)
        await self._leave(min(max(end - time.monotonic(), LEAVE_TIME), LAST_CALLS))

    async def _stop_service(self, service: Service, task: asyncio.Task[None], deadline: float) -> None:
        if service.stop is None or task.done() or service.name in self.supervisor.resting:
            return
        left = max(deadline - time.monotonic(), LEAVE_TIME)
        try:
            async with asyncio.timeout(left):
                await service.stop(left)
                await asyncio.wait([task])
        except Exception as error:
            self._log.error("service %s could not be stopped in time", service.name, exc_info=error)

    async def _leave(self, patience: float) -> None:
        if self.heart is not None:
            await self.heart.stop()
        for worker in self.workers:
            worker.leave_registry()
        try:
            async with asyncio.timeout(patience):  # a store that cannot be reached must not delay the end
                await self._resign_and_leave()
        except (StoreError, TimeoutError) as error:  # the leases will run out by themselves
            self._log.warning(
                "this node could not leave the store's list of members: %s", str(error) or "the store does not answer"
            )

    async def _resign_and_leave(self) -> None:
        await self.candidate.resign()
        for worker in self.workers:
            await self._store.members.leave(worker.id, self.id)
        owners = [worker.id for worker in self.workers if worker.sources.inboxes]
        while owners and len(await self._store.tasks.unassign(owners, MANY_MAX)) >= MANY_MAX:
            pass

    def after_fork(self) -> None:
        """In the child of a fork: the node goes on running in the parent only."""
        self._executors.forget_started()
        for worker in self.workers:
            worker.leave_registry()

    def _give_way(self, rival: Member) -> None:
        """End this node, since its membership had run out and another process has taken its name."""
        self._log.error("this node ends: %s", taken(rival, self._store.now()))
        for worker in self.workers:
            worker.release_all()
        self._on_exhausted()

    def hurry(self) -> None:
        """Release running tasks now instead of waiting for them, as far as the store answers soon."""
        self._hurry_until = min(self._hurry_until, time.monotonic() + LAST_CALLS)
        for worker in self.workers:
            worker.release_all()

    def _run(self, service: Service) -> asyncio.Task[None]:
        task = asyncio.create_task(self.supervisor.watch(service), name=service.name)
        self._tasks.append(task)
        return task

    def _drain(self) -> None:
        """A vital part is gone. What runs is given back at once, while its leases are still good."""
        self.hurry()
        self._on_exhausted()

    def _repeated(self, duty: Duty) -> Service:
        return Service(f"the duty {duty.name!r}", functools.partial(duties.repeat, duty, self._store, self._duty_log))

    async def _lead(self) -> None:
        async with asyncio.TaskGroup() as group:
            for duty in self.duties:
                if duty.who == "leader":
                    group.create_task(self.supervisor.watch(self._repeated(duty)), name=duty.name)

    def _member(self, worker: Worker) -> Member:
        config, vitals = worker.config, self._pulse.read()
        return Member(
            id=worker.id,
            node=self.id,
            host=host_id(),
            pid=os.getpid(),
            pid_started=self._pid_started,
            address=config.address,
            version=__version__,
            queues=worker.queues,
            assigned=tuple(queue for queue in worker.queues if config.is_assigned(queue)) if worker.takes else (),
            task_types=tuple(sorted(worker.types)),
            labels=config.labels,
            weight=config.weight,
            capacity=worker.capacity,
            running=len(worker.running),
            leaked=worker.leaked,
            cpu=vitals.cpu,
            memory=vitals.memory,
            loop_lag=vitals.loop_lag,
            follows=worker.follows,
            declares=declares(self._declared()),
        )
