"""`app.limits`: how many tasks of a type or queue may start, and how many may run at a time."""

from __future__ import annotations

import asyncio
from datetime import datetime
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from tickwork.client import rulebook
from tickwork.client.access import Access
from tickwork.errors import ConfigError
from tickwork.handlers.options import choice, count, name, queue
from tickwork.model.facts import Fact, NewFact
from tickwork.model.gates import Book, Limit, limit_gate
from tickwork.model.rates import parse_rate, rate_text
from tickwork.store.contract import Ask, Gate, GateState, Store

MOST = 1_000_000
CROWDED_LOOK = 1000  # gates among which the most crowded keys are found
KEYS_SHOWN = 10
FORMS = ("type:NAME", "queue:NAME")


class LimitInfo(Struct, frozen=True, kw_only=True):
    """A limit, and how it is there now. One that was set by hand holds instead of that of the code; if it has neither
    rate nor concurrency, there is no limit.

    Of a limit for each key, `keys` has those at which most tasks wait, and how many.
    """

    of: str  # such as `type:mail` or `queue:orders`
    rate: float | None = None  # starts a second
    burst: int | None = None  # starts at once after a pause
    concurrency: int | None = None  # runs at a time
    per: Literal["key"] | None = None
    origin: Literal["code", "hand"]
    by: str = ""
    note: str = ""
    since: datetime | None = None
    tokens: float | None = None  # starts that are left now; None where that is not known
    running: int | None = None  # of those that count against `concurrency`
    waiting: int = 0
    keys: dict[str, int] = {}

    @property
    def text(self) -> str:
        """In words, such as `100/m, burst 20, 5 at a time, for each key`."""
        return _text(Limit(self.rate or 0.0, self.burst or 0, self.concurrency or 0, self.per is not None))


class Limits:
    """Limits on running tasks, which hold for all workers together. What is set here holds within seconds, for all
    processes, and outlives them."""

    def __init__(self, access: Access) -> None:
        self._access = access

    async def list(self) -> list[LimitInfo]:
        """Those that hold, of the code and by hand, by name."""
        store = await self._access.open_store()
        book = await rulebook.read(store)
        holding = sorted({**book.declared, **book.limits}.items())
        states = await store.gates.look([limit_gate(of) for of, _ in holding]) if holding else []
        per_key = any(limit.per_key for _, limit in holding)
        crowded = await store.gates.crowded(CROWDED_LOOK) if per_key else []
        return [
            _info(of, limit, of in book.limits, state, crowded)
            for (of, limit), state in zip(holding, states, strict=True)
        ]

    async def set(
        self,
        of: str,
        *,
        rate: float | str | None = None,
        burst: int | None = None,
        concurrency: int | None = None,
        per: Literal["key"] | None = None,
        note: str = "",
        by: str | None = None,
    ) -> None:
        """Limit a type (`type:mail`) or a queue (`queue:orders`), instead of what the code says of it.

        `rate` is a number of starts a second, or a text such as `100/m`; `burst` how many may start at once after a
        pause, as many as in a second if not given; `concurrency` how many may run at a time; `per="key"` limits the
        tasks of each key by themselves. Without rate and concurrency there is no limit, whatever the code says.
        """
        check_limit_name(of)
        store = await self._access.open_store()
        limit = _read_limit(rate, burst, concurrency, per)
        limit = replace(limit, at=store.now(), by=rulebook.who(self._access, by), note=rulebook.short_note(note))
        fact = NewFact(Fact.LIMIT_SET, of, rulebook.told(limit.by, _text(limit), limit.note))

        def edit(book: Book) -> rulebook.Change:
            if of not in book.limits:
                rulebook.check_room(book.limits, "limits by hand")
            return replace(book, limits={**book.limits, of: limit}), fact

        await rulebook.change(store, edit)
        await apply_limit(store, of, limit)

    async def remove(self, of: str, *, by: str | None = None) -> bool:
        """Take back what was set by hand: what the code says holds again. False if nothing was set."""
        check_limit_name(of)
        store = await self._access.open_store()
        fact = NewFact(Fact.LIMIT_REMOVED, of, rulebook.told(rulebook.who(self._access, by)))
        found: Limit | None = None

        def edit(book: Book) -> rulebook.Change | None:
            nonlocal found
            found = book.declared.get(of)
            if of not in book.limits:
                return None
            return replace(book, limits={name: each for name, each in book.limits.items() if name != of}), fact

        removed = await rulebook.change(store, edit)
        await apply_limit(store, of, found)
        return removed


def check_limit_name(of: str) -> None:
    kind, named = rulebook.split("a limit", of, FORMS)
    if kind == "queue":
        queue(named)
    else:
        name("type", named)


def _read_limit(rate: float | str | None, burst: int | None, concurrency: int | None, per: str | None) -> Limit:
    if burst is not None and rate is None:
        raise ConfigError("burst belongs to a rate, such as rate='100/m'")
    if per is not None and rate is None and concurrency is None:
        raise ConfigError("per belongs to a rate or a concurrency")
    return Limit(
        rate=0.0 if rate is None else parse_rate(rate),
        burst=0 if burst is None else count("burst", burst, 1, MOST),
        concurrency=0 if concurrency is None else count("concurrency", concurrency, 1, MOST),
        per_key=per is not None and choice("per", ("key",), per) == "key",
    )


async def apply_limit(store: Store, of: str, limit: Limit | None) -> None:
    """Let those who wait already go by the new rule. A gate goes by the rule by which it was asked last, and where
    there is no limit any more, nobody asks. An ask without a task, which draws nothing, brings the rule."""
    (whole,) = await store.gates.look([limit_gate(of)])
    crowded = [name for name, _ in await store.gates.crowded(CROWDED_LOOK) if name.startswith(limit_gate(of, ""))]
    gates = [_gate(name, limit, is_of_key=True) for name in crowded]
    if whole.waiting:
        gates.append(_gate(whole.name, limit, is_of_key=False))
    if gates:
        await store.gates.enter([Ask("", (gate,)) for gate in gates])
        await asyncio.gather(*(store.gates.reset(gate.name) for gate in gates))


def _gate(name: str, limit: Limit | None, is_of_key: bool) -> Gate:
    if limit is None or limit.per_key != is_of_key:
        return Gate(name, cost=0)
    return Gate(name, limit.rate / 1000, limit.most, limit.concurrency, cost=0)


def _info(of: str, limit: Limit, by_hand: bool, state: GateState, crowded: list[tuple[str, int]]) -> LimitInfo:
    prefix = limit_gate(of, "")
    keys = {name.removeprefix(prefix): waiting for name, waiting in crowded if name.startswith(prefix)}
    is_whole = limit.limits and not limit.per_key
    return LimitInfo(
        of=of,
        rate=limit.rate or None,
        burst=limit.most if limit.rate else None,
        concurrency=limit.concurrency or None,
        per="key" if limit.per_key else None,
        origin="hand" if by_hand else "code",
        by=limit.by,
        note=limit.note,
        since=rulebook.moment_of(limit.at),
        tokens=state.tokens if is_whole else None,
        running=state.inside if is_whole and limit.concurrency else None,
        waiting=sum(keys.values()) if limit.per_key else state.waiting,
        keys=dict(list(keys.items())[:KEYS_SHOWN]) if limit.per_key else {},
    )


def _text(limit: Limit) -> str:
    if not limit.limits:
        return "no limit"
    parts = [rate_text(limit.rate)] if limit.rate else []
    if limit.rate and limit.burst:
        parts.append(f"burst {limit.burst}")
    if limit.concurrency:
        parts.append(f"{limit.concurrency} at a time")
    return ", ".join([*parts, "for each key"] if limit.per_key else parts)
