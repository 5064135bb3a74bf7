"""What was said by hand, and by programs, of limits, breakers and switches: one small document in the store.

The names of gates are made here. `limit:type:mail` is the limit of a type, `limit:type:mail/key=acme` that of one of
its keys, `breaker:type:mail` a breaker, `switch:tag:customer=acme` a switch.
"""

from __future__ import annotations

import msgspec
from msgspec import Struct

from tickwork.model.tasks import Spec

MARK = "gates"  # the mark that holds the book
RULES_MAX = 1000  # of each kind
KINDS = ("type", "queue")  # what a limit may be of; a breaker: `type` or `target`; a switch: `type`, `key` or `tag`


class Limit(Struct, frozen=True, omit_defaults=True):
    """How many runs of a type or a queue may begin, and how many there may be at a time. 0 is not limited."""

    rate: float = 0.0  # a second
    burst: int = 0  # runs that may begin at once after a pause; 0: as many as in one second, at least 1
    concurrency: int = 0
    per_key: bool = False  # for each key of the tasks by itself
    at: int = 0
    by: str = ""
    note: str = ""

    @property
    def limits(self) -> bool:
        return bool(self.rate or self.concurrency)

    @property
    def most(self) -> int:
        """Tokens that pile up at most."""
        return self.burst or max(int(self.rate), 1)


class Switch(Struct, frozen=True, omit_defaults=True):
    """Tasks that are stopped by hand, or a breaker that was opened by hand."""

    at: int
    by: str = ""
    note: str = ""
    until: int = 0  # 0: until somebody lifts it


class Book(Struct, frozen=True, omit_defaults=True):
    """All rules. `declared` are limits that programs have in their code; those in `limits` were set by hand and count
    instead. `version` grows with every change, so that no text of it ever comes back."""

    version: int = 0
    declared: dict[str, Limit] = {}  # by what they are of, such as `type:mail`
    limits: dict[str, Limit] = {}
    switches: dict[str, Switch] = {}  # by what is switched off, such as `tag:customer=acme`
    breakers: dict[str, Switch] = {}  # opened by hand, such as `type:mail`


_decode = msgspec.json.Decoder(Book).decode
_encode = msgspec.json.Encoder().encode


def read_book(text: str | None) -> Book:
    """An empty one where there is none, or one that this version cannot read."""
    try:
        return Book() if text is None else _decode(text)
    except msgspec.DecodeError:
        return Book()


def write_book(book: Book) -> str:
    return _encode(book).decode()


def is_whole(text: str | None) -> bool:
    """Whether this version can read all of it: if not, to change it would lose what a later version has added."""
    if text is None:
        return True
    try:
        return bool(msgspec.json.decode(text) == msgspec.json.decode(write_book(_decode(text))))
    except msgspec.MsgspecError:
        return False


def switch_names(spec: Spec) -> list[str]:
    """What a switch that stops the task may be of."""
    names = [f"type:{spec.type}", *(f"tag:{name}={value}" for name, value in spec.tags.items())]
    return names if spec.key is None else [*names, f"key:{spec.key}"]


def limit_gate(of: str, key: str | None = None) -> str:
    return f"limit:{of}" if key is None else f"limit:{of}/key={key}"


def breaker_gate(of: str) -> str:
    return f"breaker:{of}"


def switch_gate(of: str) -> str:
    return f"switch:{of}"
