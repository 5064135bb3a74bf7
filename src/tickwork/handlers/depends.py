"""Dependencies: parameters of a handler that are not part of its payload, but made for each run."""

from __future__ import annotations

import inspect
import typing
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from typing import Any, TypeVar, overload

from tickwork.errors import ConfigError
from tickwork.handlers.context import TaskContext
from tickwork.texts import shown

T = TypeVar("T")


class Dependency:
    """How the value of a parameter is made."""

    def __init__(self, provider: Callable[..., Any]) -> None:
        if not callable(provider):
            raise ConfigError(f"Depends takes a function that makes the value, not {shown(provider)}")
        self._provider = provider
        # Only by its function, since many things that are merely handed on, such as HTTP clients, could be entered too.
        self._is_context = inspect.isasyncgenfunction(inspect.unwrap(provider))
        if inspect.isasyncgenfunction(provider):
            self._provider = asynccontextmanager(provider)
        needed = [each for each in inspect.signature(provider).parameters.values() if each.default is each.empty]
        if len(needed) > 1:
            names = ", ".join(each.name for each in needed)
            raise ConfigError(f"the function of Depends may have one parameter, for the context; it has {names}")
        self._takes_context = bool(needed)

    async def make(self, stack: AsyncExitStack, context: TaskContext | None) -> Any:
        value = self._provider(context) if self._takes_context else self._provider()
        if self._is_context:
            return await stack.enter_async_context(value)
        return await value if inspect.isawaitable(value) else value


@overload
def Depends(provider: Callable[..., AbstractAsyncContextManager[T]]) -> T: ...
@overload
def Depends(provider: Callable[..., AsyncIterator[T]]) -> T: ...
@overload
def Depends(provider: Callable[..., Awaitable[T]]) -> T: ...
@overload
def Depends(provider: Callable[..., T]) -> T: ...
def Depends(provider: Callable[..., Any]) -> Any:  # noqa: N802 - it stands where a value would
    """A parameter that is made for each run: `pool: Pool = Depends(get_pool)`, or `Annotated[Pool, Depends(get_pool)]`.

    `provider` is a function, sync or async, without parameters or with one for the `TaskContext`. An async generator,
    or a function with `@asynccontextmanager`, is left again when the handler has ended.
    """
    return Dependency(provider)


def dependency_of(owner: str, parameter: inspect.Parameter, declared: Any) -> Dependency | None:
    """What its default or its annotation says; None for a part of the payload."""
    marks = typing.get_args(declared)[1:] if typing.get_origin(declared) is typing.Annotated else ()
    found = next((mark for mark in (parameter.default, *marks) if isinstance(mark, Dependency)), None)
    if found is not None and parameter.kind is parameter.POSITIONAL_ONLY:
        raise ConfigError(f"handler {owner!r}: positional-only parameter {parameter.name!r} cannot be a dependency")
    return found


@asynccontextmanager
async def provided(
    dependencies: Mapping[str, Dependency], context: TaskContext | None
) -> AsyncIterator[dict[str, Any]]:
    """The values for one run, in the order of the parameters. What is left again is told how the run ended."""
    async with AsyncExitStack() as stack:
        yield {name: await each.make(stack, context) for name, each in dependencies.items()}
