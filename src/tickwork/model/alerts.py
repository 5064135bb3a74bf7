"""Alerts: what the leader keeps of each rule between two looks, what was silenced by hand, and what users are shown."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

import msgspec
from msgspec import Struct, field

MARK = "alerts"  # the mark that holds an `AlertBook`
SILENCES = "silences"  # the mark that holds the silences, by the names of their rules
SILENCES_MAX = 100

AlertState = Literal["ok", "pending", "firing"]


class RuleState(Struct, frozen=True, omit_defaults=True):
    """One rule and how it stands since when, in milliseconds. A rule that fires, but whose condition does not hold any
    more, has `clear_since`.

    `silenced` says whether it was at this look. While it is, nobody is told: `untold` says that those who listen
    have heard otherwise of the alert, or not of it at all."""

    metric: str
    operator: str
    threshold: float
    duration: float
    state: AlertState = "ok"
    since: int = 0
    value: float | None = None  # None: it could not be read
    clear_since: int | None = None
    silenced: bool = False
    untold: bool = False


class Silence(Struct, frozen=True):
    """Until when nobody is told of a rule, who said so when, and why. Times are in milliseconds."""

    until: int
    at: int
    by: str = ""
    note: str = ""


class Ends(Struct, frozen=True, omit_defaults=True):
    """How attempts ended, counted at one time."""

    at: int
    succeeded: int = 0
    failed: int = 0  # for good
    died: int = 0  # those of them that are dead letters
    retrying: int = 0


class AlertBook(Struct, frozen=True, omit_defaults=True):
    """All that a leader leaves to the next. `turn` and `by` make each text of the mark one of a kind."""

    turn: int = 0
    by: str = ""
    at: int = 0
    rules: dict[str, RuleState] = field(default_factory=dict)
    read: int | None = None  # the number of the last fact that is counted in `ends`
    ends: list[Ends] = field(default_factory=list)


class AlertSilence(Struct, frozen=True, kw_only=True):
    """Who has silenced an alert rule and why, and when that ends."""

    by: str
    note: str
    since: datetime
    until: datetime


class Alert(Struct, frozen=True, kw_only=True):
    """An alert rule as users see it: how it stands, and since when.

    It is `pending` while its condition holds but not yet for `duration` seconds, then `firing`; `value` is that of the
    last look at `looked_at`, None where it could not be read. While it is `silenced`, nobody is told of it.
    """

    name: str
    state: AlertState
    since: datetime
    value: float | None
    metric: str
    operator: str
    threshold: float
    duration: float
    looked_at: datetime
    silenced: AlertSilence | None = None


_decode = msgspec.json.Decoder(AlertBook).decode
_decode_silences = msgspec.json.Decoder(dict[str, Silence]).decode


def read_book(stored: str | None) -> AlertBook:
    """An empty one if there is none, or if it was written by another version that keeps it in another way."""
    if stored is None:
        return AlertBook()
    try:
        return _decode(stored)
    except msgspec.MsgspecError:
        return AlertBook()


def write_book(book: AlertBook) -> str:
    return msgspec.json.encode(book).decode()


def read_silences(stored: str | None, now: int) -> dict[str, Silence]:
    """Those that have not ended. What cannot be read silences nothing: rather one alert too many than one too few."""
    if stored is None:
        return {}
    try:
        found = _decode_silences(stored)
    except msgspec.MsgspecError:
        return {}
    return {name: silence for name, silence in found.items() if silence.until > now}


def write_silences(silences: dict[str, Silence]) -> str | None:
    """None, which is no mark, if there are none."""
    return msgspec.json.encode(silences).decode() if silences else None
