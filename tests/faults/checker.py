"""The judge of random histories. Each rule is a function of what was observed that finds violations of one promise."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Callable
from typing import NamedTuple

from tests.faults.checker_counts import (
    metrics_agree_with_the_log,
    reports_agree_with_the_log,
    ticks_are_counted_once,
)
from tests.faults.observed import Finding, Observed, Run
from tests.faults.random_plan import LOCK_TTL
from tickwork.model.facts import Event, Fact
from tickwork.model.tasks import Status

SECOND = 1000
SHORTEST = 0.7  # seconds without the store, or stopped, after which a lease of 2 seconds may be lost
STOPS = ("stop", "stalled")
PATIENCE = 5.0  # seconds that the least patient store waits to be opened
TOLD_MAX = 5  # violations of one rule that are told with their history

ENDS: dict[str, Status] = {
    Fact.TASK_SUCCEEDED: Status.SUCCESS,
    Fact.TASK_DIED: Status.DEAD,
    Fact.TASK_FAILED: Status.FAILED,
    Fact.TASK_CANCELLED: Status.CANCELLED,
}
# Which facts may follow in which state of a task, and the state after them.
WAITS = (
    Fact.TASK_RESOLVED, Fact.TASK_DUE, Fact.TASK_HASTENED, Fact.TASK_RESCHEDULED, Fact.TASK_PARKED, Fact.TASK_ASSIGNED,
    Fact.TASK_UNASSIGNED,
)  # fmt: skip
COMES_BACK = (Fact.TASK_RETRYING, Fact.TASK_SNOOZED, Fact.TASK_HELD, Fact.TASK_RELEASED, Fact.TASK_LOST)
STATES: dict[tuple[str, str], str] = {
    ("absent", Fact.TASK_SUBMITTED): "waiting",
    **{("waiting", fact): "waiting" for fact in WAITS},
    ("waiting", Fact.TASK_CLAIMED): "running",
    ("waiting", Fact.TASK_CANCELLED): "ended",
    ("running", Fact.TASK_CANCEL_ASKED): "running",
    **{("running", fact): "waiting" for fact in COMES_BACK},
    **{("running", fact): "ended" for fact in ENDS},
    ("ended", Fact.TASK_RETRIED): "waiting",
    **{("ended", fact): "absent" for fact in (Fact.TASK_DELETED, Fact.TASK_DROPPED)},
}


class Violation(NamedTuple):
    """`subject` is the id of the task, or the name of what else is concerned."""

    rule: str
    subject: str
    text: str


def check(observed: Observed) -> list[Violation]:
    return [Violation(rule.__name__, subject, text) for rule in RULES for subject, text in rule(observed)]


def report(observed: Observed, violations: list[Violation]) -> str:
    counts = Counter(violation.rule for violation in violations)
    parts = [", ".join(f"{count} of {rule}" for rule, count in counts.items())]
    for rule in counts:
        for violation in [each for each in violations if each.rule == rule][:TOLD_MAX]:
            parts.append(f"{rule}, {violation.subject}: {violation.text}\n{observed.story(violation.subject)}")
    return "\n".join(parts)


# --- tasks


def none_lost(seen: Observed) -> Finding:
    """A task that was acknowledged, or is told of in the log, is there, or was deleted."""
    for task_id in sorted({line["id"] for line in seen.of("ack")} | set(seen.facts)):
        facts = seen.facts.get(task_id, [])
        if task_id not in seen.records and (not facts or facts[-1].kind not in (Fact.TASK_DELETED, Fact.TASK_DROPPED)):
            yield task_id, "it was accepted, nobody has deleted it, and it is not there"


def none_stuck(seen: Observed) -> Finding:
    for record in seen.records.values():
        if not record.status.ended:
            yield record.id, f"it is still {record.status}, long after the last fault"


def one_end_a_life(seen: Observed) -> Finding:
    """The facts of a task follow each other as the transition table says, and lead to what its record says."""
    for task_id, facts in seen.facts.items():
        state, end = "absent", None
        for fact in facts:
            after = STATES.get((state, fact.kind))
            if after is None:
                yield task_id, f"{fact.kind} (fact {fact.seq}) though it was {state}"
                break
            state, end = after, ENDS.get(fact.kind, end)
        else:
            record = seen.records.get(task_id)
            if record is not None and record.status.ended and (state, record.status) != ("ended", end):
                yield task_id, f"its record says {record.status}, its facts that it is {state} ({end})"


def results_of_the_last_run(seen: Observed) -> Finding:
    """A handler answers with its fence, so a result tells of which run it is."""
    for record in seen.records.values():
        if record.status is Status.SUCCESS and record.result != str(record.fence).encode():
            yield record.id, f"it holds result {record.result!r}, and its last run had fence {record.fence}"


def starts_are_claims(seen: Observed) -> Finding:
    """A claim is one run at most, and each has a fence of its own, greater than those before."""
    for task_id, runs in seen.runs.items():
        if len({run.fence for run in runs}) < len(runs):
            yield task_id, f"two runs with one fence: {sorted(run.fence for run in runs)}"
        claims = sum(fact.kind == Fact.TASK_CLAIMED for fact in seen.facts.get(task_id, []))
        if len(runs) > claims and not seen.forgets:
            yield task_id, f"{len(runs)} runs of {claims} claims"


def no_overlap(seen: Observed) -> Finding:
    """Two runs of a task at once take a process that was stopped for long enough. One that is only cut off from the
    store asks its handlers to stop before their leases are over; but what itself waits for the store, as for a lock,
    ends only when that answers."""
    for task_id, runs in seen.runs.items():
        patient = seen.forgets or seen.asked.get(task_id, {}).get("type") == "locked"
        for before, after in itertools.combinations(runs, 2):
            kinds = () if patient else STOPS
            older = min(before, after, key=lambda run: run.fence)  # by its claim: it may have been stopped since that
            if after.at < before.till and not seen.was_troubled(older.pid, before.at, after.at, SHORTEST, *kinds):
                told = "to its end" if before.till == float("inf") else f"{before.till - after.at:.3f} s"
                yield task_id, f"processes {before.pid} and {after.pid} ran it at once, {told}"


def no_loss_without_cause(seen: Observed) -> Finding:
    """A task is taken only from a worker that was gone, stopped, or cut off."""
    for task_id, facts in seen.facts.items():
        for claimed, lost in itertools.pairwise(facts):
            if lost.kind != Fact.TASK_LOST:
                continue
            pid, at = pid_of(lost.worker_id or claimed.worker_id), lost.at / SECOND
            if seen.gone.get(pid, float("inf")) <= at + 0.1:  # both clocks are of this machine
                continue
            if not seen.was_troubled(pid, claimed.at / SECOND, at, SHORTEST):
                yield task_id, f"it was taken from process {pid}, which lived and was reached: {lost.detail}"


def pid_of(worker_id: str) -> int:
    """A worker's id is the host, the pid and a random tail."""
    parts = worker_id.split("-")
    return int(parts[-2]) if len(parts) > 2 and parts[-2].isdigit() else 0


def no_dependant_early(seen: Observed) -> Finding:
    """A task is claimed only after each task that it depends on has succeeded: in this life of it, or before. With
    several partitions a submit looks at these before it creates the task, so a retry in between is not noticed."""
    for task_id, asked in seen.asked.items():
        facts = seen.facts.get(task_id, [])
        unnoticed = asked["at"] * SECOND if seen.partitions > 1 else math.inf  # retries from then on
        for upstream in asked.get("depends_on", ()):
            born = 0
            for fact in facts:
                if fact.kind in (Fact.TASK_SUBMITTED, Fact.TASK_RETRIED):
                    born = fact.seq
                elif fact.kind == Fact.TASK_CLAIMED and not _was_met(
                    [each for each in seen.facts.get(upstream, []) if not _is_unnoticed(each, unnoticed, born)],
                    born,
                    fact.seq,
                ):
                    yield task_id, f"claimed (fact {fact.seq}) when {upstream}, which it needs, had not succeeded"
                    break


def _is_unnoticed(fact: Event, since: float, born: int) -> bool:
    return fact.kind == Fact.TASK_RETRIED and fact.at >= since and fact.seq < born


def _was_met(upstream: list[Event], born: int, claimed: int) -> bool:
    """Whether the upstream had ended well when the dependant's life began, or did so before it was claimed. What was
    deleted counts by its last end."""
    before = [fact for fact in upstream if fact.seq < born and (fact.kind in ENDS or fact.kind == Fact.TASK_RETRIED)]
    since = [fact for fact in upstream if born < fact.seq < claimed]
    return any(fact.kind == Fact.TASK_SUCCEEDED for fact in (*before[-1:], *since))


def no_start_before_its_time(seen: Observed) -> Finding:
    for task_id, asked in seen.asked.items():
        due: float | None = None
        for fact in seen.facts.get(task_id, []):
            if fact.kind == Fact.TASK_SUBMITTED:
                due = fact.at + asked.get("delay", 0) * SECOND
            elif fact.kind in (Fact.TASK_HASTENED, Fact.TASK_RESCHEDULED, Fact.TASK_RETRIED):
                due = None
            elif fact.kind == Fact.TASK_CLAIMED and due is not None and fact.at < due:
                yield task_id, f"claimed (fact {fact.seq}) {due - fact.at:.0f} ms before its time"


def no_key_twice(seen: Observed) -> Finding:
    """While a task holds its dedup key, no other is created with it. Only a cancel or a delete frees it."""
    keys = {task_id: asked["dedup_key"] for task_id, asked in seen.asked.items() if "dedup_key" in asked}
    holders: dict[str, str] = {}
    for fact in seen.events:
        key = keys.get(fact.id)
        if key is None:
            continue
        if fact.kind == Fact.TASK_SUBMITTED and holders.setdefault(key, fact.id) != fact.id:
            yield fact.id, f"created (fact {fact.seq}) while {holders[key]} held {key}"
        elif fact.kind == Fact.TASK_RETRIED:
            holders.setdefault(key, fact.id)
        elif fact.kind in (Fact.TASK_CANCELLED, Fact.TASK_DELETED) and holders.get(key) == fact.id:
            del holders[key]


def retried_as_asked(seen: Observed) -> Finding:
    """A retry that was sent more than once, since its answer was lost, counts once."""
    asked = Counter(line["id"] for line in seen.of("asked") if line["asked"] == "retry")
    for task_id, facts in seen.facts.items():
        retried = sum(fact.kind == Fact.TASK_RETRIED for fact in facts)
        if retried > asked[task_id]:
            yield task_id, f"retried {retried} times, and asked for {asked[task_id]} times"


def no_claim_of_what_is_paused(seen: Observed) -> Finding:
    """With several partitions a pause takes hold in one after the other: there is no one moment to compare with."""
    paused: set[tuple[str, str]] = set()
    for fact in seen.events if seen.partitions == 1 else ():
        what, _, happened = fact.kind.partition(".")
        if happened == "paused":
            paused.add((what, fact.id))
        elif happened == "resumed":
            paused.discard((what, fact.id))
        elif fact.kind == Fact.TASK_CLAIMED and paused & {("queue", fact.queue), ("type", fact.type)}:
            yield fact.id, f"claimed (fact {fact.seq}) while queue {fact.queue} or type {fact.type} was paused"


# --- schedules, locks, followers, nodes


def ticks_once(seen: Observed) -> Finding:
    """Each tick becomes one task, not before its time; and one that never paused leaves none out."""
    for name, schedule in seen.schedules.items():
        created = Counter(
            event.id
            for event in seen.events
            if event.kind == Fact.TASK_SUBMITTED and event.id.startswith(f"{name}@") and "." not in event.id
        )
        yield from ((task_id, f"this tick was made {count} times") for task_id, count in created.items() if count > 1)
        for event in seen.events:
            if event.id in created and event.kind == Fact.TASK_SUBMITTED and event.at < _time_of(event.id):
                yield event.id, f"made {_time_of(event.id) - event.at} ms before its time"
        if name == "always" and created and schedule.last_fire_at is not None:
            first = schedule.created_at // SECOND * SECOND
            if f"{name}@{first}" not in created:  # its first tick is found a moment before it is stored
                first += SECOND
            due = {f"{name}@{at}" for at in range(first, schedule.last_fire_at + 1, SECOND)}
            yield from ((task_id, "this tick was never made") for task_id in sorted(due - created.keys()))
            yield from ((task_id, "no tick was due then") for task_id in sorted(created.keys() - due))


def _time_of(tick: str) -> int:
    return int(tick.partition("@")[2])


def fences_grow(seen: Observed) -> Finding:
    """Each holder of a lock has a fence of his own, greater than those before; a process that was stopped between the
    answer of the store and its own line may come late."""
    for name, holds in seen.holds.items():
        if len({hold.fence for hold in holds}) < len(holds):
            yield name, "two holders had the same fence"
        for before, after in itertools.pairwise(holds):
            if after.fence < before.fence and not _was_stopped(seen, after):
                yield name, f"{after.id} entered with fence {after.fence} after {before.id} with {before.fence}"


def one_holder(seen: Observed) -> Finding:
    """No two processes are sure at the same time that they hold a lock, unless one was stopped after it had looked."""
    for name, holds in seen.holds.items():
        for before, after in itertools.combinations(holds, 2):
            if after.at < before.till and not (_was_stopped(seen, before) or _was_stopped(seen, after)):
                yield name, f"{before.id} and {after.id} were inside at once, {before.till - after.at:.3f} s"


def _was_stopped(seen: Observed, hold: Run) -> bool:
    """A failover may forget a lock that was taken a moment before."""
    kinds = (*STOPS, *(("server_kill", "server_stop") if seen.forgets else ()))
    return seen.was_troubled(hold.pid, hold.at, hold.till, LOCK_TTL / 2, *kinds)


def followers_miss_nothing(seen: Observed) -> Finding:
    """Whoever follows the log is told each fact that it has, once, in order."""
    for name, (begin, told, missed) in seen.followed.items():
        absent = sorted({event.seq for event in seen.events if event.seq > begin} - set(told))
        if absent:
            yield name, f"{len(absent)} of {len(seen.events)} facts were not told, the first are {absent[:5]}"
        if any(after <= before for before, after in itertools.pairwise(told)):
            yield name, "facts were told twice, or not in order"
        if missed:
            yield name, f"told that facts were missed, and the log still has them: {missed[:3]}"


def audit_clean(seen: Observed) -> Finding:
    yield from (("audit", problem) for problem in seen.audit)


def no_node_ends_by_itself(seen: Observed) -> Finding:
    """One that cannot reach the store when it starts may give up, as `docs/submitting.md` says."""
    up = {line["pid"] for line in seen.of("up")}
    for line in seen.of("deserted"):
        pid, at = line["victim"], line["at"]
        if pid not in up and seen.was_troubled(pid, at - PATIENCE, at, SHORTEST):
            continue
        yield f"process {line['victim']}", f"it ended with status {line['code']}, and nobody had told it to"


def every_node_ends_when_told(seen: Observed) -> Finding:
    for line in seen.of("hung"):
        yield f"process {line['victim']}", "it was told to end, and did not"


RULES: tuple[Callable[[Observed], Finding], ...] = (
    none_lost,
    none_stuck,
    one_end_a_life,
    results_of_the_last_run,
    starts_are_claims,
    no_overlap,
    no_loss_without_cause,
    no_dependant_early,
    no_start_before_its_time,
    no_key_twice,
    retried_as_asked,
    no_claim_of_what_is_paused,
    ticks_once,
    fences_grow,
    one_holder,
    followers_miss_nothing,
    audit_clean,
    reports_agree_with_the_log,
    metrics_agree_with_the_log,
    ticks_are_counted_once,
    no_node_ends_by_itself,
    every_node_ends_when_told,
)
