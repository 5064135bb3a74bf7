"""What a handler may be, what it may take and give back, and what its context tells."""

from __future__ import annotations

import asyncio
import enum
import logging
import threading
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Any, Literal, TypedDict

import msgspec
import pydantic
import pytest
from google.protobuf.struct_pb2 import Struct as ProtoStruct
from google.protobuf.wrappers_pb2 import StringValue

from tests.integration import child_handlers
from tests.integration.apps import Make, eventually, facts, status_of, store_of
from tickwork import (
    ConfigError,
    Handle,
    Handler,
    HandlerNotFound,
    MsgPackSerializer,
    PayloadError,
    ProtobufSerializer,
    ResultError,
    Scheduler,
    Status,
    Task,
    TaskContext,
    TaskFailed,
    TaskResult,
)
from tickwork.model.outcomes import Succeeded
from tickwork.model.tasks import Spec
from tickwork.store.contract import Claim
from tickwork.testing import ManualClock, drain, wait_for


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Level(enum.IntEnum):
    LOW = 1
    HIGH = 2


@dataclass
class Address:
    city: str
    zip: str = "00000"


@dataclass
class Person:
    name: str
    addresses: list[Address] = field(default_factory=list)
    born: date | None = None


class Movie(TypedDict):
    title: str
    year: int


class Point(msgspec.Struct):
    x: float
    y: float = 0.0


class Order(pydantic.BaseModel):
    sku: str
    count: int = pydantic.Field(gt=0)
    nested: dict[str, list[int]] = {}


HERE = timezone(timedelta(hours=5, minutes=30))
SOME_ID = uuid.uuid4()


async def take_dataclass(payload: Person) -> Any:
    assert isinstance(payload, Person)
    assert all(isinstance(address, Address) for address in payload.addresses)
    return payload


async def take_typeddict(payload: Movie) -> Any:
    assert isinstance(payload, dict)
    return payload


async def take_struct(payload: Point) -> Any:
    assert isinstance(payload, Point)
    return payload


async def take_pydantic(payload: Order) -> Any:
    assert isinstance(payload, Order)
    return payload


async def take_pydantic_list(payload: list[Order]) -> Any:
    assert all(isinstance(item, Order) for item in payload)
    return payload


async def take_union(payload: Person | Address) -> Any:
    assert isinstance(payload, Person | Address)
    return type(payload).__name__


async def take_int(payload: int) -> Any:
    assert type(payload) is int
    return payload


async def take_str(payload: str) -> Any:
    return payload


async def take_bool(payload: bool) -> Any:
    assert type(payload) is bool
    return payload


async def take_dict(payload: dict[str, list[int | None]]) -> Any:
    return payload


async def take_tuple(payload: tuple[int, str]) -> Any:
    assert payload == (1, "a")
    return payload


async def take_set(payload: set[int]) -> Any:
    assert payload == {1, 2}
    return sorted(payload)


async def take_bytes(payload: bytes) -> Any:
    assert payload == b"\x00\xff"
    return len(payload)


async def take_datetime(payload: datetime) -> Any:
    assert payload == MOMENT  # MsgPack carries the moment, not its zone
    return payload.tzinfo is not None


async def take_date(payload: date) -> Any:
    assert type(payload) is date
    return payload


async def take_timedelta(payload: timedelta) -> Any:
    assert payload == timedelta(minutes=90)
    return payload.total_seconds()


async def take_uuid(payload: uuid.UUID) -> Any:
    assert payload == SOME_ID
    return payload


async def take_enum(payload: Colour) -> Any:
    assert payload is Colour.BLUE
    return payload


async def take_int_enum(payload: Level) -> Any:
    assert payload is Level.HIGH
    return payload


async def take_literal(payload: Literal["a", "b"]) -> Any:
    return payload


async def take_path(payload: Path) -> Any:
    assert isinstance(payload, Path)
    return payload


async def take_decimal(payload: Decimal) -> Any:
    assert payload == Decimal("0.1")
    return payload


async def take_optional(payload: int | None) -> Any:
    return payload


async def take_anything(payload: Any) -> Any:
    return payload


async def take_unannotated(payload) -> Any:  # type: ignore[no-untyped-def]
    return payload


MOMENT = datetime(2030, 5, 6, 7, 8, 9, 123000, tzinfo=HERE)

ANN = {"name": "ann", "addresses": [{"city": "Rome", "zip": "00000"}], "born": None}

GOOD: list[tuple[Callable[..., Any], Any, Any]] = [
    (take_dataclass, Person("ann", [Address("Rome")]), ANN),
    (take_dataclass, {"name": "bob", "born": "2000-02-29"}, {"name": "bob", "addresses": [], "born": "2000-02-29"}),
    (take_typeddict, {"title": "M", "year": 1931}, {"title": "M", "year": 1931}),
    (take_struct, Point(1.5), {"x": 1.5, "y": 0.0}),
    (take_struct, {"x": 2}, {"x": 2.0, "y": 0.0}),
    (take_pydantic, Order(sku="a", count=2), {"sku": "a", "count": 2, "nested": {}}),
    (take_pydantic, {"sku": "a", "count": 1, "nested": {"k": [1]}}, {"sku": "a", "count": 1, "nested": {"k": [1]}}),
    (take_pydantic_list, [Order(sku="a", count=2)], [{"sku": "a", "count": 2, "nested": {}}]),
    (take_union, Person("ann"), "Person"),
    (take_int, 2**62, 2**62),
    (take_int, -(2**63), -(2**63)),
    (take_int, 0, 0),
    (take_str, "snow ☃ \x00 🎿", "snow ☃ \x00 🎿"),
    (take_bool, False, False),
    (take_dict, {"a": [1, None]}, {"a": [1, None]}),
    (take_tuple, (1, "a"), [1, "a"]),
    (take_set, {2, 1}, [1, 2]),
    (take_bytes, b"\x00\xff", 2),
    (take_datetime, MOMENT, True),
    (take_date, date(2030, 1, 2), "2030-01-02"),
    (take_timedelta, timedelta(minutes=90), 5400.0),
    (take_uuid, SOME_ID, str(SOME_ID)),
    (take_enum, Colour.BLUE, "blue"),
    (take_int_enum, Level.HIGH, 2),
    (take_literal, "b", "b"),
    (take_path, Path("/tmp/a b"), "/tmp/a b"),
    (take_decimal, Decimal("0.1"), "0.1"),
    (take_optional, None, None),
    (take_optional, 3, 3),
    (take_anything, {"any": [1, "x", None, 1.5]}, {"any": [1, "x", None, 1.5]}),
    (take_unannotated, [1, 2], [1, 2]),
]  # fmt: skip


@pytest.mark.parametrize("serializer", ["json", "msgpack"])
async def test_every_kind_of_payload_arrives_typed(app: Scheduler, serializer: str) -> None:
    for function in {function for function, _, _ in GOOD}:
        app.registry.register(function.__name__, function)
    async with app:
        handles = [await app.submit(f.__name__, payload, serializer=serializer, max_retry=0) for f, payload, _ in GOOD]
        for handle, (function, payload, expected) in zip(handles, GOOD, strict=True):
            assert await handle.result(10) == expected, f"{function.__name__} of {payload!r}"


BAD: list[tuple[Callable[..., Any], Any, str]] = [
    (take_dataclass, {"name": 3}, r"Expected `str`, got `int` - at `\$\.payload\.name`"),
    (take_dataclass, {}, r"missing required field `name`"),
    (
        take_dataclass,
        {"name": "x", "addresses": [{"city": "a"}, {"city": 1}]},
        r"payload\.addresses\[1\]\.city`",
    ),
    (take_dataclass, {"name": "x", "born": "2000-02-30"}, r"at `\$\.payload\.born`"),
    (take_typeddict, {"title": "M"}, r"missing required field `year`"),
    (take_struct, {"x": "1"}, r"Expected `float`, got `str` - at `\$\.payload\.x`"),
    (take_pydantic, {"sku": "a", "count": 0}, r"(?s)count.*greater than 0"),
    (take_pydantic, {"sku": "a", "count": 1, "nested": {"k": ["no"]}}, r"nested\.k\.0"),
    (take_pydantic_list, [{"sku": "a", "count": 1}, {"count": 1}], r"(?s)sku.*at `\$\.payload\[1\]`"),
    (take_int, "3", r"Expected `int`, got `str`"),
    (take_int, None, r"Expected `int`, got `null`"),
    (take_int, True, r"Expected `int`, got `bool`"),
    (take_bool, 1, r"Expected `bool`, got `int`"),
    (take_dict, {"a": [1, "b"]}, r"at `\$\.payload\[\.\.\.\]\[1\]`"),
    (take_tuple, [1], r"length 2"),
    (take_datetime, "yesterday", r"datetime"),
    (take_uuid, "not-one", r"UUID"),
    (take_enum, "green", r"Invalid enum value - at `\$\.payload`$"),
    (take_literal, "c", r"Invalid enum value - at `\$\.payload`$"),
    (take_path, 3, r"Path"),
]


@pytest.mark.parametrize(("function", "payload", "message"), BAD)
async def test_a_wrong_payload_is_refused_at_submit(
    make: Make, function: Callable[..., Any], payload: Any, message: str
) -> None:
    app = make("memory://")
    app.registry.register("it", function)
    with pytest.raises(PayloadError, match=message) as caught:
        await app.submit("it", payload)
    assert str(caught.value).startswith("payload for task type 'it': ")
    assert (await app.status()).tasks == {}


@pytest.mark.parametrize("number", [float("nan"), float("inf"), float("-inf")])
@pytest.mark.parametrize(
    "wrap", [lambda n: n, lambda n: {"a": [1.0, n]}, lambda n: Point(n), lambda n: [None, {"b": n}]]
)
async def test_numbers_that_json_cannot_carry(make: Make, number: float, wrap: Callable[[float], Any]) -> None:
    app = make("memory://")
    app.registry.register("it", take_anything)
    with pytest.raises(PayloadError, match=r"(nan|inf) cannot be written as JSON - at `\$"):
        await app.submit("it", wrap(number))


@dataclass(slots=True)
class Reading:
    value: float | None


async def test_nan_in_a_slotted_dataclass(make: Make) -> None:
    app = make("memory://")

    @app.task(max_retry=0)
    async def store(reading: Reading) -> Reading:
        return Reading(float("nan"))

    with pytest.raises(PayloadError, match=r"nan cannot be written as JSON - at `\$\.reading\.value`"):
        await store.submit(Reading(float("nan")))
    async with app:
        with pytest.raises(TaskFailed, match=r"return value cannot be stored: nan cannot be written as JSON"):
            await (await store.submit(Reading(1.0))).result(10)


async def test_a_null_next_to_numbers_is_no_nan(app: Scheduler) -> None:
    app.registry.register("it", take_anything)
    async with app:
        payload = {"a": None, "b": 1.5, "c": "null"}
        assert await (await app.submit("it", payload)).result(10) == payload


@pytest.mark.parametrize("value", [object(), {"a": {1: object()}}, lambda: 1, "\udcff"])
async def test_what_cannot_be_encoded_is_refused(make: Make, value: Any) -> None:
    app = make("memory://")
    app.registry.register("it", take_anything)
    with pytest.raises(PayloadError, match="the json serializer cannot encode this value"):
        await app.submit("it", value)


async def test_numbers_too_large_for_a_serializer(make: Make) -> None:
    app = make("memory://")
    app.registry.register("it", take_int)
    with pytest.raises(PayloadError, match="the msgpack serializer cannot encode this value"):
        await app.submit("it", 2**70, serializer="msgpack")
    async with app:
        assert await (await app.submit("it", 2**70)).result(10) == 2**70


async def test_a_recursive_payload_is_refused(make: Make) -> None:
    app = make("memory://")
    app.registry.register("it", take_anything)
    loop: list[Any] = []
    loop.append(loop)
    with pytest.raises(PayloadError):
        await app.submit("it", loop)


async def test_too_large_a_payload_is_refused(make: Make, url: str) -> None:
    app = make(url, payload_limit=1000)
    app.registry.register("it", take_str)
    with pytest.raises(PayloadError, match="is 1,001 bytes, the limit is 1,000; store it elsewhere"):
        await app.submit("it", "x" * 987)  # and {"payload":""}
    async with app:
        assert len(await (await app.submit("it", "x" * 986)).result(10)) == 986


async def test_the_usual_limit_is_256_kib(make: Make) -> None:
    app = make("memory://")
    app.registry.register("it", take_str)
    await app.submit("it", "x" * (256 * 1024 - 14))
    with pytest.raises(PayloadError, match="the limit is 262,144"):
        await app.submit("it", "x" * (256 * 1024 - 13))


# --- how parameters become a payload


async def test_several_parameters_and_defaults(app: Scheduler) -> None:
    @app.task
    async def many(ctx: TaskContext, name: str, size: int = 3, *, tags: list[str] | None = None) -> list[object]:
        return [name, size, tags, ctx.type]

    async with app:
        assert await (await many.submit("a")).result(10) == ["a", 3, None, "many"]
        assert await (await many.submit("a", 4, tags=["x"])).result(10) == ["a", 4, ["x"], "many"]
        assert await (await many.submit(size=5, name="b")).result(10) == ["b", 5, None, "many"]
        assert await (await app.submit("many", {"name": "c", "tags": []})).result(10) == ["c", 3, [], "many"]
        (one, two) = await many.submit_many([{"name": "d"}, {"name": "e", "size": 0}])
        assert await one.result(10) == ["d", 3, None, "many"]
        assert await two.result(10) == ["e", 0, None, "many"]
        with pytest.raises(PayloadError, match=r"Expected `int`, got `str` - at `\$\.size`"):
            await app.submit("many", {"name": "c", "size": "4"})
        with pytest.raises(PayloadError, match="missing required field `name`"):
            await app.submit("many", {})
        with pytest.raises(PayloadError, match="unknown field `sise`"):
            await app.submit("many", {"name": "c", "sise": 4})
        with pytest.raises(PayloadError, match="'name' is given twice"):
            await many.submit("a", name="b")  # type: ignore[misc]
        with pytest.raises(PayloadError, match="'nope' is unknown"):
            await many.submit("a", nope=1)  # type: ignore[call-arg]
        with pytest.raises(PayloadError, match="takes 3 payload arguments, not 4"):
            await many.submit("a", 1, [], 4)  # type: ignore[call-arg]


async def test_one_parameter_with_a_default(app: Scheduler) -> None:
    @app.task
    async def one(n: int = 7) -> int:
        return n

    async with app:
        assert await (await one.submit()).result(10) == 7
        assert await (await one.submit(n=8)).result(10) == 8


async def stored_payload(app: Scheduler, handle: Handle[Any]) -> tuple[str, bytes]:
    record = await (await store_of(app)).queries.get(handle.id)
    assert record is not None
    return record.spec.serializer, record.spec.payload


async def test_payloads_of_any_form_are_read(make: Make, file_url: str) -> None:
    """What a client without the handler sends, and what was stored before payloads went by name."""
    node, client = make(file_url), make(file_url)

    @node.task
    async def none() -> list[Any]:
        return []

    @node.task
    async def one(data: dict[str, int]) -> list[Any]:
        return [data]

    node.registry.register("child", child_handlers.decorated.entry.function, run_in="process")
    async with node:
        for serializer in ("json", "msgpack"):
            assert await (await client.submit("none", None, serializer=serializer)).result(10) == []
            assert await (await client.submit("none", {"gone": 1}, serializer=serializer)).result(10) == []
            assert await (await client.submit("one", {"a": 1}, serializer=serializer)).result(10) == [{"a": 1}]
            assert await (await client.submit("one", {"data": {"a": 1}}, serializer=serializer)).result(10) == [
                {"a": 1}
            ]
            for number in (5, {"n": 5}, {"n": 5, "new": 1}):
                found = await (await client.submit("child", number, serializer=serializer)).result(20)
                assert found["n"] == 5


async def test_a_payload_is_stored_by_name(app: Scheduler) -> None:
    @app.task
    async def one(data: dict[str, Any]) -> Any:
        return data

    @app.task
    async def none() -> None: ...

    async with app:
        alike = {"data": {"a": 1}}
        by_call = await one.submit(alike)
        assert await stored_payload(app, by_call) == ("json", b'{"data":{"data":{"a":1}}}')
        assert await by_call.result(10) == alike
        (by_keys, bare) = await one.submit_many([alike, {"a": 1}])
        for handle in (by_keys, bare):
            assert await stored_payload(app, handle) == ("json", b'{"data":{"a":1}}')
            assert await handle.result(10) == {"a": 1}
        assert await stored_payload(app, await none.submit()) == ("json", b"")


async def test_no_payload_means_the_defaults_wherever_it_is_submitted(make: Make, file_url: str) -> None:
    node, client = make(file_url, version_grace=0), make(file_url)

    @node.task
    async def greet(name: str = "you") -> str:
        return name

    @node.task
    async def several(a: int = 1, b: list[str] = ["x"]) -> list[Any]:  # noqa: B006
        return [a, b]

    @node.task
    async def optional(name: str | None = "you") -> str | None:
        return name

    node.registry.register("child", child_handlers.greet, run_in="process")
    async with node:
        for app in (client, node):
            assert await (await app.submit("greet")).result(10) == "you"
            assert await (await app.submit_task(Task(type="greet"))).result(10) == "you"
            assert await (await app.submit("several")).result(10) == [1, ["x"]]
            assert await (await app.submit_task(Task(type="several"))).result(10) == [1, ["x"]]
            assert await (await app.submit("child")).result(20) == "you"
            assert await (await app.submit("optional", None)).result(10) is None, "an explicit None stays one"
            await app.schedules.put("s", "greet", cron="@daily")
            assert (await wait_for(node, await app.schedules.trigger("s"), "success")).result == TaskResult(data="you")
            assert await (await app.submit("optional")).result(10) == "you"
            assert await (await app.submit_task(Task(type="optional"))).result(10) == "you"
            assert await (await app.submit_task(Task(type="optional", payload=None))).result(10) is None
            nothing = await app.submit("greet", delay=3600)
            assert await stored_payload(app, nothing) == ("json", b"")
            assert (await nothing.info()).payload is None
        with pytest.raises(PayloadError, match="Expected `str`, got `null`"):
            await node.submit("greet", None)
        with pytest.raises(TaskFailed, match="does not fit the handler: Expected `str`, got `int`"):
            await (await client.submit("greet", 5)).result(10)


async def test_a_default_that_may_change_and_a_note_that_cannot_be_hashed(app: Scheduler) -> None:
    @app.task
    async def several(a: int, names: list[str] = ["x"], more: dict[str, int] = {"y": 1}) -> list[Any]:  # noqa: B006
        return [a, names, more]

    @app.task
    async def noted(n: Annotated[int, {"doc": 1}]) -> int:
        return n

    async with app:
        assert await (await several.submit(1)).result(10) == [1, ["x"], {"y": 1}]
        for serializer in ("json", "msgpack"):
            assert await (await noted.options(serializer=serializer).submit(3)).result(10) == 3


async def test_no_parameter(app: Scheduler) -> None:
    @app.task
    async def none() -> str:
        return "ran"

    @app.task
    def only_context(ctx: TaskContext) -> str:
        return ctx.task_id

    async with app:
        assert await (await none.submit()).result(10) == "ran"
        handle = await only_context.submit()
        assert await handle.result(10) == handle.id
        with pytest.raises(PayloadError, match="the handler takes no payload, and one was given"):
            await app.submit("none", 1)
        with pytest.raises(PayloadError, match="takes 0 payload arguments, not 1"):
            await none.submit(1)  # type: ignore[call-arg]


async def test_a_missing_argument_is_named(make: Make) -> None:
    app = make("memory://")

    @app.task
    async def one(n: int) -> None: ...

    with pytest.raises(PayloadError, match="its argument 'n' is missing"):
        await one.submit()  # type: ignore[call-arg]


async def test_a_function_can_still_be_called(make: Make) -> None:
    app = make("memory://")

    @app.task
    def add(a: int, b: int = 1) -> int:
        """Adds."""
        return a + b

    assert add(2) == 3
    assert add(2, b=3) == 5
    assert (add.__name__, add.__doc__, add.type) == ("add", "Adds.", "add")


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda *args: None, r"\*args cannot be a payload"),
        (lambda **options: None, r"options cannot be a payload"),
        (lambda a, /: None, "positional-only parameter 'a'"),
        (3, "must be callable or have a method handle"),
    ],
)
async def test_handlers_that_cannot_be_called(make: Make, function: Any, message: str) -> None:
    app = make("memory://")
    with pytest.raises(ConfigError, match=message):
        app.registry.register("it", function)
    assert app.registry.list() == []


async def test_an_annotation_that_does_not_exist(make: Make) -> None:
    app = make("memory://")

    def broken(payload: NoSuchName) -> None: ...  # type: ignore[name-defined] # noqa: F821

    with pytest.raises(ConfigError, match="'broken': cannot read its annotations: name 'NoSuchName' is not defined"):
        app.registry.register("broken", broken)


# --- objects as handlers


class Greeter(Handler[Person]):
    def __init__(self, word: str) -> None:
        self.word = word

    async def handle(self, ctx: TaskContext, payload: Person) -> str:
        return f"{self.word} {payload.name}, task {ctx.task_id}"


class SyncGreeter:
    def handle(self, ctx: TaskContext, payload: Person) -> str:
        return f"{payload.name} {ctx.attempt}"


class BareGreeter:
    def handle(self, ctx, payload):  # type: ignore[no-untyped-def]
        return [ctx.type, payload["name"]]


class CallableGreeter:
    async def __call__(self, payload: Person, ctx: TaskContext) -> str:
        return f"called {payload.name} {ctx.attempt}"


async def test_objects_as_handlers(app: Scheduler) -> None:
    app.registry.register("hello", Greeter("hello"))
    app.registry.register("bye", Greeter("bye"))
    app.registry.register("sync", SyncGreeter())
    app.registry.register("bare", BareGreeter())
    app.registry.register("callable", CallableGreeter())
    async with app:
        hello = await app.submit("hello", Person("ann"))
        bye = await app.submit("bye", Person("bob"))
        assert await hello.result(10) == f"hello ann, task {hello.id}"
        assert await bye.result(10) == f"bye bob, task {bye.id}"
        assert await (await app.submit("sync", Person("cid"))).result(10) == "cid 1"
        assert await (await app.submit("bare", {"name": "dan"})).result(10) == ["bare", "dan"]
        assert await (await app.submit("callable", Person("eve"))).result(10) == "called eve 1"
        with pytest.raises(PayloadError, match=r"at `\$\.payload\.name`"):
            await app.submit("hello", {"name": 1})


async def test_decorator_forms(app: Scheduler) -> None:
    @app.task
    async def plain() -> str:
        return "plain"

    @app.task()
    async def called() -> str:
        return "called"

    @app.task("other-name", priority=10, tags={"a": "b"})
    def named(ctx: TaskContext) -> str:
        return f"{ctx.type} {ctx.tags['a']}"

    async with app:
        assert await (await plain.submit()).result(10) == "plain"
        assert await (await called.submit()).result(10) == "called"
        handle = await named.submit()
        assert await handle.result(10) == "other-name b"
        assert (await handle.info()).priority == 10
        assert await (await app.submit(named)).result(10) == "other-name b"
        assert (await (await named.options(priority=1).submit()).info()).priority == 1


async def test_the_key_is_read_from_the_payload(make: Make) -> None:
    app = make("memory://")

    @app.task(key="payload.name")
    async def good(payload: Person) -> None: ...

    @app.task(key="city.zip")
    async def deep(city: Address, n: int) -> None: ...

    assert (await (await good.submit(Person("ann"))).info()).key == "ann"
    assert (await (await app.submit("good", {"name": "bob"})).info()).key == "bob"
    assert (await (await good.options(key="mine").submit(Person("ann"))).info()).key == "mine"
    assert (await (await deep.submit(Address("x", "123"), 1)).info()).key == "123"

    @app.task(key="payload.customer")
    async def with_default(amount: int, customer: str = "nobody") -> None: ...

    @app.task(key="zip")
    async def in_object(address: Address) -> None: ...

    assert (await (await with_default.submit(1)).info()).key == "nobody"
    assert (await (await app.submit("in_object", {"city": "Rome"})).info()).key == "00000"


# --- at the worker


async def test_a_payload_that_only_the_worker_can_check(make: Make, file_url: str) -> None:
    client, node = make(file_url), make(file_url, version_grace=0)
    ran: list[Any] = []

    @node.task(max_retry=5)
    async def strict(payload: Person) -> None:
        ran.append(payload)

    handle = await client.submit("strict", {"name": 1, "canary": "hidden"}, max_retry=5)
    async with node:
        with pytest.raises(TaskFailed, match=r"does not fit the handler: Expected `str`, got `int` - at `\$.name`"):
            await handle.result(10)
        info = await client.dlq.get(handle.id)
        assert (info.attempt, info.retry_count, ran) == (1, 0, [])
        assert await facts(node, handle.id) == ["task.submitted", "task.claimed", "task.died"]


async def test_a_payload_error_of_the_handlers_own_making(app: Scheduler) -> None:
    """A handler that submits something wrong has a bug like any other; its own payload is fine."""

    @app.task
    async def inner(n: int) -> None: ...

    @app.task(max_retry=1)
    async def outer() -> None:
        await app.submit("inner", "text")

    async with app:
        handle = await outer.submit()
        with pytest.raises(TaskFailed, match="PayloadError: payload for task type 'inner': Expected `int`"):
            await handle.result(10)
        assert (await handle.info()).attempt == 2


@pytest.mark.parametrize("run_in", ["loop", "process"])
async def test_bytes_that_are_no_payload_at_all(make: Make, url: str, run_in: str) -> None:
    app = make(url, version_grace=60)
    if run_in == "loop":
        app.registry.register("it", take_int)
    else:
        app.registry.register("it", take_int, run_in="process")
    store = await store_of(app)
    await store.tasks.submit([Spec(id="torn", type="it", nonce="n", payload=b'{"a": ')])
    await store.tasks.submit([Spec(id="strange", type="it", nonce="n", payload=b"1", serializer="runes")])
    async with app:
        torn = await wait_for(app, "torn", "dead")
        assert "the payload does not fit the handler" in (torn.last_error or "")
        strange = await wait_for(app, "strange", "pending")  # another version may know the serializer
        assert "serializer 'runes' is not known here (known: json, msgpack, protobuf)" in (strange.last_error or "")
        assert (torn.attempt, strange.attempt) == (1, 0)
        assert strange.payload == b"1"


# --- serializers


class Reversed:
    """A serializer of a user's own."""

    name = "reversed"

    def encode(self, value: Any) -> bytes:
        return msgspec.json.encode(value)[::-1]

    def decode(self, data: bytes, type: Any = Any) -> Any:
        return msgspec.json.decode(data[::-1], type=type)


async def test_a_serializer_at_three_levels(make: Make, url: str) -> None:
    app = make(url)
    app.registry.set_serializer(MsgPackSerializer())
    app.registry.register("default", take_anything)
    app.registry.register("typed", take_struct, Reversed())

    async with app:
        by_default = await app.submit("default", {"x": 1})
        by_type = await app.submit("typed", {"x": 1})
        by_call = await app.submit("typed", {"x": 2}, serializer="json")
        by_object = await app.submit("default", {"x": 3}, serializer=Reversed())
        assert await stored_payload(app, by_default) == ("msgpack", msgspec.msgpack.encode({"payload": {"x": 1}}))
        assert await stored_payload(app, by_type) == ("reversed", b'}}1:"x"{:"daolyap"{')
        assert await stored_payload(app, by_call) == ("json", b'{"payload":{"x":2}}')
        assert await stored_payload(app, by_object) == ("reversed", b'}}3:"x"{:"daolyap"{')
        assert await by_default.result(10) == {"x": 1}
        assert await by_type.result(10) == {"x": 1.0, "y": 0.0}
        assert await by_call.result(10) == {"x": 2.0, "y": 0.0}
        assert await by_object.result(10) == {"x": 3}
        assert (await by_type.info()).payload == {"payload": {"x": 1}}
        with pytest.raises(PayloadError, match=r"Expected `float`, got `str` - at `\$\.payload\.x`"):
            await app.submit("typed", {"x": "?"})
        with pytest.raises(PayloadError, match="serializer 'morse' is not known here"):
            await app.submit("typed", {"x": 1}, serializer="morse")


async def test_a_decorated_serializer(app: Scheduler) -> None:
    @app.task(serializer=Reversed())
    async def odd(payload: Point) -> float:
        return payload.x

    @app.task(serializer="msgpack")
    async def packed(payload: Point) -> float:
        return payload.x

    async with app:
        assert await (await odd.submit(Point(1.0))).result(10) == 1.0
        assert await (await packed.submit(Point(2.0))).result(10) == 2.0


async def test_the_scheduler_wide_option(make: Make, url: str) -> None:
    app = make(url, serializer="msgpack")
    app.registry.register("it", take_anything)
    async with app:
        handle = await app.submit("it", b"raw")
        record = await (await store_of(app)).queries.get(handle.id)
        assert record is not None
        assert record.spec.serializer == "msgpack"


def test_a_serializer_must_be_one(tmp_path: Path) -> None:
    app = Scheduler("memory://")
    with pytest.raises(ConfigError, match=r"needs a name, encode\(value\) and decode\(data, type\)"):
        app.registry.set_serializer(object())  # type: ignore[arg-type]

    class Impostor(Reversed):
        name = "json"

    with pytest.raises(ConfigError, match="another serializer is already called 'json'"):
        app.registry.set_serializer(Impostor())


@pytest.mark.parametrize("returned", ['{"x": 1}', bytearray(b"1"), None])
async def test_a_serializer_that_returns_no_bytes(app: Scheduler, returned: Any) -> None:
    class Forgetful(Reversed):
        name = "forgetful"

        def encode(self, value: Any) -> bytes:
            return returned  # type: ignore[no-any-return]

    @app.task
    async def odd(payload: Any) -> None: ...

    kind = type(returned).__name__
    with pytest.raises(PayloadError, match=rf"encode\(\) of the forgetful serializer returned {kind}; return bytes"):
        await app.submit("odd", 1, serializer=Forgetful())
    assert (await app.list_tasks()).items == []


def nested(depth: int) -> Any:
    value: Any = 1
    for _ in range(depth):
        value = [value]
    return value


@pytest.mark.parametrize("serializer", ["json", "msgpack"])
async def test_values_may_be_64_levels_deep_and_no_more(app: Scheduler, serializer: str) -> None:
    @app.task(max_retry=0)
    async def echo(payload: Any, ctx: TaskContext) -> Any:
        return payload

    async with app:
        allowed = await app.submit("echo", nested(63), serializer=serializer, context={"deep": nested(63)})
        assert await allowed.result(10) == nested(63)
        assert (await allowed.info()).context == {"deep": nested(63)}
        for depth in (64, 900, 5000):  # and the object with the parameter's name
            with pytest.raises(PayloadError, match="it is nested more than 64 levels deep"):
                await app.submit("echo", nested(depth), serializer=serializer)
            with pytest.raises(ConfigError, match="it is nested more than 64 levels deep"):
                await app.submit("echo", 1, context={"deep": nested(depth)})
    assert len((await app.list_tasks()).items) == 1
    await app.schedules.put("s", "echo", nested(63), cron="@daily", context={"deep": nested(63)})
    (schedule,) = await app.schedules.list()
    assert schedule.stopped == ""


@pytest.mark.parametrize(("serializer", "payload"), [("json", b"[" * 3000), ("msgpack", b"\x91" * 3000 + b"\x01")])
async def test_a_payload_that_another_client_nested_too_deep(app: Scheduler, serializer: str, payload: bytes) -> None:
    @app.task(max_retry=0)
    async def echo(payload: Any) -> Any: ...

    store = await store_of(app)
    async with app:
        await store.tasks.submit([Spec(id="deep", type="echo", nonce="n", payload=payload, serializer=serializer)])
        info = await wait_for(app, "deep", "dead")
        assert info.last_error == "the payload does not fit the handler: it is nested more than 64 levels deep"
        assert info.payload == payload
        assert app.exhausted is False


async def proto_struct(payload: ProtoStruct) -> Any:
    assert isinstance(payload, ProtoStruct)
    return payload["name"]


async def proto_text(payload: StringValue) -> Any:
    assert isinstance(payload, StringValue)
    return payload.value


async def test_protobuf_messages(make: Make, url: str) -> None:
    app = make(url, version_grace=0)
    app.registry.register("struct", proto_struct, ProtobufSerializer())
    app.registry.register("text", proto_text)
    message = ProtoStruct()
    message["name"] = "ann"
    async with app:
        assert await (await app.submit("struct", message)).result(10) == "ann"
        handle = await app.submit("text", StringValue(value="hi"), serializer="protobuf")
        assert await handle.result(10) == "hi"
        assert isinstance((await handle.info()).payload, bytes)
        with pytest.raises(PayloadError, match="takes messages, not dict"):
            await app.submit("struct", {"name": "ann"})
        store = await store_of(app)
        await store.tasks.submit([Spec(id="bad", type="text", nonce="n", payload=b"\xff\xff", serializer="protobuf")])
        info = await wait_for(app, "bad", "dead")
        assert "not a StringValue message" in (info.last_error or "")


# --- return values


async def test_return_values_come_back_typed(app: Scheduler) -> None:
    @app.task
    async def person() -> Person:
        return Person("ann", [Address("Rome")])

    @app.task
    async def moment() -> datetime:
        return MOMENT

    @app.task
    def nothing() -> None: ...

    @app.task
    def order() -> Order:
        return Order(sku="s", count=1)

    async with app:
        assert await (await person.submit()).result(10) == Person("ann", [Address("Rome")])
        assert await (await moment.submit()).result(10) == MOMENT
        handle = await nothing.submit()
        assert await (await app.submit("nothing")).result(10) is None
        assert await (await order.submit()).result(10) == Order(sku="s", count=1)
        ended = await wait_for(app, handle.id, "success")
        assert ended.result is not None
        assert (ended.result.code, ended.result.message, ended.result.data) == (0, "", None)


@pytest.mark.parametrize(
    "value",
    [object(), float("nan"), [float("inf")], {"a": {1, object}}, "\ud800", nested(65), nested(990)],
    ids=["object", "nan", "inf", "set", "surrogate", "deep", "very deep"],
)
async def test_a_return_value_that_cannot_be_kept(app: Scheduler, value: Any) -> None:
    ran: list[int] = []

    @app.task(max_retry=5)
    async def odd() -> Any:
        ran.append(1)
        return value

    async with app:
        handle = await odd.submit()
        with pytest.raises(TaskFailed, match="the handler ended, but its return value cannot be stored"):
            await handle.result(10)
        assert ran == [1], "work that was done must not be done again"


@pytest.mark.parametrize("result", [b"[" * 3000, b"{", b"\xff"], ids=["deep", "cut", "no text"])
async def test_a_stored_result_that_cannot_be_read(make: Make, url: str, result: bytes) -> None:
    client = make(url)
    store = await store_of(client)
    await store.tasks.submit([Spec(id="it", type="echo", nonce="n")])
    (grant,) = (await store.tasks.claim(Claim("w", ("default",), frozenset({"echo"}), 1, 30_000, "c"))).grants
    await store.tasks.finish([Succeeded(grant.lease, result)])
    info = await client.get_task("it")
    assert info.result is not None
    assert info.result.data == result
    assert [task.id for task in await client.list_tasks()] == ["it"]
    with pytest.raises(ResultError, match="task it has ended, but its stored result cannot be read: "):
        await client.handle("it").result(5)
    knowing = make(url)

    @knowing.task
    async def echo() -> list[int]:
        return []

    if url != "memory://":
        with pytest.raises(ResultError, match="its stored result cannot be read"):
            await knowing.handle("it").result(5)


async def test_a_return_value_of_another_type_than_declared(app: Scheduler) -> None:
    @app.task
    async def liar() -> int:
        return "text"  # type: ignore[return-value]

    @app.task
    async def custom() -> list[object]:
        return [1, "a"]

    async with app:
        assert await (await app.submit("liar")).result(10) == "text"
        assert await (await custom.submit()).result(10) == [1, "a"]


# --- the registry


async def test_the_registry(make: Make, url: str) -> None:
    app = make(url)
    app.registry.register("b", take_int)
    app.registry.register("a", take_int)
    assert app.registry.list() == ["a", "b"]
    assert app.registry.has("a")
    assert not app.registry.has("c")
    with pytest.raises(ConfigError, match="'a' is registered already; unregister it first"):
        app.registry.register("a", take_str)
    assert app.registry.unregister("a")
    assert not app.registry.unregister("a")
    app.registry.register("a", take_str)
    with pytest.raises(HandlerNotFound, match=r"'c' is registered here \(known: a, b\)"):
        app.registry.get("c")
    app.registry.clear()
    assert app.registry.list() == []
    with pytest.raises(ConfigError, match="task type 'a b' must be"):
        app.registry.register("a b", take_int)


async def test_registering_while_it_runs(make: Make, file_url: str) -> None:
    app = make(file_url, scan_interval=30)
    async with app:
        handle = await app.submit("late", 5)
        await eventually(lambda: app.explain(handle.id))
        assert await status_of(app, handle.id) is Status.READY
        app.registry.register("late", take_int)
        assert await handle.result(5) == 5, "the worker must look again at once, not at its next poll"


async def test_unregistering_while_it_runs(make: Make, file_url: str) -> None:
    app = make(file_url)
    app.registry.register("it", take_int)
    async with app:
        assert await (await app.submit("it", 1)).result(10) == 1
        app.registry.unregister("it")
        handle = await app.submit("it", 2)
        await eventually(lambda: _parked(app, handle.id))
        assert await status_of(app, handle.id) is Status.READY
        app.registry.register("it", take_int)
        assert await handle.result(10) == 2


async def _parked(app: Scheduler, task_id: str) -> bool:
    return "task.parked" in await facts(app, task_id)


# --- the context


async def test_what_the_context_tells(app: Scheduler) -> None:
    seen: list[TaskContext] = []

    @app.task(max_retry=2, timeout=5)
    async def look(ctx: TaskContext, n: int) -> None:
        seen.append(ctx)
        assert not ctx.cancelled
        assert ctx.remaining is not None
        assert 4 < ctx.remaining <= 5
        if ctx.attempt == 1:
            raise ValueError("again")

    before = datetime.now(UTC)
    async with app:
        handle = await look.options(tags={"env": "prod"}, context={"trace": "t-1", "deep": [1, {"a": None}]}).submit(1)
        await handle.result(10)
        info = await handle.info()
    first, second = seen
    assert (first.task_id, first.type, first.attempt, second.attempt) == (handle.id, "look", 1, 2)
    assert second.fence > first.fence > 0
    assert first.token != second.token
    assert first.deadline is not None
    assert timedelta(seconds=4) < first.deadline - before < timedelta(seconds=7)
    assert first.tags == {"env": "prod"} == info.tags
    assert first.context == {"trace": "t-1", "deep": [1, {"a": None}]} == info.context
    assert (info.attempt, info.retry_count) == (2, 1)


@pytest.mark.parametrize("run_in", ["thread", "process"])
async def test_what_the_context_tells_of_the_submission(make: Make, url: str, run_in: Any) -> None:
    app = make(url, queues=("default", "slow"))
    app.registry.register("look", child_handlers.look, run_in=run_in)
    app.registry.register("first", take_int)
    at = datetime(2020, 1, 2, 3, 4, 5, tzinfo=UTC)
    async with app:
        first = await app.submit("first", 1)
        later = await app.submit("look", queue="slow", max_retry=2, schedule_at=at, depends_on=[first])
        assert await later.result(20) == ["slow", 2, False, at.isoformat(), [first.id]]
        now = datetime.now(UTC)
        _, _, last, moment, _ = await (await app.submit("look", max_retry=0, delay=0.05)).result(20)
        assert last
        assert abs(datetime.fromisoformat(moment) - now) < timedelta(seconds=10)
        await app.schedules.put("s", "look", cron="@hourly", max_retry=0)
        run = await wait_for(app, await app.schedules.trigger("s"), "success")
        assert run.result is not None
        assert run.result.data[3] == run.scheduled_at.isoformat()


async def test_what_a_handler_writes_into_its_context_stays_there(app: Scheduler) -> None:
    found: list[Any] = []

    @app.task(tags={"team": "a"}, context={"seen": []})
    async def work(customer: str, ctx: TaskContext) -> None:
        context: Any = ctx.context
        tags: Any = ctx.tags
        found.append((dict(tags), context["seen"][:]))
        context["seen"].append(customer)
        context["customer"] = customer
        tags["customer"] = customer
        assert ctx.context["customer"] == ctx.tags["customer"] == customer, "for its own run it is a scratch pad"

    async with app:
        for customer in ("ada", "bob"):
            handle = await work.submit(customer)
            await handle.result(10)
            info = await handle.info()
            assert (info.tags, info.context) == ({"team": "a"}, {"seen": []})
    assert found == [({"team": "a"}, [])] * 2


async def test_what_a_caller_writes_into_a_record_stays_there(app: Scheduler) -> None:
    @app.task(tags={"team": "a"}, context={"seen": []})
    async def work(n: int) -> None: ...

    handle = await work.submit(1)
    info = await handle.info()
    info.tags["customer"] = "ada"
    info.context["seen"].append("ada")
    for task_id in (handle.id, (await work.submit(2)).id):
        again = await app.get_task(task_id)
        assert (again.tags, again.context) == ({"team": "a"}, {"seen": []})


async def test_no_timeout_is_no_deadline(app: Scheduler) -> None:
    @app.task(timeout=0)
    async def free(ctx: TaskContext) -> list[bool]:
        return [ctx.deadline is None, ctx.remaining is None]

    async with app:
        assert await (await free.submit()).result(10) == [True, True]


@pytest.mark.parametrize("sync", [False, True])
async def test_progress_and_log_lines_reach_the_record(app: Scheduler, sync: bool) -> None:
    go_on = threading.Event()

    def body(ctx: TaskContext) -> None:
        ctx.progress(0.25, "a quarter")
        ctx.logger.debug("not kept")
        ctx.logger.info("working on %s of %d", "it", 3)
        ctx.logger.warning("odd: 100% sure")
        ctx.logger.info("%(a)s by name", {"a": "named"})

    if sync:

        @app.task("speak")
        def speak(ctx: TaskContext) -> None:
            body(ctx)
            go_on.wait(10)
            ctx.progress(1, "whole")

    else:

        @app.task("speak")
        async def speak_async(ctx: TaskContext) -> None:
            body(ctx)
            await eventually(go_on.is_set)
            ctx.progress(1, "whole")

    async with app:
        handle = await app.submit("speak")
        info = await eventually(lambda: _with_progress(app, handle.id))
        assert (info.status, info.progress, info.progress_note) == (Status.RUNNING, 0.25, "a quarter")
        texts = [line.split(" ", 1)[1] for line in info.log]
        assert texts == ["INFO working on it of 3", "WARNING odd: 100% sure", "INFO named by name"]
        go_on.set()
        await handle.result(10)
        info = await handle.info()
        assert (info.progress, info.progress_note) == (1.0, "whole"), "last words must not be lost"


@pytest.mark.parametrize("run_in", ["loop", "thread"])
async def test_a_chatty_handler_keeps_little(app: Scheduler, run_in: Literal["loop", "thread"]) -> None:
    @app.task(run_in=run_in)
    async def chatty(ctx: TaskContext) -> None:
        for number in range(2000):
            ctx.logger.info("line %d %s", number, "x" * 5000)
        ctx.progress(0.5, "n" * 1_000_000)
        ctx.progress(0.6, 5)  # type: ignore[arg-type]
        ctx.progress(0.7, "file \udcff " + "n" * 1_000_000)

    async with app:
        handle = await chatty.submit()
        await handle.result(20)
    info = await handle.info()
    assert (len(info.log), {len(line) for line in info.log}) == (200, {2000})
    assert " INFO line 1999 xxx" in info.log[-1][:50]
    assert len(info.progress_note) == 2000
    assert info.progress_note.startswith("file \\udcff nnn")
    assert info.progress_note.endswith("…")


async def _with_progress(app: Scheduler, task_id: str) -> Any:
    info = await app.get_task(task_id)
    return info if info.progress is not None and len(info.log) == 3 else None


async def test_a_log_line_of_the_wrong_format_fails_no_task(app: Scheduler, monkeypatch: pytest.MonkeyPatch) -> None:
    # pytest's own handler raises on such lines, other than every handler of the standard library.
    monkeypatch.setattr(logging.getLogger("tickwork.task"), "propagate", False)
    monkeypatch.setattr(logging, "lastResort", None)

    @app.task(max_retry=0)
    async def speak(ctx: TaskContext) -> None:
        ctx.logger.error("%d apples", "many")

    async with app:
        handle = await speak.submit()
        await handle.result(10)
        assert "%d apples" in (await handle.info()).log[0]


async def test_log_lines_go_to_the_standard_logger_too(app: Scheduler, caplog: pytest.LogCaptureFixture) -> None:
    @app.task
    async def speak(ctx: TaskContext) -> None:
        ctx.logger.info("hello %s", "there", extra={"customer": "ada"})

    with caplog.at_level(logging.INFO, "tickwork.task"):
        async with app:
            handle = await speak.submit()
            await handle.result(10)
    (record,) = [record for record in caplog.records if record.name == "tickwork.task"]
    assert (record.getMessage(), record.__dict__["customer"]) == ("hello there", "ada")
    assert (record.__dict__["task_id"], record.__dict__["task_type"]) == (handle.id, "speak")
    assert record.filename == "test_handlers.py", "a line should name the handler's own code"


@pytest.mark.parametrize("value", [-0.1, 1.1, float("nan")])
async def test_progress_is_from_0_to_1(app: Scheduler, value: float) -> None:
    @app.task(max_retry=0)
    async def far(ctx: TaskContext) -> None:
        ctx.progress(value)

    async with app:
        with pytest.raises(TaskFailed, match="progress is a number from 0 to 1"):
            await (await far.submit()).result(10)


async def test_texts_that_are_no_utf8_do_no_harm(app: Scheduler, caplog: pytest.LogCaptureFixture) -> None:
    """A file name may hold bytes that are no text; Python shows them as lone surrogates."""
    caplog.set_level(logging.CRITICAL, logger="tickwork.task")  # a report with such a text cannot be written

    @app.task
    async def odd(ctx: TaskContext) -> str:
        ctx.progress(0.5, "name \udcff")
        ctx.logger.info("read %s", "name \udcff")
        return "fine"

    async with app:
        handle = await odd.submit()
        assert await handle.result(10) == "fine"
        info = await handle.info()
        assert info.progress_note == "name \\udcff"
        assert info.log[0].endswith("INFO read name \\udcff")


async def test_only_the_last_log_lines_are_kept(app: Scheduler) -> None:
    @app.task
    async def talk(ctx: TaskContext) -> None:
        for number in range(500):
            ctx.logger.info("line %d %s", number, "x" * 3000)

    async with app:
        handle = await talk.submit()
        await handle.result(10)
        log = (await handle.info()).log
    assert len(log) == 200
    assert "line 499 " in log[-1]
    assert all(len(line) <= 2000 for line in log)


async def test_a_drained_app_is_sound(make: Make, url: str, clock: ManualClock) -> None:
    app = make(url, clock=clock)
    app.registry.register("it", take_int)
    async with app:
        handles = await app.submit_many("it", range(250))
        await drain(app)
        assert (await app.status()).tasks == {"success": 250}
        assert [await handle.result(1) for handle in handles[::50]] == [0, 50, 100, 150, 200]


async def test_the_handlers_own_options_hold_for_those_who_do_not_know_it(file_url: str) -> None:
    client, app = Scheduler(file_url), Scheduler(file_url)

    @app.task(max_retry=0, timeout=0.2)
    async def slow(ctx: TaskContext) -> None:
        await asyncio.sleep(60)

    async with app:
        handle = await client.submit("slow")
        await wait_for(client, handle.id, "dead")
        info = await handle.info()
    assert (info.attempt, info.last_error) == (1, "timed out after 0.2 s")
    await client.close()
