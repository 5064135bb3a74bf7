"""The forms that the values of options are written in.

A reader turns what was written into the value it stands for; its ValueError goes on from "name: value (origin)", so it
begins with a verb. Environment variables hold only text: a list is `a, b` there and a mapping `a=b, c=d`, or either is
JSON.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from datetime import timedelta
from functools import cache, partial
from types import NoneType, UnionType
from typing import Any, TypeAlias, Union, get_args, get_origin

import msgspec
from msgspec import Struct

from tickwork.backoff import Seconds
from tickwork.errors import ConfigError
from tickwork.ids import is_name
from tickwork.payload.depth import TOO_DEEP, is_deep_json
from tickwork.texts import shown

Reader: TypeAlias = Callable[[Any], Any]

_TRUE, _FALSE = ("true", "1", "yes", "on"), ("false", "0", "no", "off")
LONGEST_TEXT = 64  # of a number or a duration; the patterns below take their time with a longer one
_NUMBER = re.compile(r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?")
_UNITS = {"d": 86_400, "h": 3_600, "m": 60, "s": 1, "ms": 0.001}
_DURATION = re.compile(r"\s*".join(rf"(?:([0-9]+(?:\.[0-9]+)?)\s*{unit}(?![a-z]))?" for unit in _UNITS))
_LONG_FIELDS = {"base_delay": "base", "max_delay": "max"}


def read_text(value: Any) -> str:
    if isinstance(value, str):
        return value
    raise ValueError("is not text; put it in quotes")


def read_switch(value: Any) -> bool:
    word = str(value).strip().lower() if isinstance(value, str | int) else None
    if word in _TRUE + _FALSE:
        return word in _TRUE
    raise ValueError("is not true or false")


def read_number(value: Any) -> float:
    _refuse_long(value)
    if isinstance(value, str) and _NUMBER.fullmatch(value.strip()):
        value = float(value)
    if isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 1e300:
        return float(value)
    raise ValueError("is not a number")


def read_whole(value: Any) -> int:
    with suppress(ValueError):
        number = read_number(value)
        if number.is_integer():
            return int(number)
    raise ValueError("is not a whole number")


def read_seconds(value: Any) -> float:
    _refuse_long(value)
    if isinstance(value, timedelta):
        return value.total_seconds()
    if isinstance(value, str) and value.strip() and (found := _DURATION.fullmatch(value.strip())):
        counts = zip(found.groups(default="0"), _UNITS.values(), strict=True)
        return round(sum(float(count) * size for count, size in counts), 6)
    try:
        return read_number(value)
    except ValueError:
        raise ValueError("is not a duration; give seconds, or text such as 250ms, 10s, 1h30m, 7d") from None


def _refuse_long(value: Any) -> None:
    if isinstance(value, str) and len(value) > LONGEST_TEXT:
        raise ValueError(f"has {len(value)} characters; a number or a duration has {LONGEST_TEXT} at most")


def read_list(item: Reader, value: Any) -> tuple[Any, ...]:
    value = _from_json(value)
    if isinstance(value, str):
        value = [part.strip() for part in value.split(",") if part.strip()]
    if not isinstance(value, Sequence):
        raise ValueError("is not a list, such as a, b")
    return tuple(_within(f"[{index}]", item, each) for index, each in enumerate(value))


def read_mapping(value: Any) -> dict[str, str]:
    value = _from_json(value)
    if isinstance(value, str):
        pairs = [part.partition("=") for part in value.split(",") if part.strip()]
        value = {name.strip(): text.strip() if equals else None for name, equals, text in pairs}
    if isinstance(value, Mapping) and all(isinstance(text, str) for text in (*value, *value.values())):
        return dict(value)
    raise ValueError("is not a mapping of text to text, such as zone=eu, gpu=yes")


def read_text_or_mapping(value: Any) -> str | dict[str, str]:
    value = _from_json(value)
    return read_mapping(value) if isinstance(value, Mapping) or "=" in read_text(value) else value.strip()


def read_couple(value: Any, /, **kinds: Any) -> tuple[Any, ...] | None:
    """A tuple of named fields, or None when it is switched off."""
    value = _from_json(value)
    if value is False or (isinstance(value, str) and value.strip().lower() in _FALSE):
        return None
    if isinstance(value, Mapping):
        _check_fields(value, {*kinds, "enabled"})
        if not _within("enabled", read_switch, value.get("enabled", True)):
            return None
        value = [value.get(name) for name in kinds]
    if isinstance(value, str):
        value = value.split(",")
    if not isinstance(value, Sequence) or len(value) != len(kinds):
        raise ValueError(f"is not {' and '.join(kinds)}, such as [10, 20]; false switches it off")
    return tuple(_within(name, reader_of(kinds[name]), each) for name, each in zip(kinds, value, strict=True))


def read_record(kinds: Sequence[type[Struct]], value: Any) -> Any:
    """A record of one of these kinds; `type` names which, the first if it is left out."""
    value = _from_json(value)
    if type(value) in kinds:
        return value
    if isinstance(value, Struct):  # a worker elsewhere would not know a class of somebody's own
        raise ValueError(f"is none of {', '.join(kind.__name__ for kind in kinds)}")
    if not isinstance(value, Mapping):
        raise ValueError("is not a mapping of fields to values")
    fields: dict[Any, Any] = {_LONG_FIELDS.get(name, name): each for name, each in value.items()}
    kind = kinds[0]
    if len(kinds) > 1 and "type" in fields:
        by_tag = {str(each.__struct_config__.tag): each for each in kinds}
        tag = str(fields.pop("type"))
        if tag not in by_tag:
            raise ValueError(f"is of unknown type {tag!r}; known are {', '.join(by_tag)}")
        kind = by_tag[tag]
    readers = readers_of(kind)
    _check_fields(fields, readers)
    try:
        return kind(**{name: _within(name, readers[name], each) for name, each in fields.items()})
    except (TypeError, ConfigError) as error:  # a field is missing, or they do not go together
        raise ValueError(f"cannot be used: {error}") from None


def read_named(kind: Any, value: Any) -> dict[str, Any]:
    """A mapping of names to records."""
    value = _from_json(value)
    if not isinstance(value, Mapping):
        raise ValueError("is not a mapping of names to records")
    for name in value:
        if not isinstance(name, str) or not is_name(name):
            raise ValueError(f"holds {shown(name)}; a name is 1 to 128 letters, digits and . _ : @ -")
    return {name: _within(name, reader_of(kind), each) for name, each in value.items()}


def read_text_or_record(kind: type[Struct], value: Any) -> Any:
    return read_record([kind], value) if isinstance(value, Mapping | Struct) else read_text(value)


def reader_of(kind: Any) -> Reader:
    """The reader of an annotation; `X | None` is read as X."""
    if kind in _READERS:
        return _READERS[kind]
    if get_origin(kind) is dict:
        return partial(read_named, get_args(kind)[1])
    if isinstance(kind, type) and issubclass(kind, Struct):
        return partial(read_record, [kind])
    arguments = [each for each in get_args(kind) if each not in (NoneType, Ellipsis)]
    if get_origin(kind) not in (Union, UnionType):
        return partial(read_list, reader_of(arguments[0]))
    if len(arguments) == 2 and arguments[0] is str:
        return partial(read_text_or_record, arguments[1])
    return partial(read_record, arguments) if len(arguments) > 1 else reader_of(arguments[0])


@cache
def readers_of(kind: type[Struct]) -> dict[str, Reader]:
    return {field.name: reader_of(field.type) for field in msgspec.structs.fields(kind)}


def nearest(name: object, known: Collection[str]) -> str:
    from difflib import get_close_matches  # only a mistake needs it

    near = get_close_matches(str(name)[:64], known, 1, 0.5)
    return f"; did you mean {near[0]!r}?" if near else ""


_READERS: dict[Any, Reader] = {
    str: read_text,
    bool: read_switch,
    float: read_number,
    int: read_whole,
    Seconds: read_seconds,
    dict[str, str]: read_mapping,
    str | dict[str, str]: read_text_or_mapping,
    Any: lambda value: value,
}


def _within(name: str, reader: Reader, value: Any) -> Any:
    try:
        return reader(value)
    except ValueError as error:
        # A whole record may hold what is confidential: an address, a header, a secret in the wrong place.
        told = "" if isinstance(value, Mapping | list | tuple) else f"{shown(value)} "
        raise ValueError(f"cannot be used: {name}: {told}{error}") from None


def _check_fields(given: Mapping[Any, Any], known: Collection[str]) -> None:
    for name in given:
        if name not in known:
            raise ValueError(f"has an unknown field {shown(name)}{nearest(name, known)}")


def _from_json(value: Any) -> Any:
    if not isinstance(value, str) or value.lstrip()[:1] not in ("[", "{"):
        return value
    if is_deep_json(value.encode("utf-8", "replace")):
        raise ValueError(f"is not JSON that can be used: {TOO_DEEP}")
    try:
        return msgspec.json.decode(value)
    except msgspec.DecodeError as error:
        raise ValueError(f"is not JSON: {error}") from None
