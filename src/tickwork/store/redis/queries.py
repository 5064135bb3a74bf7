"""Queries: reads that change nothing, each of them bounded."""

from __future__ import annotations

import asyncio
from typing import Any, NamedTuple

from tickwork.errors import StoreError
from tickwork.forks import keep, tell_of_forks
from tickwork.model.tasks import ENDS, HELD, Band, History, Record, Status
from tickwork.store.contract import AHEAD_MAX, PAGE_MAX, Finding, Pause, Query, Situation, Stats
from tickwork.store.hints import Hint
from tickwork.store.redis.core import Core, Part
from tickwork.store.redis.indexes import CURSOR, Indexes
from tickwork.store.redis.looks import Looks
from tickwork.store.redis.ops.audit import Audit
from tickwork.store.redis.ops.doctor import Doctor
from tickwork.store.redis.ops.server import memory_used, read_info
from tickwork.store.redis.records import unpack, unpack_attempt
from tickwork.store.rules import FAIR_HEADS, first_waits, matches, not_a_cursor

STEP = 100  # records in one read, so that no reply is huge
BAND_NAMES = {"high": Band.HIGH, "normal": Band.NORMAL, "low": Band.LOW}
# The order of a list of all statuses: tasks that have not ended, then those that have.
ORDER = (
    Status.RUNNING, Status.ASSIGNED, Status.READY, Status.RETRYING, Status.PENDING, Status.BLOCKED, Status.DEAD,
    Status.FAILED, Status.CANCELLED, Status.SUCCESS,
)  # fmt: skip
# As `stats.lua` counts them.
COUNTED = (
    Status.PENDING, Status.RETRYING, Status.BLOCKED, Status.RUNNING, Status.ASSIGNED, Status.SUCCESS, Status.FAILED,
    Status.DEAD, Status.CANCELLED,
)  # fmt: skip


class Home(NamedTuple):
    """A key in which tasks of one status are found, and how to read on in it."""

    key: str
    status: Status
    kind: str  # zset, stream (oldest first) or ends (newest first)
    turn: tuple[int, int, str]  # its place in the order of all homes: by status, partition and name
    tail: bool = False  # members carry the order of submits in front of the id


class Queries(Part):
    def __init__(self, core: Core, audit: Audit, indexes: Indexes) -> None:
        super().__init__(core)
        self._audit = audit
        self._indexes = indexes
        self._looks = Looks(core)
        tell_of_forks(self)

    def after_fork(self) -> None:
        keep(self._looks)
        self._looks = Looks(self._core)

    async def get(self, task_id: str, waiter: Hint | None = None) -> Record | None:
        if waiter is not None and waiter.news:
            value, waiter.news = waiter.news, b""
            return unpack(task_id, value)
        prefix = self._core.part(task_id)
        if waiter is not None:
            return await self._look(prefix, task_id, waiter)
        record = _read(task_id, await self._core.ask(prefix, "GET", f"{prefix}task:{task_id}"))
        if record is not None:
            await self._core.read_leases(prefix, [record])
        return record

    async def _look(self, prefix: str, task_id: str, waiter: Hint) -> Record | None:
        if waiter.announced:
            seen = await self._looks.look(prefix, task_id)
            if seen.record is None or seen.record.status.ended or seen.watched:
                return seen.record
        record = _read(task_id, await self._core.run("watch", prefix, task_id, self._core.channel))
        waiter.announced = True
        return record

    async def time(self) -> int:
        clocks = await asyncio.gather(*(self._core.run("time", part) for part in self._core.layout.parts))
        return int(max(clocks))

    async def history(self, task_id: str) -> History:
        prefix = self._core.part(task_id)
        attempts, lines = await self._core.ask_all(
            prefix, [("LRANGE", f"{prefix}attempts:{task_id}", 0, -1), ("LRANGE", f"{prefix}lines:{task_id}", 0, -1)]
        )
        return History([unpack_attempt(run) for run in attempts], [line.decode("utf-8", "replace") for line in lines])

    async def situation(self, task_id: str) -> Situation | None:
        prefix = self._core.part(task_id)
        reply = await self._core.run("situation", prefix, task_id, AHEAD_MAX)
        if reply is None:
            return None
        value, lease_end, ahead, queue_pause, type_pause, *counts = reply
        record = unpack(task_id, value, int(float(lease_end or 0)))
        pauses = [
            _pause(kind, name, found)
            for kind, name, found in (("queue", record.spec.queue, queue_pause), ("type", record.spec.type, type_pause))
            if found is not None
        ]
        running = dict(zip((worker.decode() for worker in counts[::2]), counts[1::2], strict=True))
        others = (part for part in self._core.layout.parts if part != prefix)
        await asyncio.gather(*(self._add_running(part, running) for part in others))
        return Situation(record, ahead, pauses, running)

    async def _add_running(self, part: str, running: dict[str, int]) -> None:
        """Add the numbers of tasks that workers run from another partition."""
        workers = [worker.decode() for worker in await self._core.ask(part, "ZRANGE", f"{part}lessees", 0, 999)]
        counts = await self._core.ask_all(part, [("ZCARD", f"{part}leases:{worker}") for worker in workers])
        for worker, count in zip(workers, counts, strict=True):
            running[worker] = running.get(worker, 0) + count

    async def records(self, ids: list[str]) -> list[Record | None]:
        """Records of tasks without the ends of their leases, as many in one read as a page has."""

        async def read(part: str, group: list[str]) -> list[Record | None]:
            values = await self._core.ask(part, "MGET", *(f"{part}task:{task_id}" for task_id in group))
            return [_read(task_id, value) for task_id, value in zip(group, values, strict=True)]

        return await self._core.by_slices(ids, ids, STEP, read)

    # --- pages

    async def page(self, query: Query) -> tuple[list[Record], str | None]:
        if await self._by_index(query):
            return await self._indexes.page(query)
        homes = [home for status in ([query.status] if query.status else ORDER) for home in await self._homes(status)]
        number, place = _read_cursor(query, homes)
        found: list[Record] = []
        looked = 0
        while number < len(homes):
            wanted = min(STEP, PAGE_MAX - looked)
            if len(found) >= query.limit or wanted <= 0:
                return found, await self._next_cursor(homes, number, place)
            home = homes[number]
            ids, places = await self._read_home(home, place, wanted)
            records = await self._records(home, ids)
            for record, after in zip(records, places, strict=True):
                looked, place = looked + 1, after
                # A task may have changed its status between the two reads.
                if record is not None and record.status is home.status and matches(record, query):
                    found.append(record)
                    if len(found) >= query.limit:
                        break
            else:
                if len(ids) < wanted:
                    number, place = number + 1, 0
        return found, None

    async def _by_index(self, query: Query) -> bool:
        """Whether an index answers this list. With a status, the one of both that holds fewer tasks does."""
        if query.cursor:
            by_index = query.cursor.startswith(CURSOR)
            if by_index and not await self._indexes.are_kept():
                raise StoreError("tasks are not indexed any more since the page before: list them from the beginning")
            return by_index
        if not await self._indexes.are_kept():
            return False
        if query.status is None:
            return True
        if query.type is None and query.queue is None and query.key is None:
            return False
        return await self._indexes.size(query) < await self._count(query.status)

    async def _count(self, status: Status) -> int:
        return (await self.stats()).statuses[status]

    async def _next_cursor(self, homes: list[Home], number: int, place: int) -> str | None:
        for later in range(number, len(homes)):
            if (await self._read_home(homes[later], place, 1))[0]:
                _, part, name = homes[later].turn
                return f"{place}.{part}.{name}"
            place = 0
        return None

    async def _homes(self, status: Status) -> list[Home]:
        homes: list[Home] = []
        for number, part in enumerate(self._core.layout.parts):
            for name, kind in await self._home_names(status, part):
                turn = (ORDER.index(status), number, name)
                tail = status in (Status.PENDING, Status.RETRYING) or name.startswith("fair:")
                homes.append(Home(part + name, status, kind, turn, tail))
        return sorted(homes, key=lambda home: home.turn)

    async def _home_names(self, status: Status, part: str) -> list[tuple[str, str]]:
        if status in ENDS:
            return [(f"ended:{status}", "ends")]
        if status is Status.READY:
            lanes, aside = await self._core.ask_all(part, [("SMEMBERS", f"{part}lanes"), ("SMEMBERS", f"{part}aside")])
            streams = [(f"stream:{name.decode()}", "stream") for name in lanes]
            return streams + [(name.decode(), "zset") for name in aside]
        if status is Status.ASSIGNED:
            workers = await self._core.ask(part, "ZRANGE", f"{part}inboxes", 0, -1)
            return [(f"inbox:{worker.decode()}", "zset") for worker in workers]
        if status is Status.RUNNING:
            workers = await self._core.ask(part, "ZRANGE", f"{part}lessees", 0, -1)
            return [(f"leases:{worker.decode()}", "zset") for worker in workers]
        return [("delayed" if status is Status.PENDING else str(status), "zset")]

    async def _read_home(self, home: Home, place: int, count: int) -> tuple[list[str], list[int]]:
        """Ids from a place on, and the place after each."""
        part = self._core.layout.parts[home.turn[1]]
        if home.kind == "zset":
            members = await self._core.ask(part, "ZRANGE", home.key, place, place + count - 1)
            ids = [member.decode()[11:] if home.tail else member.decode() for member in members]
            return ids, [place + number for number in range(1, len(ids) + 1)]
        if home.kind == "ends":
            start = f"({place}-0" if place else "+"
            entries = await self._core.ask(part, "XREVRANGE", home.key, start, "-", "COUNT", count)
        else:
            entries = await self._core.ask(
                part, "XRANGE", home.key, f"({place}-0" if place else "-", "+", "COUNT", count
            )
        return [entry[1][1].decode() for entry in entries], [int(entry[0].partition(b"-")[0]) for entry in entries]

    async def _records(self, home: Home, ids: list[str]) -> list[Record | None]:
        if not ids:
            return []
        part = self._core.layout.parts[home.turn[1]]
        commands: list[tuple[Any, ...]] = [("MGET", *(f"{part}task:{task_id}" for task_id in ids))]
        if home.status in HELD:
            commands.append(("ZMSCORE", home.key, *ids))
        values, *leases = await self._core.ask_all(part, commands)
        ends = leases[0] if leases else [None] * len(ids)
        return [
            None if value is None else unpack(task_id, value, int(float(end or 0)), home.status)
            for task_id, value, end in zip(ids, values, ends, strict=True)
        ]

    # --- counts

    async def stats(self) -> Stats:
        statuses = dict.fromkeys(Status, 0)
        ready: dict[tuple[str, int], int] = {}
        parked: dict[tuple[str, str], int] = {}
        dropped = 0
        for reply in await asyncio.gather(*(self._core.run("stats", part) for part in self._core.layout.parts)):
            for status, count in zip(COUNTED, reply, strict=False):
                statuses[status] += count
            dropped += reply[len(COUNTED)]
            lanes = reply[len(COUNTED) + 1 :]
            for name, count in zip(lanes[::2], lanes[1::2], strict=True):
                _count_lane(name.decode(), count, ready, parked)
        statuses[Status.READY] = sum(ready.values())
        workers = await self._core.ask(self._core.layout.root, "ZCARD", f"{self._core.layout.root}workers:online")
        return Stats(statuses, ready, parked, workers, dropped)

    async def waiting_since(self) -> dict[str, int]:
        homes: dict[str, list[Home]] = {}
        for home in await self._homes(Status.READY):
            homes.setdefault(self._core.layout.parts[home.turn[1]], []).append(home)
        found = await asyncio.gather(*(self._heads(part, theirs) for part, theirs in homes.items()))
        return first_waits(record for records in found for record in records)

    async def _heads(self, part: str, homes: list[Home]) -> list[Record]:
        """The first task of each lane, and the first few of a fair one, if they are still ready by the time they are
        looked at."""
        ids: list[str] = []
        for start in range(0, len(homes), STEP):
            step = homes[start : start + STEP]
            commands = [
                ("ZRANGE", home.key, 0, FAIR_HEADS - 1 if home.tail else 0)
                if home.kind == "zset"
                else ("XRANGE", home.key, "-", "+", "COUNT", 1)
                for home in step
            ]
            for home, reply in zip(step, await self._core.ask_all(part, commands), strict=True):
                for head in reply:  # a member, or an entry with a field and the id
                    name = (head if isinstance(head, bytes) else head[1][1]).decode()
                    ids.append(name[11:] if home.tail else name)
        records = await self.records(ids)
        return [record for record in records if record is not None and record.status is Status.READY]

    async def dependants(self, task_id: str, limit: int) -> list[str]:
        part = self._core.part(task_id)
        found = await self._core.ask(part, "ZRANGE", f"{part}dependants:{task_id}", 0, limit - 1)
        return sorted(dependant.decode() for dependant in found)

    async def paused(self) -> list[Pause]:
        """What is paused in any partition: a pause or a resume may have been cut short."""
        core = self._core
        replies = await asyncio.gather(*(core.ask(part, "HGETALL", f"{part}pauses") for part in core.layout.parts))
        pauses: dict[bytes, Pause] = {}
        for reply in replies:
            for name, what in zip(reply[::2], reply[1::2], strict=True):
                kind, _, subject = name.decode().partition(":")
                pauses.setdefault(name, _pause(kind, subject, what))
        return sorted(pauses.values(), key=lambda pause: (pause.kind, pause.name))

    # --- soundness

    async def audit(self) -> list[str]:
        return await self._audit.examine()

    async def fullness(self) -> float:
        """That of the fullest of its servers, if they have a `maxmemory`."""
        replies = await asyncio.gather(*(self._core.ask(part, "INFO", "memory") for part in self._core.prefixes))
        return max(memory_used(read_info(reply)) for reply in replies)

    async def health(self) -> list[Finding]:
        return await Doctor(self._core).health()


def _read(task_id: str, value: bytes | None) -> Record | None:
    return None if value is None else unpack(task_id, value)


def _pause(kind: Any, name: str, stored: bytes) -> Pause:
    at, _, note = stored.decode("utf-8", "backslashreplace").partition(" ")
    return Pause(kind, name, int(at) if at.isdecimal() else 0, note)


def _read_cursor(query: Query, homes: list[Home]) -> tuple[int, int]:
    """The home and the place in it at which a page begins. If the home of the cursor has vanished since the last page,
    the page begins at the one after it."""
    if not query.cursor:
        return 0, 0
    place, _, rest = query.cursor.partition(".")
    part, _, name = rest.partition(".")
    if not (place.isdecimal() and part.isdecimal() and name):
        raise not_a_cursor(query.cursor)
    turn = (_rank_of(name), int(part), name)
    number = next((number for number, home in enumerate(homes) if home.turn >= turn), len(homes))
    return number, int(place) if number < len(homes) and homes[number].turn == turn else 0


def _rank_of(name: str) -> int:
    if name.startswith("leases:"):
        return ORDER.index(Status.RUNNING)
    if name.startswith("inbox:"):
        return ORDER.index(Status.ASSIGNED)
    known = {
        "delayed": Status.PENDING,
        "retrying": Status.RETRYING,
        "blocked": Status.BLOCKED,
    }
    known.update({f"ended:{status}": status for status in ENDS})
    return ORDER.index(known.get(name, Status.READY))


def _count_lane(name: str, count: int, ready: dict[tuple[str, int], int], parked: dict[tuple[str, str], int]) -> None:
    """Add up the tasks of a lane. Main lanes are named `<band>:<queue>`, others `front:<band>:<queue>`,
    `fair:<band>:<queue>` or `side:<band>:<queue>/<kind>`."""
    place, _, lane = name.partition(":") if name.startswith(("front:", "side:", "fair:")) else ("", "", name)
    band, _, rest = lane.partition(":")
    queue, _, kind = rest.partition("/")
    ready[queue, BAND_NAMES[band]] = ready.get((queue, BAND_NAMES[band]), 0) + count
    if place == "side":
        lane_of_type = queue, kind.partition(" ")[0]
        parked[lane_of_type] = parked.get(lane_of_type, 0) + count
