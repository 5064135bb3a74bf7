"""What the metrics of a process count, and how they are shown."""

from __future__ import annotations

import asyncio
import sys
from collections import defaultdict
from collections.abc import Callable
from typing import Any

import pytest

from tests.support.scrapes import Scrape
from tickwork import Config, Fact, Scheduler, Status, StoreUnavailable
from tickwork.errors import ConfigError
from tickwork.model.gates import Book, Switch, breaker_gate, write_book
from tickwork.model.outcomes import Aborted, Failed, Outcome, Released, Snoozed, Stopped, Succeeded
from tickwork.model.tasks import Lease, Spec
from tickwork.monitor import store_numbers
from tickwork.monitor.exposition import TABLE
from tickwork.monitor.metrics import Metrics
from tickwork.monitor.store_numbers import StoreNumbers
from tickwork.monitor.tallies import NAMES_MAX, STEP, WINDOW, Histogram, Tallies
from tickwork.observe.batches import TasksCreated
from tickwork.observe.bus import Bus
from tickwork.observe.loggers import Log
from tickwork.observe.observations import (
    TOPICS,
    LeadershipChanged,
    LeasesRenewed,
    LoopLagged,
    Observation,
    ScheduleTicked,
    ServiceFailed,
    StoreCalled,
    TaskEnded,
    TaskStarted,
    TaskSubmitted,
)
from tickwork.store.contract import GateState, Grant, Stats
from tickwork.worker.run_facts import RunsEnded, RunsStarted

NOW = 1_000_000

# The names that people know, and their labels.
KNOWN = {
    "scheduler_task_submitted_total": "type priority",
    "scheduler_task_executed_total": "type status",
    "scheduler_task_duration_seconds": "type",
    "scheduler_queue_size": "queue",
    "scheduler_worker_count": "",
    "scheduler_worker_task_total": "worker_id",
    "scheduler_task_retry_total": "type retry_count",
    "scheduler_dead_letter_queue_size": "",
    "scheduler_rate_limit_rejected_total": "",
    "scheduler_circuit_breaker_state": "name",
    "task_duration_seconds": "task_name",
    "task_errors_total": "task_name",
    "tasks_submitted_total": "",
    "tasks_completed_total": "",
    "tasks_failed_total": "",
    "tasks_pending": "",
    "tasks_running": "",
    "workers_online": "",
    "scheduler_is_leader": "",
    "task_execution_duration_seconds": "",
    "worker_utilization": "",
    "task_failure_rate": "",
    "scheduler_leader_elections_total": "",
    "scheduler_dispatch_total": "result",
    "scheduler_worker_running": "",
    "scheduler_worker_heartbeat_delay_seconds": "",
    "scheduler_tasks": "status",
    "scheduler_schedule_latency_seconds": "queue",
    "scheduler_queue_latency_seconds": "queue",
    "scheduler_schedule_lateness_seconds": "",
    "scheduler_lease_renewals_total": "result",
    "scheduler_event_loop_lag_seconds": "",
    "scheduler_store_call_seconds": "method",
    "scheduler_store_errors_total": "method",
    "scheduler_worker_slots": "",
    "scheduler_worker_leaked": "",
}


class Queries:
    """Of a store that answers what a test says, and counts how often it was asked."""

    def __init__(self, stats: Stats | None = None, since: dict[str, int] | None = None) -> None:
        self.answer = stats or Stats(dict.fromkeys(Status, 0), {}, {}, 0, 0)
        self.since = since or {}
        self.error: Exception | None = None
        self.asked = 0

    async def stats(self) -> Stats:
        self.asked += 1
        if self.error is not None:
            raise self.error
        return self.answer

    async def waiting_since(self) -> dict[str, int]:
        return self.since


class Rules:
    """Gates and marks of a store, with breakers that are not closed."""

    def __init__(self) -> None:
        self.states: list[GateState] = []
        self.book: Book | None = None

    async def opened(self) -> list[GateState]:
        return self.states

    async def crowded(self, limit: int) -> list[tuple[str, int]]:
        return [("limit:type:mail/key=acme", 3), ("limit:queue:orders", 2), ("switch:key:acme", 4)]

    async def look(self, names: list[str]) -> list[GateState]:
        return [GateState(name) for name in names]

    async def get(self, name: str) -> str | None:
        return None if self.book is None else write_book(self.book)


class FakeStore:
    def __init__(self, queries: Queries) -> None:
        self.queries = queries
        self.gates = self.marks = Rules()

    def now(self) -> int:
        return NOW


class Clock:
    def __init__(self) -> None:
        self.at = 1000.0

    def __call__(self) -> float:
        return self.at


def metrics_of(bus: Bus | None = None, config: Config | None = None, queries: Queries | None = None) -> Metrics:
    made = Metrics(config or Config(), "node", "memory://", bus or Bus(), lambda: None)
    made.read_from(FakeStore(queries or Queries()))  # type: ignore[arg-type]
    return made


def tell(bus: Bus, *seen: Observation) -> None:
    """What is heard in batches comes as one for each worker, and all submits as one."""
    started, runs, submitted = defaultdict(list), defaultdict(list), list[TaskSubmitted]()
    for each in seen:
        if isinstance(each, TaskStarted):
            started[each.worker_id].append(granted(each))
        elif isinstance(each, TaskEnded):
            runs[each.worker_id].append((each.fact, granted(each), outcome_of(each), None))
        elif isinstance(each, TaskSubmitted):
            submitted.append(each)
        else:
            bus.publish(each.fact if isinstance(each, ScheduleTicked) else TOPICS[type(each)][0], each)
    for worker_id, grants in started.items():
        bus.publish(RunsStarted, RunsStarted(worker_id, grants, NOW))
    for worker_id, ends in runs.items():
        bus.publish(RunsEnded, RunsEnded(worker_id, ends))
    created = [each for each in submitted if each.verdict == "created"]
    specs = [Spec(id=each.id, type=each.type, nonce="n", priority=each.priority) for each in created]
    bus.publish(TasksCreated, TasksCreated(specs))


def granted(seen: TaskStarted | TaskEnded) -> Grant:
    spec = Spec(id=seen.id, type=seen.type, queue=seen.queue, nonce="n")
    waited = seen.waited if isinstance(seen, TaskStarted) else None
    since = None if waited is None else round(NOW - 1000 * waited)
    return Grant(spec, Lease(seen.id, 1, "n"), seen.attempt, 0, 0, seen.worker_id, since)


def outcome_of(seen: TaskEnded) -> Outcome:
    lease = Lease(seen.id, 1, "n")
    match seen.fact:
        case Fact.TASK_SNOOZED:
            return Snoozed(lease)
        case Fact.TASK_RELEASED:
            return Released(lease)
        case Fact.TASK_CANCELLED:
            return Stopped(lease, seen.duration)
        case Fact.TASK_RETRYING:
            return Failed(lease, "", 0, seen.duration)
        case Fact.TASK_SUCCEEDED:
            return Succeeded(lease, duration=seen.duration)
    return Aborted(lease, "", seen.duration)


def ended(fact: Fact = Fact.TASK_SUCCEEDED, type: str = "greet", attempt: int = 1, seconds: float = 0.1) -> TaskEnded:
    return TaskEnded(fact, "id", type, "default", "node", attempt, seconds)


def called(method: str, seconds: float = 0.01, error: BaseException | None = None) -> StoreCalled:
    part, _, name = method.partition(".")
    return StoreCalled(part, name, seconds, error)


class TestNames:
    def test_every_known_metric_is_there_with_its_labels(self) -> None:
        found = {row.name: set(row.labels) for row in TABLE}
        assert {name: found.get(name) for name in KNOWN} == {
            name: set(labels.split()) for name, labels in KNOWN.items()
        }

    def test_every_metric_has_a_sample_from_the_start(self) -> None:
        page = Scrape(metrics_of().render())
        for row in TABLE:
            shown = f"{row.name}_count" if row.kind == "histogram" else row.name
            assert page.labels(shown) == {frozenset(row.labels)}, row.name
            assert page.kinds[row.name.removesuffix("_total") if row.kind == "counter" else row.name] == row.kind

    def test_the_types_queues_and_workers_of_the_program_are_there_from_the_start(self) -> None:
        config = Config(queues=("fast", "slow"), worker_count=2)
        made = Metrics(config, "node", "redis://", Bus(), lambda: None, ["greet"], ["nightly"])
        made.read_from(FakeStore(Queries()))  # type: ignore[arg-type]
        page = Scrape(made.render())
        assert page["scheduler_task_executed_total", "type=greet", "status=dead"] == 0
        assert page["scheduler_task_retry_total", "type=greet", "retry_count=1"] == 0
        assert page.values("scheduler_task_executed_total", "type") == {"greet"}
        assert page.values("scheduler_queue_size", "queue") == {"fast", "slow"}
        assert page.values("scheduler_worker_task_total", "worker_id") == {"node-1", "node-2"}
        assert page["scheduler_schedule_ticks_total", "schedule=nightly", "result=fired"] == 0
        assert page.values("scheduler_info", "store") == {"redis"}

    def test_two_registries_in_one_process_count_apart(self) -> None:
        first, second = Bus(), Bus()
        one, other = metrics_of(first), metrics_of(second)
        tell(first, ended())
        assert Scrape(one.render())["tasks_completed_total"] == 1
        assert Scrape(other.render())["tasks_completed_total"] == 0

    def test_texts_are_escaped(self) -> None:
        bus = Bus()
        made = metrics_of(bus)
        tell(bus, ended(type='a"b\\c\nd'))
        assert Scrape(made.render())["task_errors_total", 'task_name=a"b\\c\nd'] == 0


class TestCounting:
    def shown(self, *seen: Observation) -> Scrape:
        bus = Bus()
        made = metrics_of(bus)
        tell(bus, *seen)
        return Scrape(made.render())

    def test_submits_that_made_a_task(self) -> None:
        page = self.shown(
            TaskSubmitted("1", "greet", "default", "created", 5), TaskSubmitted("2", "greet", "default", "created", 10),
            TaskSubmitted("2", "greet", "default", "exists", 10), TaskSubmitted("3", "bye", "default", "created", 5),
        )  # fmt: skip
        assert page["scheduler_task_submitted_total", "type=greet", "priority=10"] == 1
        assert page["scheduler_task_submitted_total", "type=greet", "priority=5"] == 1
        assert page["tasks_submitted_total"] == 3

    def test_ends_by_type_and_status(self) -> None:
        page = self.shown(*map(ended, TOPICS[TaskEnded]), ended())  # type: ignore[arg-type]
        others = ("retrying", "dead", "failed", "snoozed", "released", "cancelled")
        statuses = {"success": 2.0, **dict.fromkeys(others, 1.0)}
        found = {status: page["scheduler_task_executed_total", "type=greet", f"status={status}"] for status in statuses}
        assert found == statuses
        assert page["tasks_completed_total"] == 2
        assert page["tasks_failed_total"] == 2
        assert page["task_errors_total", "task_name=greet"] == 3
        assert page["scheduler_worker_task_total", "worker_id=node"] == 8
        assert page["scheduler_dispatch_total", "result=returned"] == 1

    def test_durations_of_runs_that_succeeded_or_failed(self) -> None:
        page = self.shown(
            ended(seconds=0.1), ended(seconds=0.11), ended(Fact.TASK_DIED, seconds=4000.0),
            ended(type="bye", seconds=3.0), ended(Fact.TASK_RELEASED, seconds=9.0),
        )  # fmt: skip
        for name, label in (("scheduler_task_duration_seconds", "type"), ("task_duration_seconds", "task_name")):
            bucket, greet = f"{name}_bucket", f"{label}=greet"
            found = [page[bucket, greet, f"le={le}"] for le in ("0.05", "0.1", "0.25", "1800.0", "+Inf")]
            assert found == [0, 1, 2, 2, 3]
            assert page[f"{name}_count", greet] == 3
            assert page[f"{name}_sum", greet] == pytest.approx(4000.21)
        assert page["task_execution_duration_seconds_count"] == 4
        assert page["task_execution_duration_seconds_bucket", "le=5.0"] == 3

    def test_retries_by_their_number_up_to_a_bound(self) -> None:
        page = self.shown(*(ended(Fact.TASK_RETRYING, attempt=number) for number in (1, 1, 2, 5, 6, 70)))
        found = {number: page.sum("scheduler_task_retry_total", retry_count=number) for number in ("1", "2", "5", "6+")}
        assert found == {"1": 2, "2": 1, "5": 1, "6+": 2}
        assert page.values("scheduler_task_retry_total", "retry_count") == set(found)

    def test_waits_before_the_first_run(self) -> None:
        page = self.shown(
            TaskStarted("1", "greet", "fast", "node", 1, 0.02), TaskStarted("1", "greet", "fast", "node", 2, None)
        )
        assert page["scheduler_schedule_latency_seconds_bucket", "queue=fast", "le=0.025"] == 1
        assert page["scheduler_schedule_latency_seconds_count", "queue=fast"] == 1
        assert page["scheduler_dispatch_total", "result=started"] == 2

    def test_ticks_and_how_late_they_were_fired(self) -> None:
        page = self.shown(
            ScheduleTicked(Fact.SCHEDULE_FIRED, "nightly", "report", "default", "", 0.2),
            ScheduleTicked(Fact.SCHEDULE_MISSED, "nightly", "report", "default", "", 7000.0),
        )
        assert page["scheduler_schedule_ticks_total", "schedule=nightly", "result=fired"] == 1
        assert page["scheduler_schedule_ticks_total", "schedule=nightly", "result=missed"] == 1
        assert page["scheduler_schedule_lateness_seconds_count"] == 1
        assert page["scheduler_schedule_lateness_seconds_sum"] == 0.2

    def test_calls_to_the_store(self) -> None:
        away = StoreUnavailable("away")
        page = self.shown(
            called("tasks.submit", 0.004), called("tasks.claim", error=away), called("tasks.submit", error=away),
            called("tasks.claim", error=asyncio.CancelledError()),
        )  # fmt: skip
        assert page["scheduler_store_call_seconds_bucket", "method=tasks.submit", "le=0.005"] == 1
        assert page["scheduler_store_call_seconds_count", "method=tasks.claim"] == 0
        assert page["scheduler_store_errors_total", "method=tasks.submit"] == 1
        assert page["scheduler_store_errors_total", "method=tasks.claim"] == 1
        assert page["scheduler_dispatch_total", "result=error"] == 1

    def test_the_rest(self) -> None:
        page = self.shown(
            LeasesRenewed(5, 2, 1), LeasesRenewed(5, 0, 0), LoopLagged(0.02), LeadershipChanged("node", 1, True),
            LeadershipChanged("node", 1, False), LeadershipChanged("node", 3, True),
            ServiceFailed("the heart", ValueError(), True, 0),
        )  # fmt: skip
        held, lost, unknown = (
            page["scheduler_lease_renewals_total", f"result={each}"] for each in ("held", "lost", "unknown")
        )
        assert (held, lost, unknown) == (10, 2, 1)
        assert page["scheduler_event_loop_lag_seconds_sum"] == 0.02
        assert page["scheduler_leader_elections_total"] == 2
        assert page["scheduler_service_failures_total"] == 1

    def test_a_closed_one_counts_no_more(self) -> None:
        bus = Bus()
        made = metrics_of(bus)
        made.close()
        tell(bus, ended())
        assert Scrape(made.render())["tasks_completed_total"] == 0


class TestTime:
    @pytest.fixture
    def clock(self) -> Clock:
        return Clock()

    def heard(self, clock: Clock) -> tuple[Tallies, Bus]:
        bus, tallies = Bus(), Tallies(clock=clock)
        tallies.listen(bus)
        return tallies, bus

    def go_on(self, bus: Bus, clock: Clock, seconds: float) -> None:
        for _ in range(round(seconds)):
            clock.at += 1
            tell(bus, LoopLagged(0.0))

    def test_the_failure_rate_is_of_the_last_minutes(self, clock: Clock) -> None:
        tallies, bus = self.heard(clock)
        assert tallies.failure_rate() == 0
        tell(bus, ended(), ended(), ended(), ended(Fact.TASK_DIED), ended(Fact.TASK_RETRYING))
        assert tallies.failure_rate() == 0.25
        self.go_on(bus, clock, WINDOW / 2)
        tell(bus, *[ended()] * 4)
        assert tallies.failure_rate() == 0.125
        self.go_on(bus, clock, WINDOW / 2 + 2 * STEP)
        assert tallies.failure_rate() == 0  # of those four alone
        tell(bus, ended(Fact.TASK_FAILED))
        assert tallies.failure_rate() == 0.2
        self.go_on(bus, clock, 3 * WINDOW)
        assert tallies.failure_rate() == 0

    def test_the_heartbeat_delay_grows_until_the_next_one(self, clock: Clock) -> None:
        tallies, bus = self.heard(clock)
        assert tallies.heartbeat_delay() == 0
        tell(bus, called("members.beat"))
        clock.at += 7
        tell(bus, called("members.beat", error=StoreUnavailable("away")))
        assert tallies.heartbeat_delay() == 7
        tell(bus, called("members.beat"))
        assert tallies.heartbeat_delay() == 0


class TestHistogram:
    @pytest.mark.parametrize("values", [[], [0.0], [1.0, 0.5], [3.0, 0.1, 0.1, 1.0, 0.05, 99.0, 2.0]])
    def test_many_at_once_are_as_each_alone(self, values: list[float]) -> None:
        together, alone = Histogram((0.1, 1.0, 2.0)), Histogram((0.1, 1.0, 2.0))
        for value in values:
            alone.add(value)
        together.add_all(values.copy())
        assert together.counts == alone.counts
        assert together.total == pytest.approx(alone.total)


class TestBounds:
    MORE = NAMES_MAX + 500

    @pytest.mark.parametrize(
        ("make", "name", "label"),
        [
            (lambda n: ended(type=f"t{n}"), "scheduler_task_executed_total", "type"),
            (lambda n: TaskSubmitted("1", f"t{n}", "q", "created"), "scheduler_task_submitted_total", "type"),
            (
                lambda n: TaskStarted("1", "t", f"q{n}", "n", 1, 1.0),
                "scheduler_schedule_latency_seconds_count", "queue",
            ),
            (
                lambda n: TaskEnded(Fact.TASK_SUCCEEDED, "1", "t", "q", f"w{n}", 1, 1.0),
                "scheduler_worker_task_total", "worker_id",
            ),
            (
                lambda n: ScheduleTicked(Fact.SCHEDULE_FIRED, f"s{n}", "t", "q", ""),
                "scheduler_schedule_ticks_total", "schedule",
            ),
        ],
    )  # fmt: skip
    def test_names_beyond_a_thousand_are_one(self, make: Callable[[int], Observation], name: str, label: str) -> None:
        bus = Bus()
        made = metrics_of(bus)
        tell(bus, *(make(number) for number in range(self.MORE)))
        page = Scrape(made.render())
        assert len(page.values(name, label)) <= NAMES_MAX + 1
        assert page.sum(name) == self.MORE
        assert page.sum(name, **{label: "other"}) >= self.MORE - NAMES_MAX
        assert page.sum(name, **{label: name_of(make(7), label)}) == 1

    async def test_queues_of_the_store_beyond_a_thousand_are_one(self) -> None:
        ready = {(f"q{number}", 1): 2 for number in range(self.MORE)}
        since = {f"q{number}": 1_000_000 - number for number in range(self.MORE)}
        made = metrics_of(queries=Queries(Stats(dict.fromkeys(Status, 0), ready, {}, 0, 0), since))
        page = Scrape(await made.page())
        assert len(page.values("scheduler_queue_size", "queue")) == NAMES_MAX + 1
        assert page.sum("scheduler_queue_size") == 2 * self.MORE
        assert page["scheduler_queue_latency_seconds", "queue=other"] == (self.MORE - 1) / 1000


def name_of(seen: Any, label: str) -> str:
    fields = {"type": "type", "queue": "queue", "worker_id": "worker_id", "schedule": "id"}
    return str(getattr(seen, fields[label]))


class TestStoreNumbers:
    def numbers(self, queries: Queries, clock: Clock) -> StoreNumbers:
        store: Any = FakeStore(queries)
        return StoreNumbers(store, 30.0, Log.of(None, "metrics"), ("default",), clock)

    async def test_all_of_them(self) -> None:
        statuses = dict.fromkeys(Status, 1) | {Status.RUNNING: 4, Status.DEAD: 3, Status.PENDING: 7}
        stats = Stats(statuses, {("fast", 0): 2, ("fast", 2): 6}, {("fast", "greet"): 5}, 6, 9)
        page = Scrape(await metrics_of(queries=Queries(stats, {"fast": 990_000})).page())
        assert page["scheduler_tasks", "status=dead"] == 3
        assert page["scheduler_dead_letter_queue_size"] == 3
        assert page["scheduler_dead_letters_dropped_total"] == 9
        assert page["tasks_running"] == 4
        assert page["tasks_pending"] == 7 + 4
        assert page["workers_online"] == page["scheduler_worker_count"] == 6
        assert page["scheduler_queue_size", "queue=fast"] == 8
        assert page["scheduler_queue_latency_seconds", "queue=fast"] == 10
        assert page["scheduler_queue_size", "queue=default"] == 0
        assert [page["scheduler_tasks_held", f"by={by}"] for by in ("limit", "switch", "breaker")] == [5, 4, 0]

    async def test_they_are_read_once_in_the_interval(self) -> None:
        queries, clock = Queries(), Clock()
        numbers = self.numbers(queries, clock)
        await asyncio.gather(numbers.refresh(), numbers.refresh())
        clock.at += 29.9
        await numbers.refresh()
        assert queries.asked == 1
        clock.at += 0.1
        await numbers.refresh()
        assert queries.asked == 2

    async def test_breakers(self) -> None:
        clock = Clock()
        numbers = self.numbers(Queries(), clock)
        assert numbers.breakers == {"default": 0}
        rules: Any = numbers._store.gates
        rules.states = [
            GateState(breaker_gate("type:charge"), failures=5, open_until=NOW + 1),
            GateState(breaker_gate("type:mail"), failures=5, open_until=NOW),
        ]
        rules.book = Book(1, breakers={"target:http/billing": Switch(1)})
        await numbers.refresh()
        found = {"default": 0, "type:charge": 2, "type:mail": 1, "target:http/billing": 2}
        assert numbers.breakers == found
        rules.states, rules.book = [], None
        clock.at += 30
        await numbers.refresh()
        assert numbers.breakers == dict.fromkeys(found, 0), "one that was open once is shown as closed"

    async def test_breakers_beyond_a_thousand_are_one(self) -> None:
        numbers = self.numbers(Queries(), Clock())
        rules: Any = numbers._store.gates
        many = range(NAMES_MAX + 10)
        rules.states = [GateState(breaker_gate(f"type:t{n}"), open_until=NOW + 1) for n in many]
        await numbers.refresh()
        assert (len(numbers.breakers), numbers.breakers["other"]) == (NAMES_MAX + 1, 2)

    async def test_a_queue_that_is_empty_again_is_still_shown(self) -> None:
        queries, clock = Queries(Stats(dict.fromkeys(Status, 0), {("fast", 1): 2}, {}, 0, 0)), Clock()
        numbers = self.numbers(queries, clock)
        await numbers.refresh()
        assert numbers.queues["fast"].size == 2
        queries.answer = Queries().answer
        clock.at += 30
        await numbers.refresh()
        assert {name: queue.size for name, queue in numbers.queues.items()} == {"default": 0, "fast": 0}

    async def test_without_an_answer_the_last_ones_stay(self, caplog: pytest.LogCaptureFixture) -> None:
        queries, clock = Queries(Stats(dict.fromkeys(Status, 2), {}, {}, 3, 0)), Clock()
        numbers = self.numbers(queries, clock)
        await numbers.refresh()
        queries.error = StoreUnavailable("away")
        for _ in range(2):
            clock.at += 30
            await numbers.refresh()
            assert (numbers.is_up, numbers.workers) == (False, 3)
        assert [record.message for record in caplog.records] == ["metrics show old numbers of the store: away"]
        queries.error = None
        clock.at += 30
        await numbers.refresh()
        assert numbers.is_up

    async def test_a_store_that_does_not_answer_is_not_waited_for(self, monkeypatch: pytest.MonkeyPatch) -> None:
        class Silent(Queries):
            async def stats(self) -> Stats:
                await asyncio.Event().wait()
                raise AssertionError

        monkeypatch.setattr(store_numbers, "READ_MAX", 0.01)
        numbers = self.numbers(Silent(), Clock())
        await numbers.refresh()
        assert not numbers.is_up


def test_a_histogram_puts_a_value_under_the_first_bound_that_is_not_less() -> None:
    found = Histogram((1.0, 2.0))
    for value in (0.0, 1.0, 1.5, 2.0, 2.1):
        found.add(value)
    assert (found.counts, found.total) == ([2, 2, 1], 6.6)


async def test_without_the_extra_the_error_names_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "prometheus_client", None)
    for module in ("metrics", "exposition"):
        monkeypatch.delitem(sys.modules, f"tickwork.monitor.{module}")
    app = Scheduler("memory://", metrics=True)
    with pytest.raises(ConfigError, match=r'need prometheus_client.*: pip install "tickwork\[metrics,server\]"$'):
        await app.start()
    await app.close()
