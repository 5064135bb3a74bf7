"""What a handler says of how much of it may run: `@app.task(rate="100/m", per="key", concurrency=5)`, and breakers."""

from __future__ import annotations

from typing import Any, NamedTuple

from tickwork.errors import ConfigError
from tickwork.model.gates import Limit
from tickwork.texts import shown

NAMES = ("rate", "burst", "per", "concurrency", "breaker", "submit_rate")


class Breaker(NamedTuple):
    failures: int  # in a row
    timeout: float  # seconds


class Protection(NamedTuple):
    limit: Limit | None = None
    breaker: Breaker | None = None
    submits: float = 0.0  # a second; 0: any number

    @classmethod
    def taken_from(cls, type: str, options: dict[str, Any]) -> Protection:
        """Takes these options out of the others, which are those of tasks."""
        given = {name: options.pop(name) for name in NAMES if name in options}
        rate, concurrency = given.get("rate", 0.0), given.get("concurrency", 0)
        if "burst" in given and not rate:
            raise ConfigError(f"handler {type!r}: burst belongs to a rate, such as rate='100/m'")
        if "per" in given and not (rate or concurrency):
            raise ConfigError(f"handler {type!r}: per belongs to a rate or a concurrency")
        limit = Limit(rate, given.get("burst", 0), concurrency, given.get("per") == "key")
        return cls(limit if limit.limits else None, given.get("breaker"), given.get("submit_rate", 0.0))


def breaker(value: Any) -> Breaker:
    try:
        failures, timeout = value
        sound = type(failures) is int and failures >= 1 and not isinstance(timeout, bool) and 0 < float(timeout) < 1e9
    except (TypeError, ValueError):
        sound = False
    if not sound:
        raise ConfigError(
            "breaker must be failures in a row and seconds until it is tried again, such as (5, 30), "
            f"not {shown(value)}"
        )
    return Breaker(failures, float(timeout))
