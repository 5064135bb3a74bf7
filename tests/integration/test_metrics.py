"""Metrics of schedulers at work: they agree with what was done."""

from __future__ import annotations

import asyncio
import socket
import subprocess
import sys
import textwrap
from collections.abc import Callable
from typing import Any

import pytest

from tests.integration.apps import Make, eventually
from tests.support.pages import fetch, url_of
from tests.support.scrapes import Scrape
from tickwork import ConfigError, Scheduler, StoreUnavailable
from tickwork.node import services
from tickwork.testing import run

OPTIONS: dict[str, Any] = {"metrics": True, "metrics_port": 0, "metrics_interval": 0.001}


async def scrape(app: Scheduler) -> Scrape:
    page = await fetch(f"{url_of(app, 'metrics_port')}/metrics")
    assert (page.status, page.headers["content-type"].partition(";")[0]) == (200, "text/plain")
    return Scrape(page.body)


async def page_that(app: Scheduler, condition: Callable[[Scrape], bool]) -> Scrape:
    """The page after the first one that is as it should be: an end is counted a moment after the store knows of it, and
    what the store knows is read before what was counted."""

    async def look() -> bool:
        return condition(await scrape(app))

    await eventually(look, 60)
    return await scrape(app)


def with_work(app: Scheduler) -> None:
    @app.task(max_retry=2)
    async def work(number: int) -> None:
        if number % 10 == 0:
            raise ValueError("no")

    @app.task
    async def wait() -> None:
        await asyncio.sleep(0.03)


async def test_they_agree_with_a_counted_run(make: Make, url: str) -> None:
    app = make(url, **OPTIONS, concurrency=7)
    with_work(app)
    async with app:
        await app.submit_many("work", list(range(50)))
        await app.submit_many("wait", [None] * 5, priority=10)

        page = await page_that(app, lambda page: page["tasks_completed_total"] + page["tasks_failed_total"] == 55)
        events = await app.events.read(limit=1000)
        assert page["tasks_submitted_total"] == 55
        assert page["scheduler_task_submitted_total", "type=wait", "priority=10"] == 5
        assert page["scheduler_task_executed_total", "type=work", "status=success"] == 45
        assert page["scheduler_task_executed_total", "type=work", "status=retrying"] == 10
        assert page["scheduler_task_executed_total", "type=work", "status=dead"] == 5
        assert page["scheduler_task_executed_total", "type=wait", "status=success"] == 5
        assert page["tasks_completed_total"] == 50 == sum(event.kind == "task.succeeded" for event in events)
        assert page["tasks_failed_total"] == 5 == sum(event.kind == "task.died" for event in events)
        assert page["task_errors_total", "task_name=work"] == 15
        assert page["scheduler_task_retry_total", "type=work", "retry_count=1"] == 5
        assert page["scheduler_task_retry_total", "type=work", "retry_count=2"] == 5
        assert page["scheduler_dispatch_total", "result=started"] == 65
        assert page["scheduler_worker_task_total", f"worker_id={app.id}"] == 65
        assert page["task_failure_rate"] == pytest.approx(5 / 55)
        for name in ("scheduler_task_duration_seconds", "task_duration_seconds"):
            assert page.sum(f"{name}_count") == 65
        assert page["task_execution_duration_seconds_count"] == 65
        assert page["scheduler_task_duration_seconds_sum", "type=wait"] >= 5 * 0.03
        assert page["scheduler_schedule_latency_seconds_count", "queue=default"] == 55
        # and what the store has of it
        assert page["scheduler_tasks", "status=success"] == 50
        assert page["scheduler_dead_letter_queue_size"] == page["scheduler_tasks", "status=dead"] == 5
        assert page["tasks_pending"] == page["tasks_running"] == 0
        assert page["workers_online"] == page["scheduler_worker_count"] == 1
        assert page["scheduler_worker_slots"] == 7
        assert page["scheduler_store_up"] == 1
        assert page["scheduler_store_call_seconds_count", "method=tasks.submit"] >= 2
        assert page["scheduler_worker_heartbeat_delay_seconds"] < 30


async def test_what_runs_and_waits_now(make: Make, url: str) -> None:
    app, let_go = make(url, **OPTIONS, concurrency=2), asyncio.Event()

    @app.task
    async def hold() -> None:
        await let_go.wait()

    async with app:
        handles = await app.submit_many("hold", [None] * 5)

        page = await page_that(app, lambda page: page["scheduler_queue_size", "queue=default"] == 3)
        assert (page["tasks_running"], page["tasks_pending"]) == (2, 3)
        assert (page["scheduler_worker_running"], page["worker_utilization"]) == (2, 1)
        await page_that(app, lambda page: page["scheduler_queue_latency_seconds", "queue=default"] > 0)
        await page_that(app, lambda page: page["scheduler_lease_renewals_total", "result=held"] >= 2)
        page = await page_that(app, lambda page: page["scheduler_is_leader"] == 1)
        assert page["scheduler_leader_elections_total"] == 1
        let_go.set()
        for handle in handles:
            await handle.result(30)
        page = await page_that(app, lambda page: page["tasks_completed_total"] == 5)
        assert page["scheduler_queue_latency_seconds", "queue=default"] == 0
        assert page["worker_utilization"] == 0


async def test_a_task_that_was_set_aside_counts_once(make: Make, url: str) -> None:
    app = make(url, **OPTIONS)

    @app.task
    async def hold() -> None: ...

    async with app:
        await app.queues.pause_type("hold")
        await app.submit_many("hold", [None] * 3)

        async def all_are_aside() -> bool:
            return sum(sum(queue.parked.values()) for queue in await app.queues.list()) == 3

        await eventually(all_are_aside, what="all tasks are aside")
        page = await page_that(app, lambda page: page["tasks_pending"] == 3)
        assert page["scheduler_queue_size", "queue=default"] == 3


async def test_periodic_tasks(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(services, "LAG_INTERVAL", 0.01)
    app = make("memory://", **OPTIONS)

    @app.periodic("* * * * * *")
    async def tick() -> None: ...

    async with app:
        page = await page_that(app, lambda page: page["tasks_completed_total"] >= 1)
        await page_that(app, lambda page: page["scheduler_event_loop_lag_seconds_count"] >= 1)
    assert page["scheduler_schedule_ticks_total", "schedule=tick", "result=fired"] >= 1
    assert page["scheduler_schedule_lateness_seconds_count"] >= 1
    assert page["scheduler_task_submitted_total", "type=tick", "priority=5"] >= 1


async def test_two_schedulers_of_one_process_count_apart(make: Make) -> None:
    first, second = make("memory://", **OPTIONS), make("memory://", **OPTIONS)
    with_work(first)
    with_work(second)
    async with first, second:
        await first.submit_many("wait", [None] * 3)
        await second.submit("wait")
        pages = [
            await page_that(first, lambda page: page["tasks_completed_total"] == 3),
            await page_that(second, lambda page: page["tasks_completed_total"] == 1),
        ]
    assert [page["tasks_submitted_total"] for page in pages] == [3, 1]
    assert [page.values("scheduler_info", "scheduler_id") for page in pages] == [{first.id}, {second.id}]


async def test_a_second_start_goes_on_counting(make: Make, sqlite_url: str) -> None:
    app = make(sqlite_url, **OPTIONS)
    with_work(app)
    for number in (1, 2):
        async with app:
            await app.submit("wait")
            page = await page_that(app, lambda page: page["tasks_completed_total"] == page["tasks_submitted_total"])
            assert page["tasks_submitted_total"] == number


async def test_a_port_that_is_taken_is_told(make: Make) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        app = make("memory://", metrics=True, metrics_port=port)
        with pytest.raises(ConfigError, match=f"metrics_port: port {port} of 127.0.0.1 is taken already"):
            await app.start()


async def test_a_store_that_is_away_does_not_take_the_page_away(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    app = make("memory://", **OPTIONS)

    async def fails() -> Any:
        raise StoreUnavailable("away")

    async with app:
        await page_that(app, lambda page: page["workers_online"] == 1)
        monkeypatch.setattr(app._store.queries, "stats", fails)
        app._observe_store()
        app._monitor.metrics.read_from(app._observed)  # type: ignore[union-attr]
        page = await scrape(app)
        assert page["scheduler_store_up"] == 0
        assert page["scheduler_store_errors_total", "method=queries.stats"] == 1


async def test_a_program_under_test_has_none() -> None:
    app = Scheduler("memory://", **OPTIONS)
    with_work(app)
    async with run(app):
        await (await app.submit("wait")).result(30)
    assert app._monitor.metrics is None


def test_nothing_is_imported_when_they_are_off() -> None:
    program = """
        import asyncio, sys
        from tickwork import ConfigError, Scheduler, StoreUnavailable
        app = Scheduler("memory://")

        @app.task
        async def greet(): ...

        async def main():
            async with app:
                await (await greet.submit()).result(30)

        asyncio.run(main())
        modules = ("metrics", "tallies", "exposition", "store_numbers", "listener")
        unwanted = {"prometheus_client", "uvicorn", *(f"tickwork.monitor.{name}" for name in modules)}
        print(sorted(unwanted & set(sys.modules)))
    """
    ended = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)], capture_output=True, text=True, timeout=100, check=True
    )
    assert ended.stdout == "[]\n"
