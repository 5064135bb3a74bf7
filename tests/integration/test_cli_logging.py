"""The log of `tickwork up`, as real processes write it."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.support.redis import RedisServer
from tickwork import Scheduler

HEAD = """
import logging, sys, warnings
from tickwork import Scheduler, TaskContext
"""
APP = """
app = Scheduler("sqlite:///tick.db", scan_interval=0.2, shutdown_timeout=2, {options})
log = logging.getLogger("shop.orders")

@app.periodic("0 0 1 1 *")
async def new_year() -> None: ...

@app.task(max_retry=0)
async def talk(ctx: TaskContext) -> None:
    log.info("an order came")
    log.warning("two\\nlines")
    warnings.warn("old hat")
    raise ValueError("the reason")
"""


class Up:
    """`tickwork up` that runs one task `talk` and is stopped."""

    def __init__(self, folder: Path, *args: str, setup: str = "", options: str = "") -> None:
        (folder / "shop.py").write_text(HEAD + setup + APP.format(options=options))
        submit = f"app = Scheduler('sqlite:///{folder}/tick.db'); app.sync.submit('talk'); app.sync.close()"
        subprocess.run([sys.executable, "-c", f"from tickwork import Scheduler; {submit}"], check=True, cwd=folder)
        command = [sys.executable, "-c", "from tickwork.cli import main; main()", "up", "shop:app", *args]
        process = subprocess.Popen(command, cwd=folder, stderr=subprocess.PIPE, text=True)
        assert process.stderr is not None
        self.err = ""
        with process.stderr:
            for line in process.stderr:
                self.err += line
                if "Task failed" in line:
                    process.send_signal(signal.SIGINT)
        self.status = process.wait(20)

    @property
    def lines(self) -> list[str]:
        return self.err.splitlines()

    def line(self, text: str) -> str:
        (found,) = [line for line in self.lines if text in line]
        return found

    @property
    def entries(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.lines]

    def entry(self, event: str) -> dict[str, Any]:
        (found,) = [entry for entry in self.entries if entry["event"].startswith(event)]
        return found


def test_the_applications_own_lines_are_shown_in_the_same_format(tmp_path: Path) -> None:
    up = Up(tmp_path)
    assert up.status == 0
    stamp = r"^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3} "
    assert re.search(stamp + r"INFO    shop\.orders: an order came$", up.line("an order came"))
    assert re.search(stamp + r"WARNING shop\.orders: two lines$", up.line("two"))
    assert re.search(stamp + r"INFO    Task registered name=new_year", up.line("Task registered"))
    assert re.search(stamp + r"ERROR   Task failed task=talk", up.line("Task failed"))


def test_every_line_is_json_when_that_is_asked_for(tmp_path: Path) -> None:
    up = Up(
        tmp_path, "--log-format", "json",
        setup="logging.getLogger('shop').warning('at import')\nwarnings.warn('at import too')\n",
    )  # fmt: skip
    assert up.entry("at import")["level"] == "warning"
    assert up.entry("Task registered")["name"] == "new_year"
    assert up.entry("an order came")["logger"] == "shop.orders"
    assert isinstance(up.entry("Task failed")["duration"], float)
    assert [entry["logger"] for entry in up.entries].count("py.warnings") == 2


@pytest.mark.parametrize("module", ["import surely_not_there", "raise SystemExit(3)", ""])
def test_an_application_that_cannot_be_loaded_is_told_as_json_too(tmp_path: Path, module: str) -> None:
    (tmp_path / "shop.py").write_text(module)
    command = [sys.executable, "-c", "from tickwork.cli import main; main()", "up", "shop:app", "--log-format", "json"]
    ran = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=30)
    assert ran.returncode == 2
    (line,) = ran.stderr.splitlines()
    assert json.loads(line)["level"] == "error"


def test_logging_of_the_applications_own_is_left_alone(tmp_path: Path) -> None:
    own = "logging.basicConfig(format='OWN %(name)s %(levelname)s %(message)s', stream=sys.stderr)\n"
    up = Up(tmp_path, "--log-format", "json", setup=own)
    assert "OWN shop.orders WARNING two" in up.lines
    assert "an order came" not in up.err, "its root logger shows warnings only"
    assert up.line("Task registered").startswith("OWN tickwork INFO Task registered")
    assert "the reason" in up.err
    assert up.line("--log-format is not used").startswith("OWN tickwork WARNING")


def test_a_handler_for_tickwork_alone_is_left_alone_too(tmp_path: Path) -> None:
    own = (
        "handler = logging.FileHandler('own.log')\nlogger = logging.getLogger('tickwork')\n"
        "logger.addHandler(handler)\nlogger.setLevel('WARNING')\n"
    )
    up = Up(tmp_path, setup=own)
    assert (tmp_path / "own.log").read_text().startswith("Task failed task=talk")
    assert up.line("Task failed")
    assert "Task started" not in up.err, "the level that the application has set"
    assert up.line("an order came"), "which says nothing of its other loggers"


def test_the_level_is_that_of_the_command_line(tmp_path: Path) -> None:
    up = Up(tmp_path, "--log-level", "warning")
    assert "an order came" not in up.err
    assert "Task started" not in up.err
    assert up.line("Task failed")


def test_up_says_that_it_waits_for_redis(tmp_path: Path) -> None:
    with RedisServer() as server:
        server.kill()
        (tmp_path / "shop.py").write_text(HEAD + f"app = Scheduler({server.url!r})\n")
        command = [sys.executable, "-c", "from tickwork.cli import main; main()", "up", "shop:app"]
        process = subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE, text=True)
        assert process.stderr is not None
        told = next(line for line in process.stderr if "the store cannot be used now" in line)
        server.start()
        back = next(line for line in process.stderr if "the store can be used again" in line)
        assert next(line for line in process.stderr if "this node leads" in line)
        process.send_signal(signal.SIGTERM)
        process.stderr.read()
        assert process.wait(20) == 0
        process.stderr.close()
    assert "WARNING" in told
    assert re.search(r"after \d+\.\d s$", back)


async def test_a_store_of_the_environment_that_is_not_used_is_told(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Commands go by it: they would look elsewhere."""
    monkeypatch.setenv("TICKWORK_STORE", "redis://:secret@host")
    file = f"sqlite:///{tmp_path}/own.db"

    async def told_by(app: Scheduler) -> list[str]:
        caplog.clear()
        async with app:
            return [record.getMessage() for record in caplog.records if "TICKWORK_STORE" in record.getMessage()]

    wanted = f"TICKWORK_STORE=redis://:***@host is not used: the application names {file}"
    assert await told_by(Scheduler(file)) == [wanted]
    assert await told_by(Scheduler(config={"store": file})) == [wanted]
    by_a_flag = Scheduler(file)
    by_a_flag.configure(store="memory://")
    assert await told_by(by_a_flag) == [], "who says --store knows"
    monkeypatch.setenv("TICKWORK_STORE", file)
    assert await told_by(Scheduler(file)) == []
    assert await told_by(Scheduler()) == []
