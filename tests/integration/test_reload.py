"""`--reload`: the application is started anew when one of its files changes."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.integration.programs import Shop
from tickwork import Status

WORDS = """
from words import WORD

@app.task
async def word() -> str:
    return WORD
"""


@pytest.fixture
def shop(tmp_path: Path) -> Iterator[Shop]:
    (tmp_path / "words.py").write_text("WORD = 'one'\n")
    shop = Shop(tmp_path, more=WORDS, options="scheduler_id='till'")
    yield shop
    shop.close()


def change(path: Path, text: str) -> None:
    """So that its time is another one, however coarse the clock of the file system."""
    before = path.stat().st_mtime_ns
    path.write_text(text)
    os.utime(path, ns=(before + 1_000_000_000, before + 1_000_000_000))


def test_a_change_starts_the_application_anew(shop: Shop) -> None:
    program = shop.start("up", "shop:app", "--reload")
    assert shop.app.sync.call("word", timeout=60) == "one"
    task, pid = shop.hold("held")
    change(shop.folder / "words.py", "WORD = 'two'\n")
    program.until("words.py has changed: the application is started again")
    program.until("Task scheduler started", 2)
    assert shop.app.sync.call("word", timeout=60) == "two"
    shop.go()
    assert shop.app.sync.handle(task).result(60) != pid, "it was given back, and runs in the next process"
    program.signal(signal.SIGINT)
    assert program.wait() == 0
    assert len(program.lines("Ctrl-C stops")) == 1, "one banner"
    assert shop.task(task).losses == 0


def test_a_mistake_is_told_and_the_next_change_waited_for(shop: Shop) -> None:
    program = shop.start("worker", "shop:app", "--reload")
    program.until("Task scheduler started")
    change(shop.folder / "words.py", "WORD = \n")
    program.until("SyntaxError: invalid syntax")
    program.until("it is started again when one of its files changes")
    change(shop.folder / "words.py", "WORD = 'right'\n")
    assert shop.app.sync.call("word", timeout=60) == "right"
    program.signal(signal.SIGTERM)
    assert program.wait() == 0
    assert not program.lines("Traceback (most recent call last)")[1:]


def test_a_module_that_is_missing_is_waited_for(shop: Shop) -> None:
    words = shop.folder / "words.py"
    words.unlink()
    program = shop.start("worker", "shop:app", "--reload")
    program.until("it is started again when one of its files changes")
    words.write_text("WORD = 'there'\n")
    assert shop.app.sync.call("word", timeout=60) == "there"


def test_a_second_signal_gives_work_back(shop: Shop) -> None:
    program = shop.start("up", "shop:app", "--reload")
    task, _ = shop.hold("held")
    os.killpg(program.process.pid, signal.SIGINT)
    program.until("Task scheduler stopping")
    os.killpg(program.process.pid, signal.SIGINT)
    assert program.wait() == 0
    assert shop.task(task).status == Status.READY


def test_several_processes_are_not_reloaded(shop: Shop) -> None:
    program = shop.start("up", "shop:app", "--reload", "--processes", "2")
    assert program.wait() == 2
    assert "leave out --processes" in program.err
