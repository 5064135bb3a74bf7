"""Questions to a SQLite file."""

from __future__ import annotations

from msgspec.structs import replace

from tickwork.model.tasks import DELAYED, ENDS, Record, Status
from tickwork.store.contract import PAGE_MAX, Finding, Pause, Query, Stats
from tickwork.store.hints import Hint
from tickwork.store.rules import matches, read_cursor, unsound
from tickwork.store.sqlite.core import Core, Part, reads
from tickwork.store.sqlite.rows import Rows
from tickwork.store.sqlite.schedules import list_schedules
from tickwork.store.sqlite.schema import IN_DELAYED, IN_ENDS

AUDIT_STEP = 1000


class Queries(Part):
    def __init__(self, core: Core) -> None:
        super().__init__(core)
        self._rows = Rows(core.reader)

    @reads
    def get(self, task_id: str, waiter: Hint | None = None) -> Record | None:
        return self._rows.get(task_id)

    @reads
    def page(self, query: Query) -> tuple[list[Record], str | None]:
        """Each status is walked along its own index, so that a page never looks at more than it may."""
        few = query.status in (Status.RUNNING, Status.BLOCKED)
        by_index_alone = query.status is None or few or query.status in ENDS
        bare = by_index_alone and query == replace(query, type=None, queue=None, tags=None)
        limit = min(query.limit + 1, PAGE_MAX) if bare else PAGE_MAX
        if query.status in DELAYED:
            after = read_cursor(query, 0, 0)
            looked = self._rows.where(
                f"{IN_DELAYED} AND (due_at, seq) > (?, ?) ORDER BY due_at, seq LIMIT ?", (*after, limit)
            )
            keys = [f"{record.due_at}.{record.seq}" for record in looked]
        elif query.status in ENDS:
            looked = self._rows.where(
                f"{IN_ENDS} AND status = ? AND position < ? ORDER BY position DESC LIMIT ?",
                (query.status.value, *read_cursor(query, 2**62), limit),
            )
            keys = [str(record.position) for record in looked]
        else:
            condition = f"status = '{query.status}' AND " if few else ""
            looked = self._rows.where(
                f"{condition}seq < ? ORDER BY seq DESC LIMIT ?", (*read_cursor(query, 2**62), limit)
            )
            keys = [str(record.seq) for record in looked]
        found: list[Record] = []
        for record, key in zip(looked, keys, strict=True):
            if matches(record, query):
                found.append(record)
                if len(found) == query.limit:
                    return found, key if key != keys[-1] or len(looked) == limit else None
        return found, keys[-1] if len(looked) == limit else None

    @reads
    def dependants(self, task_id: str, limit: int) -> list[str]:
        statement = "SELECT dependant FROM @waits WHERE upstream = ? ORDER BY dependant LIMIT ?"
        return [dependant for (dependant,) in self.reader.all(statement, (task_id, limit))]

    @reads
    def paused(self) -> list[Pause]:
        rows = self.reader.all("SELECT kind, name, at, note FROM @pauses ORDER BY kind, name")
        return [Pause(kind, name, at, str(note)) for kind, name, at, note in rows]

    @reads
    def stats(self) -> Stats:
        statuses = dict.fromkeys(Status, 0)
        for condition in (IN_DELAYED, "status = 'running'", "status = 'blocked'", IN_ENDS):
            for status, count in self.reader.all(
                f"SELECT status, count(*) FROM @tasks WHERE {condition} GROUP BY status"
            ):
                statuses[Status(status)] = count
        ready: dict[tuple[str, int], int] = {}
        for condition in ("place <> 1", "place = 1"):
            counts = self.reader.all(
                f"SELECT queue, band, count(*) FROM @tasks WHERE status = 'ready' AND {condition} GROUP BY queue, band"
            )
            for queue, band, count in counts:
                ready[queue, band] = ready.get((queue, band), 0) + count
        statuses[Status.READY] = sum(ready.values())
        parked = self.reader.all(
            "SELECT queue, type, count(*) FROM @tasks WHERE status = 'ready' AND place = 1 GROUP BY queue, type"
        )
        return Stats(
            statuses=statuses,
            ready=ready,
            parked={(queue, kind): count for queue, kind, count in parked},
            workers=self.reader.one("SELECT count(*) FROM @workers WHERE lost_at IS NULL")[0],
            dropped=self.reader.one("SELECT dropped FROM @state")[0],
        )

    @reads
    def audit(self) -> list[str]:
        problems = [f"SQLite: {row[0]}" for row in self.reader.all("PRAGMA quick_check") if row[0] != "ok"]
        known = ", ".join(repr(status.value) for status in Status)
        strays = {
            "is waited for, but has ended or was removed": "SELECT upstream FROM @waits WHERE upstream NOT IN "
            f"(SELECT id FROM @outbox UNION SELECT id FROM @tasks WHERE NOT ({IN_ENDS}))",
            "is said to wait but is not blocked": "SELECT dependant FROM @waits WHERE dependant NOT IN "
            "(SELECT id FROM @tasks WHERE status = 'blocked')",
            "has a status nobody knows": f"SELECT id FROM @tasks WHERE status NOT IN ({known})",
        }
        for problem, sql in strays.items():
            problems += [f"task {row[0]} {problem}" for row in self.reader.all(sql)]
        ends, counted = self.reader.one(f"SELECT ends, (SELECT count(*) FROM @tasks WHERE {IN_ENDS}) FROM @state")
        if ends != counted:
            problems.append(f"{counted} tasks have ended, but {ends} are counted")
        seq = 0
        while step := self._rows.where("seq > ? ORDER BY seq LIMIT ?", (seq, AUDIT_STEP)):
            for record in step:
                problems += [f"task {record.id}: {problem}" for problem in unsound(record)]
            seq = step[-1].seq
        schedules = list_schedules(self.reader)
        return problems + [
            f"schedule {schedule.id}: {schedule.stopped}" for schedule in schedules if schedule.unreadable
        ]

    async def health(self) -> list[Finding]:
        """Who else may read or replace the file."""
        return self._core.files.health()
