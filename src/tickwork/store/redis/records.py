"""A task as Redis holds it: one string of lengths, label, body and state (`docs/redis-records.md`).

Label and body say what was submitted and never change. The label (kind, queue, band, submit nonce, schedule, flags,
workflow, and both keys, one on each line) is what scripts may need to read; they never read the body. The state is
written by scripts alone; `lua/parts/lanes.lua` and `lua/parts/records.lua` have the same formats.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator
from functools import lru_cache
from typing import Any, Literal

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from tickwork.backoff import Backoff
from tickwork.model.tasks import HELD, Attempt, Lease, ParkReason, Place, Record, Spec, Status, band_of
from tickwork.payload.depth import STORED_MAX, TOO_DEEP, is_deep_msgpack
from tickwork.store.contract import Grant
from tickwork.store.unreadable import UNREADABLE, marked, reason, stub_spec

STATUSES = {
    "p": Status.PENDING,
    "b": Status.BLOCKED,
    "r": Status.READY,
    "a": Status.ASSIGNED,
    "x": Status.RUNNING,
    "t": Status.RETRYING,
    "s": Status.SUCCESS,
    "f": Status.FAILED,
    "d": Status.DEAD,
    "c": Status.CANCELLED,
}
HELD_IN = {Status.RUNNING: "leases:", Status.ASSIGNED: "inbox:"}  # behind these names follows the worker
CODES = {status: code for code, status in STATUSES.items()}
FRONT = 0
# The lane of a ready task, as the state has it; that of a side lane says why it was parked.
LANES: dict[int, tuple[Place, ParkReason | None]] = {
    FRONT: (Place.FRONT, None),
    1: (Place.SIDE, ParkReason.TYPE_UNKNOWN),
    2: (Place.MAIN, None),
    3: (Place.SIDE, ParkReason.TYPE_PAUSED),
    4: (Place.SIDE, ParkReason.LIMITED),
    5: (Place.SIDE, ParkReason.BREAKER_OPEN),
    6: (Place.SIDE, ParkReason.SWITCHED_OFF),
    7: (Place.SIDE, ParkReason.LABELS_MISSING),
    8: (Place.FAIR, None),
}
HELD_LANES = frozenset((4, 5, 6))  # as such a pending task is held
UNIQUE: dict[str | None, str] = {None: "", "queued": "q", "unfinished": "u"}
LARGE = 16384  # bytes of a label and body that do not travel through scripts again: the worker reads them itself
DEFAULT_SERIALIZER = "json"
KINDS_KEPT = 1000  # of which the first lines of the label need not be written again
_BY_BYTE = {code.encode(): status for code, status in STATUSES.items()}

_LENGTHS = struct.Struct(">HHI")  # of the kind (first three lines of the label), of the label, of the body
_LABEL_AT = _LENGTHS.size
_FLAGS = struct.Struct(">c4B")
_TIMES = (6, 6, 6, 6)  # seq, submitted_at, due_at, position
_FRESH_SIZE = _FLAGS.size + sum(_TIMES)  # the state of a task that was never claimed ends here
_COUNTS = struct.Struct(">IH")
_RUN = (7, 6, 6)  # fence, started_at, finished_at
_PLACE_AT = _FLAGS.size - 1
_GRANTED = struct.Struct(">B6xHIHI6xIH")  # from the place on, for a grant: submitted_at, due_at, attempt, losses
_FENCE_AT = _FRESH_SIZE + _COUNTS.size
_ROOM = bytes(_FRESH_SIZE + 256)  # behind a large body: for its state, which can then grow without a new allocation


class Body(Struct, array_like=True, gc=False):
    """The part of a spec that no script reads. Most tasks have only the first five fields, and are stored without the
    rest."""

    payload: bytes
    priority: int
    serializer: str | None
    max_retry: int | None
    timeout: float | None
    at: int | None = None
    delay: int = 0
    retry: Backoff | None = None
    dedup_ttl: int = 0
    tags: dict[str, str] = {}
    context: dict[str, Any] = {}
    executor: str | None = None
    target: str | None = None
    depends_on: tuple[str, ...] = ()
    scheduled_at: int | None = None
    expires: int | None = None
    expires_at: int | None = None
    requires: dict[str, str] = {}


class Extras(Struct, array_like=True, gc=False):
    """Fields that few tasks have. Lua cannot keep a nil in a list, so -1 and empty texts stand for none. Of a task that
    succeeded in its first run only the first four are stored."""

    code: int = 0
    message: str = ""
    result: msgspec.Raw = msgspec.Raw(b"\xa0")
    took: float = -1  # microseconds
    last_error: str = ""
    progress: float = -1
    progress_note: str = ""
    waiting: list[str] = []


def _unpack_result(raw: msgspec.Raw) -> bytes | None:
    data = bytes(raw)
    return None if data == b"\xa0" else data[_HEADERS.get(data[0], 1) + 1 :]


_HEADERS = {0xD9: 2, 0xDA: 3, 0xDB: 5}
_encode = msgspec.msgpack.Encoder().encode
_body = msgspec.msgpack.Decoder(Body).decode
_extras = msgspec.msgpack.Decoder(Extras).decode
_USUAL = b"\x95"  # as MessagePack begins a list of five


def pack_spec(spec: Spec) -> bytes:
    serializer = None if spec.serializer == DEFAULT_SERIALIZER else spec.serializer
    seconds = spec.timeout
    if seconds is not None and seconds.is_integer():
        seconds = int(seconds)  # which is shorter, and reads back as the same
    usual = (spec.payload, spec.priority, serializer, spec.max_retry, seconds)
    rare = (
        spec.at, spec.delay, spec.retry, spec.dedup_ttl, spec.tags, spec.context, spec.executor, spec.target,
        spec.depends_on, spec.scheduled_at, spec.expires, spec.expires_at, spec.requires,
    )  # fmt: skip
    body = _encode(usual + rare if any(rare) or has_deadline(spec) else usual)
    needless = spec.target is None and not spec.requires  # as most are
    kind, kind_size = _kind(spec.type if needless else spec.kind, spec.queue, spec.priority, spec.fair)
    label = f"{kind}\n{spec.nonce}\n{spec.schedule_id or ''}\n{_pack_flags(spec)}\n{spec.workflow or ''}\n".encode()
    label += _pack_keys(spec.key, spec.dedup_key)
    packed = _LENGTHS.pack(kind_size, len(label), len(body)) + label + body
    # Room for the state is made here: in a script every copy of a large text costs more than all the rest.
    return packed + _ROOM if len(packed) > LARGE else packed


def label_end(packed: bytes) -> int:
    """Where the body begins."""
    _, label_size, _ = _LENGTHS.unpack_from(packed)
    return _LENGTHS.size + int(label_size)


@lru_cache(maxsize=KINDS_KEPT)
def _kind(kind: str, queue: str, priority: int, fair: int) -> tuple[str, int]:
    """The first three lines of a label, and how many bytes they take."""
    kind = f"{kind}\n{queue}\n{int(band_of(priority))}{f' {fair}' if fair else ''}"
    return kind, len(kind.encode())


def _pack_flags(spec: Spec) -> str:
    """`s` or `e` for `run_after`, `q` or `u` for `unique`, `x` if it has a deadline, and its own retention."""
    after = "e" if spec.run_after == "end" else "s"
    if spec.unique is None and is_plain(spec):
        return after
    expires = "x" if has_deadline(spec) else ""
    return f"{after}{UNIQUE[spec.unique]}{expires}{'' if spec.retention is None else spec.retention}"


def _pack_keys(key: str | None, dedup_key: str | None) -> bytes:
    """The length of `key`, then both keys. They may be any text, so that no line end can stand between them."""
    if key is None and dedup_key is None:
        return b"0:"
    packed = (key or "").encode()
    return b"%d:" % len(packed) + packed + (dedup_key or "").encode()


def _unpack_keys(packed: bytes) -> tuple[str | None, str | None]:
    size, _, keys = packed.partition(b":")
    return keys[: int(size)].decode() or None, keys[int(size) :].decode() or None


def key_in_label(label: bytes) -> str | None:
    return _unpack_keys(label.split(b"\n", 7)[7])[0]


def has_deadline(spec: Spec) -> bool:
    return spec.expires is not None or spec.expires_at is not None


def is_plain(spec: Spec) -> bool:
    """Whether `submit.lua` can create the task: it has no dedup key, dependencies, schedule, deadline or retention of
    its own, and its queue is not fair."""
    return (
        spec.dedup_key is None
        and not spec.fair
        and not spec.depends_on
        and spec.schedule_id is None
        and spec.retention is None
        and spec.expires is None
        and spec.expires_at is None
    )


def pack_options(spec: Spec, waiting: tuple[str, ...] | None = None, watch: str = "") -> bytes:
    """The options of a submit that the script reads; empty for a task that is to run at once. `waiting`: the
    dependencies that have not ended, if the caller has looked them up already. `watch`: the channel on which its end is
    to be published."""
    options: dict[str, Any] = {"watch": watch} if watch else {}
    if spec.at is not None:
        options["at"] = spec.at
    elif spec.delay:
        options["delay"] = spec.delay
    if not is_plain(spec):
        options |= {"depends_on": spec.depends_on, "after_end": spec.run_after == "end"}
        if spec.dedup_key is not None:
            options |= {"dedup": spec.dedup_key, "dedup_ttl": spec.dedup_ttl, "unique": UNIQUE[spec.unique]}
        if spec.schedule_id is not None or spec.retention is not None or spec.unique is not None:
            options["settle"] = True
        if has_deadline(spec):
            options |= {"expires": spec.expires} if spec.expires is not None else {"expires_at": spec.expires_at}
        if waiting is not None:
            options["waiting"] = waiting
    return _encode(options) if options else b""


@lru_cache(maxsize=16)
def only_watch(channel: str) -> bytes:
    """The options of a task that is to run at once, and whose end is to be published."""
    return _encode({"watch": channel})


def _unpack_spec(task_id: str, value: bytes) -> tuple[Spec, int]:
    _, label_size, body_size = _LENGTHS.unpack_from(value)
    body_at = _LABEL_AT + label_size
    state_at = body_at + body_size
    kind, queue, band, nonce, schedule_id, flags, workflow, keys = value[_LABEL_AT:body_at].decode().split("\n", 7)
    key, dedup_key = (None, None) if keys == "0:" else _unpack_keys(keys.encode())
    unique, retention = (None, None) if len(flags) == 1 else _unpack_flags(flags)
    packed = value[body_at:state_at]
    # The usual five fields cannot be nested.
    if not packed.startswith(_USUAL) and is_deep_msgpack(packed, STORED_MAX):
        raise ValueError(TOO_DEEP)
    body = _body(packed)
    spec = Spec(
        id=task_id,
        type=kind if " " not in kind else kind.partition(" ")[0],
        nonce=nonce,
        queue=queue,
        priority=body.priority,
        payload=body.payload,
        serializer=body.serializer or DEFAULT_SERIALIZER,
        at=body.at,
        delay=body.delay,
        max_retry=body.max_retry,
        timeout=body.timeout,
        retry=body.retry,
        dedup_key=dedup_key,
        dedup_ttl=body.dedup_ttl,
        unique=unique,
        key=key,
        tags=body.tags,
        context=body.context,
        executor=body.executor,
        target=body.target,
        depends_on=body.depends_on,
        run_after="end" if flags[0] == "e" else "success",
        schedule_id=schedule_id or None,
        scheduled_at=body.scheduled_at,
        expires=body.expires,
        expires_at=body.expires_at,
        requires=body.requires,
        retention=retention,
        workflow=workflow or None,
        fair=0 if len(band) == 1 else int(band[2:]),
    )
    return spec, state_at


_FLAGS_FORMAT = re.compile("[se]([qu]?)x?([0-9]*)")


def _unpack_flags(flags: str) -> tuple[Literal["queued", "unfinished"] | None, int | None]:
    found = _FLAGS_FORMAT.fullmatch(flags)
    if found is None:
        raise ValueError(f"unknown flags {flags!r}")
    unique: Literal["queued", "unfinished"] | None = None
    if found[1]:
        unique = "queued" if found[1] == "q" else "unfinished"
    return unique, int(found[2]) if found[2] else None


def _numbers(value: bytes, at: int, sizes: tuple[int, ...]) -> tuple[list[int], int]:
    found = []
    for size in sizes:
        found.append(int.from_bytes(value[at : at + size]))
        at += size
    return found, at


def _text(value: bytes, at: int) -> tuple[str, int]:
    end = at + 1 + value[at]
    return value[at + 1 : end].decode(), end


def unpack(task_id: str, value: bytes, lease_until: int = 0, home: Status = Status.DEAD) -> Record:
    """A record; if the value cannot be read, a stub with the fields that can. `home` is the status of the home in which
    it was found."""
    try:
        spec, at = _unpack_spec(task_id, value)
        record = _unpack_state(spec, value, at)
        _unpack_run(record, value, at + _FRESH_SIZE, lease_until)
    except UNREADABLE as error:
        return _stub(task_id, value, lease_until, home, reason(error))
    return record


def _stub(task_id: str, value: bytes, lease_until: int, home: Status, why: str) -> Record:
    spec = stub_spec(task_id)
    record = Record(spec=spec, seq=0, status=home)
    try:
        _, label_size, body_size = _LENGTHS.unpack_from(value)
        label = value[_LABEL_AT : _LABEL_AT + label_size].decode("utf-8", "backslashreplace")
        kind, queue, band, _, schedule_id, *_ = label.split("\n")
        spec = replace(stub_spec(task_id, kind.partition(" ")[0], queue, int(band[0])), schedule_id=schedule_id or None)
        at = _LABEL_AT + label_size + body_size
        record = _unpack_state(spec, value, at)
        _unpack_run(record, value, at + _FRESH_SIZE, lease_until)
    except UNREADABLE:
        pass  # the stub has the fields that were read until then
    return marked(record, why)


def _unpack_state(spec: Spec, value: bytes, at: int) -> Record:
    status, cancel, _, _, lane = _FLAGS.unpack_from(value, at)
    place, parked = LANES[lane]
    (seq, submitted_at, due_at, position), _ = _numbers(value, at + _FLAGS.size, _TIMES)
    return Record(
        spec=spec,
        seq=seq,
        status=_BY_BYTE[status],
        submitted_at=submitted_at,
        due_at=due_at,
        place=place,
        parked=parked if status == b"r" or (status == b"p" and lane in HELD_LANES) else None,
        position=position,
        cancel=bool(cancel),
    )


def _unpack_run(record: Record, value: bytes, at: int, lease_until: int) -> None:
    """Read the second part of the state, which a task has that was claimed once or has extras."""
    if at == len(value):
        return
    record.attempt, record.losses = _COUNTS.unpack_from(value, at)
    (record.fence, started_at, finished_at), at = _numbers(value, at + _COUNTS.size, _RUN)
    record.nonce, at = _text(value, at)
    worker_id, at = _text(value, at)
    record.worker_id = worker_id or None
    if record.status in HELD:
        record.lease_until = lease_until
    if record.status is Status.RUNNING:  # it is in no lane, so this field holds the number of its last note
        record.position = 0
    record.started_at, record.finished_at = started_at or None, finished_at or None
    size = int.from_bytes(value[at : at + 4])
    if size:
        extras = _extras(value[at + 4 : at + 4 + size])
        record.code, record.message = extras.code, extras.message
        record.result = _unpack_result(extras.result)
        record.execution_time = None if extras.took < 0 else extras.took / 1e6
        record.last_error = extras.last_error or None
        record.progress = None if extras.progress < 0 else extras.progress
        record.progress_note = extras.progress_note
        record.waiting = list(extras.waiting)


def unpack_grant(task_id: str, value: bytes, nonce: str, worker_id: str = "") -> Grant:
    """The fields of a record that a worker needs to run the task. `worker_id`: who holds it, if the caller knows."""
    spec, at = _unpack_spec(task_id, value)
    place, high, low, due_high, due_low, attempt, losses = _GRANTED.unpack_from(value, at + _PLACE_AT)
    submitted_at, due_at = high << 32 | low, due_high << 32 | due_low
    fence = int.from_bytes(value[at + _FENCE_AT : at + _FENCE_AT + 7])
    if not worker_id:
        _, worker_at = _text(value, at + _FENCE_AT + sum(_RUN))
        worker_id, _ = _text(value, worker_at)
    came_back = place == FRONT or spec.depends_on  # see `rules.ready_at`
    since = None if came_back else due_at if due_at > submitted_at else submitted_at
    return Grant(spec, Lease(task_id, fence, nonce), attempt, losses, submitted_at, worker_id, since)


class _Run(Struct, array_like=True, gc=False):
    """A run in the history of a task, as `remember` in `homes.lua` writes it."""

    number: int
    started_at: int
    finished_at: int
    worker: str
    end: str
    took: float  # microseconds, -1 for unknown
    error: str


_run = msgspec.msgpack.Decoder(_Run, strict=False).decode


def unpack_attempt(packed: bytes) -> Attempt:
    run = _run(packed)
    took = None if run.took < 0 else run.took / 1e6
    return Attempt(run.number, run.started_at, run.finished_at, run.worker, run.end, took, run.error or None)


def lease_in(task_id: str, value: bytes, nonce: str) -> Lease:
    """The lease of a task whose label or body cannot be read. The state can, since a script has claimed it."""
    _, label_size, body_size = _LENGTHS.unpack_from(value)
    at = _LABEL_AT + label_size + body_size + _FENCE_AT
    return Lease(task_id, int.from_bytes(value[at : at + 7]), nonce)


def read_ended(message: bytes) -> Iterator[tuple[str, bytes]]:
    """Read a message of `ends.lua` to processes that wait for results: ids and values of ended tasks. A value may be
    empty."""
    at = 0
    while at < len(message):
        task_id, at = _text(message, at)
        end = at + 4 + int.from_bytes(message[at : at + 4])
        yield task_id, message[at + 4 : end]
        at = end
