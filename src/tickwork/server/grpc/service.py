"""Answers calls: every method of the table by the same few steps.

A call is let in, and its right is checked, before its message is read at all. So methods are served as if they took a
stream of requests, of which one is read: on the wire that is the same as one request, but the server decides when to
read it, and a stranger cannot make it hold 32 MiB.

A change goes on when its caller hangs up or runs out of time, since gRPC would cancel it half way, after the store has
changed and before the audit log says so.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import grpc
import grpc.aio

from tickwork.errors import TickworkError
from tickwork.server.callers import Caller
from tickwork.server.grpc.codec import Codec
from tickwork.server.grpc.gate import address_of, knock_of, namespace_of, read_metadata
from tickwork.server.grpc.health import HEALTH, Context, Health
from tickwork.server.grpc.shapes import Method, Protocol
from tickwork.server.grpc.statuses import INTERNAL, STOPPING, told
from tickwork.server.grpc.stream import event_frames
from tickwork.server.http.guard import BATCH_MAX, BODY_MAX, BODY_SECONDS
from tickwork.server.http.streams import FAMILIES, LOOK_AGAIN, frames
from tickwork.server.operations import Operation
from tickwork.server.plane import ControlPlane
from tickwork.server.problems import Problem, Refused, problem_of
from tickwork.texts import shown

LARGE = ("submit_tasks",)  # whose requests may be larger
HEALTH_MAX = 1000  # bytes of a request
AGAIN = 0.02  # seconds

Answer = Callable[[Context], Awaitable[bytes]]
Stream = Callable[[Context], Awaitable[None]]


class Service(grpc.GenericRpcHandler):
    """Finds the handler of a method by its path. `stop` ends its streams and waits for its changes."""

    def __init__(self, plane: ControlPlane, protocol: Protocol) -> None:
        self._plane = plane
        self._codec = Codec(protocol)
        self._health = Health(plane)
        self._changes: set[asyncio.Task[Any]] = set()
        self._streams: set[asyncio.Task[Any]] = set()
        self._stopping = False
        self._handlers = {each.path: self._handler(each) for each in protocol.methods.values()}
        self._handlers[f"/{HEALTH}/Check"] = self._answering("health", self._check_health)
        self._handlers[f"/{HEALTH}/Watch"] = self._streaming("health", self._watch_health)

    def service(self, handler_call_details: grpc.HandlerCallDetails) -> grpc.RpcMethodHandler[Any, Any] | None:
        return self._handlers.get(handler_call_details.method)

    async def stop(self, grace: float) -> None:
        """From now on streams are told that they are over. One may miss that it is cancelled, as `wait_for` of Python
        3.11 forgets it when what it waits for comes at the same time; so they are told until they have heard it."""
        self._stopping = True
        for _ in range(round(grace / AGAIN)):
            if not self._streams:
                break
            for task in self._streams:
                task.cancel()
            await asyncio.sleep(AGAIN)
        if self._changes:
            await asyncio.wait(list(self._changes), timeout=grace)

    # --- methods

    def _handler(self, method: Method) -> grpc.RpcMethodHandler[Any, Any]:
        if method.streams:
            return self._streaming(method.name, lambda context: self._follow(method, context))
        return self._answering(method.name, lambda context: self._call(method, context))

    async def _call(self, method: Method, context: Context) -> bytes:
        operation = method.operation
        caller, namespace = await self._let_in(operation, context)
        data = await _read(context, BATCH_MAX if operation.name in LARGE else BODY_MAX)
        arguments = self._codec.arguments(method, data)
        doing = self._plane.perform(operation, caller, namespace, arguments)
        return self._codec.answer(method, await (self._to_the_end(doing) if operation.changes else doing))

    async def _let_in(self, operation: Operation, context: Context) -> tuple[Caller, str | None]:
        """Who may not do it learns nothing of what is wrong with the request."""
        plane, peer = self._plane, context.peer()
        metadata = read_metadata(_metadata(context), plane.settings)
        caller = await plane.let_in(knock_of(peer, metadata, plane.is_proxy(address_of(peer))))
        namespace = namespace_of(metadata)
        await plane.admit(operation, caller, namespace)
        return caller, namespace

    async def _to_the_end(self, doing: Awaitable[Any]) -> Any:
        task = asyncio.ensure_future(doing)
        self._changes.add(task)
        task.add_done_callback(self._ended)
        return await asyncio.shield(task)

    def _ended(self, task: asyncio.Task[Any]) -> None:
        self._changes.discard(task)
        if not task.cancelled():
            task.exception()  # whoever waited has it; nobody may have waited

    # --- streams

    async def _follow(self, method: Method, context: Context) -> None:
        caller, namespace = await self._let_in(method.operation, context)
        given = self._codec.arguments(method, await _read(context, BODY_MAX))
        topics: list[str] = given.get("topics", [])
        for name in topics:
            if name not in FAMILIES:
                raise Refused(400, "bad_topic", f"{shown(name)} is no topic; known are {', '.join(sorted(FAMILIES))}")
        space = self._plane.space(namespace, caller)
        found = frames(self._plane, space, caller, topics, given.get("task"), given.get("after"))
        try:
            async for frame in found:
                for each in event_frames(frame):
                    await self._send(context, self._codec.answer(method, each), caller)
        finally:
            await found.aclose()  # type: ignore[attr-defined]
        await self._check_caller(caller)
        raise Refused(503, STOPPING.code, STOPPING.detail)

    async def _send(self, context: Context, data: bytes, caller: Caller) -> None:
        """To one who reads slowly too: while that takes its time, the token may be revoked."""
        writing = asyncio.ensure_future(context.write(data))
        try:
            while not (await asyncio.wait({writing}, timeout=LOOK_AGAIN))[0]:
                await self._check_caller(caller)
            await writing
        finally:
            writing.cancel()

    async def _check_caller(self, caller: Caller) -> None:
        if not await self._plane.is_still_in(caller):
            raise Refused(401, "bad_token", "this token is not known any more")

    # --- health

    async def _check_health(self, context: Context) -> bytes:
        read_metadata(_metadata(context), self._plane.settings)
        return await self._health.check(await _read(context, HEALTH_MAX))

    async def _watch_health(self, context: Context) -> None:
        read_metadata(_metadata(context), self._plane.settings)
        await self._health.watch(await _read(context, HEALTH_MAX), context)

    # --- whatever is called

    def _answering(self, name: str, run: Answer) -> grpc.RpcMethodHandler[Any, Any]:
        async def answer(_: Any, context: Context) -> bytes:
            try:
                return await run(context)
            except Exception as error:
                if context.done():
                    raise asyncio.CancelledError from None  # the caller has left, so nobody is told
                problem = self._problem(name, error)
            await context.abort(*told(problem))
            raise AssertionError("abort() raises")

        return grpc.stream_unary_rpc_method_handler(answer)

    def _streaming(self, name: str, run: Stream) -> grpc.RpcMethodHandler[Any, Any]:
        async def stream(_: Any, context: Context) -> None:
            task = asyncio.current_task()
            assert task is not None
            self._streams.add(task)
            try:
                await run(context)
                return
            except asyncio.CancelledError:
                if not self._stopping or context.done():
                    raise  # the caller has left
                while task.uncancel():
                    pass
                problem = STOPPING
            except Exception as error:
                if context.done():
                    raise asyncio.CancelledError from None
                problem = self._problem(name, error)
            finally:
                self._streams.discard(task)
            await context.abort(*told(problem))

        return grpc.stream_stream_rpc_method_handler(stream)

    def _problem(self, name: str, error: Exception) -> Problem:
        if isinstance(error, TickworkError):
            return problem_of(error)
        self._plane.log.error("a gRPC call of %s failed", name, exc_info=error)
        return INTERNAL


def _metadata(context: Context) -> list[tuple[str, str | bytes]]:
    return [(key, value) for key, value in context.invocation_metadata() or ()]


async def _read(context: Any, most: int) -> bytes:
    """The one message of a call."""
    try:
        async with asyncio.timeout(BODY_SECONDS):
            data = await context.read()
    except TimeoutError:
        raise Refused(408, "too_slow", f"a request must arrive within {BODY_SECONDS:g} s") from None
    if data is grpc.aio.EOF:
        raise Refused(400, "cut_short", "the call has no message")
    if len(data) > most:
        raise Refused(413, "too_large", f"a request has at most {most:,} bytes here")
    found: bytes = data
    return found
