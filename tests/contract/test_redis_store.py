"""What only Redis can do to a store: be full."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator

import pytest

from tests.support.redis import RedisServer
from tickwork import Scheduler, Status, TaskContext
from tickwork.errors import StoreFull
from tickwork.model.members import Worker
from tickwork.model.outcomes import Failed, Succeeded
from tickwork.model.policy import Policy
from tickwork.model.schedules import Schedule
from tickwork.model.tasks import Lease, Spec
from tickwork.store.contract import Claim, Heard
from tickwork.store.hints import CONTROL
from tickwork.store.redis import RedisStore
from tickwork.store.redis.net.target import parse
from tickwork.store.redis.ops.server import memory_used

ROOM = 2_000_000
WISH = Claim("w1", ("default",), frozenset({"job"}), 10, 30_000, "claim-1")


@pytest.fixture(scope="module")
def server() -> Iterator[RedisServer]:
    with RedisServer(options={"maxmemory-policy": "noeviction"}) as server:
        yield server


@pytest.fixture
async def store(server: RedisServer) -> AsyncIterator[RedisStore]:
    server.command("CONFIG", "SET", "maxmemory", 0)
    server.command("FLUSHALL")
    store = RedisStore(parse(server.url), "test", Policy())
    await store.open()
    yield store
    server.command("CONFIG", "SET", "maxmemory", 0)
    await store.close()


def spec(name: str) -> Spec:
    return Spec(id=name, type="job", nonce=name)


async def running(store: RedisStore, count: int) -> list[Lease]:
    await store.tasks.submit([spec(f"run-{number}") for number in range(count)])
    claimed = await store.tasks.claim(WISH)
    assert len(claimed.grants) == count
    return [grant.lease for grant in claimed.grants]


async def fill(server: RedisServer, store: RedisStore) -> None:
    """Submit until Redis takes no more, and make sure that it is not a matter of bytes from then on."""
    server.command("CONFIG", "SET", "maxmemory", int(server.info("memory")["used_memory"]) + ROOM)
    payload = b'"' + b"x" * 50_000 + b'"'
    filler = [Spec(id=f"fill-{number}", type="filler", nonce="n", payload=payload) for number in range(200)]
    with pytest.raises(StoreFull, match="is full"):
        await store.tasks.submit(filler)
    server.command("CONFIG", "SET", "maxmemory", int(server.info("memory")["used_memory"]) - ROOM // 2)


async def test_what_runs_can_still_end_when_redis_is_full(server: RedisServer, store: RedisStore) -> None:
    first, second, third, fourth = await running(store, 4)
    await fill(server, store)
    assert await store.members.beat(Worker(id="w1")) == Heard(None)
    assert await store.tasks.extend([first, second, third, fourth], 30_000) == ["held"] * 4
    assert await store.tasks.note(first, 0.5, "half", ["a line"])
    done = await store.tasks.finish(
        [Succeeded(first, b"1" * 1000), Failed(second, "boom", 1000), Succeeded(third, b"3")]
    )
    assert [(verdict.kind, verdict.status) for verdict in done.verdicts] == [
        ("done", Status.SUCCESS),
        ("done", Status.RETRYING),
        ("done", Status.SUCCESS),
    ]
    assert (await store.tasks.reclaim(10, ("w1",))).ids == [fourth.id], "the work of a dead worker is taken back"
    assert await store.queries.audit() == []


async def test_a_full_redis_refuses_submits_at_once_and_leaves_nothing_behind(
    server: RedisServer, store: RedisStore
) -> None:
    await fill(server, store)
    before = await store.queries.stats()
    started = time.monotonic()
    with pytest.raises(StoreFull):
        await store.tasks.submit([spec("late")])
    assert time.monotonic() - started < 10, "there is no use in waiting"
    assert await store.queries.get("late") is None
    assert await store.queries.stats() == before
    assert await store.queries.audit() == []


async def test_a_redis_with_room_again_takes_submits_again(server: RedisServer, store: RedisStore) -> None:
    await fill(server, store)
    server.command("CONFIG", "SET", "maxmemory", 0)
    (receipt,) = await store.tasks.submit([spec("late")])
    assert receipt.verdict == "created"


async def open_another(store: RedisStore) -> None:
    other = RedisStore(parse(store.url), "test")
    try:
        await other.open()
    finally:
        await other.close()


EASING: dict[str, Callable[[RedisStore], Awaitable[object]]] = {
    "open": open_another,
    "wait for a result": lambda store: store.queries.get("run-0"),
    "tell of ends": lambda store: store.tasks.outbox(10),
    "pause a queue": lambda store: store.operators.pause("queue", "default"),
    "resume a queue": lambda store: store.operators.resume("queue", "other"),
    "renew a lock": lambda store: store.locks.extend("own", "me", 1000),
    "free a lock": lambda store: store.locks.release("own", "me"),
    "pause a schedule": lambda store: store.schedules.change("each", paused=True),
    "drop a schedule": lambda store: store.schedules.drop("each"),
    "campaign": lambda store: store.members.campaign("me", 1000),
    "leave": lambda store: store.members.leave("w1"),
    "promote": lambda store: store.tasks.promote(10),
    "cancel": lambda store: store.operators.cancel(["fill-0"], False),
    "delete": lambda store: store.operators.delete(["fill-0"]),
    "prune": lambda store: store.operators.prune(10),
}


@pytest.mark.parametrize("name", EASING)
async def test_a_full_redis_refuses_nothing_that_helps_to_empty_it(
    server: RedisServer, store: RedisStore, name: str
) -> None:
    await running(store, 1)
    await store.locks.acquire("own", "me", 60_000)
    await store.schedules.put(Schedule(id="each", cron="* * * * *", task=spec("each"), next_at=1))
    await fill(server, store)
    with store.hint("run-0") as hint:  # somebody waits for it
        await store.queries.get("run-0", hint)
        await EASING[name](store)


async def test_a_node_works_off_what_a_full_redis_holds(server: RedisServer, store: RedisStore) -> None:
    app = Scheduler(server.url, namespace="test", scan_interval=0.1)

    @app.task("job")
    async def job(ctx: TaskContext) -> str:
        ctx.progress(1.0, "done")
        return ctx.task_id

    await store.tasks.submit([spec(f"run-{number}") for number in range(100)])
    await fill(server, store)
    try:
        async with app:
            assert await app.handle("run-99").result(10) == "run-99"
    finally:
        await app.close()


async def test_a_forced_cancel_wakes_only_the_store_of_its_worker(server: RedisServer) -> None:
    """Whoever is woken renews all leases that it has."""
    server.command("CONFIG", "SET", "maxmemory", 0)
    stores = [RedisStore(parse(server.url), "control") for _ in range(2)]
    for number, store in enumerate(stores):
        await store.open()
        await store.members.beat(Worker(id=f"w{number}"))
    own, foreign = stores
    await own.tasks.submit([Spec(id="it", type="job", nonce="n")])
    assert len((await own.tasks.claim(Claim("w0", ("default",), frozenset({"job"}), 1, 30_000, "c"))).grants) == 1
    with own.hint(CONTROL) as heard, foreign.hint(CONTROL) as not_heard:
        for hint in (heard, not_heard):
            assert await hint.wait(10), "it is raised once when it begins to listen"
        while True:  # the server may not have taken the subscription yet
            await own.operators.cancel(["it"], True)
            if await heard.wait(0.2):
                break
        assert await not_heard.wait(0.1) is False
    for store in stores:
        await store.close()


def test_how_full_a_server_is_goes_by_its_limit() -> None:
    assert memory_used({"used_memory": "75", "maxmemory": "100"}) == 0.75
    assert memory_used({"used_memory": "120", "maxmemory": "100"}) == 1
    assert memory_used({"used_memory": "75", "maxmemory": "0"}) == memory_used({}) == 0
