"""Alerts: what the leader keeps of each rule between two looks, and what users are shown of it."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

import msgspec
from msgspec import Struct, field

MARK = "alerts"  # the mark that holds an `AlertBook`

AlertState = Literal["ok", "pending", "firing"]


class RuleState(Struct, frozen=True, omit_defaults=True):
    """One rule and how it stands since when, in milliseconds. A rule that fires, but whose condition does not hold any
    more, has `clear_since`."""

    metric: str
    operator: str
    threshold: float
    duration: float
    state: AlertState = "ok"
    since: int = 0
    value: float | None = None  # None: it could not be read
    clear_since: int | None = None


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


class Alert(Struct, frozen=True, kw_only=True):
    """An alert rule as users see it: how it stands, and since when.

    It is `pending` while its condition holds but not yet for `duration` seconds, then `firing`; `value` is that of the
    last look at `looked_at`, None where it could not be read.
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


_decode = msgspec.json.Decoder(AlertBook).decode


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
