"""The names of the executors that a program knows, and the task types that need no handler because one runs them."""

from __future__ import annotations

from collections.abc import Container, Iterable

from tickwork.errors import ConfigError
from tickwork.ids import is_name
from tickwork.texts import shown

LOCAL = "local"  # the executor that runs handlers in this process and its children


class ExecutorNames:
    def __init__(self) -> None:
        self._known = {LOCAL}
        self.run_by: dict[str, str] = {}  # type -> the executor that runs it; these types have no handler here

    def add(self, name: str, types: Iterable[str], handled: Container[str]) -> None:
        """`handled` are the types that have a handler."""
        if name in self._known:
            raise ConfigError(f"an executor {name!r} is registered already")
        run_by = dict.fromkeys(types, name)
        for kind in run_by:
            if not is_name(kind):
                raise ConfigError(
                    f"executor {name!r}: task type {shown(kind)} must be 1 to 128 letters, digits or ._:@-"
                )
            if kind in handled or kind in self.run_by:
                other = f"executor {self.run_by[kind]!r}" if kind in self.run_by else "a handler"
                raise ConfigError(f"executor {name!r} cannot run tasks of type {kind!r}: {other} does that")
        self._known.add(name)
        self.run_by.update(run_by)

    def check(self, name: str) -> None:
        if name not in self._known:
            raise ConfigError(
                f"unknown executor {shown(name)}; known are {', '.join(self.list())}. Register it first, with "
                "app.executors.register"
            )

    def check_handler(self, type: str, options: dict[str, str]) -> None:
        """Whether a handler may be registered for this type, with these options."""
        if type in self.run_by:
            raise ConfigError(
                f"tasks of type {type!r} are run by executor {self.run_by[type]!r}, which was registered with this "
                "type; leave out the type there to declare a handler"
            )
        if "executor" in options:
            self.check(options["executor"])

    def list(self) -> list[str]:
        return sorted(self._known)
