"""Where a task's time goes: `python -m benchmarks.costs`.

Two tables. What Redis spends in each script, by the size of the batch: in all, in the commands that the script calls,
and how many of them (from INFO commandstats; the rest is Lua and what surrounds a call). And what Python spends on each
step of a task's way, without the event loop, which is the same for every library.
"""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Awaitable, Callable, Iterator

import click
from msgspec import Struct
from tests.support.redis import RedisServer

from benchmarks.crew import redis_cpu
from benchmarks.peers.common import FILLER
from tickwork import Scheduler
from tickwork.client.specs import SpecMaker
from tickwork.config import Config
from tickwork.handlers.registry import Registry
from tickwork.ids import new_id, new_nonce
from tickwork.model.outcomes import Succeeded
from tickwork.model.tasks import Spec
from tickwork.store.contract import Claim, Grant
from tickwork.store.redis import RedisStore
from tickwork.store.redis.creating import submit_args
from tickwork.store.redis.net.link import pack
from tickwork.store.redis.net.target import parse
from tickwork.store.redis.records import unpack_grant
from tickwork.store.redis.reports import pack_outcome

BATCHES = (1, 5, 50)
PAYLOAD = f'{{"number":1,"filler":"{FILLER}"}}'.encode()
STEPS = 20_000


class Spent(Struct, frozen=True):
    """Server time of one script, in microseconds."""

    name: str
    batch: int
    call: float
    commands: float  # of that, in the commands that it calls
    count: float  # of those commands, a task


def specs(count: int) -> list[Spec]:
    return [Spec(id=new_id(), type="noop", nonce=new_nonce(), payload=PAYLOAD) for _ in range(count)]


def new_claim(limit: int) -> Claim:
    return Claim("bench", ("default",), frozenset({"noop"}), limit, 30_000, new_nonce())


async def watched(server: RedisServer, name: str, batch: int, tasks: int, work: Callable[[], Awaitable[None]]) -> Spent:
    server.command("CONFIG", "RESETSTAT")
    await work()
    calls = used = commands = count = 0
    for key, value in server.info("commandstats").items():
        found = re.match(r"calls=(\d+),usec=(\d+)", value)
        if found is None or key.startswith(("cmdstat_config", "cmdstat_info", "cmdstat_eval|", "cmdstat_script")):
            continue
        if key in ("cmdstat_evalsha", "cmdstat_eval"):
            calls, used = calls + int(found[1]), used + int(found[2])
        else:
            count, commands = count + int(found[1]), commands + int(found[2])
    return Spent(name, batch, used / calls, commands / calls, count / tasks)


async def on_redis(tasks: int) -> list[Spent]:
    found: list[Spent] = []
    with RedisServer() as server:
        store = RedisStore(parse(server.url))
        await store.open()

        async def submit(batch: int) -> None:
            for _ in range(tasks // batch):
                await store.tasks.submit(specs(batch))

        async def drain(batch: int) -> None:
            grants: list[Grant] = (await store.tasks.claim(new_claim(batch))).grants
            while grants:
                outcomes = [Succeeded(grant.lease, b"1", 0, "", 0.001) for grant in grants]
                claimed = (await store.tasks.finish(list(outcomes), new_claim(batch))).claimed
                grants = [] if claimed is None else claimed.grants

        await submit(100)
        await drain(100)  # the scripts are known to the server from here on
        for batch in BATCHES:
            found.append(await watched(server, "submit", batch, tasks, lambda size=batch: submit(size)))  # type: ignore[misc]
            found.append(await watched(server, "finish + claim", batch, tasks, lambda size=batch: drain(size)))  # type: ignore[misc]
        await store.close()
    return found


def in_python() -> Iterator[tuple[str, float]]:
    """Microseconds of each step, at its best."""
    maker = SpecMaker(Registry(), Config())
    spec = maker.make("noop", {"number": 1, "filler": FILLER}, {}, None)
    args = submit_args(spec)
    value = args[1] + b"x" + bytes(70)  # a state of zeros is as long to read as any
    grant = unpack_grant(spec.id, value, "nonce")
    outcome = Succeeded(grant.lease, b"1", 0, "", 0.001)
    steps: dict[str, Callable[[], object]] = {
        "submit: check and encode the payload, make the spec": lambda: maker.make("noop", {"number": 1}, {}, None),
        "submit: write it as bytes": lambda: submit_args(spec),
        "submit: the protocol": lambda: pack("EVALSHA", "0" * 40, 2, "{shop}:", "{shop}:-", *args),
        "claim: read a task": lambda: unpack_grant(spec.id, value, "nonce"),
        "finish: write an outcome": lambda: pack_outcome(outcome),
    }
    for name, step in steps.items():
        yield name, min(_timed(step) for _ in range(3))


def _timed(step: Callable[[], object]) -> float:
    began = time.perf_counter()
    for _ in range(STEPS):
        step()
    return (time.perf_counter() - began) / STEPS * 1e6


async def a_round(tasks: int) -> tuple[float, float]:
    """A whole task in one process, submit to end: CPU of Python and of Redis, in microseconds."""
    with RedisServer() as server:
        app = Scheduler(server.url, concurrency=100)
        done, ran = asyncio.Event(), 0

        @app.task
        async def noop(number: int) -> None:
            nonlocal ran
            ran += 1
            if ran == tasks:
                done.set()

        async with app:
            redis, cpu = redis_cpu(server), time.process_time()
            await app.submit_many("noop", range(tasks))
            await done.wait()
            while (await app.queue_stats()).running_count:
                await asyncio.sleep(0.01)
            return (time.process_time() - cpu) / tasks * 1e6, (redis_cpu(server) - redis) / tasks * 1e6


@click.command()
@click.option("--tasks", default=5_000, show_default=True, type=click.IntRange(min=500), help="For each figure.")
def main(tasks: int) -> None:
    """What Redis and Python spend on a task, step by step, in microseconds."""
    print("Server time of a script")
    print(f"  {'':<16}{'batch':>6}{'a call':>9}{'a task':>9}{'commands':>10}{'how many':>10}")
    for spent in asyncio.run(on_redis(tasks)):
        a_task, commands = spent.call / spent.batch, spent.commands / spent.batch
        print(
            f"  {spent.name:<16}{spent.batch:>6}{spent.call:>9.1f}{a_task:>9.1f}{commands:>10.1f}{spent.count:>10.1f}"
        )
    print("\nPython, a task")
    for name, used in in_python():
        print(f"  {name:<54}{used:>6.2f}")
    python, redis = asyncio.run(a_round(tasks * 4))
    print(f"\nA whole task, submit to end, 100 at once: Python {python:.1f}, Redis {redis:.1f}")


if __name__ == "__main__":
    main()
