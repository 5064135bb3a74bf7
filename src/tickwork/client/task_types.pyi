"""What a type checker sees of `app.task`. When a program runs, all of it is one class: `TaskFunction`.

The `TaskContext` parameter is the worker's to give, so it must not appear in `submit`. Where it stands first, `submit`
keeps the names and the defaults of the others. Where it stands last, or can be given by name only, no type can say both
what is left and how that is called, so more is let pass there: a right program is never refused.
"""

# The overloads go from the narrower to the wider on purpose; the first that fits is meant.
# mypy: disable-error-code="overload-overlap"
# pyright: reportOverlappingOverload=false

from collections.abc import Callable, Coroutine
from datetime import timedelta
from typing import Any, Concatenate, Generic, Never, ParamSpec, Protocol, TypeAlias, Unpack, overload

from typing_extensions import TypeVar

from tickwork.client.functions import TaskFunction
from tickwork.client.handle import Handle
from tickwork.handlers.context import TaskContext
from tickwork.handlers.options import HandlerOptions
from tickwork.handlers.registry import RunIn
from tickwork.model.policy import WhenCutOff

P = ParamSpec("P")
R = TypeVar("R")  # what the handle gives
S = TypeVar("S")  # what a direct call gives: the same, or a coroutine of it
S_co = TypeVar("S_co", covariant=True)
A = TypeVar("A")
B = TypeVar("B")
C = TypeVar("C")
D = TypeVar("D")
E = TypeVar("E")
F = TypeVar("F")
T = TypeVar("T", bound=TaskFunction[..., Any])
Async: TypeAlias = Coroutine[Any, Any, R]
Returned = TypeVar("Returned", default=Any)  # by a task; not known where it is submitted by the name of its type

class PlainTask(TaskFunction[P, R], Generic[P, R, S]):
    """A function without a context."""

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> S: ...

class ContextFirst(TaskFunction[P, R], Generic[P, R, S]):
    """A function whose first parameter is the context."""

    @overload
    def __call__(self, context: TaskContext, /, *args: P.args, **kwargs: P.kwargs) -> S: ...
    @overload
    def __call__(self, *, ctx: TaskContext, **kwargs: Any) -> S: ...

class LooseTask(TaskFunction[P, R], Generic[P, R, S]):
    """A function whose arguments in a direct call are not known."""

    def __call__(self, *args: Any, **kwargs: Any) -> S: ...

class ContextLast(LooseTask[..., R, S], Generic[R, S, A, B, C, D, E, F]):
    """A function of up to six parameters and the context. Their types are known, but not their names and defaults."""

    async def submit(
        self,
        a: A = ...,
        b: B = ...,
        c: C = ...,
        d: D = ...,
        e: E = ...,
        f: F = ...,
        /,
        **by_name: Any,
    ) -> Handle[R]: ...
    async def call(  # type: ignore[override]
        self,
        a: A = ...,
        b: B = ...,
        c: C = ...,
        d: D = ...,
        e: E = ...,
        f: F = ...,
        /,
        *,
        timeout: float | timedelta | None = ...,
        **by_name: Any,
    ) -> R: ...

class _Nothing:
    """A parameter that takes this takes everything: its type is `Any`, or it has none."""

_Untyped: TypeAlias = (
    Callable[Concatenate[_Nothing, ...], S]
    | Callable[[Any, _Nothing], S]
    | Callable[[Any, Any, _Nothing], S]
    | Callable[[Any, Any, Any, _Nothing], S]
    | Callable[[Any, Any, Any, Any, _Nothing], S]
    | Callable[[Any, Any, Any, Any, Any, _Nothing], S]
    | Callable[[Any, Any, Any, Any, Any, Any, _Nothing], S]
)
# The context stands between others, or after so many that their types are not told apart.
_Between: TypeAlias = (
    Callable[[Any, TaskContext, Any], S]
    | Callable[[Any, Any, TaskContext, Any], S]
    | Callable[[Any, Any, Any, TaskContext, Any], S]
    | Callable[[Any, Any, Any, Any, TaskContext, Any], S]
    | Callable[[Any, Any, Any, Any, Any, TaskContext, Any], S]
    | Callable[[Any, Any, Any, Any, Any, Any, TaskContext, Any], S]
)
_Further: TypeAlias = (
    Callable[Concatenate[Any, TaskContext, ...], S]
    | Callable[Concatenate[Any, Any, TaskContext, ...], S]
    | Callable[Concatenate[Any, Any, Any, TaskContext, ...], S]
    | Callable[Concatenate[Any, Any, Any, Any, TaskContext, ...], S]
    | Callable[Concatenate[Any, Any, Any, Any, Any, TaskContext, ...], S]
    | Callable[Concatenate[Any, Any, Any, Any, Any, Any, TaskContext, ...], S]
    | Callable[Concatenate[Any, Any, Any, Any, Any, Any, Any, TaskContext, ...], S]
    | Callable[Concatenate[Any, Any, Any, Any, Any, Any, Any, Any, TaskContext, ...], S]
    | Callable[Concatenate[Any, Any, Any, Any, Any, Any, Any, Any, Any, TaskContext, ...], S]
    | Callable[Concatenate[Any, Any, Any, Any, Any, Any, Any, Any, Any, Any, TaskContext, ...], S]
)

class _ByName(Protocol[S_co]):
    def __call__(self, *args: Any, ctx: TaskContext, **kwargs: Any) -> S_co: ...

class _ByName0(Protocol[S_co]):
    def __call__(self, *, ctx: TaskContext) -> S_co: ...

class _ByName1(Protocol[S_co]):
    def __call__(self, a: Any, /, *, ctx: TaskContext) -> S_co: ...

class _ByName2(Protocol[S_co]):
    def __call__(self, a: Any, b: Any, /, *, ctx: TaskContext) -> S_co: ...

class _ByName3(Protocol[S_co]):
    def __call__(self, a: Any, b: Any, c: Any, /, *, ctx: TaskContext) -> S_co: ...

class _ByName4(Protocol[S_co]):
    def __call__(self, a: Any, b: Any, c: Any, d: Any, /, *, ctx: TaskContext) -> S_co: ...

class _ByName5(Protocol[S_co]):
    def __call__(self, a: Any, b: Any, c: Any, d: Any, e: Any, /, *, ctx: TaskContext) -> S_co: ...

class _ByName6(Protocol[S_co]):
    def __call__(self, a: Any, b: Any, c: Any, d: Any, e: Any, f: Any, /, *, ctx: TaskContext) -> S_co: ...

_ContextByName: TypeAlias = (  # pyright finds it with the first of these, mypy with one of the others
    _ByName[S] | _ByName0[S] | _ByName1[S] | _ByName2[S] | _ByName3[S] | _ByName4[S] | _ByName5[S] | _ByName6[S]
)

class TaskMaker(Protocol):
    """`app.task`: a decorator as it is, or called first with a type name and options."""

    @overload
    def __call__(self, function: T, /) -> T: ...
    @overload
    def __call__(self, function: _Untyped[Async[R]], /) -> LooseTask[..., R, Async[R]]: ...
    @overload
    def __call__(
        self, function: Callable[Concatenate[TaskContext | None, P], Async[R]], /
    ) -> LooseTask[P, R, Async[R]]: ...
    @overload
    def __call__(
        self, function: Callable[Concatenate[TaskContext, P], Async[R]], /
    ) -> ContextFirst[P, R, Async[R]]: ...
    @overload
    def __call__(self, function: _Between[Async[R]], /) -> LooseTask[..., R, Async[R]]: ...
    @overload
    def __call__(
        self, function: Callable[[A, TaskContext], Async[R]], /
    ) -> ContextLast[R, Async[R], A, Never, Never, Never, Never, Never]: ...
    @overload
    def __call__(
        self, function: Callable[[A, B, TaskContext], Async[R]], /
    ) -> ContextLast[R, Async[R], A, B, Never, Never, Never, Never]: ...
    @overload
    def __call__(
        self, function: Callable[[A, B, C, TaskContext], Async[R]], /
    ) -> ContextLast[R, Async[R], A, B, C, Never, Never, Never]: ...
    @overload
    def __call__(
        self, function: Callable[[A, B, C, D, TaskContext], Async[R]], /
    ) -> ContextLast[R, Async[R], A, B, C, D, Never, Never]: ...
    @overload
    def __call__(
        self, function: Callable[[A, B, C, D, E, TaskContext], Async[R]], /
    ) -> ContextLast[R, Async[R], A, B, C, D, E, Never]: ...
    @overload
    def __call__(
        self, function: Callable[[A, B, C, D, E, F, TaskContext], Async[R]], /
    ) -> ContextLast[R, Async[R], A, B, C, D, E, F]: ...
    @overload
    def __call__(self, function: _Further[Async[R]], /) -> LooseTask[..., R, Async[R]]: ...
    @overload
    def __call__(self, function: _ContextByName[Async[R]], /) -> LooseTask[..., R, Async[R]]: ...
    @overload
    def __call__(self, function: Callable[P, Async[R]], /) -> PlainTask[P, R, Async[R]]: ...
    @overload
    def __call__(self, function: _Untyped[R], /) -> LooseTask[..., R, R]: ...
    @overload
    def __call__(self, function: Callable[Concatenate[TaskContext | None, P], R], /) -> LooseTask[P, R, R]: ...
    @overload
    def __call__(self, function: Callable[Concatenate[TaskContext, P], R], /) -> ContextFirst[P, R, R]: ...
    @overload
    def __call__(self, function: _Between[R], /) -> LooseTask[..., R, R]: ...
    @overload
    def __call__(
        self, function: Callable[[A, TaskContext], R], /
    ) -> ContextLast[R, R, A, Never, Never, Never, Never, Never]: ...
    @overload
    def __call__(
        self, function: Callable[[A, B, TaskContext], R], /
    ) -> ContextLast[R, R, A, B, Never, Never, Never, Never]: ...
    @overload
    def __call__(
        self, function: Callable[[A, B, C, TaskContext], R], /
    ) -> ContextLast[R, R, A, B, C, Never, Never, Never]: ...
    @overload
    def __call__(
        self, function: Callable[[A, B, C, D, TaskContext], R], /
    ) -> ContextLast[R, R, A, B, C, D, Never, Never]: ...
    @overload
    def __call__(
        self, function: Callable[[A, B, C, D, E, TaskContext], R], /
    ) -> ContextLast[R, R, A, B, C, D, E, Never]: ...
    @overload
    def __call__(
        self, function: Callable[[A, B, C, D, E, F, TaskContext], R], /
    ) -> ContextLast[R, R, A, B, C, D, E, F]: ...
    @overload
    def __call__(self, function: _Further[R], /) -> LooseTask[..., R, R]: ...
    @overload
    def __call__(self, function: _ContextByName[R], /) -> LooseTask[..., R, R]: ...
    @overload
    def __call__(self, function: Callable[P, R], /) -> PlainTask[P, R, R]: ...
    @overload
    def __call__(
        self,
        type: str | None = None,
        /,
        *,
        run_in: RunIn | None = None,
        when_cut_off: WhenCutOff | None = None,
        **options: Unpack[HandlerOptions],
    ) -> TaskMaker: ...
