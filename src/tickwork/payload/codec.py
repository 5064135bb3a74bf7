"""Values to bytes and back. No pickle: what is stored never names code.

A `Serializer` has a name, which is stored with every task, so that the worker decodes with what the client encoded
with. Payload types come from annotations; msgspec checks them, pydantic models pass through if pydantic is installed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from pathlib import PurePath
from typing import Any, Protocol, runtime_checkable

import msgspec

from tickwork.errors import PayloadError
from tickwork.payload import pydantic_types
from tickwork.payload.annotations import field_names, is_model
from tickwork.payload.depth import DEPTH_MAX, SHORT_JSON, TOO_DEEP, is_deep_json, is_deep_msgpack

MASKED = b"**********"  # what pydantic shows of a secret


@runtime_checkable
class Serializer(Protocol):
    """Anything with a name that turns values into bytes and back."""

    @property
    def name(self) -> str: ...

    def encode(self, value: Any) -> bytes: ...

    def decode(self, data: bytes, type: Any = Any) -> Any:
        """The value again, as an instance of `type` where one is given."""


def _encode_hook(value: Any) -> Any:
    if is_model(type(value)):
        return pydantic_types.dump(value)
    if isinstance(value, PurePath):
        return str(value)
    raise NotImplementedError(f"values of type {type(value).__name__} cannot be encoded")


def decode_hook(kind: type, value: Any) -> Any:
    if is_model(kind) or issubclass(kind, pydantic_types.StandIn):
        return pydantic_types.read(kind, value)
    if issubclass(kind, PurePath) and isinstance(value, str):
        return kind(value)
    raise NotImplementedError(f"values of type {kind.__name__} cannot be decoded")


class BuiltinSerializer:
    """What msgspec writes. Refuses what is nested too deep."""

    name: str

    def __init__(self, codec: Any, is_deep: Callable[[bytes], bool], short: int, *, has_nan: bool) -> None:
        self._codec = codec  # the module of msgspec
        self._is_deep = is_deep
        self._short = short  # so many bytes have no room for more levels than are allowed
        self._has_nan = has_nan
        self._encode: Callable[[Any], bytes] = codec.Encoder(enc_hook=_encode_hook).encode
        self._decoders: dict[Any, Callable[[bytes], Any]] = {}

    def encode(self, value: Any) -> bytes:
        data = self._encode(value)
        if len(data) > self._short and self._is_deep(data):
            raise PayloadError(TOO_DEEP)
        if b"null" in data and not self._has_nan:  # msgspec writes NaN as null; only then is a closer look needed
            _refuse_nan(value)
        if MASKED in data:
            refuse_masked(value)
        return data

    def decode(self, data: bytes, type: Any = Any) -> Any:
        if len(data) > self._short and self._is_deep(data):
            raise PayloadError(TOO_DEEP)
        try:
            decode = self._decoders.get(type)
        except TypeError:  # an annotation may hold what cannot be hashed
            return self._codec.decode(data, type=type, dec_hook=decode_hook)
        if decode is None:
            decode = self._decoders[type] = self._codec.Decoder(type, dec_hook=decode_hook).decode
        return decode(data)

    def encoder(self, *, may_be_deep: bool = True) -> Callable[[Any], bytes]:
        """`encode`; for an object of plain values without its checks, which whoever reads it back by type makes."""
        return self.encode if may_be_deep else self._encode

    def decoder(self, type: Any, *, may_be_deep: bool = True) -> Callable[[bytes], Any]:
        """`decode` of one type alone, which is faster."""
        decode: Callable[[bytes], Any] = self._codec.Decoder(type, dec_hook=decode_hook).decode
        if not may_be_deep:
            return decode
        short, is_deep = self._short, self._is_deep

        def decode_what_is_not_deep(data: bytes) -> Any:
            if len(data) > short and is_deep(data):
                raise PayloadError(TOO_DEEP)
            return decode(data)

        return decode_what_is_not_deep


class JSONSerializer(BuiltinSerializer):
    """The default. Refuses NaN and infinities, which JSON cannot carry."""

    name = "json"

    def __init__(self) -> None:
        super().__init__(msgspec.json, is_deep_json, SHORT_JSON, has_nan=False)


class MsgPackSerializer(BuiltinSerializer):
    """Smaller and faster than JSON, and carries bytes as they are."""

    name = "msgpack"

    def __init__(self) -> None:
        super().__init__(msgspec.msgpack, is_deep_msgpack, DEPTH_MAX, has_nan=True)


class ProtobufSerializer:
    """For handlers whose payload is a protobuf message class."""

    name = "protobuf"

    def encode(self, value: Any) -> bytes:
        serialize = getattr(value, "SerializeToString", None)
        if serialize is None:
            raise PayloadError(f"the protobuf serializer takes messages, not {type(value).__name__}")
        data = serialize()
        assert isinstance(data, bytes)
        return data

    def decode(self, data: bytes, type: Any = Any) -> Any:
        parse = getattr(type, "FromString", None)
        if parse is None:  # nobody named a message class: the bytes are all there is to show
            return data
        try:
            return parse(data)
        except Exception as error:  # protobuf's DecodeError, without importing protobuf
            raise PayloadError(f"not a {type.__name__} message: {error}") from None


JSON = JSONSerializer()
MSGPACK = MsgPackSerializer()
BUILTIN: dict[str, Serializer] = {s.name: s for s in (JSON, MSGPACK, ProtobufSerializer())}


def carries_objects(serializer: Serializer) -> bool:
    """Whether it can write an object with names: protobuf cannot, nor can one of a user's own for a single class."""
    if isinstance(serializer, BuiltinSerializer):
        return True
    try:
        return bool(serializer.decode(encode(serializer, {"name": 1})) == {"name": 1})
    except Exception:  # a serializer of the user's own may raise anything
        return False


def _leaves(value: Any, path: str = "$", depth: int = 0) -> Iterator[tuple[str, Any]]:
    """What stands at the ends of a value, each with its path; texts, bytes and whole numbers are passed over."""
    if depth > DEPTH_MAX or isinstance(value, str | bytes | int | None):
        return
    if isinstance(value, dict):
        for key, item in value.items():
            yield from _leaves(item, f"{path}.{key}", depth + 1)
    elif isinstance(value, list | tuple | set | frozenset):
        for index, item in enumerate(value):
            yield from _leaves(item, f"{path}[{index}]", depth + 1)
    else:
        names = field_names(value)
        if not names:
            yield path, value
        for name in names:
            yield from _leaves(getattr(value, name, None), f"{path}.{name}", depth + 1)


def _refuse_nan(value: Any) -> None:
    for path, leaf in _leaves(value):
        if isinstance(leaf, float) and not math.isfinite(leaf):
            raise PayloadError(f"{leaf} cannot be written as JSON - at `{path}`")


def refuse_masked(value: Any) -> None:
    for path, leaf in _leaves(value):
        if hasattr(leaf, "get_secret_value"):
            raise PayloadError(
                f"a {type(leaf).__name__} would be stored as asterisks - at `{path}`; say in its model how it is "
                "written (field_serializer), or submit a reference to the secret instead"
            )


def encode(serializer: Serializer, value: Any) -> bytes:
    try:
        data = serializer.encode(value)
    except PayloadError:
        raise
    except Exception as error:  # a serializer of the user's own may raise anything
        raise PayloadError(reason(serializer, error)) from None
    if type(data) is not bytes:
        raise PayloadError(
            f"encode() of the {serializer.name} serializer returned {type(data).__name__}; return bytes, of a text "
            "those of its .encode()"
        )
    return data


def reason(serializer: Serializer, error: Exception) -> str:
    """Why a value cannot be encoded."""
    if isinstance(error, PayloadError):
        return str(error)
    if isinstance(error, RecursionError):
        return TOO_DEEP
    return f"the {serializer.name} serializer cannot encode this value: {error}"
