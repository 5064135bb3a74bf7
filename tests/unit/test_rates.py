"""Rates as people write them, and back."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tickwork.errors import ConfigError
from tickwork.model.rates import RATE_MAX, RATE_MIN, parse_rate, rate_text


@pytest.mark.parametrize(
    ("written", "a_second"),
    [
        ("5/s", 5.0), ("100/m", 100 / 60), ("1000/h", 1000 / 3600), ("10/d", 10 / 86_400), ("7", 7.0), ("0.5/s", 0.5),
        (" 100 / m ", 100 / 60), ("2.5/m", 2.5 / 60), (3, 3.0), (0.25, 0.25), ("1000000/s", RATE_MAX),
    ],
)  # fmt: skip
def test_a_rate_is_read(written: Any, a_second: float) -> None:
    assert parse_rate(written) == pytest.approx(a_second, rel=1e-12)


@pytest.mark.parametrize(
    "wrong",
    [
        "", "/s", "5/", "5/w", "5/sec", "-5/s", "0/s", "0", "5//s", "1e3/s", "nan", "inf", "5/s/m", "\u0665/s", "5 s",
        "9" * 400,
        0, 0.0, -1, math.nan, math.inf, -math.inf, True, None, [], b"5/s", 10**400,
    ],
)  # fmt: skip
def test_what_is_no_rate_is_refused(wrong: Any) -> None:
    with pytest.raises(ConfigError, match="a rate must be ") as caught:
        parse_rate(wrong)
    assert len(str(caught.value)) < 300


@pytest.mark.parametrize("wrong", ["1000001/s", 1e7, 1e-12, "0.0001/d"])
def test_a_rate_has_bounds(wrong: Any) -> None:
    with pytest.raises(ConfigError, match="one in 1000 days"):
        parse_rate(wrong)


@pytest.mark.parametrize("text", ["5/s", "100/m", "1000/h", "10/d", "1/s", "1/m", "1/h", "1/d", "7/m", "1000000/s"])
def test_what_was_written_is_shown_again(text: str) -> None:
    assert rate_text(parse_rate(text)) == text


@pytest.mark.parametrize(
    ("rate", "text"),
    [(0.5, "30/m"), (60 / 60, "1/s"), (120 / 60, "2/s"), (1 / 7, "8.57143/m"), (math.pi, "3.14159/s"),
     (RATE_MIN, "0.001/d")],
)  # fmt: skip
def test_a_rate_is_shown_in_a_unit_that_suits_it(rate: float, text: str) -> None:
    assert rate_text(rate) == text


@given(st.floats(RATE_MIN, RATE_MAX))
def test_what_is_shown_can_be_read(rate: float) -> None:
    assert parse_rate(rate_text(rate)) == pytest.approx(rate, rel=1e-5)
