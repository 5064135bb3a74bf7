"""Handlers in child processes: what they say, how they are found, and what cannot be found is refused."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from msgspec import msgpack

from tests.integration import child_handlers
from tests.integration.apps import Make
from tickwork import ConfigError, Scheduler, Status, TaskFailed
from tickwork.executors import in_child
from tickwork.handlers.registry import Entry
from tickwork.logs import JSONFormatter, KeyValueFormatter
from tickwork.testing import wait_for


async def test_the_same_verdicts_on_the_loop(app: Scheduler) -> None:
    app.registry.register("fail", child_handlers.fail)
    async with app:
        for how, attempts, text in (
            ("abort with a number", 1, "404"),
            ("own abort", 1, "aborted"),
            ("own retry", 2, "503"),
        ):
            handle = await app.submit("fail", how, max_retry=1)
            info = await wait_for(app, handle.id, Status.DEAD, timeout=20)
            assert (info.attempt, text in (info.last_error or "")) == (attempts, True), f"{how}: {info.last_error}"


async def test_lines_of_a_child_reach_the_log_of_the_program(make: Make, caplog: pytest.LogCaptureFixture) -> None:
    app = make("memory://")
    app.registry.register("talk", child_handlers.talk, run_in="process")
    caplog.set_level(logging.INFO, "tickwork.task")
    async with app:
        handle = await app.submit("talk")
        await handle.result(20)
    said, shouted = [record for record in caplog.records if record.name == "tickwork.task"]
    for record, text, level in ((said, "said 1", "INFO"), (shouted, "shouted", "WARNING")):
        assert (record.getMessage(), record.levelname, record.funcName) == (text, level, "talk")
        assert (record.filename, record.module) == ("child_handlers.py", "child_handlers")
        assert vars(record)["task_id"] == handle.id
        assert record.process not in (None, os.getpid())
    assert said.exc_text is None
    assert (shouted.exc_text or "").endswith("LookupError: lost \\udc80")
    for formatter in (logging.Formatter("%(message)s"), KeyValueFormatter(), JSONFormatter()):
        assert "LookupError: lost" in formatter.format(shouted)
        assert "LookupError" not in formatter.format(said)
    assert [line.partition(" ")[2] for line in (await handle.info()).log] == ["INFO said 1", "WARNING shouted"]


async def test_lines_of_a_child_that_the_program_does_not_want_are_kept_with_the_task_alone(
    make: Make, caplog: pytest.LogCaptureFixture
) -> None:
    app = make("memory://")
    app.registry.register("talk", child_handlers.talk, run_in="process")
    caplog.set_level(logging.ERROR, "tickwork.task")
    async with app:
        handle = await app.submit("talk")
        await handle.result(20)
    assert [record for record in caplog.records if record.name == "tickwork.task"] == []
    assert len((await handle.info()).log) == 2


async def test_a_serializer_of_ones_own_in_a_process(make: Make) -> None:
    app = make("memory://")
    app.registry.register("shouted", child_handlers.shouted.entry.function, child_handlers.Shouting(), run_in="process")
    async with app:
        assert await (await app.submit("shouted", "hello")).result(20) == "HELLO"


async def test_what_a_child_process_could_not_call_is_refused(make: Make) -> None:
    app = make("memory://")
    with pytest.raises(
        ConfigError, match=r"'it' cannot run_in=\"process\": it is a method of an object of class Service"
    ):
        app.registry.register("it", child_handlers.Service().method, run_in="process")
    app.registry.register("it", child_handlers.Service.class_method, run_in="process")
    async with app:
        assert await (await app.submit("it", 5)).result(20) == "Service 5"


@pytest.mark.parametrize(
    ("function", "serializer", "text"),
    [
        (child_handlers.first_again, None, "again in module .*child_handlers is not this function"),
        (
            child_handlers.plain,
            child_handlers.Shouting(),
            "with serializer 'shouting': a child process does not know it",
        ),
    ],
)
async def test_what_a_child_process_would_not_find_is_refused_at_the_start(
    make: Make, function: Any, serializer: Any, text: str
) -> None:
    app = make("memory://")
    app.registry.register("it", function, serializer, run_in="process")
    with pytest.raises(ConfigError, match=text):
        await app.start()


MAIN = """
from tickwork import ConfigError, Scheduler
app = Scheduler("memory://")
try:
    @app.task(run_in="process")
    def work(): ...
except ConfigError as error:
    print(error)
else:
    print("accepted")
"""


@pytest.mark.parametrize(
    ("how", "text"),
    [
        (["-m", "shop"], "cannot import shop.__main__ (python -m); put it into a module"),
        (["shop"], "cannot import __main__ (python -m); put it into a module"),
        (["-c", MAIN], "cannot import a program that is no file; put it into a module"),
        (["shop/__main__.py"], "accepted"),
        (["-m", "shop.worker"], "accepted"),
    ],
    ids=["package", "folder", "text", "file", "module"],
)
def test_a_main_module_that_no_child_can_import_is_refused(tmp_path: Path, how: list[str], text: str) -> None:
    (tmp_path / "shop").mkdir()
    for name in ("__main__.py", "worker.py"):
        (tmp_path / "shop" / name).write_text(MAIN)
    done = subprocess.run([sys.executable, *how], cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert text in done.stdout, done


async def test_a_process_handler_cannot_submit_to_the_memory_of_its_worker(make: Make) -> None:
    app = make("memory://")
    app.registry.register("submits", child_handlers.submits.entry.function, run_in="process", max_retry=0)
    async with app:
        with pytest.raises(
            TaskFailed, match=r"memory:// is another store than that of the worker.*sqlite:///"
        ) as caught:
            await (await app.submit("submits")).result(20)
    assert caught.value.info.attempt == 1


def test_a_child_reads_a_handler_once(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[str] = []

    class Counted(Entry):
        def __init__(self, type: str, *args: Any, **options: Any) -> None:
            made.append(type)
            super().__init__(type, *args, **options)

    monkeypatch.setattr(in_child, "Entry", Counted)
    call = in_child.ChildCall("id", "often", 1, 1, "", 0.0, {}, {}, b'"x"', "json", 30)
    for _ in range(3):
        in_child.invoke(child_handlers.plain, msgpack.encode(call), lambda note: None)
    assert made == ["often"]


async def test_a_child_is_replaced_after_so_many_tasks(make: Make) -> None:
    app = make("memory://", max_tasks_per_child=2, concurrency=1)
    app.registry.register("who", child_handlers.who, run_in="process")
    async with app:
        pids = [await app.call("who", timeout=30) for _ in range(5)]
    assert pids[0] == pids[1] != pids[2] == pids[3] != pids[4]
