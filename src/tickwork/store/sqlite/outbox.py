"""The outbox in a SQLite file: who waits for the end of a task is told of it. Runs on the writer's thread."""

from __future__ import annotations

from tickwork.model import transitions
from tickwork.model.tasks import Status
from tickwork.store.contract import OutboxEntry
from tickwork.store.hints import WORK
from tickwork.store.rules import fence_of_end, moved_on
from tickwork.store.sqlite.operators import Operators


class Outbox(Operators):
    def outbox(self, limit: int) -> list[OutboxEntry]:
        found: list[OutboxEntry] = []
        for task_id, status, schedule_id in self.tx.all(
            "SELECT id, status, schedule_id FROM @outbox ORDER BY n LIMIT ?", (limit,)
        ):
            waiting = self.tx.all("SELECT dependant FROM @waits WHERE upstream = ? ORDER BY dependant", (task_id,))
            dependants, fence = tuple(row[0] for row in waiting), fence_of_end(self.rows.get(task_id))
            found.append(OutboxEntry(task_id, Status(status), dependants, schedule_id, fence))
        return found

    def clear_outbox(self, told: list[OutboxEntry]) -> None:
        self.tx.many(
            "DELETE FROM @outbox WHERE id = ? AND NOT EXISTS (SELECT 1 FROM @waits WHERE upstream = @outbox.id)",
            [(entry.id,) for entry in told if not moved_on(self.rows.get(entry.id), entry.fence)],
        )

    def moved_on(self, task_id: str, fence: int | None) -> bool:
        return moved_on(self.rows.get(task_id), fence)

    def resolve(self, task_id: str, upstream: str, ok: bool, fence: int | None = None) -> bool:
        record = self.rows.get(task_id)
        if moved_on(self.rows.get(upstream), fence):
            return False
        if record is None or record.status is not Status.BLOCKED or upstream not in record.waiting:
            # Whatever became of it, it does not wait: else the outbox would tell it for ever.
            self.tx.run("DELETE FROM @waits WHERE dependant = ? AND upstream = ?", (task_id, upstream))
            return False
        now = self.now()
        self.tx.run("DELETE FROM @waits WHERE dependant = ? AND upstream = ?", (task_id, upstream))
        self._settle(record, now, transitions.resolve(record, upstream, ok, now), upstream)
        self.tx.notify(WORK)
        return True
