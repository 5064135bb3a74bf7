"""What is only read: pages, counts, the log, and the audit. Runs on the reader's thread."""

from __future__ import annotations

from tickwork.events import Event
from tickwork.model import Policy, Record, Status
from tickwork.store.base import PAGE_MAX, Pause, Query, Stats
from tickwork.store.rules import matches, unsound
from tickwork.store.sqlite.rows import Rows
from tickwork.store.sqlite.session import Connection

AUDIT_STEP = 1000


def page(rows: Rows, query: Query) -> tuple[list[Record], str | None]:
    start = int(query.cursor) if query.cursor else 2**62
    by_index_alone = query.type is None and query.queue is None and not query.tags
    look = query.limit if by_index_alone else PAGE_MAX
    status, params = ("", [start]) if query.status is None else ("status = ? AND ", [query.status.value, start])
    looked = rows.where(f"{status}seq < ? ORDER BY seq DESC LIMIT ?", [*params, look])
    found: list[Record] = []
    for index, record in enumerate(looked):
        if matches(record, query):
            found.append(record)
            if len(found) == query.limit:
                more = index + 1 < len(looked) or len(looked) == look
                return found, str(record.seq) if more else None
    return found, str(looked[-1].seq) if len(looked) == look and looked else None


def stats(connection: Connection) -> Stats:
    statuses = dict.fromkeys(Status, 0)
    for status, count in connection.all("SELECT status, count(*) FROM @tasks GROUP BY status"):
        statuses[Status(status)] = count
    ready = connection.all("SELECT queue, band, count(*) FROM @tasks WHERE status = 'ready' GROUP BY queue, band")
    parked = connection.all(
        "SELECT queue, type, count(*) FROM @tasks WHERE status = 'ready' AND place = 1 GROUP BY queue, type"
    )
    return Stats(
        statuses=statuses,
        ready={(queue, band): count for queue, band, count in ready},
        parked={(queue, kind): count for queue, kind, count in parked},
        workers=connection.one("SELECT count(*) FROM @workers WHERE lost_at IS NULL")[0],
        dropped=connection.one("SELECT dropped FROM @state")[0],
    )


def pauses(connection: Connection) -> list[Pause]:
    return [Pause(*row) for row in connection.all("SELECT kind, name, at, note FROM @pauses ORDER BY kind, name")]


def events(
    connection: Connection, policy: Policy, after: int, limit: int, task_id: str | None
) -> tuple[list[Event], int]:
    first, last = connection.one("SELECT min(seq), max(seq) FROM @events")
    dropped = max((first or 1) - 1, (last or 0) - policy.events_max)
    columns = "seq, at, kind, id, type, queue, worker_id, attempt, duration, detail"
    about, params = ("", []) if task_id is None else ("AND id = ? ", [task_id])
    found = connection.all(
        f"SELECT {columns} FROM @events WHERE seq > ? {about}ORDER BY seq LIMIT ?",
        [max(after, dropped), *params, limit],
    )
    return [Event(*row) for row in found], dropped


def last_event(connection: Connection) -> int:
    return connection.one("SELECT max(seq) FROM @events")[0] or 0


def audit(connection: Connection, rows: Rows) -> list[str]:
    problems = [f"SQLite: {row[0]}" for row in connection.all("PRAGMA quick_check") if row[0] != "ok"]
    known = ", ".join(repr(status.value) for status in Status)
    strays = {
        "has no spec": "SELECT id FROM @tasks WHERE seq NOT IN (SELECT seq FROM @specs)",
        "is waited for but is not there": "SELECT upstream FROM @waits WHERE upstream NOT IN (SELECT id FROM @tasks)",
        "is said to wait but is not blocked": "SELECT dependant FROM @waits WHERE dependant NOT IN "
        "(SELECT id FROM @tasks WHERE status = 'blocked')",
        "has a status nobody knows": f"SELECT id FROM @tasks WHERE status NOT IN ({known})",
    }
    for problem, sql in strays.items():
        problems += [f"task {row[0]} {problem}" for row in connection.all(sql)]
    if problems:
        return problems
    seq = 0
    while step := rows.where("seq > ? ORDER BY seq LIMIT ?", (seq, AUDIT_STEP)):
        for record in step:
            problems += [f"task {record.id}: {problem}" for problem in unsound(record)]
        seq = step[-1].seq
    return problems
