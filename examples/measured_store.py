"""A store of your own: it passes every call on to another store and measures it.

Any object with the parts of `tickwork.Store` can be given to a scheduler. That this one keeps the contract is proved in
tests/contract/test_measured_store.py with the suite of `tickwork.testing.contract`; docs/own-store.md says how.

Run me: python examples/measured_store.py
"""

from __future__ import annotations

import asyncio
import inspect
import time
from collections import defaultdict
from typing import Any, cast

from msgspec.structs import replace

from tickwork import Capabilities, Scheduler, Store, make_store
from tickwork.store.contract import PARTS


class MeasuredStore:
    """Has what the other store has; `seconds` are those of all calls, by part and method."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.url = store.url
        self.contact = store.contact
        self.seconds: dict[str, list[float]] = defaultdict(list)
        for name in PARTS:
            setattr(self, name, _MeasuredPart(name, getattr(store, name), self.seconds))

    @property
    def capabilities(self) -> Capabilities:
        # Without submits that block, all calls are coroutines, which are measured below.
        return replace(self._store.capabilities, blocking_submits=False)

    def sibling(self) -> Store:
        """The heart of a node calls from a thread of its own; what it asks is not measured here."""
        return self._store.sibling()

    def __getattr__(self, name: str) -> Any:  # open, close, now, hint
        return getattr(self._store, name)


class _MeasuredPart:
    def __init__(self, name: str, part: Any, seconds: dict[str, list[float]]) -> None:
        self._name = name
        self._part = part
        self._seconds = seconds

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._part, name)
        if not inspect.iscoroutinefunction(method):
            return method

        async def call(*args: Any, **options: Any) -> Any:
            started = time.perf_counter()
            try:
                return await method(*args, **options)
            finally:
                self._seconds[f"{self._name}.{name}"].append(time.perf_counter() - started)

        return call


async def main() -> None:
    store = MeasuredStore(make_store("memory://"))
    app = Scheduler(cast("Store", store))

    @app.task
    async def double(number: int) -> int:
        return 2 * number

    async with app:
        handles = await double.submit_many(range(100))
        print(sum([await handle.result() for handle in handles]))
    for call in ("tasks.submit", "tasks.finish"):
        print(call, "was called", "once" if len(store.seconds[call]) == 1 else "several times")


if __name__ == "__main__":
    asyncio.run(main())
