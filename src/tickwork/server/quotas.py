"""How much of a namespace may be used through the API, so that one caller cannot fill a store that many share."""

from __future__ import annotations

import time
from collections.abc import Iterable, Set

from tickwork.model.tasks import ENDS
from tickwork.server.problems import Refused
from tickwork.server.settings import Quota
from tickwork.server.spaces import Space
from tickwork.store.contract import Stats

REMEMBERED = 86_400.0  # seconds for which a name counts after it was last submitted


def _full(what: str, most: int, advice: str) -> Refused:
    return Refused(
        429, "quota", f"the namespace has {most:,} {what} already, which is the most: {advice}", retry_after=60.0
    )


class _Names:
    """Names that were submitted here in the last day. No counter of a store has all of them: a delayed task is in none
    by its queue, and none is by type."""

    def __init__(self) -> None:
        self._last: dict[str, float] = {}

    def add(self, names: Iterable[str]) -> None:
        now = time.monotonic()
        for name in names:
            self._last[name] = now

    def __call__(self) -> Set[str]:
        oldest = time.monotonic() - REMEMBERED
        self._last = {name: at for name, at in self._last.items() if at > oldest}
        return self._last.keys()


class _Used:
    """What this server has let into a namespace, beyond what the store has counted."""

    def __init__(self) -> None:
        self.types = _Names()
        self.queues = _Names()
        self._stats: Stats | None = None
        self._since = 0

    def waiting(self, stats: Stats, more: int) -> int:
        """Tasks that have not ended, as of a reading, with those that were let through since, and so many more."""
        if stats is not self._stats:
            self._stats, self._since = stats, 0
        return sum(number for status, number in stats.statuses.items() if status not in ENDS) + self._since + more

    def let_through(self, count: int) -> None:
        self._since += count


class Quotas:
    """Docs say what is counted, and how exactly (access.md, "Quotas")."""

    def __init__(self, quota: Quota) -> None:
        self.quota = quota
        self._used: dict[str, _Used] = {}  # by namespace

    async def check_submit(self, space: Space, names: Iterable[tuple[str, str | None]], count: int) -> None:
        """`names` are the types and queues of the tasks."""
        if count > self.quota.batch:
            raise Refused(400, "too_many_tasks", f"one request submits at most {self.quota.batch:,} tasks")
        used, wanted = self._used.setdefault(space.namespace, _Used()), set(names)
        await self._check_types(space, used, {kind for kind, _ in wanted})
        stats = await space.stats()
        # From here on nothing is awaited, so that two who ask at once are counted one after the other.
        if used.waiting(stats, count) > self.quota.waiting:
            raise _full("unfinished tasks", self.quota.waiting, "wait until some have ended")
        queues = {queue for queue, _ in stats.ready} | {queue for queue, _ in stats.parked} | used.queues()
        fresh = {queue or "default" for _, queue in wanted} - queues
        if fresh and len(queues) + len(fresh) > self.quota.queues:
            raise _full("queues", self.quota.queues, "use one of them")
        used.let_through(count)

    async def _check_types(self, space: Space, used: _Used, wanted: set[str]) -> None:
        types = used.types()
        new = wanted - types
        if new and len(types) + len(new) > self.quota.types:
            served = {kind for worker in await space.members() for kind in worker.task_types}
            if new - served:
                raise _full("task types", self.quota.types, "use one that a worker knows")

    def count(self, space: Space, names: Iterable[tuple[str, str | None]]) -> None:
        """Types and queues of tasks that were taken: those of refused ones use up nothing."""
        used, wanted = self._used.setdefault(space.namespace, _Used()), set(names)
        used.types.add(kind for kind, _ in wanted)
        used.queues.add(queue or "default" for _, queue in wanted)

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

    async def check_pauses(self, space: Space, kind: str, name: str) -> None:
        """A queue or type that is paused already may be paused again, with another note."""
        pauses = await (await space.store()).queries.paused()
        if len(pauses) >= self.quota.pauses and (kind, name) not in {(each.kind, each.name) for each in pauses}:
            raise _full("pauses", self.quota.pauses, "resume some first")
