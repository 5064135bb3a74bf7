"""What a worker that is told to stop says of the tasks that it still runs."""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.integration.programs import Shop
from tickwork import Status

OFTEN = "import tickwork.worker.last_runs as l; l.INTERVAL = 0.05"


@pytest.fixture
def shop(tmp_path: Path) -> Iterator[Shop]:
    shop = Shop(tmp_path, options="concurrency=30, scheduler_id='till'")
    yield shop
    shop.close()


def test_tasks_that_are_waited_for_are_named_again_and_again(shop: Shop) -> None:
    program = shop.start("worker", "shop:app", prelude=OFTEN)
    task, _ = shop.hold("one")
    program.signal(signal.SIGTERM)
    program.until("Waiting for running tasks running=1 worker=till time_left=", 3)
    program.until(f"Task still running task=hold id={task} attempt=1 running_for=", 3)
    shop.go()
    assert program.wait() == 0
    assert shop.task(task).status == Status.SUCCESS
    assert not program.lines("Giving back")


def test_only_so_many_are_named_and_what_is_given_back_is_told(shop: Shop) -> None:
    program = shop.start("worker", "shop:app", "--log-format", "json", "--shutdown-timeout", "2")
    tasks = [shop.hold(f"held-{number}")[0] for number in range(25)]
    program.signal(signal.SIGTERM)
    assert program.wait() == 0
    lines = [json.loads(line) for line in program.err.splitlines()]
    waiting = [line for line in lines if line["event"] == "Waiting for running tasks"]
    assert [(line["running"], line["worker"]) for line in waiting] == [(25, "till")]
    named = [line for line in lines if line["event"] == "Task still running"]
    assert [line["id"] for line in named] == tasks[:20], "the oldest"
    assert all(line["task"] == "hold" and line["running_for"] > 0 for line in named)
    assert [line["running"] for line in lines if line["event"] == "Giving back what runs"] == [25]
    assert {line["id"] for line in lines if line["event"] == "Task given back"} == set(tasks)
