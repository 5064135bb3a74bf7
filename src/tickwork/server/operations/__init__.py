"""Every operation of the API, once: HTTP routes, gRPC methods, rights and audit entries are all made from this table.

An operation is an async function whose first parameter is the `Call`. Parameters that its path names come from there; a
parameter `body` is what is sent; the others are the query of a URL. The docstring is its documentation.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable
from importlib import import_module
from typing import Any, Literal, TypeVar

from msgspec import Struct

from tickwork.server.callers import Right

Method = Literal["GET", "POST", "PUT", "PATCH", "DELETE"]
F = TypeVar("F", bound=Callable[..., Awaitable[Any]])


class Operation(Struct, frozen=True):
    """One thing that can be asked of the API. `changes` names it in the audit log, and is empty for a question."""

    name: str
    method: Method
    path: str
    right: Right
    run: Callable[..., Awaitable[Any]]
    group: str
    status: int = 200
    changes: str = ""
    media: str = "application/json"

    @property
    def parameters(self) -> dict[str, inspect.Parameter]:
        """Without the call itself; annotations are read."""
        found = inspect.signature(self.run, eval_str=True).parameters
        return {name: each for name, each in found.items() if name != "call"}

    @property
    def answer(self) -> Any:
        return inspect.signature(self.run, eval_str=True).return_annotation

    @property
    def summary(self) -> str:
        return self.documentation.partition("\n")[0].rstrip(".")

    @property
    def documentation(self) -> str:
        return inspect.getdoc(self.run) or ""


GROUPS = (
    "status", "tasks", "bulk", "queues", "schedules", "workers", "dead_letters", "limits", "events", "alerts",
    "reports", "settings", "tokens",
)  # fmt: skip
_table: dict[str, Operation] = {}


def operation(
    method: Method, path: str, right: Right, *, status: int = 200, changes: str = "", media: str = "application/json"
) -> Callable[[F], F]:
    """Add a function to the table under its own name."""

    def add(function: F) -> F:
        group = function.__module__.rpartition(".")[2]
        assert function.__name__ not in _table, function.__name__
        is_question = method == "GET" or function.__name__.startswith("preview_")
        assert bool(changes) != is_question, f"{function.__name__}: a change must be told in the audit log"
        _table[function.__name__] = Operation(
            function.__name__, method, path, right, function, group, status, changes, media
        )
        return function

    return add


def operations() -> dict[str, Operation]:
    """All of them, by name; in the order of the groups, and of the functions in each."""
    for group in GROUPS:
        import_module(f"tickwork.server.operations.{group}")
    ordered = sorted(_table.values(), key=lambda each: (GROUPS.index(each.group), each.run.__code__.co_firstlineno))
    return {each.name: each for each in ordered}
