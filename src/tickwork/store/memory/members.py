"""Workers and leadership in the memory store."""

from __future__ import annotations

from collections import Counter

from msgspec.structs import replace

from tickwork.model.facts import Fact
from tickwork.model.members import Leader, OrderKind, Worker, ordered
from tickwork.model.tasks import Lease
from tickwork.store.contract import Heard
from tickwork.store.hints import CONTROL
from tickwork.store.memory.core import Core, Part, atomic
from tickwork.store.memory.homes import Homes
from tickwork.store.memory.log import FactLog
from tickwork.store.rules import elect, joined, leads, rival_of


class Members(Part):
    def __init__(self, core: Core, log: FactLog, homes: Homes) -> None:
        super().__init__(core)
        self._log = log
        self._homes = homes
        self._workers: dict[str, Worker] = {}
        self.last_claims: dict[str, dict[int, tuple[str, list[str]]]] = {}  # worker -> turn -> nonce and tasks
        self.suspects: dict[str, Lease] = {}  # process -> the suspect that it runs: see `rules.is_suspect`
        self._leader: Leader | None = None
        core.on_set_back.append(self._set_back)

    def _set_back(self, by: int) -> None:
        for worker in self._workers.values():
            if worker.lost_at is None:
                self._workers[worker.id] = replace(worker, expires_at=worker.expires_at - by)

    @atomic
    def beat(self, worker: Worker, ttl: int | None = None, *, join: bool = True) -> Heard:
        now = self._core.now()
        self._core.pulse(now)
        leader = leads(self._leader, now)
        old = self._workers.get(worker.id)
        if rival := rival_of(worker, old, now):
            return Heard(leader, rival)
        if not join:
            if old is None or old.address != worker.address:
                return Heard(leader)
            worker = replace(old, running=worker.running, lost_at=None)
        self._workers[worker.id], new = joined(worker, old, now, ttl or self._core.policy.lease_ttl)
        if new:
            self._log.add(now, Fact.WORKER_JOINED, worker.id)
        return Heard(leader, order=self._workers[worker.id].order)

    @atomic
    def order(self, worker_id: str, kind: OrderKind, value: str | None) -> bool:
        worker = self._workers.get(worker_id)
        if worker is None or worker.lost_at is not None:
            return False
        order = ordered(worker.order, kind, value)
        if worker.order != order:
            self._workers[worker_id] = replace(worker, order=order)
            self._log.add(self._core.now(), Fact.WORKER_ORDERED, worker_id, order or "none")
            self._core.hints.notify(CONTROL)
        return True

    @atomic
    def leave(self, worker_id: str, node: str = "") -> None:
        if node and self.node_of(worker_id) != node:
            return
        if self.forget(worker_id):
            self._log.add(self._core.now(), Fact.WORKER_LEFT, worker_id)

    def node_of(self, worker_id: str) -> str | None:
        worker = self._workers.get(worker_id)
        return None if worker is None else worker.node

    def forget(self, worker_id: str) -> bool:
        worker = self._workers.pop(worker_id, None)
        self.last_claims.pop(worker_id, None)
        self.suspects.pop(worker_id, None)
        if worker is not None:
            self.suspects.pop(worker.node, None)
        return worker is not None

    def lose(self, now: int, gone: tuple[str, ...]) -> list[str]:
        over = now if now >= self._core.hold_until else 0
        lost = [
            worker.id
            for _, worker in sorted(self._workers.items())
            if worker.lost_at is None and (worker.id in gone or worker.expires_at <= over)
        ]
        for worker_id in lost:
            self._workers[worker_id] = replace(self._workers[worker_id], lost_at=now, running=0)
            self._log.add(now, Fact.WORKER_LOST, worker_id)
            if worker_id in gone:
                self._depose(now, self._workers[worker_id].node)
        return lost

    def is_alive(self, worker_id: str | None, now: int) -> bool:
        worker = self._workers.get(worker_id or "")
        return worker is not None and worker.lost_at is None and worker.expires_at > now

    def _depose(self, now: int, node: str) -> None:
        """A node whose process is known to be gone leads no more: nobody need wait for its lease."""
        if self._leader is not None and self._leader.id == node and self._leader.until > now:
            self._leader = replace(self._leader, until=0)
            self._log.add(now, Fact.LEADER_RESIGNED, node, "its process is gone")

    @atomic
    def workers(self, counted: bool = False) -> list[Worker]:
        found = sorted(self._workers.values(), key=lambda worker: worker.id)
        if not counted:
            return found
        counts = Counter(self._homes.tasks[task_id].worker_id for task_id in self._homes.leases)
        return [replace(worker, running=counts[worker.id]) for worker in found]

    @atomic
    def campaign(self, node: str, ttl: int) -> Leader:
        now = self._core.now()
        self._leader, new = elect(self._leader, node, ttl, now)
        if new:
            self._log.add(now, Fact.LEADER_ELECTED, node, f"term {self._leader.term}")
        return self._leader

    @atomic
    def leader(self) -> Leader | None:
        return leads(self._leader, self._core.now())

    @atomic
    def resign(self, node: str, term: int) -> bool:
        if self._leader is None or (self._leader.id, self._leader.term) != (node, term):
            return False
        if self._leader.until:
            self._leader = replace(self._leader, until=0)
            self._log.add(self._core.now(), Fact.LEADER_RESIGNED, node, f"term {term}")
        return True

    def forget_lost(self, before: int) -> None:
        lost = [worker.id for worker in self._workers.values() if worker.lost_at and worker.lost_at <= before]
        for worker_id in lost:
            self.forget(worker_id)

    def count(self) -> int:
        return sum(1 for worker in self._workers.values() if worker.lost_at is None)
