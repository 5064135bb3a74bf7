"""The memory store is the specification: every other kind gets the same calls and must give the same answers.

After each step replies, records, lanes, counts, facts, members, schedules and outbox are compared, and both stores
audit themselves. What a step does comes from a seeded generator, since Hypothesis, left to itself, repeats few kinds of
calls; it picks the seeds, and cuts a failure down to few steps. The suite makes few histories, others for each commit;
`make machine` makes thousands. What one of them finds becomes a test of its own in the contract.
"""

from __future__ import annotations

import asyncio
import itertools
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import AsyncExitStack
from operator import attrgetter
from pathlib import Path
from random import Random
from typing import Any, ClassVar, TypeVar

import pytest
from hypothesis import HealthCheck, Phase, seed, settings
from hypothesis import note as show
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test
from msgspec import Struct
from msgspec.structs import replace

from tests.suite.seed import drawn, tree_hash
from tests.support.redis_store import ClockedRedisStore
from tests.support.stores import KINDS, PARTITIONS, open_store
from tickwork.clock import ManualClock
from tickwork.ids import partition_of
from tickwork.model.facts import Event, Fact, NewFact
from tickwork.model.members import Worker
from tickwork.model.outcomes import Aborted, Failed, Held, Outcome, Released, Snoozed, Stopped, Succeeded
from tickwork.model.policy import Policy
from tickwork.model.schedules import Schedule
from tickwork.model.tasks import DELAYED, ENDS, Lease, Place, Record, Spec, Status
from tickwork.store.contract import (
    Advance,
    Aside,
    Ask,
    Assigned,
    Assignment,
    Claim,
    Claimed,
    Edge,
    Finished,
    Gate,
    Left,
    Look,
    OutboxEntry,
    ParkReason,
    Query,
    Reclaimed,
    Seen,
    Store,
)
from tickwork.store.rules import SPAN
from tickwork.testing.contract.bench import START, all_schedules, edges_of

QUEUES = ("qa", "qb")
TYPES = ("ta", "tb", "tc")
CROWDED = ("type:ta", "type:tc", "queue:qb")
KINDS_OF_TASKS = (*TYPES, "ta gpu=a100", "tb gpu=a100", "tc gpu=a100,zone=eu", "ta @w2")
WORKERS = ("w1", "w2", "w3")
NODES = ("", "n1", "n2")
SCHEDULES = ("s1", "s2")
LOCKS = ("l1", "l2")
MARKS = (None, "", "1")
TOLD_BY_MARKS = (
    Fact.ALERT_FIRED, Fact.ALERT_RESOLVED, Fact.ALERT_FIRED_SILENTLY, Fact.ALERT_RESOLVED_SILENTLY,
    Fact.LIMIT_SET, Fact.LIMIT_REMOVED, Fact.SWITCH_OFF, Fact.SWITCH_ON,
)  # fmt: skip
GATES = (
    Gate("type:a", slots=2), Gate("type:a", slots=1, rate=0.001, burst=2), Gate("type:a", failures=1, timeout=2000),
    Gate("key:a", rate=0.002, burst=3), Gate("key:a", failures=2, timeout=700, slots=3), Gate("queue:q", shut=True),
    Gate("queue:q"), Gate("key:b", slots=1),
)  # fmt: skip
KEYS = ("k1", "k2")
LIMITS = (1, 2, 3, 50)
MANY = 1000  # more than there are
PARTITIONED = "redis-partitioned"

Item = TypeVar("Item")

chance = st.randoms(use_true_random=True)  # a plain generator, from a seed that Hypothesis keeps


def moment(any_: Random) -> int | None:
    return any_.choice([None, START - 1, START + 700, START + 40_000])


def some(any_: Random, items: tuple[Item, ...]) -> list[Item]:
    """Any of them, in any order, sometimes one twice."""
    return any_.choices(items, k=any_.randint(0, len(items)))


def a_policy(any_: Random) -> Policy:
    return Policy(
        dlq=any_.random() < 0.7,
        dlq_max=any_.randint(0, 3),
        max_losses=any_.randint(1, 3),
        dedup=any_.random() < 0.8,
        retention=any_.choice([10_000, 100_000]),
        retention_max=any_.choice([0, 2, 4, 8]),
        events=any_.random() < 0.9,
        events_max=0 if any_.random() < 0.05 else any_.choice([150, 10_000]),
        log_lines_max=any_.randint(0, 3),
        attempts_max=any_.randint(0, 3),
    )


def a_spec(any_: Random, task_id: str, others: list[str]) -> Spec:
    plain = any_.random() < 0.5  # or little would ever run
    return Spec(
        id=task_id,
        type=any_.choice(TYPES),
        nonce=any_.choice(["n1", "n2"]),
        queue=any_.choice(QUEUES),
        priority=any_.randint(1, 10),
        at=None if plain else moment(any_),
        delay=0 if plain else any_.choice([0, 1, 5000]),
        dedup_key=any_.choice([None, None, *KEYS]),
        dedup_ttl=any_.choice([0, 1000, 60_000]),
        depends_on=() if plain else tuple(some(any_, (any_.choice(others), any_.choice(others)))),
        run_after=any_.choice(["success", "end"]),
        schedule_id=any_.choice([None, None, "s1"]),
        unique=any_.choice([None, None, None, "queued", "unfinished"]),
        expires=any_.choice([None, None, None, 0, 1000, 20_000]),
        expires_at=any_.choice([None, None, None, START + 700, START + 40_000]),
        retention=any_.choice([None, None, 0, 30_000, 500_000]),
        key=any_.choice([None, "ka", "kb"]),
        tags=any_.choice([{}, {"env": "prod"}]),
        requires=any_.choice([{}, {}, {}, {}, {"gpu": "a100"}, {"gpu": "a100", "zone": "eu"}]),
        target=any_.choice([None, None, None, None, None, "w2"]),
        fair=Random(task_id).choice([0, 0, 0, 1000, 333]),
    )


def a_schedule(any_: Random) -> Schedule:
    return Schedule(
        id=any_.choice(SCHEDULES),
        name=any_.choice(["", "named"]),
        cron=any_.choice([None, "@hourly", "@daily"]),
        enabled=any_.random() < 0.8,
        next_at=moment(any_),
        task=Spec(id="", type="ta", nonce=any_.choice(["x", "y"])),
    )


def gates_of(any_: Random) -> tuple[Gate, ...]:
    return tuple({gate.name: gate for gate in some(any_, GATES)[:3]}.values())


def an_outcome(any_: Random, lease: Lease) -> Outcome:
    outcomes: list[Outcome] = [
        Succeeded(lease, b"1", 2, "ok", 0.5),
        Failed(lease, "boom", any_.choice([0, 1000]), 0.25),
        Aborted(lease, "broken", 0.75),
        Held(lease, "type:a", any_.choice([ParkReason.LIMITED, ParkReason.SWITCHED_OFF]), any_.choice([0, 300])),
        Snoozed(lease, any_.choice([None, START - 5, START + 20_000]), 300, any_.choice(["", "does not fit"])),
        Released(lease),
        Stopped(lease, 1.5),
        Stopped(lease, 1.5, "by hand"),
    ]
    return any_.choice(outcomes)


def plain(record: Record) -> Record:
    """Without what may differ: numbers of order (compared as orders), and the place of what is in no lane."""
    place = record.place if record.status is Status.READY else Place.MAIN
    return replace(record, seq=0, position=0, place=place, waiting=sorted(record.waiting))


def lanes(records: list[Record], parts: int) -> dict[tuple[Any, ...], list[str]]:
    found: dict[tuple[Any, ...], list[str]] = {}
    for record in sorted(records, key=lambda record: (record.position, record.seq)):  # in fair lanes there are ties
        if record.status is Status.READY:
            part = partition_of(record.id, parts)
            found.setdefault((part, record.spec.queue, record.spec.band, record.place), []).append(record.id)
    return found


def by_part(ids: list[str], parts: int) -> list[str]:
    """In their order within each partition."""
    return sorted(ids, key=lambda task_id: partition_of(task_id, parts))


def stories(events: list[Event]) -> list[Event]:
    """The facts of one step: their order counts for each subject, not between subjects."""
    return sorted((replace(event, seq=0) for event in events), key=lambda event: event.id)


class Twins(RuleBasedStateMachine):
    """A store and the memory store, side by side under one clock."""

    told: ClassVar[Counter[str]] = Counter()  # what has happened over all examples, to know that it did

    def __init__(self, kind: str) -> None:
        super().__init__()
        self.kind = kind
        self.clock = ManualClock(START)
        self.loop = asyncio.new_event_loop()
        self.folder = tempfile.TemporaryDirectory(prefix="twins-")
        self.stores = AsyncExitStack()
        self.numbers = itertools.count(1)
        self.ids = ["t0"]
        self.leases = [Lease("t0", 1, "never given")]
        self.running: list[Lease] = []
        self.last_claims: dict[str, Claim] = {}
        self.is_again = False  # a claim is sent again
        self.told_ends: list[OutboxEntry] = []
        self.seen, self.other_seen = 0, 0
        self.parts = 1  # over which tasks are spread
        self.dedup = True
        self.indexed = False
        self.salt = 0.0
        self.seeds: Counter[float] = Counter()
        self.fences: dict[str, tuple[int, int]] = {}  # by name, the last of each store
        self.model: Store
        self.other: Store

    def teardown(self) -> None:
        self.loop.run_until_complete(self.stores.aclose())
        self.loop.run_until_complete(self.loop.shutdown_default_executor())
        self.loop.close()
        self.folder.cleanup()

    @initialize(any_=chance)
    def open(self, any_: Random) -> None:
        policy = a_policy(any_)
        if self.kind == PARTITIONED:
            # In half of the examples all tasks are in one of its partitions. Else limits are out of reach: which tasks
            # are within them depends on the partition that is visited first.
            policy = replace(policy, events_max=min(policy.events_max, 1) * 10_000)
            if any_.random() < 0.5:
                self.parts = PARTITIONS
                policy = replace(policy, dlq_max=MANY, retention_max=MANY, max_losses=MANY)
        self.dedup = policy.dedup
        self.salt = any_.random()
        show(policy)

        async def enter(kind: str) -> Store:
            return await self.stores.enter_async_context(open_store(kind, Path(self.folder.name), self.clock, policy))

        self.model = self.loop.run_until_complete(enter("memory"))
        self.other = self.loop.run_until_complete(enter(self.kind))
        if self.kind == PARTITIONED and self.parts == 1:
            assert isinstance(self.other, ClockedRedisStore)
            self.other.keep_together()
        self.move(0)  # all begin to count how long it has been silent at the same time
        self.send("tasks.submit", [self.a_spec(any_) for _ in range(5)])

    def send(self, name: str, *args: Any, **options: Any) -> Any:
        """One call to both stores; the answers must be the same."""
        show((name, *args, options))

        async def both() -> tuple[Any, Any]:
            call = attrgetter(name)
            return await call(self.model)(*args, **options), await call(self.other)(*args, **options)

        expected, answer = self.loop.run_until_complete(both())
        assert self.alike(answer) == self.alike(expected), differences(answer, expected)
        self.compare_waits(answer, expected)
        return expected

    def compare_waits(self, answer: Any, expected: Any) -> None:
        """A claimer may hear nothing of the next delayed task that another one was told of, and with several partitions
        of a later one."""
        if isinstance(answer, Finished):
            answer, expected = answer.claimed, expected.claimed
        if isinstance(answer, Claimed) and answer.next_due_in != expected.next_due_in:
            later = self.parts > 1 and (answer.next_due_in or 0) > (expected.next_due_in or 0)
            assert later or answer.next_due_in is None, (answer.next_due_in, expected.next_due_in)

    def alike(self, answer: Any) -> Any:
        """Without what several partitions do not promise: an order over all of them."""
        match answer:
            case Claimed():
                grants = sorted(answer.grants, key=lambda grant: partition_of(grant.spec.id, self.parts))
                if self.is_again:  # the same tasks, but in no order
                    grants.sort(key=lambda grant: grant.spec.id)
                return replace(answer, grants=grants, next_due_in=answer.next_due_in == 0)
            case Finished():
                return replace(answer, claimed=self.alike(answer.claimed))
            case Reclaimed():
                return replace(answer, ids=sorted(answer.ids)) if self.parts > 1 else answer
            case Assigned(seen=Seen() as seen):
                waiting = sorted(seen.waiting, key=lambda each: partition_of(each.id, self.parts))
                return replace(answer, seen=replace(seen, waiting=waiting))
            case [str(), *_] if self.parts > 1 and all(isinstance(each, str) for each in answer):
                return sorted(answer)
            case [OutboxEntry(), *_]:
                return [replace(entry, dependants=tuple(sorted(entry.dependants))) for entry in answer]
        return answer

    def limit(self, any_: Random) -> int:
        return any_.choice(LIMITS) if self.parts == 1 else MANY

    def move(self, milliseconds: int) -> None:
        """Move the clock. Every partition hears of it at once, as a call to the memory store reaches all it holds."""
        self.clock.set(self.clock.now() + milliseconds)
        if self.kind == PARTITIONED:
            self.send("members.beat", Worker(id="witness"))
            self.send("tasks.extend", [Lease(f"witness{number}", 1, "-") for number in range(30)], 1000)

    @rule(any_=chance)
    def step(self, any_: Random) -> None:
        seed = any_.random()
        self.seeds[seed] += 1  # Hypothesis gives some seeds again and again, and each would do the same step
        any_ = Random(f"{self.salt} {seed} {self.seeds[seed]}")
        (act,) = any_.choices(list(ACTS), list(ACTS.values()))
        show(act.__name__)
        act(self, any_)

    def an_id(self, any_: Random) -> str:
        """One of the last, so that most calls are about tasks that are still on their way."""
        return any_.choice(self.ids[-12:])

    def a_spec(self, any_: Random) -> Spec:
        if any_.random() < 0.6:
            self.ids.append(f"t{len(self.ids)}")  # t9 and t10 sort one way as words and the other way in time
            return self.fit(a_spec(any_, self.ids[-1], self.ids[-12:]))
        return self.fit(a_spec(any_, self.an_id(any_), self.ids[-12:]))

    def fit(self, spec: Spec) -> Spec:
        """A dedup key has to be in the partition of the task. Each partition is fair by itself, so the turns of tasks
        in one are not those that they would have among all. A dependant that several partitions are sent again may be
        resolved by that, and not by the outbox, so here each is sent but once."""
        if self.kind == PARTITIONED and spec.depends_on:
            spec = replace(spec, nonce=f"n{next(self.numbers)}")
        return spec if self.parts == 1 else replace(spec, dedup_key=None, fair=0)

    # --- in and time

    def submit(self, any_: Random) -> None:
        batch = [self.a_spec(any_) for _ in range(any_.randint(1, 5))]
        self.told.update(receipt.verdict for receipt in self.send("tasks.submit", batch))

    def pass_time(self, any_: Random) -> None:
        by = any_.choice([1, 400, 1000, 5000, 15_000, 19_999, 20_001, 30_000, 3_700_000, -1, -2000])
        show(f"    {by} ms")
        self.move(by)
        if any_.random() < 0.3:
            self.send("tasks.promote", self.limit(any_))

    # --- dispatch and running

    def a_claim(self, any_: Random) -> Claim:
        claim = Claim(
            worker_id=any_.choice(WORKERS),
            queues=tuple(some(any_, (*QUEUES, "qa"))) if any_.random() < 0.3 else QUEUES,
            types=frozenset(some(any_, TYPES) if any_.random() < 0.3 else TYPES),
            limit=any_.randint(0, 4) if self.parts == 1 else any_.choice([0, MANY]),
            lease_ttl=any_.choice([1000, 15_000, 30_000]),
            nonce=f"c{next(self.numbers)}",
            node=any_.choice(NODES),
            labels=any_.choice([{}, {"gpu": "a100"}, {"gpu": "a100", "zone": "eu"}]),
            inboxes=tuple(some(any_, WORKERS)) if any_.random() < 0.6 else (),
            assigned=any_.choice([(), QUEUES]),
            front_only=frozenset(some(any_, CROWDED)) if any_.random() < 0.2 else frozenset(),
        )
        self.last_claims[claim.worker_id] = claim
        return claim

    def keep(self, claimed: Claimed | None) -> None:
        for grant in claimed.grants if claimed is not None else ():
            if grant.lease not in self.leases:
                self.leases.append(grant.lease)
                self.running.append(grant.lease)

    def a_lease(self, any_: Random) -> Lease:
        """Mostly one that should still hold."""
        return any_.choice(self.running if self.running and any_.random() < 0.7 else self.leases)

    def claim(self, any_: Random) -> None:
        self.keep(self.send("tasks.claim", self.a_claim(any_)))

    def assign(self, any_: Random) -> None:
        """Some of what is ready to some workers, some of it aside; and some ids that are not ready."""
        lanes = frozenset(f"{any_.choice(QUEUES)}/{kind}" for kind in some(any_, KINDS_OF_TASKS))
        beyond = any_.choice([0, 2]) if self.parts == 1 else MANY
        slots = dict.fromkeys((*some(any_, WORKERS), "w9"), any_.choice([1, 3, 50]) if self.parts == 1 else MANY)
        look = Look(tuple(some(any_, QUEUES)) or QUEUES, slots, lanes, beyond)
        seen = self.send("tasks.assign", [], 0, look=look).seen
        ids = [each.id for each in seen.waiting] + [self.an_id(any_)]
        hold = any_.choice([1000, 20_000])
        chosen = [Assignment(task_id, any_.choice(WORKERS)) for task_id in ids if any_.random() < 0.6]
        aside = [Aside(task_id, any_.choice(list(ParkReason))) for task_id in ids if any_.random() < 0.3]
        self.send("tasks.assign", chosen, hold, aside, any_.choice([None, look]))
        if any_.random() < 0.2:
            self.send("tasks.unassign", some(any_, WORKERS), self.limit(any_))

    def claim_again(self, any_: Random) -> None:
        claim = self.last_claims.get(any_.choice(WORKERS))
        if claim is not None:
            self.is_again = True
            self.keep(self.send("tasks.claim", claim))
            self.is_again = False

    def renew(self, any_: Random) -> None:
        leases = [self.a_lease(any_) for _ in range(any_.randint(1, 4))]
        for answer in self.send("tasks.extend", leases, any_.choice([1000, 30_000])):
            self.told[f"extend {answer}"] += 1
        noted = self.send("tasks.note", leases[0], any_.choice([None, 0.0, 0.5]), "so far", some(any_, ("a", "b")))
        self.told[f"note {noted}"] += 1

    # --- out

    def finish(self, any_: Random) -> None:
        leases = [self.a_lease(any_) for _ in range(any_.randint(1, 4))]
        outcomes = [an_outcome(any_, lease) for lease in leases]
        finished = self.send("tasks.finish", outcomes, any_.choice([None, self.a_claim(any_)]))
        self.told.update(f"finish {verdict.kind}" for verdict in finished.verdicts)
        self.running = [lease for lease in self.running if lease not in leases]
        self.keep(finished.claimed)

    def reclaim(self, any_: Random) -> None:
        """Workers die, or time goes by in steps too small to be an outage."""
        if any_.random() < 0.5:
            # Several partitions call a worker lost once none of them has come to the limit.
            limit = MANY if self.kind == PARTITIONED else self.limit(any_)
            self.send("tasks.reclaim", limit, tuple(some(any_, WORKERS)), "killed")
            return
        for _ in range(3):
            self.move(15_000)
            self.send("tasks.reclaim", self.limit(any_))

    # --- outbox

    def propagate(self, any_: Random) -> None:
        for entry in self.outbox(any_):
            self.send("tasks.resolve", [edge for edge in edges_of(entry) if any_.random() < 0.8])
            if entry.schedule_id is not None:
                self.send("schedules.report_run", entry.schedule_id, entry.id, entry.status, entry.fence)
            self.send("tasks.clear_outbox", [entry])
            self.told_ends.append(entry)
        if self.told_ends and any_.random() < 0.3:  # one who comes late
            late = any_.choice(self.told_ends[-5:])
            self.send("tasks.resolve", edges_of(late))
            self.send("schedules.report_run", "s1", late.id, late.status, late.fence)
            self.send("tasks.clear_outbox", [late])
        edges = [Edge(self.an_id(any_), self.an_id(any_), any_.random() < 0.5) for _ in range(any_.randint(1, 3))]
        self.send("tasks.resolve", edges)

    def outbox(self, any_: Random) -> list[OutboxEntry]:
        """Several partitions may list more: tasks whose dependants were cancelled meanwhile, or refused."""
        if self.kind != PARTITIONED:
            return list(self.send("tasks.outbox", self.limit(any_)))
        expected = {entry.id: entry for entry in self.loop.run_until_complete(self.model.tasks.outbox(MANY))}
        answer = self.loop.run_until_complete(self.other.tasks.outbox(MANY))
        for entry in answer:
            if entry.id not in expected:
                self.loop.run_until_complete(self.tell_other(entry))
        return [entry for entry in answer if entry.id in expected]

    async def tell_other(self, entry: OutboxEntry) -> None:
        assert not any(await self.other.tasks.resolve(edges_of(entry))), "nobody waits for it"
        await self.other.tasks.clear_outbox([entry])

    def empty_outbox(self, any_: Random) -> None:
        """A removed dependant is kept in mind for a minute, as it may be about to be created."""
        for _ in range(2):
            for entry in self.outbox(any_):
                self.send("tasks.resolve", edges_of(entry))
                if entry.schedule_id is not None:
                    self.send("schedules.report_run", entry.schedule_id, entry.id, entry.status, entry.fence)
                self.send("tasks.clear_outbox", [entry])
            self.move(61_000)

    # --- operators

    def operate(self, any_: Random) -> None:
        for _ in range(any_.randint(1, 4)):
            name = any_.choice(["cancel", "retry", "run_now", "reschedule", "delete", "stop"])
            if name == "stop":
                only = any_.choice([None, None, Status.RUNNING])
                self.send("operators.cancel", self.many(any_, self.a_lease(any_).id), True, "enough", only)
            elif name == "cancel":
                only = any_.choice([None, None, None, Status.PENDING, Status.READY])
                self.send("operators.cancel", self.many(any_), any_.random() < 0.5, "enough", only)
            elif name == "retry":
                self.retry(self.many(any_), any_.choice([None, None, Status.DEAD]))
            elif name == "reschedule":
                at = self.clock.now() + any_.choice([-700, 0, 1, 5000, 40_000])
                self.send("operators.reschedule", self.many(any_), at)
            elif name == "run_now":
                delayed, _ = self.loop.run_until_complete(self.model.queries.page(Query(status=Status.PENDING)))
                one = any_.choice([*(record.id for record in delayed), self.an_id(any_)])
                self.send("operators.run_now", self.many(any_, one), any_.choice([None, None, *sorted(DELAYED)]))
            else:
                self.send("operators.delete", self.many(any_))

    def many(self, any_: Random, first: str | None = None) -> list[str]:
        """One id or several, of which one may be given twice, or not be there."""
        ids = [first or self.an_id(any_)]
        if any_.random() < 0.5:
            ids += [any_.choice(["nobody", *self.ids[-12:]]) for _ in range(any_.randint(1, 5))]
            any_.shuffle(ids)
        return ids if any_.random() < 0.98 else []

    def retry(self, ids: list[str], only: Status | None = None) -> None:
        """It takes the dedup key of what it brings back, unless another task holds that."""
        if len(ids) != 1:
            self.send("operators.retry", ids, only)
            return
        (task_id,) = ids
        before, holders = self.loop.run_until_complete(self.look(task_id))
        (retried,) = self.send("operators.retry", ids, only)
        self.told["retry refused"] += bool(retried.upstream)
        after, new_holders = self.loop.run_until_complete(self.look(task_id))
        if before is None or after is None or after.fence == before.fence:
            assert new_holders == holders
            return
        key = before.spec.dedup_key
        if key is None or not (before.spec.dedup_ttl or before.spec.unique) or not self.dedup:
            assert new_holders == holders
            return
        assert new_holders == {**holders, key: holders[key] or task_id}
        self.told["retry with its key" if new_holders[key] == task_id else "retry without its key"] += 1

    def pass_a_key_on(self, any_: Random) -> None:
        """From a cancelled task to another, or to nobody; then the first one is retried."""
        if self.parts > 1:
            return
        key, first, second = any_.choice(KEYS), f"t{len(self.ids)}", f"t{len(self.ids) + 1}"
        self.ids += [first, second]
        one, other = (
            replace(a_spec(any_, task_id, self.ids), dedup_key=key, dedup_ttl=60_000, depends_on=(), expires=60_000)
            for task_id in (first, second)
        )
        self.send("tasks.submit", [one])
        self.send("operators.cancel", [first], False, "make room")
        if any_.random() < 0.7:
            self.send("tasks.submit", [other])
        self.retry([first])

    async def look(self, task_id: str) -> tuple[Record | None, dict[str, str]]:
        return await self.model.queries.get(task_id), await key_holders(self.model) if self.parts == 1 else {}

    def clean_up(self, any_: Random) -> None:
        if self.kind == PARTITIONED:  # a task in the outbox stays
            self.empty_outbox(any_)
        self.told["pruned"] += self.send("operators.prune", self.limit(any_))

    def pause_and_resume(self, any_: Random) -> None:
        for _ in range(3):
            what = any_.choice([("queue", "qa"), ("queue", "qb"), ("type", "ta"), ("type", "tb")])
            if any_.random() < 0.35:
                self.send("operators.pause", *what, "for now")
            else:
                self.send("operators.resume", *what)

    def index(self, any_: Random) -> None:
        self.indexed = any_.random() < 0.6
        self.told[f"index {self.send('operators.index', self.indexed)}"] += 1

    def list_tasks(self, any_: Random) -> None:
        query = Query(
            status=any_.choice([None, *Status]),
            type=any_.choice([None, *TYPES]),
            queue=any_.choice([None, *QUEUES]),
            key=any_.choice([None, None, "ka", "kb"]),
            tags=any_.choice([None, {}, {"env": "prod"}]),
            limit=any_.choice(LIMITS),
        )
        show(query)
        expected = self.loop.run_until_complete(walk(self.model, query))
        answer = self.loop.run_until_complete(walk(self.other, query))
        filtered = bool(query.type or query.queue or query.key)
        either_way = self.indexed and query.status is not None and filtered  # along the index, or along the status
        by_index = self.indexed and query.status is None and self.parts == 1
        by_status = query.status in ENDS | DELAYED and self.parts == 1 and not either_way
        if not (self.other.capabilities.submit_order or by_index or by_status):  # in the store's own order
            expected.sort(key=lambda record: record.id)
            answer.sort(key=lambda record: record.id)
        assert list(map(plain, answer)) == list(map(plain, expected))

    # --- schedules and members

    def schedule(self, any_: Random) -> None:
        new = a_schedule(any_)
        self.send("schedules.put", new, any_.random() < 0.5, any_.random() < 0.2)
        name = any_.choice([new.id, *SCHEDULES])
        if any_.random() < 0.5:
            paused, stopped = any_.choice([None, True, False]), any_.choice([None, "", "spent"])
            self.send("schedules.change", name, paused=paused, next_at=moment(any_), stopped=stopped)
        if any_.random() < 0.3:
            self.send("schedules.drop", name)
        self.send("schedules.report_run", name, any_.choice(["t1", "t2"]), Status.DEAD)

    def fire(self, any_: Random) -> None:
        if any_.random() < 0.5:  # else few would be due
            self.send("schedules.put", replace(a_schedule(any_), enabled=True, next_at=self.clock.now()))
        due, _ = self.send("schedules.due", any_.choice(LIMITS))
        for schedule in due:
            for _ in range(2):  # the second comes too late, unless nothing has changed
                fired = any_.choice([None, "t1", "t2"])
                skipped, missed, now = "" if fired else "busy", any_.randint(0, 1), self.clock.now()
                step = Advance(any_.choice([None, now + 900]), fired, now, skipped, missed)
                self.send("schedules.advance", schedule.id, schedule.next_at, step)
                self.send(
                    "schedules.advance", schedule.id, schedule.next_at, Advance(now + 900), self.ticks(any_, schedule)
                )

    def ticks(self, any_: Random, schedule: Schedule) -> tuple[Spec, ...]:
        """They share a definition. Some of them may be there already."""
        one = self.fit(replace(self.a_spec(any_), schedule_id=schedule.id, nonce="tick"))
        names = [f"{schedule.id}@{any_.randint(1, 5)}" for _ in range(any_.randint(1, 3))]
        self.ids += names
        return tuple(replace(one, id=name, scheduled_at=number) for number, name in enumerate(names))

    def meet(self, any_: Random) -> None:
        for worker in some(any_, WORKERS):
            node, running = any_.choice(NODES), any_.randint(0, 2)
            self.send("members.beat", Worker(id=worker, node=node, running=running, labels={"zone": "a"}))
        if any_.random() < 0.5:
            kind, values = any_.choice(
                [("drain", ["", "", None]), ("capacity", ["1", "20", None]), ("queues", ["a", None])]
            )
            self.send("members.order", any_.choice([*WORKERS, "nobody"]), kind, any_.choice(values))
        leader = self.send("members.campaign", any_.choice(["n1", "n2"]), any_.choice([500, 10_000]))
        if any_.random() < 0.4:
            for _ in range(any_.randint(1, 2)):
                self.send("members.resign", leader.id, any_.choice([leader.term, 1]))
        if any_.random() < 0.3:
            worker = any_.choice(WORKERS)
            self.last_claims.pop(worker, None)
            self.send("members.leave", worker)

    def lock_and_unlock(self, any_: Random) -> None:
        name, owner = any_.choice(LOCKS), any_.choice(WORKERS)
        for act in any_.choices(["lock", "locks.extend", "locks.release"], [3, 2, 1], k=5):
            if any_.random() < 0.3:
                name, owner = any_.choice(LOCKS), any_.choice(WORKERS)
            ttl = any_.choice([0, 500, 10_000])
            if act == "lock":
                self.take_lock(name, owner, ttl)
            else:
                done = self.send(act, name, *((owner, ttl) if act == "locks.extend" else (owner,)))
                self.told[f"{act} {done}"] += 1
            self.send("locks.holder", name)
        seen, new = any_.choice(MARKS), any_.choice(MARKS)
        facts = [NewFact(fact, any_.choice(["r1", "r2"]), "so far") for fact in some(any_, TOLD_BY_MARKS)]
        self.told[f"marks.swap {self.send('marks.swap', name, seen, new, facts)}"] += 1
        self.send("marks.get", name)

    def pass_gates(self, any_: Random) -> None:
        for _ in range(any_.randint(1, 4)):
            ids = [any_.choice(["g1", "g2", "g3", "g4", "g5"]) for _ in range(any_.randint(1, 4))]
            act = any_.choices(["enter", "leave", "renew", "wake", "reset"], [8, 6, 1, 3, 1])[0]
            names = tuple(gate.name for gate in gates_of(any_))
            if act == "enter":
                asks = [Ask(any_.choice([task_id, task_id, ""]), gates_of(any_), any_.randint(0, 3)) for task_id in ids]
                for answer in self.send("gates.enter", asks):
                    self.told["gate passed" if answer is None else f"gate {answer.reason}"] += 1
            elif act == "leave":
                left = [Left(task_id, names, any_.choice(["ok", "failed", "failed", "none"])) for task_id in ids]
                self.told["gate left, woken"] += len(self.send("gates.leave", left))
            elif act == "renew":
                self.send("gates.renew", [(task_id, names) for task_id in ids])
            elif act == "wake":
                self.told["gate woken"] += len(self.send("gates.wake", any_.choice([1, 2, 100])))
            else:
                self.send("gates.reset", any_.choice(GATES).name)
        if any_.random() < 0.3:
            self.try_a_breaker(any_)
        self.send("gates.look", [gate.name for gate in GATES])
        self.send("gates.opened")
        self.send("gates.crowded", any_.choice([1, 100]))

    def try_a_breaker(self, any_: Random) -> None:
        """It opens, and is asked before and after its time. By chance alone this is rare."""
        gate = any_.choice([gate for gate in GATES if gate.failures])
        self.send("gates.reset", gate.name)
        for number in range(gate.failures + 1):
            (answer,) = self.send("gates.enter", [Ask(f"g{number + 1}", (gate,), 0)])
            self.told["gate passed" if answer is None else f"gate {answer.reason}"] += 1
            self.send("gates.leave", [Left(f"g{number + 1}", (gate.name,), "failed")])
        self.move(any_.choice([0, gate.timeout]))
        self.send("gates.enter", [Ask("g4", (gate,), 0), Ask("g5", (gate,), 0)])

    def take_lock(self, name: str, owner: str, ttl: int) -> None:
        """Fences may differ between stores, but they change together, and only upwards."""
        show(("lock", name, owner, ttl))
        expected = self.loop.run_until_complete(self.model.locks.acquire(name, owner, ttl))
        answer = self.loop.run_until_complete(self.other.locks.acquire(name, owner, ttl))
        assert (answer is None) == (expected is None)
        if expected is None or answer is None:
            self.told["lock refused"] += 1
            return
        last_expected, last_answer = self.fences.get(name, (0, 0))
        assert (answer == last_answer) == (expected == last_expected)
        assert answer >= last_answer
        self.fences[name] = expected, answer
        self.told["lock renewed" if answer == last_answer else "lock taken"] += 1

    # --- after every step

    @invariant()
    def they_are_the_same(self) -> None:
        expected, problems = self.loop.run_until_complete(snapshot(self.model, self.seen, self.parts))
        answer, other_problems = self.loop.run_until_complete(snapshot(self.other, self.other_seen, self.parts))
        assert problems == []
        assert other_problems == []
        self.seen, self.other_seen = expected["last event"], answer["last event"]
        if self.kind == PARTITIONED:
            for name in ("last event", "dropped facts"):  # numbers have gaps
                del expected[name]
        if self.kind == PARTITIONED:
            waiting = {entry.id: entry for entry in expected["outbox"]}
            expected["outbox"], answer["outbox"] = waiting, waited_for(answer["outbox"], waiting)
        for name in expected:
            assert answer[name] == expected[name], f"{name}: {differences(answer[name], expected[name])}"
        self.told.update(event.kind for event in expected["facts"])


# How often each is done; what brings tasks on their way most often.
ACTS: dict[Callable[[Twins, Random], None], int] = {
    Twins.submit: 10,
    Twins.claim: 14,
    Twins.assign: 5,
    Twins.finish: 14,
    Twins.renew: 5,
    Twins.pass_time: 7,
    Twins.operate: 7,
    Twins.pass_a_key_on: 3,
    Twins.reclaim: 4,
    Twins.propagate: 5,
    Twins.claim_again: 3,
    Twins.clean_up: 3,
    Twins.pause_and_resume: 3,
    Twins.list_tasks: 4,
    Twins.index: 1,
    Twins.schedule: 4,
    Twins.fire: 5,
    Twins.meet: 4,
    Twins.lock_and_unlock: 3,
    Twins.pass_gates: 5,
}


async def walk(store: Store, query: Query) -> list[Record]:
    found: list[Record] = []
    while True:
        records, cursor = await store.queries.page(query)
        assert len(records) <= query.limit
        found += records
        if cursor is None:
            return found
        query = replace(query, cursor=cursor)


async def key_holders(store: Store) -> dict[str, str]:
    """Who holds each dedup key, '' for nobody. What is submitted to find out is refused: it depends on no task."""
    specs = [Spec(id="x", type="ta", nonce="x", dedup_key=key, dedup_ttl=1, depends_on=("nobody",)) for key in KEYS]
    receipts = await store.tasks.submit(specs)
    assert {receipt.verdict for receipt in receipts} <= {"duplicate", "orphan"}
    return {
        key: receipt.other if receipt.verdict == "duplicate" else ""
        for key, receipt in zip(KEYS, receipts, strict=True)
    }


def waited_for(found: list[OutboxEntry], expected: dict[str, OutboxEntry]) -> dict[str, OutboxEntry]:
    """What an outbox has of what it should have: it may list tasks that do not wait any more."""
    return {
        entry.id: replace(entry, dependants=tuple(sorted({*entry.dependants} & {*expected[entry.id].dependants})))
        for entry in found
        if entry.id in expected
    }


async def snapshot(store: Store, after: int, parts: int) -> tuple[dict[str, Any], list[str]]:
    """All that can be seen of a store, and what it finds wrong with itself."""
    (records, stats, (events, missed), last, problems), (outbox, paused, members, busy, schedules, due) = (
        await asyncio.gather(
            walk(store, Query(limit=1000)),
            store.queries.stats(),
            store.log.read(after, 1000),
            store.log.last(),
            store.queries.audit(),
        ),
        await asyncio.gather(
            store.tasks.outbox(1000),
            store.queries.paused(),
            store.members.workers(),
            store.members.workers(counted=True),
            all_schedules(store),
            store.schedules.due(10),
        ),
    )
    if store.capabilities.partitions == 1:
        assert [event.seq for event in events] == list(range(last - len(events) + 1, last + 1))
        assert len(events) + missed == (last - after if after else last % SPAN)
    counted = {status: sum(record.status is status for record in records) for status in Status}
    assert stats.statuses == counted
    seen = {
        "records": sorted(map(plain, records), key=lambda record: record.id),
        "lanes": lanes(records, parts),
        "ends": by_part([r.id for r in sorted(records, key=lambda r: r.position) if r.status in ENDS], parts),
        "stats": stats,
        "facts": stories(events),
        "dropped facts": missed,
        "last event": last,
        "outbox": [replace(entry, dependants=tuple(sorted(entry.dependants))) for entry in outbox],
        "pauses": paused,
        "members": members,
        "running": {worker.id: worker.running for worker in busy},
        "schedules": schedules,
        "due": due,
        "dedup keys": await key_holders(store) if parts == 1 else {},
        "histories": {record.id: await store.queries.history(record.id) for record in records},
    }
    return seen, problems


def differences(answer: Any, expected: Any) -> str:
    """What two answers do not have in common, a few lines of it: of lists by their places, of structures by fields."""
    return "".join(f"\n  {line}" for line in itertools.islice(_differences("", answer, expected), 8))


def _differences(where: str, answer: Any, expected: Any) -> Iterator[str]:
    if answer == expected:
        return
    if isinstance(answer, (list, tuple)) and isinstance(expected, (list, tuple)):
        for place, (ours, theirs) in enumerate(itertools.zip_longest(answer, expected)):
            yield from _differences(f"{where}[{place}]", ours, theirs)
    elif isinstance(answer, Struct) and type(answer) is type(expected):
        which = f"{where} {answer.id}" if hasattr(answer, "id") else where
        for name in answer.__struct_fields__:
            yield from _differences(f"{which}.{name}", getattr(answer, name), getattr(expected, name))
    else:
        yield f"{where}: {answer!r}, memory: {expected!r}"


# What the machine must have come across, besides every fact.
RARE = {
    *("created", "exists", "duplicate", "orphan", "pruned"),
    *("extend held", "extend cancel", "extend lost", "note True", "note False"),
    *("retry with its key", "retry without its key"),
    *("finish done", "finish already", "finish lost"),
    *("lock taken", "lock renewed", "lock refused", "index True", "index False"),
    *("locks.extend True", "locks.extend False", "locks.release True", "locks.release False"),
    *("marks.swap True", "marks.swap False"),
    *("gate passed", "gate shut", "gate open", "gate full", "gate rate", "gate left, woken", "gate woken"),
}

EXAMPLES = 25
ASKED = int(os.environ.get("TESTS_EXAMPLES", "0"))
ENOUGH = 1000  # examples, in which everything is met


@pytest.mark.timeout(0 if ASKED else 600)
@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "memory"])
def test_every_store_does_what_the_memory_store_does(kind: str) -> None:
    """In a process of its own: Hypothesis draws from the constants of all modules that are imported, so that beside
    other tests the machine would do other things in every run."""
    command = [sys.executable, "-m", "tests.contract.test_machine", kind]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert done.returncode == 0, done.stdout


def run_machine(kind: str) -> None:
    @seed(drawn(f"histories of {kind}", 1 << 64))
    def twins() -> Twins:
        return Twins(kind)

    run_state_machine_as_test(
        twins,  # type: ignore[arg-type]  # any factory will do
        settings=settings(
            max_examples=ASKED or EXAMPLES,
            stateful_step_count=50,
            database=None,
            deadline=None,
            suppress_health_check=list(HealthCheck),
            print_blob=False,
            # To make a failing history short takes minutes, for which the suite does not wait.
            phases=set(Phase) - (set() if ASKED else {Phase.shrink}),
        ),
    )
    if ASKED < ENOUGH:
        return
    missing = {*RARE, *Fact} - {Fact.LOG_MISSED, Fact.LOG_UNREADABLE} - set(Twins.told)
    assert not missing, "these never happened, so nothing was compared"


def main(kinds: list[str]) -> None:
    """`python -m tests.contract.test_machine [KIND ...]`: the kinds that are named, or all."""
    for kind in kinds or [kind for kind in KINDS if kind != "memory"]:
        Twins.told.clear()
        began = time.monotonic()
        run_machine(kind)
        print(
            f"{kind}: {ASKED or EXAMPLES} histories, seed {tree_hash()}, {time.monotonic() - began:.0f} s", flush=True
        )


if __name__ == "__main__":
    main(sys.argv[1:])
