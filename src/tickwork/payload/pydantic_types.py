"""What pydantic decodes: its models and dataclasses, its constraints, and unions that msgspec cannot tell apart.

Everything is validated as JSON, not as Python values: a strict model accepts a date from a text only then, and a model
may say how it writes bytes to JSON. Texts of errors name places and kinds, never values: whoever may read an error need
not be one who may read payloads.
"""

from __future__ import annotations

import typing
from collections.abc import Callable
from typing import Any, ClassVar

import msgspec

from tickwork.payload.annotations import is_model

SHOWN_MAX = 5  # mistakes of one payload that are told
TELLS_INPUT = {"assertion_error", "union_tag_invalid", "uuid_parsing", "value_error"}


class Refused(ValueError):
    """A value does not fit; the text is safe to show."""


class _HoldsAnything(type):
    """msgspec asks whether what a hook has decoded is an instance; pydantic has checked that already."""

    def __instancecheck__(cls, instance: object) -> bool:
        return True


class StandIn(metaclass=_HoldsAnything):
    """Stands for a type where msgspec decodes what is around it; pydantic decodes the type itself."""

    adapter: ClassVar[Any]


def stand_in(declared: Any) -> type[StandIn]:
    """Raises ImportError where pydantic is not installed, and TypeError for what it cannot decode either."""
    from pydantic import ConfigDict, TypeAdapter
    from pydantic.errors import PydanticUserError

    try:
        try:
            made = TypeAdapter(declared, config=ConfigDict(strict=True))  # "3" is no int, as for msgspec
        except PydanticUserError as error:
            if error.code != "type-adapter-config-unused":  # a type with settings of its own
                raise
            made = TypeAdapter(declared)
        if hasattr(made, "rebuild"):  # raises now, not with the first payload, if a name in the type cannot be found
            made.rebuild()
    except (PydanticUserError, NameError) as error:
        raise TypeError(str(error).partition("\n")[0]) from None

    class Decoded(StandIn):
        adapter = made

    return Decoded


def validator(kind: Any) -> Callable[[bytes], Any] | None:
    """How to read such a value from JSON, if that is pydantic's to do."""
    if isinstance(kind, type) and issubclass(kind, StandIn):
        validate = kind.adapter.validate_json
    elif is_model(kind):
        validate = kind.model_validate_json
    else:
        return None

    def read(data: bytes) -> Any:
        from pydantic import ValidationError

        try:
            return validate(data)
        except ValidationError as error:
            raise Refused(_describe(error)) from None

    return read


def dump(value: Any) -> Any:
    """A model as plain values, such that it can be read again."""
    return value.model_dump(mode="json", by_alias=True, round_trip=True, warnings=False)


def dump_as(kind: type[StandIn], value: Any) -> Any:
    return kind.adapter.dump_python(value, mode="json", by_alias=True, round_trip=True, warnings=False)


def read(kind: Any, value: Any) -> Any:
    """From values that another decoder has made of the wire's bytes."""
    if not _is_json(value):  # MsgPack carries bytes and times, which would be texts in JSON
        return _read_python(kind, value)
    validate = validator(kind)
    assert validate is not None
    return validate(msgspec.json.encode(value))


def _read_python(kind: Any, value: Any) -> Any:
    from pydantic import ValidationError

    try:
        return kind.adapter.validate_python(value) if issubclass(kind, StandIn) else kind.model_validate(value)
    except ValidationError as error:
        raise Refused(_describe(error)) from None


def _is_json(value: Any) -> bool:
    if isinstance(value, dict):
        return all(map(_is_json, value.values()))
    if isinstance(value, list):
        return all(map(_is_json, value))
    return value is None or isinstance(value, str | int | float)


def _describe(error: Any) -> str:
    told = error.errors(include_url=False, include_context=False, include_input=False)
    lines = [_line(mistake["loc"], mistake["type"], mistake["msg"]) for mistake in told[:SHOWN_MAX]]
    return "; ".join(lines) + (f"; and {len(told) - SHOWN_MAX} more" if len(told) > SHOWN_MAX else "")


def _line(place: tuple[Any, ...], kind: str, text: str) -> str:
    from pydantic_core.core_schema import ErrorType

    if kind == "value_error" or kind == "assertion_error":
        text = "a validator of the type refuses it"
    elif kind in TELLS_INPUT or kind not in typing.get_args(ErrorType):  # a validator's own kind may say anything
        text = f"it is refused ({kind})"
    return f"{'.'.join(map(str, place))}: {text}" if place else text
