"""Reading a cron line: text in, bit masks out, errors that name the field.

The grammar is that of robfig/cron v3 with seconds optional and first, plus 7 = Sunday and `L`, `W` and `#`:

    *  ?            every value                 a-b      a range, never backwards
    a/n  a-b/n  */n every n-th from a           a,b-c    a list
    L  LW  15W      (day-of-month) the last day, the last working day, the working day nearest the 15th
    5L  5#3         (day-of-week) the last Friday, the third Friday of the month

Nothing here knows the time, a calendar or a zone.
"""

from __future__ import annotations

import difflib
import re
from dataclasses import dataclass
from decimal import Decimal
from typing import NamedTuple, NoReturn

from tickwork.errors import CronError

HORIZON_YEARS = 50
MAX_LENGTH = 256
LAST = -1
"""As the `k` of `5#k` and the `n` of `nW`: the last one of the month."""

_MAX_STEP = 9999
_MAX_EVERY = HORIZON_YEARS * 366 * 86400
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_WEEKDAYS = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
_ALIASES = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
    "@every5m": "*/5 * * * *",
    "@every10m": "*/10 * * * *",
    "@every15m": "*/15 * * * *",
    "@every30m": "*/30 * * * *",
}
_UNITS = {"ms": Decimal("0.001"), "s": Decimal(1), "m": Decimal(60), "h": Decimal(3600), "d": Decimal(86400)}
_DURATION_PART = re.compile(r"([0-9]+(?:\.[0-9]+)?)(ms|s|m|h|d)")


@dataclass(frozen=True, slots=True)
class CronLine:
    """What one line allows. Bit n of a mask is set when the value n is allowed."""

    seconds: int = 1
    minutes: int = 0
    hours: int = 0
    days: int = 0
    months: int = 0
    weekdays: int = 0
    last_day: bool = False
    workdays: tuple[int, ...] = ()
    nth_weekdays: tuple[tuple[int, int], ...] = ()
    any_day: bool = True
    any_weekday: bool = True
    fixed: bool = False
    """A time of day rather than an interval: neither the minute nor the hour field begins with a star."""
    every: int = 0
    """Seconds between the runs of `@every`, 0 for a line of fields."""
    zone: str | None = None


class _Field(NamedTuple):
    name: str
    low: int
    high: int
    allowed: str
    names: tuple[str, ...] = ()


_SECOND = _Field("second", 0, 59, "0-59")
_MINUTE = _Field("minute", 0, 59, "0-59")
_HOUR = _Field("hour", 0, 23, "0-23")
_DAY = _Field("day-of-month", 1, 31, "1-31, L, LW, 15W")
_MONTH = _Field("month", 1, 12, "1-12, jan-dec", ("", *_MONTHS))
_WEEKDAY = _Field("day-of-week", 0, 7, "0-7 (0 and 7 are Sunday), sun-sat, 5L, 5#3", _WEEKDAYS)


def parse(expr: object) -> CronLine:
    """Read `expr`, or say in a `CronError` which part of it cannot be read and what could stand there."""
    if not isinstance(expr, str):
        raise CronError(f"a cron line is text such as '*/5 * * * *', not {type(expr).__name__}")
    if len(expr) > MAX_LENGTH:
        raise CronError(f"cron line {expr[:40]!r}... has {len(expr)} characters, allowed are {MAX_LENGTH}")
    words = expr.split()
    zone = None
    if words and words[0].startswith(("TZ=", "CRON_TZ=")):
        zone = words.pop(0).partition("=")[2]
    if not words:
        raise CronError(f"cron line {expr!r} has no fields, expected such as '*/5 * * * *' or '@daily'")
    if words[0].lower() == "@every":
        return CronLine(every=_every(expr, words[1:]), zone=zone)
    if words[0].startswith("@"):
        words = _alias(expr, words)
    if len(words) == 5:
        words.insert(0, "0")
    if len(words) != 6:
        raise CronError(
            f"cron line {expr!r} has {len(words)} field{'s' * (len(words) != 1)}, expected 5 (minute hour "
            "day-of-month month day-of-week) or 6 (second first)"
        )
    return _fields(expr, words, zone)


def _fields(expr: str, words: list[str], zone: str | None) -> CronLine:
    second, minute, hour, day, month, weekday = words
    last_day = False
    workdays: list[int] = []
    days = 0
    for item in _items(expr, _DAY, day):
        if item in ("L", "l"):
            last_day = True
        elif item[-1] in "Ww":
            workdays.append(LAST if item[:-1] in ("L", "l") else _value(expr, _DAY, item, item[:-1]))
        else:
            days |= _mask(expr, _DAY, item)
    nth: list[tuple[int, int]] = []
    weekdays = 0
    for item in _items(expr, _WEEKDAY, weekday):
        if "#" in item:
            nth.append(_nth_weekday(expr, item))
        elif item[:-1].isdigit() and item[-1] in "Ll":
            nth.append((_value(expr, _WEEKDAY, item, item[:-1]) % 7, LAST))
        else:
            weekdays |= _mask(expr, _WEEKDAY, item)
    return CronLine(
        seconds=_plain(expr, _SECOND, second),
        minutes=_plain(expr, _MINUTE, minute),
        hours=_plain(expr, _HOUR, hour),
        days=days,
        months=_plain(expr, _MONTH, month),
        weekdays=(weekdays | weekdays >> 7) & 0x7F,
        last_day=last_day,
        workdays=tuple(workdays),
        nth_weekdays=tuple(nth),
        any_day=_has_star(day),
        any_weekday=_has_star(weekday),
        fixed=minute[0] not in "*?" and hour[0] not in "*?",
        zone=zone,
    )


def _alias(expr: str, words: list[str]) -> list[str]:
    name = words[0].lower()
    line = _ALIASES.get(name)
    if line is None or len(words) > 1:
        hint = ""
        if name.startswith("@every") and len(words) == 1:
            hint = f"; write '@every {name[6:] or '5m'}' for an interval"
        elif near := difflib.get_close_matches(name, _ALIASES, n=1):
            hint = f"; did you mean {near[0]!r}?"
        raise CronError(
            f"cron line {expr!r}: unknown alias {' '.join(words)!r}, allowed are {', '.join(_ALIASES)} "
            f"and @every <duration>{hint}"
        )
    return line.split()


def _every(expr: str, words: list[str]) -> int:
    text = words[0].lower() if len(words) == 1 else ""
    parts = _DURATION_PART.findall(text)
    if not parts or "".join(number + unit for number, unit in parts) != text:
        raise CronError(
            f"cron line {expr!r}: duration {' '.join(words)!r} cannot be read, allowed are numbers with "
            "d, h, m, s or ms, such as 90s, 5m or 1h30m"
        )
    total = sum(Decimal(number) * _UNITS[unit] for number, unit in parts)
    if not 1 <= total <= _MAX_EVERY:
        raise CronError(
            f"cron line {expr!r}: duration {text!r} is out of range, allowed are 1 second to {HORIZON_YEARS} years"
        )
    return int(total)


def _items(expr: str, field: _Field, text: str) -> list[str]:
    items = text.split(",")
    if "" in items:
        _fail(expr, field, text, "has an empty list item")
    return items


def _plain(expr: str, field: _Field, text: str) -> int:
    mask = 0
    for item in _items(expr, field, text):
        mask |= _mask(expr, field, item)
    return mask


def _mask(expr: str, field: _Field, item: str) -> int:
    """The bits of one list item: a star, a value or a range, each with or without a step."""
    span, slash, step_text = item.partition("/")
    step = _step(expr, field, item, step_text) if slash else 1
    # A star and `N/step` in day-of-week end at Saturday: 7 is a second name for Sunday, not an eighth day.
    end = 6 if field is _WEEKDAY else field.high
    if span in ("*", "?"):
        low, high = field.low, end
    else:
        first, dash, last = span.partition("-")
        low = _value(expr, field, item, first)
        if dash:
            high = _value(expr, field, item, last)
            # Sunday may stand at either end of a range, whatever it is called: fri-sun, 5-0, 7-wed.
            if field is _WEEKDAY and high == 0 and low > 0:
                high = 7
            elif field is _WEEKDAY and low == 7 and high < 7:
                low = 0
        else:
            high = max(low, end) if slash else low
        if low > high:
            _fail(expr, field, item, f"runs backwards (write '{first}-{end},{field.low}-{last}')")
    mask = 0
    for value in range(low, high + 1, step):
        mask |= 1 << value
    return mask


def _step(expr: str, field: _Field, item: str, text: str) -> int:
    if not (text.isascii() and text.isdigit()):
        _fail(expr, field, item, f"has a step {text!r} that is not a number")
    step = int(text)
    if not 1 <= step <= _MAX_STEP:
        _fail(expr, field, item, f"has a step out of range (1-{_MAX_STEP})")
    return step


def _value(expr: str, field: _Field, item: str, text: str) -> int:
    if text and text.lower() in field.names:
        return field.names.index(text.lower())
    if not (text.isascii() and text.isdigit()):
        _fail(expr, field, item, "cannot be read")
    value = int(text)
    if not field.low <= value <= field.high:
        _fail(expr, field, item, "is out of range")
    return value


def _nth_weekday(expr: str, item: str) -> tuple[int, int]:
    weekday, _, nth = item.partition("#")
    if nth not in ("1", "2", "3", "4", "5"):
        _fail(expr, _WEEKDAY, item, "is no such week of a month (1-5)")
    return _value(expr, _WEEKDAY, item, weekday) % 7, int(nth)


def _has_star(text: str) -> bool:
    return any(item in ("*", "?", "*/1", "?/1") for item in text.split(","))


def _fail(expr: str, field: _Field, text: str, problem: str) -> NoReturn:
    raise CronError(
        f"cron line {expr!r}: {field.name} {text!r} {problem}, allowed are {field.allowed}, lists, ranges, steps"
    )
