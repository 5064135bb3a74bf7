"""Receiving wake-ups: one connection is subscribed to the namespace's channels, another blocks on the wake lists.

A token in a wake list wakes one idle worker in any process; a message on a channel wakes all who listen there. Both are
only hints: after every reconnect all waiters look again. A connection that receives nothing, not even the replies to
its own pings, is cut.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Any

import hiredis

from tickwork.errors import StoreError
from tickwork.store.hints import ASSIGN, CONTROL, EVENTS, OUTBOX, SCHEDULES, WORK, Hints
from tickwork.store.redis.net.link import Link, LinkLost, connect, pack
from tickwork.store.redis.net.wire import Wire
from tickwork.store.redis.records import read_ended

BLOCK = 2.0  # seconds in one blocking read
SILENCE = 5.0  # seconds without data after which a connection is cut
PING = 1.5  # seconds between two pings
PAUSE_MAX = 0.5  # longest pause in seconds before a new connection

TOPICS = {CONTROL: "control", OUTBOX: "outbox", SCHEDULES: "schedules", EVENTS: "events"}


class Listener:
    def __init__(
        self,
        wire: Wire,
        hints: Hints,
        root: str,
        channel: str,
        queues: dict[str, None],
        looked_at: set[str],
        on_token: Callable[[bytes], None],
        own_workers: set[str],
    ) -> None:
        self._own_workers = own_workers
        self._wire = wire
        self._hints = hints
        self._root = root
        self._own_channel = channel
        self._queues = queues
        self._looked_at = looked_at
        self._on_token = on_token
        self._channels: dict[str, str] = {}  # channel -> topic
        self._link: Link | None = None
        self._listening: asyncio.Task[None] | None = None
        self._waking: asyncio.Task[None] | None = None
        self._wanted = asyncio.Event()

    def add(self, topic: str) -> None:
        """Receive the wake-ups of a topic from now on."""
        if topic in TOPICS:
            channel = self._root + TOPICS[topic]
        elif topic.startswith("*"):
            return
        else:
            channel = self._own_channel
        if channel in self._channels:
            return
        self._channels[channel] = topic if topic in TOPICS else ""
        if self._listening is None:
            self._listening = asyncio.ensure_future(self._keep(self._listen))
        elif self._link is not None and self._link.lost is None:
            self._link.write(pack("SUBSCRIBE", channel))

    def idle(self, topic: str) -> None:
        """A waiter begins to wait on a topic: for tasks to run or to assign, block on the wake lists."""
        if topic in (WORK, ASSIGN):
            self._wanted.set()
            if self._waking is None:
                self._waking = asyncio.ensure_future(self._keep(self._wake))

    async def close(self) -> None:
        tasks = [task for task in (self._listening, self._waking) if task is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _keep(self, work: Callable[[], Awaitable[None]]) -> None:
        """Repeat `work` until cancelled, on a new connection whenever one ends."""
        pause = 0.02
        while True:
            began = asyncio.get_running_loop().time()
            try:
                await work()
            except (LinkLost, StoreError) as error:
                self._wire.contact.log.debug("a listening connection ended: %s", error)
                self._wire.topology.doubt()
            except Exception:  # a defect, or a message that nobody can read: others must still be heard
                self._wire.contact.log.exception("listening for wake-ups failed, beginning again")
            lasted = asyncio.get_running_loop().time() - began
            pause = 0.02 if lasted > 1 else min(pause * 2, PAUSE_MAX)
            await asyncio.sleep(pause)

    async def _connect(self, on_push: Callable[[list[Any]], None] | None = None) -> Link:
        address = await self._wire.topology.find(self._wire.slot(self._root))
        return await connect(address, self._wire.target.access, SILENCE, on_push)

    # --- channels

    async def _listen(self) -> None:
        ended = asyncio.Event()

        def on_message(message: Any) -> None:
            if isinstance(message, hiredis.ReplyError):
                level = logging.DEBUG if str(message).startswith("LOADING") else logging.ERROR
                self._wire.contact.log.log(level, "cannot listen for wake-ups: %s", message)
                ended.set()
            elif not message:
                ended.set()
            elif message[0] == b"message":
                self._notify(message[1].decode(), message[2])
            elif message[0] == b"subscribe" and message[2] >= len(self._channels):
                self._hints.notify_all()  # messages may have been missed before the subscription

        link = self._link = await self._connect(on_message)
        try:
            link.write(pack("SUBSCRIBE", *self._channels))
            while not ended.is_set():
                link.write(pack("PING"))
                try:
                    await asyncio.wait_for(ended.wait(), PING)
                except TimeoutError:
                    continue
        finally:
            self._link = None
            await link.close()
        raise link.lost or LinkLost("the subscription ended")

    def _notify(self, channel: str, message: bytes) -> None:
        topic = self._channels.get(channel, "")
        if topic == CONTROL and message and self._own_workers and message.decode() not in self._own_workers:
            return
        if topic:
            self._hints.notify(topic)
        else:
            for task_id, value in read_ended(message):
                self._hints.notify(task_id, value)

    # --- wake lists

    async def _wake(self) -> None:
        link = await self._connect()
        try:
            self._hints.notify(WORK)
            while True:
                await self._wanted.wait()
                works, assigns = self._hints.idles(WORK), self._hints.idles(ASSIGN) and self._looked_at
                if not works and not assigns:
                    self._wanted.clear()
                    continue
                queues = {*(self._queues if works else ()), *(self._looked_at if assigns else ())}
                keys = [f"{self._root}wake:{queue}" for queue in queues]
                if not keys:  # no worker has claimed yet
                    await asyncio.sleep(0.01)
                    continue
                await self._take(link, await link.call("BLPOP", *keys, BLOCK))
        finally:
            await link.close()

    async def _take(self, link: Link, reply: Any) -> None:
        if isinstance(reply, hiredis.ReplyError):
            raise LinkLost(str(reply))
        if reply is None:
            return
        queue = reply[0].decode().partition("wake:")[2]
        if queue in self._looked_at and self._hints.idles(ASSIGN):
            self._hints.notify(ASSIGN)
            await asyncio.sleep(0)
        elif self._hints.idles(WORK):
            self._on_token(reply[1])
            self._hints.notify(WORK)
            await asyncio.sleep(0)  # so that the waiter that was woken is no longer idle
        else:  # no worker here has a free slot any more: let the token wake another process
            await link.call("RPUSH", reply[0], reply[1])
