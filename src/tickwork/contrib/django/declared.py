"""The Django tasks of this process, and what Tickwork may be told of each beside what Django knows."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from tickwork.backoff import Backoff, RetryPolicy
from tickwork.contrib.django.interface import Task
from tickwork.handlers.retrying import Errors

HANDLER_OPTIONS = ("max_retry", "retry", "retry_on", "abort_on", "timeout")


@dataclass(frozen=True, slots=True, kw_only=True)
class TickworkTask(Task):  # type: ignore[misc]
    """A Django task with options of Tickwork: `@task(max_retry=5, timeout=60)`. What is None is left to `OPTIONS`."""

    max_retry: int | None = None
    retry: Backoff | RetryPolicy | None = None
    retry_on: type[BaseException] | Errors | None = None
    abort_on: type[BaseException] | Errors | None = None
    timeout: float | timedelta | None = None

    def handler_options(self) -> dict[str, Any]:
        return {name: value for name in HANDLER_OPTIONS if (value := getattr(self, name)) is not None}


class Declared:
    """Every task that was made for a backend, by alias and path. Django makes a backend for each thread, so this is
    kept beside them."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._tasks: dict[str, dict[str, Any]] = {}

    def add(self, alias: str, task: Any) -> bool:
        """Whether it is new. Django makes a task object anew for each `using`, with the same function."""
        with self._lock:
            known = self._tasks.setdefault(alias, {})
            before = known.get(task.module_path)
            if before is not None and before.func is task.func:
                return False
            known[task.module_path] = task
            return True

    def of(self, alias: str) -> list[Any]:
        with self._lock:
            return list(self._tasks.get(alias, {}).values())


DECLARED = Declared()
