"""Assignments: the arguments of `assign.lua`, and what it answers."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from typing import Any

from tickwork.model.tasks import ParkReason
from tickwork.store.contract import LOOK_MAX, Aside, Assigned, Assignment, Look, Seen, Waiting
from tickwork.store.redis.core import Core
from tickwork.store.redis.records import LANES, key_in_label
from tickwork.store.rules import shown_at_most

_LANE_OF = {reason: lane for lane, (_, reason) in LANES.items() if reason is not None}


async def assign_in(
    core: Core,
    prefix: str,
    assignments: Sequence[Assignment],
    hold: int,
    aside: Sequence[Aside],
    look: Look | None,
) -> Assigned:
    args: list[Any] = [hold, len(assignments)]
    for each in assignments:
        args += (each.id, each.worker_id)
    args.append(len(aside))
    for one in aside:
        args += (one.id, _lane_number(one.reason))
    if look is not None:
        lanes = "".join(("\n", *(f"{lane}\n" for lane in look.lanes)))
        args += (LOOK_MAX, look.beyond, "\n".join(look.queues), lanes)
        for worker, slots in look.workers.items():
            args += (worker, slots)
    done, paused, lanes_aside, loads, found, woken = await core.reached("assign", prefix, *args, purpose="work")
    core.wake({*_texts(woken), *(f"/{each.worker_id}" for each in assignments)}, prefix)
    answers = [letter == "1" for letter in done.decode()]
    if look is None:
        return Assigned(answers)
    waiting = [_waiting(task_id, label) for task_id, label in zip(found[::2], found[1::2], strict=True)]
    counts = dict(zip(look.workers, loads, strict=True))
    return Assigned(answers, Seen(waiting, frozenset(_texts(lanes_aside)), frozenset(_texts(paused)), counts))


async def assign_in_parts(
    core: Core, assignments: Sequence[Assignment], hold: int, aside: Sequence[Aside], look: Look | None
) -> Assigned:
    """The same over several partitions. A task of one that cannot be reached is not assigned. What is ready comes in
    turns from each, so that none is preferred; the loads are added up."""
    parts = core.layout.parts

    async def act(part: str) -> Assigned:
        mine = [each for each in assignments if core.part(each.id) == part]
        put_aside = [each for each in aside if core.part(each.id) == part]
        if look is None and not mine and not put_aside:
            return Assigned([])
        return await assign_in(core, part, mine, hold, put_aside, look)

    found = await core.reach.each(parts, act)
    answers = {part: iter(assigned.done) for part, assigned in found.items()}
    done = [next(answers.get(core.part(each.id), iter(())), False) for each in assignments]
    seen = [assigned.seen for assigned in found.values() if assigned.seen is not None]
    return Assigned(done, None if look is None else _joined(seen, look))


def _joined(seen: list[Seen], look: Look) -> Seen:
    in_turns = itertools.chain.from_iterable(itertools.zip_longest(*(each.waiting for each in seen)))
    waiting = sorted((each for each in in_turns if each is not None), key=lambda each: each.band)
    loads = {worker: sum(each.loads[worker] for each in seen) for worker in look.workers}
    return Seen(
        waiting[: shown_at_most(look, loads)],
        frozenset().union(*(each.aside for each in seen)),
        frozenset().union(*(each.paused for each in seen)),
        loads,
    )


async def unassign_in(core: Core, prefix: str, workers: Sequence[str], limit: int) -> list[str]:
    taken, woken = await core.reached("unassign", prefix, limit, *dict.fromkeys(workers), purpose="work")
    core.wake(set(_texts(woken)), prefix)
    return list(_texts(taken))


def _lane_number(reason: ParkReason) -> int:
    return _LANE_OF[reason]


def _texts(replies: Iterable[bytes]) -> Iterable[str]:
    return (each.decode() for each in replies)


def _waiting(task_id: bytes, label: bytes) -> Waiting:
    kind, queue, band, _ = label.decode().split("\n", 3)
    return Waiting(task_id.decode(), kind, queue, int(band[0]), key_in_label(label))
