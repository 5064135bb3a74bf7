"""The workers of a random history: a process for each slot, which is hurt by plan and replaced when it is gone."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from typing import Any

from tests.faults.history import History
from tests.faults.random_plan import SLOTS
from tests.faults.random_stores import Place
from tests.faults.redis_faults import ROOT, until
from tests.support.pages import fetch
from tests.support.redis.process import spawn
from tests.support.scrapes import Scrape

END_WITHIN = 20.0  # seconds from SIGTERM to the end; it may be stopped, or cut off from the store
STRANGER = 2  # the slot of a machine of its own: nobody else can see that its process is gone


class Slots:
    def __init__(self, place: Place, history: History, options: Mapping[str, Any]) -> None:
        self._place = place
        self._history = history
        self._options = options
        self.log = place.folder / "workers.log"
        self._members: dict[int, subprocess.Popen[bytes]] = {}
        self._meant_to_end: set[int] = set()
        self._stopped: set[int] = set()

    async def start(self) -> None:
        for slot in range(SLOTS):
            self._hire(slot)
        await self.all_up()

    async def all_up(self) -> None:
        await until(self._are_up, 30, lambda: f"the workers to be up; they say:\n{self.said()}")

    def _are_up(self) -> bool:
        known = {line["pid"] for line in self._history.lines() if line["what"] == "up"}
        return all(member.poll() is None and member.pid in known for member in self._members.values())

    def _hire(self, slot: int) -> None:
        command = [sys.executable, "-m", "tests.faults.random_worker", self._place.url_of(slot)]
        options = {**self._options, "stranger": slot == STRANGER}
        self._members[slot] = spawn([*command, str(self._history.path), json.dumps(options)], ROOT, self.log)

    def pid(self, slot: int) -> int:
        return self._members[slot].pid

    def slot_of(self, pid: int) -> int | None:
        return next((slot for slot, member in self._members.items() if member.pid == pid), None)

    async def pages(self) -> dict[str, Scrape]:
        """The metrics of each node."""
        pids = {member.pid for member in self._members.values()}
        up = [line for line in self._history.lines() if line["what"] == "up" and line["pid"] in pids]
        return {line["node"]: Scrape((await fetch(line["metrics"])).body) for line in up}

    def said(self) -> str:
        return self.log.read_text()[-3000:] if self.log.exists() else "(nothing)"

    # --- what happens to them

    async def kill(self, slot: int) -> None:
        member = self._members[slot]
        self._meant_to_end.add(member.pid)
        at = time.time()
        member.kill()
        await self._replace(slot, member, at)

    async def end(self, slot: int) -> None:
        """SIGTERM: it lets its handlers end, and gives back what does not."""
        member = self._members[slot]
        self._meant_to_end.add(member.pid)
        member.send_signal(signal.SIGTERM)
        try:
            await asyncio.to_thread(member.wait, END_WITHIN)
        except subprocess.TimeoutExpired:
            self._history.write("hung", victim=member.pid)
            member.kill()
        await self._replace(slot, member)

    async def stop(self, slot: int, seconds: float) -> None:
        member = self._members[slot]
        if member.pid in self._stopped or member.poll() is not None:
            return
        at = time.time()
        self._stopped.add(member.pid)
        member.send_signal(signal.SIGSTOP)
        await asyncio.sleep(seconds)
        self._stopped.discard(member.pid)
        if member.poll() is None:
            member.send_signal(signal.SIGCONT)
        self._history.write("fault", kind="stop", victim=member.pid, at=at, till=time.time())

    async def _replace(self, slot: int, member: subprocess.Popen[bytes], at: float | None = None) -> None:
        code = await asyncio.to_thread(member.wait)
        self._history.write("gone", victim=member.pid, code=code, at=at or time.time())
        if self._members[slot] is member:
            self._hire(slot)

    async def watch(self) -> None:
        """Replace those that end without having been told to, and write that down."""
        while True:
            for slot, member in list(self._members.items()):
                if member.poll() is not None and member.pid not in self._meant_to_end:
                    self._meant_to_end.add(member.pid)
                    self._history.write("deserted", victim=member.pid, code=member.returncode)
                    await self._replace(slot, member)
            await asyncio.sleep(0.05)

    def close(self) -> None:
        for member in self._members.values():
            if member.poll() is None:
                os.kill(member.pid, signal.SIGCONT)
                member.kill()
            member.wait()
