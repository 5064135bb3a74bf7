"""What a handler's signature says: which parameter is the context, which are the payload, and of what types."""

from __future__ import annotations

import functools
import inspect
import sys
import types
import typing
from typing import Any, NamedTuple, Union

from tickwork.errors import ConfigError
from tickwork.handlers.context import TaskContext
from tickwork.handlers.depends import Dependency, dependency_of
from tickwork.payload.types import REQUIRED, Field


class Signature(NamedTuple):
    context: str | None  # the name of the parameter that takes it
    by_position: bool  # it can be given by position only
    fields: tuple[Field, ...]
    returns: Any
    dependencies: dict[str, Dependency]  # by the name of the parameter


def read(owner: str, target: Any) -> Signature:
    """Of a function, a callable object, or an object with a method `handle(ctx, payload)`. `owner` is its type."""
    function = target if callable(target) else target.handle
    _refuse_what_cannot_work(owner, target, function)
    parameters = inspect.signature(function).parameters
    hints = _hints(owner, function)
    contexts = [name for name in parameters if _is_context(hints.get(name))]
    if not callable(target) and not contexts:
        contexts = _bare_context(owner, parameters, hints)
    if len(contexts) > 1:
        raise ConfigError(f"handler {owner!r} has several parameters for the context: {', '.join(contexts)}; keep one")
    context = contexts[0] if contexts else None
    dependencies = {
        name: found
        for name, each in parameters.items()
        if (found := dependency_of(owner, each, hints.get(name))) is not None
    }
    fields = tuple(
        _field(owner, each, hints) for name, each in parameters.items() if name != context and name not in dependencies
    )
    by_position = context is not None and parameters[context].kind is inspect.Parameter.POSITIONAL_ONLY
    return Signature(context, by_position, fields, hints.get("return"), dependencies)


def _refuse_what_cannot_work(owner: str, target: Any, function: Any) -> None:
    if inspect.isclass(target):
        raise ConfigError(f"handler {owner!r} is the class {target.__name__}; register an instance of it")
    call = function if inspect.isroutine(function) else getattr(function, "__call__", None)  # noqa: B004
    if any(inspect.isgeneratorfunction(each) or inspect.isasyncgenfunction(each) for each in (function, call)):
        raise ConfigError(f"handler {owner!r} is a generator, which nobody would run to its end; return a list instead")
    scope = getattr(function, "__qualname__", "").rpartition(".")[0]
    in_class = inspect.isfunction(function) and scope and not scope.endswith("<locals>")
    first = next(iter(inspect.signature(function).parameters), "")
    if in_class and first in ("self", "cls") and first not in function.__annotations__:
        raise ConfigError(
            f"handler {owner!r} is a method of {scope}, and nobody could give it its {first!r}; register the method of "
            "an object, or a function"
        )


def _bare_context(owner: str, parameters: typing.Mapping[str, inspect.Parameter], hints: dict[str, Any]) -> list[str]:
    """The first parameter of `handle(ctx, payload)` is the context even where it has no annotation."""
    names = list(parameters)
    if not names or names[0] in hints:
        return []
    if len(names) == 1:
        raise ConfigError(
            f"handler {owner!r}: the only parameter of its handle(), {names[0]!r}, may be the context or the payload; "
            "write handle(ctx, payload), or annotate it"
        )
    return names[:1]


def _field(owner: str, parameter: inspect.Parameter, hints: dict[str, Any]) -> Field:
    name = parameter.name
    if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
        stars = "*" if parameter.kind is parameter.VAR_POSITIONAL else "**"
        raise ConfigError(f"handler {owner!r}: {stars}{name} cannot be a payload; name each parameter")
    if parameter.kind is parameter.POSITIONAL_ONLY:
        raise ConfigError(f"handler {owner!r}: positional-only parameter {name!r} cannot be a payload")
    return Field(name, hints.get(name, Any), REQUIRED if parameter.default is parameter.empty else parameter.default)


def _is_context(declared: Any) -> bool:
    """`TaskContext`, also as one that may be left out (`| None`), or annotated."""
    origin = typing.get_origin(declared)
    if origin is typing.Annotated:
        return _is_context(declared.__origin__)
    if origin in (Union, types.UnionType):
        return {TaskContext, types.NoneType} >= set(typing.get_args(declared)) != {types.NoneType}
    return declared is TaskContext


def _hints(owner: str, function: Any) -> dict[str, Any]:
    annotated = _annotated(function)
    try:
        return typing.get_type_hints(annotated, include_extras=True)
    except NameError:
        pass
    except Exception as error:  # an annotation may be anything
        raise ConfigError(f"handler {owner!r}: cannot read its annotations: {error}") from None
    try:
        return typing.get_type_hints(annotated, localns=_names_around(annotated), include_extras=True)
    except Exception as error:
        raise ConfigError(
            f"handler {owner!r}: cannot read its annotations: {error}. A type must be defined at the top of the "
            "handler's module, or in the function that registers it"
        ) from None


def _names_around(function: Any) -> dict[str, Any]:
    """The local names of the functions of the handler's own module that are about to register it."""
    found: list[dict[str, Any]] = []
    frame: types.FrameType | None = sys._getframe()
    while frame is not None:
        if frame.f_globals.get("__name__") == getattr(function, "__module__", None):
            found.append(frame.f_locals)
        frame = frame.f_back
    return {name: value for names in reversed(found) for name, value in names.items()}


def _annotated(function: Any) -> Any:
    """What carries the annotations of a callable: of a partial its function, of an object its `__call__`."""
    while isinstance(function, functools.partial):
        function = function.func
    return function if inspect.isroutine(function) else type(function).__call__
