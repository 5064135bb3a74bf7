"""`@app.task`: a function that can be submitted. `task_types.py` says of what types it is to a type checker."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Generic, ParamSpec, Self, TypeVar, Unpack, cast, overload

from tickwork.client.calling import call
from tickwork.client.handle import Handle
from tickwork.client.results import Patience
from tickwork.errors import ConfigError
from tickwork.handlers.options import Options, of_handler
from tickwork.handlers.registry import Entry, Registry, RunIn
from tickwork.model.policy import WhenCutOff
from tickwork.texts import shown

if TYPE_CHECKING:
    from tickwork.client.sync import Sync, SyncHandle
    from tickwork.client.task_types import TaskMaker
    from tickwork.scheduler import Scheduler

P = ParamSpec("P")
R = TypeVar("R")


class TaskFunction(Generic[P, R]):
    """A registered function. Call it as before; `submit` queues the call instead."""

    def __init__(self, app: Scheduler, entry: Entry, options: Options | None = None) -> None:
        self._app = app
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
        return self._app.registry

    async def submit(self, *args: P.args, **kwargs: P.kwargs) -> Handle[R]:
        """Queue one call. A payload that does not fit is refused here, with the path of what is wrong."""
        return await self._app.submit(self.entry.type, self.entry.pack(args, kwargs), **self._options)

    @overload
    async def call(self, *args: P.args, **kwargs: P.kwargs) -> R: ...
    @overload
    async def call(self, *args: Any, timeout: float | timedelta | None, **kwargs: Any) -> R: ...

    async def call(self, *args: Any, **kwargs: Any) -> R:
        """Queue one call and wait for its result: what `submit` and then `result(timeout)` give, in one step.

        Raises what they raise. After a timeout, and if the caller is cancelled, the task goes on.
        """
        if "timeout" in kwargs and "timeout" in self.entry.names:
            raise ConfigError(
                f"{self.entry.type} has a parameter named timeout, so it is not clear whom timeout= is for: give the "
                "parameter by position, or use submit(...) and result(timeout)"
            )
        patience = Patience(kwargs.pop("timeout", None))
        payload = self.entry.pack(args, kwargs)
        result: R = await call(self._app._access, self.entry.type, payload, self._options, patience)
        return result

    async def submit_many(self, payloads: Iterable[Any]) -> list[Handle[R]]:
        """Queue one call for each payload: a value, or a mapping where the function takes several parameters."""
        return cast("list[Handle[R]]", await self._app.submit_many(self.entry.type, payloads, **self._options))

    def options(self, **options: Unpack[Options]) -> Self:
        """The same function with other options: `send.options(delay=60).submit(...)`."""
        return type(self)(self._app, self.entry, {**self._options, **options})

    @property
    def sync(self) -> SyncFunction[P, R]:
        """The same function for blocking code: `send.sync.submit(...)`."""
        return SyncFunction(self, self._app.sync)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """The plain function, run here and now."""
        return self.entry.function(*args, **kwargs)

    def __repr__(self) -> str:
        return f"<task {self.entry.type}>"


class SyncFunction(Generic[P, R]):
    """`f.sync`: submits calls of a function from code without an event loop."""

    def __init__(self, function: TaskFunction[P, R], sync: Sync) -> None:
        self._function = function
        self._sync = sync

    def submit(self, *args: P.args, **kwargs: P.kwargs) -> SyncHandle[R]:
        """Queue one call. A payload that does not fit is refused here, with the path of what is wrong."""
        function = self._function
        return self._sync.submit_one(function.type, function.entry.pack(args, kwargs), function._options)

    @overload
    def call(self, *args: P.args, **kwargs: P.kwargs) -> R: ...
    @overload
    def call(self, *args: Any, timeout: float | timedelta | None, **kwargs: Any) -> R: ...

    def call(self, *args: Any, **kwargs: Any) -> R:
        """Queue one call and wait for its result: what `submit` and then `result(timeout)` give, in one step."""
        self._sync.refuse_to_deadlock(instead=f"await {self._function.__name__}.call()")
        return self._sync.run(self._function.call(*args, **kwargs))

    def submit_many(self, payloads: Iterable[Any]) -> list[SyncHandle[R]]:
        """Queue one call for each payload: a value, or a mapping where the function takes several parameters."""
        return [self._sync.handle_of(each) for each in self._sync.run(self._function.submit_many(payloads))]

    def options(self, **options: Unpack[Options]) -> SyncFunction[P, R]:
        """The same function with other options: `send.sync.options(delay=60).submit(...)`."""
        return SyncFunction(self._function.options(**options), self._sync)

    def __repr__(self) -> str:
        return f"<task {self._function.type}, for blocking code>"


def _name_of(function: Any) -> str:
    name = getattr(function, "__name__", None)
    if not isinstance(name, str):
        raise ConfigError(f'{function!r} has no name of its own, so give it one: app.task("name")(...)')
    return name


def task_maker(app: Scheduler) -> TaskMaker:
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
        if "name" in options:
            name = shown(options["name"])
            raise ConfigError(f"the name of a task type comes first and without a keyword: @app.task({name})")
        serializer = options.pop("serializer", None)
        serializer = None if serializer is None else app.registry.chosen(serializer)
        given = of_handler(options)

        def decorate(function: Callable[..., Any]) -> TaskFunction[..., Any]:
            if isinstance(function, TaskFunction):  # one function, two types
                function = function.entry.function
            name = what if isinstance(what, str) else _name_of(function)
            entry = app.registry.register(name, function, serializer, run_in=run_in, when_cut_off=when_cut_off, **given)
            return TaskFunction(app, entry)

        return decorate(what) if callable(what) else decorate

    return cast("TaskMaker", make)


def type_of(function: str | TaskFunction[..., Any], options: Options) -> tuple[str, Options]:
    """The type of a function, and its own options where nothing else is said."""
    if isinstance(function, str):
        return function, options
    if isinstance(function, TaskFunction):
        return function.type, {**function._options, **options}
    raise ConfigError(
        f"submit and call take the name of a type, or a function that app.task has made one, not {shown(function)}"
    )
