"""The transitions of tasks: arguments for the scripts, and what their replies mean.

`partitions.py` extends this for namespaces with several partitions.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterable, Sequence
from typing import Any

from tickwork.errors import StoreError
from tickwork.forks import keep, tell_of_forks
from tickwork.model.outcomes import Outcome
from tickwork.model.policy import Durability
from tickwork.model.tasks import ENDS, Lease, Spec
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
    Verdict,
)
from tickwork.store.hints import Hint
from tickwork.store.redis.assigning import assign_in, unassign_in
from tickwork.store.redis.batches import Coalescer
from tickwork.store.redis.claims import claim_args, claim_from, read_claimed, waits_on
from tickwork.store.redis.core import Core, Part
from tickwork.store.redis.creating import submit_args
from tickwork.store.redis.records import CODES, STATUSES
from tickwork.store.redis.reports import pack_outcome
from tickwork.store.redis.short import ShortSubmit
from tickwork.store.redis.standing import StandingClaims
from tickwork.store.rules import announce

SLICE = 50  # tasks in one script of those that steer many, so that it takes no more than a few milliseconds
NOTE_BITS = 48  # of the random number by which a note that is sent again is recognised

ENDED = frozenset(CODES[status].encode() for status in ENDS)
ENDINGS = {
    "l ": Verdict("lost", None),
    **{f"d{code}": Verdict("done", status) for code, status in STATUSES.items()},
    **{f"a{code}": Verdict("already", status) for code, status in STATUSES.items()},
}
ANSWERS: dict[bytes, Extended] = {b"h": "held", b"c": "cancel", b"l": "lost"}


class Tasks(Part):
    def __init__(self, core: Core) -> None:
        super().__init__(core)
        self._short = ShortSubmit(core)
        self._coalescer = Coalescer(core, self._short)
        self._standing = StandingClaims(core)
        tell_of_forks(self)

    def after_fork(self) -> None:
        keep(self._coalescer)
        self._coalescer = Coalescer(self._core, self._short)

    # --- in

    async def submit(
        self, specs: list[Spec], durability: Durability | None = None, waiter: Hint | None = None
    ) -> list[Receipt]:
        durability, watch = durability or self._core.durability, self._channel(waiter)
        receipts = await self._coalescer.submit(self._core.layout.root, specs, durability, watch)
        if waiter is not None:
            announce(waiter, receipts)
        return receipts

    def _channel(self, waiter: Hint | None) -> str:
        """The channel on which the end of a task is to be published; none if nobody waits for it."""
        return "" if waiter is None else self._core.channel

    def submit_blocking(
        self, spec: Spec, durability: Durability | None = None, seconds: float | None = None
    ) -> Receipt | None:
        core = self._core
        if (durability or core.durability) != "memory":
            return None
        try:
            packed = submit_args(spec)
        except StoreError:  # `submit` raises it too
            return None
        is_created = self._short.create_blocking(core.part(spec.id), spec, packed, seconds)
        return Receipt(spec.id, "created") if is_created else None

    async def resolve(self, edges: Sequence[Edge]) -> list[bool | None]:
        found = await self._core.by_slices(list(edges), [edge.dependant for edge in edges], SLICE, self._resolve_part)
        return [answer == "1" for answer in found]

    async def _resolve_part(self, prefix: str, edges: list[Edge]) -> str:
        """A letter for each edge: see `resolve.lua`."""
        args: list[Any] = []
        for edge in edges:
            args += (edge.dependant, edge.upstream, int(edge.ok), "" if edge.fence is None else edge.fence)
        letters, *queues = await self._core.reached("resolve", prefix, *args)
        self._core.wake({queue.decode() for queue in queues}, prefix)
        answers: str = letters.decode()
        return answers

    # --- time

    async def promote(self, limit: int) -> int | None:
        return soonest([await self._core.reached("promote", self._core.layout.root, limit)])

    # --- dispatch

    async def claim(self, claim: Claim) -> Claimed:
        self._core.queues.update(waits_on(claim))
        return await claim_from(self._core, self._core.layout.root, claim, claim_args(claim))

    async def stand(self, claim: Claim, seconds: float) -> Claimed | None:
        return await self._standing.stand(claim, seconds)

    async def recall(self, claim: Claim) -> None:
        await self._standing.recall(claim)

    async def assign(
        self, assignments: Sequence[Assignment], hold: int, aside: Sequence[Aside] = (), look: Look | None = None
    ) -> Assigned:
        if look is not None:
            self._core.look_at(() if look.shared else look.queues)
        return await assign_in(self._core, self._core.layout.root, assignments, hold, aside, look)

    async def unassign(self, workers: Sequence[str], limit: int) -> list[str]:
        return await unassign_in(self._core, self._core.layout.root, workers, limit)

    # --- running

    async def extend(self, leases: list[Lease], lease_ttl: int) -> list[Extended]:
        return await self._extend_part(self._core.layout.root, leases, lease_ttl)

    async def _extend_part(self, prefix: str, leases: list[Lease], lease_ttl: int) -> list[Extended]:
        proofs = itertools.chain.from_iterable((lease.id, lease.fence, lease.nonce) for lease in leases)
        return [
            ANSWERS[reply] for reply in await self._core.reached("extend", prefix, lease_ttl, *proofs, purpose="work")
        ]

    async def note(self, lease: Lease, progress: float | None, text: str, lines: list[str]) -> bool:
        number = "" if progress is None else repr(float(progress))
        call = (lease.id, lease.fence, lease.nonce, random.getrandbits(NOTE_BITS))
        return bool(
            await self._core.reached("note", self._core.part(lease.id), *call, number, text, *lines, purpose="work")
        )

    # --- out

    async def finish(self, outcomes: list[Outcome], then_claim: Claim | None = None) -> Finished:
        if then_claim is not None:
            self._core.queues.update(waits_on(then_claim))
        next_claim = () if then_claim is None else claim_args(then_claim)
        verdicts, reply = await self._finish_part(self._core.layout.root, outcomes, next_claim)
        if then_claim is None:
            return Finished(verdicts)
        root = self._core.layout.root
        return Finished(verdicts, await read_claimed(self._core, root, reply, then_claim, next_claim))

    async def _finish_part(
        self, prefix: str, outcomes: list[Outcome], next_claim: tuple[Any, ...] = ()
    ) -> tuple[list[Verdict], Any]:
        packed = map(pack_outcome, outcomes)
        verdicts, dropped, claimed = _three(
            await self._core.run("finish", prefix, len(outcomes), *packed, *next_claim, purpose="work")
        )
        self._core.warn_of_dropped(dropped)
        text = verdicts.decode()
        return [ENDINGS[text[at : at + 2]] for at in range(0, len(text), 2)], claimed

    async def reclaim(
        self, limit: int, gone: tuple[str, ...] = (), why: str = "", nodes: tuple[str, ...] = ()
    ) -> Reclaimed:
        dead = tuple(itertools.chain.from_iterable(zip(gone, nodes or ("",) * len(gone), strict=True)))
        found, _ = await self._reclaim_part(self._core.layout.root, limit, dead, why)
        return found

    async def _reclaim_part(self, prefix: str, limit: int, dead: tuple[str, ...], why: str) -> tuple[Reclaimed, bool]:
        """Call the script until enough tasks are found, or nobody asks whether a worker lives. Answers also whether it
        has taken back all tasks of dead workers."""
        found = Reclaimed([], [])
        living: dict[bytes, int] = {}
        while True:
            known = itertools.chain.from_iterable(living.items())
            args = (limit - len(found.ids), why or "its process is gone", len(living), *known, *dead)
            taken, lost, dropped, asked = await self._core.reached("reclaim", prefix, *args)
            found.ids.extend(task_id.decode() for task_id in taken)
            found.lost_workers.extend(worker.decode() for worker in lost)
            self._core.warn_of_dropped(dropped)
            if len(found.ids) >= limit or not asked:
                return found, len(found.ids) < limit
            living.update(zip(asked, await self._living(asked), strict=True))

    async def _living(self, workers: list[bytes]) -> list[int]:
        """Whether each of these workers is a member."""
        found: list[int] = await self._core.reached("living", self._core.layout.root, *workers)
        return found

    # --- outbox

    async def outbox(self, limit: int) -> list[OutboxEntry]:
        return await self._outbox_part(self._core.layout.root, limit)

    async def _outbox_part(self, part: str, limit: int) -> list[OutboxEntry]:
        found: list[OutboxEntry] = []
        reply = await self._core.reached("outbox", part, limit, MANY_MAX)
        for task_id, status, fence, dependants in zip(*(reply[n::4] for n in range(4)), strict=True):
            schedule = status[1:].decode("utf-8", "backslashreplace") or None
            waiting = tuple(each.decode() for each in dependants)
            ended = int(fence) if fence else None
            found.append(OutboxEntry(task_id.decode(), STATUSES[status[:1].decode()], waiting, schedule, ended))
        return found

    async def clear_outbox(self, told: list[OutboxEntry]) -> None:
        groups: dict[str, list[OutboxEntry]] = {}
        for entry in told:
            groups.setdefault(self._core.part(entry.id), []).append(entry)

        async def strike(prefix: str) -> None:
            pairs = ((entry.id, "" if entry.fence is None else entry.fence) for entry in groups[prefix])
            await self._core.reached("clear_outbox", prefix, *itertools.chain.from_iterable(pairs))

        await self._core.reach.each(groups, strike)


def _three(reply: list[Any]) -> tuple[Any, Any, Any]:
    return reply[0], reply[1], reply[2] if len(reply) > 2 else None


def moved_on(state: bytes, fence: int | None) -> bool:
    """Whether a task was retried since the end with that fence. `state` is the reply of `state.lua`."""
    if fence is None or state == b" ":
        return False
    return state[:1] not in ENDED or int(state.partition(b".")[2]) != fence


def soonest(waits: Iterable[int]) -> int | None:
    return min((wait for wait in waits if wait >= 0), default=None)
