"""The tables, and the version they carry. `@name` in any SQL text is the namespace's own table of that name.

`tasks` holds what changes, `specs` what was asked: a transition never rewrites a payload. One row of `events` carries
all the facts of one transaction. The homes of the statuses are
partial indexes over `tasks.status`, so a task cannot be in two of them, or in none; a transition touches only two.
"""

from __future__ import annotations

import re
import sqlite3

from tickwork.errors import StoreError

VERSION = 3

# SQLite uses a partial index only for a query that repeats its condition to the letter. It evaluates the condition with
# every write of a row, and a chain of ORs is much cheaper for it than a long IN.
IN_DELAYED = "(status = 'pending' OR status = 'retrying')"
IN_ENDS = "(status = 'success' OR status = 'failed' OR status = 'dead' OR status = 'cancelled')"

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
    lock_fence INTEGER NOT NULL DEFAULT 0
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
    log BLOB
);
CREATE INDEX @ready ON @tasks (queue, band, place, position) WHERE status = 'ready' AND place <> 1;
CREATE INDEX @parked ON @tasks (queue, type, band, position) WHERE status = 'ready' AND place = 1;
CREATE INDEX @delayed ON @tasks (due_at, seq, status) WHERE {IN_DELAYED};
CREATE INDEX @blocked ON @tasks (seq) WHERE status = 'blocked';
CREATE INDEX @leases ON @tasks (lease_until) WHERE status = 'running';
CREATE INDEX @ended ON @tasks (status, position) WHERE {IN_ENDS};
CREATE TABLE @waits (
    dependant TEXT NOT NULL, upstream TEXT NOT NULL, PRIMARY KEY (dependant, upstream)
) WITHOUT ROWID;
CREATE INDEX @waits_upstream ON @waits (upstream);
CREATE TABLE @outbox (n INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, status TEXT NOT NULL, schedule_id TEXT);
CREATE TABLE @dedup (key TEXT PRIMARY KEY, id TEXT NOT NULL, until INTEGER NOT NULL) WITHOUT ROWID;
CREATE INDEX @dedup_until ON @dedup (until);
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
CREATE INDEX @schedules_next ON @schedules (next_at) WHERE active = 1 AND next_at IS NOT NULL;
CREATE TABLE @workers (
    id TEXT PRIMARY KEY, expires_at INTEGER NOT NULL, lost_at INTEGER, worker BLOB NOT NULL
) WITHOUT ROWID;
CREATE TABLE @locks (
    name TEXT PRIMARY KEY, owner TEXT NOT NULL, fence INTEGER NOT NULL, until INTEGER NOT NULL
) WITHOUT ROWID;
CREATE TABLE @events (last INTEGER PRIMARY KEY, first INTEGER NOT NULL, facts BLOB NOT NULL);
"""


def qualify(sql: str, namespace: str) -> str:
    """Replace each `@name` by the namespace's quoted table or index name. SQLite's names know no case and may not begin
    with `sqlite_`; namespaces may."""
    owner = re.sub("[A-Z]", lambda letter: f"^{letter[0].lower()}", namespace)
    parts = sql.split("@")
    out = [parts[0]]
    for part in parts[1:]:
        length = next((i for i, char in enumerate(part) if not (char.isalnum() or char == "_")), len(part))
        out.append(f'"{owner}/{part[:length]}"{part[length:]}')
    return "".join(out)


def prepare(db: sqlite3.Connection, namespace: str, path: str, now: int) -> None:
    """Create the namespace's tables, or check that they are of our version. Runs in one transaction."""
    db.execute("BEGIN IMMEDIATE")
    try:
        db.execute("CREATE TABLE IF NOT EXISTS tickwork_schema (namespace TEXT PRIMARY KEY, version INTEGER NOT NULL)")
        row = db.execute("SELECT version FROM tickwork_schema WHERE namespace = ?", (namespace,)).fetchone()
        if row is None:
            for statement in TABLES.split(";"):
                if statement.strip():
                    db.execute(qualify(statement, namespace))
            db.execute(qualify("INSERT INTO @state (one, pulse_at) VALUES (1, ?)", namespace), (now,))
            db.execute("INSERT INTO tickwork_schema VALUES (?, ?)", (namespace, VERSION))
        elif row[0] != VERSION:
            raise StoreError(
                f"SQLite file {path}: namespace {namespace!r} has schema version {row[0]}, this Tickwork reads version "
                f"{VERSION}. Use the Tickwork that wrote it, or another file or namespace."
            )
        db.execute("COMMIT")
    except BaseException:
        if db.in_transaction:
            db.execute("ROLLBACK")
        raise
