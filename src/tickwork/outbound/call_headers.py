"""Headers that go with every call which leaves during a run, such as those of the trace that the run belongs to.

Whoever knows them, for instance a middleware, adds a source around the run. The executors that call other services ask
all sources at each call.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TypeAlias

Source: TypeAlias = Callable[[], Mapping[str, str]]

_NAME = re.compile(r"[a-z0-9_.-]{1,128}")
_VALUE = re.compile(r"[ -~]{1,8000}")
_sources: ContextVar[tuple[Source, ...]] = ContextVar("tickwork_call_headers", default=())


@contextmanager
def added(source: Source) -> Iterator[None]:
    """Calls in here have the headers of this source too; where two name the same one, the inner source wins."""
    token = _sources.set((*_sources.get(), source))
    try:
        yield
    finally:
        _sources.reset(token)


def current() -> dict[str, str]:
    """The headers for a call that leaves now, with names in lower case. What HTTP and gRPC could not send is left out:
    a task must not fail because of it."""
    sources = _sources.get()
    if not sources:
        return {}
    found = {name.lower(): value for source in sources for name, value in source().items()}
    return {name: value for name, value in found.items() if _NAME.fullmatch(name) and _VALUE.fullmatch(value)}


def with_current(headers: Mapping[str, str]) -> dict[str, str]:
    """These headers and the current ones; what is there already stays, whatever the case of its name."""
    more = current()
    if not more:
        return dict(headers)
    taken = {name.lower() for name in headers}
    return {**headers, **{name: value for name, value in more.items() if name not in taken}}
