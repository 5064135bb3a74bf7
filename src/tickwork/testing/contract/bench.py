"""A store with short hands: the tests of the contract say what they mean in one line each."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

from tickwork.clock import ManualClock
from tickwork.model.facts import Event
from tickwork.model.members import Worker
from tickwork.model.outcomes import Aborted, Failed, Held, Outcome, Released, Snoozed, Stopped, Succeeded
from tickwork.model.schedules import Schedule
from tickwork.model.tasks import Lease, ParkReason, Record, Spec, Status
from tickwork.store.contract import (
    SUBMIT_MAX,
    Assignment,
    Claim,
    Edge,
    Grant,
    Look,
    OutboxEntry,
    Query,
    Receipt,
    Seen,
    Store,
)
from tickwork.store.hints import Hint

START = 1_700_000_000_000  # what the clock of a test shows when it begins


class Bench:
    """A store with short hands: tests say what they mean in one line each."""

    def __init__(self, store: Store, clock: ManualClock, gather: Callable[[], None] = lambda: None) -> None:
        self.store = store
        self.clock = clock
        self._gather = gather
        self._numbers = itertools.count(1)

    def together(self) -> None:
        """Keep all tasks of this test, and their dedup keys, in one partition, since it compares their order."""
        self._gather()

    def spec(self, task_id: str | None = None, **fields: Any) -> Spec:
        number = next(self._numbers)
        fields.setdefault("type", "job")
        fields.setdefault("nonce", f"submit-{number}")
        return Spec(id=task_id or f"t{number}", **fields)

    async def submit(self, task_id: str | None = None, **fields: Any) -> Receipt:
        (receipt,) = await self.store.tasks.submit([self.spec(task_id, **fields)])
        return receipt

    async def submit_many(self, count: int, prefix: str = "t", **fields: Any) -> list[str]:
        """`prefix`0, `prefix`1, ..., in as few calls as the contract allows."""
        specs = [self.spec(f"{prefix}{number}", **fields) for number in range(count)]
        for start in range(0, count, SUBMIT_MAX):
            receipts = await self.store.tasks.submit(specs[start : start + SUBMIT_MAX])
            assert {receipt.verdict for receipt in receipts} == {"created"}
        return [spec.id for spec in specs]

    def new_claim(
        self,
        limit: int = 1,
        worker: str = "w1",
        queues: tuple[str, ...] = ("default",),
        types: tuple[str, ...] = ("job",),
        nonce: str | None = None,
        lease_ttl: int = 30_000,
        turn: int = 0,
        node: str = "",
        **more: Any,
    ) -> Claim:
        nonce = nonce or f"claim-{next(self._numbers)}"
        return Claim(worker, queues, frozenset(types), limit, lease_ttl, nonce, turn, node, **more)

    async def claim(
        self,
        limit: int = 1,
        worker: str = "w1",
        queues: tuple[str, ...] = ("default",),
        types: tuple[str, ...] = ("job",),
        nonce: str | None = None,
        lease_ttl: int = 30_000,
        turn: int = 0,
        node: str = "",
        **more: Any,
    ) -> list[Grant]:
        claim = self.new_claim(limit, worker, queues, types, nonce, lease_ttl, turn, node, **more)
        return (await self.store.tasks.claim(claim)).grants

    async def claimed_ids(self, limit: int = 100, **fields: Any) -> list[str]:
        return [grant.spec.id for grant in await self.claim(limit, **fields)]

    async def assign(self, task_id: str, worker: str = "w1", hold: int = 10_000) -> bool:
        (done,) = (await self.store.tasks.assign([Assignment(task_id, worker)], hold)).done
        return done

    async def look(
        self, slots: int = 100, queues: tuple[str, ...] = ("default",), workers: tuple[str, ...] = ("w",), **more: Any
    ) -> Seen:
        """What is ready, seen by workers that have so many slots each."""
        seen = (await self.store.tasks.assign([], 0, look=Look(queues, dict.fromkeys(workers, slots), **more))).seen
        assert seen is not None
        return seen

    async def start(self, task_id: str | None = None, **fields: Any) -> Lease:
        """Submit a task and claim exactly that one."""
        receipt = await self.submit(task_id, **fields)
        (grant,) = await self.claim()
        assert grant.spec.id == receipt.id
        return grant.lease

    async def end(self, outcome: Outcome) -> str:
        (verdict,) = (await self.store.tasks.finish([outcome])).verdicts
        return verdict.kind

    async def listens(self, *hints: Hint) -> None:
        """Wait until hints are heard: a store that listens over a network raises each once when it begins to."""
        if self.store.capabilities.remote:
            for hint in hints:
                assert await hint.wait(10), "it never began to listen"

    async def cancel(self, task_id: str, force: bool = False, reason: str = "") -> Status | None:
        (found,) = await self.store.operators.cancel([task_id], force, reason)
        return found

    async def run_now(self, task_id: str) -> Status | None:
        (found,) = await self.store.operators.run_now([task_id])
        return found

    async def reschedule(self, task_id: str, at: int) -> Status | None:
        (found,) = await self.store.operators.reschedule([task_id], at)
        return found

    async def retry(self, task_id: str, only: Status | None = None) -> Status | None:
        (retried,) = await self.store.operators.retry([task_id], only)
        return retried.found

    async def delete(self, task_id: str, only: Status | None = None) -> Status | None:
        (found,) = await self.store.operators.delete([task_id], only)
        return found

    async def resolve(self, dependant: str, upstream: str, ok: bool, fence: int | None = None) -> bool | None:
        (answer,) = await self.store.tasks.resolve([Edge(dependant, upstream, ok, fence)])
        return answer

    async def record(self, task_id: str) -> Record:
        record = await self.store.queries.get(task_id)
        assert record is not None, f"no task {task_id}"
        return record

    async def lines(self, task_id: str) -> list[str]:
        return (await self.store.queries.history(task_id)).lines

    async def put(self, schedule: Schedule, if_changed: bool = False) -> Schedule:
        put = await self.store.schedules.put(schedule, if_changed)
        assert put is not None
        return put

    async def schedules(self) -> list[Schedule]:
        """All pages of schedules, one after the other."""
        return await all_schedules(self.store)

    async def status(self, task_id: str) -> Status | None:
        record = await self.store.queries.get(task_id)
        return None if record is None else record.status

    async def events(self, task_id: str | None = None) -> list[Event]:
        events, _ = await self.store.log.read(0, 10_000, task_id)
        return events

    async def facts(self, task_id: str | None = None) -> list[str]:
        return [event.kind for event in await self.events(task_id)]

    def follow_each_other(self, numbers: list[int]) -> bool:
        """Whether numbers of facts are one by one, or grow where there are several partitions."""
        pairs = list(itertools.pairwise(numbers))
        if self.store.capabilities.partitions > 1:
            return all(first < second for first, second in pairs)
        return all(first + 1 == second for first, second in pairs)

    async def walk(self, **fields: Any) -> list[str]:
        """All pages of a query, one after the other."""
        found: list[str] = []
        cursor: str | None = None
        for _ in range(10_000):
            records, cursor = await self.store.queries.page(Query(cursor=cursor, **fields))
            found += [record.id for record in records]
            if cursor is None:
                return found
        raise AssertionError("the pages never end")

    def in_page_order(self, ids: list[str], newest_first: list[str]) -> bool:
        """Whether a list without a status is right: in order where the store keeps the order of submits."""
        return ids == newest_first if self.store.capabilities.submit_order else sorted(ids) == sorted(newest_first)

    async def propagate(self) -> None:
        """Tell dependants how their upstream ended, until nobody is left to tell: what the leader's duty does."""
        for _ in range(1000):
            entries = await self.store.tasks.outbox(10)
            if not entries:
                return
            await self.store.tasks.resolve([edge for entry in entries for edge in edges_of(entry)])
            await self.store.tasks.clear_outbox(entries)
        raise AssertionError("the outbox never empties")

    async def pass_time(self, seconds: float, beats: bool = True) -> None:
        """Let time go by with a live member, so that the store does not think it was out of touch."""
        for step in [5.0] * int(seconds // 5) + [seconds % 5]:
            self.clock.advance(step)
            if beats:
                await self.witness()

    async def witness(self) -> None:
        """What a living worker does: a heartbeat, and the renewal of leases in every partition."""
        await self.store.members.beat(Worker(id="witness"))
        await self.store.tasks.extend([Lease(f"witness{number}", 1, "-") for number in range(30)], 1000)

    async def bring(self, status: Status | None, task_id: str = "it", **fields: Any) -> Lease:
        """A task in that status, reached only by the store's own transitions. Answers the last lease it had."""
        fields.setdefault("queue", "default")
        lease = Lease(task_id, 0, "none")
        if status is None:
            return lease
        if status is Status.PENDING:
            await self.submit(task_id, delay=60_000, **fields)
            return lease
        if status is Status.BLOCKED:
            await self.submit("upstream", delay=3_600_000)
            await self.submit(task_id, depends_on=("upstream",), **fields)
            return lease
        if status is Status.READY:
            await self.submit(task_id, **fields)
            return lease
        if status is Status.ASSIGNED:
            await self.submit(task_id, **fields)
            assert await self.assign(task_id, "w2", 3_600_000)
            return lease
        if status is Status.CANCELLED:
            await self.submit(task_id, **fields)
            await self.cancel(task_id)
            return lease
        lease = await self.start(task_id, **fields)
        if status is Status.RUNNING:
            return lease
        outcome: Outcome
        if status is Status.RETRYING:
            outcome = Failed(lease, "boom", 60_000)
        elif status is Status.SUCCESS:
            outcome = Succeeded(lease, b"42")
        else:
            outcome = Aborted(lease, "boom")
        assert await self.end(outcome) == "done"
        return lease


async def all_schedules(store: Store) -> list[Schedule]:
    found, cursor = await store.schedules.page()
    while cursor is not None:
        more, cursor = await store.schedules.page(cursor)
        found += more
    return found


def edges_of(entry: OutboxEntry) -> list[Edge]:
    """What there is to resolve when the end of a task is told."""
    return [Edge(each, entry.id, entry.status is Status.SUCCESS, entry.fence) for each in entry.dependants]


OUTCOMES: dict[str, Any] = {
    "succeed": lambda lease: Succeeded(lease, b"1"),
    "fail": lambda lease: Failed(lease, "boom", 1000),
    "abort": lambda lease: Aborted(lease, "boom"),
    "snooze": lambda lease: Snoozed(lease, delay=1000),
    "hold": lambda lease: Held(lease, "type:job", ParkReason.LIMITED, delay=1000),
    "release": Released,
    "stop": Stopped,
}
