"""A store whose calls give up after so many seconds: for callers who have somebody waiting."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, cast

from tickwork.errors import StoreUnavailable
from tickwork.model.policy import Durability
from tickwork.model.tasks import Spec
from tickwork.store.contract import Receipt, Store
from tickwork.store.wrapped import Blocking, Method, Wrapped

SHARE_OF_BLOCKING = 0.25


def bounded(store: Store, seconds: float) -> Store:
    def around(part: str, name: str, method: Method) -> Method:
        async def call(*args: Any, **options: Any) -> Any:
            async with within(seconds, store.url):
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
