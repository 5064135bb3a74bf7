"""The rules of gates, shared by the memory and the SQLite store. `redis/lua/gates.lua` says the same."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Protocol

from msgspec import Struct

from tickwork.model.facts import Fact
from tickwork.store.contract.gates import (
    HORIZON,
    LOOK_AGAIN,
    RESERVED,
    Ask,
    Gate,
    GateState,
    Left,
    Reason,
    Refusal,
    RunVerdict,
    Woken,
)

ALMOST = 1 - 1e-9  # a token, with what is lost by rounding
UNUSED = 60_000  # milliseconds for which a gate is kept at least
WAKE_GATES = 100  # gates at which one call of `wake` looks


KEPT = " "  # before the id of a task for which room is kept; no id has one


def _kept_for(task_id: str) -> str:
    return f"{KEPT}{task_id}"


class Entry(Struct):
    """What a store keeps of one gate: the rule by which it was asked last, and what that is applied to."""

    rate: float = 0.0
    burst: int = 1
    slots: int = 0
    limit: int = 0  # failures after which it opens
    timeout: int = 0
    shut: bool = False
    tokens: float = 0.0
    at: int = 0  # when the tokens were counted
    slot: float = 0.0  # when the next task that waits for a token is to ask again
    failures: int = 0
    open_until: int = 0
    probe: str = ""
    until: int = 0  # it is as good as new from then on; 0: never


class Books(Protocol):
    """Where a store keeps entries, who is inside of a gate until when (also tasks for which room is kept), and who
    waits."""

    def find(self, name: str) -> Entry | None: ...
    def keep(self, name: str, entry: Entry) -> None: ...
    def inside(self, name: str) -> dict[str, int]: ...
    def put_inside(self, name: str, task_id: str, until: int) -> None: ...
    def take_out(self, name: str, task_id: str) -> None: ...
    def waiting(self, name: str) -> int: ...
    def wait(self, name: str, task_id: str, order: int, timed: bool) -> None: ...
    def unwait(self, name: str, task_id: str) -> None: ...
    def take_waiting(self, name: str, limit: int, timed: bool) -> list[str]:
        """The first of those who wait, who wait no more: of those who were told a time, or of the others."""

    def look_at(self, name: str, at: int | None) -> None:
        """Let `wake` look at the gate then, or sooner if that was said before; None: not at all."""

    def due(self, now: int, limit: int) -> list[str]: ...
    def mark_open(self, name: str, until: int) -> None: ...
    def tell(self, fact: Fact, name: str, detail: str) -> None: ...


class Gating:
    """One call of a store. `held` is the time until which nothing counts as expired (see `rules.pulse`)."""

    def __init__(self, books: Books, now: int, held: int, lease_ttl: int) -> None:
        self._books = books
        self._now = now
        self._held = held
        self._ttl = lease_ttl

    def enter(self, ask: Ask) -> Refusal | None:
        entries = [self._asked(gate) for gate in ask.gates]
        for gate, entry in zip(ask.gates, entries, strict=True):
            inside = self._inside(gate.name)
            reason = self._refuses(entry, inside, ask.id, gate.cost)
            if reason is not None:
                if ask.id:
                    self._withdraw(ask)
                    inside.pop(ask.id, None)
                    inside.pop(_kept_for(ask.id), None)
                return self._refuse(gate, entry, inside, ask, reason)
        for gate, entry in zip(ask.gates, entries, strict=True):
            self._let_in(gate.name, entry, ask.id, gate.cost)
        return None

    def _find(self, name: str) -> Entry | None:
        entry = self._books.find(name)
        return None if entry is None or 0 < entry.until <= self._now else entry

    def _withdraw(self, ask: Ask) -> None:
        """It is refused: room that was kept for it is for others, and it waits nowhere else."""
        for gate in ask.gates:
            self._books.unwait(gate.name, ask.id)
            inside = self._books.inside(gate.name)
            for entered in (ask.id, _kept_for(ask.id)):
                if entered in inside:
                    self._books.take_out(gate.name, entered)
                    if self._books.waiting(gate.name):
                        self._books.look_at(gate.name, self._now)

    def _asked(self, gate: Gate) -> Entry:
        entry = self._find(gate.name)
        if entry is None:
            entry = Entry(tokens=float(gate.burst), at=self._now)
        self._refill(entry)
        if entry.rate != gate.rate:
            entry.tokens, entry.slot = entry.tokens if entry.rate else float(gate.burst), 0.0
        entry.rate, entry.burst, entry.slots = gate.rate, gate.burst, gate.slots
        entry.limit, entry.timeout, entry.shut = gate.failures, gate.timeout, gate.shut
        entry.tokens = min(entry.tokens, float(gate.burst))
        if not gate.failures:
            entry.failures = 0
            if entry.open_until:
                self._close(gate.name, entry)
                self._keep(gate.name, entry)
        return entry

    def _refill(self, entry: Entry) -> None:
        if entry.rate:
            entry.tokens = min(float(entry.burst), entry.tokens + max(self._now - entry.at, 0) * entry.rate)
        entry.at = self._now

    def _inside(self, name: str) -> dict[str, int]:
        """Those inside, without those who have not renewed. After the clock was set back nobody has more than a
        lease."""
        found = self._books.inside(name)
        for task_id, until in list(found.items()):
            if until > self._now + max(self._ttl, RESERVED):
                found[task_id] = self._now + self._ttl
                self._books.put_inside(name, task_id, found[task_id])
            elif until <= self._now >= self._held:
                del found[task_id]
                self._books.take_out(name, task_id)
        return found

    def _refuses(self, entry: Entry, inside: dict[str, int], task_id: str, cost: int) -> Reason | None:
        if entry.shut:
            return "shut"
        if entry.open_until:
            if self._now < entry.open_until:
                return "open"
            if entry.probe in inside and entry.probe != task_id:
                return "open"
        if task_id and task_id in inside:
            return None
        if entry.slots and len(inside) - (_kept_for(task_id) in inside) >= entry.slots:
            return "full"
        return "rate" if entry.rate and entry.tokens < min(cost, entry.burst) - 1 + ALMOST else None

    def _refuse(self, gate: Gate, entry: Entry, inside: dict[str, int], ask: Ask, reason: Reason) -> Refusal:
        name, timed = gate.name, False
        wait: int | None = None
        if reason == "rate":
            ask_at = self._now + (min(gate.cost, gate.burst) - entry.tokens) / entry.rate
            if not ask.id or entry.slot <= self._now + HORIZON:
                if ask.id:
                    ask_at = max(ask_at, entry.slot)
                    entry.slot = ask_at + 1 / entry.rate
                    timed = True
                wait = math.ceil(ask_at - self._now)
        elif reason == "open" and self._now < entry.open_until:
            wait = entry.open_until - self._now
        if ask.id:
            self._books.wait(name, ask.id, ask.order, timed)
            self._books.look_at(name, self._next_look(entry, inside))
        self._keep(name, entry)
        return Refusal(name, reason, wait, self._books.waiting(name))

    def _next_look(self, entry: Entry, inside: dict[str, int]) -> int | None:
        """When there may be room for those who wait, though nobody leaves."""
        if entry.shut:
            return None
        if entry.open_until > self._now:
            return entry.open_until
        if entry.probe in inside or (entry.slots and len(inside) >= entry.slots):
            return max(min(inside.values()), self._held)
        return self._now + LOOK_AGAIN

    def _let_in(self, name: str, entry: Entry, task_id: str, cost: int) -> None:
        was_inside = bool(task_id) and task_id in self._books.inside(name)
        probes = bool(entry.open_until)
        if entry.rate and not was_inside:
            entry.tokens -= cost
        if probes and entry.probe != task_id:
            entry.probe = task_id
            self._books.tell(Fact.BREAKER_PROBED, name, task_id)
        if task_id:
            self._books.unwait(name, task_id)
            self._books.take_out(name, _kept_for(task_id))
            if probes or entry.slots:
                self._books.put_inside(name, task_id, self._now + self._ttl)
            elif was_inside:
                self._books.take_out(name, task_id)
        self._keep(name, entry)

    def _keep(self, name: str, entry: Entry) -> None:
        full_in = (entry.burst - entry.tokens) / entry.rate if entry.rate else 0.0
        ahead = max(entry.slot - self._now, 0.0)
        until = self._now + math.ceil(max(full_in, ahead, self._ttl)) + UNUSED
        entry.until = 0 if entry.failures or entry.open_until else until
        self._books.keep(name, entry)

    def leave(self, left: Left, limit: int) -> list[Woken]:
        woken: list[Woken] = []
        for name in left.gates:
            self._books.take_out(name, left.id)
            self._books.take_out(name, _kept_for(left.id))
            entry = self._find(name)
            if entry is not None:
                if entry.limit:
                    self._judge(name, entry, left.id, left.verdict)
                woken += self._wake(name, entry, limit - len(woken))
        return woken

    def _judge(self, name: str, entry: Entry, task_id: str, verdict: RunVerdict) -> None:
        probed = bool(entry.open_until) and entry.probe == task_id
        if probed:
            entry.probe = ""
        if verdict == "failed" and (probed or not entry.open_until):
            entry.failures += 1
            if probed or entry.failures >= entry.limit:
                entry.open_until = self._now + entry.timeout
                self._books.mark_open(name, entry.open_until)
                self._books.tell(Fact.BREAKER_OPENED, name, f"{entry.failures} failures in a row")
        elif verdict == "ok" and (probed or not entry.open_until):
            entry.failures = 0
            if probed:
                self._close(name, entry)

    def _close(self, name: str, entry: Entry) -> None:
        entry.failures, entry.open_until, entry.probe = 0, 0, ""
        self._books.mark_open(name, 0)
        self._books.tell(Fact.BREAKER_CLOSED, name, "")

    def _wake(self, name: str, entry: Entry, limit: int) -> list[Woken]:
        """Those who may ask again now. Room is kept for them where it is counted."""
        self._refill(entry)
        waiting = self._books.waiting(name)
        inside, woken = dict[str, int](), list[str]()
        if waiting and not entry.shut:
            inside = self._inside(name)
            most = min(self._room(entry, inside), limit)
            # Who was told a time keeps it: who asks before comes to the end of the line, and that time is lost.
            if entry.slot <= self._now:
                woken = self._books.take_waiting(name, most, timed=True)
            woken += self._books.take_waiting(name, most - len(woken), timed=False)
        counted = bool(entry.slots or entry.open_until)
        for task_id in woken:
            if entry.slots:
                inside[_kept_for(task_id)] = self._now + RESERVED
                self._books.put_inside(name, _kept_for(task_id), self._now + RESERVED)
        if len(woken) < waiting:
            again = self._now if len(woken) == limit and not counted else self._next_look(entry, inside)
            self._books.look_at(name, again)
        else:
            self._books.look_at(name, None)
        self._keep(name, entry)
        return [Woken(task_id, name) for task_id in woken]

    def _room(self, entry: Entry, inside: dict[str, int]) -> int:
        room = 2**31
        if entry.shut:
            return 0
        if entry.open_until:
            room = 0 if self._now < entry.open_until or entry.probe in inside else 1
        if entry.slots:
            room = min(room, max(entry.slots - len(inside), 0))
        if not entry.rate:
            return room
        # They may come some time before their tokens: they are told their times then.
        ahead = max(self._now + HORIZON / 2 - max(entry.slot, self._now), 0.0) * entry.rate
        return min(room, int(entry.tokens + ahead + 1 - ALMOST))

    def renew(self, task_id: str, names: Sequence[str]) -> None:
        for name in names:
            entry = self._find(name)
            if entry is not None and (entry.slots or entry.probe == task_id):
                self._books.put_inside(name, task_id, self._now + self._ttl)
                self._keep(name, entry)

    def wake(self, limit: int) -> list[Woken]:
        woken: list[Woken] = []
        for name in self._books.due(self._now, WAKE_GATES):
            if len(woken) == limit:  # the rest stay due
                break
            self._books.look_at(name, None)
            woken += self._wake(name, self._find(name) or Entry(), limit - len(woken))
        return woken

    def reset(self, name: str) -> None:
        entry = self._find(name)
        if entry is not None:
            if entry.open_until:
                self._close(name, entry)
            entry.shut, entry.failures = False, 0
            self._keep(name, entry)
        if self._books.waiting(name):
            self._books.look_at(name, self._now)

    def look(self, name: str) -> GateState:
        entry = self._find(name) or Entry()
        self._refill(entry)
        inside = [
            entered
            for entered, until in self._books.inside(name).items()
            if not entered.startswith(KEPT) and (until > self._now or self._now < self._held)
        ]
        return GateState(
            name=name,
            tokens=entry.tokens if entry.rate else None,
            inside=len(inside),
            waiting=self._books.waiting(name),
            failures=entry.failures,
            open_until=entry.open_until,
            probe=entry.probe,
        )
