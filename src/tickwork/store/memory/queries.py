"""Questions to the memory store: list and count tasks, prove it sound."""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Iterator
from itertools import chain, dropwhile

from msgspec.structs import replace

from tickwork.model import transitions
from tickwork.model.tasks import DELAYED, ENDS, MAY_EXPIRE, History, Place, Record, Status
from tickwork.store.contract import AHEAD_MAX, PAGE_MAX, Finding, Pause, Query, Situation, Stats
from tickwork.store.hints import Hint
from tickwork.store.memory.core import Core, Part, atomic
from tickwork.store.memory.homes import Homes
from tickwork.store.memory.lists import Lists, Numbers
from tickwork.store.memory.members import Members
from tickwork.store.rules import first_waits, matches, read_cursor, unsound


class Queries(Part):
    def __init__(self, core: Core, homes: Homes, members: Members) -> None:
        super().__init__(core)
        self._homes = homes
        self._members = members

    @atomic
    def time(self) -> int:
        return self._core.now()

    @atomic
    def dependants(self, task_id: str, limit: int) -> list[str]:
        return list(self._homes.waiting_for(task_id)[:limit])

    @atomic
    def situation(self, task_id: str) -> Situation | None:
        record = self._homes.tasks.get(task_id)
        if record is None:
            return None
        spec = record.spec
        concerned = [("queue", spec.queue), ("type", spec.type)]
        pauses = [pause for key, pause in sorted(self._homes.pauses.items()) if key in concerned]
        running = Counter(self._homes.tasks[each].worker_id or "" for each in self._homes.leases)
        ahead = self._ahead(record) if record.status is Status.READY else 0
        return Situation(replace(record), ahead, pauses, dict(running))

    def _ahead(self, record: Record) -> int:
        count = 0
        for band in range(record.spec.band + 1):
            lane = self._homes.lanes.get((record.spec.queue, band))
            if lane is None:
                continue
            behind = lane.in_turn()
            if band == record.spec.band and record.place is Place.SIDE:
                behind = iter(lane.shelf(record).values())
            for other in chain(lane.front.values(), behind):
                if other.id == record.id or count == AHEAD_MAX:
                    return count
                count += 1
        return count

    @atomic
    def paused(self) -> list[Pause]:
        return sorted(self._homes.pauses.values(), key=lambda pause: (pause.kind, pause.name))

    @atomic
    def get(self, task_id: str, waiter: Hint | None = None) -> Record | None:
        record = self._homes.tasks.get(task_id)
        return None if record is None else replace(record)

    @atomic
    def history(self, task_id: str) -> History:
        homes = self._homes
        return History(list(homes.attempts.get(task_id, ())), list(homes.lines.get(task_id, ())))

    @atomic
    def page(self, query: Query) -> tuple[list[Record], str | None]:
        if (numbers := self._homes.lists.of(query)) is not None:
            return self._page_of_list(query, numbers)
        if query.status in ENDS:
            return self._page_of_ends(query, self._homes.ends[query.status])
        if query.status in DELAYED:
            return self._page_of_delayed(query)
        start = min(*read_cursor(query, self._homes.seq + 1), self._homes.seq + 1)
        stop = max(start - 1 - PAGE_MAX, 0)
        found: list[Record] = []
        for seq in range(start - 1, stop, -1):
            record = self._homes.by_seq.get(seq)
            if record is not None and matches(record, query):
                found.append(replace(record))
                if len(found) == query.limit:
                    return found, str(seq) if seq > 1 else None
        return found, str(stop + 1) if stop > 0 else None

    def _page_of_list(self, query: Query, numbers: Numbers) -> tuple[list[Record], str | None]:
        found: list[Record] = []
        for looked, seq in enumerate(numbers.before(*read_cursor(query, self._homes.seq + 1))):
            if looked == PAGE_MAX or len(found) == query.limit:
                return found, str(seq + 1)
            record = self._homes.by_seq[seq]
            if matches(record, query):
                found.append(replace(record))
        return found, None

    def _page_of_delayed(self, query: Query) -> tuple[list[Record], str | None]:
        found: list[Record] = []
        last = ""
        for looked, task_id in enumerate(self._homes.delayed.after(*read_cursor(query, 0, 0))):
            if looked == PAGE_MAX or len(found) == query.limit:
                return found, last
            record = self._homes.tasks[task_id]
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
        for (queue, _), lane in self._homes.lanes.items():
            for kind, side in lane.sides.items():
                key = queue, kind.partition(" ")[0]
                parked[key] = parked.get(key, 0) + len(side)
        return Stats(
            statuses=dict(self._homes.counts),
            ready={key: len(lane) for key, lane in self._homes.lanes.items() if len(lane)},
            parked=parked,
            workers=self._members.count(),
            dropped=self._homes.dropped,
        )

    @atomic
    def waiting_since(self) -> dict[str, int]:
        heads = (head for lane in self._homes.lanes.values() for head in lane.heads())
        return first_waits(heads)

    @atomic
    def audit(self) -> list[str]:
        homes: dict[str, list[str]] = {}
        for name, task_id in self._all_homes():
            homes.setdefault(task_id, []).append(name)
        problems = [f"task {i} is in {h} but has no record" for i, h in homes.items() if i not in self._homes.tasks]
        found_counts = Counter(record.status for record in self._homes.tasks.values())
        if any(found_counts[status] != count for status, count in self._homes.counts.items()):
            problems.append(f"the counts by status are {self._homes.counts}, not {found_counts}")
        for record in self._homes.tasks.values():
            found, right = homes.get(record.id, []), _home_name(record)
            if found != [right]:
                problems.append(f"task {record.id} is {record.status}, so belongs in {right}, not {found}")
            problems.extend(f"task {record.id}: {problem}" for problem in unsound(record))
            for upstream in record.waiting:
                other = self._homes.tasks.get(upstream)
                if (other is None or other.status in ENDS) and upstream not in self._homes.outbox:
                    problems.append(f"task {record.id} waits for {upstream}, which has ended or was removed")
        return problems + self._audit_side_tables()

    def _audit_side_tables(self) -> list[str]:
        homes = self._homes
        lists = Lists()
        lists.switch(homes.lists.on, homes.by_seq.values())
        deadlines = {
            record.id: transitions.deadline(record) for record in homes.tasks.values() if record.status in MAY_EXPIRE
        }
        right = {
            "lists": lists.counts() == homes.lists.counts(),
            "deadlines": {i: at for i, at in deadlines.items() if at is not None}
            == {task_id: homes.deadlines.at(task_id) for task_id in homes.deadlines},
            "tasks with their own retention": set(homes.kept)
            == {r.id for r in homes.tasks.values() if r.status in ENDS and r.spec.retention is not None},
            "ends of assignments": set(homes.holds)
            == {r.id for r in homes.tasks.values() if r.status is Status.ASSIGNED},
            "histories": {*homes.attempts, *homes.lines} <= homes.tasks.keys(),
        }
        return [f"the {name} are not those of the tasks" for name, is_right in right.items() if not is_right]

    async def fullness(self) -> float:
        """The memory of the process has no bound that it knows of."""
        return 0.0

    async def health(self) -> list[Finding]:
        """There is no server or file that could be wrong."""
        return []

    def _all_homes(self) -> Iterator[tuple[str, str]]:
        yield from (("delayed", task_id) for task_id in self._homes.delayed)
        yield from (("blocked", task_id) for task_id in self._homes.blocked)
        yield from (("leases", task_id) for task_id in self._homes.leases)
        for worker_id, inbox in self._homes.inboxes.items():
            yield from ((f"inbox of {worker_id}", task_id) for task_id in inbox)
        for key, lane in self._homes.lanes.items():
            yield from ((f"lane {key}", record.id) for record in lane)
        for status, shelf in self._homes.ends.items():
            yield from ((f"ends {status}", record.id) for record in shelf.values())


def _home_name(record: Record) -> str:
    status = record.status
    if status is Status.READY:
        return f"lane {(record.spec.queue, record.spec.band)}"
    if status in DELAYED:
        return "delayed"
    if status in ENDS:
        return f"ends {status}"
    if status is Status.ASSIGNED:
        return f"inbox of {record.worker_id}"
    return {Status.BLOCKED: "blocked", Status.RUNNING: "leases"}[status]
