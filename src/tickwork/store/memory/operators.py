"""What operators and onlookers may do with the memory store: steer tasks, list and count them, prove it sound."""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Iterator
from heapq import merge
from itertools import dropwhile, islice
from operator import attrgetter
from typing import Literal

from msgspec.structs import replace

from tickwork.model import transitions
from tickwork.model.facts import Fact
from tickwork.model.tasks import DELAYED, ENDS, Record, Status
from tickwork.store.contract import PAGE_MAX, Pause, Query, Stats
from tickwork.store.hints import CONTROL, WORK, Hint
from tickwork.store.memory.homes import Homes
from tickwork.store.memory.members import atomic
from tickwork.store.rules import ENDED_KEPT, LOST_WORKER_KEPT, matches, read_cursor, unsound


class Operators(Homes):
    @atomic
    def cancel(self, task_id: str, force: bool, reason: str = "") -> Status | None:
        record = self._tasks.get(task_id)
        if record is None:
            return None
        found, now = record.status, self.now()
        if found is Status.RUNNING and force:
            self._append_task(now, transitions.ask_cancel(record, reason), record, reason)
            self.hints.notify(CONTROL)
        elif found is not Status.RUNNING and not found.ended:
            self._leave(record)
            self._settle(record, now, transitions.cancel(record, now, reason), reason)
        return found

    @atomic
    def run_now(self, task_id: str) -> Status | None:
        record = self._tasks.get(task_id)
        if record is None:
            return None
        found = record.status
        if found in DELAYED:
            self._leave(record)
            self._settle(record, self.now(), transitions.run_now(record))
            self.hints.notify(WORK)
        return found

    @atomic
    def retry(self, task_id: str, only: Status | None = None) -> Status | None:
        record = self._tasks.get(task_id)
        if record is None:
            return None
        found = record.status
        if not found.ended or only not in (None, found):
            return found
        waiting, never = transitions.waits_again(record, self._tasks.get)
        if not never:
            self._leave(record)
            self._outbox.pop(task_id, None)
            now = self.now()
            if record.spec.dedup_ttl and self._dedup_holder(record.spec, now) in (None, task_id):
                self._hold_dedup(record.spec, now)
            self._settle(record, now, transitions.retry(record, waiting, now))
            self.hints.notify(WORK)
        return found

    @atomic
    def delete(self, task_id: str, only: Status | None = None) -> Status | None:
        record = self._tasks.get(task_id)
        if record is None:
            return None
        if record.status.ended and only in (None, record.status):
            self._append_task(self.now(), Fact.TASK_DELETED, record)
            self._free_dedup(record)
            self._forget(record)
        return record.status

    @atomic
    def prune(self, limit: int) -> int:
        now = self.now()
        for key in self._dedup_ends.until(now - ENDED_KEPT, limit):
            del self._dedup[key]
        self._prune_locks(now, limit)
        pruned = self._prune_ends(now - self.policy.retention, limit)
        forgotten = [
            w.id for w in self._workers.values() if w.lost_at is not None and w.lost_at <= now - LOST_WORKER_KEPT
        ]
        for worker_id in forgotten:
            self._forget_worker(worker_id)
        return pruned

    def _prune_ends(self, until: int, limit: int) -> int:
        excess = sum(map(len, self._ends.values())) - self.policy.retention_max
        by_end = merge(*(shelf.values() for shelf in self._ends.values()), key=attrgetter("position"))
        told = (record for record in by_end if record.id not in self._outbox)
        pruned: list[Record] = []
        for record in islice(told, limit):
            if (record.finished_at or 0) > until and len(pruned) >= excess:
                break
            pruned.append(record)
        for record in pruned:
            self._forget(record)
        return len(pruned)

    @atomic
    def pause(self, kind: Literal["queue", "type"], name: str, note: str = "") -> None:
        now = self.now()
        self._pauses[kind, name] = Pause(kind, name, now, note)
        self._append(now, Fact.QUEUE_PAUSED if kind == "queue" else Fact.TYPE_PAUSED, name, note)

    @atomic
    def resume(self, kind: Literal["queue", "type"], name: str) -> bool:
        if self._pauses.pop((kind, name), None) is None:
            return False
        self._append(self.now(), Fact.QUEUE_RESUMED if kind == "queue" else Fact.TYPE_RESUMED, name)
        self.hints.notify(WORK)
        return True

    @atomic
    def paused(self) -> list[Pause]:
        return sorted(self._pauses.values(), key=lambda pause: (pause.kind, pause.name))

    @atomic
    def get(self, task_id: str, waiter: Hint | None = None) -> Record | None:
        record = self._tasks.get(task_id)
        return None if record is None else replace(record)

    @atomic
    def page(self, query: Query) -> tuple[list[Record], str | None]:
        if query.status in ENDS:
            return self._page_of_ends(query, self._ends[query.status])
        if query.status in DELAYED:
            return self._page_of_delayed(query)
        start = min(*read_cursor(query, self._seq + 1), self._seq + 1)
        stop = max(start - 1 - PAGE_MAX, 0)
        found: list[Record] = []
        for seq in range(start - 1, stop, -1):
            record = self._by_seq.get(seq)
            if record is not None and matches(record, query):
                found.append(replace(record))
                if len(found) == query.limit:
                    return found, str(seq) if seq > 1 else None
        return found, str(stop + 1) if stop > 0 else None

    def _page_of_delayed(self, query: Query) -> tuple[list[Record], str | None]:
        found: list[Record] = []
        last = ""
        for looked, task_id in enumerate(self._delayed.after(*read_cursor(query, 0, 0))):
            if looked == PAGE_MAX or len(found) == query.limit:
                return found, last
            record = self._tasks[task_id]
            last = f"{record.due_at}.{record.seq}"
            if matches(record, query):
                found.append(replace(record))
        return found, None

    @staticmethod
    def _page_of_ends(query: Query, shelf: OrderedDict[int, Record]) -> tuple[list[Record], str | None]:
        (before,) = read_cursor(query, 2**62)
        older = dropwhile(lambda position: position >= before, reversed(shelf))
        found: list[Record] = []
        for looked, position in enumerate(older):
            if looked == PAGE_MAX or len(found) == query.limit:
                return found, str(position + 1)
            if matches(shelf[position], query):
                found.append(replace(shelf[position]))
        return found, None

    @atomic
    def stats(self) -> Stats:
        parked: dict[tuple[str, str], int] = {}
        for (queue, _), lane in self._lanes.items():
            for kind, side in lane.sides.items():
                parked[queue, kind] = parked.get((queue, kind), 0) + len(side)
        return Stats(
            statuses=dict(self._counts),
            ready={key: len(lane) for key, lane in self._lanes.items() if len(lane)},
            parked=parked,
            workers=sum(1 for worker in self._workers.values() if worker.lost_at is None),
            dropped=self._dropped,
        )

    @atomic
    def audit(self) -> list[str]:
        homes: dict[str, list[str]] = {}
        for name, task_id in self._all_homes():
            homes.setdefault(task_id, []).append(name)
        problems = [f"task {i} is in {h} but has no record" for i, h in homes.items() if i not in self._tasks]
        found_counts = Counter(record.status for record in self._tasks.values())
        if any(found_counts[status] != count for status, count in self._counts.items()):
            problems.append(f"the counts by status are {self._counts}, not {found_counts}")
        for record in self._tasks.values():
            found, right = homes.get(record.id, []), _home_name(record)
            if found != [right]:
                problems.append(f"task {record.id} is {record.status}, so belongs in {right}, not {found}")
            problems.extend(f"task {record.id}: {problem}" for problem in unsound(record))
            for upstream in record.waiting:
                other = self._tasks.get(upstream)
                if (other is None or other.status in ENDS) and upstream not in self._outbox:
                    problems.append(f"task {record.id} waits for {upstream}, which will never tell")
        return problems

    async def mend(self) -> list[str]:
        """Nothing outside of this object can harm it, so there is nothing to mend."""
        return await self.audit()

    def _all_homes(self) -> Iterator[tuple[str, str]]:
        yield from (("delayed", task_id) for task_id in self._delayed)
        yield from (("blocked", task_id) for task_id in self._blocked)
        yield from (("leases", task_id) for task_id in self._leases)
        for key, lane in self._lanes.items():
            yield from ((f"lane {key}", record.id) for record in lane)
        for status, shelf in self._ends.items():
            yield from ((f"ends {status}", record.id) for record in shelf.values())


def _home_name(record: Record) -> str:
    status = record.status
    if status is Status.READY:
        return f"lane {(record.spec.queue, record.spec.band)}"
    if status in DELAYED:
        return "delayed"
    if status in ENDS:
        return f"ends {status}"
    return {Status.BLOCKED: "blocked", Status.RUNNING: "leases"}[status]
