"""Payloads and results that pydantic checks: they arrive as they were given, or are refused where they are given."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Annotated, Any, Literal

import annotated_types
import msgspec
import pydantic
import pytest
from pydantic import BaseModel, ConfigDict, Field, SecretStr, computed_field, field_serializer, field_validator
from pydantic.alias_generators import to_camel
from pydantic_core import PydanticCustomError

from tests.integration.apps import Make, store_of
from tickwork import ConfigError, PayloadError, Scheduler, TaskFailed
from tickwork.model.tasks import Spec
from tickwork.testing import wait_for

NOW = datetime(2030, 5, 6, 7, 8, 9, 123456, tzinfo=UTC)
CANARY = "4111-1111-CANARY"


class User(BaseModel):
    user_name: str = Field(alias="userName")


class Camel(BaseModel):
    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True)
    first_name: str
    inner: list[User] = []


class Order(BaseModel):
    model_config = ConfigDict(extra="forbid")
    net: int

    @computed_field  # type: ignore[prop-decorator]
    @property
    def gross(self) -> int:
        return self.net * 2


class Strict(BaseModel):
    model_config = ConfigDict(strict=True)
    at: datetime
    kind: Literal["a", "b"] = "a"


class Base64(BaseModel):
    model_config = ConfigDict(ser_json_bytes="base64", val_json_bytes="base64")
    data: bytes


class Login(BaseModel):
    token: SecretStr


class OpenLogin(BaseModel):
    token: SecretStr

    @field_serializer("token", when_used="json")
    def write(self, value: SecretStr) -> str:
        return value.get_secret_value()


class Hidden(BaseModel):
    shown: int
    hidden: int = Field(default=3, exclude=True)


class Text(BaseModel):
    data: bytes


class Either(BaseModel):
    at: datetime | str


class Raising(BaseModel):
    n: int

    @field_serializer("n")
    def write(self, value: int) -> int:
        raise ValueError(CANARY)


class Private(BaseModel):
    n: int
    _lock: object = pydantic.PrivateAttr(default_factory=object)


@pydantic.dataclasses.dataclass
class Positive:
    n: int
    note: Annotated[str, Field(alias="theNote")] = ""

    @field_validator("n")
    @classmethod
    def is_positive(cls, value: int) -> int:
        if value < 0:
            raise ValueError(f"not {value}")
        return value


@dataclass
class Holder:
    user: User
    when: datetime


@dataclass
class Cat:
    lives: int


@dataclass
class Dog:
    lives: int


@dataclass
class Bird:
    wings: int


def echo(app: Scheduler, declared: Any, name: str = "echo") -> None:
    async def handler(payload: Any) -> bool:
        received.append(payload)
        return True

    handler.__annotations__ = {"payload": declared, "return": bool}
    app.registry.register(name, handler)


received: list[Any] = []


@pytest.fixture(autouse=True)
def nothing_received() -> None:
    received.clear()


ARRIVES: list[tuple[Any, Any, Any]] = [
    (User, User(userName="ada"), None),
    (User, {"userName": "ada"}, User(userName="ada")),
    (list[User], [User(userName="ada")], None),
    (Holder, Holder(User(userName="ada"), NOW), None),
    (Camel, Camel(first_name="ada", inner=[User(userName="bob")]), None),
    (Camel, {"firstName": "ada"}, Camel(first_name="ada")),
    (Order, Order(net=1), None),
    (Strict, Strict(at=NOW), None),
    (Base64, Base64(data=b"\x00\xff"), None),
    (OpenLogin, OpenLogin(token=SecretStr("hunter2")), None),
    (Hidden, Hidden(shown=1), None),
    (Text, Text(data=b"plain"), None),
    (Positive, Positive(n=3, theNote="x"), None),  # type: ignore[call-arg]
    (list[Positive], [Positive(n=3)], None),
    (Annotated[int, Field(gt=0)], 3, None),
    (list[Annotated[int, annotated_types.Gt(0)]], [3], None),
    (Cat | Bird, Bird(2), None),
    (Cat | Dog, {"lives": 9}, Cat(9)),
    (Literal["now"] | datetime, NOW, None),
    (Literal["now"] | datetime, "now", None),
]  # fmt: skip


@pytest.mark.parametrize("serializer", ["json", "msgpack"])
async def test_what_is_given_arrives(app: Scheduler, serializer: str) -> None:
    for number, (declared, _, _) in enumerate(ARRIVES):
        echo(app, declared, f"echo{number}")
    async with app:
        for number, (_, given, expected) in enumerate(ARRIVES):
            handle = await app.submit(f"echo{number}", given, serializer=serializer, max_retry=0)
            await handle.result(10)
            assert received.pop() == (given if expected is None else expected)


async def test_a_model_with_a_private_attribute(make: Make) -> None:
    app = make("memory://")
    echo(app, Private)
    async with app:
        await (await app.submit("echo", Private(n=1))).result(10)
    assert received[0].n == 1


async def test_msgpack_carries_bytes_into_a_model(make: Make) -> None:
    app = make("memory://")
    echo(app, Text)
    async with app:
        await (await app.submit("echo", {"data": b"\xff"}, serializer="msgpack")).result(10)
    assert received == [Text(data=b"\xff")]


REFUSED: list[tuple[Any, Any, str]] = [
    (Login, Login(token=SecretStr("hunter2")), r"a SecretStr would be stored as asterisks - at `\$\.payload\.token`"),
    (list[Login], [Login(token=SecretStr("hunter2"))], r"asterisks - at `\$\.payload\[0\]\.token`"),
    (Any, Login(token=SecretStr("hunter2")), "asterisks"),
    (Hidden, Hidden(shown=1, hidden=4), r"its type leaves it out or changes it - at `\$\.payload\.hidden`"),
    (Text, Text(data=b"\xff"), "utf-8"),
    (Either, Either(at="2030-01-01T00:00:00Z"), r"would arrive as datetime|changes it - at `\$\.payload\.at`"),
    (Cat | Dog, Dog(9), r"a Dog would arrive as Cat - at `\$\.payload`"),
    (Positive, {"n": -3}, "n: a validator of the type refuses it"),
    (Positive, {"n": "x"}, "n: Input should be a valid integer"),
    (list[Positive], [{"n": 1}, {"n": -3}], r"1\.n: a validator of the type refuses it"),
    (Annotated[int, Field(gt=0)], -1, "Input should be greater than 0"),
    (Annotated[int, Field(gt=0)], "3", "Input should be a valid integer"),
    (Raising, Raising(n=1), "cannot encode this value"),
]


@pytest.mark.parametrize("serializer", ["json", "msgpack"])
@pytest.mark.parametrize(("declared", "given", "message"), REFUSED)
async def test_what_would_not_arrive_is_refused(
    make: Make, declared: Any, given: Any, message: str, serializer: str
) -> None:
    app = make("memory://")
    echo(app, declared)
    with pytest.raises(PayloadError, match=message):
        await app.submit("echo", given, serializer=serializer)
    assert (await app.status()).tasks == {}


# --- several parameters


async def test_each_parameter_is_decoded_by_its_own_type(app: Scheduler) -> None:
    @app.task
    async def several(
        n: int,
        pet: Cat | Bird,
        user: User,
        count: Annotated[int, Field(gt=0)] = 1,
        tags: list[str] = ["a"],  # noqa: B006
    ) -> list[Any]:
        received.append((n, pet, user, count, tags))
        return []

    async with app:
        await (await several.submit(1, Bird(2), User(userName="ada"))).result(10)
        await (await several.options(serializer="msgpack").submit(1, Cat(9), User(userName="ada"), 5, [])).result(10)
        assert received == [(1, Bird(2), User(userName="ada"), 1, ["a"]), (1, Cat(9), User(userName="ada"), 5, [])]
        with pytest.raises(PayloadError, match=r"Input should be greater than 0 - at `\$\.count`"):
            await several.submit(1, Cat(9), User(userName="ada"), count=0)
        with pytest.raises(PayloadError, match=r"Expected `int`, got `str` - at `\$\.n`"):
            await several.submit("1", Cat(9), User(userName="ada"))  # type: ignore[arg-type]


class Own:
    """A serializer that knows nothing of types."""

    name = "own"

    def encode(self, value: Any) -> bytes:
        return msgspec.json.encode(value, enc_hook=lambda model: model.model_dump(mode="json", by_alias=True))

    def decode(self, data: bytes, type: Any = Any) -> Any:
        return msgspec.json.decode(data)


async def test_models_with_a_serializer_of_ones_own(app: Scheduler) -> None:
    @app.task(serializer=Own())
    async def several(n: int, user: User, pet: Cat | Bird) -> None:
        received.append((n, user, pet))

    async with app:
        await (await several.submit(1, User(userName="ada"), Bird(2))).result(10)
    assert received == [(1, User(userName="ada"), Bird(2))]


def alike(x: datetime | str) -> None: ...
def alike_bytes(n: int, x: list[bytes | str]) -> None: ...
def alike_three(x: str | datetime | None) -> None: ...


@pytest.mark.parametrize(
    ("function", "names"),
    [(alike, r"datetime \| str"), (alike_bytes, r"bytes \| str"), (alike_three, r"str \| datetime")],
)
def test_what_json_cannot_tell_apart_is_refused_at_once(function: Callable[..., Any], names: str) -> None:
    app = Scheduler("memory://")
    with pytest.raises(ConfigError, match=rf"has a type {names}, and in JSON all of these are texts"):
        app.task(function)
    assert app.registry.list() == []


class Mixed(msgspec.Struct):
    inner: Positive


def mixed(payload: Mixed) -> None: ...


def test_what_neither_can_decode_is_a_clear_error() -> None:
    with pytest.raises(ConfigError, match="the payload of handler 'mixed' has a type that cannot be decoded: "):
        Scheduler("memory://").task(mixed)


# --- results


async def test_results_come_back_as_models(app: Scheduler) -> None:
    @app.task
    async def user() -> User:
        return User(userName="ada")

    @app.task
    async def positive() -> Positive:
        return Positive(n=1, theNote="x")  # type: ignore[call-arg]

    @app.task
    async def login() -> Login:
        return Login(token=SecretStr("hunter2"))

    async with app:
        assert await (await user.submit()).result(10) == User(userName="ada")
        assert await (await positive.submit()).result(10) == Positive(n=1, theNote="x")  # type: ignore[call-arg]
        with pytest.raises(TaskFailed, match="cannot be stored: a SecretStr would be stored as asterisks"):
            await (await login.submit()).result(10)


# --- values stay out of errors


class Card(BaseModel):
    number: int
    kind: Literal["visa"] = "visa"


class Quoting(BaseModel):
    number: str

    @field_validator("number")
    @classmethod
    def refuse(cls, value: str) -> str:
        raise ValueError(f"{value} is no number")


class Asserting(BaseModel):
    number: str

    @field_validator("number")
    @classmethod
    def refuse(cls, value: str) -> str:
        assert value == "", f"{value} is no number"
        return value


class OwnKind(BaseModel):
    number: str

    @field_validator("number")
    @classmethod
    def refuse(cls, value: str) -> str:
        raise PydanticCustomError("odd_number", "{number} is odd", {"number": value})


class Left(BaseModel):
    kind: Literal["left"]


class Right(BaseModel):
    kind: Literal["right"]


class Side(BaseModel):
    side: Annotated[Left | Right, Field(discriminator="kind")]


@dataclass
class Checked:
    number: str

    def __post_init__(self) -> None:
        raise ValueError(f"{self.number} is no number")


CANARIES: list[tuple[Any, Any]] = [
    (Card, {"number": CANARY}),
    (Card, {"number": 1, "kind": CANARY}),
    (list[Card], [{"number": CANARY}]),
    (Quoting, {"number": CANARY}),
    (Asserting, {"number": CANARY}),
    (OwnKind, {"number": CANARY}),
    (Side, {"side": {"kind": CANARY}}),
    (Login, {"token": [CANARY]}),
    (Positive, {"n": CANARY}),
    (Annotated[int, Field(gt=0)], CANARY),
    (Checked, {"number": CANARY}),
    (list[Checked], [{"number": CANARY}]),
    (Literal["a", "b"], CANARY),
    (Cat, {"lives": CANARY}),
    (Cat | Bird, {"lives": CANARY}),
]  # fmt: skip


@pytest.mark.parametrize(("declared", "given"), CANARIES)
async def test_no_error_tells_a_payload(
    make: Make, sqlite_url: str, declared: Any, given: Any, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    app = make(sqlite_url, version_grace=0)
    echo(app, declared)
    with pytest.raises(PayloadError) as caught:
        await app.submit("echo", given)
    assert CANARY not in str(caught.value)
    assert caught.value.__suppress_context__
    store = await store_of(app)
    await store.tasks.submit([Spec(id="bad", type="echo", nonce="n", payload=msgspec.json.encode(given))])
    async with app:
        info = await wait_for(app, "bad", "dead")
        assert CANARY not in (info.last_error or "?")
        told = " ".join(event.detail for event in await app.events.read())
        assert CANARY not in told
        assert "does not fit the handler" in told
    assert CANARY not in caplog.text
    assert received == []


async def test_a_key_from_the_payload_is_not_told_either(make: Make) -> None:
    app = make("memory://")

    @app.task(key="payload.number")
    async def pay(payload: Checkless) -> None: ...

    with pytest.raises(PayloadError, match=r"what stands at 'payload\.number' is its key, and must be") as caught:
        await pay.submit(Checkless(CANARY * 100))
    assert CANARY not in str(caught.value)


@dataclass
class Checkless:
    number: str
