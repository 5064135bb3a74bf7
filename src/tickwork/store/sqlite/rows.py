"""Records to rows and back."""

from __future__ import annotations

from collections.abc import Sequence
from types import NoneType
from typing import Any

import msgspec
from msgspec.structs import replace

from tickwork.model.tasks import ParkReason, Place, Record, Spec, Status
from tickwork.payload.depth import STORED_MAX, TOO_DEEP, is_deep_msgpack
from tickwork.store.sqlite.connection import Connection
from tickwork.store.unreadable import UNREADABLE, marked, reason, stub_spec

# In the order of the columns, so that a row is a prefix of constructor arguments.
CHANGING = (
    "status", "due_at", "place", "position", "attempt", "losses", "fence", "nonce", "worker_id", "lease_until",
    "started_at", "finished_at", "cancel", "last_error", "code", "message", "result", "execution_time",
    "progress", "progress_note",
)  # fmt: skip
READ = ("seq", "id", "submitted_at", *CHANGING, "parked")
COLUMNS = ", ".join(READ)
SPEC = "SELECT spec, id, type, queue, band FROM @specs JOIN @tasks USING (seq) WHERE seq = ?"
INSERT = (
    f"INSERT INTO @tasks (seq, id, nonce0, type, queue, band, schedule_id, submitted_at, {', '.join(CHANGING)}, key, "
    f"workflow, kind) VALUES ({', '.join('?' * (11 + len(CHANGING)))}) ON CONFLICT (id) DO NOTHING"
)
# Indexes follow every column that is set, so the two hot transitions set no more than they change.
START = (
    "UPDATE @tasks SET status = 'running', attempt = ?, fence = ?, nonce = ?, worker_id = ?, lease_until = ?, "
    "started_at = ?, finished_at = NULL, parked = NULL WHERE seq = ?"
)
SUCCEED = (
    "UPDATE @tasks SET status = 'success', position = ?, lease_until = 0, finished_at = ?, cancel = 0, code = ?, "
    "message = ?, result = ?, execution_time = ? WHERE seq = ?"
)
UPDATE = f"UPDATE @tasks SET {', '.join(f'{name} = ?' for name in CHANGING)}, parked = ? WHERE seq = ?"
# What a task may have beside its row; mostly these are empty.
BESIDE = ("deadlines", "kept", "attempts", "lines")
ANY_BESIDE = f"SELECT {', '.join(f'EXISTS (SELECT 1 FROM @{name})' for name in BESIDE)}"

# SQLite keeps whatever is written into a column; what no Tickwork has written must not be calculated with.
_NUMBER, _TEXT = (int,), (str,)
_TYPES: dict[str, tuple[type, ...]] = {
    **dict.fromkeys(READ, _NUMBER),
    **dict.fromkeys(("id", "status", "nonce", "message", "progress_note"), _TEXT),
    **dict.fromkeys(("worker_id", "last_error", "parked"), (str, NoneType)),
    **dict.fromkeys(("started_at", "finished_at"), (int, NoneType)),
    **dict.fromkeys(("execution_time", "progress"), (float, NoneType)),
    "result": (bytes, NoneType),
}
_sound_shapes: set[tuple[type, ...]] = set()  # rows are of few kinds, each of which is looked at once

_STATUS = {status.value: status for status in Status}
_PARK_REASONS = {reason.value: reason for reason in ParkReason}
_encode = msgspec.msgpack.Encoder().encode
_decode_spec = msgspec.msgpack.Decoder(Spec).decode


class Rows:
    """Loads and saves records over one connection."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._specs = connection.specs
        self._running = connection.running

    def insert(self, record: Record) -> bool:
        """False when there is a task of that id."""
        spec = record.spec
        cursor = self._connection.run(
            INSERT,
            (record.seq, spec.id, spec.nonce, spec.type, spec.queue, int(spec.band), spec.schedule_id,
             record.submitted_at, *_changing(record), spec.key, spec.workflow,
             spec.kind if spec.requires or spec.target else None),
        )  # fmt: skip
        if cursor.rowcount == 0:
            return False
        encoded = _encode(spec)
        self._connection.run("INSERT INTO @specs (seq, spec) VALUES (?, ?)", (record.seq, encoded))
        if self._connection.claims:  # else it is for another process
            self._specs.add(record.seq, spec, len(encoded))
        return True

    def save_started(self, records: list[Record]) -> None:
        self._connection.many(
            START,
            [(r.attempt, r.fence, r.nonce, r.worker_id, r.lease_until, r.started_at, r.seq) for r in records],
        )
        self._running.update((record.spec.id, record) for record in records)

    def save_extended(self, records: list[Record]) -> None:
        self._connection.many(
            "UPDATE @tasks SET lease_until = ? WHERE seq = ?", [(r.lease_until, r.seq) for r in records]
        )

    def save_succeeded(self, records: list[Record]) -> None:
        self._connection.many(
            SUCCEED,
            [(r.position, r.finished_at, r.code, r.message, r.result, r.execution_time, r.seq) for r in records],
        )
        for record in records:
            self._running.pop(record.spec.id, None)

    def save(self, records: Sequence[Record]) -> None:
        self._connection.many(UPDATE, [(*_changing(record), record.parked, record.seq) for record in records])
        for record in records:
            if record.status is Status.RUNNING:
                self._running[record.spec.id] = record
            else:
                self._running.pop(record.spec.id, None)

    def delete(self, numbers: list[int]) -> None:
        if not numbers:
            return
        used = [name for name, any_row in zip(BESIDE, self._connection.one(ANY_BESIDE), strict=True) if any_row]
        for table in ("tasks", "specs", *used):
            self._connection.many(f"DELETE FROM @{table} WHERE seq = ?", [(seq,) for seq in numbers])
        for seq in numbers:
            self._specs.discard(seq)

    def get(self, task_id: str) -> Record | None:
        found = self.where("id = ?", (task_id,))
        return found[0] if found else None

    def by_ids(self, ids: list[str]) -> dict[str, Record]:
        found = {task_id: record for task_id in ids if (record := self._running.get(task_id)) is not None}
        unknown = [task_id for task_id in ids if task_id not in found]
        if unknown:
            marks = ",".join("?" * len(unknown))
            found.update((record.id, record) for record in self.where(f"id IN ({marks})", unknown))
        return found

    def where(self, condition: str, params: Any = ()) -> list[Record]:
        """Records by a condition, which may end in ORDER BY and LIMIT."""
        return [
            self._record(row) for row in self._connection.all(f"SELECT {COLUMNS} FROM @tasks WHERE {condition}", params)
        ]

    def _record(self, row: Any) -> Record:
        try:
            return self._whole(row)
        except UNREADABLE as error:
            return self._stub(row, reason(error))

    def _whole(self, row: Any) -> Record:
        shape = tuple(map(type, row))
        if shape not in _sound_shapes:
            _check_shape(shape)
        status = _STATUS[row[3]]
        return Record(
            spec=self._spec(row[0]), seq=row[0], submitted_at=row[2], status=status, due_at=row[4],
            place=Place(row[5]), position=row[6], attempt=row[7], losses=row[8], fence=row[9], nonce=row[10],
            worker_id=row[11], lease_until=row[12], started_at=row[13], finished_at=row[14], cancel=bool(row[15]),
            last_error=row[16], code=row[17], message=row[18], result=row[19], execution_time=row[20],
            progress=row[21], progress_note=row[22], parked=None if row[23] is None else ParkReason(row[23]),
            waiting=self._waiting(row[1]) if status is Status.BLOCKED else [],
        )  # fmt: skip

    def _stub(self, row: Any, why: str) -> Record:
        """A record of what can be read, so that it can be shown, ended and deleted."""
        found = {name: value for name, value in zip(READ, row, strict=True) if type(value) in _TYPES[name]}
        status = _STATUS.get(found.pop("status", ""), Status.DEAD)
        task_id, place = str(found.pop("id", row[1])), found.pop("place", Place.MAIN)
        parked = found.pop("parked", None)
        names = "SELECT type, queue, band, schedule_id FROM @tasks WHERE seq = ?"
        ((kind, queue, band, schedule_id),) = self._connection.all(names, (row[0],))
        spec = stub_spec(task_id, str(kind), str(queue), band)
        record = Record(
            spec=replace(spec, schedule_id=None if schedule_id is None else str(schedule_id)),
            status=status,
            place=Place(place) if place in tuple(Place) else Place.MAIN,
            cancel=bool(found.pop("cancel", False)),
            parked=_PARK_REASONS.get(parked),
            waiting=self._waiting(task_id) if status is Status.BLOCKED else [],
            **found,
        )
        return marked(record, why)

    def _waiting(self, task_id: str) -> list[str]:
        return [row[0] for row in self._connection.all("SELECT upstream FROM @waits WHERE dependant = ?", (task_id,))]

    def _spec(self, seq: int) -> Spec:
        spec = self._specs.get(seq)
        if spec is None:
            found = self._connection.all(SPEC, (seq,))
            if not found:
                raise LookupError("what was asked is missing")
            ((encoded, *names),) = found
            if is_deep_msgpack(encoded, STORED_MAX):
                raise ValueError(TOO_DEEP)
            spec = _decode_spec(encoded)
            if [spec.id, spec.type, spec.queue, spec.band] != names:  # claims would look for it where it is not
                raise LookupError("its row does not say what was asked")
            self._specs.add(seq, spec, len(encoded))
        return spec


def _check_shape(shape: tuple[type, ...]) -> None:
    for name, kind in zip(READ, shape, strict=True):
        if kind not in _TYPES[name]:
            raise TypeError(f"column {name} holds a value of type {kind.__name__}")
    _sound_shapes.add(shape)


def _changing(record: Record) -> tuple[Any, ...]:
    return (
        record.status.value, record.due_at, int(record.place), record.position, record.attempt, record.losses,
        record.fence, record.nonce, record.worker_id, record.lease_until, record.started_at, record.finished_at,
        record.cancel, record.last_error, record.code, record.message, record.result, record.execution_time,
        record.progress, record.progress_note,
    )  # fmt: skip
