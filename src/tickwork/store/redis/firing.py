"""Firing schedules: the tasks of their ticks are created, and the schedule moves on, in one step."""

from __future__ import annotations

import itertools
from typing import Any

import msgspec

from tickwork.errors import StoreUnavailable
from tickwork.model.schedules import Schedule
from tickwork.model.tasks import Spec
from tickwork.store.contract import Advance, Receipt
from tickwork.store.redis.batches import BATCH, WEIGHT
from tickwork.store.redis.members import TRIES, Members
from tickwork.store.redis.partitions import Partitions
from tickwork.store.redis.tasks import receipt_of, submit_args
from tickwork.store.rules import advanced, fired, held_up, taken
from tickwork.store.unreadable import read_schedule

_encode = msgspec.msgpack.Encoder().encode


class Firing(Partitions, Members):
    async def advance(
        self, schedule_id: str, seen: int | None, step: Advance, ticks: tuple[Spec, ...] = ()
    ) -> Advance | None:
        if not ticks:
            return await self._advance(schedule_id, seen, step)
        packed = [submit_args(spec) for spec in ticks]
        if not self.alone or len(ticks) > BATCH or sum(len(spec) for _, spec, _ in packed) > WEIGHT:
            return await self._advance_in_steps(schedule_id, seen, step, ticks)
        return await self._fire(schedule_id, seen, step, ticks, list(itertools.chain.from_iterable(packed)))

    async def _fire(
        self, schedule_id: str, seen: int | None, step: Advance, ticks: tuple[Spec, ...], packed: list[Any]
    ) -> Advance | None:
        root = self.layout.root
        stored = self._due.pop(schedule_id, None)  # as it was read a moment ago
        for _ in range(TRIES):
            stored = stored or await self.ask(root, "HGET", f"{root}schedules", schedule_id)
            old = None if stored is None else read_schedule(schedule_id, stored)
            if stored is None or old is None or old.unreadable or old.next_at != seen:
                return None
            args = self._fire_args(old, step, ticks)
            reply = await self.run_durably(self.durability, "fire", root, schedule_id, stored, *args, *packed)
            if reply is not None:
                return taken(step, ticks, _receipts(ticks, reply), self.policy)
            stored = None
        raise StoreUnavailable(f"schedule {schedule_id} is changed by others all the time")

    def _fire_args(self, old: Schedule, step: Advance, ticks: tuple[Spec, ...]) -> tuple[Any, ...]:
        made, skipped = fired(step, ticks, self.policy), held_up(step, ticks, "")
        next_at = "" if not old.active or step.next_at is None else step.next_at
        told = [f"{each.missed} ticks" if each.missed else "" for each in (made, skipped)]
        return _encode(advanced(old, made)), _encode(advanced(old, skipped)), next_at, *told, made.fired

    async def _advance_in_steps(
        self, schedule_id: str, seen: int | None, step: Advance, ticks: tuple[Spec, ...]
    ) -> Advance | None:
        """For what one script cannot do, in several partitions, or with too much to carry in one call: the tasks first,
        each of which may be created again to no effect."""
        receipts = []
        for spec in ticks:
            (receipt,) = await self.submit([spec])
            if receipt.verdict == "orphan":
                (receipt,) = await self.submit([msgspec.structs.replace(spec, depends_on=())])
            receipts.append(receipt)
        return await self._advance(schedule_id, seen, taken(step, ticks, receipts, self.policy))


def _receipts(ticks: tuple[Spec, ...], verdicts: list[bytes]) -> list[Receipt]:
    """One for all where the reply to the first call was lost."""
    return [receipt_of(spec, verdict) for spec, verdict in zip(ticks, verdicts, strict=False)]
