"""Rules of the numbers that users are shown: reports and metrics agree with a count of the facts in the log."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from tests.faults.observed import Finding, Observed
from tickwork.model.facts import Event, Fact

COLUMNS: dict[str, tuple[Fact, ...]] = {
    "submitted": (Fact.TASK_SUBMITTED,),
    "started": (Fact.TASK_CLAIMED,),
    "success": (Fact.TASK_SUCCEEDED,),
    "failed": (Fact.TASK_FAILED,),
    "dead": (Fact.TASK_DIED,),
    "cancelled": (Fact.TASK_CANCELLED, Fact.TASK_EXPIRED),
    "retries": (Fact.TASK_RETRYING,),
    "losses": (Fact.TASK_LOST,),
    "snoozes": (Fact.TASK_SNOOZED,),
}
# How the metrics of a node name the ends of its runs. A cancel may also be the fact of whoever asked for it, so of
# these a node may have caused fewer than the log tells of its worker.
ENDS = {
    "success": Fact.TASK_SUCCEEDED,
    "retrying": Fact.TASK_RETRYING,
    "dead": Fact.TASK_DIED,
    "failed": Fact.TASK_FAILED,
    "snoozed": Fact.TASK_SNOOZED,
}
ENDED = "scheduler_task_executed_total"
TICKS = "scheduler_schedule_ticks_total"


def reports_agree_with_the_log(seen: Observed) -> Finding:
    """Of every type and queue, and in all. A failover may take back facts that the leader has counted already, so after
    one there is nothing to compare with."""
    for by, report in seen.reports.items() if not seen.forgets else ():
        if report.total.missed:
            yield f"report by {by}", f"it says that {report.total.missed} facts were missed, and the log has all"
        counted = {row.name: row for row in report.rows}
        for name in sorted({*counted, *(_name(event, by) for event in _of_tasks(seen.events))}):
            facts = [event for event in _of_tasks(seen.events) if _name(event, by) == name]
            yield from _differences(f"report by {by}, {name}", counted.get(name), facts)
        yield from _differences(f"report by {by}, total", report.total, _of_tasks(seen.events))


def _of_tasks(events: Iterable[Event]) -> list[Event]:
    wanted = {fact.value for facts in COLUMNS.values() for fact in facts} | {Fact.TASK_HELD.value}
    return [event for event in events if event.kind in wanted]


def _name(event: Event, by: str) -> str:
    return event.type if by == "type" else event.queue


def _differences(subject: str, row: object, facts: Iterable[Event]) -> Finding:
    kinds = Counter(event.kind for event in facts)
    for column, of in COLUMNS.items():
        expected, told = sum(kinds[fact] for fact in of), getattr(row, column, 0)
        expected -= kinds[Fact.TASK_HELD] if column == "started" else 0  # it was claimed, but has not begun
        if told != expected:
            yield subject, f"it says {told} {column}, and the log has {expected} facts of that"


def metrics_agree_with_the_log(seen: Observed) -> Finding:
    """Of each node that lives at the end, so that it has counted all its runs. It counts an end when the store has
    accepted it, and the store tells of it with the worker's name."""
    for node, page in seen.pages.items() if not seen.forgets else ():
        facts = [event for event in seen.events if event.worker_id == node]
        for kind in sorted({*page.values(ENDED, "type"), *(event.type for event in facts)} - {""}):
            for status, fact in ENDS.items():
                told = page.sum(ENDED, type=kind, status=status)
                expected = sum(event.kind == fact and event.type == kind for event in facts)
                if told != expected:
                    yield node, f"its metrics say {told:g} runs of {kind} {status}, and the log has {expected} facts"
        started = sum(event.kind == Fact.TASK_CLAIMED for event in facts)
        if (told := page.sum("scheduler_dispatch_total", result="started")) > started:
            yield node, f"its metrics say {told:g} starts, and the log has {started} claims by it"


def ticks_are_counted_once(seen: Observed) -> Finding:
    """The log does not say who has fired a schedule, but all nodes together have not fired more often than it tells."""
    for name in seen.schedules if not seen.forgets else ():
        told = sum(page.sum(TICKS, schedule=name, result="fired") for page in seen.pages.values())
        fired = sum(event.kind == Fact.SCHEDULE_FIRED and event.id == name for event in seen.events)
        if told > fired:
            yield name, f"metrics say that it was fired {told:g} times, and the log has {fired} facts"
