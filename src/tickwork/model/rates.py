"""How often something may happen, as people write it: `5/s`, `100/m`, `1000/h`, `10/d`, or a number a second."""

from __future__ import annotations

import math
import re

from tickwork.errors import ConfigError
from tickwork.texts import shown

UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86_400}  # seconds
RATE_MAX = 1_000_000.0  # a second
RATE_MIN = 1 / (1000 * 86_400)  # one in a thousand days
_EXACT = 1e-9  # how far a count may be from a whole number, as a share, and be one that was divided
_FORM = re.compile(r"(\d{1,15}(?:\.\d{1,15})?)(?: ?/ ?([smhd]))?", re.ASCII)
_EXPECTED = 'a number a second above 0, or a text such as "5/s", "100/m", "1000/h" or "10/d"'


def parse_rate(rate: float | str) -> float:
    """As many a second. Raises `ConfigError` for what is no rate, is 0 or less, or is out of bounds."""
    if isinstance(rate, str):
        found = _FORM.fullmatch(rate.strip())
        if found is None:
            raise ConfigError(f"a rate must be {_EXPECTED}, not {shown(rate)}")
        number = float(found[1]) / UNITS[found[2] or "s"]
    elif isinstance(rate, bool) or not isinstance(rate, int | float):
        raise ConfigError(f"a rate must be {_EXPECTED}, not {shown(rate)}")
    else:
        number = _as_float(rate)
    if not number > 0:
        raise ConfigError(f"a rate must be {_EXPECTED}, not {shown(rate)}")
    if not RATE_MIN * (1 - _EXACT) <= number <= RATE_MAX:
        raise ConfigError(f"a rate must be from one in 1000 days to {RATE_MAX:,.0f} a second, not {shown(rate)}")
    return number


def _as_float(rate: float) -> float:
    try:
        return float(rate)
    except OverflowError:  # a whole number that no float can hold
        return math.inf


def rate_text(rate: float) -> str:
    """In the shortest unit in which it is a whole number; if in none, in the one in which it is 1 or more."""
    for unit, seconds in UNITS.items():
        count = rate * seconds
        if round(count) >= 1 and math.isclose(count, round(count), rel_tol=_EXACT):
            return f"{round(count)}/{unit}"
    unit = next((unit for unit, seconds in UNITS.items() if rate * seconds >= 1), "d")
    return f"{_decimal(rate * UNITS[unit])}/{unit}"


def _decimal(count: float) -> str:
    """Six digits that count, never with an exponent, which `parse_rate` does not read."""
    digits = max(6 - 1 - math.floor(math.log10(count)), 0) if count > 0 else 0
    text = f"{count:.{digits}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text
