"""`/health`, `/ready` and `/live` of a node, `app.health()` and `tickwork health`."""

from __future__ import annotations

import asyncio
import json
import logging
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from click.testing import CliRunner, Result

from tests.integration.apps import FAST, Gate, store_of
from tests.support.pages import Page, fetch, url_of
from tests.support.redis import RedisServer
from tests.support.waiting import wait_until
from tickwork import Check, Health, Scheduler, Service
from tickwork.cli import commands
from tickwork.client import health as client_health
from tickwork.config import Config
from tickwork.model.gates import MARK
from tickwork.model.members import Worker
from tickwork.model.tasks import Status
from tickwork.monitor.health import HealthPages
from tickwork.observe.loggers import Log
from tickwork.store.contract import Ask, Left, Stats
from tickwork.store.contract import Gate as StoreGate

PAGES = {"health": True, "health_port": 0}


def app_on(url: str, **options: Any) -> Scheduler:
    return Scheduler(url, **{**FAST, **PAGES, **options})


@asynccontextmanager
async def started(app: Scheduler, **how: bool) -> AsyncIterator[str]:
    """The address of its pages."""
    await app.start(**how)
    try:
        yield url_of(app)
    finally:
        await app.shutdown(timeout=0.2)


async def pages(url: str) -> dict[str, Page]:
    return {path: await fetch(f"{url}/{path}") for path in ("health", "ready", "live")}


def statuses(found: dict[str, Page]) -> dict[str, int]:
    return {path: page.status for path, page in found.items()}


class TestPages:
    async def test_a_node_that_works_is_healthy(self, url: str) -> None:
        name = "redis" if url.startswith("redis") else "store"
        async with started(app_on(url, worker_count=2)) as address:
            page = await fetch(f"{address}/health")
        body = page.json()
        assert (page.status, page.headers["content-type"], body["status"]) == (200, "application/json", "healthy")
        assert list(body) == ["status", "timestamp", "checks"]
        assert body["checks"] == {
            name: {"status": "ok", "message": f"{name} connection healthy"},
            "workers": {"status": "ok", "message": "2 workers active"},
            "queues": {"status": "ok", "message": "queued: 0, running: 0"},
            "dlq": {"status": "ok", "message": "DLQ: 0 tasks"},
            "breakers": {"status": "ok", "message": "breakers open: 0"},
            "node": {"status": "ok", "message": "the node is running"},
        }

    async def test_the_timestamp_is_that_of_now_with_a_zone(self) -> None:
        async with started(app_on("memory://")) as address:
            text = (await fetch(f"{address}/health")).json()["timestamp"]
        assert text.endswith("Z")
        assert abs(datetime.now(UTC) - datetime.fromisoformat(text)) < timedelta(minutes=5)

    async def test_tasks_are_counted(self) -> None:
        app, gate = app_on("memory://", concurrency=1), Gate()
        app.task("wait")(gate.pass_through)
        async with started(app) as address:
            for _ in range(3):
                await app.submit("wait")
            await wait_until(lambda: gate.entered, what="a task runs")
            await wait_for(address, "queues", "queued: 2, running: 1")
            gate.open()

    async def test_a_node_without_any_worker_is_degraded_and_ready(self) -> None:
        async with started(app_on("memory://"), work=False) as address:
            found = await pages(address)
        assert found["health"].json()["status"] == "degraded"
        assert found["health"].json()["checks"]["workers"] == {"status": "warning", "message": "0 workers active"}
        assert statuses(found) == {"health": 200, "ready": 200, "live": 200}

    async def test_many_dead_letters_are_degraded_and_a_few_are_not(self) -> None:
        app = app_on("memory://", dlq_max=5, max_retry=0)

        @app.task
        async def fails() -> None:
            raise ValueError

        async with started(app) as address:
            for _ in range(4):
                await app.submit("fails")
            await wait_for(address, "dlq", "DLQ: 4 tasks")
            assert (await fetch(f"{address}/health")).json()["status"] == "healthy"
            await app.submit("fails")
            await wait_for(address, "dlq", "DLQ: 5 tasks, of at most 5: the oldest will be dropped")
            assert (await fetch(f"{address}/health")).json()["status"] == "degraded"

    async def test_a_lost_store_is_unhealthy_and_the_process_lives(self) -> None:
        with RedisServer() as server:
            async with started(app_on(server.url)) as address:
                assert statuses(await pages(address)) == {"health": 200, "ready": 200, "live": 200}
                await asyncio.to_thread(server.kill)
                await wait_for_status(address, 503)
                found = await pages(address)
                assert statuses(found) == {"health": 503, "ready": 503, "live": 200}
                assert found["health"].json()["status"] == "unhealthy"
                assert found["health"].json()["checks"]["redis"]["status"] == "error"
                await asyncio.to_thread(server.start)
                await wait_for_status(address, 200)

    async def test_a_store_that_hangs_is_unhealthy_within_a_bounded_time(self) -> None:
        with RedisServer() as server:
            async with started(app_on(server.url)) as address:
                server.pause()
                try:
                    await wait_for_status(address, 503)
                    message = (await fetch(f"{address}/ready")).json()["checks"]["redis"]["message"]
                finally:
                    server.resume()
        assert message.startswith("redis connection failed: ")

    async def test_a_node_that_stops_is_not_ready_and_lives(self) -> None:
        app, gate = app_on("memory://"), Gate()
        app.task("wait")(gate.pass_through)
        async with started(app) as address:
            await app.submit("wait")
            await wait_until(lambda: gate.entered, what="a task runs")
            stopping = asyncio.ensure_future(app.shutdown(timeout=60))
            await wait_until(lambda: app._node is None, what="the shutdown has begun")
            found = await pages(address)
            gate.open()
            await stopping
        assert (found["ready"].status, found["live"].status) == (503, 200)
        assert found["ready"].json()["checks"]["node"] == {
            "status": "error", "message": "the node is draining: it takes no more tasks"
        }  # fmt: skip

    async def test_a_node_whose_workers_drain_is_not_ready(self) -> None:
        app = app_on("memory://")
        async with started(app) as address:
            (worker,) = await app.list_workers()
            await app.drain_worker(worker.id)
            await wait_for_status(address, 503, "ready")
            await app.resume_worker(worker.id)
            await wait_for_status(address, 200, "ready")

    async def test_a_node_that_lost_a_vital_part_is_dead(self) -> None:
        app, fail = app_on("memory://"), asyncio.Event()

        async def run() -> None:
            await fail.wait()
            raise RuntimeError("gone")

        app.add_service(Service("my server", run, vital=True))
        async with started(app) as address:
            assert (await fetch(f"{address}/live")).status == 200
            fail.set()
            await wait_until(lambda: app.exhausted, what="the node is drained")
            assert statuses(await pages(address)) == {"health": 503, "ready": 503, "live": 503}

    async def test_live_never_asks_the_store(self) -> None:
        async def look() -> Health:
            raise AssertionError("asked")

        made = HealthPages(look, lambda: "running", Log.of(None, "health"))
        assert (await made.live()).status == 200
        with pytest.raises(AssertionError):
            await made.health()


async def wait_for(address: str, check: str, message: str) -> None:
    async def look() -> bool:
        return bool((await fetch(f"{address}/health")).json()["checks"][check]["message"] == message)

    await _repeat(look, message)


async def wait_for_status(address: str, status: int, path: str = "health") -> None:
    async def look() -> bool:
        return (await fetch(f"{address}/{path}")).status == status

    await _repeat(look, f"{path} answers {status}")


async def _repeat(look: Any, what: str) -> None:
    async with asyncio.timeout(60):
        while not await look():
            await asyncio.sleep(0.05)


class TestLooks:
    async def test_probes_share_a_look_and_keep_it_for_a_moment(self) -> None:
        looks, now = 0, 100.0

        async def look() -> Health:
            nonlocal looks
            looks += 1
            await asyncio.sleep(0)
            return Health.of(datetime.now(UTC), {"store": Check("ok", "fine")})

        made = HealthPages(look, lambda: "running", Log.of(None, "health"), lambda: now)
        await asyncio.gather(*(made.health() for _ in range(20)), *(made.ready() for _ in range(20)))
        assert looks == 1
        now += 0.9
        await made.health()
        assert looks == 1
        now += 0.2
        await made.health()
        assert looks == 2

    async def test_a_look_goes_on_when_the_one_who_asked_first_has_gone(self) -> None:
        let = asyncio.Event()

        async def look() -> Health:
            await let.wait()
            return Health.of(datetime.now(UTC), {"store": Check("ok", "fine")})

        made = HealthPages(look, lambda: "running", Log.of(None, "health"))
        first, second = asyncio.ensure_future(made.health()), asyncio.ensure_future(made.health())
        await asyncio.sleep(0)
        first.cancel()
        let.set()
        assert (await second).status == 200

    async def test_a_node_looks_by_itself_and_logs_what_has_changed(self, caplog: pytest.LogCaptureFixture) -> None:
        caplog.set_level(logging.INFO, "tickwork")
        app = app_on("memory://", health_check_interval=0.05)
        async with started(app, work=False):
            await wait_until(lambda: "Health changed" in caplog.text, what="the change is logged")
        assert 'Health changed status=degraded why="0 workers active"' in caplog.text
        assert caplog.text.count("Health changed") == 1


class TestClient:
    async def test_app_health_is_the_same_record(self) -> None:
        app = app_on("memory://", health=False)
        health = await app.health()
        assert (health.status, health.works) == ("degraded", True)
        assert health.checks["workers"] == Check("warning", "0 workers active")
        assert await asyncio.to_thread(lambda: app.sync.health().checks) == health.checks
        await app.shutdown()

    async def test_a_store_that_cannot_be_opened_is_unhealthy(self) -> None:
        with RedisServer() as server:
            url = server.url
        health = await Scheduler(url).health()
        assert (health.status, list(health.checks)) == ("unhealthy", ["redis"])

    async def test_open_breakers_are_degraded(self, monkeypatch: pytest.MonkeyPatch) -> None:
        async def open_breakers(store: object) -> list[str]:
            return ["ship", "pay"]

        monkeypatch.setattr(client_health, "open_breakers", open_breakers)
        app = Scheduler("memory://")
        assert (await app.health()).checks["breakers"] == Check("warning", "breakers open: 2 (pay, ship)")
        await app.shutdown()

    async def test_a_breaker_that_holds_tasks_is_degraded(self, url: str) -> None:
        app = Scheduler(url, **FAST)
        await app.breakers.open("type:pay")
        store, gate = await app._open(), StoreGate("breaker:type:ship", failures=1, timeout=3_600_000)
        await store.gates.enter([Ask("a", (gate,))])
        await store.gates.leave([Left("a", (gate.name,), "failed")])
        health = await app.health()
        assert health.checks["breakers"] == Check("warning", "breakers open: 2 (type:pay, type:ship)")
        await app.breakers.close("type:pay")
        await app.breakers.close("type:ship")
        assert (await app.health()).checks["breakers"] == Check("ok", "breakers open: 0")
        await app.shutdown()

    async def test_rules_of_another_version_are_no_reason_to_be_unhealthy(self) -> None:
        app = Scheduler("memory://")
        await (await app._open()).marks.swap(MARK, None, "[]")
        assert (await app.health()).checks["breakers"] == Check("ok", "breakers open: 0")
        await app.shutdown()

    def test_the_worst_check_decides(self) -> None:
        checks = {"a": Check("ok", ""), "b": Check("warning", "")}
        assert Health.of(datetime.now(UTC), checks).status == "degraded"
        checks["c"] = Check("error", "")
        assert Health.of(datetime.now(UTC), checks).status == "unhealthy"

    @pytest.mark.parametrize(("dead", "status"), [(8000, "ok"), (8001, "warning")])
    def test_dead_letters_are_many_from_80_percent_on(self, dead: int, status: str) -> None:
        assert client_health._dead_letters(dead, Config()).status == status

    def test_a_bound_does_not_matter_where_dead_letters_are_not_kept(self) -> None:
        assert client_health._dead_letters(9, Config(dlq=False, dlq_max=1)) == Check("ok", "DLQ: 9 tasks")

    def test_queued_tasks_are_those_that_wait_for_a_worker(self) -> None:
        counts = dict.fromkeys(Status, 1)
        assert client_health._queued(Stats(counts, {}, {}, 0, 0)) == 2


def run(*args: str) -> Result:
    return CliRunner().invoke(commands, args, prog_name="tickwork")


class TestCommand:
    async def test_a_healthy_store(self, file_url: str) -> None:
        app = Scheduler(file_url, **FAST)
        async with app:
            shown = await asyncio.to_thread(run, "health", file_url)
            as_json = await asyncio.to_thread(run, "health", "--store", file_url, "--json")
        assert (shown.exit_code, as_json.exit_code) == (0, 0)
        assert shown.stdout.splitlines()[0].split() == ["status", "healthy"]
        assert json.loads(as_json.stdout)["status"] == "healthy"

    async def test_a_worker_of_this_host_may_be_wanted(self, file_url: str) -> None:
        own, app = socket.gethostname(), Scheduler(file_url, **FAST)
        async with app:
            up = await asyncio.to_thread(run, "health", "--here", file_url)
        assert (up.exit_code, f"1 workers of {own}" in up.stdout) == (0, True)
        far = Worker(id="far", node="far", host="far", queues=("default",), capacity=1)
        await (await store_of(app)).members.beat(far, 30_000)
        await app.shutdown()
        gone = await asyncio.to_thread(run, "health", "--here", "--json", file_url)
        assert gone.exit_code == 1
        assert json.loads(gone.stdout)["checks"]["here"] == {"status": "error", "message": f"no worker of {own} is up"}
        assert (await asyncio.to_thread(run, "health", file_url)).exit_code == 0

    async def test_a_degraded_store_has_status_0(self, sqlite_url: str) -> None:
        app = Scheduler(sqlite_url)
        await app.submit("later")
        await app.shutdown()
        shown = await asyncio.to_thread(run, "health", sqlite_url)
        assert (shown.exit_code, "0 workers active" in shown.stdout) == (0, True)

    def test_a_store_that_is_not_there_has_status_1(self, sqlite_url: str) -> None:
        shown = run("health", sqlite_url, "--json")
        assert shown.exit_code == 1
        body = json.loads(shown.stdout)
        assert body["status"] == "unhealthy"
        assert "there is no SQLite file" in body["checks"]["store"]["message"]

    def test_a_redis_that_is_down_has_status_1(self) -> None:
        with RedisServer() as server:
            url = server.url
        shown = run("health", url)
        assert (shown.exit_code, "redis connection failed" in shown.stdout) == (1, True)
