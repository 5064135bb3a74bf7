"""Data that an earlier version wrote: loaded into a file or a server, and described as today's code finds it.

`tests/fixtures/layout2` holds a SQLite file and Redis namespaces of one and of two partitions, as lists of commands.
All hold the same: tasks in every status, schedules, pauses, locks, dedup keys, members, a log. `expected.json` is what
`describe` found in them when they were written, by that very version.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import msgspec

from tests.support.redis import RedisServer
from tickwork.model.tasks import DELAYED, ENDS, Record, Status
from tickwork.store.contract import Query, Store
from tickwork.testing.contract.bench import all_schedules

FOLDER = Path(__file__).parents[1] / "fixtures" / "layout2"
WRITTEN_AT = 1_700_000_120_000  # what the clock showed after the last write
NAMESPACE = "test"
SINCE = frozenset({"unique", "expires", "expires_at", "retention", "workflow"})  # fields of tasks that are younger
LOCKS = ("held", "run out", "released")
ORDERED = sorted(DELAYED | ENDS)  # statuses whose lists have an order that the contract fixes


def copy_sqlite(folder: Path) -> Path:
    return Path(shutil.copy(FOLDER / "tasks.sqlite", folder / "tick.db"))


def load_redis(server: RedisServer, partitions: int) -> None:
    with server.connect() as client:
        for line in (FOLDER / f"redis-{partitions}.jsonl").read_text().splitlines():
            client.call(*(word.encode("latin-1") for word in json.loads(line)))


NEWER = {
    "assigned", "cpu", "declared", "declares", "fair", "follows", "loop_lag", "memory", "order", "requires", "version",
}  # fmt: skip


def expected() -> Any:
    return json.loads((FOLDER / "expected.json").read_text())


def _as_then(what: Any) -> dict[str, Any]:
    """Without the fields that came later, which must be at their defaults in what was written before."""
    found: dict[str, Any] = _plain(what)
    later = {name: found.pop(name) for name in NEWER & found.keys()}
    assert not any(later.values()), later
    return found


async def describe(store: Store) -> dict[str, Any]:
    """All that callers can see of a store, but for numbers of order, which each store gives in its own way."""
    records = [record for status in Status for record in await _all(store, status)]
    events, dropped = await store.log.read(0, 10_000)
    stats = await store.queries.stats()
    return {
        "tasks": {
            record.id: _task(record, (await store.queries.history(record.id)).lines)
            for record in sorted(records, key=lambda record: record.id)
        },
        "orders": {status: [record.id for record in records if record.status is status] for status in ORDERED},
        "ready": _lanes(records),
        "dependants": {record.id: await store.queries.dependants(record.id, 10) for record in records},
        "outbox": [_plain(entry) for entry in await store.tasks.outbox(100)],
        "schedules": {each.id: {**_as_then(each), "task": _as_then(each.task)} for each in await all_schedules(store)},
        "workers": {each.id: _as_then(each) for each in await store.members.workers()},
        "leader": _plain(await store.members.leader()),
        "locks": {name: _plain(await store.locks.holder(name)) for name in LOCKS},
        "pauses": sorted((_plain(pause) for pause in await store.queries.paused()), key=str),
        "facts": [_plain(msgspec.structs.replace(event, seq=0)) for event in events],
        "facts dropped": dropped,
        "counts": {status: stats.statuses.get(status, 0) for status in Status},
        "parked": sorted([queue, kind, count] for (queue, kind), count in stats.parked.items()),
        "dead letters dropped": stats.dropped,
    }


def in_any_order(description: dict[str, Any]) -> dict[str, Any]:
    """For several partitions, which have an order only in each."""
    orders = {status: sorted(ids) for status, ids in description["orders"].items()}
    ready = {lane: sorted(ids) for lane, ids in description["ready"].items()}
    facts, outbox = (sorted(description[name], key=str) for name in ("facts", "outbox"))
    return {**description, "orders": orders, "ready": ready, "facts": facts, "outbox": outbox}


async def _all(store: Store, status: Status) -> list[Record]:
    found: list[Record] = []
    cursor: str | None = None
    while True:
        records, cursor = await store.queries.page(Query(status, limit=1000, cursor=cursor))
        found += records
        if cursor is None:
            return found


def _task(record: Record, lines: list[str]) -> dict[str, Any]:
    if record.unreadable:
        return {"status": record.status, "unreadable": True}
    fields = {name: value for name, value in _plain(record).items() if name not in ("seq", "position")}
    if record.status is not Status.READY:
        del fields["place"]
    if record.status is not Status.RUNNING:
        del fields["lease_until"]
    return {**fields, "spec": _as_then(record.spec), "waiting": sorted(record.waiting), "log": lines}


def _lanes(records: list[Record]) -> dict[str, list[str]]:
    """The ready tasks of each lane, in their order."""
    lanes: dict[str, list[str]] = {}
    for record in sorted(records, key=lambda record: record.position):
        if record.status is Status.READY:
            lane = f"{record.spec.queue} {record.spec.band.name} {record.place.name}".lower()
            lanes.setdefault(lane, []).append(record.id)
    return dict(sorted(lanes.items()))


def _is_new(value: msgspec.Struct, name: str) -> bool:
    """Whether a field is younger than the data; such a one has its default, but for why a task was parked."""
    if name == "parked":
        return isinstance(value, Record)
    return name in SINCE and getattr(value, name) is None


def _plain(value: Any) -> Any:
    """As JSON has it; bytes as text in which a character is a byte."""
    if isinstance(value, bytes):
        return value.decode("latin-1")
    if isinstance(value, msgspec.Struct):
        tag = value.__struct_config__.tag
        fields = {name: _plain(getattr(value, name)) for name in value.__struct_fields__ if not _is_new(value, name)}
        return fields if tag is None else {"kind": str(tag), **fields}
    if isinstance(value, dict):
        return {str(key): _plain(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    return int(value) if isinstance(value, int) and not isinstance(value, bool) else value
