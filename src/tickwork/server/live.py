"""Event streams: the log of a namespace is followed once, however many look on.

All who want to hear the same of it share a channel, whose frames are made and written as text once. What happened to
one task between two frames is merged: the last fact of it is told, since a page shows how things are, not every step. A
stream gets at most four frames a second: three with facts, and one with the numbers of the whole.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Collection
from datetime import datetime
from functools import cached_property
from typing import Any

import msgspec
from msgspec import Struct

from tickwork.client.client import Client
from tickwork.clock import to_datetime
from tickwork.errors import StoreError
from tickwork.model import facts
from tickwork.server.masking import Mask
from tickwork.server.rows import event_row
from tickwork.store.contract import Stats, Store
from tickwork.store.hints import EVENTS

PAUSE = 0.34  # seconds between two frames with facts
TICK = 1.0  # between two with the numbers of the whole
QUIET = 15.0  # after which a stream gives a sign of life
MERGED_MAX = 20_000  # facts of one frame; further ones are counted as missed
BEHIND_MAX = 30  # frames that wait for a slow reader; then it is told that it missed them
BATCH = 1000  # facts read at a time
CATCH_UP_MAX = 20_000  # facts that a stream which comes back is told


class Frame:
    """What a stream is sent at a time. `kind` is `open`, `events`, `tick`, `missed` or `alive`; `seq` is where to go
    on."""

    def __init__(self, kind: str, data: Any, seq: int | None = None) -> None:
        self.kind = kind
        self.data = data
        self.seq = seq

    @cached_property
    def text(self) -> bytes:
        """As a server-sent event. JSON has no line breaks of its own."""
        if self.kind == "alive":
            return b": alive\n\n"
        number = b"" if self.seq is None else b"id: %d\n" % self.seq
        return b"%bevent: %b\ndata: %b\n\n" % (number, self.kind.encode(), msgspec.json.encode(self.data))


class Tick(Struct, frozen=True):
    """The numbers that every page shows."""

    time: datetime
    counts: dict[str, int]
    workers: int


class Topics(Struct, frozen=True):
    """What a stream wants to hear of: kinds by what stands before their dot (`task`, `worker`), and one task."""

    families: frozenset[str] = frozenset()
    task_id: str | None = None

    def want(self, fact: facts.Event) -> bool:
        family = fact.kind.partition(".")[0]
        if self.families and family not in self.families:
            return False
        # The id of a switch is a value of tasks, which may be hidden from whoever asks for it.
        return self.task_id is None or (family == "task" and fact.id == self.task_id)


def topics_of(names: Collection[str], task_id: str | None) -> Topics:
    return Topics(frozenset(names), task_id)


class Stream:
    """One who looks on."""

    def __init__(self, seq: int) -> None:
        self.seq = seq
        self._frames: deque[Frame] = deque()
        self._woken = asyncio.Event()
        self._closed = False

    def put(self, frame: Frame) -> None:
        if len(self._frames) >= BEHIND_MAX:
            lost = sum(_told(each) for each in self._frames)
            self._frames.clear()
            self._frames.append(Frame("missed", {"count": lost}))
        self._frames.append(frame)
        self._woken.set()

    def close(self) -> None:
        self._closed = True
        self._woken.set()

    async def frames(self) -> AsyncIterator[Frame]:
        while not self._closed:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._woken.wait(), QUIET)
            self._woken.clear()
            if not self._frames and not self._closed:
                yield Frame("alive", None)
            while self._frames and not self._closed:
                yield self._frames.popleft()


def _told(frame: Frame) -> int:
    """How many facts a frame tells, or tells to be missed."""
    if frame.kind == "missed":
        return int(frame.data["count"])
    return len(frame.data) if frame.kind == "events" else 0


class Channel:
    """Those who want to hear the same."""

    def __init__(self, topics: Topics, mask: Mask) -> None:
        self._topics = topics
        self._mask = mask
        self._merged: dict[tuple[str, str], facts.Event] = {}
        self._missed = 0
        self._seq: int | None = None
        self.streams: set[Stream] = set()

    @property
    def is_told(self) -> bool:
        """Whether its streams were sent all that it has taken."""
        return not self._merged and not self._missed

    def take(self, found: list[facts.Event], missed: int = 0) -> None:
        self._missed += missed
        for fact in found:
            if self._topics.want(fact):
                key = (fact.kind.partition(".")[0], fact.id)
                if self._merged.pop(key, None) is None and len(self._merged) >= MERGED_MAX:
                    self._missed += 1
                else:
                    self._merged[key] = fact  # behind the others, as it is newer
        if found:
            self._seq = found[-1].seq

    def flush(self) -> list[Frame]:
        frames: list[Frame] = []
        if self._missed:
            frames.append(Frame("missed", {"count": self._missed}))
        if self._merged:
            rows = [event_row(fact, self._mask) for fact in self._merged.values()]
            frames.append(Frame("events", rows, self._seq))
        self._merged, self._missed = {}, 0
        return frames


class Hub:
    """Reads the log while there is anybody to tell."""

    def __init__(self, client: Client, stats: Callable[[], Awaitable[Stats]]) -> None:
        self._client = client
        self._stats = stats
        self._channels: dict[tuple[Topics, Mask], Channel] = {}
        self._seen: int | None = None
        self._tasks: list[asyncio.Task[None]] = []

    async def join(self, topics: Topics, mask: Mask, after: int | None) -> Stream:
        """A stream from now on, or from the fact of that number on. Leave it in the end."""
        store = await self._client._access.open_store()
        if self._seen is None:
            last = await store.log.last()
            self._seen = last if self._seen is None else self._seen
        stream = Stream(self._seen if after is None else min(after, self._seen))
        try:
            # Meanwhile the log is read on for others; if they all leave, it is not read any more.
            while after is not None and (until := self._seen) is not None and after < until:
                for frame in await self._catch_up(store, Channel(topics, mask), after, until):
                    stream.put(frame)
                after = until
        except BaseException:
            if not self._channels:  # nobody reads on from there: the next stream begins where the log is then
                self._seen = None
            raise
        self._seen = after if self._seen is None else self._seen
        channel = self._channels.setdefault((topics, mask), Channel(topics, mask))
        channel.streams.add(stream)
        if not self._tasks:
            self._tasks = [asyncio.create_task(each()) for each in (self._follow, self._tell, self._count)]
        return stream

    def leave(self, stream: Stream) -> None:
        for key, channel in list(self._channels.items()):
            channel.streams.discard(stream)
            if not channel.streams:
                del self._channels[key]
        if not self._channels:
            for task in self._tasks:
                task.cancel()
            self._tasks, self._seen = [], None

    async def _catch_up(self, store: Store, own: Channel, after: int, until: int) -> list[Frame]:
        """What one has missed; if that is too much, how much, and the newest of it. The channel goes on from the last
        fact that it has read, so that a fact may be told twice, and none is left out."""
        if not await self._read_on(store, own, after, until):
            own.flush()
            newest = until - CATCH_UP_MAX  # where numbers have gaps, these are fewer facts
            own.take([], max(newest - after, 1))
            await self._read_on(store, own, newest, until)
        return own.flush()

    async def _read_on(self, store: Store, own: Channel, after: int, until: int) -> bool:
        """Facts after that number for one channel; False if there are more than one is told."""
        for _ in range(CATCH_UP_MAX // BATCH):
            found, missed = await store.log.read(after, BATCH)
            own.take([fact for fact in found if fact.seq <= until], missed)
            if not found or found[-1].seq >= until:
                return True
            after = found[-1].seq
        return False

    async def _follow(self) -> None:
        store = await self._client._access.open_store()
        with store.hint(EVENTS) as hint:
            while True:
                try:
                    found, missed = await store.log.read(self._seen or 0, BATCH)
                except StoreError as error:  # it goes on where it was when the store is back
                    store.contact.lost("event streams", error)
                    await asyncio.sleep(1.0)
                    continue
                store.contact.made("event streams")
                if found:
                    self._seen = found[-1].seq
                    for channel in self._channels.values():
                        channel.take(found, missed)
                if len(found) < BATCH:
                    await hint.wait(1.0)
                    await asyncio.sleep(0.05)  # facts come in steps: read some together

    async def _tell(self) -> None:
        while True:
            await asyncio.sleep(PAUSE)
            for channel in self._channels.values():
                for frame in channel.flush():
                    for stream in channel.streams:
                        stream.put(frame)

    async def _count(self) -> None:
        while True:
            with contextlib.suppress(StoreError):  # streams tell of nothing then; pages ask themselves, and say so
                stats = await self._stats()
                counts = {status.value: count for status, count in stats.statuses.items() if count}
                now = (await self._client._access.open_store()).now()
                tick = Tick(to_datetime(now), counts, stats.workers)
                # Who comes back with other topics goes on from here, and the log need not be read from the last fact
                # that it wanted.
                here, elsewhere = Frame("tick", tick, self._seen), Frame("tick", tick)
                for channel in self._channels.values():
                    for stream in channel.streams:
                        stream.put(here if channel.is_told else elsewhere)
            await asyncio.sleep(TICK)

    async def close(self) -> None:
        for channel in self._channels.values():
            for stream in channel.streams:
                stream.close()
        tasks, self._tasks = self._tasks, []
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
