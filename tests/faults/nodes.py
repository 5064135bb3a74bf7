"""Nodes in processes of their own, which a test kills."""

from __future__ import annotations

import json
import signal
import sys
from pathlib import Path
from subprocess import Popen
from typing import Any

from tests.support.redis.process import spawn
from tests.support.waiting import wait_until

PROGRAM = Path(__file__).with_name("outbound_node.py")
PATIENCE = 100.0  # seconds; on an idle machine all of it is over within a few


class Nodes:
    """By name, which is the id of their scheduler."""

    def __init__(self, folder: Path, **options: Any) -> None:
        self._folder = folder
        self._options = options
        self._processes: dict[str, Popen[bytes]] = {}

    def start(self, *names: str) -> None:
        for name in names:
            options = json.dumps({**self._options, "scheduler_id": name})
            command = [sys.executable, str(PROGRAM), options]
            self._processes[name] = spawn(command, self._folder, self._folder / f"{name}.log")

    def kill(self, name: str) -> None:
        process = self._processes.pop(name)
        process.send_signal(signal.SIGKILL)
        process.wait()

    def stop(self) -> None:
        for name in list(self._processes):
            self.kill(name)

    async def until(self, condition: Any, what: str) -> None:
        try:
            await wait_until(condition, PATIENCE, what)
        except AssertionError as error:
            raise AssertionError(f"{error}\n{self.logs()}") from None

    def logs(self) -> str:
        return "\n".join(f"--- {path.name}\n{path.read_text()[-3000:]}" for path in sorted(self._folder.glob("*.log")))
