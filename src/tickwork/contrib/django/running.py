"""Django tasks as handlers: their arguments, their context, Django's signals, and database connections around them."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

from asgiref.sync import ThreadSensitiveContext, sync_to_async
from django.db import close_old_connections, connections, reset_queries
from django.utils import timezone

from tickwork.contrib.django.declared import TickworkTask
from tickwork.contrib.django.interface import TaskContext, TaskError, TaskResultStatus, normalize_json, signals
from tickwork.contrib.django.results import running_result
from tickwork.errors import Abort, Retry, Snooze, StoreError
from tickwork.handlers.middleware import Middleware, RunCall, RunNext
from tickwork.handlers.options import of_handler
from tickwork.handlers.retrying import RetryRules
from tickwork.model.info import AttemptInfo
from tickwork.observe.tracebacks import story
from tickwork.scheduler import Scheduler


@dataclass(frozen=True, slots=True)
class Run:
    call: RunCall
    earlier: tuple[AttemptInfo, ...]


_run: ContextVar[Run] = ContextVar("tickwork_django_run")


class Runs(Middleware):
    """Hands the handler what Django wants to know of a run."""

    def __init__(self, app: Scheduler) -> None:
        self._app = app

    async def run(self, call: RunCall, next: RunNext) -> Any:
        earlier = await self._earlier(call.id) if call.ctx.fence > 1 else ()  # each claim has the next fence
        token = _run.set(Run(call, earlier))
        try:
            return await next(call)
        finally:
            _run.reset(token)

    async def _earlier(self, id: str) -> tuple[AttemptInfo, ...]:
        try:
            return (await self._app.get_task(id)).attempts
        except StoreError:  # the run itself does not need them
            return ()


def handler_of(task: Any, sender: type) -> Callable[..., Any]:
    """The function that Tickwork calls: a coroutine function on the event loop, any other in a thread."""
    if inspect.iscoroutinefunction(task.func):

        async def handle_async(args: list[Any], kwargs: dict[str, Any]) -> Any:
            async with ThreadSensitiveContext():  # as for a request: its database calls are in a thread of their own
                try:
                    return await _run_async(task, sender, args, kwargs)
                finally:
                    await sync_to_async(connections.close_all)()  # that thread ends here

        return handle_async

    def handle(args: list[Any], kwargs: dict[str, Any]) -> Any:
        reset_queries()
        close_old_connections()
        try:
            return _run_sync(task, sender, args, kwargs)
        finally:
            close_old_connections()

    return handle


def _run_sync(task: Any, sender: type, args: list[Any], kwargs: dict[str, Any]) -> Any:
    result = _begun(task, args, kwargs)
    signals.task_started.send_robust(sender=sender, task_result=result)
    try:
        value = normalize_json(task.func(*_with_context(task, result, args), **kwargs))
    except Exception as error:
        if _ends(error, _rules(task)):
            signals.task_finished.send_robust(sender=sender, task_result=_failed(result, error))
        raise
    signals.task_finished.send_robust(sender=sender, task_result=_succeeded(result, value))
    return value


async def _run_async(task: Any, sender: type, args: list[Any], kwargs: dict[str, Any]) -> Any:
    result = _begun(task, args, kwargs)
    await signals.task_started.asend_robust(sender=sender, task_result=result)
    try:
        value = normalize_json(await task.func(*_with_context(task, result, args), **kwargs))
    except Exception as error:
        if _ends(error, _rules(task)):
            await signals.task_finished.asend_robust(sender=sender, task_result=_failed(result, error))
        raise
    await signals.task_finished.asend_robust(sender=sender, task_result=_succeeded(result, value))
    return value


def _begun(task: Any, args: list[Any], kwargs: dict[str, Any]) -> Any:
    run = _run.get()
    return running_result(task, run.call, args, kwargs, run.earlier)


def _with_context(task: Any, result: Any, args: list[Any]) -> list[Any]:
    return [TaskContext(task_result=result), *args] if task.takes_context else args


def _ends(error: Exception, rules: RetryRules) -> bool:
    """Whether the task is over with this error. While a retry follows, it is not finished."""
    if isinstance(error, Snooze):
        return False
    ctx = _run.get().call.ctx
    if isinstance(error, Abort) or ctx.is_last_attempt:
        return True
    return not isinstance(error, Retry) and bool(rules.decide(error, ctx.attempt - 1, asks=False).ends)


def _rules(task: Any) -> RetryRules:
    options = task.handler_options() if isinstance(task, TickworkTask) else {}
    return RetryRules.taken_from(of_handler(options)) or RetryRules()


def _succeeded(result: Any, value: Any) -> Any:
    object.__setattr__(result, "_return_value", value)
    return _finished(result, TaskResultStatus.SUCCESSFUL)


def _failed(result: Any, error: Exception) -> Any:
    kind = type(error)
    path = f"{kind.__module__}.{kind.__qualname__}"
    result.errors.append(TaskError(exception_class_path=path, traceback=story(error)))
    return _finished(result, TaskResultStatus.FAILED)


def _finished(result: Any, status: Any) -> Any:
    """A result cannot be changed by assignment; Django's own backends write to it in the same way."""
    object.__setattr__(result, "status", status)
    object.__setattr__(result, "finished_at", timezone.now())
    return result
