"""The turns of tasks in fair lanes: see `rules.turn_of`. Runs on the writer's thread, inside its transaction.

`fair_lanes` has the virtual time of each lane that has, or had, tasks; `fair_keys` how far each key of it has come. A
key that is not ahead of its lane needs no row.
"""

from __future__ import annotations

from tickwork.model.tasks import Record
from tickwork.store.rules import FORGOTTEN, VIRTUAL_MAX, turn_of
from tickwork.store.sqlite.session import Writer

LANES_MAX = 500  # lanes at which one call of `prune` looks
_LANE = "queue = ? AND band = ?"
_WAITS = f"SELECT 1 FROM @tasks WHERE status = 'ready' AND place <> 1 AND place = 3 AND {_LANE} LIMIT 1"
_SERVE = "INSERT INTO @fair_lanes VALUES (?, ?, ?) ON CONFLICT (queue, band) DO UPDATE SET now = max(now, excluded.now)"
_FORGET = (
    f"DELETE FROM @fair_keys WHERE {_LANE} AND key IN "
    f"(SELECT key FROM @fair_keys WHERE {_LANE} AND last <= ? ORDER BY last LIMIT ?)"
)
_FORGET_LANE = (
    f"DELETE FROM @fair_lanes WHERE {_LANE} AND NOT EXISTS "
    "(SELECT 1 FROM @fair_keys AS keys WHERE keys.queue = @fair_lanes.queue AND keys.band = @fair_lanes.band)"
)

Lane = tuple[str, int]


class Fairness:
    def __init__(self, tx: Writer) -> None:
        self._tx = tx

    def turn(self, record: Record) -> int:
        """That of a task which comes to its lane, and which its row does not say yet."""
        spec, lane = record.spec, _lane_of(record)
        key = spec.key or ""
        last = self._tx.one(f"SELECT last FROM @fair_keys WHERE {_LANE} AND key = ?", (*lane, key))
        turn = turn_of(self._now(lane), 0 if last is None else last[0], spec.fair)
        self._tx.run("INSERT OR REPLACE INTO @fair_keys VALUES (?, ?, ?, ?)", (*lane, key, turn))
        return turn

    def _now(self, lane: Lane) -> int:
        row = self._tx.one(f"SELECT now FROM @fair_lanes WHERE {_LANE}", lane)
        if row is None:
            self._tx.run(_SERVE, (*lane, 0))
            return 0
        now: int = row[0]
        if not self._waits(lane):  # nobody waits, so nobody is ahead of others
            ahead = self._tx.one(f"SELECT max(last) FROM @fair_keys WHERE {_LANE}", lane)[0]
            if ahead is not None and ahead > now:
                now = ahead
                self._tx.run(_SERVE, (*lane, now))
        return now

    def _waits(self, lane: Lane) -> bool:
        return self._tx.one(_WAITS, lane) is not None

    def serve(self, taken: list[tuple[Record, int]]) -> None:
        """Tasks were taken from fair lanes at their turns, to be run or assigned, and their rows say so already."""
        by_lane: dict[Lane, list[int]] = {}
        for record, turn in taken:
            by_lane.setdefault(_lane_of(record), []).append(turn)
        for lane, turns in by_lane.items():
            self._tx.run(_SERVE, (*lane, max(turns)))
            self._forget(lane, max(turns), FORGOTTEN * len(turns))

    def _forget(self, lane: Lane, now: int, limit: int) -> None:
        """Forget keys that are not ahead of the lane, or any if nobody waits; at last the lane."""
        waits = self._waits(lane)
        self._tx.run(_FORGET, (*lane, *lane, now if waits else VIRTUAL_MAX, limit))
        if not waits:
            self._tx.run(_FORGET_LANE, lane)

    def prune(self, limit: int) -> None:
        lanes = self._tx.all("SELECT queue, band, now FROM @fair_lanes ORDER BY random() LIMIT ?", (LANES_MAX,))
        for queue, band, now in lanes:
            self._forget((queue, band), now, limit)


def _lane_of(record: Record) -> Lane:
    return record.spec.queue, int(record.spec.band)
