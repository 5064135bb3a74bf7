"""Leaders that are killed or frozen while a schedule fires each second."""

from __future__ import annotations

import asyncio
import random
import subprocess
import time
from collections.abc import Awaitable, Callable
from typing import Any

from tests.faults.redis_faults import SLACK, Scale, Stage, stage, until
from tests.faults.server_faults import lenient
from tickwork.model.facts import Event, Fact

TTL, RENEW, LEASE = 1.5, 0.4, 3.0
OPTIONS: dict[str, Any] = {"lease_ttl": LEASE, "renew_interval": 1.0, "scan_interval": 0.25}
OPTIONS |= {"leader_lease_ttl": TTL, "leader_renew_interval": RENEW}
ALERT = 1.0  # seconds for which the condition of an alert must hold
SECOND = 1000


async def leader_killed(seed: int, scale: Scale) -> str:
    """Each node is a machine of its own: only the leader's lease tells that it is gone."""
    return await unseat(seed, 50 if scale == "long" else 3, kill, stranger=True)


async def leader_killed_same_host(seed: int, scale: Scale) -> str:
    """Its host sees that it is gone, and nobody waits for the lease."""
    return await unseat(seed, 50 if scale == "long" else 3, kill)


async def leader_stopped(seed: int, scale: Scale) -> str:
    """It stops for three leases, goes on, and is not the leader any more, whatever it was about to do."""
    return await unseat(seed, 20 if scale == "long" else 1, freeze)


async def leader_killed_at_work(seed: int, scale: Scale) -> str:
    """What it ran starts elsewhere when its lease is over, however long nobody leads."""
    lease, leads = {"lease_ttl": 1.5, "renew_interval": 0.5}, {"leader_lease_ttl": 5.0, "leader_renew_interval": 1.0}
    async with stage(2, **{**OPTIONS, **lease, **leads}, stranger=True) as on:
        for round_ in range(10 if scale == "long" else 1):
            leader = await current_leader(on)
            for number in range(10):  # as many as both can run
                await on.submit("work", 1000, f"task-{round_}-{number}")
            for number in range(10):
                await on.first("start", f"task-{round_}-{number}")
            on.crew.kill(leader)
            await on.crew.start()
            await on.done(20)
        found = await on.judgement(lease["lease_ttl"] + SLACK)
    assert found.reruns > 0
    return str(found)


async def leader_killed_alerting(seed: int, scale: Scale) -> str:
    """A backlog comes and goes, and the leader is killed while the duration of its alert runs, or a moment after: each
    time it fires once, not before its duration, and is over once."""
    chance, times = random.Random(seed), 20 if scale == "long" else 2
    rule = {"name": "backlog", "metric": "tasks_pending", "operator": ">=", "threshold": 2, "duration": ALERT}
    watch = {"monitoring": True, "metrics_interval": 0.1, "alert_rules": [rule]}
    after: list[float] = []
    async with stage(3, **OPTIONS, **watch) as on:
        for number in range(times):
            ids = [f"later-{number}-{each}" for each in range(2)]
            since = await on.store.queries.time()
            for task_id in ids:
                await on.app.submit("work", 1, id=task_id, delay=3600)
            after.append((await alert_changed(on, chance, 2 * number + 1)).at - since)
            since = await on.store.queries.time()
            await on.app.tasks.cancel(ids)
            after.append((await alert_changed(on, chance, 2 * number + 2)).at - since)
        told = [event.kind for event in await alerts(on)]
    assert told == [Fact.ALERT_FIRED, Fact.ALERT_RESOLVED] * times
    assert min(after) >= ALERT * SECOND, f"told after {min(after)} ms"
    return f"{len(told)} changes told once each, {min(after) / SECOND:.2f} to {max(after) / SECOND:.2f} s after"


async def alerts(on: Stage) -> list[Event]:
    return [event for event in await on.facts(Fact.ALERT_FIRED, Fact.ALERT_RESOLVED) if event.id == "backlog"]


async def alert_changed(on: Stage, chance: random.Random, count: int) -> Event:
    """Kill the leader at some moment, and wait for the change of the alert that is due."""
    leader = await current_leader(on)
    await asyncio.sleep(chance.uniform(0, 1.2 * ALERT))
    await kill(on, leader)

    async def told() -> bool:
        return len(await alerts(on)) >= count

    await until(told, lenient(20), lambda: f"change {count} of the alert; {on.crew}")
    return (await alerts(on))[count - 1]


async def unseat(
    seed: int, times: int, how: Callable[[Stage, subprocess.Popen[bytes]], Awaitable[float]], **options: Any
) -> str:
    chance = random.Random(seed)
    waits: list[float] = []
    async with stage(3, **OPTIONS, **options) as on:
        await on.app.schedules.put("each", "tick", cron="* * * * * *", misfire="all", overlap="allow")
        for _ in range(times):
            leader = await current_leader(on)
            await asyncio.sleep(chance.uniform(0.2, 1.2))
            waits.append(await how(on, leader))
        ticks = await end_ticks(on)
        found = await on.judgement(LEASE + lenient(SLACK))
        records = await on.records()
    assert sorted(records) == ticks, "ticks that were never due, or twice"
    assert max(waits) <= TTL + SLACK, f"no new leader for {max(waits):.2f} s"
    late = max(record.submitted_at - int(task_id.partition("@")[2]) for task_id, record in records.items())
    led = f"{times} leaders lost, a new one after {max(waits):.2f} s at most"
    return f"{led}; {len(ticks)} ticks, the latest {late / 1000:.2f} s late; {found}"


async def elections(on: Stage) -> list[Event]:
    return await on.facts(Fact.LEADER_ELECTED)


async def current_leader(on: Stage) -> subprocess.Popen[bytes]:
    """The process that was elected last; not to be asked while it is dead and nobody has noticed."""

    async def known() -> bool:
        elected = await elections(on)
        return bool(elected) and on.crew.of_node(elected[-1].id) in on.crew.up()

    await until(known, 10, lambda: f"a leader; {on.crew}")
    leader = on.crew.of_node((await elections(on))[-1].id)
    assert leader is not None
    return leader


async def next_leader(on: Stage, before: int, since: float) -> float:
    """Seconds from the fault to the election that followed, by the clock of the server, which is on this host."""

    async def elected() -> bool:
        return len(await elections(on)) > before

    await until(elected, 10, lambda: f"a new leader; {on.crew}")
    return (await elections(on))[before].at / 1000 - since


async def kill(on: Stage, leader: subprocess.Popen[bytes]) -> float:
    before = len(await elections(on))
    killed_at = on.crew.kill(leader)
    on.crew.hire()
    return await next_leader(on, before, killed_at)


async def freeze(on: Stage, leader: subprocess.Popen[bytes]) -> float:
    before = len(await elections(on))
    stopped_at = on.crew.stop(leader)
    wait = await next_leader(on, before, stopped_at)
    await asyncio.sleep(max(stopped_at + 3 * TTL - time.time(), 0))
    on.crew.go_on(leader)
    return wait


async def end_ticks(on: Stage) -> list[str]:
    """Let the schedule catch up, end it, and tell which tasks there must be. Each is expected as if it had been
    acknowledged."""
    now = round(time.time() * SECOND)

    async def caught_up() -> bool:
        schedule = await on.store.schedules.get("each")
        return schedule is not None and (schedule.last_fire_at or 0) >= now

    await until(caught_up, 10, lambda: f"the ticks to catch up; {on.crew}")
    await on.app.schedules.pause("each")
    await on.done(20)
    schedule = await on.store.schedules.get("each")
    assert schedule is not None
    assert schedule.last_fire_at is not None
    first = schedule.created_at // SECOND * SECOND + SECOND
    ticks = [f"each@{at}" for at in range(first, schedule.last_fire_at + 1, SECOND)]
    for tick in ticks:
        on.crew.history.write("ack", id=tick)
    return sorted(ticks)
