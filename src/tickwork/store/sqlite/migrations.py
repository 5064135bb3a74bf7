"""Files of older versions: brought to this version's schema in one transaction, so that a kill in the middle loses
nothing.

Each step leads from one version to the next and is one function in `STEPS`. It renames the tables, as they have the
version in their names: a process of the older version that still has the file open finds no table of its own from then
on, and so writes nothing that nobody would read. It is told why by the views that `refuse_older` leaves behind.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable

import msgspec

from tickwork.errors import StoreError
from tickwork.host import is_gone
from tickwork.model.members import Worker
from tickwork.model.tasks import ParkReason
from tickwork.store.sqlite.schema import RARE, VERSION, complete, create, owner_of, qualify, run_all, version_of
from tickwork.store.unreadable import UNREADABLE

Report = Callable[[int], None]  # how many tasks were looked at
REPORT_EVERY = 10_000

# As the name of a table that is not there, it stands in SQLite's own error message.
MIGRATED = "its data was migrated by a newer version of Tickwork, upgrade this process"


def prepare(
    db: sqlite3.Connection,
    namespace: str,
    path: str,
    now: int,
    *,
    take_over: bool = False,
    report: Report = lambda count: None,
) -> bool:
    """Create the namespace's tables, or bring them to our version, in one transaction. True when that was needed.

    Unless it is to take over from them, a file on which workers of an older version are at work is refused."""
    db.execute("PRAGMA legacy_alter_table = ON")  # else renaming a table fails at the views of `refuse_older`
    db.execute("BEGIN IMMEDIATE")
    try:
        db.execute("CREATE TABLE IF NOT EXISTS tickwork_schema (namespace TEXT PRIMARY KEY, version INTEGER NOT NULL)")
        found = version_of(db, namespace)
        if found is None:
            create(db, namespace, now)
        elif found != VERSION:
            _migrate(db, namespace, path, found, now, take_over, report)
        complete(db, namespace)  # it knows only the tables of its own version
        db.execute("COMMIT")
    except BaseException:
        if db.in_transaction:
            db.execute("ROLLBACK")
        raise
    return found not in (None, VERSION)


def _migrate(
    db: sqlite3.Connection, namespace: str, path: str, found: int, now: int, take_over: bool, report: Report
) -> None:
    if found not in STEPS:
        raise StoreError(
            f"SQLite file {path}: namespace {namespace!r} has schema version {found}, this Tickwork reads version "
            f"{VERSION}. Use the Tickwork that wrote it, or another file or namespace."
        )
    alive = [] if take_over else _workers_alive(db, namespace, found, now)
    if alive:
        raise StoreError(
            f"SQLite file {path}: namespace {namespace!r} (schema {found}) is in use by workers of an older version of "
            f"Tickwork: {', '.join(alive)}. Stop them first, and it is migrated to schema {VERSION} when it is opened; "
            "or run `tickwork migrate --take-over`, and they stop by themselves, but what they run now is run again"
        )
    for version in range(found, VERSION):
        STEPS[version](db, namespace, report)
    db.execute("UPDATE tickwork_schema SET version = ? WHERE namespace = ?", (VERSION, namespace))


def _workers_alive(db: sqlite3.Connection, namespace: str, version: int, now: int) -> list[str]:
    table = f'"{owner_of(namespace)}/workers"' if version == 3 else qualify("@workers", namespace, version)
    rows = db.execute(f"SELECT id, worker FROM {table} WHERE lost_at IS NULL AND expires_at > ? ORDER BY id", (now,))
    return [str(worker_id) for worker_id, blob in rows if not _is_gone(blob)]


def _is_gone(blob: bytes) -> bool:
    try:
        worker = msgspec.msgpack.decode(blob, type=Worker)
    except UNREADABLE:
        return False
    return is_gone(worker.host, worker.pid, worker.pid_started)


def refuse_older(db: sqlite3.Connection, names: list[str]) -> None:
    """Views in the place of the older version's tables, over a table that is not there and whose name says why."""
    for name in names:
        db.execute(f'CREATE VIEW "{name}" AS SELECT * FROM "{MIGRATED}"')


# --- version 3 to 4


_OLD_TABLES = (
    "state", "specs", "tasks", "waits", "outbox", "dedup", "pauses", "claims", "schedules", "workers", "locks",
    "events",
)  # fmt: skip
_CHANGES = f"""
ALTER TABLE @state ADD COLUMN aged INTEGER NOT NULL DEFAULT 0;
ALTER TABLE @tasks ADD COLUMN key TEXT;
ALTER TABLE @tasks ADD COLUMN workflow TEXT;
ALTER TABLE @tasks ADD COLUMN parked TEXT;
ALTER TABLE @dedup ADD COLUMN held TEXT;
DROP INDEX #leases;
CREATE INDEX #leases ON @tasks (lease_until, worker_id) WHERE status = 'running';
{RARE}
UPDATE @tasks SET parked = iif(
    type IN (SELECT name FROM @pauses WHERE kind = 'type'), '{ParkReason.TYPE_PAUSED}', '{ParkReason.TYPE_UNKNOWN}'
) WHERE status = 'ready' AND place = 1
"""


class _Keyed(msgspec.Struct):
    """What version 4 has in a column of its own."""

    key: str | None = None


_key_of = msgspec.msgpack.Decoder(_Keyed).decode
_lines_of = msgspec.msgpack.Decoder(list[str]).decode


def _from_3_to_4(db: sqlite3.Connection, namespace: str, report: Report) -> None:
    """Tables are named by their version, keys are columns, and log lines have a table of their own."""
    owner = owner_of(namespace)
    for name in _OLD_TABLES:
        db.execute(qualify(f'ALTER TABLE "{owner}/{name}" RENAME TO @{name}', namespace))
    run_all(db, _CHANGES, namespace)
    for seq, log in db.execute(qualify("SELECT seq, log FROM @tasks WHERE log IS NOT NULL", namespace)).fetchall():
        db.executemany(
            qualify("INSERT INTO @lines VALUES (?, ?, ?)", namespace),
            [(seq, n, line) for n, line in enumerate(_read_lines(log), 1)],
        )
    db.execute(qualify("ALTER TABLE @tasks DROP COLUMN log", namespace))
    _fill_keys(db, namespace, report)
    refuse_older(db, [f"{owner}/{name}" for name in _OLD_TABLES])


def _read_lines(log: bytes) -> list[str]:
    try:
        return _lines_of(log)
    except UNREADABLE:
        return []


def _fill_keys(db: sqlite3.Connection, namespace: str, report: Report) -> None:
    write = qualify("UPDATE @tasks SET key = ? WHERE seq = ?", namespace)
    number = 0
    for number, (seq, spec) in enumerate(db.execute(qualify("SELECT seq, spec FROM @specs", namespace)), 1):
        try:
            key = _key_of(spec).key
        except UNREADABLE:
            key = None
        if key is not None:
            db.execute(write, (key, seq))
        if number % REPORT_EVERY == 0:
            report(number)
    report(number)


STEPS: dict[int, Callable[[sqlite3.Connection, str, Report], None]] = {3: _from_3_to_4}
