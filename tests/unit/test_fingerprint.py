"""Which errors are the same mistake."""

from __future__ import annotations

import pytest

from tickwork.model.fingerprint import MESSAGE_MAX, PLACE_MAX, fingerprint
from tickwork.observe.tracebacks import describe


def pay(order: int) -> None:
    raise TimeoutError(f"no answer for order {order} of 'customer {order}' in {order / 7} s")


def refund(order: int) -> None:
    raise TimeoutError(f"no answer for order {order} of 'customer {order}' in {order / 7} s")


def error_of(function: object, *args: object) -> str:
    try:
        function(*args)  # type: ignore[operator]
    except Exception as error:
        return describe(error)
    raise AssertionError


def test_numbers_and_quoted_parts_do_not_tell_errors_apart() -> None:
    first, second = (fingerprint(error_of(pay, order)) for order in (1, 88397))
    assert first == second
    assert first.error == "TimeoutError"
    assert first.message == "no answer for order # of '…' in # s"
    assert first.place == "unit/test_fingerprint.py in pay"


def test_the_place_tells_errors_apart() -> None:
    assert fingerprint(error_of(pay, 1)).id != fingerprint(error_of(refund, 1)).id


def test_a_line_that_moves_is_the_same_place() -> None:
    text = error_of(pay, 1)
    line = text.partition(", line ")[2].partition(",")[0]
    assert fingerprint(text) == fingerprint(text.replace(f"line {line}", "line 4711"))


def test_the_place_is_in_the_program_and_not_in_a_library() -> None:
    text = (
        "ConnectionError: refused\n\nTraceback (most recent call last):\n"
        '  File "/srv/shop/orders.py", line 10, in place\n    send()\n'
        '  File "/srv/.venv/lib/python3.12/site-packages/client.py", line 5, in send\n    raise\n'
        "ConnectionError: refused"
    )
    assert fingerprint(text).place == "shop/orders.py in place"


@pytest.mark.parametrize(
    ("text", "error", "message"),
    [
        ("ValueError: bad\n\nTraceback", "ValueError", "bad"),
        ("KeyError", "KeyError", ""),
        ("shop.errors.Declined: card ending 4242 of it's owner", "shop.errors.Declined", "card ending # of it's owner"),
        ("worker host-7f3a-1 was lost (no heartbeat)", "", "worker # was lost (no heartbeat)"),
        ("ValueError: http://pay.example/orders/17?x=2, try again", "ValueError", "#=#, try again"),
        ("", "", ""),
    ],
)
def test_what_an_error_consists_of(text: str, error: str, message: str) -> None:
    found = fingerprint(text)
    assert (found.error, found.message, found.place) == (error, message, "")


def test_its_parts_are_bounded() -> None:
    found = fingerprint("ValueError: " + "word " * 10_000 + f'\n  File "{"x" * 5000}", line 1, in f')
    assert len(found.message) <= MESSAGE_MAX
    assert len(found.place) <= PLACE_MAX
