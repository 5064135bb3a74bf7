"""Tasks in several partitions: the hash of a task's id decides its partition, and claims visit one after another.

Priority and order are strict only inside a partition; `rounds.py` says how far apart two partitions may get. Calls
about tasks of a partition that cannot be reached fail, and all others go on: see `reach.py` and `dispatch.py`.

An operation on tasks of two partitions (a dependency) takes several calls. Each may be repeated, and they come in an
order in which a crash between them leaves no task waiting for ever.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Sequence

from msgspec.structs import replace

from tickwork.errors import StoreError, StoreUnavailable
from tickwork.model.outcomes import Outcome
from tickwork.model.policy import Durability
from tickwork.model.tasks import Lease, Spec
from tickwork.store.contract import (
    MANY_MAX,
    Aside,
    Assigned,
    Assignment,
    Claim,
    Claimed,
    Edge,
    Extended,
    Finished,
    Look,
    OutboxEntry,
    Receipt,
    Reclaimed,
)
from tickwork.store.hints import Hint
from tickwork.store.redis.assigning import assign_in_parts, unassign_in
from tickwork.store.redis.claims import waits_on
from tickwork.store.redis.core import Core
from tickwork.store.redis.creating import receipt_of, submit_args
from tickwork.store.redis.dispatch import Dispatch
from tickwork.store.redis.queries import Queries
from tickwork.store.redis.tasks import SLICE, Tasks, moved_on, soonest
from tickwork.store.rules import announce, holds_key, still_gone

CURRENT = "?"  # for an edge whose upstream is still as it ended
HOLD_BACK = 1000  # milliseconds for which an entry of the outbox that cannot be removed yet is left out


class PartitionedTasks(Tasks):
    def __init__(self, core: Core, queries: Queries) -> None:
        super().__init__(core)
        self._queries = queries
        self._dispatch = Dispatch(core, self._finish_part)
        self._held_back: dict[str, int] = {}  # entries of the outbox, and until when they are left out
        core.on_wake_up = self._go_where_work_is

    # --- in

    async def submit(
        self, specs: list[Spec], durability: Durability | None = None, waiter: Hint | None = None
    ) -> list[Receipt]:
        receipts = await self._submit(specs, durability or self._core.durability, self._channel(waiter))
        if waiter is not None:
            announce(waiter, receipts)
        return receipts

    async def _submit(self, specs: list[Spec], durability: Durability, watch: str) -> list[Receipt]:
        if len(specs) == 1 and not specs[0].depends_on:
            return [await self._submit_alone(specs[0], durability, watch)]
        receipts: dict[int, Receipt] = {}
        plain: list[int] = []
        for index, spec in enumerate(specs):
            if not spec.depends_on:
                plain.append(index)
                continue
            await self._submit_plain(specs, plain, receipts, durability)  # it may depend on one of them
            plain = []
            receipts[index] = await self._submit_dependent(spec, durability, watch)
        await self._submit_plain(specs, plain, receipts, durability)
        return [receipts[index] for index in range(len(specs))]

    def submit_blocking(
        self, spec: Spec, durability: Durability | None = None, seconds: float | None = None
    ) -> Receipt | None:
        receipt = super().submit_blocking(spec, durability, seconds)
        if receipt is not None:
            self._core.wake_blocking(spec.queue, self._core.part(spec.id))
        return receipt

    async def _submit_alone(self, spec: Spec, durability: Durability, watch: str) -> Receipt:
        self._check_place(spec)
        part = self._core.part(spec.id)
        (receipt,) = await self._coalescer.submit(part, [spec], durability, watch)
        self._core.wake({spec.queue}, part)
        return receipt

    async def _submit_plain(
        self, specs: list[Spec], places: list[int], receipts: dict[int, Receipt], durability: Durability
    ) -> None:
        groups: dict[str, list[int]] = {}
        for place in places:
            self._check_place(specs[place])
            groups.setdefault(self._core.part(specs[place].id), []).append(place)
        calls = (self._coalescer.submit(part, [specs[i] for i in group], durability) for part, group in groups.items())
        for group, answers in zip(groups.values(), await asyncio.gather(*calls), strict=True):
            receipts.update(zip(group, answers, strict=True))
        for part in groups:
            self._core.wake({specs[place].queue for place in places}, part)

    def _check_place(self, spec: Spec) -> None:
        part_of = self._core.layout.part_of
        if spec.dedup_key is not None and part_of(spec.dedup_key) != part_of(spec.id):
            raise StoreError(
                f"task {spec.id} and its dedup key are in different partitions: leave the id out, and one that fits is "
                "drawn"
            )

    async def submit_tick(self, spec: Spec) -> Receipt:
        """The task of a tick does not wait for tasks that are not there."""
        if spec.depends_on:
            return await self._submit_dependent(spec, self._core.durability, lenient=True)
        (receipt,) = await self.submit([spec])
        return receipt

    async def _submit_dependent(
        self, spec: Spec, durability: Durability, watch: str = "", lenient: bool = False
    ) -> Receipt:
        """List the task with each upstream, create it, and list it again. So it is resolved even if an upstream ends in
        between."""
        self._check_place(spec)
        known = await self._queries.get(spec.id)
        if known is not None:
            if known.spec.nonce != spec.nonce:
                return Receipt(spec.id, "exists")
            await self._look_again(known.spec, known.waiting)  # the call before may have been cut short
            return Receipt(spec.id, "created")
        upstreams = list(dict.fromkeys(spec.depends_on))
        answers = await self.wait_for(spec, upstreams)
        waiting = [upstream for upstream, answer in answers.items() if answer == b"w"]
        missing = [upstream for upstream, answer in answers.items() if answer == b"m"]
        if missing and not lenient:
            await self._take_back_notes(spec.id, waiting)
            holder = await self._dedup_holder(spec)
            return Receipt(spec.id, "duplicate", holder) if holder else Receipt(spec.id, "orphan", missing[0])
        args = submit_args(spec, tuple(waiting), watch)
        (verdict,) = await self._core.run_durably(durability, "submit_with", self._core.part(spec.id), *args)
        receipt = receipt_of(spec, verdict)
        if receipt.verdict == "created":
            await self._look_again(spec, waiting)
            self._core.wake({spec.queue}, self._core.part(spec.id))
        elif receipt.verdict != "exists":
            await self._take_back_notes(spec.id, waiting)
        return receipt

    async def _look_again(self, spec: Spec, waiting: list[str]) -> None:
        """An upstream may have ended, and its dependants may have been told, before this one was there."""
        if waiting:
            answers = await self.wait_for(spec, waiting)
            await self.resolve([Edge(spec.id, each, end == b"s") for each, end in answers.items() if end != b"w"])

    async def _dedup_holder(self, spec: Spec) -> str:
        if spec.dedup_key is None or not self._core.policy.dedup:
            return ""
        part = self._core.part(spec.id)
        value = await self._core.ask(part, "GET", f"{part}dedup:{spec.dedup_key}")
        how, _, holder = (value or b"0 ").decode().partition(" ")
        if how.isdecimal():
            return holder if int(how) > self._core.now() else ""
        known = await self._queries.get(holder)
        return holder if known is not None and holds_key(known.status, known.spec.unique) else ""

    async def wait_for(self, spec: Spec, upstreams: list[str]) -> dict[str, bytes]:
        after_end = int(spec.run_after == "end")
        calls = (
            self._core.run("await", self._core.part(upstream), upstream, spec.id, after_end) for upstream in upstreams
        )
        return dict(zip(upstreams, await asyncio.gather(*calls), strict=True))

    async def _take_back_notes(self, task_id: str, upstreams: list[str]) -> None:
        """The task was refused, so it is not listed with its upstreams any more."""
        await asyncio.gather(
            *(self._core.run("unawait", self._core.part(upstream), upstream, task_id, 1) for upstream in upstreams)
        )

    async def resolve(self, edges: Sequence[Edge]) -> list[bool | None]:
        """Partitions that cannot be reached hold up no other. Whether an upstream was retried is looked up before: a
        retry between these calls is not noticed."""
        states = await self._states({edge.upstream for edge in edges if edge.fence is not None})
        letters: list[str | None] = [_without_looking(edge, states) for edge in edges]
        current = [number for number, letter in enumerate(letters) if letter == CURRENT]
        errors: list[StoreUnavailable] = []

        async def act(part: str, numbers: list[int]) -> list[str | None]:
            found: list[str | None] = []
            try:
                for start in range(0, len(numbers), SLICE):
                    found += await self._resolve_part(part, [edges[each] for each in numbers[start : start + SLICE]])
            except StoreUnavailable as error:
                errors.append(error)
            return found + [None] * (len(numbers) - len(found))

        found = await self._core.by_part(current, [edges[number].dependant for number in current], act)
        for number, letter in zip(current, found, strict=True):
            letters[number] = letter
        if errors and letters.count(None) == len(letters):
            raise errors[0]
        await self._unawait([(edges[number], letter) for number in current if (letter := letters[number]) is not None])
        return [None if letter is None else letter == "1" for letter in letters]

    async def _states(self, ids: set[str]) -> dict[str, bytes]:
        """The replies of `state.lua` for tasks of the partitions that can be reached."""
        groups: dict[str, list[str]] = {}
        for task_id in ids:
            groups.setdefault(self._core.part(task_id), []).append(task_id)

        async def look(part: str) -> dict[str, bytes]:
            found, *_ = await self._core.reached("state", part, *groups[part])
            return dict(zip(groups[part], found, strict=True))

        states: dict[str, bytes] = {}
        for found in (await self._core.reach.each(groups, look, needed=False)).values():
            states |= found
        return states

    async def _unawait(self, told: list[tuple[Edge, str]]) -> None:
        groups: dict[str, list[tuple[Edge, str]]] = {}
        for edge, letter in told:
            groups.setdefault(self._core.part(edge.upstream), []).append((edge, letter))

        async def strike(part: str) -> None:
            for start in range(0, len(groups[part]), SLICE):
                triples = (
                    (edge.upstream, edge.dependant, int(letter != " "))
                    for edge, letter in groups[part][start : start + SLICE]
                )
                for upstream in await self._core.reached("unawait", part, *itertools.chain.from_iterable(triples)):
                    self._held_back[upstream.decode()] = self._core.now() + HOLD_BACK

        await self._core.reach.each(groups, strike, needed=False)  # what stays listed is told once more

    # --- time, dispatch, running, out: each partition has its own fate

    async def promote(self, limit: int) -> int | None:
        parts = self._core.layout.parts
        waits = await self._core.reach.each(parts, lambda part: self._core.reached("promote", part, limit))
        return soonest(waits.values())

    async def claim(self, claim: Claim) -> Claimed:
        self._core.queues.update(waits_on(claim))
        return await self._dispatch.claim(claim)

    async def assign(
        self, assignments: Sequence[Assignment], hold: int, aside: Sequence[Aside] = (), look: Look | None = None
    ) -> Assigned:
        """Each partition is given its tasks, and asked for its share of what is ready: see `assigning.py`."""
        if look is not None:
            self._core.look_at(() if look.shared else look.queues)
        return await assign_in_parts(self._core, assignments, hold, aside, look)

    async def unassign(self, workers: Sequence[str], limit: int) -> list[str]:
        parts = self._core.layout.parts
        found = await self._core.reach.each(parts, lambda part: unassign_in(self._core, part, workers, limit))
        return [task_id for ids in found.values() for task_id in ids]

    async def extend(self, leases: list[Lease], lease_ttl: int) -> list[Extended]:
        groups: dict[str, list[int]] = {}
        for index, lease in enumerate(leases):
            groups.setdefault(self._core.part(lease.id), []).append(index)

        async def renew(part: str) -> list[Extended]:
            return await self._extend_part(part, [leases[index] for index in groups[part]], lease_ttl)

        answers: list[Extended] = ["unknown"] * len(leases)
        for part, replies in (await self._core.reach.each(groups, renew, needed=False)).items():
            for index, reply in zip(groups[part], replies, strict=True):
                answers[index] = reply
        return answers

    async def finish(self, outcomes: list[Outcome], then_claim: Claim | None = None) -> Finished:
        if then_claim is not None:
            self._core.queues.update(waits_on(then_claim))
        finished = await self._dispatch.finish(outcomes, then_claim)
        for outcome, verdict in zip(outcomes, finished.verdicts, strict=True):
            if verdict.status is not None and not verdict.status.ended:
                self._core.wake(set(self._core.queues), self._core.part(outcome.lease.id))
        return finished

    async def reclaim(
        self, limit: int, gone: tuple[str, ...] = (), why: str = "", nodes: tuple[str, ...] = ()
    ) -> Reclaimed:
        """The members are listed under the root. Those in `gone` count as lost when all their tasks were taken back, so
        the root comes last. The limit is that of each partition."""
        parts = self._core.layout.parts
        still = await self._still_gone(gone, nodes)
        dead = tuple(itertools.chain.from_iterable((worker, "") for worker in still))
        found = await self._core.reach.each(parts, lambda part: self._reclaim_part(part, limit, dead, why))
        taken: list[str] = []
        for part, (reclaimed, _) in found.items():
            taken += reclaimed.ids
            if reclaimed.ids:
                self._core.wake(set(self._core.queues), part)
        all_taken = len(found) == len(parts) and all(complete for _, complete in found.values())
        try:
            lost, _ = await self._reclaim_part(self._core.layout.root, limit, dead if all_taken else (), why)
        except StoreUnavailable:  # the tasks were taken back all the same
            return Reclaimed(taken, [])
        return Reclaimed(taken, lost.lost_workers)

    async def _still_gone(self, gone: tuple[str, ...], nodes: tuple[str, ...]) -> tuple[str, ...]:
        if not gone or not nodes:
            return gone
        root = self._core.layout.root
        found = await self._core.ask(root, "HMGET", f"{root}workers:nodes", *gone)
        node_of = {worker: node and node.decode() for worker, node in zip(gone, found, strict=True)}
        return still_gone(gone, nodes, node_of.get)

    async def _living(self, workers: list[bytes]) -> list[int]:
        try:
            return await super()._living(workers)
        except StoreUnavailable:  # nobody knows, so no loss is counted
            return [1] * len(workers)

    # --- outbox

    async def outbox(self, limit: int) -> list[OutboxEntry]:
        """Entries of all partitions in turns, so that those of one do not hold up the others. Neither do entries whose
        dependants are about to be created: they are left out for a moment."""
        now = self._core.now()
        self._held_back = {task_id: until for task_id, until in self._held_back.items() if until > now}
        reach, parts, count = self._core.reach, self._core.layout.parts, limit + len(self._held_back)
        pieces = (await reach.each(parts, lambda part: self._outbox_part(part, count))).values()
        waiting = [[entry for entry in piece if entry.id not in self._held_back] for piece in pieces]
        in_turns = itertools.chain.from_iterable(itertools.zip_longest(*waiting))
        found: list[OutboxEntry] = []
        left = MANY_MAX  # dependants of all entries together
        for entry in [entry for entry in in_turns if entry is not None][:limit]:
            if left > 0 or not entry.dependants:
                found.append(replace(entry, dependants=entry.dependants[:left]))
                left -= len(found[-1].dependants)
        return found

    def _go_where_work_is(self, token: bytes) -> None:
        """Begin the next claim at the partition that a wake-up token names."""
        if token.isdigit():
            self._dispatch.rounds.go_to(int(token))


def _without_looking(edge: Edge, states: dict[str, bytes]) -> str | None:
    """The answer to an edge that is not sent: "0" if its upstream was retried since, None if nobody knows."""
    if edge.fence is None:
        return CURRENT
    state = states.get(edge.upstream)
    if state is None:
        return None
    return "0" if moved_on(state, edge.fence) else CURRENT
