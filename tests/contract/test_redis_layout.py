"""What layout 3 holds beside the contract: large tasks past the scripts, indexes, and a namespace that vanishes."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import AsyncIterator
from typing import Any

import pytest

from tests.support.redis_store import NAMESPACE, ClockedRedisStore, restricted_redis, shared_server
from tickwork.clock import ManualClock
from tickwork.errors import StoreError
from tickwork.model.outcomes import Failed, Released, Succeeded
from tickwork.model.policy import Policy
from tickwork.model.tasks import Spec, Status
from tickwork.store.contract import PAGE_MAX, Query
from tickwork.store.redis import creating
from tickwork.store.redis.keys import Layout
from tickwork.store.redis.net.link import pack
from tickwork.store.redis.records import LARGE
from tickwork.testing.contract.bench import START, Bench

ROOT = Layout(NAMESPACE).root


@pytest.fixture
async def bench() -> AsyncIterator[Bench]:
    store = ClockedRedisStore(ManualClock(START), restricted_redis(), Policy())
    await store.open()
    yield Bench(store, store.clock)
    await store.close()


def store_of(bench: Bench) -> ClockedRedisStore:
    assert isinstance(bench.store, ClockedRedisStore)
    return bench.store


# --- large tasks

SIZES = (LARGE - 200, LARGE - 30, LARGE + 30, 100_000)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("options", [{}, {"delay": 1000}, {"dedup_key": "k", "dedup_ttl": 1000}], ids=str)
async def test_a_large_task_lives_as_any_other(bench: Bench, size: int, options: dict[str, Any]) -> None:
    payload = bytes(number % 251 for number in range(size))
    await bench.submit("it", payload=payload, **options)
    await bench.submit("small", **({"delay": 1000} if "delay" in options else {}))
    bench.clock.advance(1)
    grants = await bench.claim(2, nonce="first")
    assert [(grant.spec.id, grant.spec.payload) for grant in grants] == [("it", payload), ("small", b"null")]
    assert await bench.claim(2, nonce="first") == grants, "the same claim again gets the same"
    await bench.end(Released(grants[0].lease))
    (grant,) = await bench.claim()
    assert (grant.spec, grant.attempt) == (grants[0].spec, 1)
    await bench.end(Failed(grant.lease, "boom", 0))
    (grant,) = await bench.claim()
    assert (grant.spec, grant.attempt) == (grants[0].spec, 2)
    await bench.end(Succeeded(grant.lease, b"1" * 10_000))
    record = await bench.record("it")
    assert (record.spec.payload, record.result, record.status) == (payload, b"1" * 10_000, Status.SUCCESS)
    assert await bench.store.queries.audit() == []


def incoming() -> list[bytes]:
    return list(shared_server().command("KEYS", f"{ROOT}incoming:*"))


async def test_a_very_large_task_is_written_beside_the_script(bench: Bench) -> None:
    """What Redis copies in the script is its label."""
    await bench.submit("it", payload=b"x" * 200_000)
    await bench.submit("it2", payload=b"x" * 200_000, delay=1000)
    assert incoming() == []
    assert [shared_server().command("PTTL", f"{ROOT}task:{name}") for name in ("it", "it2")] == [-1, -1]
    (grant,) = await bench.claim(5)
    assert (grant.spec.id, len(grant.spec.payload)) == ("it", 200_000)


async def test_a_very_large_task_that_could_not_be_written_beside_the_script_goes_through_it(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(creating, "pack", lambda *command: pack("PING"))
    spec = Spec(id="it", type="job", nonce="n", payload=b"x" * 100_000)
    assert [receipt.verdict for receipt in await bench.store.tasks.submit([spec])] == ["created"]
    (grant,) = await bench.claim(5)
    assert grant.spec == spec


async def test_a_very_large_task_that_is_known_leaves_nothing_behind(bench: Bench) -> None:
    spec = Spec(id="it", type="job", nonce="n", payload=b"x" * 100_000)
    other = Spec(id="it", type="job", nonce="other", payload=b"y" * 100_000)
    found = [await bench.store.tasks.submit([each]) for each in (spec, spec, other)]
    assert [receipt.verdict for (receipt,) in found] == ["created", "created", "exists"]
    assert incoming() == []
    (grant,) = await bench.claim(5)
    assert grant.spec == spec


async def test_a_script_never_answers_a_large_task(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    await bench.submit("it", payload=b"x" * (LARGE + 1))
    core, replies = store_of(bench).core, []
    run = core._run_once

    async def spy(name: str, *args: Any, **options: Any) -> Any:
        replies.append(await run(name, *args, **options))
        return replies[-1]

    monkeypatch.setattr(core, "_run_once", spy)
    (grant,) = await bench.claim()
    assert grant.spec.payload == b"x" * (LARGE + 1)
    assert replies == [[-1, b"it", b""]]


async def test_a_large_task_that_vanished_after_its_claim_is_not_granted(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    await bench.submit("it", payload=b"x" * (LARGE + 1))
    core = store_of(bench).core
    ask_all = core.ask_all

    async def gone(key: str, commands: list[tuple[Any, ...]]) -> list[Any]:
        shared_server().command("DEL", f"{ROOT}task:it")
        return await ask_all(key, commands)

    monkeypatch.setattr(core, "ask_all", gone)
    assert await bench.claim() == []


# --- leases by worker


async def test_workers_whose_list_was_lost_are_found_by_an_audit(bench: Bench) -> None:
    await bench.start("it")
    shared_server().command("DEL", f"{ROOT}lessees")
    assert await bench.store.queries.audit() == ["task it is missing in lessees"]
    await bench.store.operators.mend()
    assert await bench.store.queries.audit() == []
    bench.clock.advance(1)
    await bench.store.tasks.reclaim(10)
    bench.clock.advance(60)
    for _ in range(3):
        await bench.store.tasks.reclaim(10)
        bench.clock.advance(20)
    assert await bench.status("it") is Status.READY


async def test_the_tasks_of_one_that_is_gone_are_found_among_many_others(bench: Bench) -> None:
    """Without looking at the others."""
    for number in range(30):
        await bench.submit_many(100, f"living{number}-")
        await bench.claim(100, worker="living", turn=number % 2)
    await bench.submit_many(5, "orphan")
    await bench.claim(5, worker="dead")
    taken = await bench.store.tasks.reclaim(10, ("dead",), "killed")
    assert sorted(taken.ids) == [f"orphan{number}" for number in range(5)]


# --- deadlines


async def test_a_task_that_has_started_or_ended_has_no_deadline_any_more(bench: Bench) -> None:
    """Else claims would wait for each of these later."""
    await bench.start("started", expires=3_600_000)
    await bench.submit("cancelled", expires=3_600_000)
    await bench.cancel("cancelled")
    await bench.submit("waits", expires=3_600_000)
    (left,) = shared_server().command("ZRANGE", f"{ROOT}deadlines", 0, -1)
    assert left.endswith(b"waits")


async def test_a_claim_does_not_wait_until_thousands_are_cancelled(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    for start in range(0, 5000, 1000):
        await bench.submit_many(1000, f"t{start}-", expires=0)
    await bench.submit("it")
    core, calls = store_of(bench).core, Counter[str]()
    run = core._run_once

    async def spy(name: str, *args: Any, **options: Any) -> Any:
        calls[name] += 1
        return await run(name, *args, **options)

    monkeypatch.setattr(core, "_run_once", spy)
    claimed = await bench.store.tasks.claim(bench.new_claim())
    assert (claimed.grants, claimed.next_due_in) == ([], 0)
    assert calls["promote"] <= 20
    assert [await bench.claimed_ids() for _ in range(3)] == [[], ["it"], []]
    assert (await bench.store.queries.stats()).statuses[Status.CANCELLED] == 5000


# --- indexes


@pytest.mark.timeout(120)
async def test_50_000_tasks_are_listed_by_type_page_by_page(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """No request looks at more than a thousand entries."""
    await bench.store.operators.index(True)
    total, wanted = 50_000, []
    for start in range(0, total, 1000):
        specs = [
            Spec(id=f"t{number}", type="rare" if number % 50 == 0 else "usual", nonce="n", key=f"k{number % 1000}")
            for number in range(start, start + 1000)
        ]
        await bench.store.tasks.submit(specs)
        wanted += [spec.id for spec in specs if spec.type == "rare"]
    core, looked = store_of(bench).core, [0]
    ask = core.ask

    async def spy(key: str, *command: Any) -> Any:
        reply = await ask(key, *command)
        if command[0] == "MGET":
            looked[-1] += len(reply)
        return reply

    monkeypatch.setattr(core, "ask", spy)
    for query, expected in (
        (Query(type="rare", limit=100), wanted[::-1]),
        (Query(key="k7", limit=100), [f"t{number}" for number in range(7, total, 1000)][::-1]),
        (Query(limit=1000), [f"t{number}" for number in range(total)][::-1]),
    ):
        found: list[str] = []
        cursor: str | None = None
        while cursor is not None or not found:
            looked.append(0)
            page, cursor = await bench.store.queries.page(
                Query(type=query.type, key=query.key, limit=query.limit, cursor=cursor)
            )
            found += [record.id for record in page]
        assert found == expected
        assert max(looked) <= PAGE_MAX
        assert sum(looked) <= len(expected) + len(looked), "tasks of other types or keys are not looked at"
        looked[:] = [0]


async def test_indexes_leave_nothing_behind(bench: Bench) -> None:
    await bench.submit_many(10, key="a", queue="q")
    assert await bench.store.operators.index(True)
    names = list(shared_server().command("KEYS", f"{ROOT}index*"))
    assert len(names) == 5, "all, one type, one queue, one key, and the list of them"
    assert await bench.store.operators.index(False)
    assert shared_server().command("KEYS", f"{ROOT}index*") == []


async def test_a_list_does_not_end_early_when_its_index_is_gone(bench: Bench) -> None:
    await bench.store.operators.index(True)
    await bench.submit_many(10)
    _, cursor = await bench.store.queries.page(Query(type="job", limit=3))
    await bench.store.operators.index(False)
    with pytest.raises(StoreError, match=r"not indexed any more.*from the beginning"):
        await bench.store.queries.page(Query(type="job", limit=3, cursor=cursor))
    assert len(await bench.walk(type="job", limit=3)) == 10


async def test_the_index_of_a_key_goes_with_its_last_task(bench: Bench) -> None:
    """Also its name: there may be a new key with every task."""
    await bench.store.operators.index(True)
    for number in range(3):
        await bench.end(Succeeded(await bench.start(f"t{number}", key=f"k{number}")))
        await bench.delete(f"t{number}")
    assert shared_server().command("KEYS", f"{ROOT}index*") == []


async def test_indexes_whose_removal_was_cut_short_are_removed_later(bench: Bench) -> None:
    index, core = bench.store.operators.index, store_of(bench).core
    await index(True)
    await bench.submit("it", key="a")
    await core.run("index_switch", ROOT, "")
    assert await index(False) is True
    assert shared_server().command("KEYS", f"{ROOT}index*") == []
    assert await index(False) is False
    await index(True)
    await core.run("index_switch", ROOT, "")
    await bench.cancel("it")
    await bench.delete("it")
    await index(True)
    assert shared_server().command("KEYS", f"{ROOT}index*") == []


async def test_indexes_are_not_removed_when_another_process_keeps_them_again(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    await bench.store.operators.index(True)
    await bench.submit("it", key="a")
    core = store_of(bench).core
    run = core.run

    async def meanwhile(name: str, *args: Any, **options: Any) -> Any:
        if name == "index_drop":
            await run("index_switch", ROOT, "b")
        return await run(name, *args, **options)

    monkeypatch.setattr(core, "run", meanwhile)
    await asyncio.wait_for(bench.store.operators.index(False), 10)
    assert shared_server().command("ZRANGE", f"{ROOT}index:key:a", 0, -1) == [b"it"]


@pytest.mark.parametrize("begun_before", [False, True], ids=["first", "cut short before"])
async def test_lists_are_complete_while_an_index_is_built(bench: Bench, begun_before: bool) -> None:
    await bench.submit_many(250)
    if begun_before:
        await store_of(bench).core.run("index_switch", ROOT, "b")
    lists: list[asyncio.Task[list[str]]] = []
    assert await bench.store.operators.index(
        True, lambda count: lists.append(asyncio.ensure_future(bench.walk(type="job")))
    )
    assert [len(await found) for found in lists] == [250] * len(lists)
    assert len(lists) >= 3
    assert await bench.store.operators.index(True) is False


async def test_a_task_that_moves_while_an_index_is_built_is_indexed(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Leases are read before lanes."""
    await bench.submit("it")
    core = store_of(bench).core
    ask, claimed = core.ask, list[str]()

    async def meanwhile(key: str, *command: Any) -> Any:
        if command == ("SMEMBERS", f"{ROOT}lanes") and not claimed:
            claimed.extend(await bench.claimed_ids())
        return await ask(key, *command)

    monkeypatch.setattr(core, "ask", meanwhile)
    await bench.store.operators.index(True)
    assert claimed == ["it"]
    assert await bench.walk() == ["it"]


# --- a namespace that vanishes, or is migrated by a newer version


async def test_a_namespace_that_vanishes_beneath_is_noticed(bench: Bench, caplog: pytest.LogCaptureFixture) -> None:
    await bench.submit("lost")
    shared_server().command("FLUSHALL")
    store_of(bench).core._shown.clear()  # type: ignore[attr-defined]
    with caplog.at_level(logging.ERROR):
        await bench.submit("kept")
    assert "came back without its data" in caplog.text
    assert await bench.claimed_ids() == ["kept"]


async def test_of_two_partitions_that_vanish_both_are_paused_again(caplog: pytest.LogCaptureFixture) -> None:
    """The first is looked at while the second has no pauses either."""
    layout = Layout(NAMESPACE, 3)
    store = ClockedRedisStore(ManualClock(START), restricted_redis(), Policy(), partitions=3)
    await store.open()
    await store.operators.pause("queue", "default", "for now")
    server = shared_server()
    lost = (layout.parts[1], layout.parts[0])
    for part in lost:
        server.command("DEL", *server.command("KEYS", f"{part}*"))
    store.core._shown.clear()  # type: ignore[attr-defined]
    for part in lost:
        await store.core.run("pause", part, "queue", "other", "pause", "")
        assert server.command("HEXISTS", f"{part}pauses", "queue:default")
    assert caplog.text.count("came back without its data") == 2
    await store.close()


async def test_every_call_is_refused_once_a_newer_version_has_the_namespace(bench: Bench) -> None:
    lease = await bench.start("it")
    server = shared_server()
    before = server.command("GET", f"{ROOT}task:it")
    server.command("DEL", f"{ROOT}layout")
    server.command("HSET", f"{ROOT}meta", "version", "4")
    for call in (
        bench.submit("other"),
        bench.claim(),
        bench.end(Succeeded(lease)),
        bench.store.operators.pause("queue", "default"),
        bench.store.tasks.extend([lease], 1000),
    ):
        with pytest.raises(StoreError, match=r"newer version of Tickwork.*upgrade this process"):
            await call
    assert server.command("GET", f"{ROOT}task:it") == before
