"""What a call costs on Redis must not grow with what it does not touch: commands that it runs, never times."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from typing import Any

import pytest

from tests.support.redis_store import CLOCK, NAMESPACE, redis_bench, shared_server
from tickwork.model.outcomes import Succeeded
from tickwork.model.policy import Policy
from tickwork.node.duties import propagate
from tickwork.observe.bus import Bus
from tickwork.store.contract import MANY_MAX, Ask, Edge, Gate, Left
from tickwork.store.redis.claims import claim_args
from tickwork.store.redis.keys import Layout
from tickwork.store.redis.scripts import Script, compose
from tickwork.store.redis.tasks import SLICE
from tickwork.testing.contract.bench import Bench

ROOT = Layout(NAMESPACE).root
UNCOUNTED = ("config|resetstat", "config", "info")  # those of the test itself


@pytest.fixture
async def bench(policy: Policy) -> AsyncIterator[Bench]:
    async with redis_bench(policy) as bench:
        yield bench


async def commands(call: Callable[[], Awaitable[Any]]) -> int:
    """How many commands it ran, those inside of scripts too."""
    shared_server().command("CONFIG", "RESETSTAT")
    await call()
    found = shared_server().info("commandstats")
    names = {name.removeprefix("cmdstat_"): value for name, value in found.items()}
    return sum(int(value.split(",")[0].split("=")[1]) for name, value in names.items() if name not in UNCOUNTED)


async def scripts(call: Callable[[], Awaitable[Any]]) -> int:
    """How many scripts it called."""
    shared_server().command("CONFIG", "RESETSTAT")
    await call()
    return int(shared_server().info("commandstats")["cmdstat_evalsha"].split(",")[0].split("=")[1])


# Counts the bytes that a script packs and unpacks: work in Lua that no command shows.
COUNTING = """
local honest = cmsgpack
local function count(text)
  redis.call('INCRBY', KEYS[1] .. 'packed', #text)
  return text
end
local cmsgpack = {
  pack = function(...) return count(honest.pack(...)) end,
  unpack = function(text) return honest.unpack(count(text)) end,
}
"""


async def bytes_packed(bench: Bench, call: Callable[[], Awaitable[Any]], monkeypatch: pytest.MonkeyPatch) -> int:
    store: Any = bench.store

    def counting(name: str) -> Script:
        return compose(name, True, COUNTING + CLOCK)

    shared_server().command("SET", f"{ROOT}packed", "0")
    with monkeypatch.context() as patch:
        patch.setattr(store.core, "script", counting)
        await call()
    counted = int(shared_server().command("GET", f"{ROOT}packed"))
    shared_server().command("DEL", f"{ROOT}packed")
    return counted


def names(word: str, count: int) -> tuple[str, ...]:
    return tuple(f"{word}{number}" for number in range(count))


@pytest.mark.parametrize("aside", [False, True], ids=["nothing aside", "one aside"])
async def test_a_claim_costs_the_same_however_many_queues_and_types_it_names(bench: Bench, aside: bool) -> None:
    if aside:
        await bench.submit("parked", queue="queue0", type="strange")
        assert await bench.claimed_ids(queues=("queue0",)) == []

    async def cost(queues: int, types: int) -> int:
        claim = bench.new_claim(10, queues=names("queue", queues), types=names("type", types))
        await bench.store.tasks.claim(bench.new_claim(10, queues=claim.queues))  # the one that forgets an empty lane
        return await commands(lambda: bench.store.tasks.claim(claim))

    few = await cost(20, 2)
    assert await cost(1000, 2) == few
    assert await cost(20, 1000) == few
    assert await cost(300, 1000) == few


async def test_a_claim_costs_the_same_however_many_queues_had_tasks(bench: Bench) -> None:
    queues = names("queue", 500)
    for queue in queues:
        await bench.submit(queue=queue)

    async def drain() -> None:
        while await bench.claim(100, queues=queues):
            pass

    async def claim() -> None:
        await bench.claim(100, queues=queues)

    assert await commands(drain) < 30 * len(queues)
    few = await commands(claim)
    await bench.submit(queue="queue7")
    await drain()
    assert await commands(claim) == few < 30


async def test_a_claim_is_sent_in_as_many_pieces_however_much_it_names(bench: Bench) -> None:
    few, many = (claim_args(bench.new_claim(10, queues=names("q", n), types=names("t", n))) for n in (1, 1000))
    assert len(few) == len(many)


async def test_a_fan_out_takes_a_script_for_each_slice(bench: Bench) -> None:
    count = 2 * MANY_MAX + 10
    await bench.submit("up")
    await bench.submit_many(count, "down", depends_on=("up",))
    (grant,) = await bench.claim()
    await bench.end(Succeeded(grant.lease))
    pauses: list[float | None] = []

    async def tell_all() -> None:
        while pauses[-1:] != [None]:
            pauses.append(await propagate(bench.store, 100, Bus()))

    assert await scripts(tell_all) <= count // SLICE + 1 + 2 * len(pauses)
    assert pauses == [0, 0, None], "it waits only when all are told"
    assert len(await bench.claimed_ids(count)) == 1000


async def test_what_a_task_waits_for_is_read_and_written_once_a_call(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else a task that waits for a thousand others would cost a million times what one of them does."""
    upstreams = await bench.submit_many(200, "up", delay=60_000)
    await bench.submit("down", depends_on=tuple(upstreams))

    async def tell(count: int) -> None:
        ended, upstreams[:count] = upstreams[:count], []
        assert await bench.store.tasks.resolve([Edge("down", upstream, True) for upstream in ended]) == [True] * count

    one = await bytes_packed(bench, lambda: tell(1), monkeypatch)
    assert await bytes_packed(bench, lambda: tell(SLICE), monkeypatch) < 2 * one + 100 * SLICE


TOO_MANY, TOO_OLD = Policy(retention_max=10), Policy(retention=1000)


@pytest.mark.parametrize(
    ("policy", "reads"), [(TOO_MANY, 0), (TOO_OLD, 1)], ids=["too many, unread", "too old, read once"]
)
@pytest.mark.parametrize("outbox", [False, True], ids=["all told", "one untold"])
async def test_ended_tasks_are_removed_together(bench: Bench, policy: Policy, reads: int, outbox: bool) -> None:
    await bench.submit_many(600)
    for number in range(50):
        await bench.submit(f"lane{number}", queue=f"queue{number}", delay=60_000)
        await bench.run_now(f"lane{number}")
    for grant in await bench.claim(600):
        await bench.end(Succeeded(grant.lease))
    if outbox:
        await bench.submit("up")
        await bench.submit("down", depends_on=("up",))
        await bench.end(Succeeded((await bench.claim())[0].lease))
    bench.clock.advance(60)
    pruned: list[int] = []

    async def prune() -> None:
        pruned.append(await bench.store.operators.prune(500))

    assert await commands(prune) < 500 * reads + 60
    assert pruned == [500]


async def test_of_many_workers_one_is_told_of_the_next_delayed_task(bench: Bench) -> None:
    """Or all that are idle would claim at that moment."""
    await bench.submit("late", delay=60_000)

    async def told(*workers: str) -> list[int | None]:
        claims = [bench.new_claim(worker=worker) for worker in workers]
        return [(await bench.store.tasks.claim(claim)).next_due_in for claim in claims]

    assert await told("w1", "w2", "w3", "w1") == [60_000, None, None, 60_000]
    await bench.submit("soon", delay=1000)
    assert await told("w2", "w3", "w1") == [1000, None, None]
    shared_server().command("DEL", f"{ROOT}expected")  # what happens to it after three seconds
    assert await told("w3", "w2") == [1000, None]
    bench.clock.advance(1)
    assert await bench.claimed_ids(worker="w1") == ["soon"]
    assert await told("w2", "w1") == [None, 59_000], "who has taken the first one is told of the next"


async def test_a_delayed_task_whose_worker_does_not_come_wakes_another(bench: Bench) -> None:
    await bench.submit("late", delay=60_000)
    await bench.claim(worker="w1")
    await bench.claim(worker="w2")
    shared_server().command("DEL", f"{ROOT}wake:default")  # what an idle worker does that is woken by the submit
    bench.clock.advance(60)
    await bench.store.tasks.promote(10)
    assert shared_server().command("LLEN", f"{ROOT}wake:default") == 1


async def test_limits_of_many_keys_cost_no_more_than_those_of_few(bench: Bench) -> None:
    gates = bench.store.gates

    def asks(who: str, keys: Iterable[int]) -> list[Ask]:
        return [Ask(f"{who}{key}", (Gate(f"limit:type:mail/key={key}", rate=0.001, burst=2, slots=1),)) for key in keys]

    async def crowd(keys: Iterable[int]) -> None:
        """At each key one is inside and two wait."""
        for who in ("inside", "first", "second"):
            await gates.enter(asks(who, keys))

    async def cost(keys: range) -> int:
        async def turn() -> None:
            left = [Left(f"inside{key}", (f"limit:type:mail/key={key}",)) for key in keys]
            assert [each.id for each in await gates.leave(left)] == [f"first{key}" for key in keys]
            assert await gates.enter(asks("first", keys)) == [None] * len(keys)
            assert await gates.wake(100) == []
            assert len(await gates.crowded(5)) == 5

        return await commands(turn)

    await crowd(range(10))
    few = await cost(range(5))
    for start in range(10, 10_000, 333):
        await crowd(range(start, start + 333))
    assert await cost(range(5, 10)) == few
