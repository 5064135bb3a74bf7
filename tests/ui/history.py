"""Two weeks of statistics and of runs that never were, written as the leader of such a time would have left them: no
number of it is a measurement."""

from __future__ import annotations

import math
import zlib
from datetime import timedelta

from tickwork.clock import to_datetime, to_millis
from tickwork.cron import Cron
from tickwork.model import runs as model
from tickwork.model.runs import MISSED, SKIPPED, Run
from tickwork.model.statistics import COUNTS, KEPT, OPEN, SIZES, Open, mark_of, pack
from tickwork.store.contract import Store

MINUTE, HOUR, DAY = SIZES["minute"], SIZES["hour"], SIZES["day"]
DAYS = 15
BURST = range(4, 8)  # minutes ago: payments fail
# A type, its queue, tasks a minute, how long one runs, and which share of them is retried.
PACE = (
    ("send_email", "email", 42, 0.18, 0.02),
    ("resize_image", "media", 18, 2.4, 0.0),
    ("charge_payment", "payments", 11, 0.31, 0.01),
    ("render_invoice", "reports", 6, 0.74, 0.0),
    ("import_stock", "default", 25, 0.06, 0.0),
)
# A schedule, its line and zone, and what came of its last runs, the latest first, where that was no success.
RUNS: tuple[tuple[str, str, str, dict[int, str]], ...] = (
    ("close_day", "0 2 * * *", "Europe/Paris", {7: "dead", 19: SKIPPED}),
    ("sync_prices", "0 */6 * * *", "UTC", {3: "dead", 4: "dead", 12: MISSED}),
    ("weekly_digest", "30 4 * * 1-5", "UTC", {}),
)
SHOWN = 29  # runs, so that one of today has its place


async def write_weeks(store: Store, burst: range = BURST) -> None:
    """Only before a node has started: the leader goes on from there."""
    now = store.now()
    recent = now - KEPT["minute"]
    at = now - DAYS * DAY
    at -= at % HOUR
    opened = Open(0, at)
    while at < now - MINUTE:
        step = MINUTE if at >= recent else HOUR
        opened.roll(at)
        _fill(opened, at, step // MINUTE, (now - at) // MINUTE in burst)
        at += step
    opened.at = now
    for grain, bucket in opened.closed:
        if bucket.start >= now - KEPT[grain]:
            await store.marks.swap(mark_of(grain, bucket.start), None, pack(bucket.data()))
            opened.kept[grain].append(bucket.start // SIZES[grain])
    opened.closed.clear()
    await store.marks.swap(OPEN, None, opened.text())


def _fill(opened: Open, at: int, minutes: int, is_burst: bool) -> None:
    day = 1 + 0.3 * math.sin(at / DAY * 2 * math.pi)
    for kind, queue, pace, seconds, share in PACE:
        chance = _chance(at, kind)
        wave = day * (0.9 + 0.2 * chance)
        count = round(pace * wave * minutes)
        fails = is_burst and kind == "charge_payment"
        dead = round(count * 0.2) if fails else round(count * share / 20)
        retries = round(count * 0.6) if fails else round(count * share + chance - 0.5)
        cell = opened.buckets["minute"].cell(kind, queue)
        for name, number in (
            ("submitted", count), ("started", count), ("success", count - dead), ("dead", dead), ("retries", retries),
        ):  # fmt: skip
            cell.counts[COUNTS.index(name)] += max(number, 0)
        slow = 4.0 if fails else 1.0
        for stretch, part in ((0.6, 0.5), (1.0, 0.44), (2.6, 0.06)):
            cell.runs.add(seconds * stretch * wave * slow, max(round(count * part), 1))
            cell.waits.add(0.04 * stretch * (0.7 + 0.6 * chance), max(round(count * part), 1))


def _chance(at: int, kind: str) -> float:
    """From 0 to 1, and the same at each call."""
    return zlib.crc32(f"{at // MINUTE} {kind}".encode()) / 2**32


async def write_runs(store: Store) -> None:
    """Of the schedules that are there."""
    now = store.now()
    for schedule, line, zone, outcomes in RUNS:
        fires = Cron(line, zone).upcoming(400, to_datetime(now) - timedelta(days=60))
        ticks = [to_millis(fire) for fire in fires if to_millis(fire) < now][-SHOWN:]
        runs = [_run(tick, outcomes.get(ago, "success")) for ago, tick in enumerate(reversed(ticks))]
        mark = model.mark_of(schedule)
        stored = await store.marks.get(mark)
        before = [] if stored is None else model.read(stored)
        await store.marks.swap(mark, stored, model.text_of(model.joined(before, runs)))


def _run(at: int, outcome: str) -> Run:
    if outcome in (SKIPPED, MISSED):
        return Run(at, outcome)
    return Run(at, outcome, f"@{at}", 12 + round(40 * _chance(at, "late")), 0.4 + _chance(at, "took"))
