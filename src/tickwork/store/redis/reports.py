"""Outcomes of runs, as `finish.lua` reads them."""

from __future__ import annotations

import struct

import msgspec

from tickwork.model.outcomes import Aborted, Failed, Held, Outcome, Released, Snoozed, Stopped, Succeeded
from tickwork.model.tasks import ParkReason

_encode = msgspec.msgpack.Encoder().encode
_KINDS: dict[type, bytes] = {
    Succeeded: b"S", Failed: b"F", Aborted: b"A", Snoozed: b"Z", Held: b"H", Released: b"R", Stopped: b"T",
}  # fmt: skip
_LANES = {ParkReason.LIMITED: 4, ParkReason.BREAKER_OPEN: 5, ParkReason.SWITCHED_OFF: 6}  # see `records.LANES`
_OUTCOME = struct.Struct(">BBc7sddI")  # sizes of id and nonce, kind, fence, number, microseconds, size of the text
_FENCE_MAX = 2**53
_NONCE_MAX = 255


def pack_outcome(outcome: Outcome) -> bytes:
    """An outcome for `finish.lua`: its numbers, then id, nonce and text."""
    number, took, text = 0.0, round(getattr(outcome, "duration", 0.0) * 1e6), b""
    match outcome:
        case Succeeded():
            text = _encode((outcome.code, outcome.message, _pack_result(outcome.result), took))
        case Failed():
            number, text = outcome.retry_in, outcome.error.encode()
        case Aborted():
            text = outcome.error.encode()
        case Stopped():
            text = outcome.message.encode()
        case Snoozed():
            number, text = (outcome.delay, b"") if outcome.at is None else (outcome.at, b"at")
            text += f"!{outcome.error}".encode() if outcome.error else b""
        case Held():
            number, text = outcome.delay, f"{_LANES[outcome.why]}{outcome.gate}".encode()
    lease = outcome.lease
    task_id, nonce = lease.id.encode(), lease.nonce.encode()
    # Given by hand (`update_task_status`): no claim has such a lease.
    if len(nonce) > _NONCE_MAX or not 0 <= lease.fence < _FENCE_MAX:
        nonce, fence = b"", 0
    else:
        fence = lease.fence
    head = _OUTCOME.pack(len(task_id), len(nonce), _KINDS[type(outcome)], fence.to_bytes(7), number, took, len(text))
    return head + task_id + nonce + text


def _pack_result(result: bytes | None) -> msgspec.Raw:
    """A result as MessagePack text, whatever bytes it holds, since scripts can read no other kind of string. An `=` in
    front distinguishes an empty result from none."""
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
