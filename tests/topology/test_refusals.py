"""A Redis that cannot be used is refused at once, in words that say what to do, and never with a password in them."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.hostile_http import listening
from tests.support.redis import RedisServer
from tests.support.waiting import wait_until
from tests.topology.shop import NAMESPACE, running, shop
from tickwork import ConfigError
from tickwork.errors import StoreError, StoreUnavailable
from tickwork.model.policy import Policy
from tickwork.store.redis import RedisStore
from tickwork.store.redis.keys import BEFORE, VERSION, Layout
from tickwork.store.redis.net.target import parse
from tickwork.store.redis.ops import server as redis_server

PASSWORD, WRONG = "pa55-w0rd", "wr0ng-0ne"


@pytest.fixture(scope="module")
def _server() -> Iterator[RedisServer]:
    with RedisServer(password=PASSWORD) as server:
        yield server


@pytest.fixture
def server(_server: RedisServer) -> Iterator[RedisServer]:
    _server.command("FLUSHALL")
    yield _server
    _server.command("CONFIG", "SET", "maxmemory-policy", "noeviction")


@pytest.fixture(autouse=True)
def nothing_tells_a_password(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    caplog.set_level(logging.DEBUG)
    yield
    assert PASSWORD not in caplog.text
    assert WRONG not in caplog.text


async def refusal(url: str, **options: Any) -> StoreError:
    store = RedisStore(parse(url), **{"namespace": NAMESPACE, "policy": Policy(), "patience": 0.3, **options})
    try:
        with pytest.raises(StoreError) as refused:
            await store.open()
    finally:
        await store.close()
    text = f"{refused.value} {refused.value!r} {refused.value.__cause__!r} {refused.value.__context__!r}"
    assert PASSWORD not in text
    assert WRONG not in text
    return refused.value


def others(server: RedisServer) -> list[str]:
    """The connections that clients of Tickwork hold."""
    return [line for line in server.command("CLIENT", "LIST").decode().splitlines() if " cmd=client" not in line]


async def test_an_evicting_server(server: RedisServer) -> None:
    server.command("CONFIG", "SET", "maxmemory-policy", "allkeys-lru")
    text = str(await refusal(server.url))
    assert "evicts keys when it is full (maxmemory-policy allkeys-lru), which would lose tasks" in text
    assert "Set it to noeviction, or add allow_eviction=true to the URL" in text
    with pytest.raises(StoreError, match="evicts keys"):
        async with running(server.url):
            pass
    await wait_until(lambda: others(server) == [], what="the end of its connections")
    async with running(f"{server.url}?allow_eviction=true") as app:
        assert await (await app.submit("add", {"a": 1, "b": 1})).result(10) == 2


async def test_a_wrong_password(server: RedisServer) -> None:
    started = time.monotonic()
    error = await refusal(server.url.replace(PASSWORD, WRONG), patience=15)
    assert time.monotonic() - started < 10, "no use in trying again"
    assert not isinstance(error, StoreUnavailable)
    assert "WRONGPASS" in str(error)


async def test_no_password(server: RedisServer) -> None:
    error = await refusal(server.url.replace(f":{PASSWORD}@", ""), patience=15)
    assert not isinstance(error, StoreUnavailable)
    assert "NOAUTH" in str(error)


async def test_an_unknown_user(server: RedisServer) -> None:
    assert "WRONGPASS" in str(await refusal(server.url.replace("://:", "://nobody:")))


async def test_a_wrong_database(server: RedisServer) -> None:
    error = await refusal(server.url.removesuffix("/0") + "/99", patience=15)
    assert not isinstance(error, StoreUnavailable)
    assert "refused SELECT on a new connection: ERR DB index is out of range" in str(error)


async def test_a_server_that_is_too_old(server: RedisServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(redis_server, "read_info", lambda reply: {"redis_version": "6.0.16"})
    text = str(await refusal(server.url))
    assert text.startswith("Redis 6.0.16 at redis://:***@")
    assert "is too old: 6.2 is the oldest" in text


async def test_a_version_that_is_no_plain_number(server: RedisServer, monkeypatch: pytest.MonkeyPatch) -> None:
    honest = redis_server.read_info
    monkeypatch.setattr(redis_server, "read_info", lambda reply: {**honest(reply), "redis_version": "7.4-rc1"})
    store = RedisStore(parse(server.url), NAMESPACE, Policy())
    await store.open()
    await store.close()


@pytest.mark.parametrize("namespace", ["", "a b", "a{b", "a}b", "ä", "x" * 65, "a/b", "a*"])
def test_a_namespace_that_is_not_allowed(namespace: str) -> None:
    with pytest.raises(ConfigError, match="namespace"):
        shop("redis://host", namespace=namespace)
    with pytest.raises(ConfigError, match="1 to 64 letters, digits and"):
        RedisStore(parse("redis://host"), namespace)


async def test_another_number_of_partitions(server: RedisServer) -> None:
    async with running(server.url, partitions=4) as app:
        assert await (await app.submit("add", {"a": 1, "b": 1})).result(10) == 2
    for other in (1, 8):
        text = str(await refusal(server.url, partitions=other))
        assert text.startswith("namespace 'shop' at redis://:***@")
        assert text.endswith(f"has partitions=4, not {other}: give that number")
    async with running(server.url, partitions=4, namespace="another") as app:
        assert (await app.status()).tasks == {}


async def test_the_layout_of_a_newer_release(server: RedisServer) -> None:
    async with running(server.url):
        pass
    server.command("HSET", f"{Layout(NAMESPACE).root}meta", "version", "99")
    text = f"newer version of Tickwork (layout 99, this one uses {VERSION}): upgrade this process"
    assert text in str(await refusal(server.url))


async def test_the_layout_of_an_older_release(server: RedisServer) -> None:
    layout = Layout(NAMESPACE)
    before = layout.before(layout.root)
    server.command("HSET", f"{before}meta", "version", BEFORE, "partitions", "1", "epoch", "e")
    found = str(await refusal(server.url))
    assert f"older version of Tickwork (layout {BEFORE}, this one uses {VERSION})" in found
    assert "run `tickwork migrate`" in found
    assert server.command("KEYS", f"{layout.root}*") == [], "nothing is made beside it"


async def test_nobody_there() -> None:
    error = await refusal(f"redis://:{PASSWORD}@127.0.0.1:1")
    assert isinstance(error, StoreUnavailable)
    assert "Redis at redis://:***@127.0.0.1:1 cannot be reached: 127.0.0.1:1:" in str(error)


async def test_a_server_that_is_no_redis() -> None:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(10)
        writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")

    async with listening(answer) as port:
        error = await refusal(f"redis://:{PASSWORD}@127.0.0.1:{port}")
    assert "is not in the Redis protocol" in str(error)
