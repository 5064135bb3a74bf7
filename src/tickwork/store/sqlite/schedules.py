"""Schedules over SQLite rows."""

from __future__ import annotations

from collections.abc import Callable

import msgspec
from msgspec.structs import replace

from tickwork.model.facts import Fact
from tickwork.model.schedules import Schedule
from tickwork.model.tasks import Spec, Status
from tickwork.store.contract import SCHEDULES_PAGE, Advance, Receipt
from tickwork.store.hints import SCHEDULES
from tickwork.store.rules import (
    advance_facts,
    advanced,
    changed,
    moved_on,
    put_refused,
    redefined,
    same_definition,
    taken,
)
from tickwork.store.sqlite.connection import Connection
from tickwork.store.sqlite.core import Core, Part, reads, writes
from tickwork.store.sqlite.rows import Rows
from tickwork.store.unreadable import read_schedule, refuse_stub

SubmitTicks = Callable[[tuple[Spec, ...], int], list[Receipt]]

_encode = msgspec.msgpack.Encoder().encode


def get_schedule(connection: Connection, schedule_id: str) -> Schedule | None:
    row = connection.one("SELECT schedule FROM @schedules WHERE id = ?", (schedule_id,))
    return None if row is None else read_schedule(schedule_id, row[0])


def list_schedules(connection: Connection) -> list[Schedule]:
    return [read_schedule(*row) for row in connection.all("SELECT id, schedule FROM @schedules ORDER BY id")]


class Schedules(Part):
    def __init__(self, core: Core, rows: Rows, submit_ticks: SubmitTicks) -> None:
        super().__init__(core)
        self._rows = rows
        self._submit_ticks = submit_ticks

    @writes
    def put(
        self, schedule: Schedule, if_changed: bool = False, create: bool = False, seen: Schedule | None = None
    ) -> Schedule | None:
        now, old = self.now(), get_schedule(self.tx, schedule.id)
        if put_refused(old, create, seen):
            return None
        if old is not None and old.unreadable:
            old = None
        if old is not None and if_changed and same_definition(old, schedule):
            return old
        self.tx.tell(now, Fact.SCHEDULE_PUT, schedule.id, schedule.cron or "")
        return self._save(redefined(old, schedule, now))

    @writes
    def drop(self, schedule_id: str) -> bool:
        if self.tx.run("DELETE FROM @schedules WHERE id = ?", (schedule_id,)).rowcount == 0:
            return False
        self.tx.tell(self.now(), Fact.SCHEDULE_DROPPED, schedule_id)
        return True

    @writes
    def advance(
        self, schedule_id: str, seen: int | None, step: Advance, ticks: tuple[Spec, ...] = ()
    ) -> Advance | None:
        schedule = get_schedule(self.tx, schedule_id)
        if schedule is None or schedule.unreadable or schedule.next_at != seen:
            return None
        now = self.now()
        step = taken(step, ticks, self._submit_ticks(ticks, now), self.tx.policy)
        self._save(advanced(schedule, step))
        for fact, detail in advance_facts(step):
            self.tx.tell(now, fact, schedule_id, detail)
        return step

    @writes
    def change(
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

    @writes
    def report_run(self, schedule_id: str, task_id: str, status: Status, fence: int | None = None) -> Schedule | None:
        if moved_on(self._rows.get(task_id), fence):
            return None
        schedule = get_schedule(self.tx, schedule_id)
        if schedule is not None and schedule.last_task_id == task_id:
            schedule = self._save(replace(schedule, last_status=status.value))
        return schedule

    def _save(self, schedule: Schedule) -> Schedule:
        self.tx.notify(SCHEDULES)
        self.tx.run(
            "INSERT OR REPLACE INTO @schedules VALUES (?, ?, ?, ?)",
            (schedule.id, schedule.next_at, schedule.active, _encode(schedule)),
        )
        return schedule

    @reads
    def get(self, schedule_id: str) -> Schedule | None:
        return get_schedule(self.reader, schedule_id)

    @reads
    def page(self, cursor: str | None = None) -> tuple[list[Schedule], str | None]:
        rows = self.reader.all(
            "SELECT id, schedule FROM @schedules WHERE id > ? ORDER BY id LIMIT ?", (cursor or "", SCHEDULES_PAGE + 1)
        )
        found = [read_schedule(*row) for row in rows[:SCHEDULES_PAGE]]
        return found, found[-1].id if len(rows) > SCHEDULES_PAGE else None

    @reads
    def due(self, limit: int, after: str | None = None) -> tuple[list[Schedule], int | None]:
        now = self.now()
        waiting = "active = 1 AND next_at IS NOT NULL"
        behind = self.reader.one(f"SELECT next_at, id FROM @schedules WHERE {waiting} AND id = ?", (after,))
        due: list[Schedule] = []
        for row in self.reader.run(
            f"SELECT id, schedule FROM @schedules WHERE {waiting} AND next_at <= ? AND (next_at, id) > (?, ?) "
            "ORDER BY next_at, id",
            (now, *(behind or (-1, ""))),
        ):
            if (schedule := read_schedule(*row)).unreadable:  # a leader of a newer version may be able to fire it
                continue
            if len(due) == limit:
                return due, 0
            due.append(schedule)
        later = self.reader.one(
            f"SELECT next_at FROM @schedules WHERE {waiting} AND next_at > ? AND next_at < ? ORDER BY next_at LIMIT 1",
            (now, 2**62),
        )
        return due, None if later is None else later[0] - now
