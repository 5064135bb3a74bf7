"""What can happen while the claims of idle workers stand in Redis: processes that are killed or stopped, links that are
cut or silent, a server that restarts or changes, a shutdown. Nothing is lost, nothing is run twice, and nothing is kept
for a worker that does not run it for longer than a lease.

Where the lease is `LONG`, whatever was granted to nobody would wait for its end, which is after the case has failed.
"""

from __future__ import annotations

import asyncio
import random
from typing import Any, Literal

import pytest

from tests.faults.redis_faults import SLACK, Stage, pick, stage, until
from tests.faults.server_faults import Crew, Figures, Scale, crew, lenient, off_loop, restart, show
from tests.faults.worker_cases import LEASE, TIMES
from tests.support.redis import Cluster, Proxy, RedisServer, SentinelGroup
from tickwork.model.facts import Fact
from tickwork.store.redis.net.target import parse
from tickwork.store.redis.ops.switchover import switchover

pytestmark = pytest.mark.timeout(180)
SEED = 1
LONG: dict[str, Any] = {"lease_ttl": 60.0, "renew_interval": 1.0, "scan_interval": 1.0, "concurrency": 5}
SAFE = {"appendonly": "yes", "appendfsync": "always"}


def standing(server: RedisServer) -> int:
    """How many claims stand in a server: connections that wait in a blocking pop, with a command behind it."""
    clients = server.command("CLIENT", "LIST").decode().splitlines()
    waiting = [dict(field.split("=", 1) for field in line.split(" ") if "=" in field) for line in clients]
    return sum(client["cmd"] == "blpop" and int(client["qbuf"]) > 0 for client in waiting)


async def all_stand(server: RedisServer, count: int) -> None:
    async def enough() -> bool:
        found: int = await off_loop(standing, server)
        return found >= count

    await until(enough, 30, lambda: f"{count} claims to stand")


# --- processes


async def standing_killed(seed: int, scale: Scale, stranger: bool = True) -> str:
    """A worker is killed while its claim stands, and tasks are submitted at that moment. If it was granted some, others
    run them within a lease; if it is a stranger, nobody but its lease tells that it is gone."""
    chance = random.Random(seed)
    rounds = 3 if scale == "short" else 60
    async with stage(3, **TIMES, stranger=stranger) as on:
        for number in range(rounds):
            await all_stand(on.server, len(on.crew.up()))
            victim = pick(chance, on.crew)
            assert victim is not None
            submits = [asyncio.create_task(on.submit("work", 20, f"task-{number}-{n}")) for n in range(4)]
            await asyncio.sleep(chance.uniform(0.0, 0.004))
            on.crew.kill(victim)
            await asyncio.gather(*submits)
            await on.done(LEASE + 20)
            await on.crew.start(1)
        found = await on.judgement(LEASE + lenient(SLACK))
        check_waits(on, LEASE + lenient(SLACK))
    assert found.acked == 4 * rounds
    return str(found)


async def standing_stopped(seed: int, scale: Scale) -> str:
    """A worker is stopped for longer than its lease while its claim stands. What it was granted is run by others; when
    it goes on, it reads the answer to its claim, and starts none of that again."""
    rounds = 2 if scale == "short" else 30
    async with stage(2, **TIMES, stranger=True) as on:
        for number in range(rounds):
            await all_stand(on.server, 2)
            victim = on.crew.up()[number % 2]
            on.crew.stop(victim)
            ids = [f"task-{number}-{n}" for n in range(6)]
            for task_id in ids:
                await on.submit("work", 20, task_id)
            await on.done(LEASE + 20)
            await asyncio.sleep(LEASE)  # so that whatever it was granted has run out
            on.crew.go_on(victim)
            await all_stand(on.server, 2)
        found = await on.judgement(LEASE + lenient(SLACK))
        check_waits(on, LEASE + lenient(SLACK))
    assert (found.acked, found.starts) == (6 * rounds, 6 * rounds), found
    return str(found)


def check_waits(on: Stage, longest: float) -> None:
    """No task has waited for its start for longer than that."""
    acked = {line["id"]: line["at"] for line in on.lines if line["what"] == "ack"}
    late = {
        line["id"]: line["at"] - acked[line["id"]]
        for line in on.lines
        if line["what"] == "start" and line["at"] - acked[line["id"]] > longest
    }
    assert not late, f"seconds that they waited, where {longest:.1f} are allowed: {late}"


async def test_a_worker_that_is_killed_keeps_nothing_for_longer_than_a_lease() -> None:
    print(await standing_killed(random.randrange(10**6), "short"))


async def test_a_worker_that_is_killed_on_a_living_host_keeps_nothing() -> None:
    print(await standing_killed(random.randrange(10**6), "short", stranger=False))


async def test_a_worker_that_was_stopped_for_longer_than_a_lease_starts_nothing_late() -> None:
    print(await standing_stopped(random.randrange(10**6), "short"))


# --- links


async def standing_cut(seed: int, scale: Scale) -> Figures:
    """All links are cut while claims stand and tasks come: the workers ask again, and get what they were granted."""
    rounds = 8 if scale == "short" else 300
    with RedisServer() as server, Proxy(server.port) as proxy:
        async with crew(f"redis://{proxy.host}:{proxy.port}/0", seed, **LONG) as team:
            for _ in range(rounds):
                await all_stand(server, 2)
                submits = [asyncio.create_task(team.submit(1)) for _ in range(5)]
                await asyncio.sleep(team.chance.uniform(0.0, 0.006))
                proxy.drop_all()
                await asyncio.gather(*submits)
                await team.drained(25)
            return await judged(team)


async def standing_replies_lost(seed: int, scale: Scale) -> Figures:
    """The answer to a standing claim is lost, again and again: it was granted a task, and its worker learns of it."""
    rounds = 4 if scale == "short" else 100
    with RedisServer() as server, Proxy(server.port) as proxy:
        async with crew(server.url, seed, nodes=0, **LONG) as team:
            await team.start(1, f"redis://{proxy.host}:{proxy.port}/0")
            for _ in range(rounds):
                await all_stand(server, 1)
                proxy.cut_replies(1)
                await team.submit(1)
                await team.drained(25)
            proxy.heal()
            return await judged(team)


async def standing_silent(seed: int, scale: Scale) -> Figures:
    """One worker of two is cut off without a sound while its claim stands. What it was granted is run by the other,
    after a lease; when it is back, it runs what comes, and nothing of that."""
    rounds = 1 if scale == "short" else 20
    times = {"lease_ttl": 3.0, "renew_interval": 0.5}
    with RedisServer() as server, Proxy(server.port) as proxy:
        async with crew(server.url, seed, nodes=1, **times) as team:
            await team.start(1, f"redis://{proxy.host}:{proxy.port}/0")
            for _ in range(rounds):
                await all_stand(server, 2)
                proxy.black_hole()
                ids = [await team.submit(1) for _ in range(8)]
                for task_id in ids:
                    await team.started(task_id, 20)
                await asyncio.sleep(4.0)  # longer than its lease, and than it waits for an answer
                proxy.heal()
                await all_stand(server, 2)
            figures = await judged(team)
            assert figures["reruns"] == 0, "what it was granted in vain was started here and there"
            return figures


async def judged(team: Crew) -> Figures:
    await team.drained(25)
    figures = await team.judge()
    assert not team.witness.errors, team.witness.errors[:3]
    return figures


async def test_links_that_are_cut_leave_nothing_behind() -> None:
    show("standing_cut", SEED, await standing_cut(SEED, "short"))


async def test_an_answer_that_is_lost_is_asked_for_again() -> None:
    show("standing_replies_lost", SEED, await standing_replies_lost(SEED, "short"))


async def test_a_silent_link_keeps_nothing_for_longer_than_a_lease() -> None:
    show("standing_silent", SEED, await standing_silent(SEED, "short"))


# --- servers


async def standing_restarted(seed: int, scale: Scale) -> Figures:
    """The server is killed while claims stand, and comes back with its data."""
    rounds = 2 if scale == "short" else 40
    with RedisServer(options=SAFE) as server:
        async with crew(server.url, seed, **LONG) as team:
            for _ in range(rounds):
                await all_stand(server, 2)
                submits = [asyncio.create_task(team.submit(1)) for _ in range(5)]
                await asyncio.sleep(team.chance.uniform(0.0, 0.01))
                await restart(server, team.chance.uniform(0.05, 0.3))
                await asyncio.gather(*submits)
                await team.drained(25)
            return await judged(team)


async def standing_switched_over(seed: int, scale: Scale) -> Figures:
    """The master is changed on purpose while claims stand."""
    rounds = 1 if scale == "short" else 10
    group = SentinelGroup(replicas=1)
    await off_loop(group.start)
    try:
        async with crew(group.url, seed, **LONG) as team:
            for _ in range(rounds):
                await all_stand(await off_loop(group.master), 2)
                await asyncio.gather(switchover(parse(group.url), lambda said: None), team.submit(1), team.submit(1))
                await team.submit(1)
                await team.drained(30)
            await all_stand(await off_loop(group.master), 2)
            return await judged(team)
    finally:
        await off_loop(group.stop)


async def test_a_server_that_restarts_loses_no_claim() -> None:
    show("standing_restarted", SEED, await standing_restarted(SEED, "short"))


async def test_a_new_master_is_where_claims_stand_next() -> None:
    show("standing_switched_over", SEED, await standing_switched_over(SEED, "short"))


async def test_claims_stand_in_a_cluster_with_one_partition() -> None:
    with Cluster() as cluster:
        async with crew(cluster.url, SEED, **LONG) as team:

            async def two_stand() -> bool:
                found: int = await off_loop(lambda: sum(standing(server) for server in cluster.masters))
                return found >= 2

            await until(two_stand, 30, lambda: "two claims to stand")
            for _ in range(5):
                await team.submit(1)
            show("standing in a cluster", SEED, await judged(team))


# --- the end


async def standing_shut_down(seed: int, scale: Scale, how: Literal["one", "all"] = "one") -> Figures:
    """Workers are shut down while their claims stand and tasks come: they give back at once what they were granted."""
    rounds = 6 if scale == "short" else 200
    with RedisServer() as server:
        async with crew(server.url, seed, **LONG) as team:
            for _ in range(rounds):
                await all_stand(server, 2)
                leaving = [team.nodes.pop(0) for _ in range(1 if how == "one" else 2)]
                submits = [asyncio.create_task(team.submit(1)) for _ in range(5)]
                await asyncio.sleep(team.chance.uniform(0.0, 0.004))
                await asyncio.gather(*(node.shutdown() for node in leaving), *submits)
                await team.start(len(leaving))
                await team.drained(25)
            figures = await judged(team)
            store = await team.store()
            facts = [event.kind for event in (await store.log.read(0, 10_000))[0]]
            assert Fact.TASK_LOST not in facts
            assert Fact.WORKER_LOST not in facts
            left = await off_loop(server.command, "KEYS", "*wake:/*")
            assert left == [], "a worker that has left keeps a wake list"
    return figures


@pytest.mark.parametrize("how", ["one", "all"])
async def test_a_shutdown_gives_back_what_was_granted_meanwhile(how: Literal["one", "all"]) -> None:
    show(f"standing_shut_down {how}", SEED, await standing_shut_down(SEED, "short", how))
