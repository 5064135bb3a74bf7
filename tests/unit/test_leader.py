"""A candidate whose store fails while it campaigns, leads and resigns."""

from __future__ import annotations

import asyncio

import pytest

from tests.support.waiting import wait_until
from tickwork.clock import ManualClock
from tickwork.errors import StoreError, StoreUnavailable
from tickwork.model.members import Leader
from tickwork.model.policy import Policy
from tickwork.node.leader import Candidate
from tickwork.store.memory import MemoryStore


class Led:
    """A candidate, whether its work is being done, and the error that its store answers with."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.clock = ManualClock()
        self.store = MemoryStore(Policy(), self.clock)
        self.error: StoreError | None = None
        self.asked = 0
        self.leading = False
        self.looked = 0
        members = self.store.members
        campaign, resign, leader = members.campaign, members.resign, members.leader

        async def looked() -> Leader | None:
            self.looked += 1
            return await leader()

        async def asked(node: str, ttl: int) -> Leader:
            self.asked += 1
            if self.error is not None:
                raise self.error
            return await campaign(node, ttl)

        async def resigned(node: str, term: int) -> None:
            if self.error is not None:
                raise self.error
            await resign(node, term)

        monkeypatch.setattr(members, "campaign", asked)
        monkeypatch.setattr(members, "resign", resigned)
        monkeypatch.setattr(members, "leader", looked)
        self.candidate = Candidate(self.store, "node", 0.5, 0.01, self.lead)

    def start(self) -> None:
        self.running = asyncio.ensure_future(self.candidate.run())

    async def lead(self) -> None:
        self.leading = True
        try:
            await asyncio.Event().wait()
        finally:
            self.leading = False


@pytest.mark.parametrize("error", [StoreUnavailable("away"), StoreError("a wrong answer")])
async def test_a_leader_leads_on_in_a_short_outage_and_steps_down_in_a_long_one(
    error: StoreError, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    led = Led(monkeypatch)
    led.start()
    await wait_until(lambda: led.leading, what="it leads")
    led.error, asked = error, led.asked
    await wait_until(lambda: led.asked > asked, what="it campaigns once more")
    assert led.leading, "its term is still to be trusted"
    await wait_until(lambda: not led.leading, what="it steps down")
    assert str(error) in caplog.text
    led.error = None
    await wait_until(lambda: led.leading, what="it leads again")
    led.running.cancel()
    await led.candidate.resign()
    assert (led.leading, await led.store.members.leader()) == (False, None)


async def test_a_node_that_cannot_resign_says_so_and_goes(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    led = Led(monkeypatch)
    led.start()
    await wait_until(lambda: led.leading, what="it leads")
    led.running.cancel()
    led.error = StoreError("a wrong answer")
    await led.candidate.resign()
    assert not led.leading
    assert caplog.messages[-1] == "could not resign: a wrong answer"


async def test_while_another_node_leads_a_node_looks_and_does_not_campaign(monkeypatch: pytest.MonkeyPatch) -> None:
    led = Led(monkeypatch)
    await led.store.members.campaign("other", 10_000)
    led.asked = 0
    led.start()
    await wait_until(lambda: led.looked >= 3, what="it looks again")
    assert led.asked == 0
    led.clock.advance(10)
    await wait_until(lambda: led.leading, what="it leads")
    looked = led.looked
    asked = led.asked
    await wait_until(lambda: led.asked >= asked + 3, what="it renews its lease")
    assert led.looked == looked
    led.running.cancel()
    await led.candidate.resign()


async def test_after_the_clock_was_set_back_a_node_campaigns(monkeypatch: pytest.MonkeyPatch) -> None:
    """A lease that seems to last longer than it was asked for is made shorter by a campaign."""
    led = Led(monkeypatch)
    await led.store.members.campaign("other", 10_000)
    led.asked = 0
    led.clock.advance(-3600)
    led.start()
    await wait_until(lambda: led.asked > 0, what="it campaigns")
    led.clock.advance(10)
    await wait_until(lambda: led.leading, what="it leads")
    led.running.cancel()
    await led.candidate.resign()
