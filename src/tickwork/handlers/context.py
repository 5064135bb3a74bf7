"""What a running handler is given besides its payload."""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, MutableMapping
from datetime import UTC, datetime, timedelta
from functools import cached_property
from typing import Any

import msgspec

from tickwork.clock import to_datetime
from tickwork.ids import run_token
from tickwork.model.policy import Policy
from tickwork.texts import cut

LINE_MAX = 2000
LINES_MAX = Policy().log_lines_max

LOGGER = logging.getLogger("tickwork.task")


def copied(values: Mapping[str, Any]) -> dict[str, Any]:
    """Plain values as they are, in containers of their own."""
    return dict(msgspec.to_builtins(values)) if values else {}


class Notes:
    """Progress and log lines on their way to the store. Filled by the handler's thread, emptied by the worker."""

    def __init__(self, wake: Callable[[], None]) -> None:
        self._lock = threading.Lock()
        self._wake = wake
        self._progress: tuple[float, str] | None = None
        self._lines: deque[str] = deque(maxlen=LINES_MAX)  # a store keeps no more than the last ones

    def progress(self, value: float, text: str) -> None:
        with self._lock:
            self._progress = (value, cut(str(text)))
        self._wake()

    def line(self, text: str) -> None:
        with self._lock:
            self._lines.append(cut(text, LINE_MAX))
        self._wake()

    def take(self) -> tuple[float | None, str, list[str]]:
        with self._lock:
            (value, text), lines = self._progress or (None, ""), list(self._lines)
            self._progress = None
            self._lines.clear()
        return value, text, lines

    def put_back(self, value: float | None, text: str, lines: list[str]) -> None:
        """What could not be written now; progress that was made since is newer."""
        with self._lock:
            if value is not None and self._progress is None:
                self._progress = (value, text)
            self._lines = deque([*lines, *self._lines], maxlen=LINES_MAX)


class TaskLogger(logging.LoggerAdapter[logging.Logger]):
    """The standard logger `tickwork.task` with the task's fields; lines of level INFO and up are kept with the task."""

    def __init__(self, fields: Mapping[str, object], notes: Notes, logger: logging.Logger = LOGGER) -> None:
        super().__init__(logger, dict(fields))
        self._notes = notes

    def log(self, level: int, msg: object, *args: object, **kwargs: Any) -> None:
        if level >= logging.INFO:
            moment = datetime.now(UTC).isoformat(timespec="milliseconds")
            self._notes.line(f"{moment} {logging.getLevelName(level)} {_message(msg, args)}")
        kwargs["stacklevel"] = kwargs.get("stacklevel", 1) + 1
        super().log(level, msg, *args, **kwargs)

    def process(self, msg: Any, kwargs: MutableMapping[str, Any]) -> tuple[Any, MutableMapping[str, Any]]:
        """Beside what the handler says in `extra`, not instead of it."""
        kwargs["extra"] = {**(kwargs.get("extra") or {}), **(self.extra or {})}
        return msg, kwargs


def _message(msg: object, args: tuple[object, ...]) -> str:
    try:
        return logging.LogRecord("", 0, "", 0, msg, args, None).getMessage()
    except Exception:  # a line that cannot be written must not fail the task; the logger itself complains
        return f"{msg} {args}"


class TaskContext:
    """Given to a handler that has a parameter annotated with it."""

    def __init__(
        self,
        *,
        task_id: str,
        type: str,
        attempt: int,
        fence: int,
        nonce: str = "",
        timeout: float,
        tags: Mapping[str, str],
        context: Mapping[str, Any],
        queue: str = "default",
        max_retry: int = 0,
        due_at: int = 0,
        depends_on: tuple[str, ...] = (),
        wake: Callable[[], None] = lambda: None,
        logger: logging.Logger = LOGGER,
        state: Any = None,
    ) -> None:
        self.task_id = task_id
        self.type = type
        self.queue = queue
        self.attempt = attempt
        self.max_retry = max_retry
        self.depends_on = depends_on
        self._due_at = due_at
        self.fence = fence
        self._nonce = nonce
        self._shared_tags = tags
        self._shared_context = context
        self.deadline = datetime.now(UTC) + timedelta(seconds=timeout) if timeout else None
        self._ends_at = time.monotonic() + timeout if timeout else None
        self._stopped_by = ""  # why the run was asked to stop: timeout, cancel, release, lost or fenced
        self._ends_elsewhere = False  # somebody else may end the run, with its token
        self._notes = Notes(wake)
        self._logger = logger
        self.state = state  # what the lifespan of the program has yielded in this process

    @cached_property
    def tags(self) -> Mapping[str, str]:
        """As submitted; a copy, as what the task was given may be shared with others of its type."""
        return dict(self._shared_tags)

    @cached_property
    def context(self) -> Mapping[str, Any]:
        """As submitted; a copy, as `tags` is."""
        return copied(self._shared_context)

    @property
    def scheduled_at(self) -> datetime:
        """The time for which it was submitted: of a schedule's run its tick, whenever it got to run."""
        return to_datetime(self._due_at)

    @property
    def is_last_attempt(self) -> bool:
        """True when no retry follows if this attempt fails."""
        return self.attempt > self.max_retry

    @property
    def logger(self) -> TaskLogger:
        fields = {"task_id": self.task_id, "task_type": self.type, "attempt": self.attempt}
        return TaskLogger(fields, self._notes, self._logger)

    @property
    def token(self) -> str:
        """Proof of holding this run of this task, for `update_task_status`."""
        return run_token(self.task_id, self.fence, self._nonce)

    @property
    def cancelled(self) -> bool:
        """True once the task was cancelled, timed out, or its lease was lost. Long loops should look at it."""
        return bool(self._stopped_by)

    @property
    def remaining(self) -> float | None:
        """Seconds until the timeout, or None when there is none."""
        return None if self._ends_at is None else max(self._ends_at - time.monotonic(), 0.0)

    def progress(self, value: float, note: str = "") -> None:
        """Say how far it is (0 to 1), from any thread; shown within a second, never waits for the store."""
        if not 0 <= value <= 1:
            raise ValueError(f"progress is a number from 0 to 1, not {value}")
        self._notes.progress(float(value), note)
