"""The judge of random histories itself: a sound history passes, and each rule sees what it is there to see."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial
from typing import Any

import pytest
from msgspec.structs import replace

from tests.faults.checker import RULES, check, report
from tests.faults.history import Line
from tests.faults.observed import Observed
from tests.support.scrapes import Scrape
from tickwork.model.facts import Event
from tickwork.model.reports import Report, ReportRow
from tickwork.model.schedules import Schedule
from tickwork.model.tasks import Record, Spec, Status

NOON = 1_800_000_000.0  # seconds; everything happens after it
WORKERS = {1: "host-1-a", 2: "host-2-b"}
Change = Callable[[Observed], object]


def line(what: str, at: float, pid: int = 0, **facts: Any) -> Line:
    return {"what": what, "pid": pid, "at": NOON + at, **facts}


def fact(seq: int, kind: str, id: str, at: float, pid: int = 0, **more: Any) -> Event:
    return Event(seq, round((NOON + at) * 1000), kind, id, "work", "default", WORKERS.get(pid, ""), **more)


def run(task_id: str, pid: int, fence: int, at: float, till: float | None) -> list[Line]:
    began = line("start", at, pid, id=task_id, fence=fence)
    return [began] if till is None else [began, line("end", till, pid, id=task_id, fence=fence)]


def hold(task_id: str, pid: int, fence: int, at: float, till: float) -> list[Line]:
    facts: dict[str, Any] = {"id": task_id, "name": "report", "fence": fence}
    return [line("lock", at, pid, **facts), line("unlock", till, pid, **facts)]


def success(task_id: str, fence: int) -> Record:
    spec = Spec(id=task_id, type="work", nonce="n")
    return Record(spec=spec, seq=1, status=Status.SUCCESS, fence=fence, result=str(fence).encode())


def tick(second: int) -> str:
    return f"always@{round(NOON + second) * 1000}"


def recorded() -> Observed:
    """Task `a` runs, `b` waits for it, and `c` is lost with a worker that is stopped for longer than a lease. A
    schedule ticks once, and a lock changes hands."""
    schedule = Schedule(
        id="always",
        cron="* * * * * *",
        task=Spec(id="", type="tick", nonce=""),
        created_at=round(NOON * 1000) + 5,
        last_fire_at=round(NOON * 1000) + 1000,
    )
    events = [
        fact(1, "task.submitted", "a", 0.1),
        fact(2, "task.submitted", "b", 0.2),
        fact(3, "task.claimed", "a", 0.3, 1),
        fact(4, "task.succeeded", "a", 0.5, 1),
        fact(5, "task.resolved", "b", 0.6),
        fact(6, "task.due", "b", 1.2),
        fact(7, "task.claimed", "b", 1.3, 1),
        fact(8, "task.submitted", tick(1), 1.35),
        fact(9, "task.succeeded", "b", 1.4, 1),
        fact(10, "task.claimed", tick(1), 1.5, 2),
        fact(11, "task.succeeded", tick(1), 1.6, 2),
        fact(12, "task.submitted", "c", 2.0),
        fact(13, "task.claimed", "c", 2.1, 1),
        fact(14, "task.lost", "c", 5.0, 1, detail="its lease ran out"),
        fact(15, "task.claimed", "c", 5.1, 2),
        fact(16, "task.succeeded", "c", 5.9, 2),
        fact(17, "schedule.fired", "always", 6.0),
    ]
    lines = [
        line("up", 0, 1, node=WORKERS[1]),
        line("up", 0, 2, node=WORKERS[2]),
        line("submit", 0.1, id="a", dedup_key="key-1"),
        line("submit", 0.2, id="b", depends_on=["a"], delay=1.0),
        line("submit", 2.0, id="c"),
        *(line("ack", 0.3 + number, id=each) for number, each in enumerate("abc")),
        *run("a", 1, 10, 0.3, 0.5),
        *run("b", 1, 11, 1.3, 1.4),
        *run(tick(1), 2, 12, 1.5, 1.6),
        *run("c", 1, 13, 2.1, 5.6),
        *run("c", 2, 15, 5.2, 5.8),
        line("fault", 2.5, kind="stop", victim=1, till=NOON + 5.5),
        *hold("a", 1, 100, 0.35, 0.4),
        *hold("c", 2, 101, 5.3, 5.4),
    ]
    records = {each.id: each for each in (success("a", 10), success("b", 11), success(tick(1), 12), success("c", 15))}
    told = [event.seq for event in events]
    return Observed(
        lines,
        events,
        records,
        {"follower": (0, told, [])},
        schedules={"always": schedule},
        reports=reports(),
        pages=pages(),
    )


def reports() -> dict[str, Report]:
    """What the leader has kept of these facts."""
    begin, end = datetime.fromtimestamp(NOON, UTC), datetime.fromtimestamp(NOON + 10, UTC)
    row = partial(ReportRow, submitted=4, started=5, success=4, losses=1)
    return {
        by: Report(since=begin, until=end, by=by, rows=[row(name=name)], total=row(name="total"), through=end)
        for by, name in (("type", "work"), ("queue", "default"))
    }


def pages() -> dict[str, Scrape]:
    """The metrics of both nodes, of which the first was stopped when it was about to end its last run."""
    return {
        node: Scrape(
            f"""# TYPE scheduler_task_executed_total counter
scheduler_task_executed_total{{type="work",status="success"}} {ends}
# TYPE scheduler_dispatch_total counter
scheduler_dispatch_total{{result="started"}} {starts}
# TYPE scheduler_schedule_ticks_total counter
scheduler_schedule_ticks_total{{schedule="always",result="fired"}} {fired}
""".encode()
        )
        for node, ends, starts, fired in ((WORKERS[1], 2, 3, 0), (WORKERS[2], 2, 2, 1))
    }


def count_more(seen: Observed, name: str, **labels: str) -> None:
    """One more than there was, in the metrics of the second node."""
    seen.pages[WORKERS[2]].samples[name, frozenset(labels.items())] += 1


def report_more(seen: Observed, by: str, column: str, *, total: bool = False) -> None:
    """One more than there was, in the only row of a report, or in its total."""
    found = seen.reports[by]
    row = found.total if total else found.rows[0]
    changed = replace(row, **{column: getattr(row, column) + 1})
    seen.reports[by] = replace(found, **({"total": changed} if total else {"rows": [changed]}))


def test_a_sound_history_passes() -> None:
    assert check(recorded()) == []


def insert(seen: Observed, *events: Event) -> None:
    """Also to the followers, who are told all of it."""
    seen.events[:] = sorted([*seen.events, *events], key=lambda event: event.seq)
    seen.followed["follower"] = (0, [event.seq for event in seen.events], [])


def without_faults(seen: Observed) -> None:
    seen.lines[:] = [each for each in seen.lines if each["what"] != "fault"]


def upstream_dies(seen: Observed) -> None:
    seen.events[3] = fact(4, "task.died", "a", 0.5, 1)
    seen.records["a"] = replace(seen.records["a"], status=Status.DEAD)


def second_key(seen: Observed) -> None:
    next(each for each in seen.lines if each["what"] == "submit" and each["id"] == "c")["dedup_key"] = "key-1"


def back_to_running(seen: Observed) -> None:
    seen.records["c"] = replace(seen.records["c"], status=Status.RUNNING)


BROKEN: dict[str, list[Change]] = {
    "none_lost": [lambda seen: seen.records.pop("a"), lambda seen: seen.lines.append(line("ack", 9, id="d"))],
    "none_stuck": [back_to_running],
    "one_end_a_life": [
        lambda seen: insert(seen, fact(18, "task.succeeded", "a", 9, 1)),
        lambda seen: insert(seen, fact(18, "task.claimed", "a", 9, 1)),
        lambda seen: insert(seen, fact(18, "task.submitted", "a", 9)),
        lambda seen: seen.records.update(a=replace(seen.records["a"], status=Status.CANCELLED)),
    ],
    "results_of_the_last_run": [lambda seen: seen.records.update(c=replace(seen.records["c"], result=b"13"))],
    "starts_are_claims": [
        lambda seen: seen.lines.extend(run("a", 2, 14, 9.0, 9.1)),
        lambda seen: seen.lines.extend(run("a", 2, 10, 9.0, 9.1)),
    ],
    "no_overlap": [without_faults, lambda seen: seen.lines.append(line("start", 0.4, 2, id="a", fence=14))],
    "no_loss_without_cause": [without_faults],
    "no_dependant_early": [
        upstream_dies,
        lambda seen: seen.events.__setitem__(3, fact(20, "task.succeeded", "a", 9, 1)),
    ],
    "no_start_before_its_time": [lambda seen: seen.events.__setitem__(6, fact(7, "task.claimed", "b", 1.1, 1))],
    "no_key_twice": [second_key],
    "retried_as_asked": [lambda seen: insert(seen, fact(18, "task.retried", "a", 9))],
    "no_claim_of_what_is_paused": [
        lambda seen: seen.events.insert(2, replace(fact(2, "queue.paused", "default", 0.2), seq=2)),
        lambda seen: seen.events.insert(2, replace(fact(2, "type.paused", "work", 0.2), seq=2)),
    ],
    "ticks_once": [
        lambda seen: seen.events.extend(
            [fact(18, "task.deleted", tick(1), 8), fact(19, "task.submitted", tick(1), 8.1)]
        ),
        lambda seen: seen.events.__setitem__(7, fact(8, "task.submitted", tick(1), 0.99)),
        lambda seen: seen.schedules.update(
            always=replace(seen.schedules["always"], last_fire_at=round(NOON * 1000) + 2000)
        ),
        lambda seen: seen.schedules.update(
            always=replace(seen.schedules["always"], created_at=round(NOON * 1000) + 2000)
        ),
    ],
    "fences_grow": [
        lambda seen: seen.lines.extend(hold("b", 1, 100, 9.0, 9.1)),
        lambda seen: seen.lines.extend(hold("b", 2, 99, 12.0, 12.1)),
    ],
    "one_holder": [lambda seen: seen.lines.extend(hold("b", 2, 102, 0.39, 0.5))],
    "followers_miss_nothing": [
        lambda seen: seen.followed["follower"][1].remove(9),
        lambda seen: seen.followed["follower"][1].append(9),
        lambda seen: seen.followed["follower"][2].append("3 events"),
    ],
    "audit_clean": [lambda seen: seen.audit.append("task a is in two homes")],
    "reports_agree_with_the_log": [
        *(partial(report_more, by="type", column=column) for column in ("submitted", "success", "retries", "losses")),
        partial(report_more, by="queue", column="dead"),
        partial(report_more, by="queue", column="cancelled", total=True),
        partial(report_more, by="type", column="missed", total=True),
        lambda seen: insert(seen, fact(18, "task.submitted", "d", 9)),
        lambda seen: insert(seen, replace(fact(18, "task.submitted", "d", 9), queue="other")),
    ],
    "metrics_agree_with_the_log": [
        partial(count_more, name="scheduler_task_executed_total", type="work", status="success"),
        partial(count_more, name="scheduler_dispatch_total", result="started"),
        lambda seen: insert(seen, fact(18, "task.retrying", "d", 9, 1)),
    ],
    "ticks_are_counted_once": [
        partial(count_more, name="scheduler_schedule_ticks_total", schedule="always", result="fired")
    ],
    "no_node_ends_by_itself": [lambda seen: seen.lines.append(line("deserted", 9, victim=2, code=1))],
    "every_node_ends_when_told": [lambda seen: seen.lines.append(line("hung", 9, victim=2))],
}


def test_every_rule_has_been_seen_red() -> None:
    assert [rule.__name__ for rule in RULES] == list(BROKEN)


@pytest.mark.parametrize(
    ("rule", "number"), [(rule, number) for rule, changes in BROKEN.items() for number in range(len(changes))]
)
def test_a_rule_sees_what_is_wrong(rule: str, number: int) -> None:
    seen = recorded()
    BROKEN[rule][number](seen)
    violations = check(seen)
    assert rule in {violation.rule for violation in violations}
    assert rule in report(seen, violations)


def test_a_stop_that_a_lease_outlives_explains_nothing() -> None:
    seen = recorded()
    next(each for each in seen.lines if each["what"] == "fault")["till"] = NOON + 3.1
    assert {violation.rule for violation in check(seen)} == {"no_overlap", "no_loss_without_cause"}


def test_the_trouble_of_another_process_explains_nothing() -> None:
    seen = recorded()
    next(each for each in seen.lines if each["what"] == "fault")["victim"] = 2
    assert {violation.rule for violation in check(seen)} == {"no_overlap", "no_loss_without_cause"}


def test_a_stop_between_a_claim_and_its_start_explains_an_overlap() -> None:
    seen = recorded()
    late = next(each for each in seen.lines if each["what"] == "start" and each["id"] == "c" and each["pid"] == 1)
    late["at"] = NOON + 5.51  # after the run of the other process has begun
    assert check(seen) == []
    next(each for each in seen.lines if each["what"] == "fault")["victim"] = 2
    assert {violation.rule for violation in check(seen)} == {"no_overlap", "no_loss_without_cause"}


def test_a_store_that_nobody_reached_explains_losses_but_no_overlap_of_handlers_that_can_stop() -> None:
    seen = recorded()
    fault = next(each for each in seen.lines if each["what"] == "fault")
    fault |= {"victim": None, "kind": "server_kill"}
    assert {violation.rule for violation in check(seen)} == {"no_overlap"}
    seen.asked["c"]["type"] = "locked"
    assert check(seen) == []


def test_two_short_faults_in_a_row_are_one_long_one() -> None:
    seen = recorded()
    fault = next(each for each in seen.lines if each["what"] == "fault")
    fault["till"] = NOON + 3.1
    seen.lines.append(line("fault", 3.2, kind="stalled", victim=1, till=NOON + 3.9))
    assert check(seen) == []


def test_a_run_of_a_killed_process_ends_with_it() -> None:
    seen = recorded()
    without_faults(seen)
    seen.lines.remove(line("end", 5.6, 1, id="c", fence=13))
    seen.lines.append(line("gone", 4.0, victim=1, code=-9))
    assert check(seen) == []


def test_a_node_may_give_up_when_it_starts_without_a_store() -> None:
    seen = recorded()
    seen.lines.append(line("deserted", 9, victim=3, code=1))
    assert {violation.rule for violation in check(seen)} == {"no_node_ends_by_itself"}
    seen = recorded()
    seen.lines += [
        line("deserted", 9, victim=3, code=1),
        line("fault", 6, kind="hold_file", victim=None, till=NOON + 8),
    ]
    assert check(seen) == []


def test_the_report_tells_the_history_of_the_task() -> None:
    seen = recorded()
    seen.records["c"] = replace(seen.records["c"], result=b"13")
    told = report(seen, check(seen))
    assert "results_of_the_last_run, c: it holds result b'13'" in told
    for words in (
        "task.lost host-1-a its lease ran out",
        "fault by 0 kind=stop victim=1 for 3.00 s",
        "at the end: success",
    ):
        assert words in told
    assert "task.resolved" not in told, "that is another task"
