"""Lifespan: what a program sets up before its first task and ends after the last one."""

from __future__ import annotations

import asyncio
import inspect
import time
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from functools import partial
from typing import Any, TypeAlias, TypeVar

from tickwork.errors import ConfigError, TickworkError
from tickwork.observe.loggers import Log
from tickwork.texts import shown

Hook = TypeVar("Hook", bound=Callable[[], Any])
Context: TypeAlias = Callable[[Any], AbstractAsyncContextManager[Any]]

PATIENCE_MIN = 1.0  # seconds that each function has at least to end


class Lifespan:
    """What was declared for one scheduler, and its state while it is started.

    It has a coroutine of its own, since a context manager must be left where it was entered: `start` and `stop` may be
    called from anywhere on the same event loop.
    """

    def __init__(self, app: Any = None, context: Context | None = None) -> None:
        if context is not None and not callable(context):
            raise ConfigError(f"lifespan must be a function of the scheduler, not {shown(context)}")
        self.context = context
        self._app = app
        self._startup: list[Callable[[], Any]] = []
        self._shutdown: list[Callable[[], Any]] = []
        self._life: _Life | None = None

    def on_startup(self, function: Hook) -> Hook:
        self._startup.append(_checked("on_startup", function))
        return function

    def on_shutdown(self, function: Hook) -> Hook:
        self._shutdown.append(_checked("on_shutdown", function))
        return function

    @property
    def is_declared(self) -> bool:
        return self.context is not None or bool(self._startup or self._shutdown)

    @property
    def state(self) -> Any:
        """What the context manager has yielded; None while it is not started."""
        return None if self._life is None else self._life.state

    async def start(self, who: str, log: Log, patience: float, on_end: Callable[[], None] = lambda: None) -> None:
        """Raises `TickworkError` if a function fails; what was started is ended then. `who` cannot go on without it.
        `on_end` is called if the context manager ends before `stop`."""
        if not self.is_declared:
            return
        context = None if self.context is None else (self.context, self._app)
        self._life = _Life(context, list(self._startup), list(self._shutdown), log, max(patience, PATIENCE_MIN))
        try:
            await self._life.start(who, on_end)
        except TickworkError:  # then it has ended by itself
            self._life = None
            raise

    async def stop(self) -> None:
        """End what was started. Errors are logged, and the rest is ended all the same."""
        life, self._life = self._life, None
        if life is not None:
            await life.stop()

    def forget(self) -> None:
        """In the child of a fork: it goes on in the parent only."""
        self._life = None


class _Life:
    """One run of a lifespan, from its start to its end."""

    def __init__(
        self,
        context: tuple[Context, Any] | None,
        startup: list[Callable[[], Any]],
        shutdown: list[Callable[[], Any]],
        log: Log,
        patience: float,
    ) -> None:
        self.state: Any = None
        self._context, self._startup, self._shutdown = context, startup, shutdown
        self._log, self._patience = log, patience
        self._entered: AbstractAsyncContextManager[Any] | None = None
        self._step = ""  # what is being called
        self._has_started = False  # a function of `startup` has ended
        self._stopping = False
        self._ready: asyncio.Future[None]
        self._end: asyncio.Event
        self._task: asyncio.Task[None]

    async def start(self, who: str, on_end: Callable[[], None]) -> None:
        loop = asyncio.get_running_loop()
        self._ready, self._end = loop.create_future(), asyncio.Event()
        self._task = loop.create_task(self._live(who, on_end), name="lifespan")
        await asyncio.wait([self._task, self._ready], return_when=asyncio.FIRST_COMPLETED)
        if self._ready.done():
            self._ready.result()
        else:
            await self._task

    async def stop(self) -> None:
        if self._task.get_loop() is not asyncio.get_running_loop():
            self._log.warning("the event loop of the lifespan was closed without a shutdown(), so it was not ended")
            return
        self._stopping = True
        if self._ready.done():
            self._end.set()
        else:
            self._task.cancel()
        await asyncio.wait([self._task])

    async def _live(self, who: str, on_end: Callable[[], None]) -> None:
        error: BaseException | None = None
        try:
            await self._begin()
            self._ready.set_result(None)
            await self._end.wait()
        except BaseException as raised:  # also SystemExit, which would end the event loop and leave the rest open
            error = raised
        if error is not None and not self._ready.done() and not self._stopping:
            failure = TickworkError(f"{who}, as {self._step} raised {type(error).__name__}: {error}")
            failure.__cause__ = error
            await self._finish(None)
            self._ready.set_exception(failure)
            return
        await self._finish(None if self._stopping else error)
        if not self._stopping:
            self._log.error("the lifespan ended before the scheduler was shut down", exc_info=error)
            on_end()

    async def _begin(self) -> None:
        if self._context is not None:
            make, app = self._context
            self._step = f"its lifespan {_name(make)}"
            entered = make(app)
            if not isinstance(entered, AbstractAsyncContextManager):
                raise TypeError(
                    f"it gave {shown(entered)} instead of an async context manager; decorate it with "
                    "@contextlib.asynccontextmanager"
                )
            self.state = await entered.__aenter__()
            self._entered = entered
        for function in self._startup:
            self._step = f"its on_startup function {_name(function)}"
            await _call(function)
            self._has_started = True

    async def _finish(self, error: BaseException | None) -> None:
        """In the reverse order. The context manager is told of an error only if that came from inside of it."""
        deadline = time.monotonic() + self._patience
        if self._ready.done() or self._has_started:
            for function in reversed(self._shutdown):
                await self._try_to_end(f"on_shutdown function {_name(function)}", partial(_call, function), deadline)
        if self._entered is not None and self._context is not None:
            entered, kind = self._entered, None if error is None else type(error)
            name = f"lifespan {_name(self._context[0])}"
            await self._try_to_end(name, lambda: entered.__aexit__(kind, error, None), deadline)

    async def _try_to_end(self, name: str, call: Callable[[], Awaitable[Any]], deadline: float) -> None:
        try:
            async with asyncio.timeout(max(deadline - time.monotonic(), PATIENCE_MIN)) as limit:
                await call()
        except BaseException as error:
            why = "did not end in time" if limit.expired() else "failed at its end"
            self._log.error("%s %s; the rest is ended all the same", name, why, exc_info=error)


async def _call(function: Callable[[], Any]) -> None:
    result = function()
    if inspect.isawaitable(result):
        await result


def _name(function: Any) -> str:
    name = getattr(function, "__qualname__", None) or type(function).__qualname__
    return f"{getattr(function, '__module__', '?')}.{name}"


def _checked(what: str, function: Hook) -> Hook:
    if not callable(function):
        raise ConfigError(f"app.{what} takes a function, not {shown(function)}")
    needed = [each.name for each in inspect.signature(function).parameters.values()
              if each.default is each.empty and each.kind not in (each.VAR_POSITIONAL, each.VAR_KEYWORD)]  # fmt: skip
    if needed:
        raise ConfigError(
            f"app.{what}: {_name(function)} must be callable without arguments, but it needs {needed[0]!r}"
        )
    return function
