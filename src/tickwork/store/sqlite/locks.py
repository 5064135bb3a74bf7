"""Locks over SQLite rows."""

from __future__ import annotations

from tickwork.store.rules import ENDED_KEPT, UNLOCK_KEPT, next_fence
from tickwork.store.sqlite.core import Part, reads, writes
from tickwork.store.sqlite.session import Writer
from tickwork.store.sqlite.workers import keep_pulse


class Locks(Part):
    def _now(self) -> int:
        now = self.now()
        keep_pulse(self.tx, now)
        return now

    @writes
    def acquire(self, name: str, owner: str, ttl: int) -> int | None:
        now = self._now()
        held = self.tx.one("SELECT owner, fence FROM @locks WHERE name = ? AND until > ?", (name, now))
        if held is not None and held[0] != owner:
            return None
        fence: int = self._new_fence(now) if held is None else held[1]
        self.tx.run("INSERT OR REPLACE INTO @locks VALUES (?, ?, ?, ?)", (name, owner, fence, now + ttl))
        return fence

    def _new_fence(self, now: int) -> int:
        """One count for all names, so that a lock that was given back leaves nothing behind."""
        fence = next_fence(self.tx.one("SELECT lock_fence FROM @state")[0], now)
        self.tx.run("UPDATE @state SET lock_fence = ?", (fence,))
        return fence

    @writes
    def extend(self, name: str, owner: str, ttl: int) -> bool:
        now = self._now()
        renewed = self.tx.run(
            "UPDATE @locks SET until = ? WHERE name = ? AND owner = ? AND until > ?", (now + ttl, name, owner, now)
        )
        return renewed.rowcount > 0

    @writes
    def release(self, name: str, owner: str) -> bool:
        """One that was given back stays for a while, with the time of that as a negative end."""
        now = self._now()
        row = self.tx.one("SELECT until FROM @locks WHERE name = ? AND owner = ?", (name, owner))
        until = 0 if row is None else row[0]
        if until > now:
            self.tx.run("UPDATE @locks SET until = ? WHERE name = ?", (-now, name))
        return until > now or (until < 0 and now < UNLOCK_KEPT - until)

    @reads
    def holder(self, name: str) -> tuple[str, int] | None:
        row: tuple[str, int] | None = self.reader.one(
            "SELECT owner, until FROM @locks WHERE name = ? AND until > ?", (name, self.now())
        )
        return row


def prune_locks(tx: Writer, now: int, limit: int) -> None:
    over = "SELECT name FROM @locks WHERE abs(until) <= ? LIMIT ?"
    tx.run(f"DELETE FROM @locks WHERE name IN ({over})", (now - ENDED_KEPT, limit))
