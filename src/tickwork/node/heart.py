"""The heart: a thread with its own event loop and its own connection that sends heartbeats and renews leases.

Since it is not on the event loop of the handlers, a handler that blocks that loop keeps its lease. A handler that holds
the interpreter lock for longer than the lease loses it; such work belongs in `run_in="process"`.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import logging
import threading
import time
from collections.abc import Callable

from tickwork.errors import StoreError, StoreUnavailable
from tickwork.model.members import Leader
from tickwork.model.members import Worker as Member
from tickwork.node.loop_watch import LoopWatch
from tickwork.node.services import Service, Supervisor
from tickwork.observe.bus import Bus
from tickwork.observe.loggers import Log
from tickwork.store.contract import Extended, Lease, Store
from tickwork.store.hints import CONTROL
from tickwork.store.joining import join
from tickwork.timeouts import TimeLimit, of_late
from tickwork.worker.worker import Worker

BATCH = 500  # leases that one call renews
WARN_INTERVAL = 5.0  # seconds between two warnings that leases could not be renewed
SHORTER = 0.05  # of a lease, by which a membership ends before it
SHOW_INTERVAL = 1.0  # seconds between two looks at how busy the workers are


class Heart:
    def __init__(
        self,
        store: Store,
        workers: list[Worker],
        describe: Callable[[Worker], Member],
        lease_ttl: float,
        renew_interval: float,
        log: Log,
        on_rival: Callable[[Member], None],
        bus: Bus | None = None,
    ) -> None:
        self._log = log
        self.leader: Leader | None = None
        self._unled_since = self._heard_at = time.monotonic()
        self._home_store = store
        self._store = store.sibling()
        self._workers = workers
        self._describe = describe
        self._lease_ttl = lease_ttl
        self._renew_interval = renew_interval
        self._on_rival = on_rival
        self._watch = LoopWatch(workers, log)
        self._supervisor = Supervisor(log, bus=bus)
        self._shown: dict[str, Member] = {}  # worker -> what its last heartbeat said
        self._home = asyncio.get_running_loop()
        self._ended: asyncio.Future[None] = self._home.create_future()
        self._renewed_at = time.monotonic()
        self._doubtful: dict[Lease, float] = {}  # leases that could not be renewed alone, and when they last were
        self._warned_at = -WARN_INTERVAL
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stop: asyncio.Event | None = None
        self._ready = threading.Event()
        self._thread = threading.Thread(target=self._main, name="tickwork-heart", daemon=True)

    async def start(self) -> None:
        """Make the workers members before they claim, then start the thread. Raises when another process has the name
        of one of them."""
        for worker in self._workers:
            self.hear(await join(self._home_store, self._describe(worker), self._log))
        self._thread.start()
        await asyncio.to_thread(self._ready.wait)

    def hear(self, leader: Leader | None) -> None:
        had, self.leader, self._heard_at = self.leader, leader, time.monotonic()
        if leader is not None or had is not None:  # the first heartbeat without one begins the time
            self._unled_since = self._heard_at

    @property
    def unled_for(self) -> float:
        """For how many seconds heartbeats have reported no leader."""
        return self._heard_at - self._unled_since

    def take_lag(self) -> float:
        return self._watch.take_lag()

    async def run(self) -> None:
        """Wait for the end of the thread. Raises the error that ended it, if it was not stopped."""
        await asyncio.shield(self._ended)

    async def stop(self) -> None:
        if self._loop is not None and self._stop is not None and self._thread.is_alive():
            with contextlib.suppress(RuntimeError):  # the thread is ending by itself, and its loop is closed already
                self._loop.call_soon_threadsafe(self._stop.set)
            await asyncio.to_thread(self._thread.join, 5)

    def _main(self) -> None:
        try:
            asyncio.run(self._beat_on())
        except Exception as error:
            self._call_home(functools.partial(self._end, error))
        else:
            self._call_home(functools.partial(self._end, None))

    def _end(self, error: Exception | None) -> None:
        if not self._ended.done():
            self._ended.set_result(None) if error is None else self._ended.set_exception(error)

    async def _beat_on(self) -> None:
        self._loop, self._stop = asyncio.get_running_loop(), asyncio.Event()
        self._ready.set()
        beating = asyncio.ensure_future(self._beat_for_ever())
        stopped = asyncio.ensure_future(self._stop.wait())
        services = (
            Service("the watch over the event loop", self._watch.run),
            Service("the showing of running tasks", self._show_changes),
        )
        aside = [asyncio.ensure_future(self._supervisor.watch(service)) for service in services]
        try:
            await asyncio.wait((beating, stopped), return_when=asyncio.FIRST_COMPLETED)
            if beating.done():
                await beating
        finally:
            # Also a heartbeat that is under way: a store that does not answer must not delay the end.
            for task in (beating, stopped, *aside):
                task.cancel()
            await asyncio.gather(beating, stopped, *aside, return_exceptions=True)
            if self._store is not self._home_store:
                await self._store.close()

    async def _beat_for_ever(self) -> None:
        pause = self._renew_interval
        with self._store.hint(CONTROL) as hint:
            while not self._home.is_closed():  # when it is closed, no handler runs any more, and the leases may run out
                await hint.wait(pause)
                in_touch = await self._beat()
                pause = self._renew_interval if in_touch else min(self._renew_interval / 4, 1.0)

    async def _beat(self) -> bool:
        """One heartbeat and renewal for all workers. False when the store could not be reached; then it is tried again
        soon."""
        sent_at = time.monotonic()
        margin = min(1.0, self._lease_ttl / 4)
        trusted_until = self._renewed_at + self._lease_ttl - margin
        unshown: StoreUnavailable | None = None
        limit, renewed = TimeLimit(max(trusted_until - sent_at, margin)), 0
        try:
            with limit:
                for worker in self._workers:
                    # In this order, so that a worker that is killed at any moment is not a member for as long as its
                    # leases last. If a lease of a living member runs out, that counts as an interrupted connection, not
                    # as a loss.
                    await self._renew(worker)
                    renewed += 1
                    unshown = await self._show_or_not(worker, sent_at) or unshown
            self._renewed_at = sent_at
            if unshown is None and not self._doubtful:
                self._store.contact.made("heart")
                return True
            self._store.contact.lost("heart", unshown or "some leases cannot be renewed")
            self._cut_off_doubtful(self._lease_ttl - margin)
            return False
        except TimeoutError:
            self._store.contact.lost("heart", f"the store does not answer{of_late(limit.late)}")
            if renewed == len(self._workers):  # all that did not come is the answer to the heartbeat
                self._renewed_at, trusted_until = sent_at, sent_at + self._lease_ttl - margin
                self._cut_off_doubtful(self._lease_ttl - margin)
        except StoreError as error:
            self._report(error)
        except Exception as error:  # a programming error here or in the store: the leases must still be renewed
            self._warn("a heartbeat failed, trying again", error)
        if time.monotonic() >= trusted_until:
            # Also after a refused connection: a proxy or tunnel may be down for this node alone, while others go on.
            for worker in self._workers:
                self._call_home(worker.cut_off)
            self._renewed_at = time.monotonic()
        return False

    async def _show_or_not(self, worker: Worker, renewed_at: float) -> StoreUnavailable | None:
        """Send a heartbeat. With several partitions, leases may be renewed though the members cannot be reached."""
        try:
            await self._show(worker, renewed_at)
        except StoreUnavailable as error:
            if self._store.capabilities.partitions == 1:
                raise
            return error
        return None

    def _cut_off_doubtful(self, trusted_for: float) -> None:
        lost = {lease for lease, renewed_at in self._doubtful.items() if time.monotonic() >= renewed_at + trusted_for}
        if lost:
            for worker in self._workers:
                self._call_home(functools.partial(worker.cut_off, lost))
            self._doubtful.update(dict.fromkeys(lost, time.monotonic()))

    async def _show(self, worker: Worker, renewed_at: float) -> None:
        """Make it a member until shortly before the end of the leases that were renewed then: sent a moment later, the
        same length would end after them."""
        left = renewed_at + self._lease_ttl * (1 - SHORTER) - time.monotonic()
        member = self._describe(worker)
        answer = await self._store.members.beat(member, max(round(left * 1000), 1))
        self._shown[worker.id] = member
        self.hear(answer.leader)
        if answer.rival is not None:
            self._call_home(functools.partial(self._on_rival, answer.rival))
        elif answer.order != member.follows:
            self._call_home(functools.partial(worker.obey, answer.order))

    async def _show_changes(self) -> None:
        """Send a heartbeat early if the number of running tasks has changed much, or the order that is followed. It
        does not make the membership longer, since leases are not renewed with it."""
        while True:
            await asyncio.sleep(SHOW_INTERVAL)
            for worker in self._workers:
                left = self._renewed_at + self._lease_ttl * (1 - SHORTER) - time.monotonic()
                if left > 0 and _much(self._shown.get(worker.id), self._describe(worker)):
                    with contextlib.suppress(StoreError, TimeoutError):  # the next heartbeat reports it
                        async with asyncio.timeout(self._renew_interval):
                            await self._show(worker, self._renewed_at)

    def _report(self, error: StoreError) -> None:
        """Log an error, but not each time, as the call is repeated several times a second."""
        if isinstance(error, StoreUnavailable):
            self._store.contact.lost("heart", error)
        else:
            self._warn(f"leases could not be renewed, trying again: {error}")

    def _warn(self, text: str, defect: Exception | None = None) -> None:
        now = time.monotonic()
        if now - self._warned_at >= WARN_INTERVAL:
            self._warned_at = now
            self._log.log(logging.ERROR if defect else logging.WARNING, "%s", text, exc_info=defect)

    async def _renew(self, worker: Worker) -> None:
        leases = worker.leases()
        if self._doubtful:
            held = {lease for other in self._workers for lease in other.leases()}
            self._doubtful = {lease: at for lease, at in self._doubtful.items() if lease in held}
        for start in range(0, len(leases), BATCH):
            batch = leases[start : start + BATCH]
            answers = await self._store.tasks.extend(batch, round(self._lease_ttl * 1000))
            if set(answers) != {"held"}:
                self._doubt(batch, answers)
                self._call_home(lambda batch=batch, answers=answers: worker.renewed(batch, answers))  # type: ignore[misc]
        if inside := worker.inside():
            with contextlib.suppress(StoreUnavailable):  # with several partitions they may be elsewhere than the leases
                await self._store.gates.renew(inside)

    def _doubt(self, leases: list[Lease], answers: list[Extended]) -> None:
        for lease, answer in zip(leases, answers, strict=True):
            if answer == "unknown":
                self._doubtful.setdefault(lease, self._renewed_at)
            else:
                self._doubtful.pop(lease, None)

    def _call_home(self, what: Callable[[], None]) -> None:
        try:
            self._home.call_soon_threadsafe(what)
        except RuntimeError:  # the node's loop is closed, so there is no handler to stop
            return


def _much(before: Member | None, now: Member) -> bool:
    """Whether the change is worth a heartbeat: from or to idle or full, or by a quarter of the slots."""
    was, follows = (0, "") if before is None else (before.running, before.follows)
    edges = (0, now.capacity)
    busier = was != now.running and (was in edges or now.running in edges or abs(now.running - was) * 4 >= now.capacity)
    return busier or follows != now.follows or (before is not None and before.assigned != now.assigned)
