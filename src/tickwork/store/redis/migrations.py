"""From the layout before to this one: every key moves to the prefix of the new layout, tasks are rewritten on the way.

The steps may be repeated, also by two processes at once: a key that has moved is not found under the old prefix any
more. Until the last one has moved, the namespace has no `layout`, so that no script of this version runs on half of it;
scripts of the older version find nothing to do from the first step on (`lua/migrate_begin.lua`).
"""

from __future__ import annotations

import struct
from collections.abc import AsyncIterator, Callable
from typing import Any, NamedTuple

import msgspec

from tickwork.errors import StoreError
from tickwork.store.contract import NotPermitted
from tickwork.store.redis.core import Core
from tickwork.store.redis.keys import BEFORE, VERSION
from tickwork.store.unreadable import UNREADABLE

STEP = 200  # keys in one call
TASKS_STEP = 50  # tasks that are read in one call
BYTES_MAX = 4_000_000  # of tasks that are moved in one call, unless a single one is larger
GLANCE = 1023  # as in `lua/parts/lanes.lua`
ROOM = bytes(256)
# What stays under the old prefix, to stop nodes of the older version.
TOMBSTONES = frozenset({"meta", "position", "pulse", "layout"})
# What is written anew: leases move with their tasks, and those who wait for a result ask again.
DROPPED = ("leases", "watchers")

_LENGTHS = struct.Struct(">HHI")
_FRESH_SIZE = 29
_RUN_SIZE = 4 + 2 + 7 + 6 + 6
_raws = msgspec.msgpack.Decoder(list[msgspec.Raw]).decode
_encode = msgspec.msgpack.encode
_NIL = msgspec.Raw(b"\xc0")


class Moved(NamedTuple):
    """A task of layout 2 as layout 3 has it."""

    value: bytes
    worker: str
    lines: list[str]


async def migrate(core: Core, take_over: bool, report: Callable[[int], None]) -> bool:
    """Move the namespace to this layout. False when it has it already. `report` is told how many keys have moved."""
    stored = await core.stored_layout()
    if stored in (None, VERSION):
        return False
    if stored not in (BEFORE, f"{BEFORE}>{VERSION}"):
        raise StoreError(
            f"namespace {core.layout.namespace!r} at {core.url} has layout {stored}, and this version of Tickwork "
            f"migrates layout {BEFORE} to {VERSION}: use a version in between, or a newer one"
        )
    if stored == BEFORE and not take_over:
        await _refuse_if_used(core)
    for prefix in core.prefixes:  # before the first step, after which the namespace cannot be used until the last
        await _list_keys(core, prefix, "0", f"{core.layout.before(prefix)}*")
    moved = 0
    for prefix in core.prefixes:
        before = core.layout.before(prefix)
        if await core.run("migrate_begin", prefix, VERSION, before, BEFORE):
            async for count in _move_all(core, prefix, before):
                moved += count
                report(moved)
    for prefix in reversed(core.prefixes):  # the root last: whoever opens the namespace looks at that
        await core.run("migrate_end", prefix, VERSION, core.layout.before(prefix), *DROPPED)
    return True


async def _refuse_if_used(core: Core) -> None:
    root = core.layout.before(core.layout.root)
    seconds, _ = await core.ask(core.layout.root, "TIME")
    found = await core.ask(core.layout.root, "ZRANGEBYSCORE", f"{root}workers:online", int(seconds) * 1000, "+inf")
    if found:
        names = ", ".join(name.decode("utf-8", "replace") for name in found[:3])
        more = f" and {len(found) - 3} more" if len(found) > 3 else ""
        raise StoreError(
            f"namespace {core.layout.namespace!r} at {core.url} is in use by workers of an older version of Tickwork: "
            f"{names}{more}. Stop them first; or take the namespace over, and they stop by themselves, but what they "
            "run now is run again"
        )


async def _move_all(core: Core, prefix: str, before: str) -> AsyncIterator[int]:
    """Go through all keys of the old prefix until none is left."""
    dropped = {name.encode() for name in DROPPED}
    while True:
        left = 0
        async for names in _names(core, prefix, before):
            tasks = [name.removeprefix(b"task:") for name in names if name.startswith(b"task:")]
            others = [name for name in names if not name.startswith(b"task:") and name not in dropped]
            left += len(tasks) + len(others)
            if others:
                yield await core.run("migrate_keys", prefix, before, *others)
            for first in range(0, len(tasks), TASKS_STEP):
                yield await _move_tasks(core, prefix, before, tasks[first : first + TASKS_STEP])
        if not left:
            return


async def _names(core: Core, prefix: str, before: str) -> AsyncIterator[list[bytes]]:
    """The names of keys that have not moved, in pieces. They may be any bytes: other programs can have written some."""
    stay = {name.encode() for name in TOMBSTONES}
    cursor: Any = b"0"
    while True:
        cursor, keys = await _list_keys(core, prefix, cursor, f"{before}*")
        found = (key.removeprefix(before.encode()) for key in keys if not key.startswith(prefix.encode()))
        names = [name for name in found if name not in stay]
        for first in range(0, len(names), STEP):
            yield names[first : first + STEP]
        if cursor == b"0":
            return


async def _list_keys(core: Core, prefix: str, cursor: Any, pattern: str) -> Any:
    try:
        return await core.ask(prefix, "SCAN", cursor, "MATCH", pattern, "COUNT", STEP)
    except NotPermitted as error:
        raise NotPermitted(
            f"a migration of Redis at {core.target.url} lists keys, which a worker's user may not: give it one "
            "with the rights of `tickwork acl --for audit`"
        ) from error


async def _move_tasks(core: Core, prefix: str, before: str, ids: list[bytes]) -> int:
    values = await core.ask(prefix, "MGET", *(b"%btask:%b" % (before.encode(), task_id) for task_id in ids))
    # Those without a value were moved by another process, or are no strings, and nobody can read them.
    odd = [b"task:" + task_id for task_id, value in zip(ids, values, strict=True) if value is None]
    count = int(await core.run("migrate_keys", prefix, before, *odd)) if odd else 0
    args: list[Any] = []
    size = 0
    for task_id, value in zip(ids, values, strict=True):
        if value is not None:
            if args and size + len(value) > BYTES_MAX:
                count += int(await core.run("migrate_tasks", prefix, before, *args))
                args, size = [], 0
            moved = rewrite(value)
            args += (task_id, value, moved.value, moved.worker, _encode(moved.lines))
            size += len(value)
    return count + (int(await core.run("migrate_tasks", prefix, before, *args)) if args else 0)


def rewrite(value: bytes) -> Moved:
    """A task of layout 2 in layout 3. What cannot be read is left as it is, for the reader to report."""
    try:
        kind_size, label_size, body_size = _LENGTHS.unpack_from(value)
        body_at = _LENGTHS.size + label_size
        state_at = body_at + body_size
        label, body, state = value[_LENGTHS.size : body_at], value[body_at:state_at], value[state_at:]
        if len(body) != body_size or len(state) < _FRESH_SIZE:
            raise ValueError("cut short")
        body, key = _rewrite_body(body)
        label = _rewrite_label(label, key)
        state, worker, lines = _rewrite_state(state)
    except UNREADABLE:
        return Moved(value, "", [])
    packed = _LENGTHS.pack(kind_size, len(label), len(body)) + label + body + state
    return Moved(packed if len(packed) <= GLANCE else packed + ROOM, worker, lines)


def _rewrite_label(label: bytes, key: bytes) -> bytes:
    """The last line, the dedup key, gets the workflow and the key before it."""
    *lines, dedup_key = label.split(b"\n", 6)
    if len(lines) != 6:
        raise ValueError("no label")
    return b"\n".join((*lines, b"", b"%d:" % len(key) + key + dedup_key))


def _rewrite_body(body: bytes) -> tuple[bytes, bytes]:
    """Without the key, which is in the label now."""
    try:
        fields = _raws(body)
        key = None if len(fields) < 10 else msgspec.msgpack.decode(fields[9], type=str | None)
    except UNREADABLE:
        return body, b""
    if len(fields) < 10:
        return body, b""
    return _encode([*fields[:9], *fields[10:], _NIL, _NIL]), (key or "").encode()


def _rewrite_state(state: bytes) -> tuple[bytes, str, list[str]]:
    """The state without what a larger task has behind it, the worker if it runs, and the log lines of its extras."""
    if len(state) == _FRESH_SIZE:
        return state, "", []
    at = _FRESH_SIZE + _RUN_SIZE
    at += 1 + state[at]
    worker = state[at + 1 : at + 1 + state[at]].decode()
    at += 1 + state[at]
    size = int.from_bytes(state[at : at + 4])
    extras = state[at + 4 : at + 4 + size]
    if len(extras) != size:
        raise ValueError("cut short")
    lines: list[str] = []
    if size:
        try:
            fields = _raws(extras)
            if len(fields) == 9:
                lines = msgspec.msgpack.decode(fields[7], type=list[str])
                extras = _encode([*fields[:7], fields[8]])
        except UNREADABLE:
            pass  # the reader of the task says that they are damaged
    packed = state[:at] + len(extras).to_bytes(4) + extras
    return packed, worker if state[:1] == b"x" else "", lines
