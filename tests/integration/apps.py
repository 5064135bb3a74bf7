"""Short hands for tests that drive whole schedulers."""

from __future__ import annotations

import asyncio
import inspect
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol

from tickwork import FixedDelay, Scheduler, Status
from tickwork.store.contract import Store

ROOT = Path(__file__).parents[2]

# Everything is quick, and nothing depends on it being so: tests wait for conditions.
FAST: dict[str, Any] = {
    "lease_ttl": 3.0,
    "renew_interval": 0.5,
    # Longer than any pause of a busy machine, or there are more elections than a test counts.
    "leader_lease_ttl": 30.0,
    "leader_renew_interval": 0.2,
    "scan_interval": 0.2,
    "retry": FixedDelay(0.01),
    "shutdown_timeout": 2.0,
    "timeout": 10.0,
}


SOON_LED: dict[str, Any] = {"leader_lease_ttl": 1.0}  # for nodes that are killed while they lead


class Make(Protocol):
    def __call__(self, store: str | None = None, **options: Any) -> Scheduler: ...


async def eventually(look: Callable[[], Any], timeout: float = 10, what: str = "") -> Any:
    """What `look()` (or its coroutine) gives, once that is true; fails the test if it is not within `timeout`."""
    deadline = time.monotonic() + timeout
    while True:
        found = look()
        if inspect.isawaitable(found):
            found = await found
        if found:
            return found
        if time.monotonic() > deadline:
            raise AssertionError(f"not within {timeout:g} s: {what or inspect.getsource(look).strip()}")
        await asyncio.sleep(0.005)


async def statuses(app: Scheduler) -> dict[str, int]:
    return (await app.status()).tasks


async def status_of(app: Scheduler, task_id: str) -> Status:
    return (await app.get_task(task_id)).status


async def facts(app: Scheduler, task_id: str) -> list[str]:
    return [event.kind for event in await app.events.read(task_id=task_id)]


async def store_of(app: Scheduler) -> Store:
    return await app._open()


class Gate:
    """Counts how many are inside at once, and holds them until it is opened. For handlers on the loop."""

    def __init__(self) -> None:
        self.entered = 0
        self.inside = 0
        self.most = 0
        self._open = asyncio.Event()

    def open(self) -> None:
        self._open.set()

    async def pass_through(self) -> None:
        self.entered += 1
        self.inside += 1
        self.most = max(self.most, self.inside)
        try:
            await self._open.wait()
        finally:
            self.inside -= 1


class Child:
    """A Python program beside the test that says one word a line; killed at the end if it is still there."""

    def __init__(self, module: str, *args: str) -> None:
        environ = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONUNBUFFERED": "1"}
        self.process = subprocess.Popen(
            [sys.executable, "-m", module, *args],
            stdout=subprocess.PIPE, stdin=subprocess.PIPE, text=True, env=environ, cwd=ROOT,
        )  # fmt: skip

    async def line(self, timeout: float = 20) -> str:
        assert self.process.stdout is not None
        return (await asyncio.wait_for(asyncio.to_thread(self.process.stdout.readline), timeout)).strip()

    async def expect(self, *words: str) -> str:
        found = await self.line()
        assert found.split(" ")[0] in words, f"the child said {found!r} instead of {words}"
        return found

    async def stop(self) -> int:
        """SIGTERM, and the exit status."""
        self.process.send_signal(signal.SIGTERM)
        return await asyncio.to_thread(self.process.wait, 15)

    async def kill(self) -> None:
        self.process.kill()
        await asyncio.to_thread(self.process.wait, 15)

    def __enter__(self) -> Child:
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait(15)
        for pipe in (self.process.stdout, self.process.stdin):
            if pipe is not None:
                pipe.close()


def doubling(url: str, **options: Any) -> Scheduler:
    """With one handler, for tests that only submit."""
    app = Scheduler(url, **{**FAST, **options})

    @app.task
    def double(n: int) -> int:
        return 2 * n

    return app


def hold_claims(app: Scheduler, kind: str) -> tuple[asyncio.Event, asyncio.Event]:
    """Hold up the answer to a claim that brings a task of this type. The first event is set when one has come; set the
    second to let it go on."""
    arrived, go_on = asyncio.Event(), asyncio.Event()
    tasks: Any = app._store.tasks

    def slowly(call: Callable[..., Any]) -> Callable[..., Any]:
        async def slow(*args: Any) -> Any:
            found = await call(*args)
            if found is not None and any(grant.spec.type == kind for grant in found.grants):
                arrived.set()
                await go_on.wait()
            return found

        return slow

    tasks.claim = slowly(tasks.claim)
    if app.capabilities.standing_claims:
        tasks.stand = slowly(tasks.stand)
    return arrived, go_on
