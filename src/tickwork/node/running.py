"""A program that runs a node and nothing else: its event loop, and the signals that end it."""

from __future__ import annotations

import asyncio
import contextlib
import signal
from collections.abc import Callable
from typing import Any

LAST_GRACE = 0.5  # for coroutines that are left when all else has ended


def on_signals(call: Callable[[int], None]) -> None:
    """From now on call with 1 at the first SIGINT or SIGTERM, with 2 at the second, and so on."""
    loop, came = asyncio.get_running_loop(), 0

    def count() -> None:
        nonlocal came
        came += 1
        call(came)

    for number in (signal.SIGINT, signal.SIGTERM):
        with contextlib.suppress(NotImplementedError):  # Windows: Ctrl-C arrives as KeyboardInterrupt there
            loop.add_signal_handler(number, count)


def run_loop(work: Any) -> None:
    """asyncio.run, on uvloop where it is installed; but what ignores its cancellation does not hold the program."""
    factory: Callable[[], asyncio.AbstractEventLoop] = asyncio.new_event_loop
    try:
        import uvloop
    except ImportError:
        pass
    else:
        factory = uvloop.new_event_loop
    runner = asyncio.Runner(loop_factory=factory)
    try:
        runner.run(work)
    finally:
        loop = runner.get_loop()
        left = asyncio.all_tasks(loop)
        for task in left:
            task.cancel()
            task._log_destroy_pending = False  # type: ignore[attr-defined]  # the worker has told of it
        if left:
            loop.run_until_complete(asyncio.wait(left, timeout=LAST_GRACE))
        loop.run_until_complete(loop.shutdown_asyncgens())
        asyncio.set_event_loop(None)
        loop.close()
