"""Middleware: code of a program around each submit and each run of a task."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from typing import Any, Protocol

from msgspec.structs import replace

from tickwork.backoff import Backoff
from tickwork.errors import ConfigError
from tickwork.handlers.context import TaskContext, copied
from tickwork.handlers.options import READERS, text, without_policy
from tickwork.model.tasks import Spec
from tickwork.store.contract import Receipt
from tickwork.texts import shown

# What a middleware may change of a task that is submitted, and how each is checked.
CHANGEABLE: dict[str, Callable[[Any], Any]] = {
    **{name: READERS[name] for name in ("queue", "priority", "tags", "context", "max_retry", "timeout", "retry")},
    "key": partial(text, "key", longest=512),
}
MAY_BE_NONE = ("max_retry", "timeout", "retry", "key")


class _OfSpec:
    """What a task that is submitted and one that is run say of themselves alike."""

    __slots__ = ()
    _spec: Spec
    _payload: Callable[[], Any]

    @property
    def id(self) -> str:
        return self._spec.id

    @property
    def type(self) -> str:
        return self._spec.type

    @property
    def payload(self) -> Any:
        """Plain values, decoded anew with each look; bytes, if the serializer is not known here."""
        return self._payload()

    @property
    def schedule_id(self) -> str | None:
        """The schedule whose tick, or whose run by hand, it is."""
        return self._spec.schedule_id


@dataclass(slots=True)
class NewTask(_OfSpec):
    """A task that is being submitted. Its fields may be changed before `next(call)`; they are checked as options of
    `submit` are. `max_retry`, `timeout` and `retry` are None where the handler decides about them later."""

    queue: str
    priority: int
    key: str | None
    tags: dict[str, str]
    context: dict[str, Any]
    max_retry: int | None
    timeout: float | None
    retry: Backoff | None
    _spec: Spec = field(repr=False)
    _payload: Callable[[], Any] = field(repr=False)

    @property
    def dedup_key(self) -> str | None:
        return self._spec.dedup_key

    @property
    def depends_on(self) -> tuple[str, ...]:
        """The ids of the tasks that must end before it."""
        return self._spec.depends_on


@dataclass(frozen=True, slots=True)
class SubmitCall:
    """One call of a store: a single task, the tasks of a batch, or those of the ticks of one schedule."""

    tasks: list[NewTask]


@dataclass(frozen=True, slots=True)
class RunCall(_OfSpec):
    """One run of a task, on this worker. `ctx` is what its handler gets, if it has a parameter for it."""

    ctx: TaskContext
    worker_id: str
    submitted_at: datetime
    _spec: Spec = field(repr=False)
    _payload: Callable[[], Any] = field(repr=False)

    @property
    def queue(self) -> str:
        return self._spec.queue

    @property
    def priority(self) -> int:
        return self._spec.priority

    @property
    def key(self) -> str | None:
        return self._spec.key

    @property
    def attempt(self) -> int:
        """1 with the first run."""
        return self.ctx.attempt


class SubmitNext(Protocol):
    """Submits the tasks of a call; answers a receipt for each of them, in their order."""

    async def __call__(self, call: SubmitCall, /) -> list[Receipt]: ...


class RunNext(Protocol):
    """Runs the handler; answers what it returned, as `handle.result()` would, and raises what it raised."""

    async def __call__(self, call: RunCall, /) -> Any: ...


class Middleware:
    """What a program does around each submit and each run of a task: `app.use(MyMiddleware())`.

    Override one method or several. A method that is not overridden costs nothing.
    """

    async def submit(self, call: SubmitCall, next: SubmitNext) -> list[Receipt]:
        """Around a submit, in the process that submits, or that fires the tick of a schedule. What it raises refuses
        all tasks of the call."""
        return await next(call)

    async def run(self, call: RunCall, next: RunNext) -> Any:
        """Around a run, in the process of the worker. What it returns is the result of the task; what it raises fails
        the attempt, as if the handler had raised it."""
        return await next(call)

    def in_child(self, ctx: TaskContext, headers: Mapping[str, str]) -> AbstractContextManager[object]:
        """Around a handler with `run_in="process"`, in its child process; `run` is around it in the worker. `headers`
        are what a call to another service would have had there, such as those of a trace."""
        return nullcontext()


class Middlewares:
    """What a scheduler uses, the outermost first. Which methods are to be called is decided when one is added."""

    def __init__(self) -> None:
        self.around_submit: tuple[Middleware, ...] = ()
        self.around_run: tuple[Middleware, ...] = ()
        self.in_child: tuple[Middleware, ...] = ()

    def add(self, middleware: Middleware) -> None:
        if not isinstance(middleware, Middleware):
            raise ConfigError(
                f"app.use takes an object of a subclass of tickwork.Middleware, not {shown(middleware)}"
                + ("; make an object of the class first" if isinstance(middleware, type) else "")
            )
        kind = type(middleware)
        if kind.submit is not Middleware.submit:
            self.around_submit += (middleware,)
        if kind.run is not Middleware.run:
            self.around_run += (middleware,)
        if kind.in_child is not Middleware.in_child:
            self.in_child += (middleware,)


def new_task(spec: Spec, payload: Callable[[], Any]) -> NewTask:
    return NewTask(
        queue=spec.queue,
        priority=spec.priority,
        key=spec.key,
        tags=dict(spec.tags),  # copies, since the specs of one handler may share them
        context=copied(spec.context),
        max_retry=spec.max_retry,
        timeout=spec.timeout,
        retry=spec.retry,
        _spec=spec,
        _payload=payload,
    )


def spec_of(task: NewTask) -> Spec:
    """What is to be submitted, with what was changed. Raises `ConfigError` for what cannot be."""
    spec = task._spec
    changed = {name: value for name in CHANGEABLE if (value := getattr(task, name)) != getattr(spec, name)}
    if not changed:
        return spec
    read = {
        name: None if value is None and name in MAY_BE_NONE else CHANGEABLE[name](value)
        for name, value in without_policy(changed).items()
    }
    return replace(spec, **read)
