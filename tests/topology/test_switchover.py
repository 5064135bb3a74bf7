"""A master that is changed on purpose: callers wait, and lose nothing, in any class of durability."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Iterator

import hiredis
import pytest
from click.testing import CliRunner

from tests.support.redis import RedisServer, SentinelGroup
from tests.topology import losses
from tickwork.cli import commands
from tickwork.errors import ConfigError, StoreError
from tickwork.store.redis.net.target import parse
from tickwork.store.redis.ops import switchover as module
from tickwork.store.redis.ops.switchover import switchover

PASSWORD = "pa55-w0rd"


@pytest.fixture(scope="module")
def group() -> Iterator[SentinelGroup]:
    with SentinelGroup(replicas=2, password=PASSWORD) as group:
        yield group


async def settled(group: SentinelGroup) -> None:
    """Return once the sentinels would agree to another change: all replicas follow the master that they know."""
    deadline = time.monotonic() + 30
    while not await asyncio.to_thread(_settled, group):
        assert time.monotonic() < deadline, "the replicas do not follow"
        await asyncio.sleep(0.05)


def _settled(group: SentinelGroup) -> bool:
    master = group.master()
    return all(
        server.info("replication").get("master_port") == str(master.port)
        and server.info("replication").get("master_link_status") == "up"
        for server in group.replicas()
    )


async def test_callers_see_a_pause_and_lose_nothing(group: SentinelGroup) -> None:
    old_master = group.master()
    said: list[str] = []
    async with losses.loaded(group, "memory") as (_, load):
        await load.reached(100)
        started = time.monotonic()
        old, new = await switchover(parse(group.url), said.append)
        took = time.monotonic() - started
        await load.reached(100)
    assert old.port == old_master.port
    assert new.port == group.master().port != old.port
    there = losses.kept(group.master())
    assert [task_id for task_id in load.acknowledged if task_id not in there] == []
    assert load.refused == []
    assert load.pause < 8
    assert took < 12
    assert said[0] == f"the master of tick is {old}"
    assert said[-1] == f"the master is {new} now"
    await settled(group)
    with pytest.raises(hiredis.ReplyError, match="READONLY"):
        old_master.command("SET", "x", 1)
    assert sorted(old_master.command("KEYS", "*")) == sorted(group.master().command("KEYS", "*"))


async def test_the_command_changes_the_master_under_load(group: SentinelGroup) -> None:
    """Right after the change before: the sentinels may answer that they are still at it."""
    await settled(group)
    before = group.master()
    async with losses.loaded(group, "memory", 2) as (_, load):
        await load.reached(20)
        result = await asyncio.to_thread(CliRunner().invoke, commands, ["switchover", "--store", group.url, "--json"])
        await load.reached(20)
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)
    assert found == {"old": f"127.0.0.1:{before.port}", "new": f"127.0.0.1:{group.master().port}"}
    assert found["old"] != found["new"]
    there = losses.kept(group.master())
    assert [task_id for task_id in load.acknowledged if task_id not in there] == []
    assert PASSWORD not in result.output


@pytest.mark.parametrize("url", ["redis://host", "redis+cluster://host"])
async def test_without_sentinels_it_is_refused(url: str) -> None:
    with pytest.raises(ConfigError, match=r"needs redis\+sentinel://: without sentinels nobody can elect"):
        await switchover(parse(url), lambda text: None)


@pytest.mark.parametrize(
    ("url", "status", "words"),
    [
        (f"redis://:{PASSWORD}@127.0.0.1:1", 2, "a switchover needs redis+sentinel://"),
        ("sqlite:///x.db", 2, "this command is for Redis"),
    ],
)
def test_the_command_without_sentinels_is_refused(url: str, status: int, words: str) -> None:
    result = CliRunner().invoke(commands, ["switchover", "--store", url])
    assert result.exit_code == status
    assert words in result.output
    assert PASSWORD not in result.output


async def test_sentinels_that_are_not_there() -> None:
    with pytest.raises(StoreError, match="the switchover stopped: no sentinel could name the master of 'tick'"):
        await switchover(parse("redis+sentinel://127.0.0.1:1/tick"), lambda text: None)


async def test_without_a_replica_nothing_is_changed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "CATCH_UP", 0.2)
    with SentinelGroup(replicas=0) as group:
        with pytest.raises(StoreError, match="no replica is connected: nothing was changed"):
            await switchover(parse(group.url), lambda text: None)
        assert group.master() is group.servers[0]
        writes_at_once(group.master())


async def test_a_replica_that_stays_behind_changes_nothing(
    group: SentinelGroup, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "CATCH_UP", 0.5)
    await settled(group)
    master, replica = group.master(), group.replicas()[0]
    replica.pause()
    try:
        for number in range(10):
            master.command("SET", f"key{number}", number)
        with pytest.raises(StoreError, match=r"[12] replicas stay behind: nothing was changed"):
            await switchover(parse(group.url), lambda text: None)
        writes_at_once(master)
    finally:
        replica.resume()
    assert group.master() is master


def writes_at_once(server: RedisServer) -> None:
    with server.connect(timeout=2) as client:
        assert client.call("SET", "x", 1) == b"OK"
