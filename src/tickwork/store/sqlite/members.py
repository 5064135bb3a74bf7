"""Schedules, members, leadership and pauses over SQLite rows. Runs on the writer's thread, inside its transaction."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import msgspec
from msgspec.structs import replace

from tickwork.model.facts import Fact
from tickwork.model.members import Leader, Worker
from tickwork.model.schedules import Schedule
from tickwork.model.tasks import Spec, Status
from tickwork.store.contract import Advance, Heard, Receipt
from tickwork.store.hints import SCHEDULES, WORK
from tickwork.store.rules import (
    advance_facts,
    advanced,
    changed,
    elect,
    joined,
    leads,
    pulse,
    rival_of,
    same_definition,
    succeed,
    taken,
)
from tickwork.store.sqlite.session import Connection, Writer
from tickwork.store.unreadable import UNREADABLE, read_schedule, refuse_stub

CHANCE = -1  # in the place of a turn: the last task that a process took which one more loss would set aside

SubmitTicks = Callable[[tuple[Spec, ...], int], list[Receipt]]

_encode = msgspec.msgpack.Encoder().encode
_worker = msgspec.msgpack.Decoder(Worker).decode


def get_schedule(connection: Connection, schedule_id: str) -> Schedule | None:
    row = connection.one("SELECT schedule FROM @schedules WHERE id = ?", (schedule_id,))
    return None if row is None else read_schedule(schedule_id, row[0])


def _read_worker(worker_id: str, blob: bytes) -> Worker:
    try:
        return _worker(blob)
    except UNREADABLE:
        return Worker(id=worker_id)


def list_schedules(connection: Connection) -> list[Schedule]:
    return [read_schedule(*row) for row in connection.all("SELECT id, schedule FROM @schedules ORDER BY id")]


def list_workers(connection: Connection) -> list[Worker]:
    return [_read_worker(*row) for row in connection.all("SELECT id, worker FROM @workers ORDER BY id")]


def due_schedules(connection: Connection, now: int, limit: int) -> tuple[list[Schedule], int | None]:
    waiting = "active = 1 AND next_at IS NOT NULL"
    due: list[Schedule] = []
    for row in connection.run(
        f"SELECT id, schedule FROM @schedules WHERE {waiting} AND next_at <= ? ORDER BY next_at, id", (now,)
    ):
        if (schedule := read_schedule(*row)).unreadable:  # a leader of a newer version may be able to fire it
            continue
        if len(due) == limit:
            return due, 0
        due.append(schedule)
    later = connection.one(
        f"SELECT next_at FROM @schedules WHERE {waiting} AND next_at > ? AND next_at < ? ORDER BY next_at LIMIT 1",
        (now, 2**62),
    )
    return due, None if later is None else later[0] - now


def keep_pulse(tx: Writer, now: int) -> None:
    state = tx.state
    state.pulse_at, state.hold_until, back = pulse(state.pulse_at, state.hold_until, now, tx.policy)
    if back:
        _set_back(tx, back)


def _set_back(tx: Writer, by: int) -> None:
    """The clock was set back: leases of tasks, members and locks keep the time that they had left."""
    tx.running.clear()
    tx.run("UPDATE @tasks SET lease_until = lease_until - ? WHERE status = 'running'", (by,))
    tx.run("UPDATE @locks SET until = until - ? WHERE until > 0", (by,))
    for worker_id, expires_at, blob in tx.all("SELECT id, expires_at, worker FROM @workers WHERE lost_at IS NULL"):
        worker = replace(_read_worker(worker_id, blob), expires_at=expires_at - by)
        tx.run(
            "UPDATE @workers SET expires_at = ?, worker = ? WHERE id = ?",
            (worker.expires_at, _encode(worker), worker.id),
        )


def written_leader(connection: Connection) -> Leader | None:
    row = connection.one("SELECT leader, term, leader_until, leader_ttl FROM @state")
    return None if row[0] is None else Leader(*row)


def node_of(connection: Connection, worker_id: str) -> str | None:
    row = connection.one("SELECT worker FROM @workers WHERE id = ?", (worker_id,))
    return None if row is None else _read_worker(worker_id, row[0]).node


def lose_workers(tx: Writer, now: int, gone: tuple[str, ...]) -> list[str]:
    """Mark workers that are known to be gone, or have not been heard of for a lease."""
    trusted = now >= tx.state.hold_until
    lost: list[str] = []
    for worker_id, expires_at, blob in tx.all(
        "SELECT id, expires_at, worker FROM @workers WHERE lost_at IS NULL ORDER BY id"
    ):
        if worker_id in gone or (trusted and expires_at <= now):
            worker = replace(_read_worker(worker_id, blob), lost_at=now, running=0)
            tx.run("UPDATE @workers SET lost_at = ?, worker = ? WHERE id = ?", (now, _encode(worker), worker_id))
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
    node = "" if row is None else _read_worker(worker_id, row[0]).node
    tx.run("DELETE FROM @claims WHERE worker_id = ? OR (worker_id = ? AND turn = ?)", (worker_id, node, CHANCE))
    return row is not None


class SchedulesAndMembers:
    def __init__(self, tx: Writer) -> None:
        self.tx = tx

    def now(self) -> int:
        return self.tx.clock.now()

    def _save(self, schedule: Schedule) -> Schedule:
        self.tx.notify(SCHEDULES)
        self.tx.run(
            "INSERT OR REPLACE INTO @schedules VALUES (?, ?, ?, ?)",
            (schedule.id, schedule.next_at, schedule.active, _encode(schedule)),
        )
        return schedule

    def put_schedule(self, schedule: Schedule, if_changed: bool = False, create: bool = False) -> Schedule | None:
        now, old = self.now(), get_schedule(self.tx, schedule.id)
        if old is not None and create:
            return None
        if old is not None and old.unreadable:
            old = None
        if old is not None and if_changed and same_definition(old, schedule):
            return old
        self.tx.tell(now, Fact.SCHEDULE_PUT, schedule.id, schedule.cron or "")
        return self._save(succeed(old, schedule, now))

    def drop_schedule(self, schedule_id: str) -> bool:
        if self.tx.run("DELETE FROM @schedules WHERE id = ?", (schedule_id,)).rowcount == 0:
            return False
        self.tx.tell(self.now(), Fact.SCHEDULE_DROPPED, schedule_id)
        return True

    def advance(
        self, schedule_id: str, seen: int | None, step: Advance, ticks: tuple[Spec, ...], submit: SubmitTicks
    ) -> Advance | None:
        schedule = get_schedule(self.tx, schedule_id)
        if schedule is None or schedule.unreadable or schedule.next_at != seen:
            return None
        now = self.now()
        step = taken(step, ticks, submit(ticks, now), self.tx.policy)
        self._save(advanced(schedule, step))
        for fact, detail in advance_facts(step):
            self.tx.tell(now, fact, schedule_id, detail)
        return step

    def set_schedule(
        self,
        schedule_id: str,
        *,
        paused: bool | None = None,
        next_at: int | None = None,
        stopped: str | None = None,
    ) -> bool:
        schedule = get_schedule(self.tx, schedule_id)
        if schedule is None:
            return False
        refuse_stub(schedule)
        now = self.now()
        self._save(changed(schedule, now, paused, next_at, stopped))
        self.tx.tell(now, Fact.SCHEDULE_STOPPED if stopped else Fact.SCHEDULE_PUT, schedule_id, stopped or "")
        return True

    def report_run(self, schedule_id: str, task_id: str, status: Status) -> Schedule | None:
        schedule = get_schedule(self.tx, schedule_id)
        if schedule is not None and schedule.last_task_id == task_id:
            schedule = self._save(replace(schedule, last_status=status.value))
        return schedule

    def beat(self, worker: Worker, ttl: int | None = None) -> Heard:
        now = self.now()
        keep_pulse(self.tx, now)
        row = self.tx.one("SELECT worker FROM @workers WHERE id = ?", (worker.id,))
        old = None if row is None else _read_worker(worker.id, row[0])
        leader = leads(written_leader(self.tx), now)
        if rival := rival_of(worker, old, now):
            return Heard(leader, rival)
        worker, new = joined(worker, old, now, ttl or self.tx.policy.lease_ttl)
        self.tx.run(
            "INSERT OR REPLACE INTO @workers VALUES (?, ?, NULL, ?)",
            (worker.id, worker.expires_at, _encode(worker)),
        )
        if new:
            self.tx.tell(now, Fact.WORKER_JOINED, worker.id)
        return Heard(leader)

    def leave(self, worker_id: str, node: str = "") -> None:
        if node and node_of(self.tx, worker_id) != node:
            return
        if forget_worker(self.tx, worker_id):
            self.tx.tell(self.now(), Fact.WORKER_LEFT, worker_id)

    def campaign(self, node: str, ttl: int) -> Leader:
        now = self.now()
        leader, new = elect(written_leader(self.tx), node, ttl, now)
        self._lead(leader)
        if new:
            self.tx.tell(now, Fact.LEADER_ELECTED, node, f"term {leader.term}")
        return leader

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

    def pause(self, kind: Literal["queue", "type"], name: str, note: str = "") -> None:
        now = self.now()
        self.tx.run("INSERT OR REPLACE INTO @pauses VALUES (?, ?, ?, ?)", (kind, name, now, note))
        self.tx.tell(now, Fact.QUEUE_PAUSED if kind == "queue" else Fact.TYPE_PAUSED, name, note)

    def resume(self, kind: Literal["queue", "type"], name: str) -> bool:
        if self.tx.run("DELETE FROM @pauses WHERE kind = ? AND name = ?", (kind, name)).rowcount == 0:
            return False
        self.tx.tell(self.now(), Fact.QUEUE_RESUMED if kind == "queue" else Fact.TYPE_RESUMED, name)
        self.tx.notify(WORK)
        return True
