"""Calling a handler, in this process or in a child: decoding its payload and encoding its return value."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from msgspec import Raw

from tickwork.errors import Abort, PayloadError
from tickwork.handlers.registry import Entry, Registry
from tickwork.model.info import TaskResult
from tickwork.payload.codec import JSON, reason
from tickwork.payload.parameters import DamagedPayload
from tickwork.texts import cut


class UnfitPayload(PayloadError):
    """The payload cannot be decoded for this handler, so the handler was not called."""

    def __init__(self, text: str, *, is_damaged: bool = False) -> None:
        super().__init__(text)
        self.is_damaged = is_damaged  # no version of the handler could read it


def arguments_of(entry: Entry, registry: Registry, serializer: str, data: bytes) -> dict[str, Any]:
    """The arguments with which to call the handler."""
    parameters = entry.parameters
    if not data and serializer in parameters.readers and not parameters.required:
        return {}
    try:
        return parameters.readers[serializer](data)
    except Exception:  # the payload is stored in another form, or does not fit; the slower ways below find out which
        pass
    try:
        return parameters.bare_readers[serializer](data)
    except Exception:
        pass
    try:
        return parameters.decode(registry.serializer(serializer), data)
    except PayloadError as error:
        raise UnfitPayload(str(error), is_damaged=isinstance(error, DamagedPayload)) from None


def encode_result(entry: Entry | None, value: Any) -> bytes | TaskResult | None:
    """The return value as JSON. A `TaskResult` stays one, with its data as `Raw` JSON."""
    if value is None:
        return None
    encode = JSON.encode if entry is None else entry.encode_result
    if type(value) is TaskResult:
        return encode_task_result(value, encode)
    try:
        return encode(value)
    except Exception as error:
        raise _not_storable(error) from None


def encode_task_result(value: TaskResult, encode: Callable[[Any], bytes] = JSON.encode) -> TaskResult:
    """The same with its data as `Raw` JSON, or None. Raises `Abort` if it cannot be stored."""
    if type(value.code) is not int or not -(2**31) <= value.code < 2**31:
        raise Abort("the handler ended, but the code of a TaskResult must be a whole number of 32 bits")
    if isinstance(value.data, TaskResult):
        raise Abort("the handler ended, but a TaskResult cannot have another one as its data")
    data = value.data
    if data is not None and type(data) is not Raw:
        try:
            data = Raw(encode(data))
        except Exception as error:
            raise _not_storable(error) from None
    return TaskResult(value.code, cut(str(value.message)), data)


def _not_storable(error: Exception) -> Abort:
    return Abort(f"the handler ended, but its return value cannot be stored: {reason(JSON, error)}")


class OwnLoop:
    """Runs an async handler in a thread or a child process, on a new event loop."""

    def __init__(self, call: Callable[[], Any]) -> None:
        self._call = call
        self._running: tuple[asyncio.AbstractEventLoop, asyncio.Task[Any]] | None = None
        self._stopped = False

    def run(self) -> Any:
        return asyncio.run(self._main())

    async def _main(self) -> Any:
        loop, task = asyncio.get_running_loop(), asyncio.current_task()
        assert task is not None
        # Set before `_stopped` is read; `stop` does it in the other order, so that neither misses the other.
        self._running = loop, task
        if self._stopped:
            raise asyncio.CancelledError
        return await self._call()

    def stop(self) -> None:
        """Cancel the handler from another thread. An exception raised in its thread would not interrupt a loop that
        waits for sockets."""
        self._stopped = True
        if self._running is not None:
            loop, task = self._running
            with suppress(RuntimeError):  # the loop is closed, so the handler has ended
                loop.call_soon_threadsafe(task.cancel)
