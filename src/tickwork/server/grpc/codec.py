"""Requests become the arguments of an operation, and its answer becomes a message.

What a message says is first brought into plain values, then checked by `msgspec` against the types that the operation
declares: bounds, patterns and choices are the same as by HTTP. Three things that a message can say and a JSON body
cannot are refused here: numbers that are not finite, fields that this server does not know (they would be lost without
a word), and a field that is both given and cleared. JSON texts are looked at before they are decoded, as bodies are.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
from google.protobuf.message import DecodeError
from google.protobuf.message import Message as Proto
from google.protobuf.unknown_fields import UnknownFieldSet

from tickwork.payload.depth import TOO_DEEP, is_deep_json
from tickwork.server.grpc.gen import tickwork_pb2
from tickwork.server.grpc.shapes import CLEAR, Field, Message, Method, Protocol, Shape
from tickwork.server.http.guard import check_json
from tickwork.server.problems import Refused
from tickwork.texts import cut, shown, storable

DETAIL_MAX = 300
_encode_json = msgspec.json.Encoder().encode
_decode_json = msgspec.json.Decoder().decode


def _wrong(name: str, text: str) -> Refused:
    return Refused(400, "bad_request", cut(f"{name}: {text}", DETAIL_MAX))


class Codec:
    def __init__(self, protocol: Protocol) -> None:
        self._messages = protocol.messages

    # --- requests

    def arguments(self, method: Method, data: bytes) -> dict[str, Any]:
        """Raises `Refused` that names the field which is wrong."""
        request = _class_of(method.request.name)()
        try:
            request.ParseFromString(data)
        except DecodeError:
            raise Refused(400, "not_readable", f"this is no {method.request.name}") from None
        values = self._values(request, method.request)
        arguments: dict[str, Any] = {}
        for name, kind in method.parameters.items():
            if name in method.in_path and not values[name]:
                raise _wrong(name, "it must be named")
            if name in values:
                arguments[name] = _converted(values[name], kind, name)
        if method.body is not None:
            body = {name: value for name, value in values.items() if name in method.body_fields}
            arguments["body"] = _converted(body, method.body, "")
        return arguments

    def _values(self, message: Proto, plan: Message) -> dict[str, Any]:
        unknown = UnknownFieldSet(message)
        if len(unknown):
            numbers = sorted({unknown[index].field_number for index in range(len(unknown))})
            raise _wrong(plan.name, f"this server does not know its fields of the numbers {shown(numbers)}")
        values: dict[str, Any] = {}
        for field in plan.fields:
            given = getattr(message, field.name)
            if field.label == "repeated":
                if given:
                    values[field.name] = [self._value(each, field.shape, field.name) for each in given]
                elif field.required:
                    values[field.name] = []
            elif field.label == "map":
                if given or field.required:
                    values[field.name] = {key: self._value(given[key], field.shape, field.name) for key in given}
            elif not field.has_presence or message.HasField(field.name):
                values[field.name] = self._value(given, field.shape, field.name)
        if plan.can_clear:
            values.update(_cleared(getattr(message, CLEAR), plan, values))
        return values

    def _value(self, given: Any, shape: Shape, name: str) -> Any:
        match shape.kind:
            case "json":
                return _read_json(given, name)
            case "time":
                return _read_time(given, name)
            case "number" | "seconds":
                if not math.isfinite(given):
                    raise _wrong(name, "it must be a finite number")
                return given if shape.kind == "number" else timedelta(seconds=given)
            case "message":
                return self._values(given, self._messages[shape.message])
            case "maybe":
                return self._values(given, self._messages[shape.message]).get("value")
            case _:
                return given

    # --- answers

    def answer(self, method: Method, answer: Any) -> bytes:
        message = _class_of(method.answer.name)()
        match method.wrapping:
            case "struct":
                self._fill(message, answer, method.answer)
            case "items" | "text":
                self._set(message, method.answer.fields[0], answer)
            case "nothing":
                pass
        return message.SerializeToString()

    def _fill(self, message: Proto, struct: Any, plan: Message) -> None:
        for field in plan.fields:
            value = getattr(struct, field.name)
            if value is not None or (field.shape.kind == "json" and field.label == ""):
                self._set(message, field, value)

    def _set(self, message: Proto, field: Field, value: Any) -> None:
        if field.label == "repeated":
            self._extend(getattr(message, field.name), field.shape, value)
        elif field.label == "map":
            self._put(getattr(message, field.name), field.shape, value)
        elif field.shape.kind == "message":
            inner = getattr(message, field.name)
            inner.SetInParent()  # it is there, even if all in it is at its default
            self._fill(inner, value, self._messages[field.shape.message])
        elif field.shape.kind == "time":
            getattr(message, field.name).FromDatetime(value)
        else:
            setattr(message, field.name, _plain(value, field.shape))

    def _extend(self, target: Any, shape: Shape, values: Any) -> None:
        for value in values:
            match shape.kind:
                case "message":
                    self._fill(target.add(), value, self._messages[shape.message])
                case "maybe":
                    item = target.add()
                    if value is not None:
                        self._set(item, self._messages[shape.message].fields[0], value)
                case "time":
                    target.add().FromDatetime(value)
                case _:
                    target.append(_plain(value, shape))

    def _put(self, target: Any, shape: Shape, values: Mapping[str, Any]) -> None:
        for key, value in values.items():
            match shape.kind:
                case "message":
                    target[storable(key)].SetInParent()
                    self._fill(target[storable(key)], value, self._messages[shape.message])
                case "time":
                    target[storable(key)].FromDatetime(value)
                case _:
                    target[storable(key)] = _plain(value, shape)


def _class_of(name: str) -> type[Proto]:
    found: type[Proto] = getattr(tickwork_pb2, name)
    return found


def _converted(value: Any, kind: Any, name: str) -> Any:
    try:
        return msgspec.convert(value, kind)
    except msgspec.ValidationError as error:
        text = str(error).replace("`$.", "`").replace(" - at `$`", "")
        raise _wrong(name, text) if name else Refused(400, "bad_request", cut(text, DETAIL_MAX)) from None


def _read_json(text: str, name: str) -> Any:
    data = text.encode()
    if is_deep_json(data):
        raise Refused(400, "too_deep", f"{name}: {TOO_DEEP}")
    try:
        check_json(data)
        return _decode_json(data)
    except Refused as error:
        raise Refused(400, error.problem.code, f"{name}: {error.problem.detail}") from None
    except msgspec.MsgspecError:
        raise Refused(400, "not_json", f"{name}: it must be a JSON text") from None


def _read_time(given: Any, name: str) -> datetime:
    try:
        found: datetime = given.ToDatetime(tzinfo=UTC)
    except (ValueError, OverflowError):
        raise _wrong(name, "it is no time from the year 1 to 9999") from None
    return found


def _cleared(names: list[str], plan: Message, values: Mapping[str, Any]) -> dict[str, None]:
    for name in names:
        if name not in plan.can_clear:
            raise _wrong(CLEAR, f"{shown(name)} cannot be null here; {', '.join(sorted(plan.can_clear))} can")
        if name in values:
            raise _wrong(CLEAR, f"{name} is given a value, and is to be null")
    return dict.fromkeys(names)


def _plain(value: Any, shape: Shape) -> Any:
    match shape.kind:
        case "json":
            return _encode_json(value).decode()
        case "text":
            return storable(value)
        case "seconds":
            return value.total_seconds()
        case _:
            return value
