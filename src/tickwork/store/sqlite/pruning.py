"""Which ended tasks go: those that are past their own retention, too many, or past that of the policy."""

from __future__ import annotations

from tickwork.model.tasks import ENDS
from tickwork.store.sqlite.rows import Rows
from tickwork.store.sqlite.schema import IN_ENDS
from tickwork.store.sqlite.session import Writer

STEP = 100  # ends that are looked at together at most

# Position, time and number of ends, and whether somebody waits to be told of it, and whether it has its own retention.
ENDS_AFTER = (
    "SELECT position, iif(typeof(finished_at) = 'integer', finished_at, 0), seq, id IN (SELECT id FROM @outbox), "
    f"seq IN (SELECT seq FROM @kept) FROM @tasks WHERE {IN_ENDS} AND status = ? AND position > ? "
    f"AND position < {2**62} ORDER BY position LIMIT ?"
)
PAST_THEIR_OWN = (
    "SELECT seq FROM @kept WHERE until <= ? AND (SELECT id FROM @tasks WHERE seq = @kept.seq) NOT IN "
    "(SELECT id FROM @outbox) ORDER BY until, position LIMIT ?"
)


def prune_ends(rows: Rows, tx: Writer, now: int, limit: int) -> int:
    excess = tx.state.ends - tx.policy.retention_max
    own = [seq for (seq,) in tx.all(PAST_THEIR_OWN, (now, limit))]
    _forget(rows, tx, own)
    others = _past_the_policy(tx, now - tx.policy.retention, excess - len(own), limit - len(own))
    _forget(rows, tx, others)
    return len(own) + len(others)


def _forget(rows: Rows, tx: Writer, numbers: list[int]) -> None:
    if numbers:
        tx.state.ends -= len(numbers)
        tx.dead_letters.forget()
        rows.delete(numbers)


def _past_the_policy(tx: Writer, until: int, excess: int, limit: int) -> list[int]:
    """In the order of their ends: as many as are too many, whatever they are, then those that the policy lets go.

    `state.aged` is the position up to which only tasks with a retention of their own are left, so that those are walked
    over once, however many there are."""
    pruned: list[int] = []
    cursor, passed = 0 if excess > 0 else tx.state.aged, True
    size = min(limit + 1, STEP)
    while len(pruned) < limit:
        step = sorted(end for status in ENDS for end in tx.all(ENDS_AFTER, (status.value, cursor, size)))[:size]
        for position, finished_at, seq, untold, own in step:
            if not untold and (len(pruned) < excess or not own):
                if len(pruned) == limit or (len(pruned) >= excess and finished_at > until):
                    return pruned
                pruned.append(seq)
            passed = passed and not untold
            if passed:
                tx.state.aged = max(tx.state.aged, position)
        if len(step) < size:
            break
        cursor = step[-1][0]
    return pruned
