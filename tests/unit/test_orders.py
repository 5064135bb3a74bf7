"""What a worker reads from the orders that a store keeps for it."""

from __future__ import annotations

import pytest

from tickwork.model.members import CAPACITY, DRAIN, QUEUES, Order, Orders, Worker, ordered


@pytest.mark.parametrize(
    "orders",
    [
        Orders(),
        Orders(drain=True),
        Orders(capacity=20),
        Orders(queues=("a", "b.c:d")),
        Orders(drain=True, capacity=1, queues=("mail",)),
    ],
)
def test_what_is_written_is_read(orders: Orders) -> None:
    assert Orders.of(orders.text) == orders


@pytest.mark.parametrize(
    ("order", "known"),
    [
        ("", ""),
        ("drain", "drain"),
        ("jump", ""),
        ("jump=high drain", "drain"),
        ("drained", ""),
        ("drain=later", ""),
        ("capacity=0", ""),
        ("capacity=-1", ""),
        ("capacity=x drain", "drain"),
        ("capacity=\u0661", ""),
        ("capacity=" + "9" * 5000, ""),
        ("capacity=5 capacity=6", "capacity=6"),
        ("capacity", ""),
        ("queues", ""),
        ("queues=", ""),
        ("queues=a,,b", ""),
        ("queues=a/b", ""),
        ("  queues=a   drain ", "drain queues=a"),
    ],
)
def test_what_is_not_known_changes_nothing(order: Order, known: Order) -> None:
    assert Orders.of(order).text == known


def test_one_word_of_a_kind() -> None:
    order = ordered(ordered(ordered("", QUEUES, "a,b"), DRAIN, ""), CAPACITY, "5")
    assert order == "capacity=5 drain queues=a,b"
    assert ordered(order, CAPACITY, "6") == "capacity=6 drain queues=a,b"
    assert ordered(order, DRAIN, None) == "capacity=5 queues=a,b"
    assert ordered("jump=high", DRAIN, "") == "drain jump=high", "that of a later version stays"


def test_a_worker_drains_whatever_else_it_was_asked() -> None:
    assert Worker(id="w", order="capacity=5 drain").status == "draining"
    assert Worker(id="w", order="capacity=5 queues=drain").status == "idle"
