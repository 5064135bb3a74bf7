"""One call of a handler in a child process: the messages from and to the parent, and the call itself."""

from __future__ import annotations

import asyncio
import contextvars
import functools
import inspect
import logging
import math
import os
from collections.abc import Awaitable, Callable
from contextlib import ExitStack
from datetime import UTC, datetime
from typing import Any

from msgspec import Struct, msgpack

from tickwork.errors import Abort, Retry, Snooze
from tickwork.executors.calling import OwnLoop, UnfitPayload, arguments_of, encode_result
from tickwork.executors.child import Judged, at_end
from tickwork.handlers.context import LOGGER, TaskContext
from tickwork.handlers.depends import provided
from tickwork.handlers.registry import Entry, Registry
from tickwork.model.info import TaskResult
from tickwork.observe.loggers import Log
from tickwork.observe.tracebacks import explained, story
from tickwork.texts import storable

END_TIME = 1.5  # seconds for the end of a lifespan; the parent waits two for the end of the process
# Attributes that every log record has; others were added by the handler.
STANDARD = frozenset([*logging.makeLogRecord({}).__dict__, "message", "asctime", "taskName"])


class ChildCall(Struct, frozen=True, array_like=True):
    task_id: str
    type: str
    attempt: int
    fence: int
    nonce: str
    timeout: float
    tags: dict[str, str]
    context: dict[str, Any]
    payload: bytes
    serializer: str
    log_level: int  # lowest level of `ctx.logger` that the parent writes
    queue: str = "default"
    max_retry: int = 0
    due_at: int = 0
    depends_on: tuple[str, ...] = ()
    decides: bool = False  # the child says whether an error is worth a retry, by the rules of the handler
    asks: bool = False  # and asks its function when that comes
    store_is_swapped: bool = False  # a test has put another store in the place of the scheduler's own
    headers: dict[str, str] = {}  # for middleware in the child: what a call to another service would have


class ChildReply(Struct, frozen=True, array_like=True):
    result: bytes | None = None
    verdict: str = ""
    text: str = ""
    seconds: float | None = None
    until: datetime | None = None
    code: int = 0


class LogLine(Struct, frozen=True, array_like=True):
    level: int
    text: str
    created: float
    path: str
    number: int
    function: str
    traceback: str | None
    process: int
    extra: dict[str, Any]

    def write(self) -> None:
        """In the parent: pass the line to its log handlers."""
        fields = {
            **self.extra,
            "name": LOGGER.name,
            "msg": self.text,
            "levelno": self.level,
            "levelname": logging.getLevelName(self.level),
            "created": self.created,
            "msecs": math.floor(self.created % 1 * 1000),
            "pathname": self.path,
            "filename": os.path.basename(self.path),
            "module": os.path.splitext(os.path.basename(self.path))[0],
            "lineno": self.number,
            "funcName": self.function,
            "exc_text": self.traceback,
            "process": self.process,
        }
        if LOGGER.isEnabledFor(self.level):
            LOGGER.handle(logging.makeLogRecord(fields))


class ChildNote(Struct, frozen=True, array_like=True):
    progress: float | None = None
    text: str = ""
    lines: list[str] = []
    log: LogLine | None = None


def invoke(target: object, body: bytes, note: Callable[[bytes], None]) -> bytes:
    """In the child: decode the payload, call the handler, encode the result. `target` is the object of the handler's
    reference."""
    call = msgpack.decode(body, type=ChildCall)
    entry, registry = _entry_of(target, call.type)
    registry.store_is_swapped = call.store_is_swapped
    runner = _started(registry) if registry.lifespan.is_declared else None
    context = TaskContext(
        task_id=call.task_id,
        type=call.type,
        attempt=call.attempt,
        fence=call.fence,
        nonce=call.nonce,
        timeout=call.timeout,
        tags=call.tags,
        context=call.context,
        queue=call.queue,
        max_retry=call.max_retry,
        due_at=call.due_at,
        depends_on=call.depends_on,
        wake=lambda: note(msgpack.encode(ChildNote(*context._notes.take()))),
        logger=_logger_of_parent(call.log_level, note),
        state=registry.lifespan.state,
    )
    try:
        arguments = arguments_of(entry, registry, call.serializer, call.payload)
        with ExitStack() as around:
            for middleware in registry.middleware.in_child:
                around.enter_context(middleware.in_child(context, call.headers))
            value = _called(entry, arguments, context, runner)
        result = encode_result(entry, value)
        if isinstance(result, TaskResult):
            data = None if result.data is None else bytes(result.data)
            reply = ChildReply(data, "returned", result.message, code=result.code)
        else:
            reply = ChildReply(result)
    except (UnfitPayload, Retry, Abort, Snooze) as verdict:
        reply = _reply_of(verdict)
    except BaseException as error:
        if not call.decides or entry.retry_rules is None:
            raise
        decision = entry.retry_rules.decide(error, call.attempt - 1, call.asks)
        raise Judged(error, msgpack.encode(decision)) from None
    return msgpack.encode(reply)


def _called(entry: Entry, arguments: dict[str, Any], context: TaskContext, runner: asyncio.Runner | None) -> Any:
    value = _with_dependencies(entry, arguments, context) if entry.dependencies else entry.call(arguments, context)
    if not inspect.isawaitable(value):
        return value
    return OwnLoop(lambda: value).run() if runner is None else _run_on(runner, value)


async def _with_dependencies(entry: Entry, arguments: dict[str, Any], context: TaskContext) -> Any:
    async with provided(entry.dependencies, context) as values:
        value = entry.call({**arguments, **values}, context)
        return await value if inspect.isawaitable(value) else value


@functools.cache
def _started(registry: Registry) -> asyncio.Runner:
    """The event loop of this process, with the lifespan of the program started on it. Async handlers run on it too, as
    what the lifespan has made belongs to its loop."""
    runner = asyncio.Runner()
    try:
        start = registry.lifespan.start("this child process cannot run tasks", Log.of(None, "lifespan"), END_TIME)
        _run_on(runner, start)
    except BaseException:
        runner.close()
        raise
    at_end(functools.partial(_end, registry, runner))
    return runner


def _end(registry: Registry, runner: asyncio.Runner) -> None:
    with runner:
        _run_on(runner, registry.lifespan.stop())


def _run_on(runner: asyncio.Runner, work: Awaitable[Any]) -> Any:
    async def main() -> Any:
        return await work

    # A copy, or context variables of one call would be seen by the next one.
    return runner.run(main(), context=contextvars.copy_context())


@functools.cache
def _entry_of(target: Any, type: str) -> tuple[Entry, Registry]:
    """The handler and its registry. A plain function, without `@app.task`, gets an empty registry, so that serializers
    of its scheduler are not known here."""
    if hasattr(target, "entry"):
        return target.entry, target.registry
    return Entry(type, target, run_in="process"), Registry()


def _reply_of(verdict: UnfitPayload | Retry | Abort | Snooze) -> ChildReply:
    """The reply for an exception that decides how the task goes on. Its arguments may be of any type."""
    match verdict:
        case UnfitPayload():
            return ChildReply(verdict="damaged" if verdict.is_damaged else "payload", text=storable(str(verdict)))
        case Retry():
            text = storable(explained(verdict, _text(verdict)))
            return ChildReply(verdict="retry", text=text, seconds=_seconds(verdict.after))
        case Abort():
            return ChildReply(verdict="abort", text=storable(explained(verdict, _text(verdict.reason))))
        case Snooze(until=datetime() as moment):
            return ChildReply(verdict="snooze", until=moment.astimezone(UTC))
        case Snooze():
            return ChildReply(verdict="snooze", seconds=_seconds(verdict.until) or 0.0)


def _text(value: object) -> str:
    try:
        return str(value)
    except Exception as broken:
        return f"(its str() raised {type(broken).__name__})"


def _seconds(value: object) -> float | None:
    return float(value) if isinstance(value, int | float) else None


def _logger_of_parent(level: int, note: Callable[[bytes], None]) -> logging.Logger:
    logger = logging.Logger(LOGGER.name, level)
    logger.addHandler(_ToParent(note))
    return logger


class _ToParent(logging.Handler):
    def __init__(self, note: Callable[[bytes], None]) -> None:
        super().__init__()
        self._note = note

    def emit(self, record: logging.LogRecord) -> None:
        try:
            self._note(msgpack.encode(ChildNote(log=_line_of(record))))
        except Exception:  # as handlers of the standard library do: a log line must not fail the task
            self.handleError(record)


def _line_of(record: logging.LogRecord) -> LogLine:
    error = record.exc_info[1] if record.exc_info else None
    extra = {name: _plain(value) for name, value in record.__dict__.items() if name not in STANDARD}
    return LogLine(
        record.levelno, storable(record.getMessage()), record.created, storable(record.pathname), record.lineno,
        record.funcName or "", None if error is None else story(error), os.getpid(), extra,
    )  # fmt: skip


def _plain(value: object) -> object:
    return value if value is None or isinstance(value, bool | int | float) else storable(_text(value))
