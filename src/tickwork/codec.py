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

from tickwork.depth import DEPTH_MAX, TOO_DEEP, is_deep_json, is_deep_msgpack
from tickwork.errors import ConfigError, PayloadError


@runtime_checkable
class Serializer(Protocol):
    """Anything with a name that turns values into bytes and back."""

    @property
    def name(self) -> str: ...

    def encode(self, value: Any) -> bytes: ...

    def decode(self, data: bytes, type: Any = Any) -> Any:
        """The value again, as an instance of `type` where one is given."""


def _encode_hook(value: Any) -> Any:
    dump = getattr(value, "model_dump", None)  # a pydantic model
    if dump is not None:
        return dump(mode="json")
    if isinstance(value, PurePath):
        return str(value)
    raise NotImplementedError(f"values of type {type(value).__name__} cannot be encoded")


def _decode_hook(kind: type, value: Any) -> Any:
    validate = getattr(kind, "model_validate", None)
    if validate is not None:
        return validate(value)
    if isinstance(kind, type) and issubclass(kind, PurePath) and isinstance(value, str):
        return kind(value)
    raise NotImplementedError(f"values of type {kind.__name__} cannot be decoded")


class JSONSerializer:
    """The default. Refuses NaN and infinities, which JSON cannot carry, and what is nested too deep."""

    name = "json"

    def __init__(self) -> None:
        self._encode = msgspec.json.Encoder(enc_hook=_encode_hook).encode
        self._decoders: dict[Any, Callable[[bytes], Any]] = {}

    def encode(self, value: Any) -> bytes:
        data = self._encode(value)
        if is_deep_json(data):
            raise PayloadError(TOO_DEEP)
        if b"null" in data:  # msgspec writes NaN as null; only then is a closer look needed
            for path, number in _floats(value):
                if not math.isfinite(number):
                    raise PayloadError(f"{number} cannot be written as JSON - at `{path}`")
        return data

    def decode(self, data: bytes, type: Any = Any) -> Any:
        if is_deep_json(data):
            raise PayloadError(TOO_DEEP)
        decode = self._decoders.get(type)
        if decode is None:
            decode = self._decoders[type] = msgspec.json.Decoder(type, dec_hook=_decode_hook).decode
        return decode(data)


class MsgPackSerializer:
    """Smaller and faster than JSON, and carries bytes as they are."""

    name = "msgpack"

    def __init__(self) -> None:
        self._encode = msgspec.msgpack.Encoder(enc_hook=_encode_hook).encode
        self._decoders: dict[Any, Callable[[bytes], Any]] = {}

    def encode(self, value: Any) -> bytes:
        data = self._encode(value)
        if is_deep_msgpack(data):
            raise PayloadError(TOO_DEEP)
        return data

    def decode(self, data: bytes, type: Any = Any) -> Any:
        if is_deep_msgpack(data):
            raise PayloadError(TOO_DEEP)
        decode = self._decoders.get(type)
        if decode is None:
            decode = self._decoders[type] = msgspec.msgpack.Decoder(type, dec_hook=_decode_hook).decode
        return decode(data)


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
BUILTIN: dict[str, Serializer] = {s.name: s for s in (JSON, MsgPackSerializer(), ProtobufSerializer())}


def _floats(value: Any, path: str = "$", depth: int = 0) -> Iterator[tuple[str, float]]:
    if isinstance(value, float):
        yield path, value
    elif depth > DEPTH_MAX or isinstance(value, str | bytes | int | None):
        return
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from _floats(item, f"{path}.{key}", depth + 1)
    elif isinstance(value, list | tuple | set | frozenset):
        for index, item in enumerate(value):
            yield from _floats(item, f"{path}[{index}]", depth + 1)
    else:
        fields = getattr(value, "__struct_fields__", None) or getattr(value, "__dict__", None) or ()
        for name in fields:
            yield from _floats(getattr(value, name, None), f"{path}.{name}", depth + 1)


class PayloadType:
    """The declared type of a payload, and how to check a value against it."""

    def __init__(self, declared: Any, owner: str) -> None:
        self.declared = declared
        self._adapter: Any = None
        if _is_protobuf(declared):
            return
        try:
            msgspec.json.Decoder(declared, dec_hook=_decode_hook)
        except TypeError as error:
            self._adapter = _pydantic_adapter(declared)
            if self._adapter is None:
                raise ConfigError(
                    f"the payload of handler {owner!r} has a type that cannot be decoded: {error}. "
                    "Use a tagged msgspec.Struct for unions of classes, or install pydantic."
                ) from None

    def decode(self, serializer: Serializer, data: bytes) -> Any:
        """The typed value; `PayloadError` names the field that does not fit."""
        try:
            if self._adapter is None:
                return serializer.decode(data, self.declared)
            return self._adapter.validate_python(serializer.decode(data))
        except PayloadError:
            raise
        except Exception as error:  # a serializer of the user's own may raise anything
            raise PayloadError(str(error) or type(error).__name__) from None

    def encode(self, serializer: Serializer, value: Any) -> bytes:
        """Encoded, and checked by decoding it as a worker will."""
        data = encode(serializer, value)
        if self.declared is not Any:
            self.decode(serializer, data)
        return data


def encode(serializer: Serializer, value: Any) -> bytes:
    try:
        data = serializer.encode(value)
    except PayloadError:
        raise
    except RecursionError:
        raise PayloadError(TOO_DEEP) from None
    except Exception as error:  # a serializer of the user's own may raise anything
        raise PayloadError(f"the {serializer.name} serializer cannot encode this value: {error}") from None
    if type(data) is not bytes:
        raise PayloadError(
            f"encode() of the {serializer.name} serializer returned {type(data).__name__}; return bytes, of a text "
            "those of its .encode()"
        )
    return data


def _is_protobuf(declared: Any) -> bool:
    return isinstance(declared, type) and hasattr(declared, "FromString") and hasattr(declared, "SerializeToString")


def _pydantic_adapter(declared: Any) -> Any:
    """msgspec knows no `datetime | str` and no union of two dataclasses; pydantic does, where it is installed."""
    try:
        from pydantic import TypeAdapter
    except ImportError:
        return None
    return TypeAdapter(declared)
