"""A cron line in plain English.

Ordinary lines come out as a person would say them; any other is spelt out field by field, so that nothing is
described wrongly for the sake of being short.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tickwork.cron.parse import LAST, CronLine

# Not from `calendar`: its names follow the process's locale.
_MONTHS = (
    *("", "January", "February", "March", "April", "May", "June"),
    *("July", "August", "September", "October", "November", "December"),
)
_WEEKDAYS = ("Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday")
_MAX_TIMES = 4
_ORDINALS = {1: "first", 2: "second", 3: "third", 4: "fourth", 5: "fifth", LAST: "last"}


def describe(line: CronLine) -> str:
    """Say when `line` fires; the zone is left to the caller."""
    if line.every:
        return _interval(line.every)
    when = _clock(line)
    days = _days(line)
    months = _values(line.months)
    if days:
        when += f" {days}"
    elif when.startswith("at "):
        when += " every day"
    return when if len(months) == 12 else f"{when} in {_series(months, _MONTHS.__getitem__)}"


def _interval(seconds: int) -> str:
    parts = []
    for name, size in (("day", 86400), ("hour", 3600), ("minute", 60), ("second", 1)):
        count, seconds = divmod(seconds, size)
        if count:
            parts.append(f"{count} {name}{'s' * (count > 1)}")
    words = " ".join(parts)
    return f"every {words.removeprefix('1 ') if len(parts) == 1 else words}"


def _clock(line: CronLine) -> str:
    """The time of day."""
    hours, minutes, seconds = _values(line.hours), _values(line.minutes), _values(line.seconds)
    is_round = len(hours) > 2 and _even_step(hours, 24)
    if len(hours) * len(minutes) * len(seconds) <= _MAX_TIMES and not is_round:
        times = [(h, m, s) for h in hours for m in minutes for s in seconds]
        shown = [f"{h:02}:{m:02}" + (f":{s:02}" if seconds != [0] else "") for h, m, s in times]
        return f"at {_join(shown)}"
    if len(seconds) > 1:
        return _every_second(hours, minutes, seconds)
    suffix = "" if seconds == [0] else f" at second {seconds[0]}"
    step = _even_step(minutes, 60)
    if step:
        return f"every {_count(step, 'minute')}{_within_hours(hours)}{suffix}"
    if len(minutes) == 1 and _is_run(hours) and len(hours) < 24:
        return f"every hour from {hours[0]:02}:{minutes[0]:02} to {hours[-1]:02}:{minutes[0]:02}{suffix}"
    if minutes != [0]:
        suffix = f" at minute{'s' * (len(minutes) > 1)} {_series(minutes)}{suffix}"
    if step := _even_step(hours, 24):
        return f"every {_count(step, 'hour')}{suffix}"
    return f"every hour{_within_hours(hours)}{suffix}"


def _every_second(hours: list[int], minutes: list[int], seconds: list[int]) -> str:
    step = _even_step(seconds, 60)
    words = f"every {_count(step, 'second')}" if step else f"at seconds {_series(seconds)}"
    if len(minutes) < 60:
        words += f" of minute{'s' * (len(minutes) > 1)} {_series(minutes)}"
        return words + (" of every hour" if len(hours) == 24 else _within_hours(hours))
    return words + ("" if step else " of every minute") + _within_hours(hours)


def _within_hours(hours: list[int]) -> str:
    if len(hours) == 24:
        return ""
    if _is_run(hours):
        return f" from {hours[0]:02}:00 to {hours[-1]:02}:59"
    return f" in hours {_series(hours)}"


def _days(line: CronLine) -> str:
    """The days, or nothing when every day will do."""
    days = [] if line.any_day else _days_of_month(line)
    weekdays = [] if line.any_weekday else _days_of_week(line)
    return " or ".join(f"on {words}" for words in days + weekdays)


def _days_of_month(line: CronLine) -> list[str]:
    words = []
    if numbers := _values(line.days):
        words.append(f"day{'s' * (len(numbers) > 1)} {_series(numbers)} of the month")
    if line.last_day:
        words.append("the last day of the month")
    words += [f"the working day nearest to day {day}" for day in line.workdays if day != LAST]
    if LAST in line.workdays:
        words.append("the last working day of the month")
    return words


def _days_of_week(line: CronLine) -> list[str]:
    words = []
    # A week reads from Monday to Sunday.
    if numbers := _values((line.weekdays | line.weekdays << 7) & 0b11111110):
        words.append(_series(numbers, _weekday_name))
    for weekday, nth in line.nth_weekdays:
        words.append(f"the {_ORDINALS[nth]} {_weekday_name(weekday)} of the month")
    return words


def _weekday_name(weekday: int) -> str:
    return _WEEKDAYS[weekday % 7]


def _values(mask: int) -> list[int]:
    return [bit for bit in range(mask.bit_length()) if mask >> bit & 1]


def _even_step(values: list[int], size: int) -> int:
    """The step when the values are spread evenly round the clock from 0 on, else 0."""
    step = size // len(values)
    return step if len(values) > 1 and values == list(range(0, size, step)) else 0


def _is_run(values: list[int]) -> bool:
    return values[-1] - values[0] == len(values) - 1


def _count(count: int, noun: str) -> str:
    return noun if count == 1 else f"{count} {noun}s"


def _series(values: Sequence[int], name: Callable[[int], str] = str) -> str:
    """The values in words, runs of three and more drawn together."""
    runs: list[list[int]] = []
    for value in values:
        if runs and value == runs[-1][-1] + 1:
            runs[-1].append(value)
        else:
            runs.append([value])
    words: list[str] = []
    for run in runs:
        words += [f"{name(run[0])} to {name(run[-1])}"] if len(run) > 2 else [name(value) for value in run]
    return _join(words)


def _join(words: Sequence[str]) -> str:
    return " and ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)
