"""Creating tasks: the arguments of `submit.lua` and `submit_with.lua`, and what their replies mean."""

from __future__ import annotations

import itertools
import struct
from typing import Any, Literal

from tickwork.errors import StoreError
from tickwork.model.policy import Durability
from tickwork.model.tasks import Spec
from tickwork.store.contract import Receipt
from tickwork.store.redis.core import Core
from tickwork.store.redis.records import is_plain, pack_options, pack_spec

Args = tuple[Any, ...]

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
        left = await core.run_durably(durability, "submit", prefix, *itertools.chain.from_iterable(packed))
    if left:
        args = itertools.chain.from_iterable(packed[place] for place in left)
        reply = await core.run_durably(durability, "submit_with", prefix, *args)
        for place, verdict in zip(left, reply, strict=True):
            receipts[place] = receipt_of(specs[place], verdict)
    return receipts
