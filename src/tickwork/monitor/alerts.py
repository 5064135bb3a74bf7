"""Alerts: the leader looks at the rules again and again, and tells when one fires or is over.

How the rules stand is one mark in the store. A change is told as a fact in the step that writes the mark, so a leader
that is killed leaves nothing half done: the next one goes on from the mark, and the duration of a rule with it. Of two
leaders at a time only one can write, since it compares and sets.

What happens to a rule while it is silenced are facts of other kinds, for which no observer, log line or webhook waits.
So whoever reads the log late, or again, need not know what was silenced at that time.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tickwork.config import AlertRule, Config
from tickwork.config.alerts import rules_in_force
from tickwork.ids import new_tail
from tickwork.model.alerts import (
    MARK,
    SILENCES,
    AlertBook,
    RuleState,
    Silence,
    read_book,
    read_silences,
    write_book,
)
from tickwork.model.facts import Fact, NewFact
from tickwork.monitor.judging import fires, judge, next_look, silence, told
from tickwork.monitor.measures import count_ends, measure, of_ends
from tickwork.node.duties import Duty
from tickwork.node.parts import Parts
from tickwork.observe.bus import Bus
from tickwork.observe.observations import AlertChanged
from tickwork.store.contract import Store

SOONEST = 0.1  # seconds between two looks


def with_alerts(parts: Parts, config: Config, store: Store, bus: Bus) -> Parts:
    """The parts of a program, and the duty of looking at its alert rules."""
    parts = parts.copy()
    alerts = Alerts(rules_in_force(config), store, config, bus)
    parts.duties.append(Duty("alerts", alerts.look, config.metrics_interval))
    return parts


class Alerts:
    def __init__(self, rules: Sequence[AlertRule], store: Store, config: Config, bus: Bus) -> None:
        self._rules = rules
        self._store = store
        self._every = config.metrics_interval
        self._dlq_max = config.dlq_max
        self._has_log = config.events
        self._bus = bus
        self._metrics = frozenset(rule.metric for rule in rules)
        self._counts = self._has_log and not self._metrics.isdisjoint(of_ends([]))
        self._id = new_tail()
        self._sent: tuple[str, list[NewFact]] | None = None  # a mark of which nobody knows whether it was written

    async def look(self) -> float | None:
        """Look at all rules once; answers in how many seconds to look again."""
        stored = await self._store.marks.get(MARK)
        self._settle(stored)
        before, now = read_book(stored), await self._store.queries.time()
        silences = read_silences(await self._store.marks.get(SILENCES), now)
        after = await self._judge(before, now, silences)
        new, facts = write_book(after), changes(before, after)
        self._sent = new, facts
        if await self._store.marks.swap(MARK, stored, new, facts):
            self._settle(new)
        self._sent = None  # where another leader was faster, it has told
        looks = [next_look(state, now, self._every) for state in after.rules.values()]
        ends = [(each.until - now) / 1000 for each in silences.values()]
        return max(min([self._every, *looks, *ends]), SOONEST)

    async def _judge(self, before: AlertBook, now: int, silences: Mapping[str, Silence]) -> AlertBook:
        read, ends = before.read, before.ends
        if self._counts:
            read, ends = await count_ends(self._store, read, ends, now)
        known = ends if self._has_log else None
        values = await measure(self._store, self._metrics, known, self._dlq_max, now)
        rules: dict[str, RuleState] = {}
        for rule in self._rules:
            last = before.rules.get(rule.name)
            state = judge(rule, last, values[rule.metric], now, before.at, self._every)
            rules[rule.name] = silence(last, state, rule.name in silences)
        return AlertBook(before.turn + 1, self._id, now, rules, read, ends)

    def _settle(self, stored: str | None) -> None:
        """Tell of a change that was written, also if the store's answer was lost."""
        if self._sent is not None and self._sent[0] == stored:
            for fact in self._sent[1]:
                self._bus.publish(fact.kind, AlertChanged(fact.kind, fact.id, fact.detail))
        self._sent = None


def changes(before: AlertBook, after: AlertBook) -> list[NewFact]:
    """What has fired or is over since, and what can be told as a silence is over. An alert whose rule is gone is over,
    and whoever has heard of it hears that too, silenced or not: there is no later time to tell it."""
    facts = []
    for name, state in after.rules.items():
        last = before.rules.get(name)
        if (kind := _change(last, state)) is not None:
            over = "; its silence is over" if last is not None and last.silenced and not state.silenced else ""
            facts.append(NewFact(kind, name, told(name, state) + over))
    for name, state in before.rules.items():
        if name not in after.rules and (fires(state) or state.untold):
            kind = Fact.ALERT_RESOLVED if _is_heard(state) else Fact.ALERT_RESOLVED_SILENTLY
            facts.append(NewFact(kind, name, "its rule is gone"))
    return facts


def _change(last: RuleState | None, state: RuleState) -> Fact | None:
    is_over = last is not None and last.silenced and not state.silenced
    if not state.silenced:
        if fires(state) and (is_over or not fires(last)):
            return Fact.ALERT_FIRED
        if not fires(state) and _is_heard(last):
            return Fact.ALERT_RESOLVED
    if fires(state) == fires(last):
        return None
    return Fact.ALERT_FIRED_SILENTLY if fires(state) else Fact.ALERT_RESOLVED_SILENTLY


def _is_heard(state: RuleState | None) -> bool:
    """Whether those who listen believe that it fires."""
    return state is not None and fires(state) != state.untold
