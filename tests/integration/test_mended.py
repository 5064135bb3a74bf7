"""Defects that were found once, each with the shortest way to see it again."""

from __future__ import annotations

import asyncio
import os
import threading
from pathlib import Path

import pytest

from tests.integration.apps import eventually
from tickwork import Retry, Scheduler, Status, TaskContext, duties, host
from tickwork.cron import Cron
from tickwork.duties import ticks_to_run
from tickwork.events import Bus
from tickwork.model import Misfire, Policy, Schedule, Spec, Worker
from tickwork.store.base import Claim
from tickwork.store.memory import MemoryStore
from tickwork.store.sqlite import SqliteStore

NOW = 1_700_000_000_000
SPEC = Spec(id="", type="job", nonce="")


def commits(store: SqliteStore) -> list[int]:
    """Counts the transactions of a store from now on."""
    count, session = [0], store._write._session
    commit = session.commit

    def counted() -> None:
        commit()
        count[0] += 1

    session.commit = counted  # type: ignore[method-assign]
    return count


async def test_idle_processes_on_one_file_do_not_wake_each_other(sqlite_url: str) -> None:
    apps = [Scheduler(sqlite_url) for _ in range(3)]
    for app in apps:
        app.task("job")(lambda: None)
        await app.start()
    store = apps[0]._store
    assert isinstance(store, SqliteStore)
    await asyncio.sleep(0.5)  # the start itself is lively
    count = commits(store)
    await asyncio.sleep(1.5)
    assert count[0] < 30, "about six calls a second are its own; each look at another's would add fifty"
    for app in apps:
        await app.shutdown(1)


async def test_a_claim_that_arrives_while_the_worker_stops_is_given_back(file_url: str) -> None:
    app = Scheduler(file_url)
    arrived, go_on = asyncio.Event(), asyncio.Event()

    @app.task
    async def job() -> None: ...

    await app.start()
    claim = app._store.claim

    async def slow_claim(want: Claim) -> object:
        found = await claim(want)
        if found.grants:
            arrived.set()
            await go_on.wait()
        return found

    app._store.claim = slow_claim  # type: ignore[method-assign, assignment]
    handle = await app.submit("job")
    await arrived.wait()
    stopping = asyncio.ensure_future(app.shutdown(5))
    await asyncio.sleep(0.05)
    go_on.set()
    await stopping
    info = await Scheduler(file_url).get_task(handle.id)
    assert (info.status, info.attempt, info.losses) == (Status.READY, 0, 0)


def test_a_process_that_cannot_be_read_is_not_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    parent = os.getppid()
    started = host.process_started(parent)
    monkeypatch.setattr(host, "process_started", lambda pid: "")
    monkeypatch.setattr(host, "_is_zombie", lambda pid: False)
    assert not host.is_gone(host.host_id(), parent, started)
    assert not host.is_gone(host.host_id(), os.getpid(), started)


async def test_all_tasks_of_a_gone_process_come_back(monkeypatch: pytest.MonkeyPatch) -> None:
    store = MemoryStore(Policy())
    await store.beat(Worker(id="dead", host="here", pid=1, pid_started="x"))
    await store.submit([Spec(id=f"t{n}", type="job", nonce="n") for n in range(25)])
    await store.claim(Claim("dead", ("default",), frozenset({"job"}), 25, 30_000, "n"))
    monkeypatch.setattr(duties, "is_gone", lambda host, pid, started: True)
    await duties.take_back(store, 10)
    assert (await store.stats()).statuses[Status.RUNNING] == 0


async def test_a_caller_who_gives_up_does_not_spoil_the_opening(tmp_path: Path) -> None:
    store = SqliteStore(str(tmp_path / "tick.db"))
    for _ in range(5):
        opening = asyncio.ensure_future(store.open())
        await asyncio.sleep(0)
        opening.cancel()
        await asyncio.gather(opening, return_exceptions=True)
    async with asyncio.timeout(10):
        await store.open()
        await asyncio.gather(*(store.submit([Spec(id=f"t{n}", type="job", nonce="n")]) for n in range(20)))
    assert (await store.stats()).statuses[Status.READY] == 20
    await store.close()


async def test_one_schedule_that_cannot_fire_holds_up_no_other() -> None:
    store = MemoryStore(Policy())
    bad = Schedule(id="bad", cron="* * * * * *", timezone="Nowhere/Land", task=SPEC, next_at=NOW - 10_000)
    good = Schedule(id="good", cron="* * * * * *", task=SPEC, next_at=store.now() - 1000)
    await store.put_schedule(bad)
    await store.put_schedule(good)
    await duties.fire_schedules(store, 10, Bus())
    fired = await store.get_schedule("good")
    assert fired is not None
    assert fired.last_task_id is not None


@pytest.mark.parametrize(("line", "hours_down"), [("* * * * * *", 0.5), ("* * * * *", 48)])
def test_misfire_all_runs_the_newest_ticks(line: str, hours_down: float) -> None:
    cron, now = Cron(line), NOW + 500
    first = cron.next_ms(now - round(hours_down * 3_600_000))
    assert first is not None
    schedule = Schedule(id="s", cron=line, task=SPEC, misfire=Misfire.ALL, misfire_cap=5)
    run, missed = ticks_to_run(schedule, cron, first, now)
    assert len(run) == 5
    assert cron.next_ms(run[-1]) is not None
    assert (cron.next_ms(run[-1]) or 0) > now, "the newest tick is among them"
    assert missed > 0


def test_the_newest_tick_is_found_where_ticks_come_in_bursts() -> None:
    cron = Cron("* * 3 * * *")  # every second from three to four
    ten_past_five = 1_700_025_000_000 // 86_400_000 * 86_400_000 + 5 * 3_600_000 + 600_000
    first = cron.next_ms(ten_past_five - 86_400_000)
    assert first is not None
    run, _ = ticks_to_run(Schedule(id="s", task=SPEC, misfire_grace=86_400_000), cron, first, ten_past_five)
    assert run == [ten_past_five - 600_000 - 3_600_000 - 1000]


async def test_two_who_create_one_schedule_make_it_once(file_url: str) -> None:
    app = Scheduler(file_url)
    made = await asyncio.gather(
        *(app.submit("job", n, cron="@daily", id="one") for n in range(5)), return_exceptions=True
    )
    assert sum(not isinstance(answer, BaseException) for answer in made) == 1
    await app.close()


async def test_a_start_that_fails_can_be_tried_again(file_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    app = Scheduler(file_url)

    async def fail(*_: object) -> None:
        raise RuntimeError("not today")

    with monkeypatch.context() as broken:
        broken.setattr(duties, "take_back", fail)
        with pytest.raises(RuntimeError, match="not today"):
            await app.start()
    assert [thread.name for thread in threading.enumerate() if thread.name == "tickwork-heart"] == []
    async with app:
        assert (await app.status()).running


def test_who_waits_in_sync_is_told_when_it_is_closed(file_url: str) -> None:
    app = Scheduler(file_url)
    handle, ended = app.sync.submit("nobody"), threading.Event()

    def wait() -> None:
        try:
            handle.result(timeout=60)
        except BaseException:
            ended.set()

    threading.Thread(target=wait, daemon=True).start()
    app.sync.close()
    assert ended.wait(10)


async def test_an_exception_that_cannot_be_looked_at_still_fails_its_task() -> None:
    app = Scheduler("memory://")

    class Odd(Retry):
        def __str__(self) -> str:
            raise RuntimeError("no")

    @app.task(max_retry=0, timeout=0)
    async def job() -> None:
        raise Odd(1)

    async with app:
        handle = await app.submit("job")
        await eventually(lambda: _is(app, handle.id, Status.DEAD))


async def _is(app: Scheduler, task_id: str, status: Status) -> bool:
    return (await app.get_task(task_id)).status is status


async def test_the_handlers_own_options_hold_for_those_who_do_not_know_it(file_url: str) -> None:
    client, app = Scheduler(file_url), Scheduler(file_url)

    @app.task(max_retry=0, timeout=0.2)
    async def slow(ctx: TaskContext) -> None:
        await asyncio.sleep(60)

    async with app:
        handle = await client.submit("slow")
        await eventually(lambda: _is(client, handle.id, Status.DEAD))
        info = await handle.info()
    assert (info.attempt, info.last_error) == (1, "timed out after 0.2 s")
    await client.close()
