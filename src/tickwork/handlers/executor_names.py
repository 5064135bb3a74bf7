"""The names of the executors that a program knows, and the task types that need no handler because one runs them."""

from __future__ import annotations

from collections.abc import Container, Iterable

from tickwork.errors import ConfigError
from tickwork.ids import is_name
from tickwork.texts import shown

LOCAL = "local"  # the executor that runs handlers in this process and its children
CALLING = ("grpc", "http")  # those of which `target` says whom they call


class ExecutorNames:
    def __init__(self) -> None:
        self._known = {LOCAL}
        self.run_by: dict[str, str] = {}  # type -> the executor that runs it; these types have no handler here
        self._targets: dict[str, frozenset[str]] = {}  # of those that are configured with targets

    def add(
        self, name: str, types: Iterable[str], handled: Container[str], targets: Iterable[str] | None = None
    ) -> None:
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
        if targets is not None:
            self._targets[name] = frozenset(targets)

    def remove(self, name: str) -> None:
        """What a configuration has named, and the next one may name anew."""
        self._known.discard(name)
        self._targets.pop(name, None)
        self.run_by = {kind: other for kind, other in self.run_by.items() if other != name}

    def check(self, name: str, target: str | None = None, type: str = "") -> None:
        """Whether tasks of this type may name this executor, and this target of it. The target of a local one is a
        worker, which only the store knows."""
        self.check_name(name)
        known = self._targets.get(name)
        if known is None or target in known or (target is None and self.run_by.get(type) == name):
            return
        which = "needs a target" if target is None else f"has no target {shown(target)}"
        raise ConfigError(f"executor {name!r} {which}; known are {', '.join(sorted(known))}")

    def check_name(self, name: str) -> None:
        if name not in self._known:
            how = "Configure its targets first" if name in CALLING else "Register it first, with app.executors.register"
            raise ConfigError(f"unknown executor {shown(name)}; known are {', '.join(self.list())}. {how}")

    def check_handler(self, type: str, options: dict[str, str]) -> None:
        """Whether a handler may be registered for this type, with these options."""
        if type in self.run_by:
            raise ConfigError(
                f"tasks of type {type!r} are run by executor {self.run_by[type]!r}, which was registered with this "
                "type; leave out the type there to declare a handler"
            )
        if "target" in options:
            self.check(options.get("executor", LOCAL), options["target"])
        elif "executor" in options:  # its target may be said with each submission
            self.check_name(options["executor"])

    def list(self) -> list[str]:
        return sorted(self._known)
