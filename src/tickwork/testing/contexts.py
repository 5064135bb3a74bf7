"""`make_context`: a `TaskContext` for a handler that a test calls itself."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from tickwork.clock import to_millis
from tickwork.handlers.context import Notes, TaskContext
from tickwork.handlers.options import aware, wait_limit


def make_context(
    *,
    task_id: str = "test",
    type: str = "test",
    queue: str = "default",
    attempt: int = 1,
    max_retry: int = 0,
    timeout: float | timedelta | None = None,
    scheduled_at: datetime | None = None,
    depends_on: tuple[str, ...] = (),
    tags: Mapping[str, str] | None = None,
    context: Mapping[str, Any] | None = None,
    state: Any = None,
    fence: int = 1,
) -> RecordingContext:
    """A context as a worker would give it, for a handler that a test calls itself.

        ctx = make_context(attempt=3, max_retry=2)
        await import_rows(ctx, path)
        assert ctx.reported == [(0.5, "half"), (1.0, "")]

    `state` is what the lifespan would have yielded, `scheduled_at` is now if it is not given. `timeout` only sets
    `deadline` and `remaining`: nothing stops the handler.
    """
    due = datetime.now(UTC) if scheduled_at is None else aware("scheduled_at", scheduled_at)
    return RecordingContext(
        task_id=task_id,
        type=type,
        queue=queue,
        attempt=attempt,
        max_retry=max_retry,
        timeout=0.0 if timeout is None else wait_limit("timeout", timeout),
        due_at=to_millis(due),
        depends_on=tuple(depends_on),
        tags=tags or {},
        context=context or {},
        state=state,
        fence=fence,
    )


class RecordingContext(TaskContext):
    """A `TaskContext` that keeps what the handler has reported."""

    def __init__(self, **values: Any) -> None:
        super().__init__(**values)
        self._notes: _KeptNotes = _KeptNotes()

    @property
    def reported(self) -> list[tuple[float, str]]:
        """Each progress that the handler has told, with its note, the oldest first."""
        return list(self._notes.kept_progress)

    @property
    def lines(self) -> list[str]:
        """The lines of `ctx.logger` that a task would keep, level and text, the oldest first: `INFO 3 rows`."""
        return list(self._notes.kept_lines)

    def cancel(self) -> None:
        """Let `ctx.cancelled` be true, as after a cancel or a timeout."""
        self._stopped_by = "cancel"


class _KeptNotes(Notes):
    def __init__(self) -> None:
        super().__init__(lambda: None)
        self.kept_progress: list[tuple[float, str]] = []
        self.kept_lines: list[str] = []

    def progress(self, value: float, text: str) -> None:
        self.kept_progress.append((value, text))

    def line(self, text: str) -> None:
        _, _, told = text.partition(" ")  # without the time
        self.kept_lines.append(told)
