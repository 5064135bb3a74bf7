"""How one alert rule goes from one look to the next. Pure: times are those of the store, in milliseconds."""

from __future__ import annotations

import operator
from collections.abc import Callable

from msgspec.structs import replace

from tickwork.config import AlertRule
from tickwork.model.alerts import RuleState

COMPARE: dict[str, Callable[[float, float], bool]] = {
    ">": operator.gt,
    "<": operator.lt,
    ">=": operator.ge,
    "<=": operator.le,
    "==": operator.eq,
}
LOOKS_MISSED = 4  # after so many, nobody knows whether a condition held all the while


def judge(
    rule: AlertRule, before: RuleState | None, value: float | None, now: int, looked_at: int, every: float
) -> RuleState:
    """How the rule stands now. The last look was at `looked_at`; there should be one `every` so many seconds.

    The duration counts from the first look at which the condition held. An alert is over when the condition has not
    held for as long, and for `every` seconds at least. Without a value the rule stays as it was.
    """
    last = _begin(rule, before, now)
    if value is None:
        return replace(last, value=None)
    holds, last = COMPARE[rule.operator](value, rule.threshold), replace(last, value=value)
    was_seen = now - looked_at <= 1000 * max(LOOKS_MISSED * every, rule.duration)
    if last.state == "firing":
        return _of_firing(last, holds, now, was_seen, every)
    if not holds:
        return last if last.state == "ok" else replace(last, state="ok", since=now)
    if last.state == "ok" or not was_seen:
        last = replace(last, state="pending", since=now)
    return replace(last, state="firing", since=now) if now - last.since >= 1000 * rule.duration else last


def _begin(rule: AlertRule, before: RuleState | None, now: int) -> RuleState:
    """What there was, with the rule as it is today. One that waited under another condition begins anew; one that
    fires goes on, until its new condition has not held for a while."""
    fresh = RuleState(rule.metric, rule.operator, rule.threshold, rule.duration, since=now)
    if before is None:
        return fresh
    kept = replace(
        before, metric=rule.metric, operator=rule.operator, threshold=rule.threshold, duration=rule.duration,
        since=min(before.since, now),  # the clock may have been set back
    )  # fmt: skip
    return kept if before.state == "firing" or _condition(before) == _condition(fresh) else fresh


def _condition(state: RuleState) -> tuple[str, str, float]:
    return state.metric, state.operator, state.threshold


def _of_firing(last: RuleState, holds: bool, now: int, was_seen: bool, every: float) -> RuleState:
    if holds:
        return replace(last, clear_since=None)
    since = now if last.clear_since is None or not was_seen else min(last.clear_since, now)
    if last.clear_since is not None and now - since >= 1000 * max(last.duration, every):
        return replace(last, state="ok", since=now, clear_since=None)
    return replace(last, clear_since=since)


def fires(state: RuleState | None) -> bool:
    return state is not None and state.state == "firing"


def silence(last: RuleState | None, state: RuleState, is_silenced: bool) -> RuleState:
    """The same with what is kept of a silence: a change while it lasts is not told, and a second one makes up for it.
    When it is over, all is told."""
    was_untold, has_changed = last is not None and last.untold, fires(last) != fires(state)
    return replace(state, silenced=is_silenced, untold=is_silenced and was_untold != has_changed)


def next_look(state: RuleState, now: int, every: float) -> float:
    """In how many seconds the rule wants to be looked at again: when its duration would be over."""
    if state.state == "pending":
        return state.duration - (now - state.since) / 1000
    if state.clear_since is not None:
        return max(state.duration, every) - (now - state.clear_since) / 1000
    return every


def told(name: str, state: RuleState) -> str:
    """A sentence for the log: what was found, and what the rule allows."""
    found = "cannot be read" if state.value is None else f"is {state.value:g}"
    held = f" for {state.duration:g} s" if state.duration else ""
    return f"{state.metric} {found}; {name} fires when it is {state.operator} {state.threshold:g}{held}"
