"""What operations take and answer, in terms of messages: read once from the table and from the types that it names.

The rules:

- A request has the parameters of its operation, then the fields of its body. An answer is the message of its struct; a
  list is wrapped in a message with `items`, a text in one with `text`, and nothing is an empty message.
- Times are `google.protobuf.Timestamp`, durations are seconds (`double`), whole numbers `int64`. Enums and literals are
  texts, so that a value which is new is no break of the protocol.
- What may be anything, such as a payload, is JSON text: numbers of 64 bits and more stay exact, which they would not in
  `google.protobuf.Struct`. So is what a field of a message cannot say: a union, a list of lists, a map of such.
- A field of a request that may be left out is `optional`, and so is one of an answer that may be null. Lists and maps
  are never: one that is empty counts as left out.
- Where null means something else than leaving a field out, the request has a list `clear` of the names of those that
  are null.
"""

from __future__ import annotations

import inspect
from functools import cache
from typing import Any, Literal

import msgspec.inspect as types
from msgspec import NODEFAULT, Struct

from tickwork.server.grpc.stream import STREAM
from tickwork.server.operations import GROUPS, Operation, operations

TIMESTAMP = "google.protobuf.Timestamp"
PACKAGE = "tickwork.v1"
SERVICE = f"{PACKAGE}.Tickwork"
CLEAR = "clear"

Kind = Literal["text", "whole", "number", "flag", "time", "seconds", "json", "message", "maybe"]
Label = Literal["", "optional", "repeated", "map"]
_PROTO: dict[Kind, str] = {
    "text": "string",
    "whole": "int64",
    "number": "double",
    "flag": "bool",
    "time": TIMESTAMP,
    "seconds": "double",
    "json": "string",
}
_KINDS: dict[type[types.Type], Kind] = {
    types.StrType: "text",
    types.EnumType: "text",
    types.IntType: "whole",
    types.FloatType: "number",
    types.BoolType: "flag",
    types.DateTimeType: "time",
    types.TimeDeltaType: "seconds",
}


class Shape(Struct, frozen=True):
    """One value. `message` is the name of its message; that of a `maybe` has a field `value` or none."""

    kind: Kind
    message: str = ""

    @property
    def proto(self) -> str:
        return self.message or _PROTO[self.kind]


JSON = Shape("json")


class Field(Struct, frozen=True, kw_only=True):
    """`required` is said of requests: it must be there, and one that is no message is always sent, even if empty."""

    name: str
    shape: Shape
    label: Label = ""
    required: bool = True
    can_clear: bool = False
    note: str = ""

    @property
    def proto(self) -> str:
        kind = f"map<string, {self.shape.proto}>" if self.label == "map" else self.shape.proto
        return f"{self.label} {kind}" if self.label in ("optional", "repeated") else kind

    @property
    def has_presence(self) -> bool:
        return self.label == "optional" or self.shape.kind in ("time", "message")


class Message(Struct, frozen=True):
    name: str
    doc: str
    fields: tuple[Field, ...]

    @property
    def can_clear(self) -> frozenset[str]:
        return frozenset(field.name for field in self.fields if field.can_clear)


Wrapping = Literal["struct", "items", "text", "nothing"]


class Method(Struct, frozen=True, kw_only=True):
    """An operation and its two messages. `parameters` are those that are no body, by name, with their types."""

    operation: Operation
    name: str
    request: Message
    answer: Message
    wrapping: Wrapping
    streams: bool
    parameters: dict[str, Any]
    in_path: frozenset[str]
    body: Any
    body_fields: frozenset[str]

    @property
    def path(self) -> str:
        return f"/{SERVICE}/{self.name}"


class Protocol(Struct, frozen=True):
    """All of it: methods by the names of their operations, messages by name."""

    methods: dict[str, Method]
    messages: dict[str, Message]


def camel(name: str) -> str:
    return "".join(part.capitalize() for part in name.split("_"))


@cache
def read_protocol() -> Protocol:
    """The table does not change while a process runs."""
    book = _Book()
    # By group, as the order of the table is that in which modules happened to be imported.
    table = sorted(operations().values(), key=lambda each: GROUPS.index(each.group))
    methods = {each.name: book.method(each) for each in (*table, STREAM)}
    return Protocol(methods, book.messages)


class _Book:
    def __init__(self) -> None:
        self.messages: dict[str, Message] = {}
        self._made_of: dict[str, object] = {}

    def method(self, operation: Operation) -> Method:
        name = camel(operation.name)
        parameters = {each.name: each for each in operation.parameters.values() if each.name != "body"}
        body = operation.parameters.get("body")
        fields = [self._parameter(each) for each in parameters.values()]
        body_fields: list[Field] = []
        doc = f"What {name} takes."
        if body is not None:
            struct = types.type_info(body.annotation)
            assert isinstance(struct, types.StructType), f"{operation.name}: a body is a struct"
            body_fields = [self._field(each, asked=True) for each in struct.fields]
            doc = _doc_of(struct.cls) or doc
        request = self._add(Message(f"{name}Request", doc, (*fields, *body_fields)), operation)
        answer, wrapping = self._answer(operation, name)
        return Method(
            operation=operation,
            name=name,
            request=request,
            answer=answer,
            wrapping=wrapping,
            streams=operation is STREAM,
            parameters={key: each.annotation for key, each in parameters.items()},
            in_path=frozenset(key for key in parameters if f"{{{key}}}" in operation.path),
            body=None if body is None else body.annotation,
            body_fields=frozenset(each.name for each in body_fields),
        )

    def _answer(self, operation: Operation, name: str) -> tuple[Message, Wrapping]:
        if operation.answer is None:
            return self._add(Message(f"{name}Response", f"{name} answers nothing.", ()), operation), "nothing"
        found = types.type_info(operation.answer)
        if isinstance(found, types.StructType):
            return self._struct(found, asked=False), "struct"
        if isinstance(found, types.ListType | types.VarTupleType):
            items = Field(name="items", shape=self._shape(found.item_type, asked=False), label="repeated")
            return self._add(Message(f"{name}Response", f"What {name} answers.", (items,)), operation), "items"
        assert isinstance(found, types.StrType), f"{operation.name} answers what has no message"
        text = Field(name="text", shape=Shape("text"), note="CSV" if operation.media == "text/csv" else "")
        return self._add(Message(f"{name}Response", f"What {name} answers.", (text,)), operation), "text"

    def _add(self, message: Message, made_of: object) -> Message:
        """Two things of one name would be one message: they must be the same thing."""
        assert self._made_of.setdefault(message.name, made_of) is made_of, f"two messages named {message.name}"
        names = [field.name for field in message.fields]
        assert len(set(names)) == len(names), f"{message.name}: a name comes twice: {names}"
        if message.can_clear:
            assert CLEAR not in names, f"{message.name}: {CLEAR} has another meaning"
        before = self.messages.setdefault(message.name, message)
        assert before == message, f"{message.name} is one thing in requests and another in answers"
        return message

    def _struct(self, struct: types.StructType, asked: bool) -> Message:
        name = struct.cls.__name__
        fields = tuple(self._field(each, asked) for each in struct.fields)
        return self._add(Message(name, _doc_of(struct.cls), fields), struct.cls)

    def _parameter(self, each: inspect.Parameter) -> Field:
        required = each.default is inspect.Parameter.empty
        return self._make(each.name, types.type_info(each.annotation), required, None if required else each.default)

    def _field(self, each: types.Field, asked: bool) -> Field:
        if not asked:
            return self._make(each.name, each.type, True, None, asked=False)
        default = None if each.default is NODEFAULT else each.default
        unset = not each.required and each.default is NODEFAULT and each.default_factory is NODEFAULT
        return self._make(each.name, each.type, each.required, default, unset=unset)

    def _make(
        self, name: str, given: types.Type, required: bool, default: Any, *, asked: bool = True, unset: bool = False
    ) -> Field:
        found, nullable, notes = _bare(given)
        label: Label = "" if required and not nullable else "optional"
        shape = JSON
        if isinstance(found, types.ListType | types.VarTupleType | types.SetType):
            item = self._shape(found.item_type, asked)
            if item.kind != "json":
                label, shape = "repeated", item
        elif isinstance(found, types.DictType):
            value = self._shape(found.value_type, asked)
            if value.kind not in ("json", "maybe") and isinstance(_bare(found.key_type)[0], types.StrType):
                label, shape = "map", value
        else:
            shape = self._shape(found, asked)
        if shape.kind == "json":
            notes.append("JSON text")
        elif isinstance(found, types.LiteralType):
            notes.append("one of " + ", ".join(str(value) for value in found.values))
        if default not in (None, "", [], {}, False):
            notes.append(f"{default} if left out")
        return Field(
            name=name,
            shape=shape,
            label=label,
            required=required,
            can_clear=unset and nullable,
            note="; ".join(notes),
        )

    def _shape(self, given: types.Type, asked: bool) -> Shape:
        found, nullable, _ = _bare(given)
        if isinstance(found, types.LiteralType) and all(isinstance(value, str) for value in found.values):
            shape = Shape("text")
        elif isinstance(found, types.StructType):
            shape = Shape("message", self._struct(found, asked).name)
        else:
            shape = Shape(_KINDS.get(type(found), "json"))
        if not nullable or shape.kind == "json":
            return shape
        value = Field(name="value", shape=shape, label="optional")
        name = f"Optional{shape.message or shape.kind.capitalize()}"
        return Shape("maybe", self._add_maybe(Message(name, "A value, or none.", (value,))))

    def _add_maybe(self, message: Message) -> str:
        return self._add(message, self._made_of.get(message.name, message)).name


def _bare(given: types.Type) -> tuple[types.Type, bool, list[str]]:
    """Without what is said about it, and without null; whether it may be null; what is to be said of it."""
    notes: list[str] = []
    nullable = False
    while True:
        if isinstance(given, types.Metadata):
            description = (given.extra_json_schema or {}).get("description")
            notes += [str(description).rstrip(".")] if description else []
            given = given.type
        elif isinstance(given, types.UnionType) and any(isinstance(each, types.NoneType) for each in given.types):
            left = tuple(each for each in given.types if not isinstance(each, types.NoneType))
            nullable = True
            given = left[0] if len(left) == 1 else types.UnionType(left)
        else:
            return given, nullable, notes


def _doc_of(struct: type) -> str:
    return inspect.cleandoc(struct.__doc__ or "")
