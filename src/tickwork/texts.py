"""Texts from outside: which can be stored, and how much of a value an error repeats. And numbers and times in words."""

from __future__ import annotations

import reprlib
from datetime import datetime
from itertools import islice
from typing import Any

NOTE_MAX = 2000  # characters of a note, a message or a reason
SAID_MAX = 500  # characters of an error that another host tells
ECHO_MAX = 100  # characters of a value that is refused


class _Short(reprlib.Repr):
    def __init__(self) -> None:
        super().__init__()
        self.maxlevel = 3
        self.maxstring = self.maxother = self.maxlong = ECHO_MAX
        self.maxlist = self.maxtuple = self.maxset = self.maxdict = 20

    def repr_dict(self, x: dict[Any, Any], level: int) -> str:
        """In its own order, which the base class does not keep."""
        if level <= 0:
            return "{...}"
        first = islice(x.items(), self.maxdict)
        items = [f"{self.repr1(key, level - 1)}: {self.repr1(value, level - 1)}" for key, value in first]
        return "{" + ", ".join([*items, "..."] if len(x) > self.maxdict else items) + "}"


_repr = _Short().repr


def storable(text: str) -> str:
    """File names may hold bytes that are no text, which Python shows as lone surrogates; no store can take those."""
    return text.encode("utf-8", "backslashreplace").decode()


def cut(text: str, longest: int = NOTE_MAX) -> str:
    """The text, or its beginning and an ellipsis; storable."""
    short = storable(text[: longest + 1])
    return short if len(short) <= longest else short[: longest - 1] + "…"


def shown(value: object) -> str:
    """How an error shows a value that it refuses: values come from outside, and may be of any size."""
    try:
        text = _repr(value)
    except Exception:  # a repr of the caller's own may raise anything
        text = f"<{type(value).__name__}>"
    return cut(text, ECHO_MAX)


def said(text: str, longest: int = SAID_MAX) -> str:
    """What another host says, which may be anything: one line, of characters that can be shown."""
    line = "".join(char if char.isprintable() else " " for char in text[: 2 * longest])
    return cut(" ".join(line.split()), longest)


def many(count: int, noun: str) -> str:
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def duration(seconds: float) -> str:
    """Two units at most: 850ms, 4.2s, 3m05s, 1h, 4d3h."""
    if seconds < 1:
        return f"{seconds * 1000:.0f}ms"
    if seconds < 59.95:
        return f"{seconds:.1f}".removesuffix(".0") + "s"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    days, hours = divmod(hours, 24)
    if days:
        return f"{days}d{hours}h" if hours else f"{days}d"
    if hours:
        return f"{hours}h{minutes:02}m" if minutes else f"{hours}h"
    return f"{minutes}m{rest:02}s" if rest else f"{minutes}m"


def moment(at: datetime | None) -> str:
    """A time of the store, on this host's clock; empty for none."""
    return "" if at is None else in_zone(at.astimezone())


def in_zone(at: datetime) -> str:
    """A time in the zone that it came with."""
    return f"{at:%Y-%m-%d %H:%M:%S} {at.tzname()}"
