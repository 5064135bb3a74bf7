"""Handlers: what a function's signature says about its payload, and the registry that finds them by type.

The payload rule: the parameters besides the `TaskContext` are the payload, an object with their names.
"""

from __future__ import annotations

import inspect
import typing
from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import Any, Literal, Protocol, TypeVar

from tickwork.errors import ConfigError, HandlerNotFound, PayloadError
from tickwork.handlers import references
from tickwork.handlers.context import TaskContext
from tickwork.handlers.executor_names import LOCAL, ExecutorNames
from tickwork.handlers.fairness import FairQueues
from tickwork.handlers.lifespan import Lifespan
from tickwork.handlers.limits import Protection
from tickwork.handlers.middleware import Middlewares
from tickwork.handlers.options import of_handler
from tickwork.handlers.retrying import RetryRules
from tickwork.handlers.signature import Signature
from tickwork.handlers.signature import read as read_signature
from tickwork.ids import is_name
from tickwork.model.info import TaskResult
from tickwork.model.policy import WHEN_CUT_OFF, WhenCutOff
from tickwork.payload import types as payload
from tickwork.payload.annotations import PLAIN
from tickwork.payload.codec import BUILTIN, JSON, Serializer
from tickwork.payload.parameters import MISSING, Arguments, Parameters
from tickwork.payload.types import PayloadType
from tickwork.texts import shown

T = TypeVar("T")
T_contra = TypeVar("T_contra", contravariant=True)
RunIn = Literal["loop", "thread", "process"]
ANYTHING = payload.of_value(Any, "")


class Handler(Protocol[T_contra]):
    """An object that handles tasks of one type; `handle` may be sync or async."""

    def handle(self, ctx: TaskContext, payload: T_contra) -> Any: ...


class Entry:
    """A registered handler: how to decode for it, where to run it, how to call it."""

    def __init__(
        self,
        type: str,
        target: Any,
        *,
        run_in: RunIn | None = None,
        when_cut_off: WhenCutOff | None = None,
        serializer: Serializer | None = None,
        options: Mapping[str, Any] | None = None,
    ) -> None:
        self.type = type
        self.when_cut_off = when_cut_off  # None: as the scheduler says
        if when_cut_off not in (None, *WHEN_CUT_OFF):
            known = ", ".join(WHEN_CUT_OFF)
            raise ConfigError(f"handler {type!r}: when_cut_off must be one of {known}, not {when_cut_off!r}")
        self.serializer = serializer
        self.options = dict(options or {})
        self.retry_rules = RetryRules.taken_from(self.options)  # None for most: the same retries for every error
        self.protection = Protection.taken_from(type, self.options)
        self.executor: str = self.options.get("executor", LOCAL)  # for tasks that name none
        self.function: Callable[..., Any] = target if callable(target) else target.handle
        self.is_async = inspect.iscoroutinefunction(self.function) or inspect.iscoroutinefunction(
            getattr(self.function, "__call__", None)  # noqa: B004 - an object with an async __call__
        )
        self.run_in: RunIn = run_in or ("loop" if self.is_async else "thread")
        if self.run_in not in typing.get_args(RunIn):
            known = ", ".join(typing.get_args(RunIn))
            raise ConfigError(f"handler {type!r}: run_in must be one of {known}, not {shown(run_in)}")
        signature = read_signature(type, target)
        self.context_name = signature.context
        self.dependencies = signature.dependencies
        self.needs_context = self.context_name is not None or bool(self.dependencies)
        self.parameters = Parameters(signature.fields, type)
        self.names = self.parameters.names
        self.call = _caller(self.function, signature)
        self.returns_task_result = signature.returns is TaskResult
        self._result = None if self.returns_task_result else _result_type(signature.returns, type)
        self.encode_result = _result_encoder(self._result)
        self.reference = references.reference_of(type, target) if self.run_in == "process" else ""
        if self.run_in == "loop" and not self.is_async:
            raise ConfigError(f'handler {type!r} is not async, so it cannot run in "loop"; use "thread" or "process"')

    def pack(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The payload for a call written like the function's own; `MISSING` for one without arguments."""
        if len(args) > len(self.names):
            raise PayloadError(f"handler {self.type!r} takes {len(self.names)} payload arguments, not {len(args)}")
        given = Arguments(zip(self.names, args, strict=False))
        for name, value in kwargs.items():
            if name in given or name not in self.names:
                problem = "given twice" if name in given else "unknown"
                raise PayloadError(f"handler {self.type!r}: argument {shown(name)} is {problem}")
            given[name] = value
        if not given and self.parameters.required:
            raise PayloadError(f"handler {self.type!r}: its argument {shown(self.parameters.required[0])} is missing")
        return given or MISSING

    def value_at(self, path: str, data: bytes, serializer: Serializer) -> Any:
        """What stands at a path into the payload, also where that was left to a default; None if nothing does. The path
        begins with a parameter; where a bare value is for one of them, it may begin inside of that."""
        arguments = {**self.parameters.defaults, **self.parameters.read(serializer, data)}
        names = path.removeprefix("payload.").split(".")
        bare = self.parameters.bare
        inside = None if bare is None else _follow(arguments.get(bare.name), names)
        return _follow(arguments, names) if inside is None else inside

    def decode_result(self, data: bytes) -> Any:
        """As the declared return type where the value fits it, else plain: the task has succeeded all the same. Raises
        `PayloadError` for what is no JSON at all."""
        if self._result is not None:
            try:
                return self._result.decode(JSON, data)
            except PayloadError:
                pass
        return ANYTHING.decode(JSON, data)


def _caller(function: Callable[..., Any], signature: Signature) -> Callable[[dict[str, Any], TaskContext | None], Any]:
    """Calls the handler with its arguments and the context."""
    name = signature.context
    if name is None:
        return lambda arguments, _: function(**arguments)
    if signature.by_position:
        return lambda arguments, context: function(context, **arguments)
    return lambda arguments, context: function(**{name: context}, **arguments)


def _result_encoder(declared: PayloadType | None) -> Callable[[Any], bytes]:
    """Raises whatever the serializer raises; most types have nothing of pydantic's in them."""
    return JSON.encode if declared is None or not declared.by_pydantic else partial(declared.dump, JSON)


def _follow(value: Any, names: list[str]) -> Any:
    for name in names:
        if isinstance(value, Mapping):
            value = value.get(name)
        else:  # a text has attributes too, but no fields
            value = None if isinstance(value, PLAIN) else getattr(value, name, None)
    return value


def _rules_of(found: Any) -> RetryRules | None:
    """Those that a child process knows of what it finds."""
    entry = getattr(found, "entry", None)
    return entry.retry_rules if isinstance(entry, Entry) else None


def _result_type(declared: Any, owner: str) -> PayloadType | None:
    if declared in (None, type(None), Any):
        return None
    try:
        return payload.of_value(declared, owner)
    except ConfigError:  # a return type we cannot rebuild: `result()` gives plain values then
        return None


def _is_defined_anew(handler: Any, known: Any) -> bool:
    """The same definition, executed again from its source. Functions that one definition makes in a loop, or a factory,
    are several, and share their code."""
    new, old = inspect.unwrap(handler), inspect.unwrap(known)
    return (
        inspect.isfunction(new)
        and inspect.isfunction(old)
        and (new.__module__, new.__qualname__) == (old.__module__, old.__qualname__)
        and "<lambda>" not in new.__qualname__
        and new.__code__ is not old.__code__
    )


class Registry:
    """The handlers of one scheduler, by type, which may change while it runs; and what is around them."""

    def __init__(self) -> None:
        self.middleware = Middlewares()
        self.lifespan = Lifespan()
        self.store_is_swapped = False  # by `tickwork.testing`; also in the child processes of that scheduler
        self._entries: dict[str, Entry] = {}
        self._serializers: dict[str, Serializer] = dict(BUILTIN)
        self._default: Serializer = JSON
        self._listeners: list[Callable[[], None]] = []
        self.executors = ExecutorNames()
        self.fair = FairQueues()

    def declare_queue(self, queue: str, fair: bool, weights: Mapping[str, float] | None) -> None:
        self.fair.declare(queue, fair, weights)
        self._changed()

    def register(
        self,
        type: str,
        handler: Handler[Any] | Callable[..., Any],
        serializer: Serializer | str | None = None,
        *,
        run_in: RunIn | None = None,
        when_cut_off: WhenCutOff | None = None,
        **options: Any,
    ) -> Entry:
        """Add a handler: a function, or an object with `handle(ctx, payload)`. Options are those of `app.task`.

        A function that is defined anew (a cell of a notebook that is run again, a module that is reloaded) takes the
        place of the earlier one; any other handler of a type that has one is refused.
        """
        if not is_name(type):
            raise ConfigError(f"task type {shown(type)} must be 1 to 128 letters, digits or ._:@-")
        known = self._entries.get(type)
        if known is not None and not _is_defined_anew(handler, known.function):
            raise ConfigError(f"a handler for type {type!r} is registered already; unregister it first")
        if not callable(handler) and not callable(getattr(handler, "handle", None)):
            raise ConfigError(f"the handler for {type!r} must be callable or have a method handle(ctx, payload)")
        serializer = None if serializer is None else self.chosen(serializer)
        given = of_handler(options)
        self.executors.check_handler(type, given)
        entry = Entry(type, handler, run_in=run_in, when_cut_off=when_cut_off, serializer=serializer, options=given)
        if serializer is not None:
            self.add_serializer(serializer)
        self._entries[type] = entry
        self._changed()
        return entry

    def check_processes(self) -> None:
        """Refuse handlers that a child process would not find, or whose payloads it could not read."""
        for entry in self._entries.values():
            if entry.run_in != "process":
                continue
            found = references.find(entry.type, entry.reference, entry.function)
            serializer = entry.serializer or self._default
            if serializer.name not in BUILTIN and not hasattr(found, "registry"):
                raise ConfigError(
                    f'handler {entry.type!r} cannot run_in="process" with serializer {serializer.name!r}: a child '
                    "process does not know it, unless the handler is decorated with @app.task(serializer=...)"
                )
            if entry.retry_rules is not None and _rules_of(found) != entry.retry_rules:
                raise ConfigError(
                    f'handler {entry.type!r} cannot run_in="process" with retry_on, abort_on or a retry function: a '
                    "child process does not know them, unless the handler is decorated with @app.task(...)"
                )

    @contextmanager
    def all_or_nothing(self) -> Iterator[None]:
        """If what is done with a new handler fails, the handlers are those of before."""
        before = dict(self._entries)
        try:
            yield
        except BaseException:
            self._entries = before
            self._changed()
            raise

    def add_executor(self, name: str, types: Iterable[str], targets: Iterable[str] | None = None) -> None:
        """Make the name of an executor known, and the types that it runs without a handler."""
        self.executors.add(name, types, self._entries, targets)
        self._changed()

    def executor_of(self, type: str) -> str:
        """The executor of tasks of this type that name none."""
        entry = self._entries.get(type)
        return self.executors.run_by.get(type, LOCAL) if entry is None else entry.executor

    def types_for(self, executors: Container[str]) -> frozenset[str]:
        """The types whose tasks can be run where these executors are."""
        names = {**self.executors.run_by, **{kind: entry.executor for kind, entry in self._entries.items()}}
        return frozenset(kind for kind, name in names.items() if name in executors)

    def unregister(self, type: str) -> bool:
        found = self._entries.pop(type, None) is not None
        self._changed()
        return found

    def has(self, type: str) -> bool:
        return type in self._entries

    def list(self) -> list[str]:
        return sorted(self._entries)

    def clear(self) -> None:
        self._entries.clear()
        self._changed()

    def get(self, type: str) -> Entry:
        entry = self._entries.get(type)
        if entry is None:
            known = ", ".join(self.list()) or "none"
            raise HandlerNotFound(f"no handler for task type {shown(type)} is registered here (known: {known})")
        return entry

    def find(self, type: str) -> Entry | None:
        return self._entries.get(type)

    def set_serializer(self, serializer: Serializer) -> None:
        """The default of this scheduler; a type or a submission may choose another."""
        self.add_serializer(serializer)
        self._default = serializer

    def add_serializer(self, serializer: Serializer) -> None:
        """Make a serializer known by its name, so that tasks encoded with it can be decoded here."""
        if not isinstance(serializer, Serializer):
            raise ConfigError(f"a serializer needs a name, encode(value) and decode(data, type): {shown(serializer)}")
        known = self._serializers.get(serializer.name)
        if known is not None and known is not serializer and type(known) is not type(serializer):
            raise ConfigError(f"another serializer is already called {serializer.name!r}")
        self._serializers[serializer.name] = serializer

    def serializer(self, name: str) -> Serializer:
        found = self._serializers.get(name)
        if found is None:
            known = ", ".join(sorted(self._serializers))
            raise PayloadError(f"serializer {shown(name)} is not known here (known: {known})")
        return found

    def chosen(self, serializer: Serializer | str) -> Serializer:
        """What a program sets up: a serializer, or the name of one that is known."""
        if not isinstance(serializer, str):
            return serializer
        try:
            return self.serializer(serializer)
        except PayloadError as error:
            raise ConfigError(str(error)) from None

    @property
    def default_serializer(self) -> Serializer:
        return self._default

    def on_change(self, listener: Callable[[], None]) -> None:
        self._listeners.append(listener)

    def off_change(self, listener: Callable[[], None]) -> None:
        self._listeners = [other for other in self._listeners if other != listener]

    def _changed(self) -> None:
        for listener in self._listeners:
            listener()
