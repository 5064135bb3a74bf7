"""What alert rules may say: the metrics they can be about, and those rules that are there by themselves."""

from __future__ import annotations

import math
from collections.abc import Iterator

from tickwork.config import OPERATORS, AlertRule, Config
from tickwork.config.values import nearest
from tickwork.errors import LONGEST_WAIT
from tickwork.texts import shown

WINDOW = 300.0  # seconds over which ends of tasks are counted

METRICS = {
    "task_failure_rate": "of the tasks that ended in the last 5 minutes, the share that failed for good",
    "task_retry_rate": "of the attempts that ended in the last 5 minutes, the share that is tried again",
    "dead_letters_added": "tasks that became dead letters in the last 5 minutes",
    "scheduler_dead_letter_queue_size": "dead letters",
    "dead_letter_queue_used": "dead letters, as a share of `dlq_max`",
    "tasks_pending": "tasks that wait: for their time, for others, for a retry, or for a worker",
    "tasks_running": "tasks that run",
    "scheduler_queue_size": "tasks that are ready, in all queues",
    "queue_age_seconds": "for how long the oldest ready task has waited, of the queues that are not paused",
    "schedule_lateness_seconds": "how late the schedule is that should have fired first",
    "workers_online": "workers that are up",
    "scheduler_worker_count": "the same",
    "worker_utilization": "the share of the slots of these workers that is taken",
    "worker_heartbeat_age_seconds": "how old the oldest of their last heartbeats is",
    "worker_cpu": "the largest CPU share of one of their processes; 1 is one core",
    "worker_memory_bytes": "the largest resident memory of one of their processes",
    "worker_loop_lag_seconds": "how late the latest of their event loops was",
    "breakers_open": "[circuit breakers](limits.md) that hold tasks",
    "store_used": "how full the store is, from 0 to 1: the memory of Redis, the disk of a SQLite file",
}

BUILT_IN = (
    AlertRule("high_task_failure_rate", "task_failure_rate", 0.1, ">", 300),
    AlertRule("no_online_workers", "workers_online", 1, "<", 60),
    AlertRule("old_backlog", "queue_age_seconds", 300, ">", 300),
    AlertRule("dead_letters_growing", "dead_letters_added", 10, ">", 60),
    AlertRule("dead_letters_nearly_full", "dead_letter_queue_used", 0.8, ">", 60),
    AlertRule("schedule_late", "schedule_lateness_seconds", 60, ">", 60),
    AlertRule("breaker_open", "breakers_open", 0, ">", 60),
    AlertRule("store_nearly_full", "store_used", 0.9, ">", 60),
)


def rules_in_force(config: Config) -> list[AlertRule]:
    """The built-in rules, each replaced by a given one of its name, then the other given ones; without those that are
    switched off."""
    rules = {rule.name: rule for rule in (*BUILT_IN, *config.alert_rules)}
    return [rule for name, rule in rules.items() if name not in config.alerts_off]


def bad_rules(config: Config) -> Iterator[tuple[str, str]]:
    """Options and what is wrong with them."""
    for rule in config.alert_rules:
        yield from (("alert_rules", problem) for problem in _problems(rule))
    names = [rule.name for rule in config.alert_rules]
    if len(set(names)) < len(names) or "" in names:
        yield "alert_rules", "must each have a name of its own"
    known = {*names, *(rule.name for rule in BUILT_IN)}
    for name in config.alerts_off:
        if name not in known:
            yield "alerts_off", f"holds {shown(name)}, which is no rule{nearest(name, known)}"


def _problems(rule: AlertRule) -> Iterator[str]:
    if rule.metric not in METRICS:
        near = nearest(rule.metric, METRICS) or f"; known are {', '.join(METRICS)}"
        yield f"hold the metric {shown(rule.metric)}, which is not known{near}"
    if rule.operator not in OPERATORS:
        yield f"hold the operator {shown(rule.operator)}; known are {' '.join(OPERATORS)}"
    if not abs(rule.threshold) < math.inf:
        yield f"hold the threshold {shown(rule.threshold)}, which is never met"
    if not 0 <= rule.duration <= LONGEST_WAIT:
        yield f"hold the duration {shown(rule.duration)}; it must be from 0 to {LONGEST_WAIT} seconds"
