"""The short way of a submit: one task that is to run at once, without options but for who waits for it, by
`submit_one.lua`.

Whatever does not go this way, and whatever goes wrong on it, goes to `creating.create` with the same spec. That is safe
even if the reply to the short call was lost: a submit with the nonce of the task that is there changes nothing.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import hiredis
import msgspec

from tickwork.ids import is_name
from tickwork.model.tasks import Band, Spec, band_of
from tickwork.store.redis.core import Core
from tickwork.store.redis.creating import Args
from tickwork.store.redis.net.link import LinkLost, Reply, pack
from tickwork.store.redis.net.sockets import CannotSay
from tickwork.store.redis.records import LARGE, only_watch

BANDS = {Band.HIGH: "high", Band.NORMAL: "normal", Band.LOW: "low"}
KINDS_MAX = 1000
CREATED = 1

_encode = msgspec.msgpack.Encoder().encode
_ONE_FACT = b"\x91\x97"  # as MessagePack begins a list of one group, and a group with one subject
_NO_DURATION = b"\x00"


class Kind(NamedTuple):
    """What tasks of one type, queue and priority have in common."""

    lane: str
    fact: bytes  # as far as the id


class ShortSubmit:
    def __init__(self, core: Core) -> None:
        self._core = core
        self._kinds: dict[tuple[str, str, int], Kind] = {}  # used by all threads
        policy, several = core.policy, not core.alone
        # By prefix: what stands before the arguments of a task, and what stands behind them.
        self._head = {
            prefix: (2, prefix, f"{prefix}-", core.layout.root, policy.events_max) for prefix in core.prefixes
        }
        self._tail = {
            prefix: (len(core.prefixes), number) if several else () for number, prefix in enumerate(core.prefixes)
        }

    async def create(self, prefix: str, spec: Spec, packed: Args) -> bool:
        """Whether the task was created. If not, nothing is known of it."""
        core = self._core
        link = core.ready_link(prefix)
        args = None if link is None else self.args(prefix, spec, packed)
        if link is None or args is None:
            return False
        script = core.script("submit_one")
        try:
            reply = await link.send(pack("EVALSHA", script.sha, *args))
            if is_unknown(reply):
                reply = await link.send(pack("EVAL", script.text, *args))
        except LinkLost:
            core.connections().wire.topology.doubt()
            return False
        return bool(reply == CREATED)

    def create_blocking(self, prefix: str, spec: Spec, packed: Args, most: float | None = None) -> bool:
        """The same in a thread without an event loop."""
        core = self._core
        args = self.args(prefix, spec, packed) if core.can_block(prefix) else None
        if args is None:
            return False
        script, sockets = core.script("submit_one"), core.sockets
        try:
            (reply,) = sockets.call(prefix, [pack("EVALSHA", script.sha, *args)], most)
            if is_unknown(reply):
                (reply,) = sockets.call(prefix, [pack("EVAL", script.text, *args)], most)
        except CannotSay:
            return False
        if isinstance(reply, hiredis.ReplyError):
            sockets.doubt()
        return bool(reply == CREATED)

    def args(self, prefix: str, spec: Spec, packed: Args) -> tuple[Any, ...] | None:
        """What comes behind the script, beginning with the number of keys; None if the task cannot go this way."""
        task_id, value, options = packed
        watch = self._core.channel if options else ""
        if (options and options != only_watch(watch)) or len(value) > LARGE:
            return None
        key = (spec.type, spec.queue, spec.priority)
        kind = self._kinds.get(key) or self._learn(key)
        if kind is None:
            return None
        fact = kind.fact and kind.fact + _encode(task_id) + _NO_DURATION
        return (*self._head[prefix], task_id, value, kind.lane, spec.queue, fact, watch, *self._tail[prefix])

    def _learn(self, key: tuple[str, str, int]) -> Kind | None:
        type_name, queue, priority = key
        if not is_name(type_name) or not is_name(queue):
            return None
        fact = b"".join(map(_encode, ("task.submitted", f"{type_name}\n{queue}", "", 0, "")))
        kind = Kind(f"{BANDS[band_of(priority)]}:{queue}", _ONE_FACT + fact if self._core.policy.events else b"")
        if len(self._kinds) >= KINDS_MAX:
            self._kinds.clear()
        self._kinds[key] = kind
        return kind


def is_unknown(reply: Reply) -> bool:
    """The server does not have the script."""
    return isinstance(reply, hiredis.ReplyError) and str(reply).startswith("NOSCRIPT")
