"""A task as Redis holds it: one string of lengths, label, body and state.

Label and body are what was asked and never change. The label (type, queue, band, submit nonce, schedule, `e` or `s` for
`run_after`, dedup key, one a line) is what scripts may need to see; the body is opaque to them. The state is written by
scripts alone; `prelude.lua` has the same formats.
"""

from __future__ import annotations

import struct
from typing import Any, Literal

import msgspec
from msgspec import Struct

from tickwork.backoff import Backoff
from tickwork.model import Lease, Outcome, Place, Record, Spec, Status, Succeeded
from tickwork.store.base import Grant

STATUSES = {
    "p": Status.PENDING,
    "b": Status.BLOCKED,
    "r": Status.READY,
    "x": Status.RUNNING,
    "t": Status.RETRYING,
    "s": Status.SUCCESS,
    "f": Status.FAILED,
    "d": Status.DEAD,
    "c": Status.CANCELLED,
}
CODES = {status: code for code, status in STATUSES.items()}
_BY_BYTE = {code.encode(): status for code, status in STATUSES.items()}

_LENGTHS = struct.Struct(">HI")
_HEAD = struct.Struct(">c4BIH")
HEAD_SIZE = _HEAD.size
_NUMBERS = (6, 6, 6, 7, 6, 6, 6)  # seq, submitted_at, due_at, fence, started_at, finished_at, position


class Body(Struct, array_like=True, gc=False):
    """The part of a spec that no script looks at. Most tasks have only its first fields, and are stored without the
    rest."""

    payload: bytes
    priority: int
    serializer: str
    max_retry: int | None
    timeout: float | None
    at: int | None = None
    delay: int = 0
    retry: Backoff | None = None
    dedup_ttl: int = 0
    key: str | None = None
    tags: dict[str, str] = {}
    context: dict[str, Any] = {}
    executor: str | None = None
    target: str | None = None
    depends_on: tuple[str, ...] = ()
    scheduled_at: int | None = None


class Extras(Struct, array_like=True, gc=False):
    """What few tasks have. Scripts cannot keep a nil in a list, so -1 and empty texts stand for none."""

    code: int = 0
    message: str = ""
    result: msgspec.Raw = msgspec.Raw(b"\xa0")
    execution_time: float = -1
    last_error: str = ""
    progress: float = -1
    progress_note: str = ""
    log: list[str] = []
    waiting: list[str] = []


class Report(Struct, array_like=True, gc=False):
    """The extras of a task that succeeded at once."""

    code: int
    message: str
    result: msgspec.Raw
    execution_time: float
    last_error: str = ""
    progress: float = -1
    progress_note: str = ""
    log: tuple[str, ...] = ()
    waiting: tuple[str, ...] = ()


def _pack_result(result: bytes | None) -> msgspec.Raw:
    """As MessagePack text, the only kind of string that scripts read, whatever bytes it holds. A mark in front tells an
    empty result from none."""
    if result is None:
        return msgspec.Raw(b"\xa0")
    size = len(result) + 1
    if size < 32:
        header = bytes((0xA0 | size,))
    elif size < 0x100:
        header = b"\xd9" + size.to_bytes(1)
    elif size < 0x10000:
        header = b"\xda" + size.to_bytes(2)
    else:
        header = b"\xdb" + size.to_bytes(4)
    return msgspec.Raw(header + b"=" + result)


def _unpack_result(raw: msgspec.Raw) -> bytes | None:
    data = bytes(raw)
    return None if data == b"\xa0" else data[_HEADERS.get(data[0], 1) + 1 :]


_HEADERS = {0xD9: 2, 0xDA: 3, 0xDB: 5}
_encode = msgspec.msgpack.Encoder().encode
_body = msgspec.msgpack.Decoder(Body).decode
_extras = msgspec.msgpack.Decoder(Extras).decode
_NO_EXTRAS = Extras()


def pack_spec(spec: Spec) -> bytes:
    usual = (spec.payload, spec.priority, spec.serializer, spec.max_retry, spec.timeout)
    rare = (
        spec.at, spec.delay, spec.retry, spec.dedup_ttl, spec.key, spec.tags, spec.context, spec.executor, spec.target,
        spec.depends_on, spec.scheduled_at,
    )  # fmt: skip
    body = _encode(usual + rare if any(rare) else usual)
    after = "e" if spec.run_after == "end" else "s"
    label = (
        f"{spec.type}\n{spec.queue}\n{int(spec.band)}\n{spec.nonce}\n{spec.schedule_id or ''}\n{after}\n"
        f"{spec.dedup_key or ''}"
    ).encode()
    return _LENGTHS.pack(len(label), len(body)) + label + body


def options_of(spec: Spec, waiting: tuple[str, ...] | None = None) -> bytes:
    """What a submit has to see of a spec that is not plain, empty for one that is. `waiting`: the caller has looked at
    its dependencies already, and these have not ended."""
    if spec.dedup_key is None and not spec.depends_on and spec.schedule_id is None:
        return b""
    options: dict[str, Any] = {"depends_on": spec.depends_on, "after_end": spec.run_after == "end"}
    if spec.dedup_key is not None:
        options["dedup"], options["dedup_ttl"] = spec.dedup_key, spec.dedup_ttl
    if spec.schedule_id is not None:
        options["schedule"] = True
    if waiting is not None:
        options["waiting"] = waiting
    return _encode(options)


def _unpack_spec(task_id: str, value: bytes) -> tuple[Spec, int]:
    label_size, body_size = _LENGTHS.unpack_from(value)
    state_at = 6 + label_size + body_size
    kind, queue, _, nonce, schedule_id, after, dedup_key = value[6 : 6 + label_size].decode().split("\n", 6)
    body = _body(value[6 + label_size : state_at])
    spec = Spec(
        id=task_id,
        type=kind,
        nonce=nonce,
        queue=queue,
        priority=body.priority,
        payload=body.payload,
        serializer=body.serializer,
        at=body.at,
        delay=body.delay,
        max_retry=body.max_retry,
        timeout=body.timeout,
        retry=body.retry,
        dedup_key=dedup_key or None,
        dedup_ttl=body.dedup_ttl,
        key=body.key,
        tags=body.tags,
        context=body.context,
        executor=body.executor,
        target=body.target,
        depends_on=body.depends_on,
        run_after="end" if after == "e" else "success",
        schedule_id=schedule_id or None,
        scheduled_at=body.scheduled_at,
    )
    return spec, state_at


def _numbers(value: bytes, at: int) -> tuple[list[int], int]:
    found = []
    for size in _NUMBERS:
        found.append(int.from_bytes(value[at : at + size]))
        at += size
    return found, at


def _text(value: bytes, at: int) -> tuple[str, int]:
    end = at + 1 + value[at]
    return value[at + 1 : end].decode(), end


def unpack(task_id: str, value: bytes, lease_until: int = 0) -> Record:
    spec, at = _unpack_spec(task_id, value)
    status, cancel, _, _, place, attempt, losses = _HEAD.unpack_from(value, at)
    numbers, at = _numbers(value, at + HEAD_SIZE)
    seq, submitted_at, due_at, fence, started_at, finished_at, position = numbers
    nonce, at = _text(value, at)
    worker_id, at = _text(value, at)
    size = int.from_bytes(value[at : at + 4])
    extras = _extras(value[at + 4 : at + 4 + size]) if size else _NO_EXTRAS
    running = status == b"x"
    return Record(
        spec=spec,
        seq=seq,
        status=_BY_BYTE[status],
        submitted_at=submitted_at,
        due_at=due_at,
        place=Place(place),
        position=position,
        attempt=attempt,
        losses=losses,
        fence=fence,
        nonce=nonce,
        worker_id=worker_id or None,
        lease_until=lease_until if running else 0,
        started_at=started_at or None,
        finished_at=finished_at or None,
        cancel=bool(cancel),
        last_error=extras.last_error or None,
        code=extras.code,
        message=extras.message,
        result=_unpack_result(extras.result),
        execution_time=None if extras.execution_time < 0 else extras.execution_time,
        progress=None if extras.progress < 0 else extras.progress,
        progress_note=extras.progress_note,
        log=list(extras.log),
        waiting=list(extras.waiting),
    )


def unpack_grant(task_id: str, value: bytes, nonce: str) -> Grant:
    """As much of a record as a worker needs."""
    spec, at = _unpack_spec(task_id, value)
    attempt, losses = _HEAD.unpack_from(value, at)[5:]
    at += HEAD_SIZE + 6
    submitted_at = int.from_bytes(value[at : at + 6])
    fence = int.from_bytes(value[at + 12 : at + 19])
    return Grant(spec, Lease(task_id, fence, nonce), attempt, losses, submitted_at)


Kind = Literal["S", "F", "A", "Z", "R", "T"]
_KINDS: dict[str, Kind] = {
    "Succeeded": "S",
    "Failed": "F",
    "Aborted": "A",
    "Snoozed": "Z",
    "Released": "R",
    "Stopped": "T",
}


def outcome_args(outcome: Outcome) -> tuple[Any, ...]:
    """The arguments of one outcome for `finish.lua`."""
    lease, kind = outcome.lease, _KINDS[type(outcome).__name__]
    if isinstance(outcome, Succeeded):
        report = _encode(Report(outcome.code, outcome.message, _pack_result(outcome.result), outcome.duration))
        return lease.id, lease.fence, lease.nonce, "S", 0, "", report, repr(outcome.duration)
    number: int = getattr(outcome, "retry_in", 0)
    text = getattr(outcome, "error", "")
    if kind == "Z":
        at: int | None = outcome.at  # type: ignore[union-attr]
        number, text = (outcome.delay, "") if at is None else (at, "at")  # type: ignore[union-attr]
    return lease.id, lease.fence, lease.nonce, kind, number, text, b"", repr(float(getattr(outcome, "duration", 0.0)))
