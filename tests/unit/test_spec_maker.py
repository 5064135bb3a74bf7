"""What plain tasks of a handler have in common is read once; nothing else may be."""

from __future__ import annotations

from tickwork.client.specs import SpecMaker
from tickwork.config import Config
from tickwork.handlers.options import Options
from tickwork.handlers.registry import Registry
from tickwork.ids import partition_of
from tickwork.model.tasks import Spec
from tickwork.payload.codec import BUILTIN


class Order:
    def __init__(self) -> None:
        self.registry = Registry()
        self.maker = SpecMaker(self.registry, Config())

    def make(self, payload: int = 1, given: Options | None = None) -> Spec:
        return self.maker.make("work", payload, given or {}, self.registry.get("work"))


async def work(number: int) -> None: ...


def test_each_has_an_id_a_nonce_and_a_payload_of_its_own() -> None:
    order = Order()
    order.registry.register("work", work, queue="mail")
    first, second = order.make(1), order.make(2)
    assert (first.payload, second.payload, second.queue) == (b'{"number":1}', b'{"number":2}', "mail")
    assert first.id != second.id
    assert first.nonce != second.nonce


def test_options_of_one_are_not_those_of_the_next() -> None:
    order = Order()
    order.registry.register("work", work)
    order.make()
    assert order.make(given={"queue": "other"}).queue == "other"
    assert order.make().queue == "default"


def test_another_default_serializer_counts_from_then_on() -> None:
    order = Order()
    order.registry.register("work", work)
    order.make()
    order.registry.set_serializer(BUILTIN["msgpack"])
    assert (order.make().serializer, order.make(300).payload) == ("msgpack", b"\x81\xa6number\xcd\x01,")


def test_another_handler_of_the_same_name_counts_from_then_on() -> None:
    order = Order()
    order.registry.register("work", work)
    order.make()
    order.registry.unregister("work")
    order.registry.register("work", work, timeout=7)
    assert order.make().timeout == 7


def test_a_key_comes_from_each_payload() -> None:
    async def bill(customer: str, amount: int) -> None: ...

    registry = Registry()
    entry = registry.register("bill", bill, key="payload.customer")
    maker = SpecMaker(registry, Config())
    payloads = [{"customer": name, "amount": 1} for name in ("ada", "bob")]
    assert [maker.make("bill", payload, {}, entry).key for payload in payloads] == ["ada", "bob"]
    assert [spec.key for spec in maker.make_many("bill", payloads, {}, entry)] == ["ada", "bob"]


def test_what_is_said_of_one_task_is_not_shared() -> None:
    order = Order()
    order.registry.register("work", work)
    assert [order.make(given={"id": name}).id for name in ("one", "two")] == ["one", "two"]


def test_an_id_falls_beside_its_dedup_key_every_time() -> None:
    registry = Registry()
    entry = registry.register("work", work)
    maker = SpecMaker(registry, Config(partitions=4))
    made = [maker.make("work", 1, {"dedup_key": "k"}, entry) for _ in range(8)]
    assert {partition_of(spec.id, 4) for spec in made} == {partition_of("k", 4)}
