"""`run()`: an event loop for a program that does nothing but run a node, and the signals that end it."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from tickwork.client.sync import running_loop
from tickwork.errors import TickworkError
from tickwork.model.facts import Fact
from tickwork.node.forking import HANG_UP, OVER, READY, Upward, stop_signals

if TYPE_CHECKING:
    from tickwork.node.node import Node
    from tickwork.scheduler import Scheduler

LAST_GRACE = 0.5  # seconds for coroutines that are left when the node has ended


def run(app: Scheduler, *, work: bool, lead: bool, parent: Upward | None = None) -> None:
    """Start it and block until SIGINT, SIGTERM or SIGHUP; a second signal gives unfinished work back at once. One of
    several processes is told both by its parent."""
    if running_loop() is not None:
        raise TickworkError(
            "run() makes an event loop of its own, and here one runs already; use `async with app:`, or start() "
            "and shutdown()"
        )
    if threading.current_thread() is not threading.main_thread():
        raise TickworkError(
            "run() waits for signals, which only the main thread gets; elsewhere use app.sync.start() and "
            "app.sync.shutdown()"
        )
    run_loop(_run_until_signalled(app, work, lead, parent))


async def _run_until_signalled(app: Scheduler, work: bool, lead: bool, parent: Upward | None) -> None:
    starting = asyncio.ensure_future(app.start(work=work, lead=lead))
    node: Node | None = None
    stopping = False

    def on_signal(number: int) -> None:
        nonlocal stopping
        running = sum(len(worker.running) for worker in node.workers) if node is not None else 0
        if number == 1:
            stopping = True
            timeout = f"{app.config.shutdown_timeout:g}s"
            app._log.line(logging.INFO, "Task scheduler stopping", running=running, timeout=timeout)
            starting.cancel()  # starting may be waiting for a store that does not answer
        elif node is not None:
            app._log.line(logging.INFO, "Giving back what runs", running=running)
            node.hurry()
        app.stop_soon()

    listen = on_signals if parent is None else parent.listen
    if parent is not None and (most := app.config.max_tasks_per_child):
        _end_after(app, most, parent)
    listen(on_signal)  # before the start, or a signal would end the process while it runs tasks
    try:
        await starting
    except asyncio.CancelledError:
        if not stopping:
            raise
    node = app._node
    if parent is not None and node is not None:
        parent.tell(READY)
    if not stopping:
        await app.wait_stopped()
    await app.shutdown()


def _end_after(app: Scheduler, most: int, parent: Upward) -> None:
    """End this process, in good order, when so many tasks have begun in it. Another one takes its place at once."""
    begun = 0

    def count(_: object) -> None:
        nonlocal begun
        begun += 1
        if begun == most:
            app._log.line(logging.INFO, "Process is replaced", tasks=begun)
            parent.tell(OVER)
            app.stop_soon()

    app._bus.subscribe(count, (Fact.TASK_CLAIMED,))


def on_signals(call: Callable[[int], None]) -> None:
    """Call `call` with 1 at the first signal that asks for a stop, with 2 at the second, and so on."""
    loop, came = asyncio.get_running_loop(), 0

    def count(number: int) -> None:
        nonlocal came
        if number != HANG_UP or not came:  # a terminal that is closed sends it more than once
            came += 1
            call(came)

    for number in stop_signals():
        with contextlib.suppress(NotImplementedError):  # Windows: Ctrl-C arrives as KeyboardInterrupt there
            loop.add_signal_handler(number, count, number)


def run_loop(work: Any) -> None:
    """Like asyncio.run, on uvloop where it is installed. A coroutine that ignores its cancellation does not keep the
    program from ending."""
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
            task._log_destroy_pending = False  # type: ignore[attr-defined]  # the worker has logged it
        if left:
            loop.run_until_complete(asyncio.wait(left, timeout=LAST_GRACE))
        loop.run_until_complete(loop.shutdown_asyncgens())
        asyncio.set_event_loop(None)
        loop.close()
