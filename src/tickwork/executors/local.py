"""Runs a handler on the event loop, in a thread, or in a child process."""

from __future__ import annotations

import inspect
from functools import partial
from typing import Any

from msgspec import Raw, msgpack

from tickwork.errors import Abort, Retry, Snooze
from tickwork.executors.calling import OwnLoop, UnfitPayload, arguments_of, encode_result
from tickwork.executors.child import Call
from tickwork.executors.in_child import ChildCall, ChildNote, ChildReply
from tickwork.executors.process import ProcessPool
from tickwork.executors.threads import ThreadPool
from tickwork.handlers.context import LOGGER, TaskContext
from tickwork.handlers.depends import provided
from tickwork.handlers.registry import Entry, Registry
from tickwork.handlers.retrying import asks_for_wait
from tickwork.model.info import TaskResult
from tickwork.outbound import call_headers
from tickwork.store.contract import Grant


class LocalExecutor:
    """The thread and process pools of one worker. When a call is cancelled, its coroutine is cancelled, its thread is
    abandoned, or its process is killed."""

    def __init__(self, registry: Registry, concurrency: int, name: str, max_tasks_per_child: int = 0) -> None:
        self._registry = registry
        self._threads = ThreadPool(concurrency, f"{name}-thread")
        self._processes = ProcessPool(
            concurrency, f"{name}-process", "tickwork.executors.in_child:invoke", max_calls=max_tasks_per_child
        )

    @property
    def leaked(self) -> int:
        return self._threads.leaked

    def resize(self, concurrency: int) -> None:
        """Run so many handlers at a time from now on. Those that run go on."""
        self._threads.resize(concurrency)
        self._processes.resize(concurrency)

    async def warm(self, entries: list[Entry]) -> None:
        """Start a child process ahead of need if a handler runs in one; that takes a fifth of a second."""
        if any(entry.run_in == "process" for entry in entries):
            await self._processes.warm(1)

    async def run(self, task: Grant, entry: Entry | None, context: TaskContext | None) -> TaskResult | bytes | None:
        """The encoded return value. Raises what the handler raised; `UnfitPayload` when it cannot be called. Only a
        handler that takes a context needs one."""
        assert entry is not None, "a worker gives the local executor only tasks that have a handler here"
        spec = task.spec
        if entry.run_in == "process":
            return await self._run_in_process(entry, task, context)
        arguments = arguments_of(entry, self._registry, spec.serializer, spec.payload)
        if entry.dependencies:
            call = entry.call if entry.run_in == "loop" else partial(self._call_in_thread, entry)
            async with provided(entry.dependencies, context) as values:
                value = await call({**arguments, **values}, context)
                return encode_result(entry, value)  # in here: what cannot be stored ends the dependencies by an error
        if entry.run_in == "loop":
            return encode_result(entry, await entry.call(arguments, context))
        return encode_result(entry, await self._call_in_thread(entry, arguments, context))

    async def _call_in_thread(self, entry: Entry, arguments: dict[str, Any], context: TaskContext | None) -> Any:
        if entry.is_async:
            own_loop = OwnLoop(partial(entry.call, arguments, context))
            return await self._threads.run(own_loop.run, stop=own_loop.stop)
        value = await self._threads.run(partial(entry.call, arguments, context))
        # An async function behind a plain decorator is not recognised as one.
        return await value if inspect.isawaitable(value) else value

    async def _run_in_process(
        self, entry: Entry, grant: Grant, context: TaskContext | None
    ) -> TaskResult | bytes | None:
        spec = grant.spec
        body = msgpack.encode(
            ChildCall(
                spec.id, spec.type, grant.attempt, grant.lease.fence, grant.lease.nonce, spec.timeout or 0.0, spec.tags,
                spec.context, spec.payload, spec.serializer, LOGGER.getEffectiveLevel(), spec.queue,
                spec.max_retry or 0, grant.due_at, spec.depends_on, entry.retry_rules is not None,
                asks_for_wait(spec, grant.attempt), self._registry.store_is_swapped, call_headers.current(),
            )
        )  # fmt: skip

        def on_note(data: bytes) -> None:
            if context is not None:
                _take_note(msgpack.decode(data, type=ChildNote), context)

        answer = await self._processes.run(Call(entry.reference, body), on_note=on_note)
        reply = msgpack.decode(answer, type=ChildReply)
        match reply.verdict:
            case "payload" | "damaged":
                raise UnfitPayload(reply.text, is_damaged=reply.verdict == "damaged")
            case "retry":
                raise Retry(reply.seconds, reply.text)
            case "abort":
                raise Abort(reply.text)
            case "snooze":
                raise Snooze(reply.seconds or 0 if reply.until is None else reply.until)
            case "returned":
                return TaskResult(reply.code, reply.text, None if reply.result is None else Raw(reply.result))
        return reply.result

    async def stop(self, grace: float) -> None:
        self._threads.close()
        await self._processes.close()


def _take_note(note: ChildNote, context: TaskContext) -> None:
    if note.progress is not None:
        context._notes.progress(note.progress, note.text)
    for line in note.lines:
        context._notes.line(line)
    if note.log is not None:
        note.log.write()
