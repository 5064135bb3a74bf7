"""`@app.task`: a function that can be submitted, with the types of the function itself.

The `TaskContext` parameter is the worker's to give, so it must not appear in `submit`. It may stand first or last; the
overloads take it away for the type checker.
"""

# The overloads go from the narrower to the wider on purpose; the first that fits is meant.
# mypy: disable-error-code="overload-overlap"

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterable
from typing import TYPE_CHECKING, Any, Concatenate, Generic, ParamSpec, Protocol, TypeVar, Unpack, cast, overload

from tickwork.client.handle import Handle
from tickwork.errors import ConfigError
from tickwork.handlers.context import TaskContext
from tickwork.handlers.options import Options, TaskOptions, of_handler
from tickwork.handlers.registry import Entry, Registry, RunIn
from tickwork.model.policy import WhenCutOff
from tickwork.texts import shown

if TYPE_CHECKING:
    from tickwork.client.client import Client

P = ParamSpec("P")
R = TypeVar("R")
A = TypeVar("A")
B = TypeVar("B")
C = TypeVar("C")
Async = Coroutine[Any, Any, R]


class TaskFunction(Generic[P, R]):
    """A registered function. Call it as before; `submit` queues the call instead."""

    def __init__(self, client: Client, entry: Entry, options: Options | None = None) -> None:
        self._client = client
        self._options: Options = options or {}
        self.entry = entry
        self.__name__ = getattr(entry.function, "__name__", entry.type)
        self.__doc__ = entry.function.__doc__
        self.__module__ = getattr(entry.function, "__module__", __name__)
        self.__wrapped__ = entry.function

    @property
    def type(self) -> str:
        return self.entry.type

    @property
    def registry(self) -> Registry:
        return self._client.registry

    async def submit(self, *args: P.args, **kwargs: P.kwargs) -> Handle[R]:
        """Queue one call. A payload that does not fit is refused here, with the path of what is wrong."""
        return await self._client.submit(self.entry.type, self.entry.pack(args, kwargs), **self._options)

    async def submit_many(self, payloads: Iterable[Any]) -> list[Handle[R]]:
        """Queue one call for each payload: a value, or a mapping where the function takes several parameters."""
        return cast("list[Handle[R]]", await self._client.submit_many(self.entry.type, payloads, **self._options))

    def options(self, **options: Unpack[Options]) -> TaskFunction[P, R]:
        """The same function with other options: `send.options(delay=60).submit(...)`."""
        return TaskFunction(self._client, self.entry, {**self._options, **options})

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """The plain function, run here and now."""
        return self.entry.function(*args, **kwargs)

    def __repr__(self) -> str:
        return f"<task {self.entry.type}>"


class TaskMaker(Protocol):
    """`app.task`: a decorator as it is, or called first with a type name and options."""

    @overload
    def __call__(self, function: Callable[Concatenate[TaskContext, P], Async[R]], /) -> TaskFunction[P, R]: ...
    @overload
    def __call__(self, function: Callable[[A, TaskContext], Async[R]], /) -> TaskFunction[[A], R]: ...
    @overload
    def __call__(self, function: Callable[[A, B, TaskContext], Async[R]], /) -> TaskFunction[[A, B], R]: ...
    @overload
    def __call__(self, function: Callable[[A, B, C, TaskContext], Async[R]], /) -> TaskFunction[[A, B, C], R]: ...
    @overload
    def __call__(self, function: Callable[P, Async[R]], /) -> TaskFunction[P, R]: ...
    @overload
    def __call__(self, function: Callable[Concatenate[TaskContext, P], R], /) -> TaskFunction[P, R]: ...
    @overload
    def __call__(self, function: Callable[[A, TaskContext], R], /) -> TaskFunction[[A], R]: ...
    @overload
    def __call__(self, function: Callable[[A, B, TaskContext], R], /) -> TaskFunction[[A, B], R]: ...
    @overload
    def __call__(self, function: Callable[[A, B, C, TaskContext], R], /) -> TaskFunction[[A, B, C], R]: ...
    @overload
    def __call__(self, function: Callable[P, R], /) -> TaskFunction[P, R]: ...
    @overload
    def __call__(
        self,
        type: str | None = None,
        /,
        *,
        run_in: RunIn | None = None,
        when_cut_off: WhenCutOff | None = None,
        **options: Unpack[TaskOptions],
    ) -> TaskMaker: ...


def _name_of(function: Any) -> str:
    name = getattr(function, "__name__", None)
    if not isinstance(name, str):
        raise ConfigError(f'{function!r} has no name of its own, so give it one: app.task("name")(...)')
    return name


def task_maker(client: Client) -> TaskMaker:
    """The decorator of one scheduler."""

    def make(
        what: Any = None,
        /,
        *,
        run_in: RunIn | None = None,
        when_cut_off: WhenCutOff | None = None,
        **options: Any,
    ) -> Any:
        if what is not None and not isinstance(what, str) and not callable(what):
            raise ConfigError(
                f"app.task takes a function, or a name for one, not {shown(what)}; an object with a method handle() "
                "is for app.registry.register(name, object)"
            )
        serializer = options.pop("serializer", None)
        serializer = None if serializer is None else client.registry.chosen(serializer)
        given = of_handler(options)

        def decorate(function: Callable[..., Any]) -> TaskFunction[..., Any]:
            if isinstance(function, TaskFunction):  # one function, two types
                function = function.entry.function
            name = what if isinstance(what, str) else _name_of(function)
            entry = client.registry.register(
                name, function, serializer, run_in=run_in, when_cut_off=when_cut_off, **given
            )
            return TaskFunction(client, entry)

        return decorate(what) if callable(what) else decorate

    return cast("TaskMaker", make)
