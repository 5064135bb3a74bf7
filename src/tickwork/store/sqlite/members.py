"""Workers and leadership over SQLite rows."""

from __future__ import annotations

from msgspec.structs import replace

from tickwork.model.facts import Fact
from tickwork.model.members import Leader, OrderKind, Worker, ordered
from tickwork.store.contract import Heard
from tickwork.store.hints import CONTROL
from tickwork.store.rules import elect, joined, leads, rival_of
from tickwork.store.sqlite.connection import Connection
from tickwork.store.sqlite.core import Part, reads, writes
from tickwork.store.sqlite.workers import (
    count_leases,
    encode,
    forget_worker,
    keep_pulse,
    list_workers,
    node_of,
    read_worker,
)


def written_leader(connection: Connection) -> Leader | None:
    row = connection.one("SELECT leader, term, leader_until, leader_ttl FROM @state")
    return None if row[0] is None else Leader(*row)


class Members(Part):
    @writes
    def beat(self, worker: Worker, ttl: int | None = None, *, join: bool = True) -> Heard:
        now = self.now()
        keep_pulse(self.tx, now)
        row = self.tx.one("SELECT worker FROM @workers WHERE id = ?", (worker.id,))
        old = None if row is None else read_worker(worker.id, row[0])
        leader = leads(written_leader(self.tx), now)
        if rival := rival_of(worker, old, now):
            return Heard(leader, rival)
        if not join:
            if old is None or old.address != worker.address:
                return Heard(leader)
            worker = replace(old, running=worker.running, lost_at=None)
        worker, new = joined(worker, old, now, ttl or self.tx.policy.lease_ttl)
        self.tx.run(
            "INSERT OR REPLACE INTO @workers VALUES (?, ?, NULL, ?)",
            (worker.id, worker.expires_at, encode(worker)),
        )
        if new:
            self.tx.tell(now, Fact.WORKER_JOINED, worker.id)
        return Heard(leader, order=worker.order)

    @writes
    def order(self, worker_id: str, kind: OrderKind, value: str | None) -> bool:
        row = self.tx.one("SELECT worker FROM @workers WHERE id = ? AND lost_at IS NULL", (worker_id,))
        if row is None:
            return False
        worker = read_worker(worker_id, row[0])
        order = ordered(worker.order, kind, value)
        if worker.order != order:
            self.tx.run(
                "UPDATE @workers SET worker = ? WHERE id = ?", (encode(replace(worker, order=order)), worker_id)
            )
            self.tx.tell(self.now(), Fact.WORKER_ORDERED, worker_id, order or "none")
            self.tx.notify(CONTROL)
        return True

    @writes
    def leave(self, worker_id: str, node: str = "") -> None:
        if node and node_of(self.tx, worker_id) != node:
            return
        if forget_worker(self.tx, worker_id):
            self.tx.tell(self.now(), Fact.WORKER_LEFT, worker_id)

    @writes
    def campaign(self, node: str, ttl: int) -> Leader:
        now = self.now()
        leader, new = elect(written_leader(self.tx), node, ttl, now)
        self._lead(leader)
        if new:
            self.tx.tell(now, Fact.LEADER_ELECTED, node, f"term {leader.term}")
        return leader

    @writes
    def resign(self, node: str, term: int) -> bool:
        leader = written_leader(self.tx)
        if leader is None or (leader.id, leader.term) != (node, term):
            return False
        if leader.until:
            self._lead(replace(leader, until=0))
            self.tx.tell(self.now(), Fact.LEADER_RESIGNED, node, f"term {term}")
        return True

    def _lead(self, leader: Leader) -> None:
        self.tx.run(
            "UPDATE @state SET leader = ?, term = ?, leader_until = ?, leader_ttl = ?",
            (leader.id, leader.term, leader.until, leader.ttl),
        )

    @reads
    def workers(self, counted: bool = False) -> list[Worker]:
        found = list_workers(self.reader)
        if not counted:
            return found
        counts = dict(count_leases(self.reader))
        return [replace(worker, running=counts.get(worker.id, 0)) for worker in found]

    @reads
    def leader(self) -> Leader | None:
        return leads(written_leader(self.reader), self.now())
