"""A sentence and the data for every reason that `explain` can give."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec import Struct

from tickwork.client.explain import explain
from tickwork.client.holds import Passage
from tickwork.clock import to_datetime
from tickwork.model.gates import Limit, Switch
from tickwork.model.info import Reason
from tickwork.model.members import Worker
from tickwork.model.tasks import ParkReason, Record, Spec, Status
from tickwork.store.contract import GateState, Pause, Situation

NOW = 1_900_000_000_000
NOW_TEXT = "2030-03-17 17:46:40 UTC"
LATER, LATER_TEXT = NOW + 60_000, "2030-03-17 17:47:40 UTC"
BEFORE, BEFORE_TEXT = NOW - 60_000, "2030-03-17 17:45:40 UTC"
SPEC = Spec(id="t", type="mail", nonce="")


def worker(**changes: Any) -> Worker:
    return Worker(**{"id": "w", "node": "n", "task_types": ("mail",), "capacity": 2, **changes})


def record(status: Status = Status.READY, spec: Spec = SPEC, **fields: Any) -> Record:
    return Record(spec=spec, seq=1, status=status, **fields)


def held(why: ParkReason, due_at: int = LATER) -> Record:
    return record(Status.PENDING, parked=why, due_at=due_at)


def running(**fields: Any) -> Record:
    return record(Status.RUNNING, **{"worker_id": "w", "attempt": 1, "lease_until": LATER, **fields})


def limit(state: GateState, *, key: str | None = None, of: str = "type:mail", **rule: Any) -> Passage:
    return Passage(f"limit:{of}", of, Limit(**rule), key, state)


def breaker(**state: Any) -> Passage:
    return Passage("breaker:type:mail", "type:mail", state=GateState("breaker:type:mail", **state))


FULL = limit(GateState("", inside=5, waiting=40), concurrency=5)
ROOM = limit(GateState("", inside=4, waiting=40), concurrency=5)
SPENT = limit(GateState("", tokens=0.0, waiting=1), rate=1 / 60)
OPEN = breaker(failures=5, open_until=LATER)
OFF = Passage("switch:key:acme", "key:acme", Switch(BEFORE, "ann@host", "a bug.", LATER))
OPEN_BY_HAND = Passage("breaker:type:mail", "type:mail", Switch(BEFORE, "ann@host", "their outage"))
REQUIRES = Spec(id="t", type="mail", nonce="", requires={"gpu": "yes"})


class Case(Struct):
    reason: Reason
    text: str
    found: Situation
    gates: tuple[Passage, ...] = ()
    workers: tuple[Worker, ...] = (worker(),)
    until: int | None = None
    blockers: tuple[str, ...] = ()


READY = Situation(record())
CASES = [
    Case(
        Reason.NOT_DUE,
        f"It waits for its time, {LATER_TEXT}.",
        Situation(record(Status.PENDING, due_at=LATER)),
        (OFF, FULL),
        until=LATER,
    ),
    Case(
        Reason.RETRY_NOT_DUE,
        f"Attempt 2 failed (OSError: no route); the next one is due at {LATER_TEXT}.",
        Situation(record(Status.RETRYING, due_at=LATER, attempt=2, last_error="OSError: no route\n  at line 1")),
        until=LATER,
    ),
    Case(
        Reason.NO_WORKER,
        "No worker is up.",
        Situation(record(Status.PENDING, due_at=NOW)),
        workers=(worker(lost_at=1),),
    ),
    Case(
        Reason.NO_WORKER, "No worker is up.", Situation(record(Status.RETRYING, due_at=BEFORE, attempt=1)), workers=()
    ),
    Case(
        Reason.BLOCKED,
        "It waits for a, b.",
        Situation(record(Status.BLOCKED, waiting=["a", "b"])),
        blockers=("a", "b"),
    ),
    Case(
        Reason.QUEUE_PAUSED,
        f"Queue default is paused since {BEFORE_TEXT}: database move.",
        Situation(record(), pauses=[Pause("queue", "default", BEFORE, "database move")]),
        (OFF, FULL, OPEN),
        blockers=("default",),
    ),
    Case(
        Reason.TYPE_PAUSED,
        f"Type mail is paused since {BEFORE_TEXT}.",
        Situation(held(ParkReason.LIMITED), pauses=[Pause("type", "mail", BEFORE)]),
        (FULL,),
        blockers=("mail",),
    ),
    Case(
        Reason.SWITCHED_OFF,
        f"Key acme was switched off by ann@host at {BEFORE_TEXT}, until {LATER_TEXT}: a bug.",
        READY,
        (OFF, FULL, OPEN),
        (),  # it would not run either if a worker were up
        until=LATER,
        blockers=("key:acme",),
    ),
    Case(
        Reason.SWITCHED_OFF,
        f"Tag customer=acme was switched off by hand at {BEFORE_TEXT}.",
        Situation(held(ParkReason.SWITCHED_OFF)),
        (Passage("switch:tag:customer=acme", "tag:customer=acme", Switch(BEFORE)),),
        blockers=("tag:customer=acme",),
    ),
    Case(
        Reason.LIMIT_FULL,
        "The limit of type mail is reached: 5 of 5 run (40 wait).",
        Situation(held(ParkReason.LIMITED)),
        (FULL, breaker()),
        blockers=("type:mail",),
    ),
    Case(
        Reason.LIMIT_FULL,
        "The limit of type mail for key acme is reached: 1 of 1 run.",
        Situation(record(parked=ParkReason.TYPE_UNKNOWN)),
        (limit(GateState("", inside=1), key="acme", concurrency=1),),
        blockers=("type:mail",),
    ),
    Case(
        Reason.LIMIT_FULL,
        "The limit of queue orders for tasks without a key is reached: 2 of 1 run (1,200 wait).",
        READY,
        (ROOM, limit(GateState("", inside=2, waiting=1200), key="", of="queue:orders", concurrency=1)),
        blockers=("queue:orders",),
    ),
    Case(
        Reason.RATE_SPENT,
        f"The rate of type mail (1/m) is used up; the next run may begin at {LATER_TEXT} (1 waits).",
        Situation(held(ParkReason.LIMITED, NOW + 1)),
        (SPENT,),
        until=LATER,
        blockers=("type:mail",),
    ),
    Case(
        Reason.RATE_SPENT,
        f"The rate of type mail (10/s) is used up; the next run may begin at {NOW_TEXT}.",
        READY,
        (limit(GateState("", tokens=0.5), rate=10.0, concurrency=3),),
        until=NOW + 50,
        blockers=("type:mail",),
    ),
    Case(
        Reason.BREAKER_OPEN,
        f"Breaker type:mail is open until {LATER_TEXT} after 5 failures in a row.",
        Situation(held(ParkReason.BREAKER_OPEN)),
        (FULL, OPEN),  # the one that has refused it is named first
        until=LATER,
        blockers=("type:mail",),
    ),
    Case(
        Reason.BREAKER_OPEN,
        "Breaker type:mail is open after 1 failure; task p is tried now.",
        Situation(held(ParkReason.BREAKER_OPEN)),
        (breaker(failures=1, open_until=NOW, probe="p"),),
        blockers=("type:mail", "p"),
    ),
    Case(
        Reason.BREAKER_OPEN,
        "Breaker type:mail is open after 5 failures in a row; one task is tried in a moment.",
        READY,
        (breaker(failures=5, open_until=BEFORE),),
        blockers=("type:mail",),
    ),
    Case(
        Reason.BREAKER_OPEN,
        f"Breaker type:mail was opened by ann@host at {BEFORE_TEXT}: their outage.",
        READY,
        (FULL, OPEN_BY_HAND),
        (),
        blockers=("type:mail",),
    ),
    Case(Reason.NO_WORKER, "No worker is up.", READY, (FULL, OPEN), ()),
    Case(
        Reason.QUEUE_UNSERVED,
        "No worker that is up serves queue default.",
        Situation(held(ParkReason.LIMITED)),
        (FULL,),
        (worker(queues=("b",)),),
    ),
    Case(
        Reason.TYPE_UNKNOWN,
        "No worker that is up on queue default knows task type mail.",
        READY,
        workers=(worker(task_types=("b",)),),
    ),
    Case(
        Reason.LABELS_MISSING,
        "No worker that is up and knows task type mail has the labels that it requires: gpu=yes.",
        Situation(record(spec=REQUIRES)),
    ),
    Case(
        Reason.ASSIGNED,
        f"It is assigned to w, which has until {LATER_TEXT} to take it.",
        Situation(record(Status.ASSIGNED, worker_id="w", lease_until=LATER)),
        until=LATER,
        blockers=("w",),
    ),
    Case(
        Reason.ASSIGNED,
        f"It is assigned to w, which has until {LATER_TEXT} to take it, but is lost.",
        Situation(record(Status.ASSIGNED, worker_id="w", lease_until=LATER)),
        workers=(worker(lost_at=BEFORE),),
        until=LATER,
        blockers=("w",),
    ),
    Case(
        Reason.WORKERS_BUSY,
        "All workers that may run it are busy; 3 tasks of its queue are before it.",
        Situation(record(), 3, running={"w": 2}),
        (ROOM, breaker(failures=4)),
        blockers=("w",),
    ),
    Case(
        Reason.WORKERS_DRAINING,
        "All workers that may run it are draining: they take no more tasks.",
        READY,
        (FULL,),
        (worker(order="drain"),),
        blockers=("w",),
    ),
    Case(Reason.IN_LINE, "It is ready; 7 tasks of its queue are before it.", Situation(record(), 7), (ROOM,)),
    Case(Reason.NEXT, "It is ready and will be taken next.", READY, (ROOM, breaker())),
    Case(
        Reason.NEXT,
        f"The limit that held it lets it through now: it goes on in a moment, at {LATER_TEXT} at the latest.",
        Situation(held(ParkReason.LIMITED)),
        (ROOM,),
        until=LATER,
    ),
    Case(
        Reason.RUNNING,
        f"It is running on w, attempt 1; its lease ends at {LATER_TEXT}.",
        Situation(running()),
        until=LATER,
        blockers=("w",),
    ),
    Case(
        Reason.STOPPING,
        f"It is running on w, attempt 1, and was asked to stop; its lease ends at {LATER_TEXT}.",
        Situation(running(cancel=True)),
        until=LATER,
        blockers=("w",),
    ),
    Case(
        Reason.WORKER_LOST,
        f"Worker w, which runs attempt 1, is lost since {BEFORE_TEXT}; the lease ends at {LATER_TEXT}, then the task "
        "is taken back.",
        Situation(running()),
        workers=(worker(lost_at=BEFORE), worker(id="other")),
        until=LATER,
        blockers=("w",),
    ),
    Case(
        Reason.WORKER_LOST,
        f"Worker w, which runs attempt 1, has not renewed its lease; the lease ended at {BEFORE_TEXT}, but no worker "
        "is up that would take the task back.",
        Situation(running(lease_until=BEFORE)),
        workers=(),
        until=BEFORE,
        blockers=("w",),
    ),
    Case(
        Reason.ENDED,
        "It has ended: dead (ValueError: no).",
        Situation(record(Status.DEAD, last_error="ValueError: no\nmore")),
    ),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.reason)
def test_reason(case: Case) -> None:
    why = explain(case.found, list(case.workers), gates=case.gates, now=NOW)
    assert (why.reason, why.text) == (case.reason, case.text)
    assert why.until == (None if case.until is None else to_datetime(case.until))
    assert why.blockers == case.blockers
    counts = case.found.record.status is Status.READY
    assert why.ahead == (case.found.ahead if counts else None)


def test_there_is_a_case_for_every_reason() -> None:
    assert {case.reason for case in CASES} == set(Reason)
