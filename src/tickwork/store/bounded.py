"""A store whose calls give up after so many seconds: for callers who have somebody waiting."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any, cast

from tickwork.errors import StoreUnavailable
from tickwork.store.contract import PARTS, Store


def bounded(store: Store, seconds: float) -> Store:
    return cast("Store", _Bounded(store, seconds))


@asynccontextmanager
async def within(seconds: float, url: str) -> AsyncIterator[None]:
    limit = asyncio.timeout(seconds)
    try:
        async with limit:
            yield
    except TimeoutError:
        if not limit.expired():
            raise
        raise StoreUnavailable(
            f"the store {url} did not answer within {seconds:g} s (store_timeout). Whether the call was carried out is "
            "unknown; made again with the same id, a submit is safe"
        ) from None


class _Bounded:
    """Has all that the store has; each coroutine of its parts has a limit here."""

    def __init__(self, store: Store, seconds: float) -> None:
        self._store = store
        for name in PARTS:
            setattr(self, name, _BoundedPart(getattr(store, name), seconds, store.url))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)


class _BoundedPart:
    def __init__(self, part: Any, seconds: float, url: str) -> None:
        self._part = part
        self._seconds = seconds
        self._url = url

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._part, name)
        if not inspect.iscoroutinefunction(found):
            return found
        limited = self._limit(found)
        setattr(self, name, limited)  # so that it is made once
        return limited

    def _limit(self, method: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
        async def call(*args: Any, **kwargs: Any) -> Any:
            async with within(self._seconds, self._url):
                return await method(*args, **kwargs)

        return call
