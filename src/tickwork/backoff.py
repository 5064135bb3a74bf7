"""How long a failed task waits for its next try: strategies as data, and the function that reads them."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Annotated, Any, Protocol, TypeAlias, assert_never

from msgspec import Meta, Struct
from msgspec.structs import force_setattr

from tickwork.errors import LONGEST_WAIT, ConfigError
from tickwork.texts import shown

Seconds = Annotated[float, Meta(description="seconds")]
Duration = float | timedelta  # as users may say it: seconds or a timedelta
# A strategy of a handler as a function of the number of the retry, counted from 0, and the error; None: no retry.
Wait: TypeAlias = Callable[[int, BaseException], Duration | None]


def is_wait(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= LONGEST_WAIT


_WAIT = (is_wait, f"a number of seconds from 0 to {LONGEST_WAIT}")
_FACTOR = (lambda value: is_wait(value) and value > 0, "a number above 0")
_RULES: dict[str, tuple[Callable[[Any], bool], str]] = {
    "backoff_rate": _FACTOR,
    "multiplier": _FACTOR,
    "jitter": (lambda value: isinstance(value, bool), "true or false"),
    "max_retries": (lambda value: type(value) is int and value >= 0, "a whole number from 0 on"),
    "delays": (lambda v: isinstance(v, tuple) and v != () and all(map(is_wait, v)), "a list of seconds"),
}


class _Strategy(Struct, frozen=True):
    def __post_init__(self) -> None:
        for name in self.__struct_fields__:
            if isinstance(value := getattr(self, name), timedelta):
                force_setattr(self, name, value.total_seconds())
        values = {name: getattr(self, name) for name in self.__struct_fields__}
        for name, value in values.items():
            holds, wanted = _RULES.get(name, _WAIT)
            if not holds(value):
                raise ConfigError(f"{type(self).__name__}.{name}: {shown(value)} is not {wanted}")
        if values.get("base", 0) > values.get("max", LONGEST_WAIT):
            raise ConfigError(f"{type(self).__name__}: base {values['base']} is above max {values['max']}")


class ExponentialBackoff(_Strategy, frozen=True, tag="exponential"):
    """`base * multiplier ** n` seconds, at most `max`; jitter moves it by up to 25 %, never above `max`."""

    base: Seconds = 1.0
    max: Seconds = 3600.0
    multiplier: float = 2.0
    jitter: bool = True

    if TYPE_CHECKING:  # it takes more than it has: a timedelta becomes seconds

        def __init__(
            self, base: Duration = 1.0, max: Duration = 3600.0, multiplier: float = 2.0, jitter: bool = True
        ) -> None: ...


class FixedDelay(_Strategy, frozen=True, tag="fixed"):
    """The same wait before every retry."""

    seconds: Seconds

    if TYPE_CHECKING:

        def __init__(self, seconds: Duration) -> None: ...


class LinearBackoff(_Strategy, frozen=True, tag="linear"):
    """`base + increment * n` seconds, at most `max`."""

    base: Seconds
    increment: Seconds
    max: Seconds = 3600.0

    if TYPE_CHECKING:

        def __init__(self, base: Duration, increment: Duration, max: Duration = 3600.0) -> None: ...


class CustomRetry(_Strategy, frozen=True, tag="custom"):
    """The waits of a list, one after the other; past its end the last one repeats."""

    delays: Sequence[Seconds]

    if TYPE_CHECKING:

        def __init__(self, delays: Sequence[Duration]) -> None: ...

    def __post_init__(self) -> None:
        if isinstance(self.delays, list | tuple):  # a copy, as the owner of a list may go on to change it
            plain = (each.total_seconds() if isinstance(each, timedelta) else each for each in self.delays)
            force_setattr(self, "delays", tuple(plain))
        super().__post_init__()


class RetryPolicy(_Strategy, frozen=True, tag="policy"):
    """How many retries, and their exponential backoff, in three numbers: `max_retry` and `retry` said at once."""

    max_retries: int = 3
    retry_delay: Seconds = 10.0
    backoff_rate: float = 2.0

    if TYPE_CHECKING:

        def __init__(self, max_retries: int = 3, retry_delay: Duration = 10.0, backoff_rate: float = 2.0) -> None: ...

    @property
    def backoff(self) -> ExponentialBackoff:
        return ExponentialBackoff(self.retry_delay, max(self.retry_delay, 3600.0), self.backoff_rate)


Backoff: TypeAlias = ExponentialBackoff | FixedDelay | LinearBackoff | CustomRetry | RetryPolicy


class Random(Protocol):
    def random(self) -> float: ...


def delay(strategy: Backoff, retry: int, rng: Random = random) -> float:
    """Seconds to wait before a retry; the first retry is number 0."""
    if retry < 0:
        raise ValueError(f"retry {retry} is negative; the first retry is number 0")
    retry = min(retry, LONGEST_WAIT)  # all that grows has met its maximum by then, and floats stay finite
    match strategy:
        case RetryPolicy():
            return delay(strategy.backoff, retry, rng)
        case ExponentialBackoff(base=base, max=longest):
            try:
                wait = min(base * float(strategy.multiplier) ** retry, longest)
            except OverflowError:
                wait = longest if base else 0.0
            return min(wait * (0.75 + 0.5 * rng.random()), longest) if strategy.jitter else wait
        case LinearBackoff():
            return min(strategy.base + strategy.increment * retry, strategy.max)
        case FixedDelay():
            return strategy.seconds
        case CustomRetry():
            return strategy.delays[min(retry, len(strategy.delays) - 1)]
        case _:
            assert_never(strategy)
