"""Metrics as Prometheus reads them: a table of what there is, and how each is derived from what was counted."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import accumulate
from typing import Literal, NamedTuple

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector
from prometheus_client.utils import floatToGoString

from tickwork.model.facts import Fact
from tickwork.model.tasks import UNSTARTED, Status
from tickwork.monitor.store_numbers import StoreNumbers
from tickwork.monitor.tallies import CLAIM, ERRORS, FINAL_ERRORS, Histogram, OfType, Tallies

ENDS = {
    Fact.TASK_SUCCEEDED: "success",
    Fact.TASK_RETRYING: "retrying",
    Fact.TASK_DIED: "dead",
    Fact.TASK_FAILED: "failed",
    Fact.TASK_SNOOZED: "snoozed",
    Fact.TASK_RELEASED: "released",
    Fact.TASK_CANCELLED: "cancelled",
}
TICKS = {
    Fact.SCHEDULE_FIRED: "fired",
    Fact.SCHEDULE_SKIPPED: "skipped",
    Fact.SCHEDULE_MISSED: "missed",
    Fact.SCHEDULE_STOPPED: "stopped",
}


class NodeNumbers(NamedTuple):
    """Of the node of this process, as it is now."""

    leads: bool = False
    slots: int = 0
    running: int = 0
    leaked: int = 0


class Numbers(NamedTuple):
    """All that is shown, at one moment."""

    tallies: Tallies
    store: StoreNumbers
    node: NodeNumbers
    info: tuple[str, ...]


Kind = Literal["counter", "gauge", "histogram"]
Value = float | Histogram
Samples = Iterable[tuple[tuple[str, ...], Value]]


class Row(NamedTuple):
    """One metric: `read` gives the values of its labels and the number for each."""

    name: str
    kind: Kind
    labels: tuple[str, ...]
    text: str
    read: Callable[[Numbers], Samples]


def _one(read: Callable[[Numbers], Value]) -> Callable[[Numbers], Samples]:
    return lambda numbers: [((), read(numbers))]


def _by_type(read: Callable[[OfType], Value]) -> Callable[[Numbers], Samples]:
    return lambda numbers: [((name,), read(of_type)) for name, of_type in numbers.tallies.types.items()]


def _submitted(numbers: Numbers) -> Samples:
    for name, of_type in numbers.tallies.types.items():
        for priority, count in of_type.submitted.items():
            yield (name, str(priority)), count


def _executed(numbers: Numbers) -> Samples:
    for name, of_type in numbers.tallies.types.items():
        for fact, count in of_type.ended.items():
            yield (name, ENDS[fact]), count


def _retried(numbers: Numbers) -> Samples:
    for name, of_type in numbers.tallies.types.items():
        for number, count in of_type.retries.items():
            yield (name, number), count


def _ticks(numbers: Numbers) -> Samples:
    for name, counts in numbers.tallies.ticks.items():
        for fact, count in counts.items():
            yield (name, TICKS[fact]), count


def _dispatched(numbers: Numbers) -> Samples:
    tallies = numbers.tallies
    yield ("started",), tallies.starts
    yield ("returned",), tallies.ended((Fact.TASK_RELEASED,))
    yield ("error",), tallies.calls[CLAIM].errors


def _store_times(numbers: Numbers) -> Samples:
    return [((".".join(call),), of_call.seconds) for call, of_call in numbers.tallies.calls.items()]


def _store_errors(numbers: Numbers) -> Samples:
    return [((".".join(call),), of_call.errors) for call, of_call in numbers.tallies.calls.items()]


def _all_durations(numbers: Numbers) -> Histogram:
    return Histogram.sum_of(of_type.durations for of_type in numbers.tallies.types.values())


def _utilization(numbers: Numbers) -> float:
    node = numbers.node
    return node.running / node.slots if node.slots else 0.0


TABLE: tuple[Row, ...] = (
    Row("scheduler_info", "gauge", ("version", "namespace", "store", "scheduler_id"),
        "1, with what this process runs as its labels.", lambda n: [(n.info, 1)]),

    # --- tasks, as this process has seen them
    Row("scheduler_task_submitted_total", "counter", ("type", "priority"),
        "Tasks that this process has created.", _submitted),
    Row("tasks_submitted_total", "counter", (), "Tasks that this process has created.",
        _one(lambda n: sum(sum(each.submitted.values()) for each in n.tallies.types.values()))),
    Row("scheduler_rate_limit_rejected_total", "counter", (),
        "Submits of this process that were over a rate limit.", _one(lambda n: n.tallies.rejected)),
    Row("scheduler_task_executed_total", "counter", ("type", "status"),
        "Runs that have ended in this process, by how they ended.", _executed),
    Row("tasks_completed_total", "counter", (), "Tasks that have succeeded in this process.",
        _one(lambda n: n.tallies.ended((Fact.TASK_SUCCEEDED,)))),
    Row("tasks_failed_total", "counter", (), "Tasks that have failed for good in this process.",
        _one(lambda n: n.tallies.ended(FINAL_ERRORS))),
    Row("task_errors_total", "counter", ("task_name",),
        "Total task errors: runs that failed in this process, whether a retry follows or not.",
        _by_type(lambda each: each.count(ERRORS))),
    Row("scheduler_task_retry_total", "counter", ("type", "retry_count"),
        "Runs that failed in this process and are tried again, by the number of the retry.", _retried),
    Row("task_failure_rate", "gauge", (),
        "Of the tasks that ended in this process in the last 5 minutes, the share that failed for good.",
        _one(lambda n: n.tallies.failure_rate())),
    Row("scheduler_task_duration_seconds", "histogram", ("type",),
        "How long the runs of this process took, whether they succeeded or failed.",
        _by_type(lambda each: each.durations)),
    Row("task_duration_seconds", "histogram", ("task_name",), "Task execution duration, the same by another name.",
        _by_type(lambda each: each.durations)),
    Row("task_execution_duration_seconds", "histogram", (), "The same of all types together.", _one(_all_durations)),

    # --- scheduling by this process
    Row("scheduler_schedule_latency_seconds", "histogram", ("queue",),
        "How long tasks waited from the time they were due until their first run started in this process.",
        lambda n: [((name,), waits) for name, waits in n.tallies.waits.items()]),
    Row("scheduler_dispatch_total", "counter", ("result",),
        "Tasks that workers of this process were given and started, those that they gave back unfinished, and claims "
        "that failed.", _dispatched),
    Row("scheduler_schedule_ticks_total", "counter", ("schedule", "result"),
        "Ticks of schedules that this process decided as the leader.", _ticks),
    Row("scheduler_schedule_lateness_seconds", "histogram", (),
        "How late ticks were when this process fired them.", _one(lambda n: n.tallies.lateness)),
    Row("scheduler_is_leader", "gauge", (), "1 while this process leads, else 0.", _one(lambda n: n.node.leads)),
    Row("scheduler_leader_elections_total", "counter", (), "Times that this process became the leader.",
        _one(lambda n: n.tallies.elections)),

    # --- the workers of this process
    Row("scheduler_worker_task_total", "counter", ("worker_id",), "Runs that have ended, by worker of this process.",
        lambda n: [((name,), count.value) for name, count in n.tallies.workers.items()]),
    Row("scheduler_worker_running", "gauge", (), "Tasks that run in this process now.",
        _one(lambda n: n.node.running)),
    Row("scheduler_worker_slots", "gauge", (), "Tasks that may run in this process at a time.",
        _one(lambda n: n.node.slots)),
    Row("worker_utilization", "gauge", (), "The share of the slots of this process that are taken.",
        _one(_utilization)),
    Row("scheduler_worker_leaked", "gauge", (),
        "Handlers of this process that were stopped and go on all the same.", _one(lambda n: n.node.leaked)),
    Row("scheduler_worker_heartbeat_delay_seconds", "gauge", (),
        "Time since the store has accepted a heartbeat of this process.",
        _one(lambda n: n.tallies.heartbeat_delay())),
    Row("scheduler_lease_renewals_total", "counter", ("result",), "Leases of running tasks that were renewed, or lost.",
        lambda n: [((result,), count) for result, count in n.tallies.renewals.items()]),
    Row("scheduler_event_loop_lag_seconds", "histogram", (),
        "How late the event loop of this process was with a timer, measured once a second.",
        _one(lambda n: n.tallies.lag)),
    Row("scheduler_service_failures_total", "counter", (), "Parts of this node that ended by an error.",
        _one(lambda n: n.tallies.service_failures)),

    # --- the store, as this process reaches it
    Row("scheduler_store_call_seconds", "histogram", ("method",), "How long calls to the store took that succeeded.",
        _store_times),
    Row("scheduler_store_errors_total", "counter", ("method",), "Calls to the store that failed.", _store_errors),
    Row("scheduler_store_up", "gauge", (),
        "1 if the numbers of the whole namespace could be read when that was last tried, else 0: then they are old.",
        _one(lambda n: n.store.is_up)),

    # --- the whole namespace, read from the store
    Row("scheduler_tasks", "gauge", ("status",), "Tasks in the store by status.",
        lambda n: [((status.value,), count) for status, count in n.store.statuses.items()]),
    Row("tasks_pending", "gauge", (), "Tasks in the store that wait: for a time, for others, for a worker or a retry.",
        _one(lambda n: sum(n.store.statuses[status] for status in UNSTARTED))),
    Row("tasks_running", "gauge", (), "Tasks in the store that run.",
        _one(lambda n: n.store.statuses[Status.RUNNING])),
    Row("scheduler_queue_size", "gauge", ("queue",), "Ready tasks by queue.",
        lambda n: [((name,), queue.size) for name, queue in n.store.queues.items()]),
    Row("scheduler_queue_latency_seconds", "gauge", ("queue",),
        "How long the first of the ready tasks of a queue has waited by now; 0 if there is none.",
        lambda n: [((name,), queue.age) for name, queue in n.store.queues.items()]),
    Row("scheduler_dead_letter_queue_size", "gauge", (), "Dead letters.",
        _one(lambda n: n.store.statuses[Status.DEAD])),
    Row("scheduler_dead_letters_dropped_total", "counter", (), "Dead letters that did not fit into their queue.",
        _one(lambda n: n.store.dropped)),
    Row("scheduler_worker_count", "gauge", (), "Workers that are members and alive.", _one(lambda n: n.store.workers)),
    Row("workers_online", "gauge", (), "Workers that are members and alive, the same by another name.",
        _one(lambda n: n.store.workers)),
    Row("scheduler_tasks_held", "gauge", ("by",),
        "Tasks that wait at a limit, a breaker or a switch, without those whose turn to be held has not come yet.",
        lambda n: [((kind,), count) for kind, count in n.store.held.items()]),
    Row("scheduler_circuit_breaker_state", "gauge", ("name",), "0 closed, 1 half-open, 2 open.",
        lambda n: [((name,), state) for name, state in n.store.breakers.items()]),
)  # fmt: skip


class Exposition(Collector):
    """What a registry asks for the metrics of one scheduler."""

    def __init__(self, numbers: Callable[[], Numbers]) -> None:
        self._numbers = numbers

    def describe(self) -> Iterable[Metric]:
        return [_family(row) for row in TABLE]

    def collect(self) -> Iterator[Metric]:
        numbers = self._numbers()
        for row in TABLE:
            yield _filled(_family(row), row.read(numbers))


Family = CounterMetricFamily | GaugeMetricFamily | HistogramMetricFamily
_FAMILIES: dict[Kind, type[Family]] = {
    "counter": CounterMetricFamily,
    "gauge": GaugeMetricFamily,
    "histogram": HistogramMetricFamily,
}


def _family(row: Row) -> Family:
    return _FAMILIES[row.kind](row.name, row.text, labels=row.labels)


def _filled(family: Family, samples: Samples) -> Family:
    for labels, value in samples:
        if isinstance(family, HistogramMetricFamily):
            assert isinstance(value, Histogram)
            bounds = [*map(floatToGoString, value.bounds), "+Inf"]
            family.add_metric(labels, list(zip(bounds, accumulate(value.counts), strict=True)), value.total)
        else:
            assert not isinstance(value, Histogram)
            family.add_metric(labels, value)
    return family
