"""The UTC offsets of a time zone, as stretches of time over which nothing changes.

Asking `zoneinfo` for an offset costs about a microsecond and a calendar date; looking at the same stretch
again costs a comparison. `zoneinfo` does not tell when an offset changes, so that is found by probing, once
for each half year of each zone that is ever looked at.
"""

from __future__ import annotations

import difflib
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import NamedTuple
from zoneinfo import ZoneInfo, available_timezones

from tickwork.errors import ConfigError

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_SECOND = timedelta(seconds=1)
# A month away from the ends of the calendar, so that no local time and no look back falls off it.
FIRST_SECOND = (datetime(1, 2, 1, tzinfo=UTC) - EPOCH) // _SECOND
LAST_SECOND = (datetime(9999, 12, 1, tzinfo=UTC) - EPOCH) // _SECOND

_PART_BITS = 24
# The shortest stay at one offset on record is four days (Freetown, 1939), since 1970 it is seven.
_PROBE = 1 << 17
# Offsets lie within a day of UTC, so a repeated stretch of local time is over within two.
_LOOK_BACK = 2 * 86400


class Stretch(NamedTuple):
    """UTC seconds `start` up to `end` at one `offset`; `before` is the offset that ended at `start`."""

    start: int
    end: int
    offset: int
    before: int


class Zone:
    """One time zone and what has been learnt of its offsets; shared by all cron lines in that zone."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.tz = ZoneInfo(name)
        # What `fromutc` wants: UTC on the clock, the zone as its label.
        self._epoch = EPOCH.replace(tzinfo=self.tz)
        self._parts: dict[int, list[Stretch]] = {}

    def stretch(self, second: int) -> Stretch:
        """The stretch that holds `second`; its ends may lie within a longer one of the same offset."""
        number = second >> _PART_BITS
        part = self._parts.get(number)
        if part is None:
            part = self._parts[number] = self._probe(number << _PART_BITS, (number + 1) << _PART_BITS)
        for found in part:
            if second < found.end:
                return found
        raise AssertionError(f"{second} lies outside of its own part")  # pragma: no cover

    def _probe(self, start: int, end: int) -> list[Stretch]:
        if self.name == "UTC":
            return [Stretch(start, end, 0, 0)]
        at = start - _LOOK_BACK
        offset = before = self._offset(at)
        found = []
        opened = at
        while at < end:
            ahead = min(at + _PROBE, end)
            if self._offset(ahead) == offset:
                at = ahead
                continue
            low, high = at, ahead
            while high - low > 1:
                middle = (low + high) // 2
                if self._offset(middle) == offset:
                    low = middle
                else:
                    high = middle
            found.append(Stretch(opened, high, offset, before))
            opened = at = high
            before, offset = offset, self._offset(high)
        found.append(Stretch(opened, end, offset, before))
        return found

    def _offset(self, second: int) -> int:
        if not FIRST_SECOND <= second <= LAST_SECOND:
            second = min(max(second, FIRST_SECOND), LAST_SECOND)
        offset = self.tz.fromutc(self._epoch + timedelta(0, second)).utcoffset()
        return 0 if offset is None else offset // _SECOND


def find_zone(name: object) -> Zone:
    """The zone of that name; an unknown one is a `ConfigError` that names the nearest known."""
    if not isinstance(name, str):
        raise ConfigError(f"a time zone is a name such as 'Europe/Berlin', not {type(name).__name__}")
    try:
        return _zone(name)
    # Besides not finding it, zoneinfo fails by what a name points at: a folder, a text file, no path at all.
    except (LookupError, ValueError, OSError) as error:
        raise ConfigError(f"unknown time zone {name[:64]!r}{_nearest(name)}") from error


@cache
def _zone(name: str) -> Zone:
    return Zone(name)


def _nearest(name: str) -> str:
    """The hint of the error: the same name in other letters, or the one most like it."""
    known = {zone.lower(): zone for zone in available_timezones()}
    wanted = name[:64].strip().lower().replace(" ", "_")
    cities = {zone.rpartition("/")[2]: zone for zone in sorted(known, reverse=True)}
    if wanted in known:
        match = known[wanted]
    elif wanted in cities:
        match = known[cities[wanted]]
    elif near := difflib.get_close_matches(wanted, known, n=1):
        match = known[near[0]]
    else:
        return "; names look like 'Europe/Berlin', or 'UTC'"
    return f"; did you mean {match!r}?"
