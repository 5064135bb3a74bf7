"""Handlers in child processes: how they are found, and what cannot be found is refused."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.integration import child_handlers
from tests.integration.apps import Make
from tickwork import ConfigError, TaskFailed


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
