"""`run`: an application's own scheduler, on a store in memory for as long as a test."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AsyncExitStack
from types import TracebackType
from typing import TYPE_CHECKING, Any, cast

from msgspec.structs import replace

from tickwork.model.tasks import Spec
from tickwork.store.contract import Durability, Hint, Receipt, Store
from tickwork.store.opening import make_store
from tickwork.store.wrapped import Blocking, Method, Wrapped

if TYPE_CHECKING:
    from tickwork.clock import Clock
    from tickwork.scheduler import Scheduler

FOR_EVER = 100 * 365 * 86_400.0  # seconds; a test that travels far must still find what has ended on the way


def run(app: Scheduler, *, clock: Clock | None = None, start: bool = True) -> Run:
    """Run an application's own scheduler on an empty store in memory, whatever store it names, and put that back.

        async with run(shop.app, clock=ManualClock()) as app:
            await shop.place_order(7)
            await drain(app)

    With `start=False` nothing is run: tasks are only taken, so that a test can look at what was `submitted`. Tests
    without an event loop write `with run(shop.app) as app:`; the worker is on the thread of `app.sync` then, and
    `app.sync.run(drain(app))` waits for it.
    """
    return Run(app, clock, start)


class Run:
    """What `run` gives, for `async with` and for `with`."""

    def __init__(self, app: Scheduler, clock: Clock | None, start: bool) -> None:
        self._app = app
        self._clock = clock
        self._start = start
        self._stack = AsyncExitStack()

    async def __aenter__(self) -> Scheduler:
        app = self._app
        config = replace(app.config, durability="memory", partitions=1, retention=FOR_EVER)
        store = _of_any_durability(make_store("memory://", config, self._clock))
        async with AsyncExitStack() as stack:
            stack.enter_context(app._on_store(store, self._clock))
            stack.push_async_callback(app.shutdown)
            if self._start:
                await app.start()
            self._stack = stack.pop_all()
        return app

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._stack.aclose()

    def __enter__(self) -> Scheduler:
        return self._app.sync.run(self.__aenter__())

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._app.sync.run(self._stack.aclose())


def _of_any_durability(store: Store) -> Store:
    """A store in memory gives no durability, but the code under test may ask for that of its real store."""

    def around(part: str, name: str, method: Method) -> Method:
        if (part, name) != ("tasks", "submit"):
            return method

        async def submit(
            specs: list[Spec], durability: Durability | None = None, waiter: Hint | None = None
        ) -> Sequence[Receipt]:
            return cast("list[Receipt]", await method(specs, None, waiter))

        return submit

    def around_blocking(method: Blocking) -> Blocking:
        return method

    wrapped: Any = Wrapped(store, around, around_blocking)
    return cast("Store", wrapped)
