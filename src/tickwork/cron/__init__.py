"""Cron lines: when does a schedule fire next?

    Cron("*/5 * * * *").next(now)                                  5 fields
    Cron("0 30 9 * * mon-fri", timezone="Europe/Berlin")           6 fields, seconds first
    Cron("TZ=Asia/Tokyo @daily")                                   the zone may stand in the line

A line fires at whole seconds of local time in its zone. When clocks change, it depends on the line:

- *Interval-like*, when the minute or the hour field begins with `*` (or `?`): it follows real time. It fires
  at every instant whose local time matches, in both passes of a repeated hour and not at all in a skipped
  one, so `*/5 * * * *` is every five real minutes all year.
- *Fixed*, all others: each time it names happens exactly once. In a repeated hour that is the first pass. If
  a change skips any of its times, it fires once for them all, at the first instant after the change; a day
  that a zone skips as a whole (Samoa, 30 December 2011) is one such change.

`dst="instant"` treats every line as interval-like.

Day-of-month and day-of-week are alternatives when both are restricted; `*/2` restricts, a plain star does
not. `@every5m`, `@every10m`, `@every15m` and `@every30m` are short for `*/5 * * * *` and so on: aligned to
the wall clock. `@every 5m`, with a blank and any duration from a second up, is an interval from the last run,
whatever the clock shows; fractions of a second are dropped.
"""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from typing import Literal, get_args

from tickwork.cron.parse import HORIZON_YEARS, LAST, CronLine, parse
from tickwork.cron.words import describe
from tickwork.cron.zones import EPOCH, FIRST_SECOND, LAST_SECOND, Stretch, find_zone
from tickwork.errors import ConfigError, CronError
from tickwork.texts import shown

Dst = Literal["once", "instant"]

_DAY = 86400
_MILLISECOND = timedelta(milliseconds=1)
_EPOCH_ORDINAL = date(1970, 1, 1).toordinal()
_MONTH_LENGTHS = (0, 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)
# A week of days from Sunday, repeated to reach over a month that begins in the middle of one.
_WEEKS = sum(1 << 7 * week for week in range(6))


class Cron:
    """A cron line in a time zone. Immutable; equal when line, zone and rule are."""

    def __init__(self, expr: str, timezone: str = "UTC", dst: Dst = "once") -> None:
        if dst not in get_args(Dst):
            raise ConfigError(f"dst is 'once' or 'instant', not {shown(dst)}")
        line = parse(expr)
        try:
            self._zone = find_zone(timezone if line.zone is None else line.zone)
        except ConfigError as error:
            if line.zone is None:
                raise
            raise CronError(f"cron line {expr!r}: {error}") from error
        self.expr = expr
        self.timezone = self._zone.name
        self.dst = dst
        self._line = line
        self._every = line.every
        self._fixed = line.fixed and dst == "once"
        self._first = _lowest(line.hours) * 3600 + _lowest(line.minutes) * 60 + _lowest(line.seconds)
        self._days: dict[tuple[int, int], int] = {}
        self._stretch = Stretch(0, 0, 0, 0)
        if not line.every and not self._ever_comes():
            raise CronError(f"cron line {expr!r} never comes: no month that it allows has such a day")

    def next(self, after: datetime) -> datetime | None:
        """The first fire strictly after `after`, in the line's zone; None when 50 years have none.

        Compare it in UTC: in a repeated hour Python takes times of two zones as never equal.
        """
        found = self.next_ms(_milliseconds(after))
        return None if found is None else self._local(found)

    def upcoming(self, n: int, after: datetime | None = None) -> list[datetime]:
        """The next `n` fires after `after`, or from now."""
        at = _milliseconds(datetime.now(UTC) if after is None else after)
        fires: list[datetime] = []
        while len(fires) < n and (found := self.next_ms(at)) is not None:
            fires.append(self._local(at := found))
        return fires

    def matches(self, at: datetime) -> bool:
        """Does the line fire in the second that holds `at`? An `@every` line cannot say: it has no times."""
        if self._every:
            raise ConfigError(f"{self.expr!r} counts from its last run: it has no times to match")
        second_ms = _milliseconds(at) // 1000 * 1000
        return self.next_ms(second_ms - 1) == second_ms

    def describe(self) -> str:
        """The line in plain English, without its zone: "at 09:30 on Monday to Friday"."""
        return describe(self._line)

    def next_ms(self, after_ms: int) -> int | None:
        """`next` in milliseconds since the epoch: what a scheduler calls."""
        second = after_ms // 1000 + 1
        if second < FIRST_SECOND:
            second = FIRST_SECOND
        if self._every:
            second += self._every - 1
            return second * 1000 if second < LAST_SECOND else None
        stop = min(second + HORIZON_YEARS * 366 * _DAY, LAST_SECOND)
        while second < stop:
            start, end, offset, before = self._stretch
            if not start <= second < end:
                start, end, offset, before = self._stretch = self._zone.stretch(second)
            local = second + offset
            if self._fixed and before != offset:
                if before > offset:
                    # These local times were all there before the clocks went back.
                    local = max(local, start + before)
                elif second == start and self._any_local(start + before, start + offset):
                    return start * 1000
            found = self._next_local(local)
            if found is None:
                return None
            if found < end + offset:
                return (found - offset) * 1000 if found - offset < stop else None
            # A local time before `found` can come back only when clocks go back, and within two days. After
            # that nothing fires before `found`, and no local time is a whole day away from UTC.
            second = end if end - second < 2 * _DAY else max(end, found - _DAY)
        return None

    def _any_local(self, start: int, end: int) -> bool:
        found = self._next_local(start)
        return found is not None and found < end

    def _next_local(self, local: int) -> int | None:
        """The first local time from `local` on that the fields allow, in seconds of wall clock since 1970."""
        line = self._line
        day, clock = divmod(local, _DAY)
        today = date.fromordinal(day + _EPOCH_ORDINAL)
        year, month = today.year, today.month
        if line.months >> month & 1:
            days = self._days_from(year, month, today.day)
            if days & 1:
                found = self._next_clock(clock)
                if found >= 0:
                    return local - clock + found
            if days > 1:
                return local - clock + _lowest(days >> 1 << 1) * _DAY + self._first
        last_year = min(year + HORIZON_YEARS, 9999)
        while True:
            ahead = line.months >> month + 1 << month + 1
            if not ahead:
                year += 1
                ahead = line.months
                if year > last_year:
                    return None
            month = _lowest(ahead)
            if days := self._days_from(year, month, 1):
                day = date(year, month, 1).toordinal() - _EPOCH_ORDINAL + _lowest(days)
                return day * _DAY + self._first

    def _next_clock(self, clock: int) -> int:
        """The first allowed second of the day from `clock` on, or -1 when this day has no more."""
        line = self._line
        minute_of_day, second = divmod(clock, 60)
        hour, minute = divmod(minute_of_day, 60)
        if line.hours >> hour & 1:
            if line.minutes >> minute & 1 and (ahead := line.seconds >> second):
                return clock + _lowest(ahead)
            if ahead := line.minutes >> minute + 1:
                return hour * 3600 + (minute + 1 + _lowest(ahead)) * 60 + _lowest(line.seconds)
        if ahead := line.hours >> hour + 1:
            return (hour + 1 + _lowest(ahead)) * 3600 + self._first % 3600
        return -1

    def _days_from(self, year: int, month: int, day: int) -> int:
        """The allowed days of a month from `day` on: bit 0 is `day` itself."""
        length = _MONTH_LENGTHS[month]
        if month == 2 and year % 4 == 0 and (year % 100 != 0 or year % 400 == 0):
            length = 29
        # 1 January of the year 1 was a Monday, and Monday is day 1 of a week here.
        first_weekday = date(year, month, 1).toordinal() % 7
        days = self._days.get((first_weekday, length))
        if days is None:
            days = self._days[first_weekday, length] = _days_of_month(self._line, first_weekday, length)
        return days >> day

    def _ever_comes(self) -> bool:
        """Has any shape of an allowed month such a day? The rarest shape comes back within 40 years."""
        return any(
            _days_of_month(self._line, first_weekday, length)
            for month in range(1, 13)
            if self._line.months >> month & 1
            for length in ((28, 29) if month == 2 else (_MONTH_LENGTHS[month],))
            for first_weekday in range(7)
        )

    def _local(self, at_ms: int) -> datetime:
        return (EPOCH + at_ms * _MILLISECOND).astimezone(self._zone.tz)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Cron):
            return NotImplemented
        return (self.expr, self.timezone, self.dst) == (other.expr, other.timezone, other.dst)

    def __hash__(self) -> int:
        return hash((self.expr, self.timezone, self.dst))

    def __repr__(self) -> str:
        rule = "" if self.dst == "once" else f", dst={self.dst!r}"
        return f"Cron({self.expr!r}, timezone={self.timezone!r}{rule})"

    def __reduce__(self) -> tuple[type[Cron], tuple[str, str, Dst]]:
        return Cron, (self.expr, self.timezone, self.dst)


def _days_of_month(line: CronLine, first_weekday: int, length: int) -> int:
    """The days (bit n is day n) that the line allows in a month of that shape, whatever its name."""
    month = (1 << length + 1) - 2
    days = line.days
    if line.last_day:
        days |= 1 << length
    for day in line.workdays:
        if (day := length if day == LAST else day) <= length:
            days |= 1 << _nearest_workday(day, first_weekday, length)
    weekdays = _WEEKS * line.weekdays >> first_weekday << 1
    for weekday, nth in line.nth_weekdays:
        first = 1 + (weekday - first_weekday) % 7
        weekdays |= 1 << (first + (length - first) // 7 * 7 if nth == LAST else first + 7 * (nth - 1))
    if line.any_day or line.any_weekday:
        return days & weekdays & month
    return (days | weekdays) & month


def _nearest_workday(day: int, first_weekday: int, length: int) -> int:
    """The Monday to Friday nearest to `day` that is still in its month."""
    weekday = (first_weekday + day - 1) % 7
    if weekday == 6:
        return day - 1 if day > 1 else 3
    if weekday == 0:
        return day + 1 if day < length else day - 2
    return day


def _lowest(mask: int) -> int:
    """The number of the lowest set bit."""
    return (mask & -mask).bit_length() - 1


def _milliseconds(at: datetime) -> int:
    if at.utcoffset() is None:
        raise ConfigError(f"{at!r} has no time zone; give an aware time such as datetime.now(UTC)")
    return (at - EPOCH) // _MILLISECOND
