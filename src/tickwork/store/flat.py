"""The parts of a store whose class still has all methods itself."""

from __future__ import annotations

from functools import cached_property
from typing import Any, cast

from tickwork.store.contract import FactLog, Locks, Members, Operators, Queries, Schedules, Tasks

NAMES = {
    "schedules": {
        "put": "put_schedule", "drop": "drop_schedule", "get": "get_schedule", "all": "all_schedules",
        "due": "due_schedules", "change": "set_schedule",
    },
    "locks": {"acquire": "lock", "extend": "extend_lock", "release": "unlock", "holder": "locked"},
    "log": {"read": "events", "last": "last_event"},
}  # fmt: skip


class _Part:
    def __init__(self, store: Any, names: dict[str, str]) -> None:
        self._store = store
        self._names = names

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, self._names.get(name, name))


class Flat:
    @property
    def tasks(self) -> Tasks:
        return cast("Tasks", self)

    @property
    def operators(self) -> Operators:
        return cast("Operators", self)

    @property
    def queries(self) -> Queries:
        return cast("Queries", self)

    @property
    def members(self) -> Members:
        return cast("Members", self)

    @cached_property
    def schedules(self) -> Schedules:
        return cast("Schedules", _Part(self, NAMES["schedules"]))

    @cached_property
    def locks(self) -> Locks:
        return cast("Locks", _Part(self, NAMES["locks"]))

    @cached_property
    def log(self) -> FactLog:
        return cast("FactLog", _Part(self, NAMES["log"]))
