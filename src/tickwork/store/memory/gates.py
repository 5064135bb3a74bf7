"""Gates of the memory store."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from tickwork.model.facts import Fact
from tickwork.store.contract.gates import ORDER_MAX, WAKE_MAX, Ask, GateState, Left, Refusal, Woken
from tickwork.store.gating import Entry, Gating
from tickwork.store.memory.core import Core, Part, atomic
from tickwork.store.memory.lanes import TimeIndex
from tickwork.store.memory.log import FactLog


class Gates(Part):
    """Also the books that the shared rules are applied to."""

    def __init__(self, core: Core, log: FactLog) -> None:
        super().__init__(core)
        self._log = log
        self._entries: dict[str, Entry] = {}
        self._ends = TimeIndex()  # of entries that are kept for a time
        self._insides: dict[str, dict[str, int]] = {}
        self._waits: dict[str, tuple[TimeIndex, TimeIndex]] = {}  # by their order; then those who were told a time
        self._looks = TimeIndex()
        self._open: dict[str, int] = {}

    def _gating(self, reads: bool = False) -> Gating:
        now = self._core.now()
        if not reads:
            self._core.pulse(now)
        return Gating(self, now, self._core.hold_until, self._core.policy.lease_ttl)

    # --- the contract

    @atomic
    def enter(self, asks: Sequence[Ask]) -> list[Refusal | None]:
        gating = self._gating()
        return [gating.enter(ask) for ask in asks]

    @atomic
    def leave(self, left: Sequence[Left]) -> list[Woken]:
        gating, woken = self._gating(), list[Woken]()
        for each in left:
            woken += gating.leave(each, WAKE_MAX - len(woken))
        return woken

    @atomic
    def renew(self, inside: Sequence[tuple[str, tuple[str, ...]]]) -> None:
        gating = self._gating()
        for task_id, names in inside:
            gating.renew(task_id, names)

    @atomic
    def wake(self, limit: int) -> list[Woken]:
        for name in self._ends.take_until(self._core.now(), WAKE_MAX):
            del self._entries[name]
        return self._gating().wake(min(limit, WAKE_MAX))

    @atomic
    def reset(self, name: str) -> None:
        self._gating().reset(name)

    @atomic
    def look(self, names: Sequence[str]) -> list[GateState]:
        gating = self._gating(reads=True)
        return [gating.look(name) for name in names]

    @atomic
    def opened(self) -> list[GateState]:
        gating = self._gating(reads=True)
        return [gating.look(name) for name in sorted(self._open)]

    @atomic
    def crowded(self, limit: int) -> list[tuple[str, int]]:
        counts = ((name, self.waiting(name)) for name in self._waits)
        return sorted(counts, key=lambda each: (-each[1], each[0]))[:limit]

    # --- the books

    def find(self, name: str) -> Entry | None:
        entry = self._entries.get(name)
        return None if entry is None else replace(entry)  # what is changed counts when it is kept

    def keep(self, name: str, entry: Entry) -> None:
        self._entries[name] = entry
        if entry.until:
            self._ends.put(name, entry.until)
        else:
            self._ends.remove(name)

    def inside(self, name: str) -> dict[str, int]:
        return dict(self._insides.get(name, {}))

    def put_inside(self, name: str, task_id: str, until: int) -> None:
        self._insides.setdefault(name, {})[task_id] = until

    def take_out(self, name: str, task_id: str) -> None:
        inside = self._insides.get(name, {})
        inside.pop(task_id, None)
        if not inside:
            self._insides.pop(name, None)

    def waiting(self, name: str) -> int:
        return sum(map(len, self._waits.get(name, ())))

    def wait(self, name: str, task_id: str, order: int, timed: bool) -> None:
        self._waits.setdefault(name, (TimeIndex(), TimeIndex()))[timed].put(task_id, order)

    def unwait(self, name: str, task_id: str) -> None:
        for waits in self._waits.get(name, ()):
            waits.remove(task_id)
        self._forget_empty(name)

    def take_waiting(self, name: str, limit: int, timed: bool) -> list[str]:
        waits = self._waits.get(name)
        taken = [] if waits is None else waits[timed].take_until(ORDER_MAX, limit)
        self._forget_empty(name)
        return taken

    def _forget_empty(self, name: str) -> None:
        if not self.waiting(name):
            self._waits.pop(name, None)

    def look_at(self, name: str, at: int | None) -> None:
        if at is None:
            self._looks.remove(name)
        elif name not in self._looks or at < self._looks.at(name):
            self._looks.put(name, at)

    def due(self, now: int, limit: int) -> list[str]:
        return self._looks.first_until(now, limit)

    def mark_open(self, name: str, until: int) -> None:
        if until:
            self._open[name] = until
        else:
            self._open.pop(name, None)

    def tell(self, fact: Fact, name: str, detail: str) -> None:
        self._log.add(self._core.now(), fact, name, detail)
