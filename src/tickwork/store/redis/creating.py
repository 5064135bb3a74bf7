"""Creating tasks: the arguments of `submit.lua` and `submit_with.lua`, and what their replies mean."""

from __future__ import annotations

import itertools
import struct
from typing import Any, Literal

import msgspec

from tickwork.errors import StoreError
from tickwork.ids import new_nonce
from tickwork.model.policy import Durability
from tickwork.model.tasks import Spec
from tickwork.store.contract import Receipt
from tickwork.store.redis.core import Core
from tickwork.store.redis.net.link import pack, unread
from tickwork.store.redis.records import is_plain, label_end, pack_options, pack_spec

Args = tuple[Any, ...]
BESIDE = 65_536  # bytes of a value that is written beside the script
INCOMING = 60_000  # milliseconds that the value of a large task waits for the script that takes it over

VERDICTS: dict[str, Literal["created", "exists", "duplicate", "orphan"]] = {
    "": "created",
    "e": "exists",
    "d": "duplicate",
    "o": "orphan",
}


def submit_args(spec: Spec, waiting: tuple[str, ...] | None = None, watch: str = "") -> Args:
    try:
        return spec.id, pack_spec(spec), pack_options(spec, waiting, watch)
    except (OverflowError, struct.error, UnicodeError) as error:  # a number of more than 64 bits in its context, say
        raise StoreError(f"task {spec.id} cannot be stored: {error}") from None


def receipt_of(spec: Spec, verdict: bytes) -> Receipt:
    text = verdict.decode()
    return Receipt(spec.id, VERDICTS[text[:1]], text[1:])


async def create(
    core: Core, prefix: str, specs: list[Spec], packed: list[Args], durability: Durability
) -> list[Receipt]:
    """Create tasks of one partition in one call, or in two where one of their ids was there already."""
    left = list(range(len(specs)))
    receipts = [Receipt(spec.id, "created") for spec in specs]
    if all(map(is_plain, specs)):
        sent = _write_large(core, prefix, packed)
        left = await core.run_durably(durability, "submit", prefix, *itertools.chain.from_iterable(sent))
    if left:
        args = itertools.chain.from_iterable(packed[place] for place in left)
        reply = await core.run_durably(durability, "submit_with", prefix, *args)
        for place, verdict in zip(left, reply, strict=True):
            receipts[place] = receipt_of(specs[place], verdict)
    return receipts


def _write_large(core: Core, prefix: str, packed: list[Args]) -> list[Args]:
    """Write very large values to keys of their own, which the script only has to rename: each copy of a large text in a
    script costs more than all the rest. Nobody waits for these writes: of a value that is not there when the script
    runs, it answers that the task was not created, and the whole is sent again. Answers what is to be sent to the
    script."""
    if all(len(value) <= BESIDE for _, value, _ in packed) or (link := core.ready_link(prefix)) is None:
        return packed
    sent = list[Args]()
    for task_id, value, options in packed:
        if len(value) > BESIDE:
            body = new_nonce()
            link.send(pack("SET", f"{prefix}incoming:{body}", value, "PX", INCOMING)).add_done_callback(unread)
            more = msgspec.msgpack.decode(options) if options else {}
            sent.append((task_id, value[: label_end(value)], msgspec.msgpack.encode({**more, "body": body})))
        else:
            sent.append((task_id, value, options))
    return sent
