"""Which ticks of a schedule are to run, and the task of each of them."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from itertools import islice

from msgspec.structs import replace

from tickwork.cron import Cron
from tickwork.model.schedules import Misfire, Schedule
from tickwork.model.tasks import Spec

SKIP_TOLERANCE = 5_000  # a tick this late still counts as on time for misfire="skip"
COUNT_MAX = 1_000  # missed ticks are counted up to here


def cron_of(schedule: Schedule) -> Cron:
    return Cron(schedule.cron or "", schedule.timezone, "instant" if schedule.dst == "instant" else "once")


def ticks_to_run(schedule: Schedule, cron: Cron, first: int, now: int) -> tuple[list[int], int]:
    """The ticks from `first` to `now` that are to run by the misfire policy, and how many are not."""
    newest = _newest(cron, first, now)
    if schedule.misfire is Misfire.ALL:
        run = _newest_ticks(cron, max(first, now - schedule.misfire_grace), now, schedule.misfire_cap)
    else:
        grace = SKIP_TOLERANCE if schedule.misfire is Misfire.SKIP else schedule.misfire_grace
        run = [newest] if now - newest <= grace else []
    if first == newest:
        return run, 1 - len(run)
    missed = sum(1 for _ in islice(_ticks(cron, first, now), COUNT_MAX + len(run))) - len(run)
    return run, missed


def _ticks(cron: Cron, first: int | None, now: int) -> Iterator[int]:
    tick = first
    while tick is not None and tick <= now:
        yield tick
        tick = cron.next_ms(tick)


def _newest_ticks(cron: Cron, first: int, now: int, most: int) -> list[int]:
    """The last ticks from `first` to `now`, at most so many, without walking through all that were before."""

    def ticks_from(start: int) -> list[int]:
        return list(islice(_ticks(cron, cron.next_ms(start - 1), now), most + 1))

    start = first + bisect_left(range(first, now), True, key=lambda moment: len(ticks_from(moment)) <= most)
    return ticks_from(start)


def _newest(cron: Cron, first: int, now: int) -> int:
    """The last tick not after `now`, by halving the time in which it must lie rather than by walking all ticks."""
    newest, low, high = first, first, now
    while low < high:
        middle = (low + high) // 2
        tick = cron.next_ms(middle)
        if tick is not None and tick <= now:
            newest = low = tick
        else:
            high = middle
    return newest


def run_of(schedule: Schedule, tick: int, after: tuple[str, ...] = (), *, by_hand: str = "") -> Spec:
    """The task of one tick. Its id and nonce follow from the tick, so a second one changes nothing. `by_hand` makes it
    another one, beside the tick of that moment."""
    return replace(
        schedule.task,
        id=f"{schedule.id}@{tick}{by_hand}",
        nonce="tick",
        schedule_id=schedule.id,
        scheduled_at=tick,
        depends_on=after,
        run_after="end",
    )


def is_tick(task_id: str) -> bool:
    """Whether a task of a schedule is one of its ticks, by its id; else it was run by hand."""
    return task_id.rpartition("@")[2].isdecimal()
