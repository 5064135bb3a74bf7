"""Tasks that this version cannot read, made by writing into a store past Tickwork."""

from __future__ import annotations

import contextlib
import sqlite3
import struct
from collections.abc import Callable
from typing import Any

import msgspec

from tests.support.redis_store import shared_server
from tickwork.store.redis.keys import Layout
from tickwork.store.sqlite.schema import VERSION

DEEP = b"\x91" * 3000 + b"\x01"  # as a client on another Python could write it
BAD_TEXT = b"\xff\xfe"


def _spec_with(**fields: Any) -> Callable[[bytes], bytes]:
    def change(spec: bytes) -> bytes:
        return msgspec.msgpack.encode({**msgspec.msgpack.decode(spec), **fields})

    return change


# By name: what becomes of a task's spec, or of a column of its row.
SPECS: dict[str, Callable[[bytes], bytes]] = {
    "a newer retry strategy": _spec_with(retry={"type": "newer", "seconds": 1.0}),
    "a payload that is a text": _spec_with(payload="1"),
    "a context that is too deep": _spec_with(context={"x": msgspec.Raw(DEEP)}),
    "no msgpack": lambda _: b"\xc1\xc1",
    "cut short": lambda spec: spec[:10],
    "nothing": lambda _: b"",
    "that of another": _spec_with(id="another"),
    "another type": _spec_with(type="joc"),
    "another queue": _spec_with(queue="defauly"),
}
COLUMNS = {
    "a fence that is a text": "fence = 'abc'",
    "a text that is no UTF-8": "last_error = CAST(x'fffe' AS TEXT)",
    "a worker that is a number": "worker_id = x'00'",
    "a place that nobody knows": "place = 7",
    "a reason to wait that nobody knows": "parked = 'because'",
}


class SqliteDamage:
    """What can go wrong with a task in the file of a namespace."""

    kinds = (*SPECS, *COLUMNS, "no spec")

    def __init__(self, path: str, namespace: str) -> None:
        self.path = path
        self.namespace = namespace

    def run(self, sql: str, *params: Any) -> list[Any]:
        with contextlib.closing(sqlite3.connect(self.path, timeout=10)) as db, db:
            return db.execute(sql.replace("@", f"{self.namespace}/{VERSION}/"), params).fetchall()

    def task(self, task_id: str, kind: str) -> None:
        ((number,),) = self.run('SELECT seq FROM "@tasks" WHERE id = ?', task_id)
        if kind in COLUMNS:
            self.run(f'UPDATE "@tasks" SET {COLUMNS[kind]} WHERE seq = ?', number)
        elif kind == "no spec":
            self.run('DELETE FROM "@specs" WHERE seq = ?', number)
        else:
            ((spec,),) = self.run('SELECT spec FROM "@specs" WHERE seq = ?', number)
            self.run('UPDATE "@specs" SET spec = ? WHERE seq = ?', SPECS[kind](spec), number)

    def schedule(self, schedule_id: str) -> None:
        self.run('UPDATE "@schedules" SET schedule = ? WHERE id = ?', b"\xc1", schedule_id)

    def worker(self, worker_id: str) -> None:
        self.run('UPDATE "@workers" SET worker = ? WHERE id = ?', b"\xc1", worker_id)


LENGTHS = struct.Struct(">HHI")


def _parts(value: bytes) -> tuple[int, bytes, bytes, bytes]:
    """The size of the kind, label, body and state."""
    kind, label, body = LENGTHS.unpack_from(value)
    body_at = 8 + label
    return kind, value[8:body_at], value[body_at : body_at + body], value[body_at + body :]


def _with(change: Callable[[bytes, bytes, bytes], tuple[bytes, bytes, bytes]]) -> Callable[[bytes], bytes]:
    def damage(value: bytes) -> bytes:
        kind, *parts = _parts(value)
        label, body, state = change(*parts)
        return LENGTHS.pack(kind, len(label), len(body)) + label + body + state

    return damage


def _body_with(place: int, packed: bytes) -> Callable[[bytes], bytes]:
    def change(label: bytes, body: bytes, state: bytes) -> tuple[bytes, bytes, bytes]:
        fields = [msgspec.msgpack.encode(field) for field in msgspec.msgpack.decode(body)]
        rest = [b"\xc0", b"\x00", b"\xc0", b"\x00", b"\xc0", b"\x80", b"\x80", b"\xc0", b"\xc0", b"\x90", b"\xc0"]
        fields += rest[len(fields) - 5 :]
        fields[place] = packed
        return label, b"\xdc\x00\x10" + b"".join(fields), state

    return _with(change)


VALUES: dict[str, Callable[[bytes], bytes]] = {
    "a newer retry strategy": _body_with(7, msgspec.msgpack.encode({"type": "newer", "seconds": 1.0})),
    "a payload that is a text": _body_with(0, msgspec.msgpack.encode("1")),
    "a context that is too deep": _body_with(11, b"\x81\xa1x" + DEEP),
    "no msgpack": _with(lambda label, body, state: (label, b"\xc1\xc1" + body[2:], state)),
    "a label that is no UTF-8": _with(lambda label, body, state: (label + BAD_TEXT, body, state)),
    "names that are no UTF-8": _with(lambda label, body, state: (BAD_TEXT + label[2:], body, state)),
    "names without a band": _with(lambda label, body, state: (label.replace(b"\n1\n", b"\n7\n"), body, state)),
    "a label without lines": _with(lambda label, body, state: (label.replace(b"\n", b" "), body, state)),
    "a status that nobody knows": _with(lambda label, body, state: (label, body, b"Q" + state[1:])),
    "no state": _with(lambda label, body, state: (label, body, b"")),
    "half a state": _with(lambda label, body, state: (label, body, state[: len(state) // 2])),
    "a little more": lambda value: value + b"\x01" * 9,
    "cut in the label": lambda value: value[:12],
    "cut in the lengths": lambda value: value[:5],
    "one byte": lambda _: b"x",
    "something else": lambda _: b"hello world, this is none of your tasks" * 3,
}


class RedisDamage:
    """What can go wrong with a task's value."""

    kinds = tuple(VALUES)

    def __init__(self, namespace: str, server: str = "redis") -> None:
        self.root = Layout(namespace).root
        self.server = shared_server(server)

    def task(self, task_id: str, kind: str) -> None:
        key = f"{self.root}task:{task_id}"
        self.server.command("SET", key, VALUES[kind](self.server.command("GET", key)))

    def schedule(self, schedule_id: str) -> None:
        self.server.command("HSET", f"{self.root}schedules", schedule_id, b"\xc1")

    def worker(self, worker_id: str) -> None:
        self.server.command("HSET", f"{self.root}workers", worker_id, b"\xc1")


Damage = SqliteDamage | RedisDamage
EVERY_DAMAGE = [("sqlite", kind) for kind in SqliteDamage.kinds] + [("redis", kind) for kind in RedisDamage.kinds]
EACH = [("sqlite", "no msgpack"), ("redis", "no msgpack"), ("redis", "cut in the label")]
