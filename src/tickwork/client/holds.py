"""Which limit, breaker or switch keeps a task from running."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime

from msgspec import Struct

from tickwork.client.views import HELD_BY
from tickwork.clock import to_datetime
from tickwork.handlers.executor_names import LOCAL
from tickwork.handlers.options import RESERVED
from tickwork.handlers.registry import Registry
from tickwork.model.gates import (
    MARK,
    Book,
    Limit,
    Switch,
    breaker_gate,
    limit_gate,
    read_book,
    switch_gate,
    switch_names,
)
from tickwork.model.info import Explanation, Reason
from tickwork.model.rates import rate_text
from tickwork.model.tasks import ParkReason, Spec
from tickwork.store.contract import GateState, Store

ALMOST = 1 - 1e-9  # a token, with what is lost by rounding
Shown = Callable[[datetime], str]  # how to say a time


class Passage(Struct, frozen=True):
    """A gate that a task has to pass: of which rule, and how it is there."""

    gate: str
    of: str  # the rule, such as `type:mail`
    rule: Limit | Switch | None = None  # None: a breaker that nobody has opened by hand
    key: str | None = None  # of a limit that holds for each key by itself
    state: GateState = GateState("")

    @property
    def kind(self) -> str:
        return self.gate.partition(":")[0]


async def passages(store: Store, registry: Registry, spec: Spec) -> list[Passage]:
    """Those of a task, in the order in which a worker asks. A gate that nobody asks any more holds nothing, so it does
    no harm to look at more than there are."""
    if spec.queue.startswith(RESERVED):
        return []
    found = list(_passages(read_book(await store.marks.get(MARK)), registry, spec))
    states = await store.gates.look([each.gate for each in found]) if found else []
    return [Passage(each.gate, each.of, each.rule, each.key, state) for each, state in zip(found, states, strict=True)]


def shut_by_hand(book: Book, registry: Registry, spec: Spec) -> list[Passage]:
    """Those that somebody has shut, without how it is there."""
    if not (book.switches or book.breakers):
        return []
    return [each for each in _passages(book, registry, spec) if isinstance(each.rule, Switch)]


def _passages(book: Book, registry: Registry, spec: Spec) -> Iterator[Passage]:
    for of in switch_names(spec):
        if of in book.switches:
            yield Passage(switch_gate(of), of, book.switches[of])
    entry = registry.find(spec.type)
    said = {} if entry is None or entry.protection.limit is None else {f"type:{spec.type}": entry.protection.limit}
    limits = {**said, **book.declared, **book.limits}  # what workers have declared counts more than the code here
    for of in (f"type:{spec.type}", f"queue:{spec.queue}"):
        limit = limits.get(of)
        if limit is not None and limit.limits:
            key = (spec.key or "") if limit.per_key else None
            yield Passage(limit_gate(of, key), of, limit, key)
    executor = spec.executor or registry.executor_of(spec.type)
    of = f"target:{executor}/{spec.target}" if executor != LOCAL and spec.target else f"type:{spec.type}"
    yield Passage(breaker_gate(of), of, book.breakers.get(of))


def stopped_by_hand(gates: Sequence[Passage], shown: Shown) -> Explanation | None:
    """What somebody has switched off does not run, whoever is up."""
    for gate in gates:
        if isinstance(gate.rule, Switch):
            return _by_hand(gate, gate.rule, shown)
    return None


def _by_hand(gate: Passage, rule: Switch, shown: Shown) -> Explanation:
    switch = gate.kind == "switch"
    kind, _, name = gate.of.partition(":")
    what = f"{kind.capitalize()} {name} was switched off" if switch else f"Breaker {gate.of} was opened"
    until = to_datetime(rule.until) if rule.until else None
    text = (
        what
        + (f" by {rule.by}" if rule.by else " by hand")
        + f" at {shown(to_datetime(rule.at))}"
        + (f", until {shown(until)}" if until else "")
        + (f": {rule.note.removesuffix('.')}." if rule.note else ".")
    )
    return Explanation(Reason.SWITCHED_OFF if switch else Reason.BREAKER_OPEN, text, until, blockers=(gate.of,))


def held_up(gates: Sequence[Passage], parked: ParkReason | None, now: int, shown: Shown) -> Explanation | None:
    """By a limit or an open breaker; the kind that has refused it comes first."""
    kind = HELD_BY.get(parked) if parked is not None else None
    for gate in sorted(gates, key=lambda each: each.kind != kind):
        found = _full(gate, now, shown) if isinstance(gate.rule, Limit) else _open(gate, now, shown)
        if found is not None:
            return found
    return None


def _full(gate: Passage, now: int, shown: Shown) -> Explanation | None:
    limit, state = gate.rule, gate.state
    assert isinstance(limit, Limit)
    name = gate.of.replace(":", " ", 1)
    if gate.key is not None:
        name += f" for key {gate.key}" if gate.key else " for tasks without a key"
    if limit.concurrency and state.inside >= limit.concurrency:
        text = f"The limit of {name} is reached: {state.inside} of {limit.concurrency} run{_waiting(state)}."
        return Explanation(Reason.LIMIT_FULL, text, blockers=(gate.of,))
    if limit.rate and state.tokens is not None and state.tokens < ALMOST:
        next_at = to_datetime(now + math.ceil((1 - state.tokens) / limit.rate * 1000))
        rate = f"The rate of {name} ({rate_text(limit.rate)}) is used up"
        text = f"{rate}; the next run may begin at {shown(next_at)}{_waiting(state)}."
        return Explanation(Reason.RATE_SPENT, text, next_at, blockers=(gate.of,))
    return None


def _open(gate: Passage, now: int, shown: Shown) -> Explanation | None:
    state = gate.state
    if not state.open_until:
        return None
    after = f"after {state.failures} failure{'s in a row' if state.failures != 1 else ''}"
    if state.open_until > now:
        until = to_datetime(state.open_until)
        text = f"Breaker {gate.of} is open until {shown(until)} {after}{_waiting(state)}."
        return Explanation(Reason.BREAKER_OPEN, text, until, blockers=(gate.of,))
    tried = f"task {state.probe} is tried now" if state.probe else "one task is tried in a moment"
    blockers = (gate.of, state.probe) if state.probe else (gate.of,)
    return Explanation(Reason.BREAKER_OPEN, f"Breaker {gate.of} is open {after}; {tried}.", blockers=blockers)


def _waiting(state: GateState) -> str:
    return f" ({state.waiting:,} wait{'s' if state.waiting == 1 else ''})" if state.waiting else ""
