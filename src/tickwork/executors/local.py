"""Runs a handler of this program: on the event loop, in a thread, or in a child process."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any

from msgspec import Struct, msgpack

from tickwork.context import TaskContext
from tickwork.errors import Abort, PayloadError, Retry, Snooze
from tickwork.executors.child import Call
from tickwork.executors.process import ProcessPool
from tickwork.executors.threads import ThreadPool
from tickwork.handlers import Entry, Registry
from tickwork.store.base import Grant
from tickwork.tracebacks import explained


class UnfitPayload(PayloadError):
    """The handler was not called: its payload cannot be decoded. Not what a handler itself may raise."""


class LocalExecutor:
    """The pools of one worker. A call that is cancelled ends: the coroutine is cancelled, the thread abandoned, the
    process killed."""

    def __init__(self, registry: Registry, concurrency: int, name: str) -> None:
        self._registry = registry
        self._threads = ThreadPool(concurrency, f"{name}-thread")
        self._processes = ProcessPool(concurrency, f"{name}-process", "tickwork.executors.local:invoke_in_child")

    @property
    def leaked(self) -> int:
        return self._threads.leaked

    async def warm(self, entries: list[Entry]) -> None:
        """Have a child ready where one will be needed: the first start takes a fifth of a second."""
        if any(entry.run_in == "process" for entry in entries):
            await self._processes.warm(1)

    async def run(self, entry: Entry, grant: Grant, context: TaskContext | None) -> bytes | None:
        """The encoded return value. Raises what the handler raised; `UnfitPayload` when it cannot be called."""
        spec = grant.spec
        if entry.run_in == "process":
            return await self._run_in_process(entry, grant, context)
        call = entry.bind(_decode(entry, self._registry, spec.serializer, spec.payload), context)
        if entry.run_in == "loop":
            value = await call()
        elif entry.is_async:
            own_loop = _OwnLoop(call)
            value = await self._threads.run(own_loop.run, stop=own_loop.stop)
        else:
            value = await self._threads.run(call)
            if inspect.isawaitable(value):  # an async function behind a plain decorator looks like a blocking one
                value = await value
        return encode_result(entry, value)

    async def _run_in_process(self, entry: Entry, grant: Grant, context: TaskContext | None) -> bytes | None:
        spec = grant.spec
        body = msgpack.encode(
            _ChildCall(
                spec.id, spec.type, grant.attempt, grant.lease.fence, grant.lease.nonce, spec.timeout or 0.0, spec.tags,
                spec.context, spec.payload, spec.serializer,
            )
        )  # fmt: skip

        def on_note(data: bytes) -> None:
            if context is None:
                return
            notes, (value, text, lines) = context._notes, msgpack.decode(data)
            if value is not None:
                notes.progress(value, text)
            for line in lines:
                notes.line(line)

        reply = msgpack.decode(
            await self._processes.run(Call(entry.reference, body), on_note=on_note), type=_ChildReply
        )
        match reply.verdict:
            case "payload":
                raise UnfitPayload(reply.text)
            case "retry":
                raise Retry(reply.seconds, reply.text)
            case "abort":
                raise Abort(reply.text)
            case "snooze":
                raise Snooze(reply.seconds or 0 if reply.until is None else reply.until)
        return reply.result

    async def close(self) -> None:
        self._threads.close()
        await self._processes.close()


def _decode(entry: Entry, registry: Registry, serializer: str, data: bytes) -> Any:
    try:
        return entry.decode(registry.serializer(serializer), data)
    except PayloadError as error:
        raise UnfitPayload(str(error)) from None


def encode_result(entry: Entry, value: Any) -> bytes | None:
    if value is None:
        return None
    try:
        return entry.encode_result(value)
    except PayloadError as error:
        raise Abort(f"the handler ended, but its return value cannot be stored: {error}") from None


class _OwnLoop:
    """An async handler that was asked to run in a thread, or in a process: it gets an event loop of its own there."""

    def __init__(self, call: Callable[[], Any]) -> None:
        self._call = call
        self._running: tuple[asyncio.AbstractEventLoop, asyncio.Task[Any]] | None = None
        self._stopped = False

    def run(self) -> Any:
        return asyncio.run(self._main())

    async def _main(self) -> Any:
        loop, task = asyncio.get_running_loop(), asyncio.current_task()
        assert task is not None
        self._running = loop, task  # before the look at `_stopped`: `stop` does it the other way round
        if self._stopped:
            raise asyncio.CancelledError
        return await self._call()

    def stop(self) -> None:
        """Cancel it, from another thread: a loop that waits for its sockets would not notice an exception."""
        self._stopped = True
        if self._running is not None:
            loop, task = self._running
            with suppress(RuntimeError):  # the loop is closed: it has ended
                loop.call_soon_threadsafe(task.cancel)


class _ChildCall(Struct, frozen=True, array_like=True):
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


class _ChildReply(Struct, frozen=True, array_like=True):
    result: bytes | None = None
    verdict: str = ""
    text: str = ""
    seconds: float | None = None
    until: datetime | None = None


def invoke_in_child(target: object, body: bytes, note: Callable[[bytes], None]) -> bytes:
    """Runs in the child process: decode, call, encode. `target` is what the handler's import path names there."""
    call = msgpack.decode(body, type=_ChildCall)
    entry = getattr(target, "entry", None) or Entry(call.type, target, run_in="process")
    registry: Registry | None = getattr(target, "registry", None)
    context = TaskContext(
        task_id=call.task_id,
        type=call.type,
        attempt=call.attempt,
        fence=call.fence,
        nonce=call.nonce,
        timeout=call.timeout,
        tags=call.tags,
        context=call.context,
        wake=lambda: note(msgpack.encode(context._notes.take())),
    )
    try:
        # A function that no decorator has wrapped does not know its scheduler's own serializers here.
        payload = _decode(entry, registry or Registry(), call.serializer, call.payload)
        bound = entry.bind(payload, context)
        value = _OwnLoop(bound).run() if entry.is_async else bound()
        if inspect.isawaitable(value):
            value = _OwnLoop(lambda: value).run()
        reply = _ChildReply(encode_result(entry, value))
    except UnfitPayload as error:
        reply = _ChildReply(verdict="payload", text=str(error))
    except Retry as error:
        reply = _ChildReply(verdict="retry", text=explained(error, str(error)), seconds=error.after)
    except Abort as error:
        reply = _ChildReply(verdict="abort", text=explained(error, str(error.reason)))
    except Snooze as error:
        moment = error.until
        if isinstance(moment, datetime):
            reply = _ChildReply(verdict="snooze", until=moment.astimezone(UTC))
        else:
            reply = _ChildReply(verdict="snooze", seconds=moment)
    return msgpack.encode(reply)
