"""A terminal that is closed under a program, and programs that were started with some signals ignored."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.integration.programs import Program, Shop
from tickwork import Status

ALONE = ("worker", "shop:app")
SEVERAL = (*ALONE, "--processes", "2")
RELOADED = ("up", "shop:app", "--reload")
IN_EACH_WAY = pytest.mark.parametrize("args", [ALONE, SEVERAL, RELOADED], ids=["alone", "several", "reloaded"])
IGNORED = "import signal; signal.signal(signal.SIGHUP, signal.SIG_IGN); signal.signal(signal.SIGINT, signal.SIG_IGN)"

OF_ITS_OWN = "import fcntl, termios; fcntl.ioctl(0, termios.TIOCSCTTY, 0)"  # its standard input is its terminal


@pytest.fixture
def shop(tmp_path: Path) -> Iterator[Shop]:
    shop = Shop(tmp_path)
    yield shop
    shop.close()


def stopping(program: Program) -> int:
    return len(program.lines("Task scheduler stopping"))


@IN_EACH_WAY
def test_what_nohup_started_in_the_background_of_a_script_is_ended_by_sigterm_alone(
    shop: Shop, args: tuple[str, ...]
) -> None:
    """A Ctrl-C for the script goes to all of its processes."""
    program = shop.start(*args, prelude=IGNORED)
    program.until("Task scheduler started")
    for number in (signal.SIGHUP, signal.SIGINT):
        os.killpg(program.process.pid, number)
    task, _ = shop.hold("one")
    assert stopping(program) == 0
    program.signal(signal.SIGTERM)
    program.until("Task scheduler stopping")
    shop.go()
    assert program.wait() == 0
    assert (shop.task(task).status, shop.task(task).attempt) == (Status.SUCCESS, 1)


@IN_EACH_WAY
def test_a_hang_up_is_a_first_request_however_often_it_comes(shop: Shop, args: tuple[str, ...]) -> None:
    program = shop.start(*args)
    program.until("Task scheduler started")
    task, _ = shop.hold("one")
    program.signal(signal.SIGHUP)
    program.until("Task scheduler stopping")
    program.signal(signal.SIGHUP)
    program.signal(signal.SIGHUP)
    program.until("Waiting for running tasks")
    shop.go()
    assert program.wait() == 0
    assert (shop.task(task).status, shop.task(task).attempt) == (Status.SUCCESS, 1)
    assert not program.lines("Giving back")


def test_a_terminal_that_is_closed(shop: Shop) -> None:
    """What runs is finished, though nothing can be written any more."""
    terminal, its_end = os.openpty()
    process = subprocess.Popen(
        [sys.executable, "-c", f"{OF_ITS_OWN}; from tickwork.cli import main; main()", *ALONE],
        cwd=shop.folder, stdin=its_end, stdout=its_end, stderr=its_end, start_new_session=True,
    )  # fmt: skip
    os.close(its_end)
    try:
        task, _ = shop.hold("one")
        os.close(terminal)
        shop.go()
        assert process.wait(60) == 0
    finally:
        process.kill()
        process.wait()
    assert (shop.task(task).status, shop.task(task).attempt) == (Status.SUCCESS, 1)
