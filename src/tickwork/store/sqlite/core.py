"""What the parts of the SQLite store share: the threads of the writer and of the reader, and their connections."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from functools import partial, wraps
from typing import Any, Concatenate, ParamSpec, TypeVar

from tickwork.clock import Clock, SystemClock
from tickwork.model.policy import Durability, Policy
from tickwork.observe.loggers import Log
from tickwork.store.contact import Contact
from tickwork.store.hints import Hints
from tickwork.store.sqlite.connection import Reader
from tickwork.store.sqlite.files import Files
from tickwork.store.sqlite.session import Writer
from tickwork.store.sqlite.thread import SqliteThread

P = ParamSpec("P")
R = TypeVar("R")
S = TypeVar("S", bound="Part")


class Core:
    def __init__(self, path: str, namespace: str, policy: Policy, clock: Clock | None, durability: Durability) -> None:
        self.policy = policy
        self.durability = durability
        self.clock = clock or SystemClock()
        self.hints = Hints()
        self.clock.on_change(self.hints.notify_all)
        self.contact = Contact(Log.of(None, "store.sqlite"))
        self.files = Files(path)
        self.writer = Writer(self.files, namespace, policy, self.clock, self.hints, durability, self.contact)
        self.reader = Reader(self.files, namespace, self.contact)
        self.write = SqliteThread("tickwork-sqlite-writer", self.writer, path, self.contact)
        self.read = SqliteThread("tickwork-sqlite-reader", self.reader, path, self.contact)

    def now(self) -> int:
        return self.clock.now()


class Part:
    """`tx` may be used by methods that run on the writer's thread, `reader` by those on the reader's."""

    def __init__(self, core: Core) -> None:
        self._core = core
        self.tx = core.writer
        self.reader = core.reader

    def now(self) -> int:
        return self._core.clock.now()


def writes(method: Callable[Concatenate[S, P], R]) -> Callable[Concatenate[S, P], Coroutine[Any, Any, R]]:
    """A method that runs on the writer's thread, inside its transaction, offered as a coroutine."""

    @wraps(method)
    async def call(self: S, /, *args: P.args, **kwargs: P.kwargs) -> R:
        return await self._core.write.call(partial(method, self, *args, **kwargs))

    return call


def writes_small(method: Callable[Concatenate[S, P], R]) -> Callable[Concatenate[S, P], Coroutine[Any, Any, R]]:
    """As `writes`, for work of some tens of microseconds, which the event loop may do itself when it comes alone."""

    @wraps(method)
    async def call(self: S, /, *args: P.args, **kwargs: P.kwargs) -> R:
        return await self._core.write.call_small(partial(method, self, *args, **kwargs))

    return call


def reads(method: Callable[Concatenate[S, P], R]) -> Callable[Concatenate[S, P], Coroutine[Any, Any, R]]:
    """A method that runs on the reader's thread, offered as a coroutine."""

    @wraps(method)
    async def call(self: S, /, *args: P.args, **kwargs: P.kwargs) -> R:
        return await self._core.read.call(partial(method, self, *args, **kwargs))

    return call
