"""What operators may do with tasks, queues and types on Redis."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from tickwork.model.tasks import DELAYED, ENDS, Record, Status
from tickwork.model.transitions import waits_again
from tickwork.store.redis.core import Core, Part
from tickwork.store.redis.ops.audit import Audit
from tickwork.store.redis.partitions import PartitionedTasks
from tickwork.store.redis.queries import Queries
from tickwork.store.redis.records import CODES, unpack
from tickwork.store.redis.tasks import Tasks, status_of
from tickwork.store.rules import LOST_WORKER_KEPT


class Operators(Part):
    def __init__(self, core: Core, tasks: Tasks, queries: Queries, audit: Audit) -> None:
        super().__init__(core)
        self._tasks = tasks
        self._queries = queries
        self._audit = audit

    async def cancel(self, task_id: str, force: bool, reason: str = "") -> Status | None:
        return status_of(await self._core.run("cancel", self._core.part(task_id), task_id, int(force), reason))

    # The following methods look up the status first and answer that, so that a call which is repeated because its reply
    # was lost gets the same answer.

    async def _state(self, task_id: str) -> tuple[Status | None, bytes]:
        """The status of a task, and its mark."""
        found = await self._core.run("state", self._core.part(task_id), task_id)
        return (None, b"") if found is None else (status_of(found[0]), found[1])

    async def run_now(self, task_id: str) -> Status | None:
        seen, _ = await self._state(task_id)
        if seen not in DELAYED:
            return seen
        found = status_of(await self._core.run("run_now", self._core.part(task_id), task_id))
        await self._wake_for(task_id)
        return found if found in (None, Status.CANCELLED) else seen

    async def retry(self, task_id: str, only: Status | None = None) -> Status | None:
        record = await self._queries.get(task_id)  # the script cannot read its dependencies, which are in the body
        if record is None:
            return None
        if isinstance(self._tasks, PartitionedTasks) and record.spec.depends_on:
            found = await self._retry_dependent(self._tasks, record, only)
        else:
            found = await self._retry(record, only, dict.fromkeys(record.spec.depends_on))
        self._core.wake({record.spec.queue}, self._core.part(task_id))
        return found

    async def _retry_dependent(self, tasks: PartitionedTasks, record: Record, only: Status | None) -> Status | None:
        """List the task with each upstream, retry it, and list it again, as in a submit."""
        upstreams = {each: await self._queries.get(each) for each in record.spec.depends_on}
        waiting, never = waits_again(record, upstreams.get)
        if never or not record.status.ended:
            return record.status
        await tasks.wait_for(record.spec, waiting)
        found = await self._retry(record, only, waiting, looked=True)
        for upstream, answer in (await tasks.wait_for(record.spec, waiting)).items():
            if answer != b"w":
                await tasks.resolve(record.id, upstream, answer == b"s")
        return found

    async def _retry(
        self, record: Record, only: Status | None, upstreams: Iterable[str], looked: bool = False
    ) -> Status | None:
        mark = f"{record.seq}.{record.fence}"
        dedup_ttl = 0 if record.spec.dedup_key is None else record.spec.dedup_ttl
        args = (record.id, CODES[only] if only else "", mark, int(looked), dedup_ttl, *upstreams)
        reply = await self._core.run("retry", self._core.part(record.id), *args)
        return record.status if reply == b"=" else status_of(reply)

    async def delete(self, task_id: str, only: Status | None = None) -> Status | None:
        seen, mark = await self._state(task_id)
        if seen not in ENDS or only not in (None, seen):
            return seen
        return status_of(await self._core.run("delete", self._core.part(task_id), task_id, mark)) or seen

    async def prune(self, limit: int) -> int:
        replies = await self._core.everywhere(
            self._core.run("prune", prefix, limit, LOST_WORKER_KEPT) for prefix in self._core.prefixes
        )
        for _, dropped, *forgotten in replies:
            self._core.warn_of_dropped(dropped)
            if not self._core.alone:
                for worker_id in forgotten:
                    await self._core.everywhere(
                        self._core.run("leave", part, worker_id) for part in self._core.layout.parts
                    )
        return sum(reply[0] for reply in replies)

    async def pause(self, kind: Literal["queue", "type"], name: str, note: str = "") -> None:
        for number, part in enumerate(self._core.layout.parts):
            await self._core.run("pause", part, kind, name, "pause", note, quiet=number > 0)

    async def resume(self, kind: Literal["queue", "type"], name: str) -> bool:
        paused = False
        for number, part in enumerate(self._core.layout.parts):
            # Looked up first, so that a repeated call gets the same answer.
            paused = await self._core.ask(part, "HGET", f"{part}pauses", f"{kind}:{name}") is not None or paused
            await self._core.run("pause", part, kind, name, "resume", "", quiet=number > 0)
        for part in self._core.layout.parts:
            self._core.wake(set(self._core.queues), part)
        return paused

    async def mend(self) -> list[str]:
        return await self._audit.examine(mend=True)

    async def _wake_for(self, task_id: str) -> None:
        if not self._core.alone:
            part = self._core.part(task_id)
            value = await self._core.ask(part, "GET", f"{part}task:{task_id}")
            if value is not None:
                self._core.wake({unpack(task_id, value).spec.queue}, part)
