"""A claim: the arguments of `claim.lua` and `finish.lua`, and what they answer."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import Any

from tickwork.ids import name_of
from tickwork.store.contract import Claim, Claimed, Grant, Unreadable
from tickwork.store.redis.core import Core
from tickwork.store.redis.records import lease_in, unpack_grant
from tickwork.store.unreadable import UNREADABLE, reason

OVERDUE = -2  # the reply to a claim that has to wait until overdue tasks are cancelled
OVERDUE_MAX = 100  # that one call cancels
OVERDUE_CALLS = 20  # in one claim, so that it is answered soon however many there are


def claim_args(claim: Claim, suspect: bool = False) -> tuple[Any, ...]:
    """`suspect`: the process runs one in another partition (see `rules.is_suspect`)."""
    proof = (claim.worker_id, claim.process, claim.turn, claim.nonce)
    queues, types = _queues_text(claim.queues), _types_text(claim.types)
    if claim.front_only:
        queues, types = (
            _queues_text(_marked(claim, "queue", claim.queues)),
            _types_text(frozenset(_marked(claim, "type", claim.types))),
        )
    inboxes, assigned = _queues_text(claim.inboxes), _queues_text(claim.assigned)
    labels = _labels_text(claim.worker_id, tuple(claim.labels.items()))
    turns = (claim.lease_ttl, claim.limit, int(suspect))
    return *proof, *turns, queues, len(claim.types), types, labels, inboxes, assigned


def _marked(claim: Claim, kind: str, names: Iterable[str]) -> tuple[str, ...]:
    """With a slash before those of which only the front of their lanes is wanted."""
    return tuple(f"/{name}" if f"{kind}:{name}" in claim.front_only else name for name in names)


@lru_cache(maxsize=64)
def _queues_text(queues: tuple[str, ...]) -> bytes:
    return "\n".join(queues).encode()


@lru_cache(maxsize=64)
def _types_text(types: frozenset[str]) -> bytes:
    """Each type between two line ends, so that a script finds one in it without taking it apart."""
    return "".join(("\n", *(f"{kind}\n" for kind in types))).encode()


@lru_cache(maxsize=64)
def _labels_text(worker_id: str, labels: tuple[tuple[str, str], ...]) -> bytes:
    """What a worker has of that which tasks may need (see `Spec.needs`), each between two line ends."""
    known = [f"{label}={value}" for label, value in labels]
    return "".join(("\n", *(f"{each}\n" for each in (*known, f"@{worker_id}", f"@{name_of(worker_id)}")))).encode()


def waits_on(claim: Claim) -> dict[str, None]:
    """The wake lists on which a claimer waits: of its queues and its inboxes."""
    return dict.fromkeys((*claim.queues, *(f"/{owner}" for owner in claim.inboxes)))


async def claim_from(core: Core, prefix: str, claim: Claim, args: tuple[Any, ...]) -> Claimed:
    reply = await core.run("claim", prefix, *args, purpose="work")
    return await read_claimed(core, prefix, reply, claim, args)


async def read_claimed(core: Core, prefix: str, reply: list[Any], claim: Claim, args: tuple[Any, ...]) -> Claimed:
    """What a claim was answered. One that was refused since there are overdue tasks is repeated when those are
    cancelled; if they are very many, it gets nothing and may come again at once. Large tasks do not travel through
    scripts; they are read here."""
    calls = 0
    while reply[0] == OVERDUE:
        if calls == OVERDUE_CALLS:
            return Claimed([], 0)
        calls += 1
        await core.run("promote", prefix, OVERDUE_MAX)
        reply = await core.run("claim", prefix, *args, purpose="work")
    if b"" in reply:
        reply = await _with_large(core, prefix, reply)
    grants: list[Grant] = []
    owner = "" if claim.inboxes else claim.worker_id
    unreadable: list[Unreadable] = []
    for i in range(1, len(reply), 2):
        task_id, value = reply[i].decode(), reply[i + 1]
        try:
            grants.append(unpack_grant(task_id, value, claim.nonce, owner))
        except UNREADABLE as error:
            unreadable.append(Unreadable(lease_in(task_id, value, claim.nonce), reason(error)))
    return Claimed(grants, None if reply[0] < 0 else reply[0], unreadable)


async def _with_large(core: Core, prefix: str, reply: list[Any]) -> list[Any]:
    large = {place: reply[place - 1].decode() for place in range(2, len(reply), 2) if not reply[place]}
    values = await core.ask_all(prefix, [("GET", f"{prefix}task:{task_id}") for task_id in large.values()])
    found = dict(zip(large, values, strict=True))
    full = reply[:1]
    for place in range(2, len(reply), 2):
        value = found.get(place, reply[place])
        if value is not None:  # else it was lost and removed meanwhile
            full += [reply[place - 1], value]
    return full
