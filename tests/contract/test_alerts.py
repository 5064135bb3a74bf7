"""Alerts on every store, with a clock that the test owns: durations, a new leader, and what the metrics say."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.stores import KINDS, open_store
from tickwork.client.alerts import alerts_of
from tickwork.clock import ManualClock
from tickwork.config import AlertRule, Config
from tickwork.config.alerts import METRICS, rules_in_force
from tickwork.errors import StoreUnavailable
from tickwork.model.alerts import MARK, Ends, read_book
from tickwork.model.facts import Fact
from tickwork.model.members import Worker
from tickwork.model.outcomes import Aborted, Failed, Succeeded
from tickwork.model.policy import Policy
from tickwork.model.schedules import Schedule
from tickwork.model.tasks import Spec
from tickwork.monitor import measures
from tickwork.monitor.alerts import Alerts
from tickwork.observe.bus import Bus
from tickwork.observe.observations import AlertChanged
from tickwork.store.contract import Ask, Claim, Gate, Left, Store

RULE = AlertRule("waiting", "tasks_pending", 3, ">=", 60)


class Leaders:
    """Nodes that may lead, all on one store and under one clock."""

    def __init__(self, store: Store, clock: ManualClock) -> None:
        self.store = store
        self.clock = clock
        self.told: list[AlertChanged] = []
        self.numbers = 0

    def leader(self, *rules: AlertRule, store: Store | None = None, **options: Any) -> Alerts:
        bus = Bus()
        for kind in (Fact.ALERT_FIRED, Fact.ALERT_RESOLVED):
            bus.subscribe(self.told.append, (kind,))
        return Alerts(rules or [RULE], store or self.store, Config(**options), bus)

    async def submit(self, count: int, **fields: Any) -> None:
        for _ in range(count):
            self.numbers += 1
            given = {"type": "job", "max_retry": 3, **fields}
            await self.store.tasks.submit([Spec(id=f"t{self.numbers}", nonce="", **given)])

    async def run(self, end: Any, count: int = 1, **fields: Any) -> None:
        """Submit tasks and let them end like this."""
        await self.submit(count, **fields)
        claim = Claim("w1", ("default",), frozenset({"job", "tickwork.webhook"}), count, 30_000, f"c{self.numbers}")
        grants = (await self.store.tasks.claim(claim)).grants
        assert len(grants) == count
        await self.store.tasks.finish([end(grant.lease) for grant in grants])

    async def state(self, name: str = "waiting") -> str:
        return {alert.name: alert for alert in await alerts_of(self.store)}[name].state

    async def facts(self) -> list[tuple[str, str]]:
        events, _ = await self.store.log.read(0, 10_000)
        return [(event.kind, event.id) for event in events if event.kind.startswith("alert.")]

    async def values(self, *metrics: str) -> list[float | None]:
        ends = read_book(await self.store.marks.get(MARK)).ends
        found = await measures.measure(self.store, frozenset(metrics), ends, 100, self.clock.now())
        return [found[metric] for metric in metrics]


@pytest.fixture(params=KINDS)
async def leaders(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Leaders]:
    clock = ManualClock()
    async with open_store(request.param, tmp_path, clock, Policy()) as store:
        yield Leaders(store, clock)


FIRED, RESOLVED = ("alert.fired", "waiting"), ("alert.resolved", "waiting")


async def test_an_alert_fires_after_its_duration_and_is_over_after_as_long(leaders: Leaders) -> None:
    alerts, clock = leaders.leader(), leaders.clock
    assert await alerts.look() == 30.0
    await leaders.submit(3)
    assert await alerts.look() == 30.0
    assert await leaders.state() == "pending"
    clock.advance(50)
    assert await alerts.look() == 10.0, "a look comes when the duration is over"
    clock.advance(9.999)
    await alerts.look()
    assert await leaders.facts() == []
    clock.advance(0.001)
    await alerts.look()
    assert (await leaders.state(), await leaders.facts()) == ("firing", [FIRED])
    await leaders.store.operators.cancel(["t1"], False)
    for seconds in (0, 30, 29):
        clock.advance(seconds)
        await alerts.look()
    assert (await leaders.state(), await leaders.facts()) == ("firing", [FIRED])
    clock.advance(1)
    await alerts.look()
    assert (await leaders.state(), await leaders.facts()) == ("ok", [FIRED, RESOLVED])
    assert [(told.fact, told.id) for told in leaders.told] == [FIRED, RESOLVED]


async def test_a_leader_that_is_gone_in_the_middle_loses_nothing_and_repeats_nothing(leaders: Leaders) -> None:
    await leaders.submit(3)
    for _ in range(7):  # a new leader for each look, from the first true one until long after it fires
        await leaders.leader().look()
        leaders.clock.advance(12)
    assert await leaders.facts() == [FIRED]
    (alert,) = await alerts_of(leaders.store)
    assert (alert.since.timestamp() * 1000, alert.state) == (leaders.clock.now() - 24_000, "firing")
    await leaders.store.operators.cancel(["t1"], False)
    for _ in range(7):
        await leaders.leader().look()
        leaders.clock.advance(12)
    assert await leaders.facts() == [FIRED, RESOLVED]


async def test_of_leaders_at_the_same_time_one_tells(leaders: Leaders) -> None:
    await leaders.submit(3)
    await leaders.leader().look()
    leaders.clock.advance(60)
    await asyncio.gather(*(leaders.leader().look() for _ in range(5)))
    assert await leaders.facts() == [FIRED]
    assert [told.id for told in leaders.told] == ["waiting"]


class _Severed:
    """Marks of a store whose answer to a swap is lost, before or after it was carried out."""

    def __init__(self, store: Store, after: bool) -> None:
        self._store, self._after = store, after
        self.lost = 0

    @property
    def marks(self) -> Any:
        return self

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    async def get(self, name: str) -> str | None:
        return await self._store.marks.get(name)

    async def swap(self, *args: Any) -> bool:
        if self.lost:
            return await self._store.marks.swap(*args)
        if self._after:
            await self._store.marks.swap(*args)
        self.lost += 1
        raise StoreUnavailable("the answer is lost")


@pytest.mark.parametrize("after", [False, True])
async def test_an_alert_whose_writing_was_not_answered_is_told_once(leaders: Leaders, after: bool) -> None:
    await leaders.submit(3)
    await leaders.leader().look()
    leaders.clock.advance(60)
    severed: Any = _Severed(leaders.store, after)
    alerts = leaders.leader(store=severed)
    with pytest.raises(StoreUnavailable):
        await alerts.look()
    await alerts.look()
    await alerts.look()
    assert await leaders.facts() == [FIRED]
    assert [told.id for told in leaders.told] == ["waiting"]


async def test_a_rule_that_is_taken_away_while_it_fires_is_over(leaders: Leaders) -> None:
    await leaders.submit(3)
    await leaders.leader(AlertRule("waiting", "tasks_pending", 3, ">=")).look()
    await leaders.leader(AlertRule("other", "tasks_pending", 30, ">=")).look()
    assert await leaders.facts() == [FIRED, RESOLVED]


# --- metrics


async def test_every_metric_is_a_number_on_an_empty_store(leaders: Leaders) -> None:
    values = dict(zip(METRICS, await leaders.values(*METRICS), strict=True))
    used = values.pop("store_used")
    assert used is not None
    assert 0 <= used < 1
    assert values == dict.fromkeys(values, 0)


async def test_the_failure_rate_is_that_of_the_last_minutes(leaders: Leaders) -> None:
    alerts = leaders.leader(*rules_in_force(Config()))
    await leaders.run(lambda lease: Aborted(lease, "before anybody looked", 0.1))
    await alerts.look()
    await leaders.run(lambda lease: Succeeded(lease, b"1", 0, "", 0.1), 6)
    await leaders.run(lambda lease: Aborted(lease, "no", 0.1), 2)
    await leaders.run(lambda lease: Failed(lease, "once more", 1000, 0.1), 2)
    await leaders.run(lambda lease: Aborted(lease, "of a webhook", 0.1), 2, type="tickwork.webhook")
    await alerts.look()
    rates = ("task_failure_rate", "task_retry_rate", "dead_letters_added")
    assert await leaders.values(*rates) == [0.25, 0.2, 2]
    leaders.clock.advance(299)
    await alerts.look()
    assert await leaders.values(*rates) == [0.25, 0.2, 2]
    leaders.clock.advance(1)
    await alerts.look()
    assert await leaders.values(*rates) == [0, 0, 0]
    assert await leaders.values("scheduler_dead_letter_queue_size", "dead_letter_queue_used") == [5, 0.05]


async def test_a_breaker_that_stays_open_is_an_alert(leaders: Leaders) -> None:
    alerts, gates = leaders.leader(*rules_in_force(Config())), leaders.store.gates
    assert await leaders.values("breakers_open") == [0]
    gate = Gate("breaker:type:job", failures=1, timeout=300_000)
    await gates.enter([Ask("a", (gate,))])
    await gates.leave([Left("a", (gate.name,), "failed")])
    assert await leaders.values("breakers_open") == [1]
    for _ in range(7):
        await alerts.look()
        leaders.clock.advance(10)
    assert ("alert.fired", "breaker_open") in await leaders.facts()
    leaders.clock.advance(300)
    assert await leaders.values("breakers_open") == [0], "it is half open, and nobody waits"
    await gates.enter([Ask("probe", (gate,)), Ask("b", (gate,))])
    assert await leaders.values("breakers_open") == [1], "one tries, and another waits for it"
    await gates.leave([Left("probe", (gate.name,), "ok")])
    assert await leaders.values("breakers_open") == [0]


async def test_one_failure_alone_is_no_high_failure_rate(leaders: Leaders) -> None:
    alerts = leaders.leader(*rules_in_force(Config()))
    await alerts.look()
    await leaders.run(lambda lease: Aborted(lease, "no", 0.1))
    for _ in range(45):
        await alerts.look()
        leaders.clock.advance(10)
    assert ("alert.fired", "high_task_failure_rate") not in await leaders.facts()


async def test_failures_that_go_on_are_a_high_failure_rate(leaders: Leaders) -> None:
    alerts = leaders.leader(*rules_in_force(Config()))
    for _ in range(11):  # the second of these looks is the first that finds failures
        await alerts.look()
        await leaders.run(lambda lease: Aborted(lease, "no", 0.1))
        leaders.clock.advance(30)
    fired = ("alert.fired", "high_task_failure_rate")
    assert fired not in await leaders.facts()
    await alerts.look()
    assert (await leaders.facts()).count(fired) == 1


async def test_more_facts_than_one_look_counts_are_passed_over(leaders: Leaders, monkeypatch: Any) -> None:
    monkeypatch.setattr(measures, "READ_STEP", 5)
    monkeypatch.setattr(measures, "READ_MAX", 10)
    store, now = leaders.store, leaders.clock.now()
    await leaders.run(lambda lease: Succeeded(lease, b"1", 0, "", 0.1), 20)
    read, ends = await measures.count_ends(store, 0, [], now)
    assert read == await store.log.last()
    await leaders.run(lambda lease: Succeeded(lease, b"1", 0, "", 0.1))
    read, ends = await measures.count_ends(store, read, ends, now)
    assert await store.log.read(read, 10) == ([], 0)
    assert ends == [Ends(now, ends[0].succeeded)]
    assert 1 <= ends[0].succeeded <= 10


async def test_without_a_log_of_facts_the_rates_are_not_known(leaders: Leaders) -> None:
    await leaders.leader(*rules_in_force(Config()), events=False).look()
    found = {alert.name: alert.value for alert in await alerts_of(leaders.store)}
    assert found["high_task_failure_rate"] is None
    assert found["no_online_workers"] == 0


async def test_tasks_are_counted_by_what_they_wait_for(leaders: Leaders) -> None:
    await leaders.submit(2)
    await leaders.submit(1, delay=60_000)
    await leaders.run(lambda lease: Failed(lease, "once more", 10_000, 0.1))
    await leaders.submit(1, depends_on=("t3",))
    (grant,) = (await leaders.store.tasks.claim(Claim("w1", ("default",), frozenset({"job"}), 1, 30_000, "c"))).grants
    assert grant.spec.type == "job"
    assert await leaders.values("tasks_pending", "tasks_running", "scheduler_queue_size") == [4, 1, 1]


async def test_the_age_of_a_queue_is_that_of_its_oldest_ready_task(leaders: Leaders) -> None:
    await leaders.submit(1, queue="old")
    leaders.clock.advance(40)
    await leaders.submit(1, queue="default")
    leaders.clock.advance(2)
    assert await leaders.values("queue_age_seconds") == [42]
    await leaders.store.operators.pause("queue", "old")
    assert await leaders.values("queue_age_seconds") == [2], "a paused queue is meant to wait"


async def test_a_schedule_is_late_from_its_time_on(leaders: Leaders) -> None:
    task = Spec(id="", type="job", nonce="")
    for number, name in enumerate(("soon", "later")):
        at = leaders.clock.now() + 10_000 * (number + 1)
        await leaders.store.schedules.put(Schedule(id=name, cron="@daily", next_at=at, task=task))
    assert await leaders.values("schedule_lateness_seconds") == [0]
    leaders.clock.advance(70)
    assert await leaders.values("schedule_lateness_seconds") == [60]


async def test_workers_count_while_they_are_up(leaders: Leaders) -> None:
    members = leaders.store.members
    await members.beat(Worker(id="w1", capacity=4, cpu=0.5, memory=1000, loop_lag=0.25), 30_000)
    await members.beat(Worker(id="hook", queues=("tickwork.webhooks.x",), capacity=4, cpu=9), 60_000)
    leaders.clock.advance(7)
    await members.beat(Worker(id="w2", capacity=6, cpu=0.25, memory=2000), 60_000)
    await leaders.submit(1)
    assert (await leaders.store.tasks.claim(Claim("w1", ("default",), frozenset({"job"}), 1, 60_000, "c"))).grants
    names = ("worker_cpu", "worker_memory_bytes", "worker_loop_lag_seconds")
    assert await leaders.values(*names) == [0.5, 2000, 0.25]
    names = ("workers_online", "worker_utilization", "worker_heartbeat_age_seconds")
    assert await leaders.values(*names) == [2, 0.1, 7]
    leaders.clock.advance(25)
    assert await leaders.values("workers_online", "worker_cpu", "scheduler_worker_count") == [1, 0.25, 1]
