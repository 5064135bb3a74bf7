"""When a webhook is switched off, and when the leader warns that it has as many deliveries as it may have."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from tests.unit.test_webhooks import HOOK, fact
from tickwork.clock import ManualClock
from tickwork.config.webhooks import Webhook
from tickwork.model.outcomes import Succeeded
from tickwork.observe.loggers import Log
from tickwork.store.contract import Claim
from tickwork.store.memory import MemoryStore
from tickwork.webhooks import feed as feeds
from tickwork.webhooks.events import TYPE, queue_of
from tickwork.webhooks.feed import Feed
from tickwork.webhooks.health import Health, failures_of

LOG = Log.of(None, "webhooks")
QUEUE = queue_of(HOOK.name)


def but(**fields: Any) -> Webhook:
    return Webhook(name=HOOK.name, url=HOOK.url, events=("task.succeeded", "task.died"), **fields)


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def store(clock: ManualClock) -> MemoryStore:
    return MemoryStore(clock=clock)


async def paused(store: MemoryStore) -> dict[str, str]:
    return {f"{pause.kind} {pause.name}": pause.note for pause in await store.queries.paused()}


def switched_off(caplog: pytest.LogCaptureFixture) -> int:
    return sum("is switched off" in line for line in caplog.messages)


async def test_it_is_switched_off_while_others_are_paused(store: MemoryStore, caplog: pytest.LogCaptureFixture) -> None:
    await store.operators.pause("queue", "default")
    await store.operators.pause("queue", queue_of("another"))
    await store.operators.pause("type", QUEUE)
    await Health(HOOK, store, LOG).switch_off("it is gone")
    assert (await paused(store))[f"queue {QUEUE}"] == "it is gone"
    assert switched_off(caplog) == 1


async def test_one_that_is_off_is_not_switched_off_again(store: MemoryStore, caplog: pytest.LogCaptureFixture) -> None:
    await store.operators.pause("queue", QUEUE, "by hand")
    await Health(HOOK, store, LOG).switch_off("it is gone")
    assert await paused(store) == {f"queue {QUEUE}": "by hand"}
    assert switched_off(caplog) == 0


@pytest.mark.parametrize(
    ("failures", "seconds", "off"), [(3, 60, True), (4, 61, True), (2, 60, False), (3, 59, False), (9, 59, False)]
)
async def test_it_takes_as_many_failures_in_as_long_a_time(
    store: MemoryStore, clock: ManualClock, failures: int, seconds: int, off: bool
) -> None:
    health = Health(but(disable_after=3, disable_time=60), store, LOG)
    for _ in range(failures - 1):
        await health.failed("503")
    clock.advance(seconds)
    await health.failed("504")
    assert ((await failures_of(store, HOOK.name))[0].count, (await failures_of(store, HOOK.name))[0].error) == (
        failures, "504",
    )  # fmt: skip
    note = f"{failures} deliveries in a row have failed, the last one: 504"
    assert await paused(store) == ({f"queue {QUEUE}": note} if off else {})


async def test_a_success_ends_the_row(store: MemoryStore, clock: ManualClock) -> None:
    health = Health(but(disable_after=2, disable_time=0), store, LOG)
    for _ in range(3):
        await health.failed("503")
        await health.succeeded()
    assert (await failures_of(store, HOOK.name))[0].count == 0
    assert await paused(store) == {}


# --- the quota


async def delivered(store: MemoryStore) -> None:
    """Both deliveries end."""
    claim = Claim("w", (QUEUE,), frozenset({TYPE}), limit=100, lease_ttl=1000, nonce=f"{store.now()}")
    grants = (await store.tasks.claim(claim)).grants
    assert len(grants) == 2
    await store.tasks.finish([Succeeded(grant.lease) for grant in grants])


async def test_a_full_quota_is_warned_of_once_and_again_after_it_was_empty(
    store: MemoryStore, clock: ManualClock, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(feeds, "SWEEP_SOON", 0.0)
    monkeypatch.setattr(feeds, "SWEEP_EVERY", 0.0)
    feed = Feed(but(quota=2), "shop", store, LOG)
    await feed.begin()

    def warnings() -> list[str]:
        return [
            record.getMessage()
            for record in caplog.records
            if record.levelno == logging.WARNING and "quota" in record.getMessage()
        ]

    numbers = iter(range(1, 100))
    for said in (1, 2):
        await feed.take([fact(seq=next(numbers), id="one"), fact(seq=next(numbers), id="two")], missed=0)
        assert feed.room == 0
        for _ in range(3):
            await feed.begin()
        assert len(warnings()) == said
        await delivered(store)
        clock.advance(1)
        await feed.begin()
        assert feed.room == 2
    assert warnings()[0] == (
        "webhook audit has 2 deliveries that wait, as many as its quota: further events wait in the log"
    )


async def test_room_in_a_quota_is_not_warned_of(store: MemoryStore, caplog: pytest.LogCaptureFixture) -> None:
    feed = Feed(but(quota=2), "shop", store, LOG)
    await feed.begin()
    await feed.take([fact(seq=1)], missed=0)
    await feed.begin()
    assert "quota" not in caplog.text
