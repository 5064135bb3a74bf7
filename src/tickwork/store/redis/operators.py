"""What operators may do with tasks, queues and types on Redis."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from itertools import chain, compress
from typing import Any, Literal

from tickwork.model.tasks import DELAYED, ENDS, MOVABLE, UNKNOWN, Record, Status
from tickwork.model.transitions import waits_again
from tickwork.store.contract import Edge, Retried
from tickwork.store.redis.core import Core, Part
from tickwork.store.redis.indexes import Indexes
from tickwork.store.redis.ops.audit import Audit
from tickwork.store.redis.partitions import PartitionedTasks
from tickwork.store.redis.queries import Queries
from tickwork.store.redis.records import CODES, STATUSES
from tickwork.store.redis.tasks import SLICE, Tasks
from tickwork.store.rules import LOST_WORKER_KEPT, due_text

Act = Callable[[str, list[str]], Awaitable[list[Status | None]]]


class Operators(Part):
    def __init__(self, core: Core, tasks: Tasks, queries: Queries, audit: Audit, indexes: Indexes) -> None:
        super().__init__(core)
        self._tasks = tasks
        self._queries = queries
        self._audit = audit
        self._indexes = indexes

    async def cancel(
        self, ids: Sequence[str], force: bool, reason: str = "", only: Status | None = None
    ) -> list[Status | None]:
        async def act(prefix: str, group: list[str]) -> list[Status | None]:
            return await self._run("cancel", prefix, int(force), reason, CODES[only] if only else "", *group)

        return await self._each(ids, act)

    # The following methods look up the statuses first and answer those, so that a call which is repeated because its
    # reply was lost gets the same answer.

    async def run_now(self, ids: Sequence[str], only: Status | None = None, held: bool = False) -> list[Status | None]:
        wanted, which = DELAYED if only is None else DELAYED & {only}, (CODES[only] if only else "", int(held))

        async def act(prefix: str, group: list[str]) -> list[Status | None]:
            seen = [status for status, _ in await self._states(prefix, group)]
            delayed = [task_id for task_id, status in zip(group, seen, strict=True) if status in wanted]
            found = iter(await self._run("run_now", prefix, *which, *delayed) if delayed else ())
            answers = [(status, next(found) if status in wanted else status) for status in seen]
            return [now if now in (None, Status.CANCELLED, *DELAYED) else status for status, now in answers]

        return await self._each(ids, act)

    async def reschedule(self, ids: Sequence[str], at: int) -> list[Status | None]:
        async def act(prefix: str, group: list[str]) -> list[Status | None]:
            records = await self._queries.records(group)
            movable = [record for record in records if record is not None and record.status in MOVABLE]
            args = chain.from_iterable((each.id, each.seq, _expires(each)) for each in movable)
            found = await self._run("reschedule", prefix, at, due_text(at), *args) if movable else []
            seen = {record.id: record.status for record in records if record is not None}
            moved_on = {each.id: now for each, now in zip(movable, found, strict=True) if now not in MOVABLE}
            return [moved_on.get(task_id, seen.get(task_id)) for task_id in group]

        return await self._each(ids, act)

    async def delete(self, ids: Sequence[str], only: Status | None = None) -> list[Status | None]:
        async def act(prefix: str, group: list[str]) -> list[Status | None]:
            states = await self._states(prefix, group)
            ended = [status in ENDS and only in (None, status) for status, _ in states]
            proofs = [(task_id, mark) for task_id, (_, mark) in zip(group, states, strict=True)]
            args = chain.from_iterable(compress(proofs, ended))
            found = iter(await self._run("delete", prefix, *args) if any(ended) else ())
            return [next(found) or status if end else status for end, (status, _) in zip(ended, states, strict=True)]

        return await self._each(ids, act)

    async def retry(self, ids: Sequence[str], only: Status | None = None) -> list[Retried]:
        distinct = list(dict.fromkeys(ids))
        answers = dict.fromkeys(distinct, Retried(None))
        for start in range(0, len(distinct), SLICE):
            records = await self._queries.records(distinct[start : start + SLICE])
            answers |= await self._retry_slice([record for record in records if record is not None], only)
        return [answers[task_id] for task_id in ids]

    async def _retry_slice(self, records: list[Record], only: Status | None) -> dict[str, Retried]:
        """Several partitions: those that depend on others are retried alone, after those before them."""
        answers: dict[str, Retried] = {}
        together: list[Record] = []
        for record in records:
            if isinstance(self._tasks, PartitionedTasks) and record.spec.depends_on:
                answers |= await self._retry_plain(together, only)
                together = []
                answers[record.id] = await self._retry_dependent(self._tasks, record, only)
            else:
                together.append(record)
        return answers | await self._retry_plain(together, only)

    async def _retry_plain(self, records: list[Record], only: Status | None) -> dict[str, Retried]:
        async def act(prefix: str, group: list[Record]) -> list[Retried]:
            return await self._retry(prefix, [(record, record.spec.depends_on) for record in group], only)

        ids = [record.id for record in records]
        return dict(zip(ids, await self._core.by_part(records, ids, act), strict=True)) if ids else {}

    async def _retry_dependent(self, tasks: PartitionedTasks, record: Record, only: Status | None) -> Retried:
        """List the task with each upstream, retry it, and list it again, as in a submit."""
        if not record.status.ended or only not in (None, record.status):
            return Retried(record.status)
        upstreams = dict(
            zip(record.spec.depends_on, await self._queries.records(list(record.spec.depends_on)), strict=True)
        )
        waiting, never = waits_again(record, upstreams.get)
        if never:
            return Retried(record.status, never)
        await tasks.wait_for(record.spec, waiting)
        (found,) = await self._retry(self._core.part(record.id), [(record, tuple(waiting))], only, looked=True)
        answers = await tasks.wait_for(record.spec, waiting)
        await tasks.resolve([Edge(record.id, each, end == b"s") for each, end in answers.items() if end != b"w"])
        return found

    async def _retry(
        self,
        prefix: str,
        group: list[tuple[Record, tuple[str, ...]]],
        only: Status | None,
        looked: bool = False,
    ) -> list[Retried]:
        """The script reads no bodies, so it is told on which tasks each depends."""
        args: list[Any] = [CODES[only] if only else "", int(looked)]
        for record, depends_on in group:
            upstreams = dict.fromkeys(depends_on)
            dedup_ttl = 0 if record.spec.dedup_key is None else record.spec.dedup_ttl
            args += (record.id, f"{record.seq}.{record.fence}", dedup_ttl, len(upstreams), *upstreams)
        replies, *queues = await self._core.run("retry", prefix, *args)
        self._core.wake({queue.decode() for queue in queues}, prefix)
        return [_retried(record, reply.decode()) for (record, _), reply in zip(group, replies, strict=True)]

    async def _each(self, ids: Sequence[str], act: Act) -> list[Status | None]:
        """Do it to each id once, `SLICE` of them in one script; partitions at the same time."""
        distinct = list(dict.fromkeys(ids))
        answers = dict(zip(distinct, await self._core.by_slices(distinct, distinct, SLICE, act), strict=True))
        return [answers[task_id] for task_id in ids]

    async def _run(self, script: str, prefix: str, *args: Any) -> list[Status | None]:
        letters, *queues = await self._core.run(script, prefix, *args)
        self._core.wake({queue.decode() for queue in queues}, prefix)
        return [STATUSES.get(letter) for letter in letters.decode()]

    async def _states(self, prefix: str, ids: list[str]) -> list[tuple[Status | None, bytes]]:
        """The status of each task, and its mark."""
        found, *_ = await self._core.run("state", prefix, *ids)
        return [(STATUSES.get(each[:1].decode()), each[1:]) for each in found]

    async def prune(self, limit: int) -> int:
        core = self._core
        replies = await core.reach.each(
            core.prefixes, lambda prefix: core.reached("prune", prefix, limit, LOST_WORKER_KEPT)
        )
        for _, dropped, *forgotten in replies.values():
            core.warn_of_dropped(dropped)
            for worker_id in () if core.alone else forgotten:
                await self._leave_parts(worker_id)
        return sum(reply[0] for reply in replies.values())

    async def _leave_parts(self, worker_id: bytes) -> None:
        core = self._core
        await core.reach.each(core.layout.parts, lambda part: core.reached("leave", part, worker_id, ""), needed=False)

    async def pause(self, kind: Literal["queue", "type"], name: str, note: str = "") -> None:
        for number, part in enumerate(self._core.layout.parts):
            await self._core.run("pause", part, kind, name, "pause", note, quiet=number > 0)

    async def resume(self, kind: Literal["queue", "type"], name: str) -> bool:
        paused = False
        # The first partition comes last, as it was the first to be paused: it shows a resume that was cut short.
        for number, part in reversed(list(enumerate(self._core.layout.parts))):
            # Looked up first, so that a repeated call gets the same answer.
            paused = await self._core.ask(part, "HGET", f"{part}pauses", f"{kind}:{name}") is not None or paused
            await self._core.run("pause", part, kind, name, "resume", "", quiet=number > 0)
        for part in self._core.layout.parts:
            self._core.wake(set(self._core.queues), part)
        return paused

    async def index(self, on: bool, report: Callable[[int], None] | None = None) -> bool:
        return await self._indexes.keep(on, report)

    async def mend(self) -> list[str]:
        return await self._audit.examine(mend=True)


def _expires(record: Record) -> int | str:
    return "" if record.spec.expires is None else record.spec.expires


def _retried(record: Record, reply: str) -> Retried:
    if reply[0] == "=":
        return Retried(record.status)
    found = STATUSES.get(reply[0])
    damaged = record.spec.type == UNKNOWN and found is not None and found.ended
    return Retried(found, reply[1:], damaged)
