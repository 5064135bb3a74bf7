from __future__ import annotations

import math
import random
from datetime import timedelta
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tickwork.backoff import (
    Backoff,
    CustomRetry,
    ExponentialBackoff,
    FixedDelay,
    LinearBackoff,
    RetryPolicy,
    delay,
)
from tickwork.errors import LONGEST_WAIT, ConfigError

ASTRONOMIC = 10**400


class Dice:
    """Always the same throw."""

    def __init__(self, throw: float) -> None:
        self.throw = throw

    def random(self) -> float:
        return self.throw


LEAST, MIDDLE, MOST = Dice(0.0), Dice(0.5), Dice(math.nextafter(1.0, 0.0))

EVERY_KIND: list[Backoff] = [
    ExponentialBackoff(),
    ExponentialBackoff(base=0.5, max=60, multiplier=3, jitter=False),
    FixedDelay(5),
    LinearBackoff(base=1, increment=30, max=300),
    CustomRetry([1, 5, 30, 60]),
    RetryPolicy(max_retries=7, retry_delay=2, backoff_rate=1.5),
]


def waits(strategy: Backoff, count: int, rng: Dice = MIDDLE) -> list[float]:
    return [delay(strategy, retry, rng) for retry in range(count)]


class TestFormulas:
    def test_exponential_starts_at_its_base_and_stops_at_its_max(self) -> None:
        assert waits(ExponentialBackoff(base=1, max=20, multiplier=2, jitter=False), 7) == [
            1,
            2,
            4,
            8,
            16,
            20,
            20,
        ]

    def test_exponential_defaults_are_one_second_doubling_to_an_hour_with_jitter(self) -> None:
        assert ExponentialBackoff() == ExponentialBackoff(base=1.0, max=3600.0, multiplier=2.0, jitter=True)
        assert waits(ExponentialBackoff(), 13)[-2:] == [2048, 3600]

    def test_a_multiplier_below_one_shrinks(self) -> None:
        assert waits(ExponentialBackoff(base=8, multiplier=0.5, jitter=False), 4) == [8, 4, 2, 1]

    def test_fixed_waits_the_same_every_time(self) -> None:
        assert waits(FixedDelay(5), 3) == [5, 5, 5]

    def test_linear_adds_its_increment_up_to_its_max(self) -> None:
        assert waits(LinearBackoff(base=1, increment=30, max=70), 4) == [1, 31, 61, 70]

    def test_custom_repeats_its_last_wait(self) -> None:
        assert waits(CustomRetry([1, 5, 30, 60]), 6) == [1, 5, 30, 60, 60, 60]

    def test_policy_waits_like_the_exponential_it_stands_for(self) -> None:
        assert RetryPolicy() == RetryPolicy(max_retries=3, retry_delay=10.0, backoff_rate=2.0)
        assert RetryPolicy().backoff == ExponentialBackoff(base=10.0, max=3600.0, multiplier=2.0, jitter=True)
        assert waits(RetryPolicy(), 4) == [10, 20, 40, 80]
        assert delay(RetryPolicy(), 0, LEAST) == 7.5

    def test_a_policy_may_begin_above_the_usual_cap(self) -> None:
        assert waits(RetryPolicy(retry_delay=7200), 2) == [7200, 7200]


class TestJitter:
    def test_moves_a_wait_by_a_quarter_either_way(self) -> None:
        strategy = ExponentialBackoff(base=100)
        assert delay(strategy, 0, LEAST) == 75
        assert delay(strategy, 0, MIDDLE) == 100
        assert delay(strategy, 0, MOST) == pytest.approx(125)

    def test_never_goes_above_the_max(self) -> None:
        strategy = ExponentialBackoff(base=100, max=110)
        assert delay(strategy, 0, MOST) == 110
        assert delay(strategy, 9, MOST) == 110
        assert delay(strategy, 9, LEAST) == 82.5

    def test_off_does_not_throw_the_dice(self) -> None:
        strategy = ExponentialBackoff(base=100, jitter=False)
        assert {delay(strategy, 0, dice) for dice in (LEAST, MIDDLE, MOST)} == {100}

    def test_differs_from_task_to_task_by_default(self) -> None:
        assert len({delay(ExponentialBackoff(base=100), 0) for _ in range(20)}) > 1

    def test_follows_the_generator_it_is_given(self) -> None:
        assert delay(ExponentialBackoff(), 3, random.Random(7)) == delay(ExponentialBackoff(), 3, random.Random(7))


class TestExtremes:
    @pytest.mark.parametrize(
        ("strategy", "last"),
        [
            (ExponentialBackoff(jitter=False), 3600),
            (ExponentialBackoff(base=0, jitter=False), 0),
            (ExponentialBackoff(base=5, multiplier=1, jitter=False), 5),
            (ExponentialBackoff(base=5, multiplier=0.5, jitter=False), 0),
            (LinearBackoff(base=1, increment=1e-9, max=3), 3),
            (LinearBackoff(base=1, increment=0, max=3), 1),
            (FixedDelay(5), 5),
            (CustomRetry([1, 2]), 2),
        ],
    )
    @pytest.mark.parametrize("retry", [10**10, ASTRONOMIC])
    def test_no_number_of_retries_overflows(self, strategy: Backoff, last: float, retry: int) -> None:
        assert delay(strategy, retry) == last

    @given(
        base=st.floats(0, LONGEST_WAIT),
        cap=st.floats(0, LONGEST_WAIT),
        multiplier=st.floats(0, LONGEST_WAIT, exclude_min=True),
        retry=st.integers(0, 10**6),
        throw=st.floats(0, 1, exclude_max=True),
    )
    def test_exponential_is_always_within_a_quarter_of_the_capped_power(
        self, base: float, cap: float, multiplier: float, retry: int, throw: float
    ) -> None:
        base, cap = sorted((base, cap))
        plain = delay(ExponentialBackoff(base, cap, multiplier, jitter=False), retry)
        spread = delay(ExponentialBackoff(base, cap, multiplier, jitter=True), retry, Dice(throw))
        assert 0 <= plain <= cap
        assert plain * 0.75 <= spread <= min(plain * 1.25, cap)

    def test_a_negative_retry_is_refused(self) -> None:
        with pytest.raises(ValueError, match="retry -1 is negative"):
            delay(FixedDelay(1), -1)


def build(kind: Any, **fields: Any) -> Any:
    """Construct past the type checker, as an untyped caller would."""
    return kind(**fields)


class TestRefusals:
    @pytest.mark.parametrize("bad", [-1, -0.001, math.nan, math.inf, LONGEST_WAIT + 1, ASTRONOMIC, "5", None, True])
    @pytest.mark.parametrize(
        ("kind", "others", "name"),
        [
            (ExponentialBackoff, {}, "base"),
            (ExponentialBackoff, {}, "max"),
            (FixedDelay, {}, "seconds"),
            (LinearBackoff, {"increment": 1}, "base"),
            (LinearBackoff, {"base": 1}, "increment"),
            (LinearBackoff, {"base": 1, "increment": 1}, "max"),
            (RetryPolicy, {}, "retry_delay"),
        ],
    )
    def test_a_wait_is_a_number_of_seconds(self, kind: Any, others: dict[str, Any], name: str, bad: Any) -> None:
        with pytest.raises(ConfigError, match=rf"^{kind.__name__}\.{name}: .* is not a number of seconds"):
            build(kind, **others, **{name: bad})

    @pytest.mark.parametrize("bad", [0, -2, math.nan, math.inf, "2", False])
    @pytest.mark.parametrize(("kind", "name"), [(ExponentialBackoff, "multiplier"), (RetryPolicy, "backoff_rate")])
    def test_a_factor_is_above_zero(self, kind: Any, name: str, bad: Any) -> None:
        with pytest.raises(ConfigError, match=rf"^{kind.__name__}\.{name}: .* is not a number above 0"):
            build(kind, **{name: bad})

    @pytest.mark.parametrize("bad", [[], (), [1, -1], [math.nan], ["1"], "15", 5, None])
    def test_custom_needs_a_list_of_waits(self, bad: Any) -> None:
        with pytest.raises(ConfigError, match=r"^CustomRetry\.delays: .* is not a list of seconds"):
            build(CustomRetry, delays=bad)

    @pytest.mark.parametrize("bad", [-1, 1.5, "3", None, True])
    def test_max_retries_is_a_whole_number(self, bad: Any) -> None:
        with pytest.raises(ConfigError, match=r"^RetryPolicy\.max_retries: .* is not a whole number"):
            build(RetryPolicy, max_retries=bad)

    def test_a_wait_may_be_a_timedelta(self) -> None:
        second, hour = timedelta(seconds=1), timedelta(hours=1)
        assert ExponentialBackoff(second, hour) == ExponentialBackoff(1, 3600)
        assert FixedDelay(hour).seconds == 3600
        assert LinearBackoff(second, second, hour) == LinearBackoff(1, 1, 3600)
        assert CustomRetry([second, 5, hour]) == CustomRetry([1, 5, 3600])
        assert RetryPolicy(retry_delay=second) == RetryPolicy(retry_delay=1)
        assert msgspec.json.encode(FixedDelay(timedelta(milliseconds=250))) == b'{"type":"fixed","seconds":0.25}'
        with pytest.raises(ConfigError, match=r"^FixedDelay\.seconds: -60\.0 is not a number of seconds"):
            FixedDelay(timedelta(minutes=-1))

    def test_jitter_is_on_or_off(self) -> None:
        with pytest.raises(ConfigError, match=r"^ExponentialBackoff\.jitter: 'off' is not true or false"):
            build(ExponentialBackoff, jitter="off")

    @pytest.mark.parametrize(("kind", "others"), [(ExponentialBackoff, {}), (LinearBackoff, {"increment": 1})])
    def test_a_base_above_the_max_is_refused(self, kind: Any, others: dict[str, Any]) -> None:
        with pytest.raises(ConfigError, match=rf"^{kind.__name__}: base 7200 is above max 3600"):
            build(kind, base=7200, **others)

    def test_the_bounds_themselves_are_fine(self) -> None:
        assert RetryPolicy(max_retries=0, retry_delay=0).max_retries == 0
        assert delay(FixedDelay(0), 0) == 0
        assert delay(FixedDelay(LONGEST_WAIT), 0) == LONGEST_WAIT == 3_153_600_000
        assert delay(ExponentialBackoff(base=5, max=5, jitter=False), 0) == 5


class TestAsData:
    @pytest.mark.parametrize("strategy", EVERY_KIND, ids=lambda strategy: type(strategy).__name__)
    def test_survives_being_stored(self, strategy: Backoff) -> None:
        restored: Backoff = msgspec.json.decode(msgspec.json.encode(strategy), type=Backoff)
        assert type(restored) is type(strategy)
        assert restored == strategy
        assert hash(restored) == hash(strategy)
        restored = msgspec.msgpack.decode(msgspec.msgpack.encode(strategy), type=Backoff)
        assert restored == strategy

    @pytest.mark.parametrize(
        ("strategy", "tag"),
        [
            (ExponentialBackoff(), "exponential"),
            (FixedDelay(1), "fixed"),
            (LinearBackoff(1, 1), "linear"),
            (CustomRetry([1]), "custom"),
            (RetryPolicy(), "policy"),
        ],
    )
    def test_is_stored_under_a_tag_that_never_changes(self, strategy: Backoff, tag: str) -> None:
        assert msgspec.to_builtins(strategy)["type"] == tag

    def test_bad_stored_data_is_refused_by_the_decoder(self) -> None:
        with pytest.raises(msgspec.ValidationError, match=r"FixedDelay\.seconds: -1"):
            msgspec.json.decode(b'{"type": "fixed", "seconds": -1}', type=Backoff)

    def test_a_custom_list_cannot_be_changed_afterwards(self) -> None:
        delays = [1.0, 2.0]
        strategy = CustomRetry(delays)
        delays[0] = 99.0
        assert delay(strategy, 0) == 1.0

    def test_is_frozen(self) -> None:
        with pytest.raises(AttributeError):
            FixedDelay(1).seconds = 2  # type: ignore[misc]
