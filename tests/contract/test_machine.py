"""The memory store is the specification: every other kind gets the same calls and must give the same answers.

Hypothesis invents the calls, and after each one replies, records, lanes, counts, facts, members, schedules and outbox
are compared, and both stores audit themselves. `TICKWORK_MACHINE_EXAMPLES=2000` looks longer, and at random.
"""

from __future__ import annotations

import asyncio
import itertools
import os
import tempfile
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any, Literal, TypeVar

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)
from msgspec.structs import replace

from tests.support.stores import KINDS, START, open_store
from tickwork.clock import ManualClock
from tickwork.events import Event
from tickwork.model import (
    Aborted,
    Failed,
    Lease,
    Outcome,
    Place,
    Policy,
    Record,
    Released,
    Schedule,
    Snoozed,
    Spec,
    Status,
    Stopped,
    Succeeded,
    Worker,
)
from tickwork.store.base import Claim, Claimed, Query, Store

R = TypeVar("R")

IDS = [f"t{number}" for number in range(12)]  # t9 and t10 sort one way as words and the other way in time
QUEUES = ("qa", "qb")
TYPES = ("ta", "tb", "tc")
WORKERS = ("w1", "w2", "w3")
SCHEDULES = ("s1", "s2")
MOMENTS = st.sampled_from([None, START - 1, START + 700, START + 40_000])

ids = st.sampled_from(IDS)
few_ids = st.lists(ids, max_size=2).map(tuple)
limits = st.sampled_from([1, 2, 3, 50])
picks = st.integers(0, 30)  # 0 is the newest lease, so that examples shrink towards what happened last

policies = st.builds(
    Policy,
    dlq=st.booleans(),
    dlq_max=st.integers(0, 3),
    max_losses=st.integers(1, 3),
    dedup=st.booleans(),
    retention=st.sampled_from([10_000, 100_000]),
    retention_max=st.integers(0, 6),
    events=st.sampled_from([True, True, True, False]),
    events_max=st.sampled_from([5, 60, 10_000]),
    log_lines_max=st.integers(0, 3),
)

specs = st.builds(
    Spec,
    id=ids,
    type=st.sampled_from(TYPES),
    nonce=st.sampled_from(["n1", "n2"]),
    queue=st.sampled_from(QUEUES),
    priority=st.integers(1, 10),
    at=MOMENTS,
    delay=st.sampled_from([0, 0, 0, 1, 5000]),
    dedup_key=st.sampled_from([None, None, "k1", "k2"]),
    dedup_ttl=st.sampled_from([0, 1000, 60_000]),
    depends_on=few_ids,
    run_after=st.sampled_from(["success", "end"]),
    schedule_id=st.sampled_from([None, None, "s1"]),
    tags=st.sampled_from([{}, {"env": "prod"}]),
)

wishes = st.builds(
    Claim,
    worker_id=st.sampled_from(WORKERS),
    queues=st.lists(st.sampled_from(QUEUES), max_size=3).map(tuple),
    types=st.frozensets(st.sampled_from(TYPES)),
    limit=st.integers(0, 4),
    lease_ttl=st.sampled_from([1000, 15_000, 30_000]),
    nonce=st.just(""),
)

Ending = Callable[[Lease], Outcome]
endings: st.SearchStrategy[Ending] = st.one_of(
    st.just(lambda lease: Succeeded(lease, b"1", 2, "ok", 0.5)),
    st.sampled_from([0, 1000]).map(lambda wait: lambda lease: Failed(lease, "boom", wait, 0.25)),
    st.just(lambda lease: Aborted(lease, "broken", 0.75)),
    st.sampled_from([None, START - 5, START + 20_000]).map(lambda at: lambda lease: Snoozed(lease, at, 300)),
    st.just(Released),
    st.just(lambda lease: Stopped(lease, 1.5)),
)

schedules = st.builds(
    Schedule,
    id=st.sampled_from(SCHEDULES),
    name=st.sampled_from(["", "named"]),
    cron=st.sampled_from([None, "@hourly", "@daily"]),
    enabled=st.booleans(),
    next_at=MOMENTS,
    task=st.sampled_from(["x", "y"]).map(lambda nonce: Spec(id="", type="ta", nonce=nonce)),
)


def plain(record: Record) -> Record:
    """Without what may differ: numbers of order (compared as orders), and the place of what is in no lane."""
    place = record.place if record.status is Status.READY else Place.MAIN
    return replace(record, seq=0, position=0, place=place, waiting=sorted(record.waiting))


def lanes(records: list[Record]) -> dict[tuple[str, int, int], list[str]]:
    found: dict[tuple[str, int, int], list[str]] = {}
    for record in sorted(records, key=lambda record: record.position):
        if record.status is Status.READY:
            found.setdefault((record.spec.queue, record.spec.band, record.place), []).append(record.id)
    return found


def stories(events: list[Event]) -> list[Event]:
    """The facts of one step: their order counts for each subject, not between subjects."""
    return sorted((replace(event, seq=0) for event in events), key=lambda event: event.id)


class Twins(RuleBasedStateMachine):
    """A store and the memory store, side by side under one clock."""

    def __init__(self, kind: str) -> None:
        super().__init__()
        self.kind = kind
        self.clock = ManualClock(START)
        self.loop = asyncio.new_event_loop()
        self.folder = tempfile.TemporaryDirectory(prefix="twins-")
        self.stores = AsyncExitStack()
        self.numbers = itertools.count(1)
        self.leases: list[Lease] = []
        self.last_wishes: dict[str, Claim] = {}
        self.seen = 0
        self.model: Store
        self.other: Store

    def teardown(self) -> None:
        self.loop.run_until_complete(self.stores.aclose())
        self.loop.run_until_complete(self.loop.shutdown_default_executor())
        self.loop.close()
        self.folder.cleanup()

    @initialize(policy=policies)
    def open(self, policy: Policy) -> None:
        async def enter(kind: str) -> Store:
            return await self.stores.enter_async_context(open_store(kind, Path(self.folder.name), self.clock, policy))

        self.model = self.loop.run_until_complete(enter("memory"))
        self.other = self.loop.run_until_complete(enter(self.kind))

    def ask(self, call: Callable[[Store], Awaitable[R]]) -> tuple[R, R]:
        async def both() -> tuple[R, R]:
            return await call(self.model), await call(self.other)

        return self.loop.run_until_complete(both())

    def both(self, call: Callable[[Store], Awaitable[R]]) -> R:
        """Send one call to both stores; the answers must be the same."""
        expected, answer = self.ask(call)
        assert answer == expected
        return expected

    def lease(self, pick: int) -> Lease:
        return self.leases[-1 - pick % len(self.leases)]

    # --- in and time

    @rule(batch=st.lists(specs, min_size=1, max_size=4))
    def submit(self, batch: list[Spec]) -> None:
        self.both(lambda store: store.submit(batch))

    @rule(count=st.integers(1, 6), kind=st.sampled_from(TYPES), queue=st.sampled_from(QUEUES))
    def submit_plain(self, count: int, kind: str, queue: str) -> None:
        """Plenty of ready tasks, or little else would ever happen."""
        batch = [Spec(id=task_id, type=kind, nonce="n1", queue=queue) for task_id in IDS[:count]]
        self.both(lambda store: store.submit(batch))

    @rule(task_id=ids, upstream=ids, ok=st.booleans())
    def resolve(self, task_id: str, upstream: str, ok: bool) -> None:
        self.both(lambda store: store.resolve(task_id, upstream, ok))

    @rule(limit=limits)
    def promote(self, limit: int) -> None:
        self.both(lambda store: store.promote(limit))

    @rule(by=st.sampled_from([1, 400, 1000, 5000, 19_999, 20_001, 30_000, 3_700_000, -1, -2000]))
    def pass_time(self, by: int) -> None:
        self.clock.set(self.clock.now() + by)

    # --- dispatch and running

    def granted(self, claimed: Claimed | None) -> None:
        if claimed is not None:
            self.leases += [grant.lease for grant in claimed.grants if grant.lease not in self.leases]

    def named(self, wish: Claim) -> Claim:
        wish = replace(wish, nonce=f"c{next(self.numbers)}")
        self.last_wishes[wish.worker_id] = wish
        return wish

    @rule(wish=wishes)
    def claim(self, wish: Claim) -> None:
        wish = self.named(wish)
        self.granted(self.both(lambda store: store.claim(wish)))

    @rule(worker=st.sampled_from(WORKERS), limit=st.integers(1, 4))
    def claim_anything(self, worker: str, limit: int) -> None:
        wish = self.named(Claim(worker, QUEUES, frozenset(TYPES), limit, 30_000, ""))
        self.granted(self.both(lambda store: store.claim(wish)))

    @precondition(lambda self: self.last_wishes)
    @rule(worker=st.sampled_from(WORKERS))
    def claim_again(self, worker: str) -> None:
        wish = self.last_wishes.get(worker)
        if wish is not None:
            self.granted(self.both(lambda store: store.claim(wish)))

    @precondition(lambda self: self.leases)
    @rule(chosen=st.lists(picks, min_size=1, max_size=4), ttl=st.sampled_from([1000, 30_000]))
    def extend(self, chosen: list[int], ttl: int) -> None:
        leases = [self.lease(pick) for pick in chosen]
        self.both(lambda store: store.extend(leases, ttl))

    @precondition(lambda self: self.leases)
    @rule(pick=picks, progress=st.sampled_from([None, 0.0, 0.5]), lines=st.lists(st.sampled_from("ab"), max_size=3))
    def note(self, pick: int, progress: float | None, lines: list[str]) -> None:
        lease = self.lease(pick)
        self.both(lambda store: store.note(lease, progress, "so far", lines))

    # --- out

    @precondition(lambda self: self.leases)
    @rule(chosen=st.lists(st.tuples(picks, endings), min_size=1, max_size=4), wish=st.none() | wishes)
    def finish(self, chosen: list[tuple[int, Ending]], wish: Claim | None) -> None:
        outcomes = [ending(self.lease(pick)) for pick, ending in chosen]
        then_claim = None if wish is None else self.named(wish)
        self.granted(self.both(lambda store: store.finish(outcomes, then_claim)).claimed)

    @rule(limit=limits, gone=st.lists(st.sampled_from(WORKERS), max_size=2).map(tuple))
    def reclaim(self, limit: int, gone: tuple[str, ...]) -> None:
        self.both(lambda store: store.reclaim(limit, gone, "killed"))

    # --- outbox

    @rule(limit=limits, told=st.booleans())
    def propagate(self, limit: int, told: bool) -> None:
        for entry in self.both(lambda store: store.settled(limit)):
            for dependant in entry.dependants if told else ():
                self.resolve(dependant, entry.id, entry.status is Status.SUCCESS)
            self.unsettle(entry.id)

    @rule(task_id=ids)
    def unsettle(self, task_id: str) -> None:
        self.both(lambda store: store.unsettle([task_id]))

    # --- operators

    @rule(task_id=ids, force=st.booleans())
    def cancel(self, task_id: str, force: bool) -> None:
        self.both(lambda store: store.cancel(task_id, force, "enough"))

    @rule(task_id=ids)
    def retry(self, task_id: str) -> None:
        self.both(lambda store: store.retry(task_id))

    @rule(task_id=ids)
    def run_now(self, task_id: str) -> None:
        self.both(lambda store: store.run_now(task_id))

    @rule(task_id=ids)
    def delete(self, task_id: str) -> None:
        self.both(lambda store: store.delete(task_id))

    @rule(limit=limits)
    def prune(self, limit: int) -> None:
        self.both(lambda store: store.prune(limit))

    @rule(what=st.sampled_from([("queue", "qa"), ("queue", "qb"), ("type", "ta"), ("type", "tb")]), on=st.booleans())
    def pause_or_resume(self, what: tuple[Literal["queue", "type"], str], on: bool) -> None:
        kind, name = what
        if on:
            self.both(lambda store: store.pause(kind, name, "for now"))
        else:
            self.both(lambda store: store.resume(kind, name))

    @rule(
        status=st.none() | st.sampled_from(Status),
        kind=st.none() | st.sampled_from(TYPES),
        queue=st.none() | st.sampled_from(QUEUES),
        tags=st.sampled_from([None, {}, {"env": "prod"}]),
        limit=limits,
    )
    def list_tasks(
        self, status: Status | None, kind: str | None, queue: str | None, tags: dict[str, str] | None, limit: int
    ) -> None:
        query = Query(status, kind, queue, tags, limit)
        expected, answer = self.ask(lambda store: walk(store, query))
        if status is not None:  # in the order of that status's home, which is the store's own
            expected.sort(key=lambda record: record.id)
            answer.sort(key=lambda record: record.id)
        assert list(map(plain, answer)) == list(map(plain, expected))

    # --- schedules

    @rule(schedule=schedules, if_changed=st.booleans())
    def put_schedule(self, schedule: Schedule, if_changed: bool) -> None:
        self.both(lambda store: store.put_schedule(schedule, if_changed))

    @rule(name=st.sampled_from(SCHEDULES))
    def drop_schedule(self, name: str) -> None:
        self.both(lambda store: store.drop_schedule(name))

    @rule(limit=st.integers(1, 2))
    def fire_what_is_due(self, limit: int) -> None:
        due, _ = self.both(lambda store: store.due_schedules(limit))
        for schedule in due:
            self.advance(schedule.id, schedule.next_at, self.clock.now() + 900, f"{schedule.id}@1", 0)

    @rule(
        name=st.sampled_from(SCHEDULES),
        seen=MOMENTS,
        next_at=MOMENTS,
        fired=st.sampled_from([None, "t1", "t2"]),
        missed=st.integers(0, 1),
    )
    def advance(self, name: str, seen: int | None, next_at: int | None, fired: str | None, missed: int) -> None:
        skipped = "" if fired else "busy"
        now = self.clock.now()
        self.both(
            lambda store: store.advance(name, seen, next_at, fired=fired, fire_at=now, skipped=skipped, missed=missed)
        )

    @rule(
        name=st.sampled_from(SCHEDULES),
        enabled=st.none() | st.booleans(),
        next_at=MOMENTS,
        stopped=st.sampled_from([None, "", "spent"]),
    )
    def set_schedule(self, name: str, enabled: bool | None, next_at: int | None, stopped: str | None) -> None:
        self.both(lambda store: store.set_schedule(name, enabled=enabled, next_at=next_at, stopped=stopped))

    @rule(name=st.sampled_from(SCHEDULES), task_id=st.sampled_from(["t1", "t2", "s1@1"]))
    def report_run(self, name: str, task_id: str) -> None:
        self.both(lambda store: store.report_run(name, task_id, Status.DEAD))

    # --- members

    @rule(worker=st.sampled_from(WORKERS), running=st.integers(0, 2))
    def beat(self, worker: str, running: int) -> None:
        self.both(lambda store: store.beat(Worker(id=worker, running=running, labels={"zone": "a"})))

    @rule(worker=st.sampled_from(WORKERS))
    def leave(self, worker: str) -> None:
        self.last_wishes.pop(worker, None)
        self.both(lambda store: store.leave(worker))

    @rule(node=st.sampled_from(["n1", "n2"]), ttl=st.sampled_from([500, 10_000]))
    def campaign(self, node: str, ttl: int) -> None:
        self.both(lambda store: store.campaign(node, ttl))

    @rule(node=st.sampled_from(["n1", "n2"]), term=st.integers(1, 3))
    def resign(self, node: str, term: int) -> None:
        self.both(lambda store: store.resign(node, term))

    # --- after every step

    @invariant()
    def they_are_the_same(self) -> None:
        seen = self.seen
        (expected, problems), (answer, other_problems) = self.ask(lambda store: snapshot(store, seen))
        assert problems == []
        assert other_problems == []
        for name in expected:
            assert answer[name] == expected[name], name
        self.seen = expected["last event"]


async def walk(store: Store, query: Query) -> list[Record]:
    found: list[Record] = []
    while True:
        records, cursor = await store.page(query)
        assert len(records) <= query.limit
        found += records
        if cursor is None:
            return found
        query = replace(query, cursor=cursor)


async def snapshot(store: Store, after: int) -> tuple[dict[str, Any], list[str]]:
    """All that can be seen of a store, and what it finds wrong with itself."""
    (records, stats, (events, dropped), last, problems), (outbox, paused, members, schedules, due) = (
        await asyncio.gather(
            walk(store, Query(limit=1000)), store.stats(), store.events(after, 1000), store.last_event(), store.audit()
        ),
        await asyncio.gather(
            store.settled(1000), store.paused(), store.workers(), store.schedules(), store.due_schedules(10)
        ),
    )
    assert [event.seq for event in events] == list(range(max(after, dropped) + 1, last + 1))
    counted = {status: sum(record.status is status for record in records) for status in Status}
    assert stats.statuses == counted
    seen = {
        "records": list(map(plain, records)),
        "lanes": lanes(records),
        "stats": stats,
        "facts": stories(events),
        "dropped facts": dropped,
        "last event": last,
        "outbox": outbox,
        "pauses": paused,
        "members": members,
        "schedules": schedules,
        "due": due,
    }
    return seen, problems


ASKED = os.environ.get("TICKWORK_MACHINE_EXAMPLES")


@pytest.mark.timeout(0 if ASKED else 120)
@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "memory"])
def test_every_store_does_what_the_memory_store_does(kind: str) -> None:
    run_state_machine_as_test(
        lambda: Twins(kind),  # type: ignore[arg-type]  # any factory will do
        settings=settings(
            max_examples=int(ASKED) if ASKED else 40,
            stateful_step_count=50,
            derandomize=not ASKED,  # the suite asks the same of every commit
            database=None,
            deadline=None,
            suppress_health_check=list(HealthCheck),
            print_blob=False,
        ),
    )
