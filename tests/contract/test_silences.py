"""Silences of alerts on every store: what happens meanwhile, what is told when they end, and how they are kept."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path

import pytest

from tests.contract.test_alerts import FIRED, RESOLVED, Leaders
from tests.support.stores import KINDS, open_store
from tickwork.client.access import Access
from tickwork.client.alerts import alerts_of, silence, unsilence
from tickwork.client.client import Client
from tickwork.clock import ManualClock
from tickwork.config import AlertRule, Config
from tickwork.errors import ConfigError
from tickwork.handlers.registry import Registry
from tickwork.model.alerts import SILENCES, read_silences
from tickwork.model.facts import Fact
from tickwork.model.policy import Policy
from tickwork.store.contract import Store

FIRED_SILENTLY, RESOLVED_SILENTLY = ("alert.fired_silently", "waiting"), ("alert.resolved_silently", "waiting")
AT_ONCE = AlertRule("waiting", "tasks_pending", 3, ">=")


@pytest.fixture(params=KINDS)
async def leaders(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Leaders]:
    clock = ManualClock()
    async with open_store(request.param, tmp_path, clock, Policy()) as store:
        yield Leaders(store, clock)


def access(leaders: Leaders) -> Access:
    async def opened() -> Store:
        return leaders.store

    return Client(opened, Registry(), Config())._access


async def silenced(leaders: Leaders, seconds: float, name: str = "waiting") -> None:
    await silence(access(leaders), name, timedelta(seconds=seconds), "big import", "ines")


async def test_what_happens_in_a_silence_is_a_fact_that_nobody_is_told(leaders: Leaders) -> None:
    alerts = leaders.leader(AT_ONCE)
    await alerts.look()
    await silenced(leaders, 3600)
    await leaders.submit(3)
    await alerts.look()
    assert (await leaders.state(), await leaders.facts()) == ("firing", [FIRED_SILENTLY])
    await leaders.store.operators.cancel(["t1"], False)
    await alerts.look()
    leaders.clock.advance(30)
    await alerts.look()
    assert (await leaders.state(), await leaders.facts()) == ("ok", [FIRED_SILENTLY, RESOLVED_SILENTLY])
    leaders.clock.advance(3600)
    await alerts.look()
    assert await leaders.facts() == [FIRED_SILENTLY, RESOLVED_SILENTLY]
    assert leaders.told == []


async def test_what_fires_when_its_silence_ends_is_told_then_whoever_leads(leaders: Leaders) -> None:
    await leaders.submit(3)
    await leaders.leader(AT_ONCE).look()
    await silenced(leaders, 40)
    assert await leaders.leader(AT_ONCE).look() == 30.0
    leaders.clock.advance(30)
    assert await leaders.leader(AT_ONCE).look() == 10.0, "a look comes when the silence ends"
    assert await leaders.facts() == [FIRED]
    leaders.clock.advance(10)
    for _ in range(3):
        await leaders.leader(AT_ONCE).look()
    assert await leaders.facts() == [FIRED, FIRED]
    assert [told.fact for told in leaders.told] == [Fact.ALERT_FIRED] * 2
    assert leaders.told[1].detail.endswith("; its silence is over")


async def test_an_end_that_nobody_was_told_of_is_told_when_the_silence_ends(leaders: Leaders) -> None:
    alerts = leaders.leader(AT_ONCE)
    await leaders.submit(3)
    await alerts.look()
    await silenced(leaders, 3600)
    await leaders.store.operators.cancel(["t1"], False)
    await alerts.look()
    leaders.clock.advance(30)
    await alerts.look()
    assert await leaders.facts() == [FIRED, RESOLVED_SILENTLY]
    assert await unsilence(access(leaders), "waiting")
    await alerts.look()
    await alerts.look()
    assert await leaders.facts() == [FIRED, RESOLVED_SILENTLY, RESOLVED]
    assert [told.fact for told in leaders.told] == [Fact.ALERT_FIRED, Fact.ALERT_RESOLVED]


async def test_a_rule_that_is_gone_in_its_silence_is_over_for_those_who_had_heard_of_it(leaders: Leaders) -> None:
    other = AlertRule("other", "tasks_pending", 30, ">=")
    unheard = AlertRule("unheard", "tasks_pending", 4, ">=")
    await leaders.submit(3)
    await leaders.leader(AT_ONCE, unheard).look()
    await silenced(leaders, 3600)
    await silenced(leaders, 3600, "unheard")
    await leaders.submit(1)
    await leaders.leader(AT_ONCE, unheard).look()
    await leaders.leader(other).look()
    assert await leaders.facts() == [
        FIRED, ("alert.fired_silently", "unheard"), RESOLVED, ("alert.resolved_silently", "unheard"),
    ]  # fmt: skip
    assert [told.fact for told in leaders.told] == [Fact.ALERT_FIRED, Fact.ALERT_RESOLVED]


async def test_silences_are_bounded_and_those_that_have_ended_are_dropped(
    leaders: Leaders, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tickwork.client.alerts.SILENCES_MAX", 2)
    names = ("a", "b", "c")
    await leaders.leader(*(AlertRule(name, "tasks_pending", 3, ">=") for name in names)).look()
    await silenced(leaders, 60, "a")
    await silenced(leaders, 3600, "b")
    with pytest.raises(ConfigError, match="2 rules are silenced already"):
        await silenced(leaders, 60, "c")
    await silenced(leaders, 90, "a")
    leaders.clock.advance(90)
    await silenced(leaders, 60, "c")
    stored = read_silences(await leaders.store.marks.get(SILENCES), 0)
    assert sorted(stored) == ["b", "c"]
    assert not await unsilence(access(leaders), "a")


async def test_of_silences_at_the_same_time_none_is_lost(leaders: Leaders) -> None:
    names = [f"r{number}" for number in range(10)]
    await leaders.leader(*(AlertRule(name, "tasks_pending", 3, ">=") for name in names)).look()
    await asyncio.gather(*(silenced(leaders, 60, name) for name in names))
    assert [alert.name for alert in await alerts_of(leaders.store) if alert.silenced] == names
