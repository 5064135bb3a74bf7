"""Handlers that run in child processes, which find them by import."""

from __future__ import annotations

import asyncio
import functools
import json
import os
import signal
import sys
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tickwork import Abort, Retry, Scheduler, Snooze, TaskContext, TaskResult

app = Scheduler("memory://")


class Quit(BaseException):
    """Not an Exception."""


class Gone(Abort):
    def __init__(self, code: int) -> None:
        self.code = code


class Later(Retry):
    def __init__(self, code: int) -> None:
        self.code = code


class Unspeakable:
    def __str__(self) -> str:
        raise ValueError("no text")


@app.task(run_in="process")
def decorated(ctx: TaskContext, n: int, text: str = "x") -> dict[str, Any]:
    ctx.progress(0.5, "half")
    ctx.logger.info("in process %s", text)
    return {"n": n, "pid": os.getpid(), "id": ctx.task_id, "attempt": ctx.attempt, "tags": dict(ctx.tags)}


def look(ctx: TaskContext) -> list[Any]:
    return [ctx.queue, ctx.max_retry, ctx.is_last_attempt, ctx.scheduled_at.isoformat(), list(ctx.depends_on)]


def partly(left: int) -> TaskResult:
    return TaskResult(206, f"{left} were left out", {"left": left} if left else None)


def greet(name: str = "you") -> str:
    return name


def plainly(function: Callable[..., Any]) -> Callable[..., Any]:
    """A decorator that is not made for coroutines."""

    @functools.wraps(function)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        return function(*args, **kwargs)

    return wrapper


@plainly
async def behind_a_decorator(n: int) -> int:
    await asyncio.sleep(0)
    return n


def who() -> int:
    return os.getpid()


async def who_async() -> int:
    await asyncio.sleep(0)
    return os.getpid()


def spin(path: str) -> None:
    """Say who we are, then keep the processor busy for ever."""
    announce(path)
    while True:
        pass


def hold(path: str) -> int:
    """Say who we are, then wait until the file is gone."""
    announce(path)
    while Path(path).exists():
        time.sleep(0.005)
    return os.getpid()


class Broken(Exception):
    """An error with a name of its own."""


def load(how: str) -> None:
    """Fails as a layer of an application does, with a reason below."""
    try:
        json.loads("{}")["the missing key"]
    except KeyError as error:
        match how:
            case "abort":
                raise Abort("cannot be loaded") from error
            case "retry":
                raise Retry(0.01, "cannot be loaded now") from error
        broken = Broken("could not load")
        broken.add_note("while loading orders")
        raise broken from error


async def load_async(how: str) -> None:
    load(how)


def announce(path: str) -> None:
    draft = Path(f"{path}.draft")
    draft.write_text(str(os.getpid()))
    draft.rename(path)


def die(how: str) -> None:
    match how:
        case "segfault":
            os.kill(os.getpid(), signal.SIGSEGV)
        case "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        case "exit":
            os._exit(7)
        case "exit 0":
            os._exit(0)
    time.sleep(60)


def fail(how: str) -> None:
    match how:
        case "SystemExit":
            sys.exit(3)
        case "KeyboardInterrupt":
            raise KeyboardInterrupt
        case "Quit":
            raise Quit("base")
        case "retry":
            raise Retry(0.01, "not yet")
        case "abort":
            raise Abort("never")
        case "abort with a number":
            raise Abort(404)  # type: ignore[arg-type]
        case "abort with a surrogate":
            raise Abort("no file \udc80")
        case "abort without text":
            raise Abort(Unspeakable())  # type: ignore[arg-type]
        case "own abort":
            raise Gone(404)
        case "own retry":
            raise Later(503)
        case "snooze":
            raise Snooze(3600)
        case "snooze until":
            raise Snooze(datetime(2100, 1, 1, tzinfo=UTC))
        case "surrogate":
            raise FileNotFoundError("name \udcff")
        case "result":
            return object()  # type: ignore[return-value]
    raise ValueError(how)


class Shouting:
    """A serializer of one's own."""

    name = "shouting"

    def encode(self, value: Any) -> bytes:
        return str(value).upper().encode()

    def decode(self, data: bytes, type: Any = Any) -> Any:
        return data.decode()


@app.task(run_in="process", serializer=Shouting())
def shouted(text: str) -> str:
    return text


def plain(text: str) -> str:
    return text


@app.task(run_in="process", max_retry=0)
def submits(ctx: TaskContext) -> str:
    return app.sync.submit("decorated", {"n": 1}).id


def talk(ctx: TaskContext) -> None:
    ctx.logger.debug("whispered")
    ctx.logger.info("said %d", 1, extra={"mood": "calm"})
    try:
        raise LookupError("lost \udc80")
    except LookupError:
        ctx.logger.warning("shouted", exc_info=True)


class Service:
    def method(self, n: int) -> int:
        return n

    @classmethod
    def class_method(cls, n: int) -> str:
        return f"{cls.__name__} {n}"


def again() -> int:
    return 1


first_again = again


def again() -> int:  # type: ignore[no-redef]
    return 2
