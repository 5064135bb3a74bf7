"""What an earlier version wrote is found whole, and goes on from there."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest

from tests.support.layout2 import NAMESPACE, WRITTEN_AT, copy_sqlite, describe, expected, in_any_order, load_redis
from tests.support.redis_store import WORKER, ClockedCore, ClockedRedisStore, auditing, restricted_redis, shared_server
from tickwork.clock import ManualClock
from tickwork.errors import StoreError
from tickwork.ids import partition_of
from tickwork.model.outcomes import Aborted, Outcome, Succeeded
from tickwork.model.policy import Policy
from tickwork.model.tasks import ENDS, Lease, Status
from tickwork.store.contract import Store
from tickwork.store.redis import RedisStore
from tickwork.store.sqlite import SqliteStore
from tickwork.testing.contract.bench import Bench

WRITTEN = expected()
DATA = ("sqlite", "redis-1", "redis-2", "redis-1 on redis-6.2", "redis-1 on valkey")
QUEUES = ("front", "side", "main", "damaged", "default", "mail")
TYPES = ("job", "mail", "report", "export")
HOUR = 3_600_000


@pytest.fixture(params=DATA)
async def bench(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Bench]:
    clock = ManualClock(WRITTEN_AT)
    store = load(request.param, tmp_path, clock)
    with auditing(store.core.target) if isinstance(store, RedisStore) else nullcontext():
        assert await store.migrate(take_over=True, report=lambda count: None)
    await store.open()
    yield Bench(store, clock)
    await store.close()


def load(data: str, folder: Path, clock: ManualClock) -> Store:
    if data == "sqlite":
        return SqliteStore(str(copy_sqlite(folder)), NAMESPACE, Policy(), clock)
    name, _, server = data.partition(" on ")
    partitions = int(name[-1])
    url = restricted_redis(server or "redis")
    load_redis(shared_server(server or "redis"), partitions)
    return ClockedRedisStore(clock, url, Policy(), partitions=partitions)


def comparable(bench: Bench, description: dict[str, Any]) -> dict[str, Any]:
    return description if bench.store.capabilities.partitions == 1 else in_any_order(description)


async def test_all_of_it_is_found_as_it_was_written(bench: Bench) -> None:
    found, wanted = comparable(bench, await describe(bench.store)), comparable(bench, WRITTEN)
    for part, value in wanted.items():
        assert found[part] == value, part
    assert found.keys() == wanted.keys()


async def test_there_are_tasks_in_every_status_that_is_used() -> None:
    assert {status for status in Status if WRITTEN["counts"][status] == 0} == {Status.ASSIGNED}


async def test_runs_that_were_under_way_end_by_their_leases(bench: Bench) -> None:
    leases = [
        Lease(task_id, task["fence"], task["nonce"])
        for task_id, task in WRITTEN["tasks"].items()
        if task["status"] == Status.RUNNING
    ]
    assert len(leases) == 5
    asked = {"running-asked-to-stop"}
    for lease, answer in zip(leases, await bench.store.tasks.extend(leases, 30_000), strict=True):
        assert answer == ("cancel" if lease.id in asked else "held")
    assert await bench.store.tasks.note(leases[0], 0.5, "goes on", ["and on"])
    finished = await bench.store.tasks.finish([Succeeded(lease, b"1") for lease in leases])
    assert [verdict.kind for verdict in finished.verdicts] == ["done"] * len(leases)


async def test_a_claim_that_is_sent_again_gets_the_same_task(bench: Bench) -> None:
    task = WRITTEN["tasks"]["running-last-chance"]
    (grant,) = await bench.claim(1, task["worker_id"], types=TYPES, nonce=task["nonce"], node="n2")
    assert grant.lease == Lease("running-last-chance", task["fence"], task["nonce"])
    assert (grant.losses, grant.attempt) == (2, 1)


async def test_dedup_keys_are_held_until_their_time(bench: Bench) -> None:
    async def holder(key: str) -> str:
        receipt = await bench.submit(id_beside(key), dedup_key=key, dedup_ttl=1000)
        return receipt.other if receipt.verdict == "duplicate" else receipt.verdict

    assert await holder("order:1") == "pending-full"
    assert await holder("report:8") == "dead-large"
    assert await holder("brief") == "created"
    assert await holder("cancelled") == "created"
    bench.clock.set(WRITTEN_AT + 30 * 24 * HOUR)
    assert await holder("order:1") == "created"


def id_beside(key: str) -> str:
    """One that is in the same partition as the key, if there are two."""
    names = (f"new-{number}-{key}" for number in range(100))
    return next(name for name in names if partition_of(name, 2) == partition_of(key, 2))


async def test_locks_are_held_and_fences_grow(bench: Bench) -> None:
    locks = bench.store.locks
    assert await locks.acquire("held", "another", 1000) is None
    assert await locks.extend("held", "owner-1", 1000)
    fences = [await locks.acquire(name, "another", 1000) for name in ("run out", "released")]
    assert all(fence is not None and fence >= WRITTEN_AT * 1000 for fence in fences)


async def test_schedules_fire_unless_they_are_paused_or_stopped(bench: Bench) -> None:
    assert await bench.store.schedules.due(10) == ([], WRITTEN["schedules"]["daily"]["next_at"] - WRITTEN_AT)
    bench.clock.set(WRITTEN["schedules"]["daily"]["next_at"])
    due, _ = await bench.store.schedules.due(10)
    assert [schedule.id for schedule in due] == ["daily"]
    assert await bench.store.schedules.change("paused", paused=False, next_at=WRITTEN_AT)
    due, _ = await bench.store.schedules.due(10)
    assert sorted(schedule.id for schedule in due) == ["daily", "paused"]


async def test_what_was_ready_starts_in_its_order(bench: Bench) -> None:
    ready = WRITTEN["ready"]
    main = [*ready["main high main"], *ready["main normal main"], *ready["main low main"]]
    assert len(main) == 8
    assert_order(bench, await bench.claimed_ids(queues=("main",), types=TYPES, worker="w1", node="n1"), main)
    front = await bench.claimed_ids(queues=("front",), worker="w1", node="n1")
    assert_order(bench, front, ready["front normal front"])
    assert await bench.claimed_ids(queues=("side",), types=TYPES, worker="w1", node="n1") == []
    assert await bench.store.operators.resume("type", "export")
    parked = await bench.claimed_ids(queues=("side",), types=TYPES, worker="w1", node="n1")
    assert_order(bench, parked, ready["side low side"])


def assert_order(bench: Bench, claimed: list[str], wanted: list[str]) -> None:
    """Partitions have an order only in each."""
    count = bench.store.capabilities.partitions
    for place in range(count):
        here = [task_id for task_id in claimed if partition_of(task_id, count) == place]
        assert here == [task_id for task_id in wanted if partition_of(task_id, count) == place]
    assert len(claimed) == len(wanted)


async def test_every_task_comes_to_its_end(bench: Bench) -> None:
    """Leases run out, delays end, dependants are told; the damaged task is aborted by whoever gets it."""
    store = bench.store
    assert await store.operators.resume("queue", "mail")
    assert await store.operators.resume("type", "export")
    damaged = []
    for _ in range(30):
        bench.clock.advance(600)
        for _ in range(5):  # leases run out only while somebody calls
            await store.tasks.reclaim(100)
            bench.clock.advance(10)
        claim = bench.new_claim(100, "w1", QUEUES, TYPES, lease_ttl=3_000_000)  # one of them names it as its target
        claimed = await store.tasks.claim(claim)
        damaged += [each.lease.id for each in claimed.unreadable]
        outcomes: list[Outcome] = [Succeeded(grant.lease, b"1") for grant in claimed.grants]
        outcomes += [Aborted(each.lease, each.why) for each in claimed.unreadable]
        assert {verdict.kind for verdict in (await store.tasks.finish(outcomes)).verdicts} <= {"done"}
        await bench.propagate()
    found = await describe(store)
    assert {status for status, count in found["counts"].items() if count} <= ENDS
    assert found["tasks"].keys() == WRITTEN["tasks"].keys()
    assert damaged == ["main-damaged"]
    assert [line for line in await store.queries.audit() if "main-damaged" not in line] == []


# --- users without the rights, what other programs wrote, and much at once


@pytest.mark.parametrize("partitions", [1, 2])
@pytest.mark.parametrize("missing", ["scan", "rename"])
async def test_a_user_without_the_rights_changes_nothing(partitions: int, missing: str) -> None:
    """`tickwork acl` of the version before gave no right to rename keys."""
    server = shared_server()
    url = restricted_redis()
    load_redis(server, partitions)
    before = {key: server.command("DUMP", key) for key in server.command("KEYS", "*")}
    store = ClockedRedisStore(ManualClock(WRITTEN_AT), url, Policy(), partitions=partitions)
    server.command("ACL", "SETUSER", WORKER, "+scan", f"-{missing}")
    try:
        with pytest.raises(StoreError):
            await store.migrate(take_over=True, report=lambda count: None)
    finally:
        server.command("ACL", "SETUSER", WORKER, "-scan", "+rename")
        await store.close()
    found = {key: server.command("DUMP", key) for key in server.command("KEYS", "*") if not key.endswith(b":clock")}
    assert found == before


async def test_a_worker_s_user_is_told_which_one_migrates() -> None:
    store = ClockedRedisStore(ManualClock(WRITTEN_AT), restricted_redis(), Policy())
    load_redis(shared_server(), 1)
    with pytest.raises(StoreError, match=r"lists keys.*`tickwork acl --for audit`"):
        await store.migrate(take_over=True, report=lambda count: None)
    await store.close()


async def migrate_with(keys: dict[bytes, bytes], folder: Path) -> ClockedRedisStore:
    store = load("redis-1", folder, ManualClock(WRITTEN_AT))
    assert isinstance(store, ClockedRedisStore)
    for key, value in keys.items():
        shared_server().command("SET", b"{test}:" + key, value)
    with auditing(store.core.target):
        assert await store.migrate(take_over=True, report=lambda count: None)
    return store


async def test_names_that_are_no_text_do_not_stop_a_migration(tmp_path: Path) -> None:
    odd = {b"dedup:\xff\xfe": b"x", b"task:\xff\xfe": b"y", b"dedup:\n * [a]?": b"z"}
    store = await migrate_with(odd, tmp_path)
    assert [shared_server().command("GET", b"{test}:3:" + key) for key in odd] == list(odd.values())
    await store.open()
    await store.close()


async def test_large_tasks_are_migrated_a_few_at_a_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A server that has to read hundreds of megabytes for one script does nothing else meanwhile."""
    size, sent = 1_000_000, list[int]()
    run = ClockedCore._run_once

    async def spy(core: ClockedCore, name: str, *args: Any, **options: Any) -> Any:
        sent.append(sum(len(arg) for arg in args if isinstance(arg, bytes)))
        return await run(core, name, *args, **options)

    monkeypatch.setattr(ClockedCore, "_run_once", spy)
    large = {b"task:large%d" % number: b"x" * size for number in range(30)}
    store = await migrate_with(large, tmp_path)
    assert shared_server().command("EXISTS", *(b"{test}:3:" + key for key in large)) == len(large)
    assert max(sent) < 10 * size
    await store.close()


@pytest.mark.parametrize("data", ["redis-1", "redis-2"])
async def test_a_namespace_that_is_removed_after_its_migration_begins_anew(data: str, tmp_path: Path) -> None:
    """What stays under the old prefix, to stop older nodes, is not taken for the namespace."""
    store = load(data, tmp_path, ManualClock(WRITTEN_AT))
    assert isinstance(store, ClockedRedisStore)
    with auditing(store.core.target):
        assert await store.migrate(take_over=True, report=lambda count: None)
    server = shared_server()
    server.command("DEL", *(key for key in server.command("KEYS", "*") if b"}:3:" in key))
    store.core._shown.clear()  # type: ignore[attr-defined]
    await store.open()
    bench = Bench(store, store.clock)
    await bench.submit("it")
    assert await bench.claimed_ids() == ["it"]
    await store.close()
