"""Locks over SQLite rows. Runs on the writer's thread, inside its transaction; `holder` on the reader's too."""

from __future__ import annotations

from tickwork.store.rules import ENDED_KEPT, UNLOCK_KEPT, next_fence
from tickwork.store.sqlite.members import keep_pulse
from tickwork.store.sqlite.session import Connection, Writer


def holder(connection: Connection, name: str, now: int) -> tuple[str, int] | None:
    row: tuple[str, int] | None = connection.one(
        "SELECT owner, until FROM @locks WHERE name = ? AND until > ?", (name, now)
    )
    return row


class Locks:
    def __init__(self, tx: Writer) -> None:
        self.tx = tx

    def _now(self) -> int:
        now = self.tx.clock.now()
        keep_pulse(self.tx, now)
        return now

    def lock(self, name: str, owner: str, ttl: int) -> int | None:
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

    def extend(self, name: str, owner: str, ttl: int) -> bool:
        now = self._now()
        renewed = self.tx.run(
            "UPDATE @locks SET until = ? WHERE name = ? AND owner = ? AND until > ?", (now + ttl, name, owner, now)
        )
        return renewed.rowcount > 0

    def unlock(self, name: str, owner: str) -> bool:
        """One that was given back stays for a while, with the time of that as a negative end."""
        now = self._now()
        row = self.tx.one("SELECT until FROM @locks WHERE name = ? AND owner = ?", (name, owner))
        until = 0 if row is None else row[0]
        if until > now:
            self.tx.run("UPDATE @locks SET until = ? WHERE name = ?", (-now, name))
        return until > now or (until < 0 and now < UNLOCK_KEPT - until)


def prune_locks(tx: Writer, now: int, limit: int) -> None:
    over = "SELECT name FROM @locks WHERE abs(until) <= ? LIMIT ?"
    tx.run(f"DELETE FROM @locks WHERE name IN ({over})", (now - ENDED_KEPT, limit))
