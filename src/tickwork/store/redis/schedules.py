"""Schedules on Redis.

A schedule is changed in Python, by the rules that all stores share, and stored if it is still as it was read; otherwise
it is read and changed again. When it fires, one script creates the tasks of its ticks and stores its next tick.
"""

from __future__ import annotations

import itertools
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec
from msgspec.structs import replace

from tickwork.errors import StoreUnavailable
from tickwork.model.facts import Fact
from tickwork.model.schedules import Schedule
from tickwork.model.tasks import Spec, Status
from tickwork.store.contract import SCHEDULES_PAGE, Advance, Receipt
from tickwork.store.redis.batches import BATCH, WEIGHT
from tickwork.store.redis.core import Core, Part
from tickwork.store.redis.creating import receipt_of, submit_args
from tickwork.store.redis.partitions import PartitionedTasks
from tickwork.store.redis.tasks import Tasks, moved_on
from tickwork.store.rules import (
    advance_facts,
    advanced,
    changed,
    fired,
    held_up,
    not_a_cursor,
    put_refused,
    redefined,
    same_definition,
    taken,
)
from tickwork.store.unreadable import read_schedule, refuse_stub

TRIES = 50  # to store a changed schedule; each failure means that another process has stored its own change

_encode = msgspec.msgpack.Encoder().encode

Facts = list[tuple[Fact, str]]
Change = Callable[[Schedule | None], tuple[Schedule | None, Facts] | None]


async def _never() -> bool:
    return False


class Schedules(Part):
    def __init__(self, core: Core, tasks: Tasks) -> None:
        super().__init__(core)
        self._tasks = tasks
        self._due: dict[str, bytes] = {}  # the stored form of schedules that `due` has read, for `advance`
        self._unreadable_due = 0

    async def put(
        self, schedule: Schedule, if_changed: bool = False, create: bool = False, seen: Schedule | None = None
    ) -> Schedule | None:
        refused = False

        def put(old: Schedule | None) -> tuple[Schedule, Facts] | None:
            nonlocal refused
            refused = put_refused(old, create, seen)
            if refused or (old is not None and if_changed and same_definition(old, schedule)):
                return None
            if old is not None and old.unreadable:
                old = None
            return redefined(old, schedule, self._core.now()), [(Fact.SCHEDULE_PUT, schedule.cron or "")]

        stored = await self._swap(schedule.id, put)
        return None if refused else stored

    async def drop(self, schedule_id: str) -> bool:
        found = False

        def drop(old: Schedule | None) -> tuple[None, Facts] | None:
            nonlocal found
            found = old is not None
            return (None, [(Fact.SCHEDULE_DROPPED, "")]) if found else None

        await self._swap(schedule_id, drop)
        return found

    async def get(self, schedule_id: str) -> Schedule | None:
        root = self._core.layout.root
        blob = await self._core.ask(root, "HGET", f"{root}schedules", schedule_id)
        return None if blob is None else read_schedule(schedule_id, blob)

    async def page(self, cursor: str | None = None) -> tuple[list[Schedule], str | None]:
        root, found = self._core.layout.root, dict[bytes, bytes]()
        place = cursor or "0"
        if not (place.isascii() and place.isdecimal()) or cursor == "0":
            raise not_a_cursor(cursor)
        while len(found) < SCHEDULES_PAGE:
            step, pairs = await self._core.ask(
                root, "HSCAN", f"{root}schedules", place, "COUNT", SCHEDULES_PAGE - len(found)
            )
            found.update(zip(pairs[::2], pairs[1::2], strict=True))
            place = step.decode()
            if place == "0":
                break
        schedules = [read_schedule(name.decode(), found[name]) for name in sorted(found)]
        return schedules, None if place == "0" else place

    async def due(self, limit: int, after: str | None = None) -> tuple[list[Schedule], int | None]:
        # Schedules that cannot be read stay due, since a leader of a newer version may be able to fire them.
        args = (limit + self._unreadable_due, after or "")
        now, later, *blobs = await self._core.run("due", self._core.layout.root, *args)
        self._core.set_clock(now)
        found = [(read_schedule("", blob), blob) for blob in blobs if blob]
        due = [(schedule, blob) for schedule, blob in found if not schedule.unreadable]
        self._unreadable_due = len(blobs) - len(due)
        self._due = {schedule.id: blob for schedule, blob in due[:limit]}
        more = len(due) > limit
        return [schedule for schedule, _ in due[:limit]], 0 if more else None if later < 0 else later

    async def change(
        self,
        schedule_id: str,
        *,
        paused: bool | None = None,
        next_at: int | None = None,
        stopped: str | None = None,
    ) -> bool:
        found = False

        def alter(old: Schedule | None) -> tuple[Schedule, Facts] | None:
            nonlocal found
            found = old is not None
            if old is None:
                return None
            refuse_stub(old)
            fact = Fact.SCHEDULE_STOPPED if stopped else Fact.SCHEDULE_PUT
            return changed(old, self._core.now(), paused, next_at, stopped), [(fact, stopped or "")]

        await self._swap(schedule_id, alter)
        return found

    async def report_run(
        self, schedule_id: str, task_id: str, status: Status, fence: int | None = None
    ) -> Schedule | None:
        async def too_late() -> bool:
            if fence is None:
                return False
            ((found,), *_) = await self._core.reached("state", self._core.part(task_id), task_id)
            return moved_on(found, fence)

        def report(old: Schedule | None) -> tuple[Schedule, Facts] | None:
            if old is None or old.last_task_id != task_id:
                return None
            return replace(old, last_status=status.value), []

        return await self._swap(schedule_id, report, void=too_late)

    async def _swap(
        self, schedule_id: str, change: Change, seen: bytes | None = None, void: Callable[[], Awaitable[bool]] = _never
    ) -> Schedule | None:
        """Read a schedule, change it, and store it if it is still the same; answers the schedule that is stored then.
        `change` answers None to leave it as it is. `void` is called each time the schedule was read: if it answers
        True, the change comes too late and is not made. `seen` is the stored form, if it was read before."""
        root = self._core.layout.root
        for _ in range(TRIES):
            if seen is None:
                seen = await self._core.ask(root, "HGET", f"{root}schedules", schedule_id)
            old = None if seen is None else read_schedule(schedule_id, seen)
            if await void():
                return None
            step = change(old)
            if step is None:
                return old
            new, facts = step
            next_at = "" if new is None or not new.active or new.next_at is None else new.next_at
            details = [part for fact, detail in facts for part in (fact.value, detail)]
            blob = b"" if new is None else _encode(new)
            if await self._core.run("swap", root, schedule_id, seen or b"", blob, next_at, *details):
                return new
            seen = None
        raise StoreUnavailable(f"schedule {schedule_id} is changed by others all the time")

    # --- firing

    async def advance(
        self, schedule_id: str, seen: int | None, step: Advance, ticks: tuple[Spec, ...] = ()
    ) -> Advance | None:
        if not ticks:
            return await self._advance(schedule_id, seen, step)
        packed = [submit_args(spec) for spec in ticks]
        if not self._core.alone or len(ticks) > BATCH or sum(len(spec) for _, spec, _ in packed) > WEIGHT:
            return await self._advance_in_steps(schedule_id, seen, step, ticks)
        return await self._fire(schedule_id, seen, step, ticks, list(itertools.chain.from_iterable(packed)))

    async def _fire(
        self, schedule_id: str, seen: int | None, step: Advance, ticks: tuple[Spec, ...], packed: list[Any]
    ) -> Advance | None:
        root = self._core.layout.root
        stored = self._due.pop(schedule_id, None)  # as `due` has read it
        for _ in range(TRIES):
            stored = stored or await self._core.ask(root, "HGET", f"{root}schedules", schedule_id)
            old = None if stored is None else read_schedule(schedule_id, stored)
            if stored is None or old is None or old.unreadable or old.next_at != seen:
                return None
            args = self._fire_args(old, step, ticks)
            reply = await self._core.run_durably(
                self._core.durability, "fire", root, schedule_id, stored, *args, *packed
            )
            if reply is not None:
                return taken(step, ticks, _receipts(ticks, reply), self._core.policy)
            stored = None
        raise StoreUnavailable(f"schedule {schedule_id} is changed by others all the time")

    def _fire_args(self, old: Schedule, step: Advance, ticks: tuple[Spec, ...]) -> tuple[Any, ...]:
        made, skipped = fired(step, ticks, self._core.policy), held_up(step, ticks, "")
        next_at = "" if not old.active or step.next_at is None else step.next_at
        details = [f"{each.missed} ticks" if each.missed else "" for each in (made, skipped)]
        return _encode(advanced(old, made)), _encode(advanced(old, skipped)), next_at, *details, made.fired

    async def _advance_in_steps(
        self, schedule_id: str, seen: int | None, step: Advance, ticks: tuple[Spec, ...]
    ) -> Advance | None:
        """Advance in several calls, for several partitions or for more tasks than one call can carry. The tasks are
        created first; creating them again has no effect while they are there."""
        found = await self.get(schedule_id)
        if found is None or found.unreadable or found.next_at != seen:
            return None
        receipts = [await self._create(spec) for spec in ticks]
        return await self._advance(schedule_id, seen, taken(step, ticks, receipts, self._core.policy))

    async def _create(self, spec: Spec) -> Receipt:
        tasks = self._tasks
        if isinstance(tasks, PartitionedTasks):  # a tick whose partition cannot be reached does not hold up the others
            return await self._core.reach.call(self._core.part(spec.id), lambda: tasks.submit_tick(spec))
        (receipt,) = await tasks.submit([spec])
        if receipt.verdict == "orphan":
            (receipt,) = await tasks.submit([replace(spec, depends_on=())])
        return receipt

    async def _advance(self, schedule_id: str, seen: int | None, step: Advance) -> Advance | None:
        done = False

        def move(old: Schedule | None) -> tuple[Schedule, Facts] | None:
            nonlocal done
            done = old is not None and not old.unreadable and old.next_at == seen
            return (advanced(old, step), advance_facts(step)) if old is not None and done else None

        await self._swap(schedule_id, move, self._due.pop(schedule_id, None))  # as `due` has read it
        return step if done else None


def _receipts(ticks: tuple[Spec, ...], verdicts: list[bytes]) -> list[Receipt]:
    """The receipts of the ticks. There is only one verdict if the call was repeated because its reply was lost."""
    return [receipt_of(spec, verdict) for spec, verdict in zip(ticks, verdicts, strict=False)]
