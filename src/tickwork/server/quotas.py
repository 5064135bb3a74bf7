"""How much of a namespace may be used through the API, so that one caller cannot fill a store that many share."""

from __future__ import annotations

from collections.abc import Iterable

from tickwork.model.tasks import ENDS
from tickwork.server.problems import Refused
from tickwork.server.settings import Quota
from tickwork.server.spaces import Space


def _full(what: str, most: int, advice: str) -> Refused:
    return Refused(
        429, "quota", f"the namespace has {most:,} {what} already, which is the most: {advice}", retry_after=60.0
    )


class Quotas:
    """Counts are those of the store as of a moment ago, so that a few may come through beyond a bound."""

    def __init__(self, quota: Quota) -> None:
        self.quota = quota
        self._types: dict[str, set[str]] = {}  # by namespace, that were submitted here

    async def check_submit(self, space: Space, names: Iterable[tuple[str, str | None]], count: int) -> None:
        """`names` are the types and queues of the tasks."""
        if count > self.quota.batch:
            raise Refused(400, "too_many_tasks", f"one request submits at most {self.quota.batch:,} tasks")
        stats = await space.stats()
        waiting = sum(number for status, number in stats.statuses.items() if status not in ENDS)
        if waiting + count > self.quota.waiting:
            raise _full("unfinished tasks", self.quota.waiting, "wait until some have ended")
        wanted = set(names)
        queues = {queue for queue, _ in stats.ready} | {queue for queue, _ in stats.parked}
        fresh = {queue or "default" for _, queue in wanted} - queues
        if fresh and len(queues) + len(fresh) > self.quota.queues:
            raise _full("queues", self.quota.queues, "use one of them")
        types = self._types.setdefault(space.namespace, set())
        new = {kind for kind, _ in wanted} - types
        if new and len(types) + len(new) > self.quota.types:
            served = {kind for worker in await space.members() for kind in worker.task_types}
            if new - served:
                raise _full("task types", self.quota.types, "use one that a worker knows")
        types |= new

    async def check_schedules(self, space: Space, count: int = 1) -> None:
        store = await space.store()
        found, cursor = 0, None
        while found + count <= self.quota.schedules:
            page, cursor = await store.schedules.page(cursor)
            found += len(page)
            if cursor is None:
                break
        if found + count > self.quota.schedules:
            raise _full("schedules", self.quota.schedules, "delete some first")

    async def check_pauses(self, space: Space) -> None:
        if len(await (await space.store()).queries.paused()) >= self.quota.pauses:
            raise _full("pauses", self.quota.pauses, "resume some first")
