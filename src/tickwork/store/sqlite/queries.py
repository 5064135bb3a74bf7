"""What is only read: pages, counts, the log, and the audit. Runs on the reader's thread."""

from __future__ import annotations

import msgspec
from msgspec.structs import replace

from tickwork.model.facts import Event
from tickwork.model.policy import Policy
from tickwork.model.tasks import DELAYED, ENDS, Record, Status
from tickwork.store.contract import PAGE_MAX, Pause, Query, Stats
from tickwork.store.rules import before_newest, matches, missed, read_cursor, tells_of, unsound
from tickwork.store.sqlite.members import list_schedules
from tickwork.store.sqlite.rows import Rows
from tickwork.store.sqlite.schema import IN_DELAYED, IN_ENDS
from tickwork.store.sqlite.session import Connection
from tickwork.store.unreadable import UNREADABLE, unreadable_fact

AUDIT_STEP = 1000

# at, kind, id, type, queue, worker_id, attempt, duration, detail
_FACT = tuple[int, str, str, str, str, str, int, float, str]
_facts = msgspec.msgpack.Decoder(list[_FACT]).decode
_fact = msgspec.msgpack.Decoder(_FACT).decode
_raw_facts = msgspec.msgpack.Decoder(list[msgspec.Raw]).decode


def page(rows: Rows, query: Query) -> tuple[list[Record], str | None]:
    """Each status is walked along its own index, so that a page never looks at more than it may."""
    few = query.status in (Status.RUNNING, Status.BLOCKED)
    by_index_alone = query.status is None or few or query.status in ENDS
    bare = by_index_alone and query == replace(query, type=None, queue=None, tags=None)
    limit = min(query.limit + 1, PAGE_MAX) if bare else PAGE_MAX
    if query.status in DELAYED:
        after = read_cursor(query, 0, 0)
        looked = rows.where(f"{IN_DELAYED} AND (due_at, seq) > (?, ?) ORDER BY due_at, seq LIMIT ?", (*after, limit))
        keys = [f"{record.due_at}.{record.seq}" for record in looked]
    elif query.status in ENDS:
        looked = rows.where(
            f"{IN_ENDS} AND status = ? AND position < ? ORDER BY position DESC LIMIT ?",
            (query.status.value, *read_cursor(query, 2**62), limit),
        )
        keys = [str(record.position) for record in looked]
    else:
        condition = f"status = '{query.status}' AND " if few else ""
        looked = rows.where(f"{condition}seq < ? ORDER BY seq DESC LIMIT ?", (*read_cursor(query, 2**62), limit))
        keys = [str(record.seq) for record in looked]
    found: list[Record] = []
    for record, key in zip(looked, keys, strict=True):
        if matches(record, query):
            found.append(record)
            if len(found) == query.limit:
                return found, key if key != keys[-1] or len(looked) == limit else None
    return found, keys[-1] if len(looked) == limit else None


def dependants(connection: Connection, task_id: str, limit: int) -> list[str]:
    statement = "SELECT dependant FROM @waits WHERE upstream = ? ORDER BY dependant LIMIT ?"
    return [dependant for (dependant,) in connection.all(statement, (task_id, limit))]


def stats(connection: Connection) -> Stats:
    statuses = dict.fromkeys(Status, 0)
    for condition in (IN_DELAYED, "status = 'running'", "status = 'blocked'", IN_ENDS):
        for status, count in connection.all(f"SELECT status, count(*) FROM @tasks WHERE {condition} GROUP BY status"):
            statuses[Status(status)] = count
    ready: dict[tuple[str, int], int] = {}
    for condition in ("place <> 1", "place = 1"):
        counts = connection.all(
            f"SELECT queue, band, count(*) FROM @tasks WHERE status = 'ready' AND {condition} GROUP BY queue, band"
        )
        for queue, band, count in counts:
            ready[queue, band] = ready.get((queue, band), 0) + count
    statuses[Status.READY] = sum(ready.values())
    parked = connection.all(
        "SELECT queue, type, count(*) FROM @tasks WHERE status = 'ready' AND place = 1 GROUP BY queue, type"
    )
    return Stats(
        statuses=statuses,
        ready=ready,
        parked={(queue, kind): count for queue, kind, count in parked},
        workers=connection.one("SELECT count(*) FROM @workers WHERE lost_at IS NULL")[0],
        dropped=connection.one("SELECT dropped FROM @state")[0],
    )


def pauses(connection: Connection) -> list[Pause]:
    rows = connection.all("SELECT kind, name, at, note FROM @pauses ORDER BY kind, name")
    return [Pause(kind, name, at, str(note)) for kind, name, at, note in rows]


def events(
    connection: Connection, policy: Policy, after: int, limit: int, task_id: str | None
) -> tuple[list[Event], int]:
    first = connection.one("SELECT first FROM @events ORDER BY last LIMIT 1")
    last = last_event(connection)
    dropped = max(last if first is None else first[0] - 1, before_newest(last, policy.events_max))
    start = max(after, dropped)
    found: list[Event] = []
    for number, facts in connection.run("SELECT first, facts FROM @events WHERE last > ? ORDER BY last", (start,)):
        for event in _read_facts(facts, number):
            if event.seq > start and (task_id is None or tells_of(task_id, event.kind, event.id)):
                found.append(event)
        if len(found) >= limit:
            break
    return found[:limit], missed(after, dropped)


def _read_facts(facts: bytes, number: int) -> list[Event]:
    try:
        return [Event(seq, *fact) for seq, fact in enumerate(_facts(facts), number)]
    except UNREADABLE:
        return [_read_fact(fact, seq) for seq, fact in enumerate(_single_facts(facts), number)]


def _single_facts(facts: bytes) -> list[msgspec.Raw]:
    try:
        return _raw_facts(facts)
    except UNREADABLE:
        return [msgspec.Raw(b"")]


def _read_fact(fact: msgspec.Raw, seq: int) -> Event:
    try:
        return Event(seq, *_fact(fact))
    except UNREADABLE as error:
        return unreadable_fact(seq, error)


def last_event(connection: Connection) -> int:
    number: int = connection.one("SELECT fact FROM @state")[0]
    return number


def audit(connection: Connection, rows: Rows) -> list[str]:
    problems = [f"SQLite: {row[0]}" for row in connection.all("PRAGMA quick_check") if row[0] != "ok"]
    known = ", ".join(repr(status.value) for status in Status)
    strays = {
        "is waited for but will never tell": "SELECT upstream FROM @waits WHERE upstream NOT IN "
        f"(SELECT id FROM @outbox UNION SELECT id FROM @tasks WHERE NOT ({IN_ENDS}))",
        "is said to wait but is not blocked": "SELECT dependant FROM @waits WHERE dependant NOT IN "
        "(SELECT id FROM @tasks WHERE status = 'blocked')",
        "has a status nobody knows": f"SELECT id FROM @tasks WHERE status NOT IN ({known})",
    }
    for problem, sql in strays.items():
        problems += [f"task {row[0]} {problem}" for row in connection.all(sql)]
    ends, counted = connection.one(f"SELECT ends, (SELECT count(*) FROM @tasks WHERE {IN_ENDS}) FROM @state")
    if ends != counted:
        problems.append(f"{counted} tasks have ended, but {ends} are counted")
    seq = 0
    while step := rows.where("seq > ? ORDER BY seq LIMIT ?", (seq, AUDIT_STEP)):
        for record in step:
            problems += [f"task {record.id}: {problem}" for problem in unsound(record)]
        seq = step[-1].seq
    schedules = list_schedules(connection)
    return problems + [f"schedule {schedule.id}: {schedule.stopped}" for schedule in schedules if schedule.unreadable]
