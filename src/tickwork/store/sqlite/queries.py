"""Questions to a SQLite file."""

from __future__ import annotations

from tickwork.model import transitions
from tickwork.model.tasks import ENDS, MAY_EXPIRE, History, Place, Record, Status
from tickwork.store.contract import AHEAD_MAX, Finding, Pause, Query, Situation, Stats
from tickwork.store.hints import Hint
from tickwork.store.rules import FAIR_HEADS, unsound
from tickwork.store.sqlite.core import Core, Part, reads
from tickwork.store.sqlite.histories import read_history
from tickwork.store.sqlite.lists import page
from tickwork.store.sqlite.rows import Rows
from tickwork.store.sqlite.schedules import list_schedules
from tickwork.store.sqlite.schema import IN_DELAYED, IN_ENDS, KIND

AUDIT_STEP = 1000
FIRST_OF_FAIR = (
    "SELECT min(since) FROM (SELECT max(due_at, submitted_at) AS since FROM @tasks WHERE status = 'ready' "
    f"AND place <> 1 AND queue = ? AND band = ? AND place = 3 ORDER BY position, seq LIMIT {FAIR_HEADS})"
)
# Which tasks may have rows in the tables beside theirs.
BESIDE = {
    "deadlines": "fence = 0 AND (status = 'blocked' OR status = 'pending' OR status = 'ready' OR status = 'assigned')",
    "kept": IN_ENDS,
    "attempts": "1",
    "lines": "1",
}


class Queries(Part):
    def __init__(self, core: Core) -> None:
        super().__init__(core)
        self._rows = Rows(core.reader)

    @reads
    def get(self, task_id: str, waiter: Hint | None = None) -> Record | None:
        return self._rows.get(task_id)

    async def time(self) -> int:
        return self.now()

    @reads
    def page(self, query: Query) -> tuple[list[Record], str | None]:
        return page(self.reader, self._rows, query)

    @reads
    def history(self, task_id: str) -> History:
        return read_history(self.reader, task_id)

    @reads
    def situation(self, task_id: str) -> Situation | None:
        record = self._rows.get(task_id)
        if record is None:
            return None
        spec = record.spec
        concerned = "(kind = 'queue' AND name = ?) OR (kind = 'type' AND name = ?)"
        pauses = self.reader.all(
            f"SELECT kind, name, at, note FROM @pauses WHERE {concerned} ORDER BY kind", (spec.queue, spec.type)
        )
        running = self.reader.all("SELECT worker_id, count(*) FROM @tasks WHERE status = 'running' GROUP BY worker_id")
        ahead = self._ahead(record) if record.status is Status.READY else 0
        return Situation(record, ahead, [Pause(*row) for row in pauses], dict(running))

    def _ahead(self, record: Record) -> int:
        spec, band = record.spec, int(record.spec.band)
        ready = "SELECT 1 FROM @tasks WHERE status = 'ready' AND queue = ?"
        here = "(place, position, seq) < (?, ?, ?)" if record.place is not Place.SIDE else "place = 0"
        args: tuple[object, ...] = (spec.queue, band, band)
        if record.place is not Place.SIDE:
            args += (int(record.place), record.position, record.seq)
        count = self._count(f"{ready} AND place <> 1 AND (band < ? OR (band = ? AND ({here})))", args)
        if record.place is Place.SIDE:
            parked = f"{ready} AND place = 1 AND {KIND} = ? AND band = ? AND position < ?"
            count += self._count(parked, (spec.queue, spec.kind, band, record.position))
        return min(count, AHEAD_MAX)

    def _count(self, select: str, args: tuple[object, ...]) -> int:
        found: int = self.reader.one(f"SELECT count(*) FROM ({select} LIMIT {AHEAD_MAX})", args)[0]
        return found

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
        for condition in (IN_DELAYED, "status = 'running'", "status = 'assigned'", "status = 'blocked'", IN_ENDS):
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
    def waiting_since(self) -> dict[str, int]:
        found: dict[str, int] = {}
        lanes = (("queue, band, place", "place <> 1 AND place <> 3"), (f"queue, {KIND}, band", "place = 1"))
        for lane, condition in lanes:
            # From the index alone; only the heads are looked up in the table.
            heads = f"SELECT {lane}, min(position) FROM @tasks WHERE status = 'ready' AND {condition} GROUP BY {lane}"
            rows = self.reader.all(
                "SELECT queue, max(due_at, submitted_at) FROM @tasks "
                f"WHERE status = 'ready' AND {condition} AND ({lane}, position) IN ({heads})"
            )
            for queue, since in rows:
                found[queue] = min(found.get(queue, since), since)
        for queue, band in self.reader.all("SELECT queue, band FROM @fair_lanes"):
            (since,) = self.reader.one(FIRST_OF_FAIR, (queue, band))
            if since is not None:
                found[queue] = min(found.get(queue, since), since)
        return found

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
        for table, condition in BESIDE.items():
            strange = f"SELECT DISTINCT seq FROM @{table} WHERE seq NOT IN (SELECT seq FROM @tasks WHERE {condition})"
            problems += [
                f"{table} has a row for number {row[0]}, which is no such task" for row in self.reader.all(strange)
            ]
        ends, counted = self.reader.one(f"SELECT ends, (SELECT count(*) FROM @tasks WHERE {IN_ENDS}) FROM @state")
        if ends != counted:
            problems.append(f"{counted} tasks have ended, but {ends} are counted")
        seq = 0
        while step := self._rows.where("seq > ? ORDER BY seq LIMIT ?", (seq, AUDIT_STEP)):
            for record in step:
                problems += [f"task {record.id}: {problem}" for problem in (*unsound(record), *self._forgotten(record))]
            seq = step[-1].seq
        schedules = list_schedules(self.reader)
        return problems + [
            f"schedule {schedule.id}: {schedule.stopped}" for schedule in schedules if schedule.unreadable
        ]

    def _forgotten(self, record: Record) -> list[str]:
        """What should stand beside the row of this task, and does not."""
        checks = {
            "deadlines": record.status in MAY_EXPIRE and transitions.deadline(record) is not None,
            "kept": record.status in ENDS and record.spec.retention is not None,
        }
        return [
            f"it has no row in {table}"
            for table, wanted in checks.items()
            if wanted and self.reader.one(f"SELECT 1 FROM @{table} WHERE seq = ?", (record.seq,)) is None
        ]

    async def fullness(self) -> float:
        return self._core.files.fullness()

    async def health(self) -> list[Finding]:
        """Who else may read or replace the file."""
        return self._core.files.health()
