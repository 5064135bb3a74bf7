"""Limits and breakers that several processes keep together, also while some of them are killed.

All processes and servers are on one machine, so the times that handlers write down are those of the store's clock.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

from tests.faults.history import Line
from tests.faults.limit_node import BURST, FAILURES, RATE, SLOTS, TIMEOUT
from tests.faults.redis_faults import Case, Crew, Scale, Scene, evidence, pick, until
from tests.support.redis import RedisServer
from tickwork import Scheduler
from tickwork.model.facts import Fact
from tickwork.model.policy import Policy
from tickwork.model.tasks import Status
from tickwork.store.contract import Store
from tickwork.store.redis import RedisStore
from tickwork.store.redis.net.target import parse
from tickwork.store.sqlite import SqliteStore

KINDS = ("sqlite", "redis", "partitions")
NODES = 4
LEASE = 2.0
TIMES: dict[str, Any] = {"lease_ttl": LEASE, "renew_interval": 0.5, "scan_interval": 0.25}
TIMES |= {"leader_lease_ttl": 1.5, "leader_renew_interval": 0.5}
JITTER = 0.3  # seconds that may lie between a token and the handler's first line, on a machine that is busy


class LimitScene(Scene):
    def __init__(self, crew: Crew, app: Scheduler, store: Store, folder: Path) -> None:
        super().__init__(crew, app, store)
        self.broken = folder / "broken"

    def starts(self, of: str) -> list[Line]:
        return [line for line in self.lines if line["what"] == "start" and line["of"] == of]

    async def nobody_waits(self) -> None:
        """Once all tasks have ended, nobody is inside of a gate for longer than it takes to tell of the ends, nor waits
        at one."""

        async def is_empty() -> bool:
            return await self.store.gates.crowded(10) == []

        await until(is_empty, 10, lambda: f"all gates to be left; {self.crew}")


@asynccontextmanager
async def scene(kind: str, size: int = NODES, **options: Any) -> AsyncIterator[LimitScene]:
    partitions = 3 if kind == "partitions" else 1
    async with AsyncExitStack() as stack:
        folder = stack.enter_context(evidence())
        store: Store
        if kind == "sqlite":
            url = f"sqlite:///{folder / 'tick.db'}"
            store = SqliteStore(str(folder / "tick.db"), "faults", Policy())
        else:
            url = stack.enter_context(RedisServer()).url
            store = RedisStore(parse(url), "faults", Policy(), partitions=partitions)
        options = {**TIMES, "broken": str(folder / "broken"), **options}
        if partitions > 1:
            options["partitions"] = partitions
        crew = Crew(url, folder, options, program="limit_node")
        stack.callback(crew.close)
        app = await stack.enter_async_context(_closing(Scheduler(url, namespace="faults", partitions=partitions)))
        await store.open()
        stack.push_async_callback(store.close)
        await crew.start(size)
        yield LimitScene(crew, app, store, folder)


@asynccontextmanager
async def _closing(app: Scheduler) -> AsyncIterator[Scheduler]:
    try:
        yield app
    finally:
        await app.close()


# --- a rate


async def rate(seed: int, scale: Scale, kind: str = "redis") -> str:
    """From the first submit on there is always more to run than may run. Nothing is allowed for at the upper bound. The
    lower one of the short form leaves room for a machine that is busy."""
    seconds, share = (20.0, 0.98) if scale == "long" else (4.0, 0.5)
    async with scene(kind, concurrency=20) as on:
        began = time.time()
        await on.app.submit_many("rated", [None] * int(1.5 * RATE * seconds + BURST))
        await until(lambda: time.time() > began + seconds + JITTER, seconds + 5)
        at = sorted(line["at"] for line in on.starts("rated"))
        nodes = Counter(line["pid"] for line in on.starts("rated"))
    counted = sum(each <= began + seconds for each in at)
    check_rate(at, began)
    assert counted >= share * RATE * seconds, f"{counted} runs in {seconds:g} s"
    assert len(nodes) == NODES, nodes
    return f"{counted} runs in {seconds:g} s at {RATE}/s with a burst of {BURST}, by nodes: {sorted(nodes.values())}"


def check_rate(at: list[float], began: float) -> None:
    """No more than the rate and one burst: from the beginning on, and, but for jitter, from any run on."""
    for number, each in enumerate(at, 1):
        assert number <= RATE * (each - began) + BURST, f"{number} runs within {each - began:.3f} s"
    for first, each in enumerate(at):
        within = sum(each <= other <= each + 1 for other in at[first : first + 3 * RATE])
        assert within <= RATE * (1 + JITTER) + BURST, f"{within} runs in one second"


# --- runs at a time


async def holders_killed(seed: int, scale: Scale, kind: str = "redis", **options: Any) -> str:
    """Those that wait start within a lease and a second after the process is gone that has all slots. Its own tasks
    never come back: they are not run again after a lost worker, so the slots are freed by nobody but time."""
    rounds, found = (10 if scale == "long" else 1), list[float]()
    async with scene(kind, 1, stranger=True, max_losses=1, **options) as on:
        for number in range(rounds):
            victim = on.crew.members[-1]
            held = [f"held-{number}-{slot}" for slot in range(SLOTS)]
            for task_id in held:
                await on.submit("narrow", 60.0, task_id)
            for task_id in held:
                await on.first("start", task_id)
            await on.crew.start(1)
            waiting = [f"waits-{number}-{slot}" for slot in range(SLOTS)]
            for task_id in waiting:
                await on.submit("narrow", 0.1, task_id)
            await until(partial(_wait_at, on, "limit:type:narrow", waiting), 10, lambda: f"them to wait; {on.crew}")
            killed = on.crew.kill(victim)
            starts = [await on.first("start", task_id) for task_id in waiting]
            found.append(max(line["at"] for line in starts) - killed)
            await on.done(20)
            await on.nobody_waits()
    assert max(found) <= LEASE + 1, f"the slots came back after {max(found):.2f} s"
    return f"slots came back {', '.join(f'{each:.2f}' for each in found)} s after a kill, with a lease of {LEASE:g} s"


async def _wait_at(on: LimitScene, gate: str, ids: list[str]) -> bool:
    """They are counted there, and given back: one that is not would be lost with its worker."""
    records = [await on.store.queries.get(task_id) for task_id in ids]
    are_back = all(record is not None and record.status is Status.PENDING for record in records)
    return are_back and await on.store.gates.crowded(10) == [(gate, len(ids))]


# --- a breaker


async def breaker(seed: int, scale: Scale, kind: str = "redis") -> str:
    """It opens once, though all nodes fail at once; then one at a time is let through to try, and what waits is charged
    no attempt."""
    tries, count = (10 if scale == "long" else 2), 60
    async with scene(kind, concurrency=5) as on:
        on.broken.touch()
        handles = await on.app.submit_many("guarded", [None] * count)

        async def tried() -> bool:
            return len(await on.facts(Fact.BREAKER_PROBED)) >= tries

        await until(tried, 20 * TIMEOUT * tries, lambda: f"the breaker to be tried; {on.crew}")
        on.broken.unlink()
        await on.done(30)
        await on.nobody_waits()
        facts = await on.facts(Fact.BREAKER_OPENED, Fact.BREAKER_PROBED, Fact.BREAKER_CLOSED)
        starts = on.starts("guarded")
        records = await on.records()
    kinds = [fact.kind for fact in facts]
    probes = kinds.count(Fact.BREAKER_PROBED)
    assert kinds == [*[Fact.BREAKER_OPENED, Fact.BREAKER_PROBED] * probes, Fact.BREAKER_CLOSED], kinds
    opened, closed = facts[0].at / 1000, facts[-1].at / 1000
    began = Counter(line["id"] for line in starts)
    # One that was let through before the breaker opened may begin a moment later.
    while_open = [line["id"] for line in starts if opened + JITTER < line["at"] < closed]
    assert while_open == [fact.detail for fact in facts if fact.kind == Fact.BREAKER_PROBED], "more than one at a time"
    before = sum(line["at"] <= opened + JITTER for line in starts)
    # Each slot may be let through once more while its first failure is on its way to the store.
    assert FAILURES <= before <= 2 * NODES * 5 < count, f"{before} runs before it opened"
    for handle in handles:
        record = records[handle.id]
        assert (record.status, record.attempt) == (Status.SUCCESS, began[handle.id]), record
    failed = sum(line["fails"] for line in starts)
    assert sum(began.values()) == count + failed, "each failure was a run, and no other attempt was charged"
    return f"opened after {before} runs, {probes} probes, {failed} failures, {count} tasks ended"


# --- all of it, while nodes are killed


async def limits_killed(seed: int, scale: Scale, kind: str = "redis", stranger: bool = False) -> str:
    chance = random.Random(seed)
    kills, count = (30, 3000) if scale == "long" else (3, 180)
    async with scene(kind, stranger=stranger) as on:
        submitting = asyncio.ensure_future(submit_limited(on, chance, count, count / (kills + 1)))
        for _ in range(kills):
            await asyncio.sleep(chance.uniform(0.4, 0.9))
            victim = pick(chance, on.crew)
            if victim is not None:
                on.crew.kill(victim)
                on.crew.hire()
        await submitting
        await on.done(count / 10 + 20)
        await on.nobody_waits()
        assert await on.store.queries.audit() == []
        assert await on.store.gates.opened() == []
        records, lines = await on.records(), on.lines
    assert len(records) == count
    unfinished = [record.id for record in records.values() if record.status is not Status.SUCCESS]
    assert unfinished == []
    most = most_at_a_time(lines)
    for of, found in most.items():
        assert found <= (1 if of.startswith("keyed/") else SLOTS), f"{found} runs of {of} at a time"
    assert most["narrow"] == SLOTS, "the limit was never reached, so this run has shown nothing"
    lost = sum(record.losses for record in records.values())
    return f"{count} tasks ended, {kills} kills, {lost} losses, at most {dict(most)} at a time"


async def submit_limited(on: Scene, chance: random.Random, count: int, a_second: float) -> None:
    for number in range(count):
        seconds, name = chance.uniform(0.02, 0.15), f"task-{number}"
        kind = ("narrow", "keyed", "both")[number % 3]
        if kind == "narrow" and number // 3 <= SLOTS:
            seconds = 1.0  # one more than there are slots, so that the limit is reached however slow the machine is
        if kind == "keyed":
            key = chance.choice("abcd")
            await on.app.submit(kind, {"seconds": seconds, "key": key}, id=name, key=key)
        else:
            await on.app.submit(kind, seconds, id=name)
        await asyncio.sleep(1 / a_second / 2)


def most_at_a_time(lines: Iterable[Line]) -> Counter[str]:
    """Runs end with their line, or with their process. Those of a process that the machine has kept waiting for most of
    a lease may be run again by another meanwhile, which is no fault of the limit."""
    lines = list(lines)
    running: defaultdict[str, set[tuple[str, int]]] = defaultdict(set)
    of_pid: defaultdict[int, list[tuple[str, str, int]]] = defaultdict(list)
    most: Counter[str] = Counter()
    wrote = {line["pid"]: line["at"] for line in lines}  # the last time

    def moment(line: Line) -> tuple[float, bool]:
        """A kill is written down with the time before its signal was sent. Its victim has lived until its last line."""
        at = float(line["at"])
        return (max(at, wrote.get(line["victim"], at)), True) if line["what"] == "kill" else (at, False)

    for line in sorted(lines, key=moment):
        what = line["what"]
        if what == "start":
            running[line["of"]].add((line["id"], line["fence"]))
            of_pid[line["pid"]].append((line["of"], line["id"], line["fence"]))
            most[line["of"]] = max(most[line["of"]], len(running[line["of"]]))
        elif what == "end":
            running[line["of"]].discard((line["id"], line["fence"]))
        elif what == "kill" or (what == "fault" and line["till"] - line["at"] >= LEASE / 2):
            for of, task_id, fence in of_pid[line["victim"]]:
                running[of].discard((task_id, fence))
    return most


_CASES: dict[str, Callable[..., Awaitable[str]]] = {
    "rate": rate,
    "holders_killed": holders_killed,
    "breaker": breaker,
    "limits_killed": limits_killed,
    "limits_killed_strangers": partial(limits_killed, stranger=True),
}
CASES: dict[str, Case] = {f"{name}_{kind}": partial(case, kind=kind) for name, case in _CASES.items() for kind in KINDS}
