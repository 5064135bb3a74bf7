"""A store whose calls give up after so many seconds: for callers who have somebody waiting."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar, cast

from tickwork.config import SUBMIT_TIMEOUT
from tickwork.errors import StoreFull, StoreUnavailable
from tickwork.model.policy import Durability
from tickwork.model.tasks import Spec
from tickwork.store.contract import Receipt, Store
from tickwork.store.wrapped import Blocking, Method, Wrapped
from tickwork.timeouts import TimeLimit, of_late

SHARE_OF_BLOCKING = 0.25
SUBMITS = (("tasks", "submit"), ("schedules", "put"))
PAUSE = 0.5  # seconds between two tries of a submit that is more patient than the store

T = TypeVar("T")


def bounded(store: Store, seconds: float) -> Store:
    def around(part: str, name: str, method: Method) -> Method:
        async def call(*args: Any, **options: Any) -> Any:
            with StoreTimeLimit(seconds, store.url):
                return await method(*args, **options)

        return call

    def around_blocking(method: Blocking) -> Blocking:
        """If it cannot do it, the call above has as much time as ever, so this one gets only a part of it."""

        def call(spec: Spec, durability: Durability | None = None, limit: float | None = None) -> Receipt | None:
            most = seconds * SHARE_OF_BLOCKING
            receipt: Receipt | None = method(spec, durability, most if limit is None else min(limit, most))
            return receipt

        return call

    return cast("Store", Wrapped(store, around, around_blocking))


class StoreTimeLimit(TimeLimit):
    """Raises `StoreUnavailable` from a block that takes longer; `stated` is what the option says, if that is more."""

    __slots__ = ("_option", "_stated", "_url")

    def __init__(self, seconds: float, url: str, option: str = "store_timeout", stated: float | None = None) -> None:
        super().__init__(seconds, makes_up=True)
        self._url = url
        self._option = option
        self._stated = seconds if stated is None else stated

    def _error(self) -> StoreUnavailable:
        return StoreUnavailable(
            f"the store {self._url} did not answer within {self._stated:g} s ({self._option}){of_late(self.late)}. "
            "Whether the call was carried out is unknown; made again with the same id, a submit is safe"
        )

    def _cause(self, error: BaseException | None) -> None:
        return None


class SubmitLimit:
    """The time of one submit, from its begin, and with the opening of the store. It starts anew with each part of the
    submit that was taken: a long list of tasks is not cut off while the store takes them.

    Where it is longer than the default, what the store could not do in the time that it has by itself is tried again.
    """

    def __init__(self, seconds: float, url: str, began: float | None = None) -> None:
        self._seconds = seconds
        self._url = url
        self._ends_at = (time.monotonic() if began is None else began) + seconds
        self._tries_again = seconds > SUBMIT_TIMEOUT

    async def run(self, call: Callable[[], Awaitable[T]]) -> T:
        while True:
            left = max(self._ends_at - time.monotonic(), 0.0)
            limit = StoreTimeLimit(left, self._url, "submit_timeout", self._seconds)
            try:
                with limit:
                    answer = await call()
            except StoreFull:
                raise
            except StoreUnavailable as error:
                if limit.expired or not self._tries_again:
                    raise
                if time.monotonic() + PAUSE >= self._ends_at:
                    raise StoreUnavailable(f"{error}; tried for {self._seconds:g} s (submit_timeout)") from error
                await asyncio.sleep(PAUSE)
            else:
                self._ends_at = time.monotonic() + self._seconds
                return answer

    def around(self, store: Store) -> Store:
        """The same store, whose submits have only this time."""

        def around(part: str, name: str, method: Method) -> Method:
            if (part, name) not in SUBMITS:
                return method

            async def call(*args: Any, **options: Any) -> Any:
                return await self.run(lambda: method(*args, **options))

            return call

        return cast("Store", Wrapped(store, around, lambda method: method))
