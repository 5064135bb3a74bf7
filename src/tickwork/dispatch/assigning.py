"""The leader's duty `assign`: it gives ready tasks to workers that wait to be given some.

A worker says in its heartbeats which of its queues it wants to be given tasks of (`Worker.assigned`), so the leader
needs no configuration but the strategy. Two leaders at a time would give some workers more than they have slots for;
what a worker does not take in time goes back to its queue.
"""

from __future__ import annotations

import asyncio
import time

from tickwork.dispatch.strategies import Candidate, Load, Strategy
from tickwork.model.members import Worker
from tickwork.model.needs import may_run
from tickwork.model.tasks import ParkReason, Priority
from tickwork.observe.loggers import Log
from tickwork.store.contract import LOOK_MAX, MANY_MAX, Aside, Assignment, Look, Seen, Store, Waiting

HOLD = 10_000  # milliseconds in which a worker has to take what it was given
MEMBERS_FOR = 0.25  # seconds for which the list of workers is trusted
NOBODY_FOR = 1.0  # the same while none of them waits to be given tasks
BEYOND = 16  # tasks more than there are free slots that a look asks for, once some found no worker
QUIET = 0.1  # seconds between two looks while there may be work of which nobody tells
PAUSE = 0.002  # seconds between two rounds while there is much to do: few large ones cost less than many small ones
ROUNDS = 20  # in one run of the duty, so that a node that no longer leads soon stops
PRIORITY_OF = (Priority.HIGH, Priority.NORMAL, Priority.LOW)  # by band


class Assigner:
    def __init__(self, store: Store, strategy: Strategy, log: Log) -> None:
        self._store = store
        self._pick = strategy
        self._log = log
        self._workers: dict[str, Worker] = {}  # those that may be given tasks
        self._lost: set[str] = set()  # whose inboxes were emptied
        self._looked_at = -MEMBERS_FOR  # when they were listed
        self._shared = False  # some of the queues are pulled from as well
        self._picks: dict[str, float] = {}
        self._aside: frozenset[str] = frozenset()  # kinds that had tasks in side lanes when it last looked
        self._beyond = 0
        self._assigned_at = 0.0  # when there was something to assign

    async def work(self) -> float | None:
        """Assign what can be assigned now."""
        await self._list_workers()
        queues = tuple(dict.fromkeys(queue for worker in self._workers.values() for queue in worker.assigned))
        if not queues:
            return None
        if (wait := self._assigned_at + PAUSE - time.monotonic()) > 0:
            await asyncio.sleep(wait)
        assignments: list[Assignment] = []
        aside: list[Aside] = []
        for _ in range(ROUNDS):
            slots = {worker.id: max(worker.capacity, 1) for worker in self._workers.values()}
            look = Look(queues, slots, self._startable_aside(), self._beyond, self._shared)
            seen = (await self._store.tasks.assign(assignments, HOLD, aside, look)).seen
            assert seen is not None, "a look was asked for"
            known, self._aside = self._aside, frozenset(each for each in seen.aside if _type(each) not in seen.paused)
            assignments, aside, free = self._share_out(seen)
            self._adapt(seen, assignments, aside, free)
            if not assignments and not aside and known >= self._aside:
                return self._rest()
            if not free:
                break
        if assignments or aside:
            await self._store.tasks.assign(assignments, HOLD, aside)
            self._assigned_at = time.monotonic()
        return self._rest() if not free else 0.0

    async def _list_workers(self) -> None:
        """All that wait to be given tasks. What was assigned to one that is gone, or drains, goes back."""
        now = time.monotonic()
        if now - self._looked_at < (MEMBERS_FOR if self._workers else NOBODY_FOR):
            return
        members = await self._store.members.workers()
        found = {each.id: each for each in members if each.assigned and each.status in ("idle", "busy")}
        lost = {each.id for each in members if each.lost_at is not None}
        if gone := ({*self._workers} - {*found}) | (lost - self._lost):  # the latter also when another node led
            await self._store.tasks.unassign([*gone], MANY_MAX)
        self._lost = lost
        shares = [self._picks[each.id] / max(each.weight, 1) for each in found.values() if each.id in self._picks]
        level = min(shares, default=0.0)
        self._picks = {each.id: self._picks.get(each.id, level * each.weight) for each in found.values()}
        given = {queue for each in found.values() for queue in each.assigned}
        pullers = [each for each in members if each.node and each.lost_at is None]
        pulled = {queue for each in pullers for queue in {*each.queues} - {*each.assigned}}
        self._shared = bool(given & pulled)
        self._workers, self._looked_at = found, now

    def _startable_aside(self) -> frozenset[str]:
        """The side lanes, as `<queue>/<kind>`, whose tasks some worker may run now."""
        return frozenset(lane for lane in self._aside if self._has_worker(*lane.split("/", 1)))

    def _has_worker(self, queue: str, kind: str) -> bool:
        return any(queue in worker.assigned and _may_run(worker, kind) for worker in self._workers.values())

    def _rest(self) -> float | None:
        """Until when there may be more to do of which nobody tells: a worker whose slots are free again does not look
        into side lanes, and where others pull, they may have taken the wake-up."""
        return QUIET if self._shared or self._startable_aside() else None

    def _share_out(self, seen: Seen) -> tuple[list[Assignment], list[Aside], int]:
        """Who gets which of these tasks, what nobody can run, and how many slots are left."""
        loads = {
            worker.id: Load(
                id=worker.id, weight=max(worker.weight, 1), capacity=max(worker.capacity, 1),
                running=seen.loads[worker.id], picks=self._picks[worker.id],
            )
            for _, worker in sorted(self._workers.items())
        }  # fmt: skip
        suitable: dict[tuple[str, str], list[Load]] = {}
        assignments: list[Assignment] = []
        aside: list[Aside] = []
        free = sum(load.free for load in loads.values())
        for task in seen.waiting:
            if not free:
                break
            able = suitable.get((task.queue, task.kind))
            if able is None:
                able = suitable[task.queue, task.kind] = [
                    loads[worker.id]
                    for worker in self._workers.values()
                    if task.queue in worker.assigned and _may_run(worker, task.kind)
                ]
            if task.type in seen.paused or not able:
                aside.append(Aside(task.id, self._why_not(task, seen)))
            elif (chosen := self._pick(_candidate(task), able)) is not None:
                chosen.running += 1
                chosen.picks += 1
                free -= 1
                assignments.append(Assignment(task.id, chosen.id))
        self._picks = {load.id: load.picks for load in loads.values()}
        return assignments, aside, free

    def _why_not(self, task: Waiting, seen: Seen) -> ParkReason:
        if task.type in seen.paused:
            return ParkReason.TYPE_PAUSED
        known = any(task.queue in each.assigned and task.type in each.task_types for each in self._workers.values())
        return ParkReason.LABELS_MISSING if known else ParkReason.TYPE_UNKNOWN

    def _adapt(self, seen: Seen, assignments: list[Assignment], aside: list[Aside], free: int) -> None:
        """Look further if slots are left, and tasks whose workers are full stand before others."""
        in_vain = len(seen.waiting) - len(assignments) - len(aside)
        if free and in_vain:
            self._beyond = min(max(4 * self._beyond, BEYOND), LOOK_MAX)
        elif not in_vain:
            self._beyond = 0


def _candidate(task: Waiting) -> Candidate:
    return Candidate(id=task.id, type=task.type, queue=task.queue, priority=PRIORITY_OF[task.band], key=task.key)


def _may_run(worker: Worker, kind: str) -> bool:
    return may_run(kind, worker.task_types, worker.id, worker.labels)


def _type(lane: str) -> str:
    return lane.partition("/")[2].partition(" ")[0]
