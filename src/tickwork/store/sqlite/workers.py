"""The rows of workers, which every sign of life looks at."""

from __future__ import annotations

import msgspec
from msgspec.structs import replace

from tickwork.model.facts import Fact
from tickwork.model.members import Worker
from tickwork.store.rules import pulse
from tickwork.store.sqlite.connection import Connection
from tickwork.store.sqlite.session import Writer
from tickwork.store.unreadable import UNREADABLE

SUSPECT = -1  # stands for a turn: that row is the suspect that a process runs, see `rules.is_suspect`

encode = msgspec.msgpack.Encoder().encode
_worker = msgspec.msgpack.Decoder(Worker).decode


def read_worker(worker_id: str, blob: bytes) -> Worker:
    try:
        return _worker(blob)
    except UNREADABLE:
        return Worker(id=worker_id)


def list_workers(connection: Connection) -> list[Worker]:
    return [read_worker(*row) for row in connection.all("SELECT id, worker FROM @workers ORDER BY id")]


def count_leases(connection: Connection) -> list[tuple[str, int]]:
    """Each worker that runs tasks, and how many. The index of leases has all that it needs."""
    return connection.all("SELECT worker_id, count(*) FROM @tasks WHERE status = 'running' GROUP BY worker_id")


def keep_pulse(tx: Writer, now: int) -> None:
    state = tx.state
    state.pulse_at, state.hold_until, back = pulse(state.pulse_at, state.hold_until, now, tx.policy)
    if back:
        _set_back(tx, back)


def _set_back(tx: Writer, by: int) -> None:
    """The clock was set back: leases of tasks, members and locks keep the time that they had left."""
    tx.running.clear()
    tx.run("UPDATE @tasks SET lease_until = lease_until - ? WHERE status IN ('running', 'assigned')", (by,))
    tx.run("UPDATE @locks SET until = until - ? WHERE until > 0", (by,))
    for worker_id, expires_at, blob in tx.all("SELECT id, expires_at, worker FROM @workers WHERE lost_at IS NULL"):
        worker = replace(read_worker(worker_id, blob), expires_at=expires_at - by)
        tx.run(
            "UPDATE @workers SET expires_at = ?, worker = ? WHERE id = ?",
            (worker.expires_at, encode(worker), worker.id),
        )


def node_of(connection: Connection, worker_id: str) -> str | None:
    row = connection.one("SELECT worker FROM @workers WHERE id = ?", (worker_id,))
    return None if row is None else read_worker(worker_id, row[0]).node


def lose_workers(tx: Writer, now: int, gone: tuple[str, ...]) -> list[str]:
    """Mark workers that are known to be gone, or have sent no heartbeat for a lease."""
    trusted = now >= tx.state.hold_until
    lost: list[str] = []
    for worker_id, expires_at, blob in tx.all(
        "SELECT id, expires_at, worker FROM @workers WHERE lost_at IS NULL ORDER BY id"
    ):
        if worker_id in gone or (trusted and expires_at <= now):
            worker = replace(read_worker(worker_id, blob), lost_at=now, running=0)
            tx.run("UPDATE @workers SET lost_at = ?, worker = ? WHERE id = ?", (now, encode(worker), worker_id))
            tx.tell(now, Fact.WORKER_LOST, worker_id)
            lost.append(worker_id)
            if worker_id in gone:
                depose(tx, now, worker.node)
    return lost


def depose(tx: Writer, now: int, node: str) -> None:
    """A node whose process is known to be gone leads no more: nobody need wait for its lease."""
    if tx.run("UPDATE @state SET leader_until = 0 WHERE leader = ? AND leader_until > ?", (node, now)).rowcount:
        tx.tell(now, Fact.LEADER_RESIGNED, node, "its process is gone")


def forget_worker(tx: Writer, worker_id: str) -> bool:
    """False when there was none of that name."""
    row = tx.one("DELETE FROM @workers WHERE id = ? RETURNING worker", (worker_id,))
    node = "" if row is None else read_worker(worker_id, row[0]).node
    tx.run("DELETE FROM @claims WHERE worker_id = ? OR (worker_id = ? AND turn = ?)", (worker_id, node, SUSPECT))
    return row is not None
