"""`tickwork` as a process of its own, with an application whose handlers are steered by files."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from tickwork import Scheduler, TaskInfo
from tickwork.host import process_started

SHOP = """
import asyncio, os, pathlib
from tickwork import Scheduler

app = Scheduler({url!r}, scan_interval=0.2, shutdown_timeout={grace}, lease_ttl=30, {options})

@app.task
async def hold(name: str) -> int:
    pathlib.Path(name).write_text(str(os.getpid()))
    while not os.path.exists("go"):
        await asyncio.sleep(0.01)
    return os.getpid()

@app.task
async def who() -> int:
    return os.getpid()
"""


def until(condition: Callable[[], object], what: str = "", timeout: float = 60) -> None:
    deadline = time.monotonic() + timeout
    while not condition():
        assert time.monotonic() < deadline, f"not within {timeout:g} s: {what}"
        time.sleep(0.02)


class Shop:
    """A folder with an application, a client of its store, and the programs that were started in it."""

    def __init__(self, folder: Path, url: str = "", grace: float = 60, options: str = "", more: str = "") -> None:
        self.folder = folder
        self.url = url or f"sqlite:///{folder}/tick.db"
        self.programs: list[Program] = []
        self.write(SHOP.format(url=self.url, grace=grace, options=options) + more)
        self.app = Scheduler(self.url)

    def write(self, text: str, name: str = "shop.py") -> None:
        (self.folder / name).write_text(text)

    def start(self, *args: str, prelude: str = "") -> Program:
        program = Program(self.folder, len(self.programs), *args, prelude=prelude)
        self.programs.append(program)
        return program

    def hold(self, name: str) -> tuple[str, int]:
        """Submit a task that runs until the file `go` is there. Answers its id, and who runs it, once it runs."""
        task = self.app.sync.submit("hold", name).id
        until(lambda: (self.folder / name).exists() and (self.folder / name).read_text(), f"{name} runs")
        return task, int((self.folder / name).read_text())

    def go(self) -> None:
        (self.folder / "go").touch()

    def task(self, task_id: str) -> TaskInfo:
        return self.app.sync.get_task(task_id)

    def close(self) -> None:
        for program in self.programs:
            program.kill()
        self.app.sync.close()


class Program:
    def __init__(self, folder: Path, number: int, *args: str, prelude: str = "") -> None:
        self._err = folder / f"err-{number}.txt"
        environment = {key: value for key, value in os.environ.items() if not key.startswith("TICKWORK_")}
        with self._err.open("w") as err:
            self.process = subprocess.Popen(
                [sys.executable, "-c", f"{prelude}\nfrom tickwork.cli import main; main()", *args],
                cwd=folder, stderr=err, env={**environment, "PYTHONUNBUFFERED": "1"}, start_new_session=True,
            )  # fmt: skip

    @property
    def err(self) -> str:
        return self._err.read_text()

    def lines(self, text: str) -> list[str]:
        return [line for line in self.err.splitlines() if text in line]

    def until(self, text: str, times: int = 1) -> None:
        def found() -> bool:
            enough = len(self.lines(text)) >= times
            assert enough or self.process.poll() is None, self.err
            return enough

        until(found, f"{text}, {times} times")

    def signal(self, number: int) -> None:
        self.process.send_signal(number)

    def wait(self) -> int:
        return self.process.wait(60)

    def kill(self) -> None:
        """Whatever is left of it, and of its children."""
        try:
            os.killpg(self.process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        self.process.wait(60)


def lives(pid: int) -> bool:
    if not process_started(pid):
        return False
    state = Path(f"/proc/{pid}/stat")
    return not state.exists() or state.read_text().rpartition(")")[2].split()[0] != "Z"
