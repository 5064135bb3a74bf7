"""What only the SQLite store promises: one file, several users of it, and clear words when it cannot be used."""

from __future__ import annotations

import asyncio
import itertools
import os
import random
import sqlite3
import subprocess
import sys
import textwrap
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from pathlib import Path
from typing import Any, TypeVar

import pytest

from tickwork.clock import ManualClock
from tickwork.errors import StoreError, StoreUnavailable
from tickwork.model.members import Worker
from tickwork.model.outcomes import Aborted, Failed, Succeeded
from tickwork.model.policy import Policy
from tickwork.model.tasks import Spec, Status
from tickwork.store.hints import CONTROL, EVENTS, WORK
from tickwork.store.sqlite import SqliteStore
from tickwork.store.sqlite.schema import VERSION
from tickwork.testing.contract.bench import START, Bench

R = TypeVar("R")
Opener = Callable[..., Awaitable[Bench]]
PATIENCE = 10.0  # seconds until a wake-up that does not come fails the test


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "tick.db"


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(START)


@pytest.fixture
async def opened(path: Path, clock: ManualClock) -> AsyncIterator[Opener]:
    """Open as many stores on the file as a test wants; all are closed after it."""
    stores: list[SqliteStore] = []

    async def open_one(namespace: str = "test", policy: Policy | None = None, **options: Any) -> Bench:
        store = SqliteStore(str(path), namespace, policy, clock, **options)
        await store.open()
        stores.append(store)
        return Bench(store, clock)

    yield open_one
    for store in stores:
        await store.close()


def sqlite_of(bench: Bench) -> SqliteStore:
    assert isinstance(bench.store, SqliteStore)
    return bench.store


def elsewhere(work: Coroutine[Any, Any, R]) -> asyncio.Future[R]:
    """Run it in a loop and thread of its own, which nobody has to wait for when it hangs."""
    loop = asyncio.get_running_loop()
    answer: asyncio.Future[R] = loop.create_future()

    def run() -> None:
        try:
            value = asyncio.run(work)
        except Exception as error:
            loop.call_soon_threadsafe(answer.set_exception, error)
        else:
            loop.call_soon_threadsafe(answer.set_result, value)

    threading.Thread(target=run, daemon=True).start()
    return answer


OTHERS: set[threading.Thread] = set()


@pytest.fixture(autouse=True)
def others() -> None:
    """Threads of stores that other tests of this process hold open."""
    OTHERS.clear()
    OTHERS.update(threading.enumerate())


def assert_no_thread_is_left() -> None:
    for thread in {*threading.enumerate()} - OTHERS:
        if "sqlite" in thread.name:
            thread.join(PATIENCE)  # it may be on its way out
            assert not thread.is_alive()


async def pragma(bench: Bench, text: str) -> Any:
    """Ask the writer's own connection."""
    store = sqlite_of(bench)
    return await store.core.write.call(lambda: store.core.writer.one(f"PRAGMA {text}")[0])


# --- several stores on one file


async def test_two_stores_on_one_file_see_each_others_work(opened: Opener) -> None:
    here, there = await opened(), await opened()
    await here.submit("it", payload=b"1", tags={"a": "b"})
    (grant,) = await there.claim(worker="w2")
    assert (grant.spec.id, grant.spec.payload, grant.spec.tags) == ("it", b"1", {"a": "b"})
    assert (await here.record("it")).worker_id == "w2"
    assert await here.end(Succeeded(grant.lease, b"2")) == "done"
    assert (await there.record("it")).result == b"2"
    assert await there.facts("it") == ["task.submitted", "task.claimed", "task.succeeded"]


async def test_two_stores_on_one_file_share_members_schedules_and_leader(opened: Opener) -> None:
    here, there = await opened(), await opened()
    leader = await here.store.members.campaign("n1", 10_000)
    assert await there.store.members.campaign("n2", 10_000) == leader
    await here.store.members.beat(Worker(id="w1"))
    assert [worker.id for worker in await there.store.members.workers()] == ["w1"]
    await here.store.operators.pause("queue", "default")
    await there.submit("it")
    assert await there.claimed_ids() == []


async def test_two_stores_never_grant_the_same_task(opened: Opener) -> None:
    benches = [await opened() for _ in range(3)]
    await benches[0].submit_many(60)

    async def drain(bench: Bench, worker: str) -> list[str]:
        taken: list[str] = []
        while batch := await bench.claimed_ids(4, worker=worker):
            taken += batch
        return taken

    taken = await asyncio.gather(*(drain(bench, f"w{n}") for n, bench in enumerate(benches)))
    assert sorted(itertools.chain(*taken)) == sorted(f"t{n}" for n in range(60))


@pytest.mark.parametrize("topic", [WORK, EVENTS, CONTROL, "it"])
async def test_stores_on_one_file_wake_each_other(opened: Opener, topic: str) -> None:
    here, there = await opened(), await opened()
    lease = await here.start("it")
    with there.store.hint(topic) as hint:
        while await hint.wait(0.1):  # what was committed before may still be noticed
            pass
        await here.cancel("it", True)
        await here.end(Succeeded(lease))
        await here.submit("new")
        assert await hint.wait(PATIENCE) is True


async def test_a_rolled_back_submit_does_not_haunt_another_process(opened: Opener) -> None:
    """The number a failed submit had is given to the next one, whoever sends it; no cached spec may survive."""
    here, there = await opened(), await opened()
    with pytest.raises((StoreError, OverflowError)):
        await here.store.tasks.submit([here.spec("ghost"), here.spec("bad", delay=2**70)])
    await there.submit("real", payload=b"real")
    (grant,) = await here.claim()
    assert (grant.spec.id, grant.spec.payload) == ("real", b"real")


async def test_a_rolled_back_call_of_a_group_does_not_haunt_another_process(opened: Opener) -> None:
    here, there = await opened(), await opened()
    results = await asyncio.gather(
        here.store.queries.stats(),
        here.store.tasks.submit([here.spec("ghost"), here.spec("bad", delay=2**70)]),
        here.store.members.beat(Worker(id="w1")),
        return_exceptions=True,
    )
    assert isinstance(results[1], Exception)
    await there.submit("real")
    assert await here.claimed_ids() == ["real"]


async def test_what_one_process_takes_back_another_cannot_finish(opened: Opener) -> None:
    here, there = await opened(), await opened()
    lease = await here.start("it")
    assert (await there.store.tasks.reclaim(10, gone=("w1",))).ids == ["it"]
    assert await here.store.tasks.extend([lease], 30_000) == ["lost"]
    assert await here.store.tasks.note(lease, 0.5, "", ["line"]) is False
    (grant,) = await there.claim(worker="w2")
    assert await here.end(Succeeded(lease)) == "lost"
    assert await here.end(Succeeded(grant.lease)) == "done"
    assert await there.end(Succeeded(grant.lease)) == "already"


async def test_a_cancel_by_one_process_reaches_the_holder_in_another(opened: Opener) -> None:
    here, there = await opened(), await opened()
    lease = await here.start("it")
    assert await here.store.tasks.extend([lease], 30_000) == ["held"]
    await there.cancel("it", True, "enough")
    assert await here.store.tasks.extend([lease], 30_000) == ["cancel"]
    await here.end(Failed(lease, "interrupted", 1000))
    assert await there.status("it") is Status.CANCELLED


async def test_what_one_process_notes_another_keeps(opened: Opener) -> None:
    here, there = await opened(), await opened()
    lease = await here.start("it")
    await here.store.tasks.note(lease, 0.1, "here", ["one"])
    await there.store.tasks.note(lease, 0.2, "there", ["two"])
    await here.store.tasks.note(lease, None, "", ["three"])
    record = await here.record("it")
    assert (record.progress, record.progress_note) == (0.2, "there")
    assert await here.lines("it") == ["one", "two", "three"]


@pytest.mark.parametrize("alone", [True, False], ids=["alone", "in a group"])
async def test_a_finish_that_was_rolled_back_can_be_sent_again(opened: Opener, alone: bool) -> None:
    """Nothing that the failed call had changed in memory may be taken for what is in the file."""
    bench = await opened()
    await bench.submit_many(3)
    a, b, c = (grant.lease for grant in await bench.claim(3))
    bad = bench.store.tasks.finish([Succeeded(a, b"1"), Failed(b, "boom", 2**70), Aborted(c, "broken")])
    companion = asyncio.sleep(0) if alone else bench.store.members.beat(Worker(id="w1"))
    results = await asyncio.gather(bad, companion, return_exceptions=True)
    assert isinstance(results[0], Exception)
    assert {(await bench.record(f"t{n}")).status for n in range(3)} == {Status.RUNNING}
    assert await bench.store.tasks.extend([a, b, c], 30_000) == ["held"] * 3
    done = await bench.store.tasks.finish([Succeeded(a, b"1"), Failed(b, "boom", 2), Aborted(c, "broken")])
    assert [verdict.kind for verdict in done.verdicts] == ["done"] * 3
    assert (await bench.record("t1")).last_error == "boom"


async def test_several_processes_bound_the_dead_letters_together(opened: Opener) -> None:
    """Each knows how many there are without counting; what others do meanwhile must not mislead it."""
    limit, chance = 5, random.Random(7)
    benches = [await opened(policy=Policy(dlq_max=limit)) for _ in range(3)]
    for bench in benches:
        bench._numbers = benches[0]._numbers
    dead: list[str] = []
    dropped = 0
    for number in range(200):
        bench = chance.choice(benches)
        match chance.choice(["die", "die", "die", "retry", "delete", "fail"]):
            case "die":
                lease = await bench.start(f"t{number}")
                await bench.end(Aborted(lease, "boom"))
                dead.append(lease.id)
            case "retry" if dead:
                task_id = dead.pop(chance.randrange(len(dead)))
                await bench.retry(task_id)
                (grant,) = await bench.claim()
                await bench.end(Succeeded(grant.lease))
            case "delete" if dead:
                await bench.delete(dead.pop(chance.randrange(len(dead))))
            case "fail":  # a call that is rolled back
                lease = await bench.start(f"t{number}")
                other = await bench.start(f"u{number}")
                with pytest.raises(StoreError):
                    await bench.store.tasks.finish([Aborted(lease, "boom"), Failed(other, "boom", 2**70)])
                await bench.store.tasks.finish([Succeeded(lease), Succeeded(other)])
        dropped += max(len(dead) - limit, 0)
        dead = dead[-limit:]
        assert await bench.walk(status=Status.DEAD) == dead[::-1]
        assert (await bench.store.queries.stats()).dropped == dropped


async def test_another_process_shares_the_file(opened: Opener, path: Path) -> None:
    bench = await opened()
    script = """
        import asyncio, sys
        from tickwork.model.tasks import Spec
        from tickwork.store.sqlite import SqliteStore

        async def main():
            store = SqliteStore(sys.argv[1], "test")
            await store.open()
            await store.tasks.submit([Spec(id="from afar", type="job", nonce="n")])
            await store.close()

        asyncio.run(main())
    """
    with bench.store.hint(WORK) as hint:
        command = [sys.executable, "-c", textwrap.dedent(script), str(path)]
        await asyncio.to_thread(subprocess.run, command, check=True, timeout=60)
        assert await hint.wait(PATIENCE) is True
    assert await bench.claimed_ids() == ["from afar"]


@pytest.mark.parametrize("other", ["other", "Test", "test.test", "test:1", "test-1", "sqlite", "tickwork", "1"])
async def test_namespaces_on_one_file_do_not_see_each_other(opened: Opener, other: str) -> None:
    mine, yours = await opened("test"), await opened(other)
    await mine.submit("it", dedup_key="k", dedup_ttl=60_000)
    await mine.store.operators.pause("queue", "default")
    await mine.store.members.beat(Worker(id="w1"))
    await mine.store.members.campaign("n1", 10_000)
    assert await yours.walk() == []
    assert (await yours.submit("it", dedup_key="k", dedup_ttl=60_000)).verdict == "created"
    assert await yours.claimed_ids() == ["it"]
    assert await yours.store.members.workers() == []
    assert (await yours.store.members.campaign("n2", 10_000)).id == "n2"
    assert await yours.facts() == ["task.submitted", "task.claimed", "leader.elected"]
    assert await mine.status("it") is Status.READY


async def test_a_hint_of_another_namespace_is_only_a_hint(opened: Opener) -> None:
    mine, yours = await opened("mine"), await opened("yours")
    with mine.store.hint(WORK) as hint:
        await yours.submit("it")
        await hint.wait(0.1)  # may be raised: the file has changed
        assert await mine.claimed_ids() == []


# --- what survives


async def test_everything_survives_a_restart(opened: Opener, clock: ManualClock) -> None:
    first = await opened()
    lease = await first.start("running")
    await first.submit("ready", payload=b"x", dedup_key="k", dedup_ttl=60_000)
    await first.submit("pending", delay=60_000)
    await first.submit("blocked", depends_on=("pending",))
    await first.store.operators.pause("type", "other")
    before = [await first.record(name) for name in ("running", "ready", "pending", "blocked")]
    events = await first.events()
    await first.store.close()
    second = await opened()
    assert [await second.record(name) for name in ("running", "ready", "pending", "blocked")] == before
    assert await second.events() == events
    assert (await second.submit("dup", dedup_key="k")).verdict == "duplicate"
    assert len(await second.store.queries.paused()) == 1
    assert await second.end(Succeeded(lease)) == "done"


async def test_a_file_that_is_put_back_from_a_copy_repeats_no_fence(
    opened: Opener, path: Path, clock: ManualClock
) -> None:
    async def fences(count: int) -> list[int]:
        store = sqlite_of(await opened())
        found = []
        for _ in range(count):
            found.append(await store.locks.acquire("it", "a", 1000))
            await store.locks.release("it", "a")
        await store.close()
        assert None not in found
        return [fence for fence in found if fence is not None]

    before = await fences(2)
    copy = path.read_bytes()
    lost = await fences(5)
    path.write_bytes(copy)
    clock.advance(1)
    after = await fences(2)
    assert [*before, *lost, *after] == sorted({*before, *lost, *after})


async def test_a_file_that_is_put_back_from_a_copy_repeats_no_number_of_a_fact(
    opened: Opener, path: Path, clock: ManualClock
) -> None:
    async def told(*names: str) -> list[int]:
        bench = await opened()
        before = await bench.store.log.last()
        for name in names:
            await bench.submit(name)
        events, missed = await bench.store.log.read(before, 100)
        assert ([event.id for event in events], missed) == ([*names], 0)
        await bench.store.close()
        return [event.seq for event in events]

    before = await told("a", "b")
    copy = path.read_bytes()
    lost = await told("c", "d", "e")
    clock.advance(60)
    lost += await told("f")
    path.write_bytes(copy)
    clock.advance(1)
    after = await told("g", "h")
    assert [*before, *lost, *after] == sorted({*before, *lost, *after})
    bench = await opened()
    events, missed = await bench.store.log.read(lost[-1], 100)
    assert ([event.id for event in events], missed) == (["g", "h"], 0)
    assert [event.id for event in await bench.events()] == ["a", "b", "g", "h"]


async def test_a_log_that_has_left_numbers_out_is_bounded_all_the_same(opened: Opener, clock: ManualClock) -> None:
    """What was told before the file was opened is kept as long as there is room."""
    policy = Policy(events_max=10)
    for round_ in range(40):
        bench = await opened(policy=policy)
        await bench.submit(f"r{round_}")
        await bench.store.close()
        clock.advance(1)
    bench = await opened(policy=policy)
    for number in range(4):
        await bench.submit(f"n{number}")
    kept = [event.id for event in await bench.events()]
    assert kept[-10:] == [*(f"r{round_}" for round_ in range(34, 40)), *(f"n{number}" for number in range(4))]
    assert len(kept) <= 20
    await bench.submit_many(10)
    events, missed = await bench.store.log.read(0, 100)
    assert ([event.id for event in events], missed) == ([f"t{number}" for number in range(10)], 4)


async def test_a_restart_after_a_long_time_gives_leases_their_grace(opened: Opener, clock: ManualClock) -> None:
    first = await opened()
    await first.start("it")
    await first.store.close()
    clock.advance(3600)
    second = await opened()
    assert (await second.store.tasks.reclaim(10)).ids == []
    await second.pass_time(30)
    assert (await second.store.tasks.reclaim(10)).ids == ["it"]


async def test_the_same_object_may_be_opened_again(opened: Opener) -> None:
    bench = await opened()
    await bench.submit("it")
    for _ in range(2):
        await bench.store.close()
        await bench.store.close()
        await bench.store.open()
        await bench.store.open()
        assert await bench.status("it") is Status.READY


async def test_open_from_several_loops_at_once(path: Path) -> None:
    store = SqliteStore(str(path))
    await asyncio.gather(*(elsewhere(store.open()) for _ in range(4)), store.open())
    assert await store.queries.audit() == []
    await store.close()
    assert_no_thread_is_left()


# --- files that cannot be used


async def refused(path: Path | str) -> str:
    """The words of the refusal; nothing may be left behind by it."""
    store = SqliteStore(str(path))
    with pytest.raises(StoreError) as caught:
        await store.open()
    assert not isinstance(caught.value, StoreUnavailable), "sending it again would not help"
    with pytest.raises(StoreError):
        await store.queries.stats()
    await store.close()
    assert_no_thread_is_left()
    return str(caught.value)


@pytest.mark.parametrize("version", [1, VERSION + 1], ids=["older", "newer"])
async def test_another_schema_version_is_refused_by_name(opened: Opener, path: Path, version: int) -> None:
    await (await opened("scheduler")).store.close()
    with sqlite3.connect(path) as db:
        db.execute("UPDATE tickwork_schema SET version = ?", (version,))
    db.close()
    text = await refused(path)
    for word in (str(path), f"version {version}", f"version {VERSION}", "scheduler"):
        assert word in text


async def test_the_version_of_another_namespace_does_not_matter(opened: Opener, path: Path) -> None:
    await (await opened("old")).store.close()
    with sqlite3.connect(path) as db:
        db.execute("UPDATE tickwork_schema SET version = 99")
    db.close()
    assert (await (await opened("new")).submit("it")).verdict == "created"


async def test_a_refused_open_holds_no_file(opened: Opener, path: Path) -> None:
    await (await opened("scheduler")).store.close()
    with sqlite3.connect(path) as db:
        db.execute("UPDATE tickwork_schema SET version = 99")
    db.close()
    store = SqliteStore(str(path))
    with pytest.raises(StoreError):
        await store.open()
    held = [os.readlink(f"/proc/self/fd/{fd}") for fd in os.listdir("/proc/self/fd") if _is_link(fd)]
    assert [name for name in held if name.startswith(str(path))] == []


def _is_link(fd: str) -> bool:
    return os.path.islink(f"/proc/self/fd/{fd}")


async def test_a_missing_folder_is_named(tmp_path: Path) -> None:
    text = await refused(tmp_path / "nowhere" / "tick.db")
    assert str(tmp_path / "nowhere") in text
    assert "does not exist" in text


async def test_a_folder_is_not_a_file(tmp_path: Path) -> None:
    text = await refused(tmp_path)
    assert str(tmp_path) in text
    assert "folder" in text


async def test_a_file_that_is_no_database_is_left_alone(path: Path) -> None:
    path.write_bytes(b"Dear diary, " * 1000)
    text = await refused(path)
    assert str(path) in text
    assert "not a database" in text
    assert path.read_bytes() == b"Dear diary, " * 1000


async def test_a_read_only_file_is_refused_by_name(opened: Opener, path: Path) -> None:
    """Permissions do not hold for every user, so the file's own header says it: a write version that nobody knows."""
    await (await opened("scheduler")).store.close()
    with sqlite3.connect(path) as db:
        db.execute("PRAGMA journal_mode = DELETE")
    db.close()
    header = bytearray(path.read_bytes())
    header[18] = 9
    path.write_bytes(header)
    assert str(path) in await refused(path)


async def test_a_path_with_odd_characters_works(tmp_path: Path) -> None:
    store = SqliteStore(str(tmp_path / "ein ?#%41 ümlaut&mode=ro.db"))
    await store.open()
    await store.tasks.submit([Spec(id="it", type="job", nonce="n")])
    await store.close()
    assert (tmp_path / "ein ?#%41 ümlaut&mode=ro.db").exists()


# --- trouble on the way


async def test_a_full_disk_is_told_and_loses_nothing(opened: Opener) -> None:
    bench = await opened()
    await bench.submit("before")
    pages = await pragma(bench, "page_count")
    await pragma(bench, f"max_page_count = {pages}")
    with pytest.raises(StoreUnavailable, match="nothing was changed"):
        await bench.submit("too much", payload=b"x" * 500_000)
    assert await bench.status("too much") is None
    assert await bench.store.queries.audit() == []
    await pragma(bench, "max_page_count = 1000000")
    assert (await bench.submit("too much", payload=b"x" * 500_000)).verdict == "created"
    assert await bench.claimed_ids() == ["before", "too much"]


async def test_a_full_disk_in_a_group_fails_only_with_what_was_not_written(opened: Opener) -> None:
    """Whatever was answered as done is there, and whatever was refused is not."""
    bench = await opened()
    pages = await pragma(bench, "page_count")
    await pragma(bench, f"max_page_count = {pages + 2}")
    specs = [bench.spec(f"t{n}", payload=b"x" * (200_000 if n % 5 == 2 else 10)) for n in range(10)]
    results = await asyncio.gather(*(bench.store.tasks.submit([spec]) for spec in specs), return_exceptions=True)
    assert any(isinstance(result, StoreUnavailable) for result in results)
    await pragma(bench, "max_page_count = 1000000")
    for spec, result in zip(specs, results, strict=True):
        assert (await bench.status(spec.id) is None) is isinstance(result, StoreUnavailable)
    assert await bench.store.queries.audit() == []


async def test_a_locked_file_is_unavailable_not_broken(
    opened: Opener, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench = await opened()
    await pragma(bench, "busy_timeout = 1")
    blocker = sqlite3.connect(path, isolation_level=None)
    blocker.execute("BEGIN IMMEDIATE")
    try:
        with pytest.raises(StoreUnavailable, match="locked"):
            await bench.submit("it")
        assert await bench.status("it") is None, "reading goes on"
    finally:
        blocker.execute("ROLLBACK")
        blocker.close()
    assert (await bench.submit("it")).verdict == "created"


async def test_one_failing_call_in_a_group_does_not_harm_the_others(opened: Opener) -> None:
    bench = await opened()
    gate = threading.Event()
    store = sqlite_of(bench)
    first = asyncio.ensure_future(
        store.core.write.call(gate.wait)
    )  # holds the writer, so that the rest forms one group
    await asyncio.sleep(0)
    good = [asyncio.ensure_future(bench.submit(f"good{n}")) for n in range(3)]
    bad = asyncio.ensure_future(bench.store.tasks.submit([bench.spec("half"), bench.spec("bad", delay=2**70)]))
    worse = asyncio.ensure_future(
        store.core.write.call(lambda: store.core.writer.run("INSERT INTO nowhere VALUES (1)"))
    )
    good += [asyncio.ensure_future(bench.submit(f"good{n}")) for n in range(3, 6)]
    await asyncio.sleep(0)
    gate.set()
    await first
    assert [(await task).verdict for task in good] == ["created"] * 6
    with pytest.raises(StoreError):
        await bad
    with pytest.raises(StoreError, match="nowhere"):
        await worse
    assert await bench.status("half") is None
    assert await bench.facts("half") == []
    assert await bench.claimed_ids() == [f"good{n}" for n in range(6)]
    assert await bench.store.queries.audit() == []


async def test_a_failing_call_in_a_group_takes_its_counters_back(opened: Opener) -> None:
    bench = await opened(policy=Policy(dlq_max=0))
    store = sqlite_of(bench)
    await bench.submit_many(2)
    a, b = (grant.lease for grant in await bench.claim(2))
    gate = threading.Event()
    first = asyncio.ensure_future(store.core.write.call(gate.wait))
    await asyncio.sleep(0)
    before = asyncio.ensure_future(bench.store.members.beat(Worker(id="w1")))
    bad = asyncio.ensure_future(bench.store.tasks.finish([Aborted(a, "boom"), Failed(b, "boom", 2**70)]))
    after = asyncio.ensure_future(bench.submit("new"))
    await asyncio.sleep(0)
    gate.set()
    await asyncio.gather(first, before, after)
    with pytest.raises(Exception, match="int too large"):
        await bad
    assert (await bench.store.queries.stats()).dropped == 0, "the dropped dead letter came back with the rest"
    assert [await bench.status(lease.id) for lease in (a, b)] == [Status.RUNNING] * 2
    assert await bench.end(Aborted(a, "boom")) == "done"
    assert (await bench.store.queries.stats()).dropped == 1


async def test_a_group_is_one_commit(opened: Opener) -> None:
    bench, witness = await opened(), await opened()
    store, other = sqlite_of(bench), sqlite_of(witness)
    gate = threading.Event()
    first = asyncio.ensure_future(store.core.write.call(gate.wait))
    await asyncio.sleep(0)
    calls = [asyncio.ensure_future(bench.submit(f"t{n}")) for n in range(20)]
    await asyncio.sleep(0)
    before = await other.core.read.call(lambda: other.core.reader.one("PRAGMA data_version")[0])
    gate.set()
    await asyncio.gather(first, *calls)
    after = await other.core.read.call(lambda: other.core.reader.one("PRAGMA data_version")[0])
    assert after - before <= 2


async def test_a_caller_that_gives_up_does_not_disturb_the_others(opened: Opener) -> None:
    bench = await opened()
    gate = threading.Event()
    first = asyncio.ensure_future(sqlite_of(bench).core.write.call(gate.wait))
    await asyncio.sleep(0)
    impatient = asyncio.ensure_future(bench.submit("impatient"))
    patient = asyncio.ensure_future(bench.submit("patient"))
    await asyncio.sleep(0)
    impatient.cancel()
    await asyncio.sleep(0)
    gate.set()
    await first
    assert (await patient).verdict == "created"


async def test_several_loops_in_several_threads_use_one_store(opened: Opener) -> None:
    bench = await opened()
    sibling = bench.store.sibling()
    await sibling.open()

    async def work(number: int) -> list[str]:
        mine = Bench(sibling, bench.clock)
        mine._numbers = iter(range(number * 1000, number * 1000 + 999))  # type: ignore[assignment]
        ran: list[str] = []
        for round_ in range(10):
            await mine.submit(f"{number}-{round_}")
            for grant in await mine.claim(3, worker=f"w{number}"):
                assert await mine.end(Succeeded(grant.lease)) == "done"
                ran.append(grant.spec.id)
        return ran

    runs = await asyncio.gather(*(elsewhere(work(n)) for n in range(4)), work(4))
    ran = list(itertools.chain(*runs))
    assert len(ran) == len(set(ran)) == 50
    assert (await bench.store.queries.stats()).statuses[Status.SUCCESS] == 50


async def test_a_hint_wakes_a_loop_of_another_thread(opened: Opener) -> None:
    bench = await opened()
    waiting = threading.Event()

    async def wait() -> bool:
        with bench.store.hint(WORK) as hint:
            waiting.set()
            return await hint.wait(PATIENCE)

    there = elsewhere(wait())
    await asyncio.to_thread(waiting.wait, PATIENCE)
    await bench.submit("it")
    assert await there is True


# --- closed


async def test_calls_after_close_are_refused(opened: Opener, path: Path) -> None:
    bench = await opened()
    lease = await bench.start("it")
    await bench.store.close()
    calls: list[Callable[[], Any]] = [
        lambda: bench.submit("new"),
        lambda: bench.claim(),
        lambda: bench.end(Aborted(lease, "boom")),
        lambda: bench.store.queries.get("it"),
        lambda: bench.store.queries.stats(),
        lambda: bench.store.members.beat(Worker(id="w1")),
    ]
    for call in calls:
        with pytest.raises(StoreError, match="closed") as caught:
            await call()
        assert str(path) in str(caught.value)


async def test_calls_before_open_are_refused(path: Path) -> None:
    with pytest.raises(StoreError):
        await SqliteStore(str(path)).queries.stats()


async def test_what_was_sent_before_close_is_answered(opened: Opener) -> None:
    bench = await opened()
    calls = [asyncio.ensure_future(bench.submit(f"t{n}")) for n in range(50)]
    await asyncio.sleep(0)
    await bench.store.close()
    assert {(await call).verdict for call in calls} == {"created"}


async def test_no_call_is_left_hanging_by_a_close_in_another_thread(opened: Opener) -> None:
    bench = await opened()
    closing = threading.Event()

    async def hammer(number: int) -> int:
        done = 0
        try:
            while True:
                await bench.store.tasks.submit([Spec(id=f"{number}-{done}", type="job", nonce="n")])
                done += 1
                if done == 20:
                    closing.set()
        except StoreError:
            return done

    busy = [elsewhere(hammer(n)) for n in range(3)]
    await asyncio.to_thread(closing.wait, PATIENCE)
    await bench.store.close()
    counts = await asyncio.wait_for(asyncio.gather(*busy), 20)
    await bench.store.open()
    assert (await bench.store.queries.stats()).statuses[Status.READY] == sum(counts)


async def test_a_call_that_was_let_in_before_a_close_is_answered(
    opened: Opener, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Even when another thread closes the store between the look whether it is open and the hand-over."""
    bench = await opened()
    writer = sqlite_of(bench).core.write
    handing_over, go_on = threading.Event(), threading.Event()

    put = writer._inbox.put

    def put_slowly(call: Any) -> None:
        if call is not None:
            handing_over.set()
            go_on.wait(PATIENCE)
        put(call)

    monkeypatch.setattr(writer._inbox, "put", put_slowly)
    there = elsewhere(bench.submit("it"))
    await asyncio.to_thread(handing_over.wait, PATIENCE)
    threading.Timer(0.2, go_on.set).start()
    await bench.store.close()
    assert (await asyncio.wait_for(there, PATIENCE)).verdict == "created"


async def test_closing_leaves_one_file(opened: Opener, path: Path) -> None:
    bench = await opened()
    await bench.submit("it")
    await bench.store.close()
    assert [name.name for name in path.parent.iterdir()] == ["tick.db"]


# --- durability


@pytest.mark.parametrize(("durability", "synchronous"), [("disk", 2), ("memory", 1)])
async def test_durability_is_the_writers_synchronous_setting(opened: Opener, durability: str, synchronous: int) -> None:
    bench = await opened(durability=durability)
    assert await pragma(bench, "synchronous") == synchronous
    assert await pragma(bench, "journal_mode") == "wal"


async def test_the_reader_cannot_write(opened: Opener) -> None:
    store = sqlite_of(await opened())
    with pytest.raises(StoreError):
        await store.core.read.call(lambda: store.core.reader.run("DELETE FROM @tasks"))
