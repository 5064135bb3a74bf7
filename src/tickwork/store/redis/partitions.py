"""Tasks in several partitions: the hash of a task's id decides its partition, and claims visit one after another.

Priority and order are strict only inside a partition. An operation on tasks of two partitions (a dependency) takes
several calls. Each may be repeated, and they come in an order in which a crash between them leaves no task waiting for
ever.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from itertools import chain

from msgspec.structs import replace

from tickwork.errors import StoreError, StoreUnavailable
from tickwork.ids import partition_of
from tickwork.model.outcomes import Outcome
from tickwork.model.policy import Durability
from tickwork.model.tasks import Spec
from tickwork.store.contract import Claim, Claimed, Edge, Finished, Grant, Receipt, Reclaimed, Unreadable, Verdict
from tickwork.store.redis.core import Core
from tickwork.store.redis.creating import receipt_of, submit_args
from tickwork.store.redis.queries import Queries
from tickwork.store.redis.tasks import SLICE, Tasks, claim_args, claimed_of

STAY = 8  # claims in one partition before the next one is visited, while it has work


class PartitionedTasks(Tasks):
    def __init__(self, core: Core, queries: Queries) -> None:
        super().__init__(core)
        self._queries = queries
        core.on_wake_up = self._go_where_work_is
        self._place = 0  # where the next claim begins
        self._stayed = 0
        self._began: dict[
            tuple[str, int], tuple[str, int]
        ] = {}  # worker and turn -> nonce of its last claim, and where

    # --- in

    async def submit(self, specs: list[Spec], durability: Durability | None = None) -> list[Receipt]:
        durability = durability or self._core.durability
        receipts: dict[int, Receipt] = {}
        plain: list[int] = []
        for index, spec in enumerate(specs):
            if not spec.depends_on:
                plain.append(index)
                continue
            await self._submit_plain(specs, plain, receipts, durability)  # it may depend on one of them
            plain = []
            receipts[index] = await self._submit_dependent(spec, durability)
        await self._submit_plain(specs, plain, receipts, durability)
        return [receipts[index] for index in range(len(specs))]

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
        count = len(self._core.layout.parts)
        if spec.dedup_key is not None and partition_of(spec.dedup_key, count) != partition_of(spec.id, count):
            raise StoreError(
                f"task {spec.id} and its dedup key are in different partitions: leave the id out, and one that fits is "
                "drawn"
            )

    async def _submit_dependent(self, spec: Spec, durability: Durability) -> Receipt:
        """List the task with each upstream, create it, and list it again. So it is resolved even if an upstream ends in
        between."""
        self._check_place(spec)
        known = await self._queries.get(spec.id)
        if known is not None:
            return Receipt(spec.id, "created" if known.spec.nonce == spec.nonce else "exists")
        upstreams = list(dict.fromkeys(spec.depends_on))
        answers = await self.wait_for(spec, upstreams)
        for upstream, answer in answers.items():
            if answer == b"m":
                return Receipt(spec.id, "orphan", upstream)
        waiting = [upstream for upstream, answer in answers.items() if answer == b"w"]
        args = submit_args(spec, tuple(waiting))
        (verdict,) = await self._core.run_durably(durability, "submit_with", self._core.part(spec.id), *args)
        receipt = receipt_of(spec, verdict)
        if receipt.verdict == "created":
            answers = await self.wait_for(spec, waiting)
            await self.resolve([Edge(spec.id, each, end == b"s") for each, end in answers.items() if end != b"w"])
            self._core.wake({spec.queue}, self._core.part(spec.id))
        return receipt

    async def wait_for(self, spec: Spec, upstreams: list[str]) -> dict[str, bytes]:
        after_end = int(spec.run_after == "end")
        calls = (
            self._core.run("await", self._core.part(upstream), upstream, spec.id, after_end) for upstream in upstreams
        )
        return dict(zip(upstreams, await asyncio.gather(*calls), strict=True))

    async def resolve(self, edges: Sequence[Edge]) -> list[bool | None]:
        """Partitions of dependants that cannot be reached hold up no other."""
        errors: list[StoreUnavailable] = []

        async def act(part: str, group: list[Edge]) -> list[str | None]:
            answers: list[str | None] = []
            try:
                for start in range(0, len(group), SLICE):
                    answers += await self._resolve_part(part, group[start : start + SLICE])
            except StoreUnavailable as error:
                errors.append(error)
            return answers + [None] * (len(group) - len(answers))

        found = await self._core.by_part(list(edges), [edge.dependant for edge in edges], act)
        told = [(edge, letter) for edge, letter in zip(edges, found, strict=True) if letter is not None]
        if errors and not told:
            raise errors[0]
        await self._core.by_slices(told, [edge.upstream for edge, _ in told], SLICE, self._unawait)
        return [None if letter is None else letter == "1" for letter in found]

    async def _unawait(self, part: str, told: list[tuple[Edge, str]]) -> list[None]:
        args = ((edge.upstream, edge.dependant, int(letter != " ")) for edge, letter in told)
        await self._core.run("unawait", part, *chain.from_iterable(args))
        return [None] * len(told)

    async def reclaim(
        self, limit: int, gone: tuple[str, ...] = (), why: str = "", nodes: tuple[str, ...] = ()
    ) -> Reclaimed:
        taken = await super().reclaim(limit, gone, why, nodes)
        for part in {self._core.part(task_id) for task_id in taken.ids}:
            self._core.wake(set(self._core.queues), part)
        return taken

    # --- dispatch and out

    async def claim(self, claim: Claim) -> Claimed:
        self._core.queues.update(dict.fromkeys(claim.queues))
        return await self._claim_around(claim, ())

    async def _claim_around(self, claim: Claim, seen: tuple[int, ...]) -> Claimed:
        count = len(self._core.layout.parts)
        grants: list[Grant] = []
        unreadable: list[Unreadable] = []
        waits: list[int] = []
        start = self._start_of(claim)
        for place in ((start + step) % count for step in range(count)):
            if place in seen:
                continue
            part, rest = self._core.layout.parts[place], replace(claim, limit=claim.limit - len(grants))
            try:
                reply = claimed_of(await self._core.run("claim", part, *claim_args(rest), purpose="work"), claim)
            except StoreUnavailable:
                if not grants:
                    raise
                break  # the tasks granted so far must be returned
            grants += reply.grants
            unreadable += reply.unreadable
            waits += [] if reply.next_due_in is None else [reply.next_due_in]
            self._go_on(place, bool(reply.grants))
            if len(grants) >= claim.limit:
                self._core.wake(set(claim.queues), part)
                break
        return Claimed(grants, min(waits, default=None), unreadable)

    def _start_of(self, claim: Claim, place: int | None = None) -> int:
        """The partition at which this claim begins. A claim that is sent again begins at the same one."""
        nonce, began = self._began.get((claim.worker_id, claim.turn), ("", 0))
        if nonce != claim.nonce:
            began = self._place if place is None else place
            self._began[claim.worker_id, claim.turn] = claim.nonce, began
        return began

    def _go_on(self, place: int, found: bool) -> None:
        self._stayed = self._stayed + 1 if found else 0
        if not found or self._stayed >= STAY:
            self._place, self._stayed = (place + 1) % len(self._core.layout.parts), 0
        else:
            self._place = place

    async def finish(self, outcomes: list[Outcome], then_claim: Claim | None = None) -> Finished:
        groups: dict[int, list[int]] = {}
        for index, outcome in enumerate(outcomes):
            groups.setdefault(self._core.layout.part_of(outcome.lease.id), []).append(index)
        here = -1
        if then_claim is not None and groups:
            here = self._start_of(then_claim, sorted(groups)[partition_of(then_claim.nonce, len(groups))])
        next_claim = () if then_claim is None else claim_args(then_claim)
        replies = await asyncio.gather(
            *(
                self._finish_part(
                    self._core.layout.parts[place], [outcomes[i] for i in group], next_claim if place == here else ()
                )
                for place, group in groups.items()
            )
        )
        verdicts: dict[int, Verdict] = {}
        claimed = Claimed([], None)
        for (place, group), (answers, reply) in zip(groups.items(), replies, strict=True):
            verdicts.update(zip(group, answers, strict=True))
            if place == here and then_claim is not None:
                claimed = claimed_of(reply, then_claim)
                self._go_on(place, bool(claimed.grants))
        self._wake_unfinished(outcomes, verdicts)
        if then_claim is not None:
            claimed = await self._fill_up(claimed, then_claim, (here,) if here in groups else ())
        ordered = [verdicts[index] for index in range(len(outcomes))]
        return Finished(ordered, None if then_claim is None else claimed)

    async def _fill_up(self, claimed: Claimed, claim: Claim, seen: tuple[int, ...]) -> Claimed:
        missing = claim.limit - len(claimed.grants)
        if missing <= 0:
            return claimed
        try:
            rest = await self._claim_around(replace(claim, limit=missing), seen)
        except StoreUnavailable:
            if not claimed.grants:
                raise
            return claimed
        waits = [wait for wait in (claimed.next_due_in, rest.next_due_in) if wait is not None]
        unreadable = claimed.unreadable + rest.unreadable
        return Claimed(claimed.grants + rest.grants, min(waits, default=None), unreadable)

    def _wake_unfinished(self, outcomes: list[Outcome], verdicts: dict[int, Verdict]) -> None:
        for index, verdict in verdicts.items():
            if verdict.status is not None and not verdict.status.ended:
                self._core.wake(set(self._core.queues), self._core.part(outcomes[index].lease.id))

    def _go_where_work_is(self, token: bytes) -> None:
        """Begin the next claim at the partition that a wake-up token names."""
        if token.isdigit():
            self._place, self._stayed = int(token) % len(self._core.layout.parts), 0
