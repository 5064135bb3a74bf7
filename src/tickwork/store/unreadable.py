"""What is left of data that this version cannot read: written by a newer one, or damaged."""

from __future__ import annotations

import struct

import msgspec

from tickwork.errors import StoreError
from tickwork.model.facts import Event, Fact
from tickwork.model.schedules import Schedule
from tickwork.model.tasks import CANNOT_READ, UNKNOWN, Band, Priority, Record, Spec
from tickwork.payload.depth import STORED_MAX, TOO_DEEP, is_deep_msgpack
from tickwork.texts import storable

# Whatever reading bytes that nobody vouches for may raise.
UNREADABLE: tuple[type[Exception], ...] = (
    msgspec.MsgspecError,
    struct.error,
    ValueError,
    TypeError,
    LookupError,
    ArithmeticError,
    RecursionError,
)
_PRIORITIES = {Band.HIGH: Priority.HIGH, Band.NORMAL: Priority.NORMAL, Band.LOW: Priority.LOW}


def reason(error: Exception) -> str:
    return storable(f"{CANNOT_READ}: {str(error) or type(error).__name__}"[:300])


def stub_spec(task_id: str, type: str = UNKNOWN, queue: str = UNKNOWN, band: int = Band.NORMAL) -> Spec:
    """The names by which the store's indexes know a task, where those are left."""
    priority = _PRIORITIES[Band(band)] if band in tuple(Band) else Priority.NORMAL
    return Spec(id=task_id, type=type, nonce="", queue=queue, priority=priority)


def marked(record: Record, why: str) -> Record:
    """A record made of what is left. A reason that was stored when it became a dead letter says more than the last try
    to read it."""
    stored = record.last_error or ""
    record.unreadable = record.last_error = stored if stored.startswith(CANNOT_READ) else why
    return record


_schedule = msgspec.msgpack.Decoder(Schedule).decode


def read_schedule(schedule_id: str, blob: bytes) -> Schedule:
    """The schedule, or what stands for one that cannot be read."""
    try:
        if is_deep_msgpack(blob, STORED_MAX):
            raise ValueError(TOO_DEEP)
        return _schedule(blob)
    except UNREADABLE as error:
        return Schedule(id=schedule_id, task=stub_spec(""), enabled=False, stopped=reason(error))


def unreadable_fact(number: int, error: Exception) -> Event:
    return Event(number, 0, Fact.LOG_UNREADABLE, "", detail=reason(error))


def refuse_stub(schedule: Schedule) -> None:
    if schedule.unreadable:
        raise StoreError(f"schedule {schedule.id}: {schedule.stopped}; delete it, or put it anew")
