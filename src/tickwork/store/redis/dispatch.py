"""Claims and ends over several partitions. `rounds.py` says where a claim begins, `reach.py` which partitions answer.

A claim takes from one partition after another until it has enough. Each remembers its answer to the last claim of a
turn, by the nonce of the claim. If a partition did not answer, it may have granted tasks all the same; so the claim is
sent to it again when it can be reached, before any other claim of that turn.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from msgspec.structs import replace

from tickwork.errors import StoreUnavailable
from tickwork.model.outcomes import Outcome, Released
from tickwork.store.contract import Claim, Claimed, Finished, Grant, Verdict
from tickwork.store.redis.claims import claim_args, claim_from, read_claimed
from tickwork.store.redis.core import Core, Part
from tickwork.store.redis.reach import raise_refusals
from tickwork.store.redis.rounds import Rounds
from tickwork.store.rules import is_suspect

Turn = tuple[str, int]
FinishPart = Callable[[str, list[Outcome], tuple[Any, ...]], Awaitable[tuple[list[Verdict], Any]]]


class Dispatch(Part):
    def __init__(self, core: Core, finish_part: FinishPart) -> None:
        super().__init__(core)
        self._parts = core.layout.parts
        self._finish_part = finish_part
        self._unanswered: dict[Turn, dict[int, Claim]] = {}  # by place: the claim that it has not answered
        self._visited: dict[Turn, tuple[str, list[int]]] = {}  # nonce of the last claim, and where it went, in order
        self.rounds = Rounds(len(core.layout.parts))

    # --- claims

    async def claim(self, claim: Claim, claimed: Claimed | None = None, seen: int | None = None) -> Claimed:
        """Fill `claimed` up to the limit of the claim. `seen` is the partition that has given it already."""
        claimed = claimed or Claimed([])
        places = [place for place in self._places_for(claim) if place != seen]
        if claim.limit and len(claimed.grants) >= claim.limit:
            return claimed
        errors: list[StoreUnavailable] = []
        suspect = await self._runs_suspect(claim)
        for place in places:
            try:
                part = await self._claim_from(place, claim, claim.limit - len(claimed.grants), suspect)
            except StoreUnavailable as error:
                errors.append(error)
                continue
            suspect = suspect or self._note_suspect(claim, part.grants)
            claimed = _added(claimed, part)
            if claim.limit and len(claimed.grants) >= claim.limit:
                self._core.wake(set(claim.queues), self._parts[place])
                break
        if len(errors) == len(self._parts):
            raise errors[0]
        return claimed

    def _places_for(self, claim: Claim) -> list[int]:
        """The order in which a claim goes to the partitions. One that is sent again goes the same way, so that it gets
        the same tasks; else those that have not answered the claim before come first."""
        nonce, visited = self._visited.get((claim.worker_id, claim.turn), ("", []))
        first = visited if nonce == claim.nonce else list(self._unanswered.get((claim.worker_id, claim.turn), ()))
        return first + [place for place in self.rounds.order() if place not in first]

    async def _claim_from(self, place: int, claim: Claim, limit: int, suspect: bool) -> Claimed:
        await self._ask_again(place, claim)
        args = claim_args(replace(claim, limit=limit), suspect)
        claimed: Claimed = await self._call(
            place, claim, lambda: claim_from(self._core, self._parts[place], claim, args)
        )
        self.rounds.claimed(place, len(claimed.grants) + len(claimed.unreadable) >= limit)
        return claimed

    async def _call(self, place: int, claim: Claim, act: Callable[[], Awaitable[Any]]) -> Any:
        """Call a partition with a claim, and remember the claim if it does not answer."""
        turn = claim.worker_id, claim.turn
        nonce, visited = self._visited.get(turn, ("", []))
        if nonce != claim.nonce:
            self._visited[turn] = claim.nonce, [place]
        elif place not in visited:
            visited.append(place)
        called = self._core.reach.has(self._parts[place])
        try:
            reply = await self._core.reach.call(self._parts[place], act)
        except (StoreUnavailable, asyncio.CancelledError):
            if called:
                self._unanswered.setdefault(turn, {})[place] = claim
            raise
        self._answered(turn, place)
        return reply

    def _answered(self, turn: Turn, place: int) -> None:
        if turn in self._unanswered:
            self._unanswered[turn].pop(place, None)
            if not self._unanswered[turn]:
                del self._unanswered[turn]

    async def _ask_again(self, place: int, claim: Claim) -> None:
        """Give back what an earlier claim of this turn was granted here without an answer. It is sent again for no more
        tasks, so that it gets only those."""
        turn = claim.worker_id, claim.turn
        earlier = self._unanswered.get(turn, {}).get(place)
        if earlier is None or earlier.nonce == claim.nonce:
            return
        part, args = self._parts[place], claim_args(replace(earlier, limit=0))
        granted = await self._core.reach.call(part, lambda: claim_from(self._core, part, earlier, args))
        released: list[Outcome] = [Released(grant.lease) for grant in granted.grants]
        released += [Released(unreadable.lease) for unreadable in granted.unreadable]
        if released:
            await self._core.reach.call(part, lambda: self._finish_part(part, released, ()))
        self._answered(turn, place)

    # --- suspects: a process runs only one at a time (see `rules.is_suspect`), whatever its partition

    async def _runs_suspect(self, claim: Claim) -> bool:
        task_id, fence = self._core.suspects.get(claim.process, ("", 0))
        if not task_id:
            return False
        part = self._core.part(task_id)
        try:
            ((state,), *_) = await self._core.reached("state", part, task_id)
        except StoreUnavailable:
            return True
        if state[:1] == b"x" and int(state.partition(b".")[2]) == fence:
            return True
        self._core.suspects.pop(claim.process, None)
        return False

    def _note_suspect(self, claim: Claim, grants: list[Grant]) -> bool:
        for grant in grants:
            if is_suspect(grant, self._core.policy):
                self._core.suspects[claim.process] = grant.spec.id, grant.lease.fence
                return True
        return False

    # --- ends

    async def finish(self, outcomes: list[Outcome], then_claim: Claim | None) -> Finished:
        groups: dict[int, list[int]] = {}
        for index, outcome in enumerate(outcomes):
            groups.setdefault(self._core.layout.part_of(outcome.lease.id), []).append(index)
        here = self._place_of(then_claim, groups)
        places = list(groups)
        replies = await asyncio.gather(
            *(
                self._finish_in(place, [outcomes[i] for i in groups[place]], then_claim if place == here else None)
                for place in places
            ),
            return_exceptions=True,
        )
        errors = [reply for reply in replies if isinstance(reply, BaseException)]
        raise_refusals(errors)
        verdicts, claimed = [Verdict("later")] * len(outcomes), Claimed([])
        for place, reply in zip(places, replies, strict=True):
            if isinstance(reply, BaseException):
                continue
            for index, verdict in zip(groups[place], reply[0], strict=True):
                verdicts[index] = verdict
            if place == here and then_claim is not None:
                claimed = reply[1]
                self._note_suspect(then_claim, claimed.grants)
                self.rounds.claimed(place, len(claimed.grants) + len(claimed.unreadable) >= then_claim.limit)
        if then_claim is None:
            if outcomes and len(errors) == len(places):
                raise errors[0]
            return Finished(verdicts, None, bool(errors))
        answered = here if here is not None and not isinstance(replies[places.index(here)], BaseException) else None
        claimed = await self.claim(then_claim, claimed, answered)
        if then_claim.assigned and len(claimed.grants) < then_claim.limit:  # no script sees whether there are more
            self._core.wake(set(then_claim.assigned), self._parts[self.rounds.place])
        return Finished(verdicts, claimed, bool(errors))

    def _place_of(self, claim: Claim | None, groups: dict[int, list[int]]) -> int | None:
        """The partition that gets the claim together with outcomes, if it is its turn and has some."""
        place = self.rounds.place
        if claim is None or place not in groups or claim.process in self._core.suspects:
            return None
        turn = claim.worker_id, claim.turn
        sent_before = self._visited.get(turn, ("",))[0] == claim.nonce
        return None if sent_before or place in self._unanswered.get(turn, ()) else place

    async def _finish_in(
        self, place: int, outcomes: list[Outcome], claim: Claim | None
    ) -> tuple[list[Verdict], Claimed]:
        part = self._parts[place]

        async def finish(claim: Claim) -> tuple[list[Verdict], Claimed]:
            args = claim_args(claim)
            verdicts, reply = await self._finish_part(part, outcomes, args)
            return verdicts, await read_claimed(self._core, part, reply, claim, args)

        if claim is None:
            verdicts, _ = await self._core.reach.call(part, lambda: self._finish_part(part, outcomes, ()))
            return verdicts, Claimed([])
        found: tuple[list[Verdict], Claimed] = await self._call(place, claim, lambda: finish(claim))
        return found


def _added(claimed: Claimed, more: Claimed) -> Claimed:
    waits = [wait for wait in (claimed.next_due_in, more.next_due_in) if wait is not None]
    return Claimed(claimed.grants + more.grants, min(waits, default=None), claimed.unreadable + more.unreadable)
