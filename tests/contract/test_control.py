"""The part of the contract that the package exports, on every store of its own; and who has no right to it on Redis."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import Any

import hiredis
import pytest

from tests.support.redis import RedisServer
from tests.support.redis.client import Client
from tests.support.redis_store import NAMESPACE, SERVER, WORKER, ClockedRedisStore, restricted_redis, shared_server
from tickwork.clock import ManualClock
from tickwork.errors import StoreError
from tickwork.model.policy import Policy
from tickwork.store.contract import NotPermitted
from tickwork.store.memory import MemoryStore
from tickwork.store.redis.keys import CONTROL_KEYS, Layout, slot_of
from tickwork.testing.contract.bench import START, Bench
from tickwork.testing.contract.control import *  # noqa: F403

CONTROL = Layout(NAMESPACE).control
SERVERS = ("redis", "redis-6.2", "valkey")


@pytest.fixture
def redis_user() -> str:
    return SERVER


@pytest.mark.parametrize("seed", range(3))
async def test_every_store_keeps_what_the_memory_store_keeps(bench: Bench, seed: int) -> None:
    any_, plain = Random(seed), MemoryStore(Policy(), bench.clock)
    texts = (None, "", "1", "2")
    for _ in range(200):
        kind, name = any_.choice("kl"), any_.choice(("a", "b", "ä", "B"))
        call: tuple[Any, ...] = any_.choice(
            (
                ("swap", kind, name, any_.choice(texts), any_.choice(texts), any_.choice((0, 0, 1, 2))),
                ("swap", kind, name, any_.choice(texts), any_.choice(texts)),
                ("get", kind, name),
                ("page", kind, any_.choice(("", name)), any_.choice((1, 2, 100))),
                ("append", kind, ["x", "y", "z"][: any_.randint(0, 3)], any_.choice((0, 1, 2, 5, 50))),
                ("read", kind, any_.choice((None, any_.randint(-1, 100))), any_.choice((1, 3, 100))),
            )
        )
        if any_.random() < 0.1:
            bench.clock.advance(any_.random())
        expected, got = [await getattr(store.control, call[0])(*call[1:]) for store in (plain, bench.store)]
        assert got == expected, call


# --- rights on Redis


@pytest.fixture(params=SERVERS)
def server(request: pytest.FixtureRequest) -> RedisServer:
    restricted_redis(request.param)
    return shared_server(request.param)


@pytest.fixture
def worker(server: RedisServer) -> Iterator[Client]:
    with server.connect() as client:
        client.call("AUTH", WORKER, "secret")
        yield client


async def store_for(server: RedisServer, user: str, partitions: int = 1) -> ClockedRedisStore:
    url = server.url.replace("redis://", f"redis://{user}:secret@")
    store = ClockedRedisStore(ManualClock(START), url, Policy(), partitions=partitions)
    await store.open()
    return store


@pytest.mark.parametrize("partitions", [1, 3])
async def test_a_worker_is_refused_and_told_which_rights_it_takes(server: RedisServer, partitions: int) -> None:
    server_side = await store_for(server, SERVER, partitions)
    await server_side.control.swap("token", "a", None, "secret")
    await server_side.control.append("audit", ["a"], 10)
    store = await store_for(server, WORKER, partitions)
    control = store.control
    for call in (
        lambda: control.get("token", "a"),
        lambda: control.page("token"),
        lambda: control.swap("token", "a", "secret", None),
        lambda: control.swap("token", "b", "seen", "new"),  # would change nothing
        lambda: control.append("audit", ["b"], 10),
        lambda: control.append("audit", [], 10),
        lambda: control.read("audit"),
        lambda: control.read("none"),
    ):
        with pytest.raises(NotPermitted, match=r"control:\{test\}:3:\*.*`tickwork acl --for server`") as refused:
            await call()
        assert "secret" not in str(refused.value)
    assert await server_side.control.get("token", "a") == "secret"
    assert [entry.text for entry in await server_side.control.read("audit")] == ["a"]
    await store.close()
    await server_side.close()


async def test_no_command_of_a_worker_reaches_a_key_of_control(server: RedisServer, worker: Client) -> None:
    store = await store_for(server, SERVER)
    await store.control.swap("token", "a", None, "secret")
    await store.control.append("audit", ["a"], 10)
    await store.close()
    before = dump(server)
    assert {key.decode() for key in before} == {
        f"{CONTROL}{name}" for name in ("doc:token", "names:token", "journal:audit")
    }
    root = Layout(NAMESPACE).root
    tried = [
        *(f"HGET {CONTROL}doc:token a", f"HGETALL {CONTROL}doc:token", f"HMGET {CONTROL}doc:token a"),
        *(f"HSET {CONTROL}doc:token a mine", f"HDEL {CONTROL}doc:token a", f"ZADD {CONTROL}names:token 0 b"),
        *(f"ZRANGE {CONTROL}names:token 0 -1", f"ZSCAN {CONTROL}names:token 0", f"HSCAN {CONTROL}doc:token 0"),
        *(f"XRANGE {CONTROL}journal:audit - +", f"XADD {CONTROL}journal:audit 9-0 a b", f"XLEN {CONTROL}journal:audit"),
        *(f"XTRIM {CONTROL}journal:audit MAXLEN 0", f"XREVRANGE {CONTROL}journal:audit + -"),
        *(f"DEL {CONTROL}doc:token", f"UNLINK {CONTROL}doc:token", f"EXISTS {CONTROL}doc:token"),
        *(f"RENAME {CONTROL}doc:token {root}mine", f"RENAME {root}layout {CONTROL}doc:token"),
        *(f"EXPIRE {CONTROL}doc:token 0", f"SET {CONTROL}doc:token mine", f"SET {CONTROL}other mine"),
    ]
    for words in map(str.split, tried):
        with pytest.raises(hiredis.ReplyError, match="NOPERM"):
            worker.call(*words)
        inside = f"return redis.call({', '.join(repr(word) for word in words)})"
        with pytest.raises(hiredis.ReplyError, match=r"(?i)NOPERM|ACL|can't access at least one of the keys"):
            worker.call("EVAL", inside, 0)
        with pytest.raises(hiredis.ReplyError, match="NOPERM"):
            worker.call("EVAL", inside, 1, words[1] if words[1].startswith(CONTROL) else words[2])
    assert dump(server) == before


def dump(server: RedisServer) -> dict[bytes, Any]:
    return {key: server.command("DUMP", key) for key in server.command("KEYS", "control:*")}


async def test_the_server_of_one_namespace_has_no_right_to_another(server: RedisServer) -> None:
    with server.connect() as client:
        client.call("AUTH", SERVER, "secret")
        for other in ("control:{tests}:3:doc:token", "control:{other}:3:doc:token", "control:doc:token", "doc:token"):
            with pytest.raises(hiredis.ReplyError, match="NOPERM"):
                client.call("HGETALL", other)


async def test_all_of_it_is_in_the_slot_of_the_namespace(server: RedisServer) -> None:
    for partitions in (1, 3):
        layout = Layout(NAMESPACE, partitions)
        assert {slot_of(f"{layout.control}{key.name}") for key in CONTROL_KEYS} == {slot_of(layout.root)}
        assert layout.control == CONTROL == "control:{test}:3:"


async def test_a_namespace_that_a_newer_version_has_migrated_is_left_alone(server: RedisServer) -> None:
    store = await store_for(server, SERVER)
    await store.control.swap("view", "a", None, "x")
    root = Layout(NAMESPACE).root
    server.command("SET", f"{root}layout", "4")
    server.command("HSET", f"{root}meta", "version", "4")
    before = dump(server)
    for call in (store.control.swap("view", "a", "x", "y"), store.control.append("audit", ["a"], 1)):
        with pytest.raises(StoreError, match="newer version"):
            await call
    assert dump(server) == before
    await store.close()


async def test_operators_are_let_in_and_noted_while_redis_is_full(server: RedisServer) -> None:
    store = await store_for(server, SERVER)
    await store.control.swap("session", "a", None, "x")
    server.command("CONFIG", "SET", "maxmemory", 1)
    try:
        assert await store.control.swap("session", "b", None, "y") is True
        assert await store.control.append("audit", ["a"], 10) == 1
        assert [document.name for document in await store.control.page("session")] == ["a", "b"]
        assert len(await store.control.read("audit")) == 1
    finally:
        server.command("CONFIG", "SET", "maxmemory", 0)
        await store.close()


async def test_kinds_that_are_empty_leave_no_keys(server: RedisServer) -> None:
    store = await store_for(server, SERVER)
    await store.control.swap("view", "a", None, "x")
    await store.control.swap("view", "a", "x", None)
    assert await store.control.append("audit", [], 10) == 0
    assert dump(server) == {}
    await store.close()
