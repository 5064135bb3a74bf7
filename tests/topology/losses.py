"""What a change of the master costs under load: `python -m tests.topology.losses --rounds 3` prints the table.

Submitters keep asking, each with one task under way. A task is lost when its submit was acknowledged and the new master
does not have it. The pause is the longest time in which nobody got an answer.
"""

from __future__ import annotations

import argparse
import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from itertools import pairwise
from typing import NamedTuple

from tests.support.redis import RedisServer, SentinelGroup
from tests.support.redis.sentinel import NAME
from tickwork.errors import StoreUnavailable
from tickwork.model.policy import Durability, Policy
from tickwork.model.tasks import Spec
from tickwork.store.redis import RedisStore
from tickwork.store.redis.keys import Layout
from tickwork.store.redis.net.target import parse
from tickwork.store.redis.ops.switchover import switchover

NAMESPACE = "losses"
SUBMITTERS = 8
WARM_UP, AFTER = 0.5, 1.0
CLASSES: tuple[Durability, ...] = ("memory", "replicated")


class Load:
    """Tasks that are submitted one after the other by some coroutines, and what they were told."""

    def __init__(self, store: RedisStore, durability: Durability, submitters: int = SUBMITTERS) -> None:
        self.acknowledged: dict[str, float] = {}
        self.refused: list[str] = []
        self._store = store
        self._durability = durability
        self._stopped = False
        self._tasks = [asyncio.ensure_future(self._submit(number)) for number in range(submitters)]

    @property
    def pause(self) -> float:
        moments = sorted(self.acknowledged.values())
        return max((later - earlier for earlier, later in pairwise(moments)), default=0.0)

    async def reached(self, count: int) -> None:
        """Return once so many more were acknowledged."""
        goal, deadline = len(self.acknowledged) + count, time.monotonic() + 30
        while len(self.acknowledged) < goal:
            assert time.monotonic() < deadline, f"no more are acknowledged; refused: {self.refused[-3:]}"
            await asyncio.sleep(0.01)

    async def stop(self) -> None:
        self._stopped = True
        await asyncio.gather(*self._tasks)

    async def _submit(self, submitter: int) -> None:
        number = 0
        while not self._stopped:
            number += 1
            spec = Spec(id=f"{submitter}-{number}", type="job", nonce="n")
            try:
                await self._store.tasks.submit([spec], self._durability)
            except StoreUnavailable as error:
                self.refused.append(str(error))
                await asyncio.sleep(0.05)
                continue
            self.acknowledged[spec.id] = time.monotonic()
            await asyncio.sleep(0.002)


class Cost(NamedTuple):
    acknowledged: int
    lost: int
    refused: int
    pause: float


def kept(master: RedisServer) -> set[str]:
    """The ids of all tasks that a server has, read without the store's code."""
    prefix = f"{Layout(NAMESPACE).root}task:"
    return {key.decode().removeprefix(prefix) for key in master.command("KEYS", f"{prefix}*")}


@asynccontextmanager
async def loaded(
    group: SentinelGroup, durability: Durability, submitters: int = SUBMITTERS
) -> AsyncIterator[tuple[RedisStore, Load]]:
    store = RedisStore(parse(group.url), NAMESPACE, Policy())
    await store.open()
    load = Load(store, durability, submitters)
    try:
        yield store, load
    finally:
        await load.stop()
        await store.close()


async def off_loop(function: Callable[[], object]) -> None:
    await asyncio.to_thread(function)


async def new_master(group: SentinelGroup, old: RedisServer, timeout: float = 30) -> RedisServer:
    """Who the sentinels agree on, once that is another than before."""
    deadline = time.monotonic() + timeout
    while True:
        current = await asyncio.to_thread(group.master)
        if current is not old and (await asyncio.to_thread(current.info, "replication"))["role"] == "master":
            return current
        assert time.monotonic() < deadline, "the sentinels have elected nobody"
        await asyncio.sleep(0.02)


async def demoted(server: RedisServer, timeout: float = 30) -> None:
    deadline = time.monotonic() + timeout
    while (await asyncio.to_thread(server.info, "replication"))["role"] == "master":
        assert time.monotonic() < deadline, "the old master was never demoted"
        await asyncio.sleep(0.05)


async def kill(group: SentinelGroup) -> None:
    old = group.master()
    await off_loop(old.kill)
    await new_master(group, old)


async def fail_over(group: SentinelGroup) -> None:
    old = group.master()
    group.sentinels[0].command("SENTINEL", "FAILOVER", NAME)
    await new_master(group, old)
    await demoted(old)


async def switch_over(group: SentinelGroup) -> None:
    await switchover(parse(group.url), lambda text: None)


EVENTS: dict[str, Callable[[SentinelGroup], Awaitable[None]]] = {
    "master killed (SIGKILL)": kill,
    "SENTINEL FAILOVER": fail_over,
    "tickwork switchover": switch_over,
}


async def measure(event: Callable[[SentinelGroup], Awaitable[None]], durability: Durability, replicas: int = 2) -> Cost:
    group = SentinelGroup(replicas=replicas)
    await off_loop(group.start)
    try:
        async with loaded(group, durability) as (_, load):
            await load.reached(1)
            await asyncio.sleep(WARM_UP)
            await event(group)
            await asyncio.sleep(AFTER)
            await load.reached(SUBMITTERS)
        there = await asyncio.to_thread(kept, group.master())
        lost = [task_id for task_id in load.acknowledged if task_id not in there]
        return Cost(len(load.acknowledged), len(lost), len(load.refused), load.pause)
    finally:
        await off_loop(group.stop)


async def table(rounds: int, replicas: int) -> None:
    print(f"A master with {replicas} replicas and 3 sentinels, {rounds} rounds each.\n")
    print("| What happens | Durability | Acknowledged | Lost | Refused | Longest pause |")
    print("| --- | --- | ---: | ---: | ---: | ---: |")
    for name, event in EVENTS.items():
        for durability in CLASSES:
            costs = [await measure(event, durability, replicas) for _ in range(rounds)]
            acknowledged, lost, refused = (sum(cost[place] for cost in costs) for place in range(3))
            pause = max(cost.pause for cost in costs)
            print(f"| {name} | {durability} | {acknowledged:,} | {lost:,} | {refused:,} | {pause:.1f} s |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure what is lost when a Redis master changes.")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--replicas", type=int, default=2)
    args = parser.parse_args()
    asyncio.run(table(args.rounds, args.replicas))


if __name__ == "__main__":
    main()
