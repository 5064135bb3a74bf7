"""The tables, and the version they carry. `@name` in any SQL text is the namespace's own table of that name, `#name` is
its index. Tables have the version in their names, so that a process of another version finds none of them and can do no
harm (see `migrations.py`); nobody names an index.

`tasks` holds what changes, `specs` what was asked: a transition never rewrites a payload. One row of `events` carries
all the facts of one transaction. The homes of the statuses are partial indexes over `tasks.status`, so a task cannot be
in two of them, or in none; a transition touches only two. What few tasks have is in tables of its own: deadlines, an
own retention, earlier runs, log lines.
"""

from __future__ import annotations

import re
import sqlite3

VERSION = 4

# SQLite uses a partial index only for a query that repeats its condition to the letter. It evaluates the condition with
# every write of a row, and a chain of ORs is much cheaper for it than a long IN.
IN_DELAYED = "(status = 'pending' OR status = 'retrying')"
IN_ENDS = "(status = 'success' OR status = 'failed' OR status = 'dead' OR status = 'cancelled')"

# What few tasks have, so that the others cost nothing more.
# What a side lane is named by; the column is empty where a task needs nothing but a handler of its type.
KIND = "coalesce(kind, type)"
RARE = """
CREATE TABLE @deadlines (seq INTEGER PRIMARY KEY, at INTEGER NOT NULL);
CREATE INDEX #deadlines_at ON @deadlines (at);
CREATE TABLE @kept (seq INTEGER PRIMARY KEY, until INTEGER NOT NULL, position INTEGER NOT NULL);
CREATE INDEX #kept_until ON @kept (until, position);
CREATE TABLE @attempts (seq INTEGER, n INTEGER, run BLOB NOT NULL, PRIMARY KEY (seq, n)) WITHOUT ROWID;
CREATE TABLE @lines (seq INTEGER, n INTEGER, line TEXT NOT NULL, PRIMARY KEY (seq, n)) WITHOUT ROWID;
"""

# What came after this version was published; files that lack it get it when they are opened.
LATER = f"""
CREATE TABLE IF NOT EXISTS @marks (name TEXT PRIMARY KEY, mark TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS @gates (
    name TEXT PRIMARY KEY, entry BLOB NOT NULL, until INTEGER, open_until INTEGER NOT NULL DEFAULT 0
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS #gates_until ON @gates (until) WHERE until IS NOT NULL;
CREATE INDEX IF NOT EXISTS #gates_open ON @gates (name) WHERE open_until > 0;
CREATE TABLE IF NOT EXISTS @gate_insides (
    name TEXT NOT NULL, id TEXT NOT NULL, until INTEGER NOT NULL, PRIMARY KEY (name, id)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS @gate_waits (
    name TEXT NOT NULL, id TEXT NOT NULL, place INTEGER NOT NULL, PRIMARY KEY (name, id)
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS #gate_waits_place ON @gate_waits (name, place, id);
CREATE TABLE IF NOT EXISTS @gate_crowds (name TEXT PRIMARY KEY, waiting INTEGER NOT NULL) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS #gate_crowds_waiting ON @gate_crowds (waiting DESC, name);
CREATE TABLE IF NOT EXISTS @gate_looks (name TEXT PRIMARY KEY, at INTEGER NOT NULL) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS #gate_looks_at ON @gate_looks (at);
CREATE TABLE IF NOT EXISTS @fair_lanes (
    queue TEXT, band INTEGER, now INTEGER NOT NULL, PRIMARY KEY (queue, band)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS @fair_keys (
    queue TEXT, band INTEGER, key TEXT, last INTEGER NOT NULL, PRIMARY KEY (queue, band, key)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS @control_documents (
    kind TEXT NOT NULL, name TEXT NOT NULL, text TEXT NOT NULL, PRIMARY KEY (kind, name)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS @control_entries (
    journal TEXT NOT NULL, number INTEGER NOT NULL, at INTEGER NOT NULL, text TEXT NOT NULL,
    PRIMARY KEY (journal, number)
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS #fair_last ON @fair_keys (queue, band, last);
CREATE INDEX IF NOT EXISTS #aside ON @tasks (queue, {KIND}, band, position) WHERE status = 'ready' AND place = 1;
CREATE INDEX IF NOT EXISTS #inboxes ON @tasks (worker_id, lease_until) WHERE status = 'assigned'
"""

TABLES = f"""
CREATE TABLE @state (
    one INTEGER PRIMARY KEY CHECK (one = 1),
    seq INTEGER NOT NULL DEFAULT 0,
    position INTEGER NOT NULL DEFAULT 0,
    fact INTEGER NOT NULL DEFAULT 0,
    dropped INTEGER NOT NULL DEFAULT 0,
    ends INTEGER NOT NULL DEFAULT 0,
    pulse_at INTEGER NOT NULL,
    hold_until INTEGER NOT NULL DEFAULT 0,
    heard_work INTEGER NOT NULL DEFAULT 0,
    heard_control INTEGER NOT NULL DEFAULT 0,
    heard_outbox INTEGER NOT NULL DEFAULT 0,
    heard_schedules INTEGER NOT NULL DEFAULT 0,
    heard_ends INTEGER NOT NULL DEFAULT 0,
    leader TEXT,
    term INTEGER NOT NULL DEFAULT 0,
    leader_until INTEGER NOT NULL DEFAULT 0,
    leader_ttl INTEGER NOT NULL DEFAULT 0,
    lock_fence INTEGER NOT NULL DEFAULT 0,
    aged INTEGER NOT NULL DEFAULT 0
);
CREATE TABLE @specs (seq INTEGER PRIMARY KEY, spec BLOB NOT NULL);
CREATE TABLE @tasks (
    seq INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    nonce0 TEXT NOT NULL,
    type TEXT NOT NULL,
    queue TEXT NOT NULL,
    band INTEGER NOT NULL,
    schedule_id TEXT,
    submitted_at INTEGER NOT NULL,
    status TEXT NOT NULL,
    due_at INTEGER NOT NULL,
    place INTEGER NOT NULL,
    position INTEGER NOT NULL,
    attempt INTEGER NOT NULL,
    losses INTEGER NOT NULL,
    fence INTEGER NOT NULL,
    nonce TEXT NOT NULL,
    worker_id TEXT,
    lease_until INTEGER NOT NULL,
    started_at INTEGER,
    finished_at INTEGER,
    cancel INTEGER NOT NULL,
    last_error TEXT,
    code INTEGER NOT NULL,
    message TEXT NOT NULL,
    result BLOB,
    execution_time REAL,
    progress REAL,
    progress_note TEXT NOT NULL,
    key TEXT,
    workflow TEXT,
    parked TEXT,
    kind TEXT
);
CREATE INDEX #ready ON @tasks (queue, band, place, position) WHERE status = 'ready' AND place <> 1;
CREATE INDEX #delayed ON @tasks (due_at, seq, status) WHERE {IN_DELAYED};
CREATE INDEX #blocked ON @tasks (seq) WHERE status = 'blocked';
CREATE INDEX #leases ON @tasks (lease_until, worker_id) WHERE status = 'running';
CREATE INDEX #ended ON @tasks (status, position) WHERE {IN_ENDS};
CREATE TABLE @waits (
    dependant TEXT NOT NULL, upstream TEXT NOT NULL, PRIMARY KEY (dependant, upstream)
) WITHOUT ROWID;
CREATE INDEX #waits_upstream ON @waits (upstream);
CREATE TABLE @outbox (n INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, status TEXT NOT NULL, schedule_id TEXT);
CREATE TABLE @dedup (
    key TEXT PRIMARY KEY, id TEXT NOT NULL, until INTEGER NOT NULL, held TEXT
) WITHOUT ROWID;
CREATE INDEX #dedup_until ON @dedup (until);
CREATE TABLE @pauses (
    kind TEXT NOT NULL, name TEXT NOT NULL, at INTEGER NOT NULL, note TEXT NOT NULL, PRIMARY KEY (kind, name)
) WITHOUT ROWID;
CREATE TABLE @claims (
    worker_id TEXT,
    turn INTEGER,
    nonce TEXT NOT NULL,
    last_chance TEXT,
    PRIMARY KEY (worker_id, turn)
) WITHOUT ROWID;
CREATE TABLE @schedules (
    id TEXT PRIMARY KEY, next_at INTEGER, active INTEGER NOT NULL, schedule BLOB NOT NULL
) WITHOUT ROWID;
CREATE INDEX #schedules_next ON @schedules (next_at) WHERE active = 1 AND next_at IS NOT NULL;
CREATE TABLE @workers (
    id TEXT PRIMARY KEY, expires_at INTEGER NOT NULL, lost_at INTEGER, worker BLOB NOT NULL
) WITHOUT ROWID;
CREATE TABLE @locks (
    name TEXT PRIMARY KEY, owner TEXT NOT NULL, fence INTEGER NOT NULL, until INTEGER NOT NULL
) WITHOUT ROWID;
CREATE TABLE @events (last INTEGER PRIMARY KEY, first INTEGER NOT NULL, facts BLOB NOT NULL);
{RARE}"""


# Indexes for lists by these columns, which somebody has to ask for (`Operators.index`).
LISTS = {"type": "(type)", "queue": "(queue)", "key": "(key) WHERE key IS NOT NULL"}

_NAME = re.compile(r"([@#])(\w+)")


def qualify(sql: str, namespace: str, version: int = VERSION) -> str:
    """Replace each `@name` and `#name` by the quoted name of the namespace's own table or index."""
    owner = owner_of(namespace)
    return _NAME.sub(
        lambda found: f'"{owner}/{version}/{found[2]}"' if found[1] == "@" else f'"{owner}/{found[2]}"', sql
    )


def owner_of(namespace: str) -> str:
    """SQLite's names know no case and may not begin with `sqlite_`; namespaces may."""
    return re.sub("[A-Z]", lambda letter: f"^{letter[0].lower()}", namespace)


def run_all(db: sqlite3.Connection, statements: str, namespace: str) -> None:
    for statement in statements.split(";"):
        if statement.strip():
            db.execute(qualify(statement, namespace))


def version_of(db: sqlite3.Connection, namespace: str) -> int | None:
    """None when the file has no such namespace."""
    row = db.execute("SELECT version FROM tickwork_schema WHERE namespace = ?", (namespace,)).fetchone()
    return None if row is None else int(row[0])


def complete(db: sqlite3.Connection, namespace: str) -> None:
    """Add what came after this version of the schema was published. Tables of another version are left alone."""
    if version_of(db, namespace) != VERSION:
        return
    columns = db.execute(f"PRAGMA table_info({qualify('@tasks', namespace)})").fetchall()
    if "kind" not in [name for _, name, *_ in columns]:
        run_all(db, "ALTER TABLE @tasks ADD COLUMN kind TEXT; DROP INDEX IF EXISTS #parked", namespace)
    run_all(db, LATER, namespace)


def create(db: sqlite3.Connection, namespace: str, now: int) -> None:
    run_all(db, TABLES, namespace)
    db.execute(qualify("INSERT INTO @state (one, pulse_at) VALUES (1, ?)", namespace), (now,))
    db.execute("INSERT INTO tickwork_schema VALUES (?, ?)", (namespace, VERSION))
