"""A submit of one plain task has a script of its own on Redis, which writes what `submit.lua` would have written."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from typing import Any, Literal

import pytest

from tests.support.blocking import PATIENCE
from tests.support.redis import Proxy, RedisServer
from tests.support.redis_store import NAMESPACE, ClockedRedisStore, restricted_redis, shared_server
from tickwork.clock import ManualClock
from tickwork.errors import StoreFull
from tickwork.model.policy import Policy
from tickwork.model.tasks import Spec
from tickwork.store.contract import Receipt
from tickwork.store.redis import RedisStore
from tickwork.store.redis.batches import BATCH
from tickwork.store.redis.keys import Layout
from tickwork.store.redis.net.target import parse
from tickwork.store.redis.records import LARGE
from tickwork.store.redis.scripts import compose
from tickwork.testing.contract.bench import START

ROOT = Layout(NAMESPACE).root
KINDS = {"redis": 1, "redis-6.2": 1, "valkey": 1, "partitions": 3}

OUTBOX = -27  # where the flag stands in the value of a task that was never claimed

Way = Literal["long", "short", "blocking"]
SHORT_WAYS: tuple[Way, ...] = ("short", "blocking")
Prepare = Callable[[ClockedRedisStore], Awaitable[Any]]


def spec(task_id: str = "it", **fields: Any) -> Spec:
    return Spec(**{"id": task_id, "type": "job", "nonce": f"nonce-of-{task_id}", **fields})


@asynccontextmanager
async def store_of(kind: str, policy: Policy | None = None) -> AsyncIterator[ClockedRedisStore]:
    server = "redis" if kind == "partitions" else kind
    clock = ManualClock(START)
    store = ClockedRedisStore(clock, restricted_redis(server), policy, partitions=KINDS[kind])
    store.core.sockets.answer_time = PATIENCE  # a slow machine must not make it take the long way
    await store.open()
    try:
        yield store
    finally:
        await store.close()


class Ways:
    """Which scripts a store was asked for."""

    def __init__(self, store: RedisStore) -> None:
        self.taken: list[str] = []
        self._of = store.core.script
        store.core.script = self._script  # type: ignore[method-assign]

    def _script(self, name: str) -> Any:
        self.taken.append(name)
        return self._of(name)

    @property
    def short(self) -> bool:
        return "submit_one" in self.taken

    @property
    def long(self) -> bool:
        return "submit" in self.taken or "submit_with" in self.taken


async def submit(store: RedisStore, each: Spec, way: Way) -> Receipt:
    receipt = await asyncio.to_thread(store.tasks.submit_blocking, each) if way == "blocking" else None
    if receipt is None:
        (receipt,) = await store.tasks.submit([each])
    while store.core._hints_under_way:  # wake-ups of several partitions, for which no caller waits
        await asyncio.wait(store.core._hints_under_way)
    return receipt


def leave_only(store: RedisStore, way: Way) -> None:
    if way != "short":
        store.core.ready_link = lambda prefix: None  # type: ignore[method-assign]


def everything(kind: str) -> dict[bytes, Any]:
    """All that is stored: by key, its type and its content."""
    read: dict[bytes, tuple[Any, ...]] = {
        b"string": ("GET",), b"stream": ("XRANGE", "-", "+"), b"hash": ("HGETALL",), b"list": ("LRANGE", 0, -1),
        b"set": ("SMEMBERS",), b"zset": ("ZRANGE", 0, -1, "WITHSCORES"),
    }  # fmt: skip
    found: dict[bytes, Any] = {}
    with shared_server("redis" if kind == "partitions" else kind).connect() as client:
        for key in client.call("KEYS", "*"):
            if key.endswith((b":meta", b":clock")):
                continue  # the epoch is drawn, and only tests have the other
            content = client.call("TYPE", key)
            command, *rest = read[content]
            value = client.call(command, key, *rest)
            found[key] = content, sorted(value) if content == b"set" else value
    return found


def published(kind: str) -> int:
    stats = shared_server("redis" if kind == "partitions" else kind).info("commandstats")
    return int(stats.get("cmdstat_publish", "calls=0").partition("calls=")[2].partition(",")[0])


async def outcome(
    kind: str, specs: list[Spec], prepare: Prepare | None, policy: Policy | None, way: Way
) -> tuple[list[Receipt], dict[bytes, Any], int]:
    async with store_of(kind, policy) as store:
        await submit(store, spec("before"), "long")
        if prepare is not None:
            await prepare(store)
        store.clock.advance(1234)
        before = published(kind)
        ways = Ways(store)
        leave_only(store, way)
        receipts = [await submit(store, each, way) for each in specs]
        assert ways.short == (way != "long")
        told = published(kind) - before
        assert await store.queries.audit() == []
        return receipts, everything(kind), told


async def assert_same(
    kind: str, specs: list[Spec], prepare: Prepare | None = None, policy: Policy | None = None
) -> list[Receipt]:
    receipts, stored, told = await outcome(kind, specs, prepare, policy, "long")
    for way in SHORT_WAYS:
        found = await outcome(kind, specs, prepare, policy, way)
        assert found[0] == receipts
        assert found[1].keys() == stored.keys()
        for key, value in stored.items():
            assert found[1][key] == value, key
        assert found[2] == told, "as many wake-ups were published"
    return receipts


GRID: dict[str, dict[str, Any]] = {
    "plain": {},
    "no payload": {"payload": b""},
    "a payload just read whole": {"payload": b"x" * 900},
    "a payload with room behind it": {"payload": b"x" * 1100},
    "the largest": {"payload": b"x" * (LARGE - 200)},
    "high": {"priority": 10},
    "low": {"priority": 1},
    "another queue": {"queue": "mail.high:1"},
    "the longest names": {"type": "t" * 128, "queue": "q" * 128, "id": "i" * 128},
    "options of a run": {"max_retry": 7, "timeout": 2.5, "executor": "local", "target": "there"},
    "another serializer": {"serializer": "msgpack"},
    "a key": {"key": "customer\n17: ü"},
    "tags and context": {"tags": {"a": "b"}, "context": {"trace": {"id": 1}}},
    "after the end": {"run_after": "end", "workflow": "w1"},
    "an id in many bytes": {"id": "task-ü-€"},
}


@pytest.mark.parametrize("name", GRID)
@pytest.mark.parametrize("kind", KINDS)
async def test_both_ways_write_the_same(kind: str, name: str) -> None:
    fields = {"id": "it", **GRID[name]}
    both = [spec(fields.pop("id"), **fields), spec("second", **fields)]
    assert [receipt.verdict for receipt in await assert_same(kind, both)] == ["created", "created"]


@pytest.mark.parametrize("policy", [Policy(events=False), Policy(events_max=5)], ids=["no log", "a short log"])
@pytest.mark.parametrize("kind", KINDS)
async def test_both_ways_write_the_same_log(kind: str, policy: Policy) -> None:
    await assert_same(kind, [spec(f"it-{number}") for number in range(120)], policy=policy)


@pytest.mark.parametrize("state", ["3i", "3b"], ids=["indexed", "being indexed"])
@pytest.mark.parametrize("kind", KINDS)
async def test_both_ways_write_the_same_indexes(kind: str, state: str) -> None:
    async def index(store: ClockedRedisStore) -> None:
        await store.operators.index(True, None)
        for prefix in store.core.prefixes:
            await store.core.ask(prefix, "SET", f"{prefix}layout", state)

    await assert_same(kind, [spec("one"), spec("two", key="customer\n17: ü"), spec("three", queue="mail")], index)


@pytest.mark.parametrize("kind", KINDS)
async def test_both_ways_know_who_waits_for_the_task(kind: str) -> None:
    long, *others = [await awaited(kind, way) for way in ("long", *SHORT_WAYS)]
    assert others == [long] * len(SHORT_WAYS)
    assert long[OUTBOX] == 1, "its end goes to the outbox"


async def awaited(kind: str, way: Way) -> bytes:
    """The value of a task that was listed as awaited before it was there, as that of a retried workflow may be."""
    async with store_of(kind) as store:
        part = store.core.part("it")
        for number in range(10):
            await store.tasks.submit([spec(f"before-{number}")])
        await store.core.ask(part, "SADD", f"{part}awaited", "it")
        ways = Ways(store)
        leave_only(store, way)
        await submit(store, spec("it"), way)
        assert ways.short == (way != "long")
        value: bytes = everything(kind)[f"{part}task:it".encode()][1]
        return value


@pytest.mark.parametrize("kind", KINDS)
async def test_both_ways_note_who_waits_for_the_result(kind: str) -> None:
    long, short = await watched(kind, short=False), await watched(kind, short=True)
    assert short == long
    assert [content for key, content in short.items() if key.endswith(b"watchers")] == [(b"hash", [b"it", b"here"])]


async def watched(kind: str, short: bool) -> dict[bytes, Any]:
    async with store_of(kind) as store:
        store.core.channel = "here"
        for number in range(10):
            await store.tasks.submit([spec(f"before-{number}")])
        ways = Ways(store)
        leave_only(store, "short" if short else "long")
        with store.hint("it") as hint:
            await store.tasks.submit([spec("it")], None, hint)
            assert hint.announced
        assert ways.short == short
        while store.core._hints_under_way:
            await asyncio.wait(store.core._hints_under_way)
        return everything(kind)


@pytest.mark.parametrize("kind", KINDS)
async def test_an_id_that_is_taken_is_found_out_on_the_long_way(kind: str) -> None:
    again = [spec("it"), spec("it"), spec("it", nonce="of another submit"), spec("next")]
    receipts = await assert_same(kind, again)
    assert [receipt.verdict for receipt in receipts] == ["created", "created", "exists", "created"]


@pytest.mark.parametrize("lost", ["position", "facts"])
@pytest.mark.parametrize("kind", KINDS)
async def test_a_lost_counter_is_mended_by_both(kind: str, lost: str) -> None:
    async def lose(store: ClockedRedisStore) -> None:
        for prefix in store.core.prefixes:
            await store.core.ask(prefix, "DEL", f"{prefix}{lost}")

    await assert_same(kind, [spec("one"), spec("two")], lose)


@pytest.mark.parametrize("kind", KINDS)
async def test_both_ways_leave_one_wake_up(kind: str) -> None:
    async def wait_already(store: ClockedRedisStore) -> None:
        await store.core.ask(ROOT, "RPUSH", f"{ROOT}wake:default", "1")
        await store.core.ask(ROOT, "DEL", f"{ROOT}wake:mail")

    await assert_same(kind, [spec("one"), spec("two", queue="mail"), spec("three", queue="mail")], wait_already)


# --- which tasks go which way

LONG: dict[str, dict[str, Any]] = {
    "delay": {"delay": 1000},
    "at": {"at": START + 1000},
    "dedup key": {"dedup_key": "k", "dedup_ttl": 1000},
    "unique": {"dedup_key": "k", "unique": "queued"},
    "dependency": {"depends_on": ("before",)},
    "schedule": {"schedule_id": "nightly"},
    "expires": {"expires": 1000},
    "expires at": {"expires_at": START + 1000},
    "retention": {"retention": 1000},
    "large": {"payload": b"x" * LARGE},
}


@pytest.mark.parametrize("name", LONG)
async def test_a_task_with_options_goes_the_long_way(name: str) -> None:
    async with store_of("redis") as store:
        await store.tasks.submit([spec("before")])
        ways = Ways(store)
        (receipt,) = await store.tasks.submit([spec("it", **LONG[name])])
        assert receipt.verdict == "created"
        assert ways.long
        assert await store.queries.get("it") is not None


async def test_a_plain_task_takes_one_call() -> None:
    async with store_of("redis") as store:
        for number in range(3):  # the first tasks find counters that begin, and a server that does not know the script
            await store.tasks.submit([spec(f"before-{number}")])
        ways = Ways(store)
        await store.tasks.submit([spec("it")])
        assert ways.taken == ["submit_one"]


@pytest.mark.parametrize("durability", ["disk", "replicated"])
async def test_a_durable_submit_goes_the_long_way(durability: Any) -> None:
    async with store_of("redis") as store:
        store.core._patience = 0.0
        await store.tasks.submit([spec("before")])
        ways = Ways(store)
        with pytest.raises(Exception, match=durability):
            await store.tasks.submit([spec("it")], durability)
        assert not ways.short


async def test_submits_at_the_same_time_are_still_gathered() -> None:
    async with store_of("redis") as store:
        await store.tasks.submit([spec("before")])
        ways = Ways(store)
        await asyncio.gather(*(store.tasks.submit([spec(f"it-{number}")]) for number in range(BATCH)))
        assert ways.taken.count("submit_one") <= 1
        assert len(ways.taken) <= 4


# --- faults


async def test_a_server_that_has_forgotten_the_script_is_sent_its_text() -> None:
    async with store_of("redis") as store:
        await store.tasks.submit([spec("before")])
        await store.tasks.submit([spec("beside")])
        shared_server().command("SCRIPT", "FLUSH")
        ways = Ways(store)
        await store.tasks.submit([spec("it")])
        assert ways.taken == ["submit_one"]


async def test_a_namespace_that_was_lost_is_made_anew() -> None:
    async with store_of("redis") as store:
        await store.tasks.submit([spec("before")])
        shared_server().command("FLUSHALL")
        store.core._shown.clear()  # type: ignore[attr-defined]
        assert (await store.tasks.submit([spec("it")]))[0].verdict == "created"
        assert await store.queries.get("before") is None
        assert await store.queries.get("it") is not None


@pytest.fixture
def server() -> Iterator[RedisServer]:
    with RedisServer(options={"maxmemory-policy": "noeviction"}) as server:
        yield server


async def test_a_short_submit_whose_reply_is_lost_makes_one_task(server: RedisServer) -> None:
    with Proxy(server.port) as proxy:
        store = RedisStore(parse(f"redis://{proxy.host}:{proxy.port}/0"), "test", Policy())
        await store.open()
        await store.tasks.submit([spec("before")])
        await store.tasks.submit([spec("beside")])
        proxy.cut_replies(1, after=compose("submit_one", store.core.server.modern).sha.encode())
        ways = Ways(store)
        (receipt,) = await store.tasks.submit([spec("it")])
        assert proxy.cuts_left == 0
        assert receipt == Receipt("it", "created")
        assert ways.short
        assert ways.long
        events, _ = await store.log.read(0, 100)
        assert [event.id for event in events if event.kind == "task.submitted"] == ["before", "beside", "it"]
        assert await store.queries.audit() == []
        await store.close()


async def test_a_full_server_refuses_it_as_before(server: RedisServer) -> None:
    store = RedisStore(parse(server.url), "test", Policy())
    await store.open()
    await store.tasks.submit([spec("before")])
    await store.tasks.submit([spec("beside")])
    server.command("CONFIG", "SET", "maxmemory", 1)
    ways = Ways(store)
    with pytest.raises(StoreFull, match="is full"):
        await store.tasks.submit([spec("it")])
    assert ways.short
    server.command("CONFIG", "SET", "maxmemory", 0)
    assert await store.queries.get("it") is None
    await store.close()
