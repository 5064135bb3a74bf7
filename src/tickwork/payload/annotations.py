"""What a declared type is made of. Pure look-ups in annotations, without deciding anything."""

from __future__ import annotations

import dataclasses
import sys
import types
import typing
from collections.abc import Collection, Iterable, Iterator, Mapping
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Annotated, Any, Literal, NamedTuple, Union
from uuid import UUID

PLAIN = (bool, bytes, date, datetime, float, int, str, time, timedelta, Decimal, UUID)
ARRAYS = (list, tuple, set, frozenset)


class Part(NamedTuple):
    """A type inside a declared type, and whether a pydantic model lies around it."""

    declared: Any
    in_model: bool


def parts(declared: Any) -> Iterator[Part]:
    """The type itself and every type that it mentions, each once: members of unions, fields, items."""
    seen: dict[int, Any] = {}  # by identity, as annotations need not be hashable; held, or an identity might come again
    left = [Part(declared, False)]
    while left:
        part = left.pop()
        if id(part.declared) not in seen:
            seen[id(part.declared)] = part.declared
            yield part
            inside = part.in_model or is_model(part.declared)
            left += [Part(inner, inside) for inner in _inner(part.declared)]


def _inner(declared: Any) -> list[Any]:
    origin = typing.get_origin(declared)
    if origin is Annotated:
        return [declared.__origin__]
    if origin is Literal:
        return []
    if origin is not None:
        return [origin, *(part for part in typing.get_args(declared) if part is not Ellipsis)]
    if hasattr(declared, "__supertype__"):  # a NewType
        return [declared.__supertype__]
    if type(declared).__name__ == "TypeAliasType":
        return [declared.__value__]
    return _fields(declared) if isinstance(declared, type) else []


def _fields(kind: type) -> list[Any]:
    if is_model(kind):
        return [field.annotation for field in kind.model_fields.values()]  # type: ignore[attr-defined]
    has_fields = dataclasses.is_dataclass(kind) or hasattr(kind, "__struct_fields__") or hasattr(kind, "_fields")
    if not has_fields and not typing.is_typeddict(kind):
        return []
    try:
        return list(typing.get_type_hints(kind, include_extras=True).values())
    except NameError:  # a class inside a function may name what cannot be found from here
        return []


def members(declared: Any) -> tuple[Any, ...]:
    """Of a union its members, without their annotations; of anything else nothing."""
    if typing.get_origin(declared) not in (Union, types.UnionType):
        return ()
    return tuple(
        member.__origin__ if typing.get_origin(member) is Annotated else member for member in typing.get_args(declared)
    )


def is_model(kind: Any) -> bool:
    """A pydantic model. Whoever has made one has imported pydantic."""
    pydantic = sys.modules.get("pydantic")
    return pydantic is not None and isinstance(kind, type) and issubclass(kind, pydantic.BaseModel)


def is_pydantic_dataclass(kind: Any) -> bool:
    return isinstance(kind, type) and "__is_pydantic_dataclass__" in vars(kind)


def has_constraints(declared: Any) -> bool:
    """Annotated with what pydantic checks and msgspec would ignore, such as `pydantic.Field(gt=0)`."""
    notes = getattr(declared, "__metadata__", ()) if typing.get_origin(declared) is Annotated else ()
    return any(type(note).__module__.partition(".")[0] in ("pydantic", "annotated_types") for note in notes)


def field_names(value: Any) -> Collection[str]:
    """The names of an object's fields, if it is of a kind that is encoded by them."""
    kind: Any = type(value)
    if is_model(kind):
        return (*kind.model_fields, *(value.__pydantic_extra__ or ()))
    if hasattr(kind, "__attrs_attrs__"):
        return tuple(each.name for each in kind.__attrs_attrs__)
    fields: Iterable[str] = getattr(kind, "__struct_fields__", ()) or getattr(kind, "__dataclass_fields__", ())
    return tuple(fields)


def wire_names(value: Any) -> set[str]:
    """The names that the fields of such an object may have where it is written."""
    kind: Any = type(value)
    if is_model(kind):
        fields = kind.model_fields.items()
        return {each for name, field in fields for each in (name, field.alias, field.validation_alias) if each}
    return {*field_names(value), *getattr(kind, "__struct_encode_fields__", ())}


def takes_any_object(declared: Any) -> bool:
    """Whether objects of whatever names fit: `Any`, `object`, a mapping, or a union with one of these."""
    origin = typing.get_origin(declared)
    if origin is Annotated:
        return takes_any_object(declared.__origin__)
    if hasattr(declared, "__supertype__"):  # a NewType
        return takes_any_object(declared.__supertype__)
    if type(declared).__name__ == "TypeAliasType":
        return takes_any_object(declared.__value__)
    if found := members(declared):
        return any(map(takes_any_object, found))
    kind = declared if origin is None else origin
    if kind is Any or kind is object or isinstance(kind, typing.TypeVar):
        return True
    return isinstance(kind, type) and issubclass(kind, Mapping) and not typing.is_typeddict(kind)


def takes_no_object(declared: Any) -> bool:
    """Surely none: what can be nothing but a text, a number, or an array. Of others it is not known."""
    return declared in PLAIN or typing.get_origin(declared) in ARRAYS
