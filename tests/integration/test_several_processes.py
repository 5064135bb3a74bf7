"""`tickwork worker --processes N`: a parent that imports the application and looks after those it forks."""

from __future__ import annotations

import asyncio
import json
import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.integration.programs import Shop, lives, until
from tests.support.pages import fetch
from tests.support.scrapes import Scrape
from tickwork import Status

IMPATIENT = "import tickwork.node.processes as p; p.PAUSE_MIN = p.PAUSE_MAX = 0.01"


@pytest.fixture
def make_shop(tmp_path: Path) -> Iterator[Callable[..., Shop]]:
    shops: list[Shop] = []

    def make(**options: Any) -> Shop:
        shops.append(Shop(tmp_path, **options))
        return shops[-1]

    yield make
    for shop in shops:
        shop.close()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_all_finish_what_they_run_when_the_parent_is_told_to_stop(
    make_shop: Callable[..., Shop], file_url: str, number: int
) -> None:
    shop = make_shop(url=file_url, options="concurrency=1, scheduler_id='till', labels={'zone': 'a'}")
    program = shop.start("worker", "shop:app", "--processes", "2")
    program.until("Task scheduler started", 2)
    (one, first), (other, second) = shop.hold("one"), shop.hold("other")
    assert len({first, second, program.process.pid}) == 3

    workers = {worker.pid: worker for worker in shop.app.sync.list_workers()}
    assert {worker.id for worker in workers.values()} == {"till-1", "till-2"}
    for worker in workers.values():
        assert worker.labels == {"zone": "a", "parent": str(program.process.pid), "process": worker.id[-1]}

    program.signal(number)
    program.until("Task scheduler stopping", 2)
    assert {shop.task(task).status for task in (one, other)} == {Status.RUNNING}
    shop.go()
    assert program.wait() == 0
    assert [shop.task(task).attempt for task in (one, other)] == [1, 1]
    assert {shop.task(task).status for task in (one, other)} == {Status.SUCCESS}
    assert len(program.lines("Ctrl-C stops")) == 1, "one banner"
    assert "in each of 2 processes" in program.err
    assert len(program.lines("process-1 Task scheduler started")) == 1
    assert not any(map(lives, (first, second)))


def test_a_signal_to_the_whole_group_counts_once_and_a_second_one_gives_work_back(
    make_shop: Callable[..., Shop],
) -> None:
    shop = make_shop()
    program = shop.start("up", "shop:app", "--processes", "2", "--log-format", "json")
    program.until("Task scheduler started", 2)
    task, _ = shop.hold("one")
    os.killpg(program.process.pid, signal.SIGINT)
    program.until("Task scheduler stopping", 2)
    program.until('"Process ended"')  # the one that has nothing to do
    assert shop.task(task).status == Status.RUNNING
    os.killpg(program.process.pid, signal.SIGINT)
    assert program.wait() == 0
    found = shop.task(task)
    assert (found.status, found.attempt) == (Status.READY, 0)
    started = [json.loads(line) for line in program.lines("Task scheduler started")]
    assert {line["process"] for line in started} == {"process-1", "process-2"}


def test_a_process_that_dies_is_replaced_and_its_task_runs_again(make_shop: Callable[..., Shop]) -> None:
    shop = make_shop(options="scheduler_id='till'")
    program = shop.start("up", "shop:app", "--processes", "2")
    program.until("Task scheduler started", 2)
    task, pid = shop.hold("one")
    os.kill(pid, signal.SIGKILL)
    program.until("process-3 Task scheduler started")
    assert len(program.lines("how=SIGKILL")) == 1
    shop.go()
    until(lambda: shop.task(task).status == Status.SUCCESS, "it runs elsewhere")
    assert shop.task(task).losses == 1

    ended = shop.app.sync.list_workers("online")[0]
    os.kill(ended.pid, signal.SIGTERM)
    program.until("process-4 Task scheduler started")
    program.signal(signal.SIGTERM)
    assert program.wait() == 0, "how a process ended before does not count"


def test_a_process_is_replaced_after_so_many_tasks_while_it_finishes_the_last(make_shop: Callable[..., Shop]) -> None:
    shop = make_shop(options="concurrency=1, scheduler_id='till'")
    program = shop.start("worker", "shop:app", "--processes", "1", "--max-tasks-per-child", "2")
    assert shop.app.sync.call("who", timeout=60) > 0
    (one, first), (other, second) = shop.hold("one"), shop.hold("other")
    assert first != second, "the first still runs"
    shop.go()
    until(lambda: not lives(first), "the first has ended")
    assert {shop.task(task).status for task in (one, other)} == {Status.SUCCESS}
    program.signal(signal.SIGTERM)
    assert program.wait() == 0
    assert len(program.lines("Process is replaced tasks=2")) == 1
    assert len(program.lines("Process started")) == 2


def test_no_process_outlives_a_parent_that_is_killed(make_shop: Callable[..., Shop]) -> None:
    shop = make_shop()
    program = shop.start("worker", "shop:app", "--processes", "3")
    program.until("Task scheduler started", 3)
    pids = [worker.pid for worker in shop.app.sync.list_workers()]
    task, busy = shop.hold("one")
    os.kill(program.process.pid, signal.SIGKILL)
    until(lambda: [pid for pid in pids if lives(pid)] == [busy], "those without work end")
    shop.go()
    until(lambda: not lives(busy), "the last one ends")
    assert shop.task(task).status == Status.SUCCESS


@pytest.mark.parametrize(
    ("start", "status"),
    [("raise RuntimeError('no bread')", 1), ("os.kill(os.getpid(), 9)", 1), ("os._exit(7)", 7)],
)
def test_processes_that_cannot_start_end_the_program(make_shop: Callable[..., Shop], start: str, status: int) -> None:
    shop = make_shop(more=f"@app.on_startup\ndef begin():\n    {start}\n")
    program = shop.start("worker", "shop:app", "--processes", "1", prelude=IMPATIENT)
    assert program.wait() == status
    assert len(program.lines("Process started")) == 5
    (told,) = program.lines("5 processes in a row have ended")
    assert "this program ends" in told


@pytest.mark.parametrize(
    ("args", "more", "words"),
    [
        (["--processes", "0"], "", "--processes"),
        (["--processes", "-2"], "", "--processes"),
        (["--processes", "2", "--store", "memory://"], "", "each process would have a memory:// store of its own"),
        (["--processes", "2"], "app.sync.submit('who')", "has used its store while it was imported"),
        (
            ["--processes", "2"],
            "import threading\nthreading.Thread(target=threading.Event().wait, name='idler', daemon=True).start()",
            "has started threads while it was imported (idler)",
        ),
    ],
)
def test_what_cannot_be_forked_is_refused(
    make_shop: Callable[..., Shop], args: list[str], more: str, words: str
) -> None:
    program = make_shop(more=more).start("worker", "shop:app", *args)
    assert program.wait() == 2
    assert words in program.err
    assert "Process started" not in program.err


def test_any_free_port_of_each_process_is_told_in_the_log(make_shop: Callable[..., Shop], file_url: str) -> None:
    shop = make_shop(url=file_url)
    program = shop.start(
        "up", "shop:app", "--processes", "2", "--metrics", "--metrics-port", "0", "--health", "--health-port", "0",
        "--no-server", "--log-format", "json",
    )  # fmt: skip
    program.until("Task scheduler started", 2)
    told = [json.loads(line) for line in program.lines('"event":"Listening"')]
    assert {entry["process"] for entry in told} == {"process-1", "process-2"}
    assert all(entry["paths"] == "/health /live /metrics /ready" for entry in told), "0 and 0 are one port"
    ids = set()
    for entry in told:
        page = Scrape(asyncio.run(fetch(f"{entry['url']}/metrics")).body)
        ids |= page.values("scheduler_info", "scheduler_id")
    assert ids == {worker.id for worker in shop.app.sync.list_workers()}, "each serves its own"
