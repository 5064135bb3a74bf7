"""The functions of a remote worker, and what they are given."""

from __future__ import annotations

import asyncio
import contextvars
import inspect
import time
import typing
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import msgspec
from msgspec import UNSET

from tickwork.payload.depth import TOO_DEEP, is_deep_json
from tickwork.remote.protocol import Completed, ExecuteCall, Failed, Later

Function = Callable[..., Any]


class CallFailed(Exception):
    """Raised by a handler to fail a run with exactly this text; `retry=False` says that no other run can succeed."""

    def __init__(self, error: str, *, retry: bool = True, retry_after: float | None = None) -> None:
        super().__init__(error)
        self.error = error
        self.retry = retry
        self.retry_after = retry_after


class UnfitPayload(Exception):
    """The payload is not of the type that the handler declares."""


class RemoteCall:
    """One run of one task, for a handler that has a second parameter."""

    def __init__(self, call: ExecuteCall, trace: Mapping[str, str] | None = None) -> None:
        self.id = call.id
        self.type = call.type
        self.attempt = call.attempt
        self.namespace = call.namespace
        self.worker_id = call.worker_id
        self.tags = call.tags
        self.context = call.context
        self.trace = dict(trace or {})  # the headers of the caller's trace; they are not signed
        self.token = call.token
        self.callback_url = call.callback_url
        self.deadline = call.deadline
        self.timeout = call.timeout
        self._ends_at = None if call.timeout is None else time.monotonic() + call.timeout
        self._cancelled = False

    @property
    def cancelled(self) -> bool:
        """True once the run was cancelled, or its time is over. Functions in threads, and those that go on after
        `Later`, should look at it."""
        return self._cancelled or (self.remaining is not None and self.remaining <= 0)

    @property
    def remaining(self) -> float | None:
        """Seconds until the run is over, or None when it has no end."""
        return None if self._ends_at is None else max(self._ends_at - time.monotonic(), 0.0)


class Handler:
    """A function of `payload`, or of `payload` and a `RemoteCall`; the payload becomes what its parameter declares."""

    def __init__(self, type: str, function: Function) -> None:
        self.function = function
        self._is_async = inspect.iscoroutinefunction(function)
        names = [
            each.name
            for each in inspect.signature(function).parameters.values()
            if each.kind in (each.POSITIONAL_ONLY, each.POSITIONAL_OR_KEYWORD)
        ]
        if len(names) not in (1, 2):
            raise TypeError(
                f"the function for {type!r} takes a payload, and perhaps a RemoteCall; not {len(names)} values"
            )
        self._takes_call = len(names) == 2
        self._decoder = msgspec.json.Decoder(typing.get_type_hints(function).get(names[0], Any))

    def payload(self, call: ExecuteCall) -> Any:
        if call.payload is UNSET:
            return None
        try:
            return self._decoder.decode(call.payload)
        except msgspec.MsgspecError as error:
            raise UnfitPayload(str(error)) from None

    def start(
        self, payload: Any, call: RemoteCall, threads: ThreadPoolExecutor, freed: Callable[[], None]
    ) -> asyncio.Future[Any]:
        """Call the function. `freed` is called when it has really ended: a thread may go on after a cancel."""
        arguments = (payload, call) if self._takes_call else (payload,)
        if self._is_async:
            task: asyncio.Future[Any] = asyncio.ensure_future(self.function(*arguments))
            task.add_done_callback(lambda _: freed())
            return task
        loop = asyncio.get_running_loop()
        thread = threads.submit(contextvars.copy_context().run, self.function, *arguments)
        thread.add_done_callback(lambda _: None if loop.is_closed() else loop.call_soon_threadsafe(freed))
        return asyncio.wrap_future(thread)


def encoded_end(value: Any, limit: int) -> bytes:
    """The body of the answer for what a function has returned. What cannot be said is a failure for good."""
    end = value if isinstance(value, Completed | Failed | Later) else Completed(value)
    try:
        body = msgspec.json.encode(end)
    except (TypeError, ValueError, msgspec.MsgspecError, RecursionError) as error:
        return msgspec.json.encode(Failed(f"the result cannot be written as JSON: {error}", retry=False))
    if len(body) > limit:
        text = f"the result has {len(body):,} bytes, the limit is {limit:,}: return a reference to it instead"
        return msgspec.json.encode(Failed(text, retry=False))
    if is_deep_json(body):
        return msgspec.json.encode(Failed(f"the result cannot be sent: {TOO_DEEP}", retry=False))
    return body
