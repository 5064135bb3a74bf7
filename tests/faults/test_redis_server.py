"""One Redis server that dies, forgets, hangs, fills up, or loses its connections, under load."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import random
import time
from typing import Literal

import pytest

from tests.faults.server_faults import (
    LEASE,
    Crew,
    Figures,
    Scale,
    crew,
    log_lines,
    off_loop,
    open_store,
    restart,
    show,
)
from tests.support.redis import Proxy, RedisServer, required_binary
from tickwork import Status
from tickwork.errors import StoreFull
from tickwork.ids import new_nonce
from tickwork.model import Schedule, Spec, Succeeded
from tickwork.store.base import Advance, Claim
from tickwork.store.redis import RedisStore

pytestmark = pytest.mark.timeout(120)
SAFE = {"appendonly": "yes", "appendfsync": "always"}
SEED = 1


# --- 1: killed and restarted


async def redis_restarted(seed: int, scale: Scale) -> Figures:
    """A server that keeps all on disk is killed again and again: nothing is lost, and work goes on by itself."""
    kills = 4 if scale == "short" else 60
    resumed: list[float] = []
    with RedisServer(options=SAFE) as server:
        async with crew(server.url, seed) as team:
            team.submit_on(3)
            for _ in range(kills):
                await asyncio.sleep(team.chance.uniform(0.3, 0.9))
                up_at = await restart(server, team.chance.uniform(0.05, 0.6))
                resumed.append(await team.started_after(up_at))
            await team.stop_submitting()
            await team.drained()
            figures = await team.judge()
            assert not team.witness.errors, team.witness.errors[:3]
    assert max(resumed) < 1.0, f"work resumed {max(resumed):.2f} s after the server's return"
    assert figures["acked"] > 50 * kills / 4
    return {**figures, "kills": kills, "resumed_max": max(resumed)}


async def test_a_server_that_is_killed_and_restarted_loses_nothing() -> None:
    show("redis_restarted", SEED, await redis_restarted(SEED, "short"))


# --- 2: restarted empty


async def redis_empty(seed: int, scale: Scale) -> Figures:
    """A server without a disk is killed: what it held is gone, which is said aloud; new work is done as before."""
    rounds = 1 if scale == "short" else 10
    with RedisServer() as server, log_lines() as lines:
        team = Crew(server.url, seed)
        try:
            node = team.scheduler(server.url)
            team.nodes.append(node)
            node.periodic("0 0 1 1 *", id="yearly")(_nothing)
            await node.start()
            await team.start(1)
            for _ in range(rounds):
                await team.submit(10_000)  # so that a handler runs whose task is gone afterwards
                lines.records.clear()
                figures = await _empty_once(team, server)
            said = [text for text in lines.texts(logging.ERROR) if "came back without its data" in text]
            assert len(said) >= 1, lines.texts(logging.WARNING)
        finally:
            await team.stop()
    return figures


def _nothing() -> None: ...


async def _empty_once(team: Crew, server: RedisServer) -> Figures:
    up_at = await restart(server, 0.3)
    task_id = await team.submit(1)
    resumed = await team.started(task_id) - up_at
    calls = _calls(server)
    await asyncio.sleep(2.0)
    rate = (_calls(server) - calls) / 2.0
    workers = await team.client.list_workers()
    assert {worker.id for worker in workers} == {node.id for node in team.nodes}
    assert all(worker.lost_at is None for worker in workers)
    info = await team.client.get_task(task_id)
    assert info.status is Status.SUCCESS
    schedules = [schedule.id for schedule in await (await team.store()).schedules()]
    # Two nodes: a beat, a campaign and a claim at their intervals, and the leader's duties.
    assert rate < 80, f"{rate:.0f} scripts a second while nothing happens"
    assert schedules == ["yearly"], "the periodic schedules were not written again"
    return {"resumed": resumed, "scripts_a_second": rate}


def _calls(server: RedisServer) -> int:
    stats = server.info("commandstats").get("cmdstat_evalsha", "calls=0")
    return int(stats.partition("calls=")[2].partition(",")[0])


async def test_a_server_that_comes_back_empty_is_noticed_and_used() -> None:
    show("redis_empty", SEED, await redis_empty(SEED, "short"))


# --- 3: out of reach for longer than a lease

Outage = Literal["silent", "stopped", "down"]


async def redis_unreachable(seed: int, scale: Scale, how: Outage = "silent") -> Figures:
    """Nobody reaches the server for two leases while handlers run: none of them runs twice at once, and whatever ended
    meanwhile is handed in. While the server is provably down (it refuses connections) nobody else can have its tasks,
    so handlers go on, and end once."""
    out = 2 * LEASE * (1 if scale == "short" else 4)
    with RedisServer(options=SAFE) as server, Proxy(server.port) as proxy:
        url = server.url if how == "down" else f"redis://{proxy.host}:{proxy.port}/0"
        async with crew(url, seed) as team:
            quick = [await team.submit(700) for _ in range(3)]
            slow = [await team.submit(round(1000 * (out + 2))) for _ in range(4)]
            for task_id in (*quick, *slow):
                await team.started(task_id)
            up_at = await _outage(server, proxy, how, out)
            late = await team.submit(1)
            resumed = await team.started(late) - up_at
            await team.drained(out + 20)
            figures = await team.judge()
            witness = team.witness
            again = [task_id for task_id in quick if len(witness.starts[task_id]) > 1]
            assert not again, f"ended before its lease did, but was run again: {again}"
            if how == "down":
                assert figures["reruns"] == 0, f"{figures['reruns']:.0f} live tasks were stopped and run again"
    return {**figures, "resumed": resumed}


async def _outage(server: RedisServer, proxy: Proxy, how: Outage, seconds: float) -> float:
    match how:
        case "silent":
            proxy.black_hole()
        case "stopped":
            server.pause()
        case "down":
            await off_loop(server.kill)
    await asyncio.sleep(seconds)
    match how:
        case "silent":
            proxy.heal()
        case "stopped":
            server.resume()
        case "down":
            await off_loop(server.start)
    return time.monotonic()


@pytest.mark.parametrize("how", ["silent", "stopped", "down"])
async def test_an_outage_longer_than_a_lease_runs_nothing_twice(how: Outage) -> None:
    show(f"redis_unreachable {how}", SEED, await redis_unreachable(SEED, "short", how))


async def one_cut_off(seed: int, scale: Scale) -> Figures:
    """One node of two is cut off without a sound: it stops what it runs before the other may start it."""
    tasks = 5 if scale == "short" else 50
    with RedisServer() as server, Proxy(server.port) as proxy:
        async with crew(f"redis://{proxy.host}:{proxy.port}/0", seed, nodes=1, concurrency=tasks) as team:
            ids = [await team.submit(8000) for _ in range(tasks)]
            for task_id in ids:
                await team.started(task_id)
            await team.start(1, server.url)
            cut_at = time.monotonic()
            proxy.black_hole()
            await _until(lambda: all(len(team.witness.starts[task_id]) > 1 for task_id in ids), 15)
            taken_over = max(team.witness.starts[task_id][1] for task_id in ids) - cut_at
            at_once = list(team.witness.at_once)
            proxy.heal()
    assert not at_once, f"{len(at_once)} of {tasks} ran here still when the other node started them"
    assert taken_over < LEASE + 1.0
    return {"tasks": tasks, "taken_over": taken_over}


async def _until(condition: object, timeout: float) -> None:
    deadline = time.monotonic() + timeout
    while not condition():  # type: ignore[operator]
        assert time.monotonic() < deadline, f"not within {timeout:g} s"
        await asyncio.sleep(0.005)


async def test_a_node_that_is_cut_off_stops_before_another_takes_over() -> None:
    show("one_cut_off", SEED, await one_cut_off(SEED, "short"))
