"""The payload rule: written by name, and read by name or as the bare value of one parameter."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Annotated, Any, NewType, TypedDict

import msgspec
import pytest
from pydantic import BaseModel, SecretStr

from tickwork import PayloadError
from tickwork.executors.calling import UnfitPayload, arguments_of
from tickwork.handlers.registry import Entry, Registry
from tickwork.payload.annotations import takes_any_object
from tickwork.payload.codec import BUILTIN, JSON, carries_objects
from tickwork.payload.parameters import MISSING, Arguments

Function = Callable[..., Any]
REGISTRY = Registry()


@dataclass
class Order:
    customer: str = "nobody"
    amount: int = 0


class User(BaseModel):
    name: str
    since: datetime | None = None


class Row(TypedDict):
    x: int


Ident = NewType("Ident", int)


def none() -> None: ...
def one(x: int) -> None: ...
def one_float(x: float) -> None: ...
def one_default(x: int = 7) -> None: ...
def one_optional(x: int | None) -> None: ...
def one_list(x: list[int]) -> None: ...
def one_order(order: Order) -> None: ...
def one_user(user: User) -> None: ...
def one_dict(data: dict[str, Any]) -> None: ...
def one_numbers(data: dict[str, int]) -> None: ...
def one_any(data: Any) -> None: ...
def one_bare(data) -> None: ...  # type: ignore[no-untyped-def]
def any_and_more(data: Any, copy: bool = False) -> None: ...
def order_by_default(order: Order = Order("default")) -> None: ...  # noqa: B008
def user_by_default(user: User | None = None) -> None: ...
def one_named_alike(customer: Order) -> None: ...
def two(x: int, y: str) -> None: ...
def two_one_default(x: int, y: str = "") -> None: ...
def two_defaults(x: int = 1, y: str = "") -> None: ...
def two_optional(x: int | None = 1, y: str = "") -> None: ...
def renamed(amount: int) -> None: ...


def read(function: Function, data: bytes | str, serializer: str = "json") -> Any:
    """The arguments as a worker finds them, or what is wrong."""
    raw = data if isinstance(data, bytes) else data.encode()
    if serializer == "msgpack" and raw:
        raw = msgspec.msgpack.encode(json.loads(raw))
    entry = Entry("it", function)
    try:
        return arguments_of(entry, REGISTRY, serializer, raw)
    except UnfitPayload as error:
        with pytest.raises(PayloadError):  # the short cuts are no other rule
            entry.parameters.decode(BUILTIN[serializer], raw)
        return str(error).replace("`None`", "`null`")  # msgspec calls it so in MessagePack


READ: list[tuple[Function, str, Any]] = [
    # by name
    (one, '{"x": 5}', {"x": 5}),
    (one_default, '{"x": 5}', {"x": 5}),
    (one_default, "{}", {}),
    (two, '{"x": 5, "y": "a"}', {"x": 5, "y": "a"}),
    (two_one_default, '{"x": 5}', {"x": 5}),
    (one_order, '{"order": {"customer": "ada"}}', {"order": Order("ada")}),
    (one_user, '{"user": {"name": "ada", "since": "2030-01-01T00:00:00Z"}}',
     {"user": User(name="ada", since=datetime(2030, 1, 1, tzinfo=UTC))}),
    # no payload
    (none, "", {}),
    (one_default, "", {}),
    (two_defaults, "", {}),
    (one, "", "there is no payload, and `x` has no default"),
    (two, "", "there is no payload, and `x` has no default"),
    (one_optional, "", {"x": None}),
    (one_any, "", {"data": None}),
    # null: a value where it fits, else what was stored for no payload before
    (none, "null", {}),
    (one_optional, "null", {"x": None}),
    (one_any, "null", {"data": None}),
    (one_default, "null", {}),
    (two_defaults, "null", {}),
    (two_optional, "null", {}),
    (one, "null", "Expected `int`, got `null`"),
    (two, "null", "Expected `object`, got `null`"),
    # a bare value
    (one, "5", {"x": 5}),
    (one_default, "5", {"x": 5}),
    (one_list, "[1, 2]", {"x": [1, 2]}),
    (one_order, '{"customer": "ada", "amount": 3}', {"order": Order("ada", 3)}),
    (one_user, '{"name": "ada"}', {"user": User(name="ada")}),
    (two_one_default, "5", {"x": 5}),
    (two_defaults, "5", {"x": 5}),
    (two, "5", "Expected `object`, got `int`"),
    (none, "5", "the handler takes no payload, and there is one"),
    # other names are ignored
    (none, '{"x": 5}', {}),
    (one, '{"x": 5, "z": [1]}', {"x": 5}),
    (two, '{"x": 5, "y": "a", "z": 1}', {"x": 5, "y": "a"}),
    (one_order, '{"order": {"amount": 2}, "z": 1}', {"order": Order(amount=2)}),
    # objects that may be both
    (one_dict, '{"data": {"a": 1}}', {"data": {"a": 1}}),
    (one_dict, '{"a": 1}', {"data": {"a": 1}}),
    (one_dict, '{"data": 1}', {"data": {"data": 1}}),
    (one_dict, '{"data": {"a": 1}, "b": 2}', {"data": {"data": {"a": 1}, "b": 2}}),
    (one_dict, "{}", {"data": {}}),
    (one_numbers, '{"data": {"a": 1}, "z": "of a newer client"}', {"data": {"a": 1}}),
    (one_any, '{"data": 1}', {"data": 1}),
    (one_any, '{"data": 1, "b": 2}', {"data": {"data": 1, "b": 2}}),
    (one_any, '{"other": 1}', {"data": {"other": 1}}),
    (one_any, "[1]", {"data": [1]}),
    (one_bare, '{"data": 1}', {"data": 1}),
    (any_and_more, '{"data": 1, "copy": true}', {"data": 1, "copy": True}),
    (any_and_more, '{"copy": true}', {"data": {"copy": True}}),
    (one_named_alike, '{"customer": "ada"}', {"customer": Order("ada")}),
    (one_named_alike, '{"customer": {"customer": "ada"}}', {"customer": Order("ada")}),
    (order_by_default, '{"customer": "ada"}', {"order": Order("ada")}),
    (order_by_default, '{"order": {"customer": "ada"}, "z": 1}', {"order": Order("ada")}),
    (order_by_default, '{"z": 1}', {}),
    (order_by_default, "{}", {}),
    (user_by_default, '{"name": "ada"}', {"user": User(name="ada")}),
    # what does not fit
    (one, '{"x": "5"}', "Expected `int`, got `str` - at `$.x`"),
    (one, '"5"', "Expected `int`, got `str`"),
    (renamed, '{"x": 5}', "Expected `int`, got `object`"),
    (two, '{"x": 5}', "Object missing required field `y`"),
    (two_one_default, '{"y": "a"}', "Object missing required field `x`"),
    (one_order, '{"order": {"amount": "2"}}', "Expected `int`, got `str` - at `$.order.amount`"),
    (order_by_default, '{"order": {"amount": "2"}}', "Expected `int`, got `str` - at `$.order.amount`"),
    (one_dict, "5", "Expected `object`, got `int`"),
]  # fmt: skip


@pytest.mark.parametrize("serializer", ["json", "msgpack"])
@pytest.mark.parametrize(("function", "data", "expected"), READ, ids=lambda each: getattr(each, "__name__", None))
def test_what_is_stored_is_read(function: Function, data: str, expected: Any, serializer: str) -> None:
    assert read(function, data, serializer) == expected


WRITTEN: list[tuple[Function, Any, str]] = [
    (none, MISSING, ""),
    (none, None, ""),
    (none, {}, ""),
    (one, 5, '{"x":5}'),
    (one, {"x": 5}, '{"x":5}'),
    (one, Arguments(x=5), '{"x":5}'),
    (one_default, MISSING, ""),
    (one_default, 5, '{"x":5}'),
    (one_optional, None, '{"x":null}'),
    (one_order, Order("ada", 3), '{"order":{"customer":"ada","amount":3}}'),
    (one_order, {"customer": "ada"}, '{"order":{"customer":"ada"}}'),
    (one_order, {"order": {"customer": "ada"}}, '{"order":{"customer":"ada"}}'),
    (one_user, User(name="ada"), '{"user":{"name":"ada","since":null}}'),
    (one_dict, {"a": 1}, '{"data":{"a":1}}'),
    (one_dict, {"data": {"a": 1}}, '{"data":{"a":1}}'),
    (one_dict, Arguments(data={"data": {"a": 1}}), '{"data":{"data":{"a":1}}}'),
    (one_dict, {"data": 1}, '{"data":{"data":1}}'),
    (one_any, {"data": 1}, '{"data":1}'),
    (one_any, {"data": 1, "b": 2}, '{"data":{"data":1,"b":2}}'),
    (two, {"x": 5, "y": "a"}, '{"x":5,"y":"a"}'),
    (two_one_default, 5, '{"x":5}'),
    (two_defaults, {"y": "a"}, '{"y":"a"}'),
    (two_defaults, MISSING, ""),
]


@pytest.mark.parametrize(("function", "payload", "expected"), WRITTEN, ids=lambda each: getattr(each, "__name__", None))
def test_a_payload_is_written_by_name(function: Function, payload: Any, expected: str) -> None:
    entry = Entry("it", function)
    data = entry.parameters.encode(JSON, payload)
    assert data.decode() == expected
    assert isinstance(read(function, data), dict)


@dataclass
class Both:
    x: int
    y: str


def test_an_object_with_the_fields_of_several_parameters() -> None:
    assert Entry("it", two).parameters.encode(JSON, Both(5, "a")) == b'{"x":5,"y":"a"}'
    assert Entry("it", two_one_default).parameters.encode(JSON, Both(5, "a")) == b'{"x":5,"y":"a"}'


REFUSED: list[tuple[Function, Any, str]] = [
    (none, 5, "the handler takes no payload, and one was given"),
    (none, {"x": 5}, "the handler takes no payload, and one was given"),
    (one, MISSING, "there is no payload, and `x` has no default"),
    (one, "5", "Expected `int`, got `str` - at `$.x`"),
    (one, {"x": 5, "z": 1}, "Expected `int`, got `object` - at `$.x`"),
    (one, Arguments(x="5"), "Expected `int`, got `str` - at `$.x`"),
    (one_float, Arguments(x=math.nan), "nan cannot be written as JSON - at `$.x`"),
    (one_any, Arguments(data=[math.inf]), "inf cannot be written as JSON - at `$.data[0]`"),
    (
        one_any,
        Arguments(data=SecretStr("hunter2")),
        "the json serializer cannot encode this value: values of type SecretStr cannot be encoded",
    ),
    (
        one,
        Arguments(x=object()),
        "the json serializer cannot encode this value: values of type object cannot be encoded",
    ),
    (one_order, {"order": {"amount": "2"}}, "Expected `int`, got `str` - at `$.order.amount`"),
    (two, {"x": 5, "y": "a", "z": 1}, "Object contains unknown field `z`"),
    (two, {"x": 5}, "Object missing required field `y`"),
    (two, 5, "Expected `object`, got `int`"),
    (two_one_default, {"y": "a"}, "Object missing required field `x`"),
    (two_one_default, {"x": 5, "z": 1}, "Object contains unknown field `z`"),
]


@pytest.mark.parametrize(("function", "payload", "problem"), REFUSED, ids=lambda each: getattr(each, "__name__", None))
def test_a_payload_that_does_not_fit_is_refused(function: Function, payload: Any, problem: str) -> None:
    with pytest.raises(PayloadError) as caught:
        Entry("it", function).parameters.encode(JSON, payload)
    assert str(caught.value) == problem


# --- when a signature changes


CHANGES: list[tuple[str, Function, Any, Function, Any]] = [
    ("a new parameter with a default", one, 5, two_one_default, {"x": 5}),
    ("a removed parameter", two, {"x": 5, "y": "a"}, one, {"x": 5}),
    ("the only parameter removed", one, 5, none, {}),
    ("one to two, neither with a default", one, 5, two, "Object missing required field `y`"),
    ("two to one", two_one_default, {"x": 5, "y": "a"}, one, {"x": 5}),
    ("none to one with a default", none, MISSING, one_default, {}),
    ("none to one without one", none, MISSING, one, "there is no payload, and `x` has no default"),
    ("a default is added", one, 5, one_default, {"x": 5}),
    ("all have defaults, and one is new", one_default, 5, two_defaults, {"x": 5}),
    ("renamed", one, 5, renamed, "Expected `int`, got `object`"),
    ("a parameter beside a mapping", one_dict, {"a": 1}, any_and_more, {"data": {"a": 1}}),
]


@pytest.mark.parametrize(("before", "payload", "after", "expected"), [case[1:] for case in CHANGES],
                         ids=[case[0] for case in CHANGES])  # fmt: skip
def test_a_queued_task_when_the_signature_changes(
    before: Function, payload: Any, after: Function, expected: Any
) -> None:
    assert read(after, Entry("it", before).parameters.encode(JSON, payload)) == expected


# --- what the serializers can carry


class Shout:
    """Writes texts alone."""

    name = "shout"

    def encode(self, value: Any) -> bytes:
        return bytes(value.upper(), "ascii")

    def decode(self, data: bytes, type: Any = Any) -> Any:
        return data.decode()


class Untyped:
    """Knows nothing of types."""

    name = "untyped"

    def encode(self, value: Any) -> bytes:
        return json.dumps(value).encode()

    def decode(self, data: bytes, type: Any = Any) -> Any:
        return json.loads(data)


def text_only(text: str) -> None: ...


def test_a_serializer_that_writes_no_objects_is_given_the_value() -> None:
    assert [carries_objects(each) for each in (Shout(), Untyped(), BUILTIN["protobuf"])] == [False, True, False]
    parameters = Entry("it", text_only).parameters
    assert parameters.encode(Shout(), Arguments(text="hello")) == b"HELLO"
    assert parameters.decode(Shout(), b"HELLO") == {"text": "HELLO"}
    with pytest.raises(PayloadError, match="the shout serializer writes one value, not an object with names"):
        Entry("it", two).parameters.encode(Shout(), Arguments(x=1, y="a"))


def test_a_serializer_that_knows_no_types() -> None:
    parameters = Entry("it", two_one_default).parameters
    assert parameters.encode(Untyped(), 5) == b'{"x": 5}'
    assert parameters.decode(Untyped(), b'{"x": 5, "z": 6}') == {"x": 5}
    assert parameters.decode(Untyped(), b"5") == {"x": 5}
    assert Entry("it", one_any).parameters.decode(Untyped(), b'{"data": 5, "z": 6}') == {"data": {"data": 5, "z": 6}}
    with pytest.raises(PayloadError, match="Object missing required field `x`"):
        Entry("it", two).parameters.decode(Untyped(), b'{"y": "a"}')


@pytest.mark.parametrize(
    ("declared", "expected"),
    [
        (Any, True), (object, True), (dict, True), (dict[str, int], True), (Mapping[str, Any], True),
        (dict[str, int] | None, True), (Annotated[dict[str, int], "note"], True), (NewType("Data", dict), True),
        (int, False), (Ident, False), (list[dict[str, int]], False), (Row, False), (Order, False), (User, False),
        (int | str, False), (None, False), (Annotated[int, "note"], False),
    ],
)  # fmt: skip
def test_types_that_take_an_object_of_any_names(declared: Any, expected: bool) -> None:
    assert takes_any_object(declared) is expected


# --- a path into the payload


@dataclass
class Line:
    order: Order


def by_title(title: str) -> None: ...
def by_line(line: Line) -> None: ...
def order_and_more(order: Order, note: str = "") -> None: ...
def two_orders(first: Order, second: Order) -> None: ...


@pytest.mark.parametrize(
    ("function", "payload", "path", "expected"),
    [
        (one_order, Order("ada"), "payload.customer", "ada"),
        (one_order, Order("ada"), "payload.order.customer", "ada"),
        (one_order, {}, "payload.customer", "nobody"),
        (one_dict, {"customer": "ada"}, "payload.customer", "ada"),
        (one_dict, {"customer": "ada"}, "payload.data.customer", "ada"),
        (one_user, User(name="ada"), "payload.name", "ada"),
        (by_title, "sir", "payload.title", "sir"),
        (by_line, Line(Order("ada")), "payload.order.customer", "ada"),
        (by_line, Line(Order("ada")), "payload.line.order.customer", "ada"),
        (order_and_more, Order("ada"), "payload.customer", "ada"),
        (order_and_more, Order("ada"), "payload.order.customer", "ada"),
        (order_and_more, Order("ada"), "payload.note", ""),
        (two_orders, {"first": Order("ada"), "second": Order("bob")}, "payload.second.customer", "bob"),
        (two_orders, {"first": Order("ada"), "second": Order("bob")}, "payload.customer", None),
        (order_by_default, MISSING, "payload.customer", "default"),
        (order_by_default, MISSING, "payload.order.customer", "default"),
        (two_defaults, MISSING, "payload.x", 1),
    ],
)
def test_a_path_into_the_payload(function: Function, payload: Any, path: str, expected: Any) -> None:
    entry = Entry("it", function)
    assert entry.value_at(path, entry.parameters.encode(JSON, payload), JSON) == expected
