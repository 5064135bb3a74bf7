"""What happens in a random history: a list of steps, made from a seed before anything begins.

The same seed, kind of store and length make the same list again. What the processes make of it may differ each time.
"""

from __future__ import annotations

import random
from bisect import bisect
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

SLOTS = 3  # workers; whoever is gone is replaced
QUEUES = ("default", "other")
TYPES = ("work", "block", "doze", "locked")
LOCKS = ("report", "ledger")
LOCK_TTL = 1.0
SCHEDULES = ("always", "paused", "queued")  # one without a pause, one with pauses, one whose runs wait for each other
PRIORITIES = (1, 5, 10)
DEDUP_KEYS = 8
DEDUP_TTL = 3600.0  # longer than a history, so that only a cancel or a delete frees a key

SUBMITS = 16  # a second
STEERS = 7  # a second: cancel, retry, delete, run now
PAUSES = 0.4  # a second: queues, types, schedules
RECENT = 25  # a step is about one of so many tasks before it
FAULT_EVERY = (0.6, 1.8)  # seconds from one fault to the next


class Step(NamedTuple):
    """At so many seconds after the beginning, do this with these arguments."""

    at: float
    do: str
    args: dict[str, Any]


def make_plan(seed: int, kind: str, seconds: float, faults: Sequence[str]) -> list[Step]:
    chance = random.Random(f"{seed} {kind}")
    work = list(_submits(chance, seconds))
    steps = [*work, *_steering(chance, seconds, work), *_pauses(chance, seconds), *_faults(chance, seconds, faults)]
    return sorted(steps, key=lambda step: step.at)


def task_id(number: int) -> str:
    return f"t{number}"


def _moments(chance: random.Random, seconds: float, rate: float) -> Iterator[float]:
    at = chance.expovariate(rate)
    while at < seconds:
        yield at
        at += chance.expovariate(rate)


# --- tasks


def _submits(chance: random.Random, seconds: float) -> Iterator[Step]:
    for number, at in enumerate(_moments(chance, seconds, SUBMITS)):
        yield Step(at, "submit", {"id": task_id(number), **_task(chance, number)})


def _task(chance: random.Random, number: int) -> dict[str, Any]:
    kind = chance.choices(TYPES, (8, 2, 1, 3))[0]
    options: dict[str, Any] = {"queue": chance.choice(QUEUES), "priority": chance.choice(PRIORITIES)}
    if chance.random() < 0.2:
        options["delay"] = round(chance.uniform(0.1, 3.0), 2)
    if number and chance.random() < 0.3:
        recent = range(max(number - RECENT, 0), number)
        options["depends_on"] = [
            task_id(each) for each in chance.sample(recent, min(len(recent), chance.randint(1, 3)))
        ]
    if chance.random() < 0.12:
        options |= {"dedup_key": f"key-{chance.randrange(DEDUP_KEYS)}", "dedup_ttl": DEDUP_TTL}
    if chance.random() < 0.1:
        options["timeout"] = 0.3
    return {"type": kind, "payload": _payload(chance, kind), "options": options}


def _payload(chance: random.Random, kind: str) -> dict[str, Any]:
    """Most are short. A few run long enough to be hit for certain."""
    milliseconds = chance.randrange(5, 120) if chance.random() < 0.8 else chance.randrange(400, 3000)
    if kind == "locked":
        return {"lock": chance.choice(LOCKS), "milliseconds": min(milliseconds, 800)}
    if kind == "doze":
        return {"milliseconds": milliseconds}
    return {"milliseconds": milliseconds, "fails": chance.choices((0, 1, 2, 9), (80, 12, 4, 4))[0]}


def _steering(chance: random.Random, seconds: float, work: list[Step]) -> Iterator[Step]:
    times = [step.at for step in work]
    for at in _moments(chance, seconds, STEERS):
        known = work[: bisect(times, at)][-RECENT:]
        if not known:
            continue
        do = chance.choices(("cancel", "force_cancel", "retry", "delete", "run_now", "delete_tick"),
                            (4, 4, 6, 4, 2, 1))[0]  # fmt: skip
        if do == "delete_tick":
            yield Step(at, do, {"schedule": chance.choice(SCHEDULES)})
        else:
            yield Step(at, do, {"id": chance.choice(known).args["id"]})


def _pauses(chance: random.Random, seconds: float) -> Iterator[Step]:
    for at in _moments(chance, seconds, PAUSES):
        till = at + chance.uniform(0.3, 2.0)
        what, names = chance.choice((("queue", QUEUES), ("type", TYPES), ("schedule", ("paused",))))
        name = chance.choice(names)
        yield Step(at, "pause", {"what": what, "name": name})
        yield Step(till, "resume", {"what": what, "name": name})
    for at in _moments(chance, seconds, 0.3):
        yield Step(at, "trigger", {"schedule": chance.choice(SCHEDULES)})


# --- faults


def _faults(chance: random.Random, seconds: float, faults: Sequence[str]) -> Iterator[Step]:
    """Each is over when the history is."""
    at = 0.3
    while at < seconds:
        fault = chance.choice(faults)
        args = _fault_args(chance, fault)
        if at + args.get("seconds", 0) < seconds:
            yield Step(at, fault, args)
        at += chance.uniform(*FAULT_EVERY)


def _fault_args(chance: random.Random, fault: str) -> dict[str, Any]:
    """A pause is shorter than a lease about as often as it is longer."""
    args: dict[str, Any] = {}
    if fault in ("kill", "stop", "end", "drop_links", "lose_replies", "black_hole"):
        args["slot"] = chance.randrange(SLOTS)
    if fault in ("stop", "stop_leader", "black_hole", "server_stop", "hold_file"):
        args["seconds"] = round(chance.choice((chance.uniform(0.2, 1.0), chance.uniform(2.2, 4.0))), 2)
    if fault == "server_kill":
        args["seconds"] = round(chance.uniform(0.1, 2.5), 2)
    if fault in ("server_kill", "server_stop", "cut_clients", "flush_scripts"):
        args["server"] = chance.randrange(6)
    return args
