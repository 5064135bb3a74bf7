"""The declared type of a payload or a result: encode a value for it, decode one as it, and say what does not fit.

msgspec decodes; what it cannot, pydantic does where it is installed. Errors name the place and the kind of what is
wrong, never the value, since they are stored and logged.
"""

from __future__ import annotations

import enum
import re
from collections.abc import Callable, Mapping, Sequence
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from pathlib import PurePath
from typing import Any, NamedTuple, NotRequired, TypedDict
from uuid import UUID

import msgspec

from tickwork.errors import ConfigError, PayloadError
from tickwork.payload import pydantic_types
from tickwork.payload.annotations import PLAIN, has_constraints, is_model, is_pydantic_dataclass, members, parts
from tickwork.payload.codec import BUILTIN, JSONSerializer, Serializer, decode_hook, encode
from tickwork.payload.depth import TOO_DEEP, is_deep_json
from tickwork.payload.pydantic_types import Refused, StandIn
from tickwork.payload.roundtrip import difference

ANY_TEXT = (str, bytes, bytearray)  # to these, whatever JSON has as a text may belong
TEXTS = (*ANY_TEXT, datetime, date, time, timedelta, UUID, Decimal, PurePath, enum.Enum)
VALUE_IN_TEXT = re.compile(r"^(Invalid (?:enum )?value) .*?(?= - at `|$)", re.DOTALL)
REQUIRED: Any = msgspec.NODEFAULT


class Field(NamedTuple):
    """A parameter of a handler; one that must be given has the default `REQUIRED`."""

    name: str
    declared: Any
    default: Any = REQUIRED


class PayloadType:
    """The declared type of a value, and how to check one against it."""

    def __init__(self, wire: Any, stand_ins: dict[str, type[StandIn]], by_pydantic: frozenset[type]) -> None:
        self.wire = wire  # what a serializer decodes
        self._stand_ins = stand_ins  # of its fields, where it is an object of several parameters
        self.by_pydantic = by_pydantic  # the types in it, if any of them is pydantic's to decode
        self._from_json = pydantic_types.validator(wire)
        # Encoded, unchecked. Most types have nothing of pydantic's in them, and this is called for each task.
        self.dump: Callable[[Serializer, Any], bytes] = self._dump_with_pydantic if by_pydantic else encode

    def decode(self, serializer: Serializer, data: bytes) -> Any:
        """The typed value; `PayloadError` names the field that does not fit."""
        try:
            if self.by_pydantic:
                return self._decode_with_pydantic(serializer, data)
            return serializer.decode(data, self.wire)
        except PayloadError:
            raise
        except Exception as error:  # a serializer of the user's own may raise anything
            raise PayloadError(_text_of(error)) from None

    def _decode_with_pydantic(self, serializer: Serializer, data: bytes) -> Any:
        if self._from_json is not None and isinstance(serializer, JSONSerializer):
            if is_deep_json(data):
                raise PayloadError(TOO_DEEP)
            return self._from_json(data)
        if serializer is BUILTIN.get(serializer.name):
            return serializer.decode(data, self.wire)
        return msgspec.convert(serializer.decode(data), self.wire, dec_hook=decode_hook)

    def encode(self, serializer: Serializer, value: Any) -> bytes:
        """Encoded, and checked by decoding it as a worker will."""
        data = self.dump(serializer, value)
        if self.wire is not Any:
            self.check(value, self.decode(serializer, data))
        return data

    def check(self, given: Any, found: Any) -> None:
        """Refuse what would arrive as something else."""
        if self.by_pydantic and (problem := difference(given, found, self.by_pydantic)):
            raise PayloadError(problem)

    def _dump_with_pydantic(self, serializer: Serializer, value: Any) -> bytes:
        return encode(serializer, self._plain(value))

    def _plain(self, value: Any) -> Any:
        if _is_stand_in(self.wire):
            return pydantic_types.dump_as(self.wire, value)
        if not isinstance(value, Mapping):
            return value
        given = self._stand_ins.keys() & value.keys()
        return {**value, **{name: pydantic_types.dump_as(self._stand_ins[name], value[name]) for name in given}}


def of_value(declared: Any, owner: str) -> PayloadType:
    """For one value of that type; `owner` is the handler, for errors."""
    wire = _wire_type(declared, owner)
    return PayloadType(wire, {}, _by_pydantic(declared, wire))


class ObjectTypes(NamedTuple):
    """The types of an object with the names of a handler's parameters."""

    exact: PayloadType  # refuses other names; decodes to a Struct, where UNSET stands for what is not there
    wider: PayloadType  # ignores other names; decodes to a dict of what is there
    may_be_deep: bool


def of_fields(fields: Sequence[Field], owner: str) -> ObjectTypes:
    wires = {field.name: _wire_type(field.declared, owner) for field in fields}
    # A handler has its defaults itself; here they only say that a field may be left out.
    exact = msgspec.defstruct(
        f"{owner} payload",
        [
            (name, wires[name]) if default is REQUIRED else (name, wires[name], msgspec.UNSET)
            for name, _, default in fields
        ],
        kw_only=True,
        forbid_unknown_fields=True,
    )
    wider = TypedDict(  # type: ignore[misc]
        f"{owner} payload",
        {name: wires[name] if default is REQUIRED else NotRequired[wires[name]] for name, _, default in fields},
    )
    stand_ins = {name: wire for name, wire in wires.items() if _is_stand_in(wire)}
    kinds: frozenset[type] = frozenset().union(*(_by_pydantic(field.declared, wires[field.name]) for field in fields))
    may_be_deep = any(wire not in PLAIN for wire in wires.values())
    return ObjectTypes(PayloadType(exact, stand_ins, kinds), PayloadType(wider, stand_ins, kinds), may_be_deep)


def _is_stand_in(wire: Any) -> bool:
    return isinstance(wire, type) and issubclass(wire, StandIn)


def _by_pydantic(declared: Any, wire: Any) -> frozenset[type]:
    found = [part.declared for part in parts(declared)]
    if not _is_stand_in(wire) and not any(map(is_model, found)):
        return frozenset()
    return frozenset(part for part in found if isinstance(part, type))


def _wire_type(declared: Any, owner: str) -> Any:
    """The type itself where msgspec can decode all of it, else a stand-in that pydantic decodes."""
    if _is_protobuf(declared):
        return declared
    outside = [part.declared for part in parts(declared) if not part.in_model]
    for part in outside:
        _refuse_alike(part, owner)
    why = "it has what pydantic checks and msgspec does not"
    if not any(is_pydantic_dataclass(part) or has_constraints(part) for part in outside):
        try:
            msgspec.json.Decoder(declared, dec_hook=decode_hook)
        except (TypeError, NameError) as error:
            why = str(error)
        else:
            return declared
    try:
        return pydantic_types.stand_in(declared)
    except ImportError:
        pass
    except TypeError as error:
        why = str(error)
    raise ConfigError(
        f"the payload of handler {owner!r} has a type that cannot be decoded: {why}. "
        "Use a tagged msgspec.Struct for unions of classes, or install pydantic."
    )


def _refuse_alike(declared: Any, owner: str) -> None:
    """A union of a text and of something that JSON has as a text: which it was, nobody could tell."""
    texts = [member for member in members(declared) if isinstance(member, type) and issubclass(member, TEXTS)]
    if len(texts) > 1 and any(member in ANY_TEXT for member in texts):
        names = " | ".join(member.__name__ for member in texts)
        raise ConfigError(
            f"the payload of handler {owner!r} has a type {names}, and in JSON all of these are texts, so that one "
            "would arrive as the other; declare one of them"
        )


def _is_protobuf(declared: Any) -> bool:
    return isinstance(declared, type) and hasattr(declared, "FromString") and hasattr(declared, "SerializeToString")


def _text_of(error: Exception) -> str:
    """What is wrong, without the value: checks of a type's own, such as `__post_init__`, like to quote it."""
    text, cause = str(error), error.__cause__
    if not isinstance(error, msgspec.ValidationError):
        return text or type(error).__name__
    if cause is not None and not isinstance(cause, Refused):
        return f"a check of the type refuses it ({type(cause).__name__}){text.removeprefix(str(cause))}"
    return VALUE_IN_TEXT.sub(r"\1", text)
