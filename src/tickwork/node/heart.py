"""The heart: a thread with its own event loop (and its own connection) that beats and renews leases.

It is not on the event loop of the handlers, so a handler that blocks that loop does not lose its lease. One that holds
the interpreter lock for longer than the lease does; such work belongs in `run_in="process"`.
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
from tickwork.observe.loggers import Log
from tickwork.store.contract import Store
from tickwork.store.hints import CONTROL
from tickwork.store.joining import join
from tickwork.worker.worker import Worker

BATCH = 500
WARN_INTERVAL = 5.0
SHOW_INTERVAL = 1.0


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
    ) -> None:
        self._log = log
        self.leader: Leader | None = None
        self._home_store = store
        self._store = store.sibling()
        self._workers = workers
        self._describe = describe
        self._lease_ttl = lease_ttl
        self._renew_interval = renew_interval
        self._on_rival = on_rival
        self._watch = LoopWatch(workers, log)
        self._supervisor = Supervisor(log)
        self._shown: dict[str, int] = {}  # how many runs the store knows of, by worker
        self._home = asyncio.get_running_loop()
        self._ended: asyncio.Future[None] = self._home.create_future()
        self._renewed_at = time.monotonic()
        self._warned_at = -WARN_INTERVAL
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stop: asyncio.Event | None = None
        self._ready = threading.Event()
        self._thread = threading.Thread(target=self._main, name="tickwork-heart", daemon=True)

    async def start(self) -> None:
        """Join, so that the workers are known before they claim; then go on in the thread. Raises when another process
        has the name of one of them."""
        for worker in self._workers:
            self.leader = await join(self._home_store, self._describe(worker), self._log)
        self._thread.start()
        await asyncio.to_thread(self._ready.wait)

    async def run(self) -> None:
        """Wait for the end of the thread; raises what ended it, if it was not told to stop."""
        await asyncio.shield(self._ended)

    async def stop(self) -> None:
        if self._loop is not None and self._stop is not None and self._thread.is_alive():
            with contextlib.suppress(RuntimeError):  # it is ending by itself, and its loop is closed already
                self._loop.call_soon_threadsafe(self._stop.set)
            await asyncio.to_thread(self._thread.join, 5)

    def _main(self) -> None:
        try:
            asyncio.run(self._beat_on())
        except Exception as error:
            self._tell_home(functools.partial(self._end, error))
        else:
            self._tell_home(functools.partial(self._end, None))

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
            # A beat too, in its middle: a store that does not answer must not hold up the end.
            for task in (beating, stopped, *aside):
                task.cancel()
            await asyncio.gather(beating, stopped, *aside, return_exceptions=True)
            if self._store is not self._home_store:
                await self._store.close()

    async def _beat_for_ever(self) -> None:
        pause = self._renew_interval
        with self._store.hint(CONTROL) as hint:
            while not self._home.is_closed():  # else nothing of this node runs any more, and its leases may end
                await hint.wait(pause)
                in_touch = await self._beat()
                pause = self._renew_interval if in_touch else min(self._renew_interval / 4, 1.0)

    async def _beat(self) -> bool:
        """False when the store could not be reached; then there is no time to lose."""
        sent_at = time.monotonic()
        margin = min(1.0, self._lease_ttl / 4)
        trusted_until = self._renewed_at + self._lease_ttl - margin
        try:
            async with asyncio.timeout(max(trusted_until - sent_at, margin)):
                for worker in self._workers:
                    # In this order: a worker that is killed must not be a member for longer than its leases last. The
                    # lease of a member that ran out is taken for a pause of its connection, and counts no loss.
                    await self._show(worker)
                    await self._renew(worker)
            self._renewed_at = sent_at
            self._store.contact.made("heart")
            return True
        except TimeoutError:
            self._store.contact.lost("heart", "the store does not answer")
        except StoreError as error:
            self._tell(error)
        except Exception as error:  # a defect here, or in the store: the leases must be renewed all the same
            self._warn("a heartbeat failed, trying again", error)
        if time.monotonic() >= trusted_until:
            # A refused connection proves nothing: a proxy or tunnel may be gone for this node alone.
            for worker in self._workers:
                self._tell_home(worker.cut_off)
            self._renewed_at = time.monotonic()
        return False

    async def _show(self, worker: Worker, ttl: int | None = None) -> None:
        member = self._describe(worker)
        heard = await self._store.members.beat(member, ttl)
        self._shown[worker.id] = member.running
        self.leader = heard.leader
        if heard.rival is not None:
            self._tell_home(functools.partial(self._on_rival, heard.rival))

    async def _show_changes(self) -> None:
        """How busy a worker is should be known before the next beat, if it has changed much. That makes it a member for
        no longer, since its leases are not renewed with it."""
        while True:
            await asyncio.sleep(SHOW_INTERVAL)
            for worker in self._workers:
                left = round((self._renewed_at + self._lease_ttl - time.monotonic()) * 1000)
                if left > 0 and _much(
                    self._shown.get(worker.id, 0), len(worker.running), self._describe(worker).capacity
                ):
                    with contextlib.suppress(StoreError, TimeoutError):  # the next beat tells of it
                        async with asyncio.timeout(self._renew_interval):
                            await self._show(worker, left)

    def _tell(self, error: StoreError) -> None:
        """It is tried again several times a second; saying so now and then will do."""
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
        for start in range(0, len(leases), BATCH):
            batch = leases[start : start + BATCH]
            answers = await self._store.tasks.extend(batch, round(self._lease_ttl * 1000))
            if set(answers) != {"held"}:
                self._tell_home(lambda batch=batch, answers=answers: worker.renewed(batch, answers))  # type: ignore[misc]

    def _tell_home(self, what: Callable[[], None]) -> None:
        try:
            self._home.call_soon_threadsafe(what)
        except RuntimeError:  # the node's loop is closed: there is nothing left to stop
            return


def _much(before: int, now: int, capacity: int) -> bool:
    """It became idle, or busy, or full, or by a quarter of its slots busier or less busy."""
    edges = (0, capacity)
    return before != now and (before in edges or now in edges or abs(now - before) * 4 >= capacity)
