"""A store with something around every call of its parts: see `bounded.py` and `observed.py`."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable
from typing import Any

from tickwork.store.contract import PARTS, Store

Method = Callable[..., Awaitable[Any]]
Around = Callable[[str, str, Method], Method]  # from the names of a part and of its method, and the method itself
Blocking = Callable[..., Any]
AroundBlocking = Callable[[Blocking], Blocking]
SUBMIT_BLOCKING = "submit_blocking"  # the only method of a part that works, and is not a coroutine


class Wrapped:
    """Has all that the store has; `around` makes what is called in the place of each coroutine of its parts,
    `around_blocking` that of `submit_blocking`."""

    def __init__(self, store: Store, around: Around, around_blocking: AroundBlocking) -> None:
        self._store = store
        for name in PARTS:
            setattr(self, name, _WrappedPart(name, getattr(store, name), around, around_blocking))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)


class _WrappedPart:
    def __init__(self, name: str, part: Any, around: Around, around_blocking: AroundBlocking) -> None:
        self._name = name
        self._part = part
        self._around = around
        self._around_blocking = around_blocking

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._part, name)
        wrapped: Any
        if name == SUBMIT_BLOCKING:
            wrapped = self._around_blocking(found)
        elif inspect.iscoroutinefunction(found):
            wrapped = self._around(self._name, name, found)
        else:
            return found
        setattr(self, name, wrapped)  # so that it is made once
        return wrapped
