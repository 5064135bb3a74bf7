"""Several processes on one file: who submits, who runs, who leads, and what happens when one is killed."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from datetime import UTC, timedelta
from pathlib import Path
from typing import Any

import pytest

import tickwork
from tests.integration.apps import Child, Make, eventually, facts, status_of, store_of
from tests.integration.child_node import make as make_node
from tests.support.hostile_http import listening
from tickwork import (
    ConfigError,
    FixedDelay,
    Reason,
    RemoteWorker,
    ResultTimeout,
    Scheduler,
    Status,
    TaskFailed,
    WorkerNotFound,
    WorkerStatus,
)
from tickwork.clock import to_datetime
from tickwork.host import host_id
from tickwork.model.members import Worker
from tickwork.store.contract import Claim
from tickwork.testing import ManualClock, wait_for

NODE = "tests.integration.child_node"


async def said(path: Path) -> int:
    await eventually(path.exists, timeout=20, what="the handler has started")
    return int(path.read_text())


async def leader_of(app: Scheduler) -> str | None:
    """The node that was elected last and has not resigned."""
    leader = None
    for event in await app.events.read(limit=10_000):
        if event.kind == "leader.elected":
            leader = event.id
        elif event.kind == "leader.resigned" and event.id == leader:
            leader = None
    return leader


# --- submit here, run there


async def test_submit_here_run_there(make: Make, file_url: str) -> None:
    client = make(file_url, scan_interval=30)
    before = await client.submit("echo", {"queued": "before anyone is up"})
    with Child(NODE, file_url, "scan_interval=30") as node:
        await node.expect("started")
        assert await before.result(10) == {"queued": "before anyone is up"}
        pid = await (await client.submit("pid")).result(10)
        assert pid == node.process.pid != os.getpid()
        started = time.monotonic()
        for number in range(10):
            assert await (await client.submit("echo", number)).result(10) == number
        assert time.monotonic() - started < 5, "wake-ups cross processes; neither side waits for its poll"
        delayed = await client.submit("echo", "late", delay=0.2)
        assert await delayed.result(5) == "late"
        with pytest.raises(TaskFailed, match="ValueError: as asked"):
            await (await client.submit("fail", None, max_retry=0)).result(10)
        (worker,) = await client.list_workers()
        assert worker.pid == pid
        assert "echo" in worker.task_types
        assert (await client.status()).running is False
        assert await node.stop() == 0
        assert [await node.line(), await node.line()] == ["stopping", "stopped"]
    assert await client.list_workers() == []


async def test_cancelling_across_processes(make: Make, file_url: str, tmp_path: Path) -> None:
    client = make(file_url)
    with Child(NODE, file_url, "renew_interval=9", "lease_ttl=30") as node:
        await node.expect("started")
        handle = await client.submit("hold", str(tmp_path / "held"))
        await said(tmp_path / "held")
        with pytest.raises(ResultTimeout, match=r"it is running\. It is running on") as caught:
            await handle.result(0.05)
        assert caught.value.info.worker_id is not None
        started = time.monotonic()
        await handle.cancel(force=True)
        await wait_for(client, handle.id, "cancelled")
        assert time.monotonic() - started < 7, "the heart is woken; it does not wait for its next beat"


async def test_two_processes_share_the_work(make: Make, file_url: str, tmp_path: Path) -> None:
    client = make(file_url)
    with Child(NODE, file_url, "concurrency=5") as one, Child(NODE, file_url, "concurrency=5") as two:
        await one.expect("started")
        await two.expect("started")
        paths = [tmp_path / f"held-{n}" for n in range(10)]
        held = await client.submit_many("hold", [str(path) for path in paths])
        pids = [await said(path) for path in paths]  # all at once: as many as both have slots
        assert sorted(pids) == sorted([one.process.pid, two.process.pid] * 5)
        for path in paths:
            path.unlink()
        assert [await handle.result(20) for handle in held] == pids
        handles = await client.submit_many("pid", [None] * 600)
        assert {await handle.result(20) for handle in handles} <= set(pids)
        for handle in handles[::100]:
            assert (await facts(client, handle.id)).count("task.claimed") == 1
        assert (await client.status()).tasks == {"success": 610}
        assert await client.audit() == []


async def test_namespaces_of_one_file_know_nothing_of_each_other(make: Make, file_url: str) -> None:
    one, two = make_node(file_url, namespace="one"), make_node(file_url, namespace="two")
    async with one:
        handle = await two.submit("pid", id="same")
        assert await (await one.submit("echo", 1, id="same")).result(10) == 1
        assert await status_of(two, handle.id) is Status.READY
        assert await two.list_workers() == []
    await two.shutdown()


# --- killed


async def test_a_restart_takes_back_the_work_of_a_killed_process(make: Make, file_url: str, tmp_path: Path) -> None:
    long: list[str] = ["lease_ttl=30", "renew_interval=10"]
    client = make(file_url)
    path = tmp_path / "held"
    handle = await client.submit("hold", str(path))
    with Child(NODE, file_url, *long) as first:
        name = (await first.expect("started")).split()[1]
        assert await said(path) == first.process.pid
        await first.kill()
    assert await status_of(client, handle.id) is Status.RUNNING
    path.unlink()
    started = time.monotonic()
    with Child(NODE, file_url, *long) as second:
        await second.expect("started")
        assert await said(path) == second.process.pid
        assert time.monotonic() - started < 10, "only the proof that its pid is gone explains this; the lease has 30 s"
        path.unlink()
        assert await handle.result(10) == second.process.pid
    info = await handle.info()
    assert (info.attempt, info.losses) == (1, 1)
    assert f"worker {name} was lost (its process is gone)" in (info.last_error or "")
    story = await facts(client, handle.id)
    assert story == ["task.submitted", "task.claimed", "task.lost", "task.claimed", "task.succeeded"]
    lost = [event.id for event in await client.events.read(limit=1000) if event.kind == "worker.lost"]
    assert lost == [name]
    (ghost,) = [worker for worker in await client.list_workers() if worker.id == name]
    assert ghost.status == "offline"


async def test_a_neighbour_takes_over_from_a_killed_process(make: Make, file_url: str, tmp_path: Path) -> None:
    app = make_node(file_url, lease_ttl=30, renew_interval=10, queues=["default"], concurrency=1)
    path = tmp_path / "held"
    with Child(NODE, file_url, "lease_ttl=30", "renew_interval=10") as node:
        await node.expect("started")
        handle = await app.submit("hold", str(path))
        assert await said(path) == node.process.pid
        async with app:
            await node.kill()
            await eventually(lambda: path.read_text() == str(os.getpid()), what="the handler has started again here")
            path.unlink()
            assert await handle.result(10) == os.getpid()
            assert (await handle.info()).losses == 1
            assert await app.audit() == []


async def test_a_live_neighbour_is_left_alone(make: Make, file_url: str, tmp_path: Path) -> None:
    """The proof must not hit a process that is there, however many others start."""
    client = make(file_url)
    path = tmp_path / "held"
    with Child(NODE, file_url) as node:
        await node.expect("started")
        handle = await client.submit("hold", str(path))
        await said(path)
        for _ in range(3):
            other = make_node(file_url)
            async with other:
                assert len(await other.list_workers()) == 2
        path.unlink()
        assert await handle.result(10) == node.process.pid
        info = await handle.info()
        assert (info.attempt, info.losses) == (1, 0)


async def test_a_task_that_kills_its_process_three_times_becomes_a_dead_letter(make: Make, file_url: str) -> None:
    client = make(file_url)
    handle = await client.submit("kill", None)
    for number in (1, 2, 3):
        with Child("tests.integration.child_suicide", file_url) as node:
            assert await asyncio.to_thread(node.process.wait, 20) == -signal.SIGKILL
        assert (await handle.info()).losses == number - 1
    async with make_node(file_url) as last:
        info = await wait_for(last, handle.id, "dead")
        assert (info.losses, info.attempt) == (3, 0)
        assert "not run again after 3 lost workers" in (info.last_error or "")
        assert [dead.id for dead in await last.dlq.list()] == [handle.id]
    await client.close()


# --- signals


async def test_a_signal_waits_for_what_runs(make: Make, file_url: str, tmp_path: Path) -> None:
    client = make(file_url)
    path = tmp_path / "held"
    with Child(NODE, file_url, "shutdown_timeout=20") as node:
        await node.expect("started")
        handle = await client.submit("hold", str(path))
        await said(path)
        node.process.send_signal(signal.SIGINT)
        await node.expect("stopping")
        later = await client.submit("pid")
        path.unlink()
        assert await asyncio.to_thread(node.process.wait, 15) == 0
        assert await handle.result(1) == node.process.pid
        assert await status_of(client, later.id) is Status.READY


@pytest.mark.parametrize("task", ["hold", "stubborn"])
async def test_a_second_signal_gives_it_back_at_once(make: Make, file_url: str, tmp_path: Path, task: str) -> None:
    client = make(file_url)
    path = tmp_path / "held"
    with Child(NODE, file_url, "shutdown_timeout=30") as node:
        await node.expect("started")
        handle = await client.submit(task, str(path))
        await said(path)
        started = time.monotonic()
        node.process.send_signal(signal.SIGTERM)
        node.process.send_signal(signal.SIGINT)
        assert await asyncio.to_thread(node.process.wait, 15) == 0
        assert time.monotonic() - started < 8, "not the thirty seconds of its grace"
    info = await handle.info()
    assert (info.status, info.attempt, info.losses) == (Status.READY, 0, 0)


STARTED_AND_SIGNALLED = """
import logging, os, signal, sys
from tickwork import Scheduler

class Signal(logging.Handler):
    def emit(self, record):
        if "Task scheduler started" in record.getMessage():
            os.kill(os.getpid(), getattr(signal, sys.argv[2]))
        print(record.getMessage(), flush=True)

logging.getLogger("tickwork").addHandler(Signal())
logging.getLogger("tickwork").setLevel("INFO")
app = Scheduler(sys.argv[1])
app.run()
"""


@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM"])
def test_a_signal_in_the_moment_of_starting_is_a_stop_like_any_other(name: str, file_url: str) -> None:
    command = [sys.executable, "-c", STARTED_AND_SIGNALLED, file_url, name]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert ran.returncode == 0, ran.stderr
    assert "Task scheduler stopping" in ran.stdout
    assert "Task scheduler stopped" in ran.stdout, "what it had claimed was given back"


async def test_a_node_that_waits_for_its_store_can_be_stopped() -> None:
    async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked.set()
        await reader.read()

    asked = asyncio.Event()
    async with listening(silent) as port:
        script = f"from tickwork import Scheduler; Scheduler('redis://127.0.0.1:{port}').run()"
        process = await asyncio.create_subprocess_exec(sys.executable, "-c", script)
        await asyncio.wait_for(asked.wait(), 30)
        process.send_signal(signal.SIGINT)
        assert await asyncio.wait_for(process.wait(), 10) == 0


# --- leadership


async def test_leadership_passes_on_at_shutdown(make: Make, file_url: str) -> None:
    app = make_node(file_url, leader_lease_ttl=30, leader_renew_interval=0.2)
    with Child(NODE, file_url, "leader_lease_ttl=30", "leader_renew_interval=0.2") as node:
        name = (await node.expect("started")).split()[1]
        await eventually(lambda: _leads(app, name))
        async with app:
            status = await app.status()
            assert (status.is_leader, status.leader_id) == (False, name)
            assert await node.stop() == 0
            started = time.monotonic()
            await eventually(lambda: app._node and app._node.candidate.leads)
            assert time.monotonic() - started < 5, "it resigned; nobody has to wait for the lease of 30 s"
            assert (await app.status()).is_leader
            assert await leader_of(app) == app.id


async def _leads(app: Scheduler, name: str) -> bool:
    return await leader_of(app) == name


async def test_leadership_passes_on_after_a_kill(make: Make, file_url: str) -> None:
    app = make_node(file_url)
    ran: list[str] = []

    @app.periodic("* * * * * *")
    async def tick() -> None:
        ran.append("tick")

    with Child(NODE, file_url) as node:
        name = (await node.expect("started")).split()[1]
        await eventually(lambda: _leads(app, name))
        async with app:
            await node.kill()
            await eventually(lambda: app._node and app._node.candidate.leads)
            seen = len(ran)
            await eventually(lambda: len(ran) > seen, what="the new leader fires schedules")
            terms: list[Any] = [e.detail for e in await app.events.read(limit=1000) if e.kind == "leader.elected"]
            assert terms == [f"term {number}" for number in range(1, max(len(terms), 2) + 1)]


async def test_one_leader_of_many(make: Make, file_url: str) -> None:
    nodes = [make_node(file_url) for _ in range(4)]
    for node in nodes:
        await node.start()
    await eventually(lambda: any(node._node and node._node.candidate.leads for node in nodes))
    while nodes:
        leading = [node for node in nodes if (await node.status()).is_leader]
        assert len(leading) <= 1
        if leading:
            nodes.remove(leading[0])
            await leading[0].shutdown()
        else:
            await asyncio.sleep(0.01)


# --- clients


async def test_a_client_may_come_and_go(make: Make, url: str) -> None:
    app = make(url)

    @app.task
    async def work() -> None: ...

    handle = await work.submit()
    await app.close()
    assert await status_of(app, handle.id) is Status.READY, "it opens the store again on use"
    await app.close()
    await app.close()
    async with app:
        await handle.result(10)


async def test_a_worker_registers_itself_and_leaves(make: Make, url: str) -> None:
    app = make(
        url, address="http://10.0.0.7", labels={"gpu": "a100"}, weight=3, concurrency=1, queues=("mail", "default")
    )
    entered, leave = asyncio.Event(), asyncio.Event()

    @app.task
    async def hold() -> None:
        entered.set()
        await leave.wait()

    async with app:
        held = await hold.submit()
        await asyncio.wait_for(entered.wait(), 30)
        worker = await app.get_worker(app.id)
        assert (worker.address, worker.labels, worker.weight, worker.capacity, worker.queues, worker.task_types) == (
            "http://10.0.0.7", {"gpu": "a100"}, 3, 1, ("mail", "default"), ("hold",),
        )  # fmt: skip
        assert (worker.version, worker.pid) == (tickwork.__version__, os.getpid())
        assert (worker.running, worker.status) == (1, WorkerStatus.BUSY), "counted now, not with the next heartbeat"
        assert [found.id for found in await app.list_workers(WorkerStatus.ONLINE)] == [app.id]
        leave.set()
        await held.result(30)
        assert (await app.get_worker(app.id)).status == WorkerStatus.IDLE
    assert await app.list_workers() == []


async def test_workers_of_other_programs(make: Make, url: str) -> None:
    app = make(url, allow_addresses=("http://10.0.0.1:8080",))
    await app.register_worker(
        RemoteWorker(id="remote-1", address="http://10.0.0.1:8080", task_types=("resize",), capacity=4)
    )
    worker = await app.get_worker("remote-1")
    assert (worker.address, worker.task_types, worker.capacity, worker.status) == (
        "http://10.0.0.1:8080", ("resize",), 4, "idle",
    )  # fmt: skip
    assert (await app.queue_stats()).worker_count == 1
    with pytest.raises(ConfigError, match="a worker's id must be 1 to 128"):
        await app.register_worker(RemoteWorker(id="a b"))
    with pytest.raises(ConfigError, match=r"worker 'w' cannot be registered: Expected `array`.*queues"):
        await app.register_worker(RemoteWorker(id="w", queues="default"))  # type: ignore[arg-type]
    await app.unregister_worker("remote-1")
    await app.unregister_worker("remote-1")
    assert await app.list_workers() == []
    with pytest.raises(WorkerNotFound, match=r"no worker 'remote-1' .*list_workers\(\)") as refused:
        await app.get_worker("remote-1")
    assert refused.value.worker_id == "remote-1"


async def test_times_of_a_worker_know_their_zone(make: Make, url: str, clock: ManualClock) -> None:
    app = make(url, clock=clock, worker_timeout=60)
    now = to_datetime(clock.now())
    await app.register_worker(RemoteWorker(id="remote-1"))
    worker = await app.get_worker("remote-1")
    assert (worker.started_at, worker.beat_at, worker.expires_at, worker.lost_at) == (
        now, now, now + timedelta(seconds=60), None,
    )  # fmt: skip
    assert worker.started_at.tzinfo is UTC


async def test_a_worker_is_offline_when_its_time_is_over_though_nobody_is_there_to_say_so(
    make: Make, url: str, clock: ManualClock
) -> None:
    app = make(url, clock=clock, scheduler_id="till")

    @app.task
    async def work() -> None: ...

    handle = await work.submit()
    members = (await store_of(app)).members
    await members.beat(Worker(id="till", node="n", task_types=("work",), version="1"))
    assert (await app.explain(handle.id)).reason == Reason.NEXT
    assert await app.list_workers("offline") == []
    clock.advance(31)
    assert (await app.explain(handle.id)).reason == Reason.NO_WORKER
    worker = await app.get_worker("till")
    assert (worker.status, worker.lost_at) == (WorkerStatus.OFFLINE, worker.expires_at)
    assert [found.id for found in await app.list_workers("offline")] == ["till"]
    assert await app.list_workers("online") == []


@pytest.mark.parametrize(
    ("others", "reason"),
    [
        ([Worker(id="w", node="n", task_types=("other",))], Reason.TYPE_UNKNOWN),
        ([Worker(id="w", node="n", task_types=("other",)), Worker(id="x", task_types=("work",))], Reason.TYPE_UNKNOWN),
        ([Worker(id="w", node="n", task_types=("work",), queues=("mail",))], Reason.QUEUE_UNSERVED),
    ],
)
async def test_only_workers_that_take_a_task_count_in_its_explanation(
    make: Make, url: str, others: list[Worker], reason: Reason
) -> None:
    """Whatever else is registered: one that drains, is lost, serves another queue or does not know the type."""
    app = make(url)

    @app.task
    async def work() -> None: ...

    handle = await work.submit()
    store = await store_of(app)
    for worker in (*others, Worker(id="lost", node="n", task_types=("work",))):
        await store.members.beat(worker)
    await store.tasks.reclaim(10, ("lost",))
    assert (await app.explain(handle.id)).reason == reason
    await store.members.beat(Worker(id="drained", node="n", task_types=("work",)))
    await store.members.order("drained", "capacity", "5")
    await store.members.order("drained", "drain", "")
    assert (await app.explain(handle.id)).reason == Reason.WORKERS_DRAINING
    await store.members.order("drained", "drain", None)
    assert (await app.explain(handle.id)).reason == Reason.NEXT


async def test_workers_by_their_status(make: Make, url: str) -> None:
    app = make(url, lease_ttl=60, renew_interval=20)
    app.registry.register("any", lambda: None)
    for _ in range(2):
        await app.submit("any")
    for worker_id, capacity in (("idle-1", 2), ("busy-1", 1)):
        await app.register_worker(RemoteWorker(id=worker_id, capacity=capacity))
        claim = Claim(worker_id, ("default",), frozenset({"any"}), 1, 60_000, worker_id)
        assert len((await (await store_of(app)).tasks.claim(claim)).grants) == 1

    async def ids(status: str | None) -> list[str]:
        return sorted(worker.id for worker in await app.list_workers(status))

    assert await ids(None) == await ids("online") == ["busy-1", "idle-1"]
    assert {worker.running for worker in await app.list_workers()} == {1}
    assert (await ids("idle"), await ids("busy"), await ids("offline")) == (["idle-1"], ["busy-1"], [])
    with pytest.raises(
        ConfigError, match="unknown status 'up' of a worker; known are online, idle, busy, draining, offline"
    ):
        await app.list_workers("up")
    for worker_id in ("idle-1", "busy-1"):
        await app.unregister_worker(worker_id)


async def test_the_record_tells_how_it_was_submitted(make: Make, url: str) -> None:
    app = make(url)

    @app.task(timeout=7, retry=FixedDelay(3))
    async def work(n: int) -> None: ...

    info = await (await app.submit("work", 1, dedup_key="k", dedup_ttl=60, serializer="msgpack")).info()
    assert (info.timeout, info.retry, info.dedup_key, info.dedup_ttl) == (7.0, FixedDelay(3), "k", 60.0)
    assert (info.serializer, info.executor) == ("msgpack", "local")
    plain = await (await work.submit(1)).info()
    assert (plain.dedup_key, plain.dedup_ttl, plain.serializer) == (None, None, "json")


async def test_the_status_of_a_scheduler(make: Make, url: str) -> None:
    app = make(url, namespace="shop", scheduler_id="me", worker_count=2)

    @app.task
    async def work() -> None: ...

    await work.options(delay=60).submit()
    idle = await app.status()
    assert (idle.scheduler_id, idle.namespace, idle.running, idle.is_leader) == ("me", "shop", False, False)
    assert (idle.worker_count, idle.tasks, idle.leader_id) == (0, {"pending": 1}, None)
    async with app:
        await eventually(lambda: app._node and app._node.candidate.leads)
        busy = await app.status()
        assert (busy.running, busy.is_leader, busy.leader_id, busy.worker_count) == (True, True, "me", 2)
        assert busy.queues.delayed_count == 1
        assert sorted(worker.id for worker in await app.list_workers()) == ["me-1", "me-2"]
        worker = await app.get_worker("me-1")
        assert (worker.node, worker.pid, worker.status, worker.capacity) == ("me", os.getpid(), "idle", 10)
        assert worker.host == host_id().partition("/")[0]


@pytest.fixture
def no_store_named(monkeypatch: pytest.MonkeyPatch) -> Scheduler:
    monkeypatch.delenv("TICKWORK_STORE", raising=False)
    return Scheduler()


async def test_a_submit_that_nobody_would_ever_run_is_refused(no_store_named: Scheduler) -> None:
    app = no_store_named

    @app.task
    async def greet(name: str = "you") -> str:
        return name

    advice = r"names no store.*TICKWORK_STORE.*start the scheduler before"
    with pytest.raises(ConfigError, match=advice):
        await greet.submit("Ada")
    with pytest.raises(ConfigError, match=advice):
        await app.submit_many("greet", ["Ada"])
    with pytest.raises(ConfigError, match=advice):
        await app.submit("greet", "Ada", cron="@daily")
    async with app:
        assert await (await greet.submit("Ada")).result(5) == "Ada"
    await greet.submit("Bob")  # its tasks wait for the next start


async def test_a_store_that_was_named_takes_tasks_before_the_start(
    no_store_named: Scheduler, monkeypatch: pytest.MonkeyPatch
) -> None:
    no_store_named.configure(store="memory://")
    monkeypatch.setenv("TICKWORK_STORE", "memory://")
    for app in (no_store_named, Scheduler(), Scheduler("memory://")):

        @app.task
        async def greet(name: str) -> str:
            return name

        await greet.submit("Ada")
