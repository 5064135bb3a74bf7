"""Runs tasks by calling remote workers over HTTP: see `docs/remote-workers.md`."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import msgspec
from msgspec import UNSET, Raw

from tickwork.client.results import POLL, POLL_MAX, until_look
from tickwork.errors import Abort, ConfigError, ExecutorError, PayloadError, Retry, Snooze, StoreUnavailable
from tickwork.executors.base import EndedElsewhere
from tickwork.executors.remote_calls import Called, Caller, Replied
from tickwork.handlers.context import TaskContext
from tickwork.handlers.registry import Entry, Registry
from tickwork.model.info import TaskResult
from tickwork.model.tasks import Status
from tickwork.observe.loggers import Log
from tickwork.outbound.answers import NOT_NOW, PAUSE_MAX, pause_of
from tickwork.outbound.client import AnswerRefused
from tickwork.payload.codec import JSON
from tickwork.remote.protocol import (
    EXECUTE,
    CompletedRaw,
    ExecuteCall,
    Failed,
    Later,
    Unfit,
    decoded_answer,
    plain,
    refusal_text,
    request_id_of,
)
from tickwork.store.contract import Grant, Store
from tickwork.store.hints import Hint

NO_LIMIT = 7 * 86_400.0  # seconds of a call whose task has no timeout
GONE_SECONDS = 1.0  # until a task is given to another worker
LATE = 5.0  # seconds after the timeout of the task, which ends the call first
CANCEL_SECONDS = 2.0  # for a worker to take a cancel
CANCEL_WAIT = 0.4  # seconds of them for which a run waits that was stopped: a shutdown gives no more


class RemoteExecutor:
    """Calls the remote worker for which a task was claimed.

    `find` answers a worker that is online; in `store` the end of a task is seen that a worker reports later.
    """

    def __init__(
        self,
        caller: Caller,
        registry: Registry,
        namespace: str,
        find: Callable[[str], Called | None],
        store: Store,
        callback_url: str | None = None,
        log: Log | None = None,
    ) -> None:
        self._caller = caller
        self._registry = registry
        self._namespace = namespace
        self._find = find
        self._store = store
        self._callback_url = callback_url
        self._log = log or Log.of(None, "remote")
        self._cancels: set[asyncio.Task[None]] = set()

    async def run(self, task: Grant, entry: Entry | None, context: TaskContext) -> TaskResult:
        worker = self._find(task.worker_id)
        if worker is None:  # it has left since it was given this task
            raise Snooze(GONE_SECONDS)
        body = self._body(task, context, worker.id)
        try:
            remaining = context.remaining
            replied = await self._caller.send(
                worker, "POST", EXECUTE, body, request_id=request_id_of(context.token),
                timeout=NO_LIMIT if remaining is None else remaining + LATE,
            )  # fmt: skip
            later = _is_later(replied)
            if later:
                await self._reported(task, context)
        except asyncio.CancelledError:
            await asyncio.wait([self._cancel(worker, context, "the run is over")], timeout=CANCEL_WAIT)
            raise
        except AnswerRefused as error:  # not signed, so it may delay the task and no more
            self._cancel(worker, context, "the answer cannot be taken")
            raise ExecutorError(f"worker {worker.id}: {error}") from None
        except ConfigError as error:
            raise ExecutorError(f"worker {worker.id} cannot be called: {error}") from None
        except EndedElsewhere:
            raise
        except ExecutorError:
            self._cancel(worker, context, "the call has failed")  # it may have begun, and the task will run again
            raise
        return result_of(worker, replied)

    def _body(self, task: Grant, context: TaskContext, worker_id: str) -> bytes:
        spec = task.spec
        remaining = context.remaining
        call = ExecuteCall(
            id=spec.id,
            type=spec.type,
            token=context.token,
            attempt=task.attempt,
            namespace=self._namespace,
            worker_id=worker_id,
            payload=self._payload(task),
            deadline=None if remaining is None else datetime.now(UTC) + timedelta(seconds=remaining),
            timeout=remaining,
            tags=spec.tags,
            context=spec.context,
            callback_url=self._callback_url,
        )
        return msgspec.json.encode(call)

    def _payload(self, task: Grant) -> Raw | msgspec.UnsetType:
        """The payload as JSON, however it is stored."""
        spec = task.spec
        if not spec.payload:
            return UNSET
        if spec.serializer == JSON.name:
            return Raw(spec.payload)
        try:
            return Raw(JSON.encode(self._registry.serializer(spec.serializer).decode(spec.payload)))
        except (PayloadError, TypeError, ValueError, msgspec.MsgspecError) as error:
            raise Abort(f"the payload cannot be sent as JSON, which remote workers are given: {error}") from None

    async def _reported(self, task: Grant, context: TaskContext) -> None:
        """Wait without a connection until the worker has reported the end of this run, or is lost itself.

        The deadline of the task, a cancel and a shutdown end the wait as they end every run.
        """
        context._ends_elsewhere = True
        store, pause = self._store, POLL
        with store.hint(task.spec.id) as ended:
            while True:
                if not await self._runs(store, task, ended):
                    raise EndedElsewhere
                if self._find(task.worker_id) is None:
                    raise ExecutorError(f"remote worker {task.worker_id} has gone offline before it reported the end")
                await ended.wait(until_look(time.monotonic(), pause))
                pause = min(2 * pause, POLL_MAX)

    async def _runs(self, store: Store, task: Grant, ended: Hint) -> bool:
        try:
            record = await store.queries.get(task.spec.id, ended)
        except StoreUnavailable:  # then nobody knows, until the lease is over
            return True
        return record is not None and record.status is Status.RUNNING and record.lease == task.lease

    def _cancel(self, worker: Called, context: TaskContext, reason: str) -> asyncio.Task[None]:
        """Tell the worker, in two seconds at most; the run need not wait for all of them."""
        task = asyncio.ensure_future(self._tell(worker, context, reason))
        self._cancels.add(task)
        task.add_done_callback(self._cancels.discard)
        return task

    async def _tell(self, worker: Called, context: TaskContext, reason: str) -> None:
        try:
            await self._caller.cancel(worker, context.task_id, context.token, reason, CANCEL_SECONDS)
        except (ExecutorError, ConfigError) as error:
            self._log.warning("task %s: worker %s was not told to stop: %s", context.task_id, worker.id, error)

    async def stop(self, grace: float) -> None:
        if self._cancels:
            await asyncio.wait(self._cancels, timeout=grace)
        await self._caller.close()


def _is_later(replied: Replied) -> bool:
    return replied.status == 202 and replied.signed


def result_of(worker: Called, replied: Replied) -> TaskResult:
    """The end that an answer stands for. What is not signed is believed only where it delays the task."""
    status = replied.status
    if status in NOT_NOW:
        raise Snooze(pause_of(replied.answer))
    if 300 <= status < 400:
        ending = Abort if replied.signed else ExecutorError
        raise ending(f"worker {worker.id} has answered with the redirect {status}, which is not followed")
    text = f"worker {worker.id} has answered {status}"
    if said := refusal_text(replied.body) if status >= 400 else "":
        text = f"{text}: {said}"
    if status >= 500:
        raise ExecutorError(text)
    if not replied.signed:
        raise ExecutorError(f"{text}, and the answer is not signed with its secret: it is not believed")
    if status >= 400:
        raise Abort(text)
    if status != 200:
        raise ExecutorError(f"{text}, which means nothing here")
    try:
        answer = decoded_answer(replied.body)
    except Unfit as error:
        raise Abort(f"{text}, and the body is not what the protocol says: {plain(str(error))}") from None
    match answer:
        case Later():
            raise ExecutorError(f"{text} with the status accepted, which is for 202")
        case Failed():
            raise _failure(answer)
        case CompletedRaw(result=data, code=code, message=message):
            return TaskResult(code, plain(message), None if data is UNSET else data)


def _failure(answer: Failed) -> Exception:
    text = plain(answer.error) or "the worker gives no reason"
    if not answer.retry:
        return Abort(text)
    if answer.retry_after is not None:
        return Retry(min(max(answer.retry_after, 0.0), PAUSE_MAX), text)
    return ExecutorError(text)
