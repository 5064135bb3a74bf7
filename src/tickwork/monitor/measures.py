"""The numbers that alert rules are about, read from the store."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable

from tickwork.client.health import open_breakers
from tickwork.client.views import seen_at
from tickwork.config.alerts import WINDOW
from tickwork.handlers.options import RESERVED
from tickwork.model.alerts import Ends
from tickwork.model.facts import Fact, Facts
from tickwork.model.members import Worker
from tickwork.model.tasks import UNSTARTED, Status
from tickwork.store.contract import Stats, Store

READ_STEP = 5000  # facts in one read
READ_MAX = 20_000  # facts that one look counts: of more, these stand for all
SLICE = WINDOW / 30  # seconds: what is counted within this time is kept as one

Values = dict[str, float | None]


async def count_ends(store: Store, read: int | None, before: list[Ends], now: int) -> tuple[int, list[Ends]]:
    """Count the facts after number `read`, and forget what is older than the window. The first look counts nothing."""
    kept = [ends for ends in before if 0 <= now - ends.at < 1000 * WINDOW]
    if read is None:
        return await store.log.last(), kept
    found = Ends(now)
    for _ in range(READ_MAX // READ_STEP):
        groups, _ = await store.log.read_groups(read, READ_STEP)
        found = _counted(found, groups)
        if not groups:
            break
        read = groups[-1].numbers[-1]
        await asyncio.sleep(0)
    else:
        read = await store.log.last()
    if kept and now - kept[-1].at < 1000 * SLICE:
        found = _together(kept.pop(), found)
    return read, [*kept, found] if found != Ends(found.at) else kept


def _counted(found: Ends, groups: list[Facts]) -> Ends:
    kinds: Counter[str] = Counter()
    for facts in groups:
        if not facts.type.startswith(RESERVED):  # webhooks are no tasks of a program
            kinds[facts.kind] += len(facts.ids)
    died = kinds[Fact.TASK_DIED]
    some = Ends(
        found.at, kinds[Fact.TASK_SUCCEEDED], kinds[Fact.TASK_FAILED] + died, died, kinds[Fact.TASK_RETRYING]
    )  # fmt: skip
    return _together(found, some)


def _together(first: Ends, second: Ends) -> Ends:
    return Ends(
        first.at,
        first.succeeded + second.succeeded,
        first.failed + second.failed,
        first.died + second.died,
        first.retrying + second.retrying,
    )


async def measure(store: Store, wanted: frozenset[str], ends: list[Ends] | None, dlq_max: int, now: int) -> Values:
    """The wanted metrics; None for one that cannot be known. Only what they need is read. `ends` is None without a log
    of facts."""
    values = of_ends(ends)
    if not wanted <= values.keys():
        values |= _of_stats(await store.queries.stats(), dlq_max)
    if any(name.startswith(("worker", "scheduler_worker")) for name in wanted):
        values |= _of_workers(await store.members.workers(counted=True), now)
    if "queue_age_seconds" in wanted:
        values["queue_age_seconds"] = await _queue_age(store, now)
    if "schedule_lateness_seconds" in wanted:
        due, _ = await store.schedules.due(1)
        values["schedule_lateness_seconds"] = _seconds_since(due[0].next_at if due else None, now)
    if "breakers_open" in wanted:
        values["breakers_open"] = len(await open_breakers(store))
    if "store_used" in wanted:
        values["store_used"] = await store.queries.fullness()
    return {name: values[name] for name in wanted}


def of_ends(ends: list[Ends] | None) -> Values:
    if ends is None:
        return dict.fromkeys(("task_failure_rate", "task_retry_rate", "dead_letters_added"))
    found = Ends(0)
    for some in ends:
        found = _together(found, some)
    ended = found.succeeded + found.failed
    return {
        "task_failure_rate": _share(found.failed, ended),
        "task_retry_rate": _share(found.retrying, ended + found.retrying),
        "dead_letters_added": found.died,
    }


def _of_stats(stats: Stats, dlq_max: int) -> Values:
    dead = stats.statuses[Status.DEAD]
    return {
        "scheduler_dead_letter_queue_size": dead,
        "dead_letter_queue_used": _share(dead, dlq_max),
        "tasks_pending": sum(stats.statuses[status] for status in UNSTARTED),
        "tasks_running": stats.statuses[Status.RUNNING],
        "scheduler_queue_size": stats.statuses[Status.READY],
    }


def _of_workers(members: list[Worker], now: int) -> Values:
    online = [worker for worker in seen_at(members, now) if worker.lost_at is None and not _is_own(worker)]

    def most(of: Callable[[Worker], float]) -> float:
        return max(map(of, online), default=0.0)

    return {
        "workers_online": len(online),
        "scheduler_worker_count": len(online),
        "worker_utilization": _share(sum(each.running for each in online), sum(each.capacity for each in online)),
        "worker_heartbeat_age_seconds": most(lambda worker: _seconds_since(worker.beat_at, now)),
        "worker_cpu": most(lambda worker: worker.cpu),
        "worker_memory_bytes": most(lambda worker: worker.memory),
        "worker_loop_lag_seconds": most(lambda worker: worker.loop_lag),
    }


def _is_own(worker: Worker) -> bool:
    return all(queue.startswith(RESERVED) for queue in worker.queues)


async def _queue_age(store: Store, now: int) -> float:
    paused = {pause.name for pause in await store.queries.paused() if pause.kind == "queue"}
    since = await store.queries.waiting_since()
    return max((_seconds_since(at, now) for queue, at in since.items() if queue not in paused), default=0.0)


def _seconds_since(at: int | None, now: int) -> float:
    return 0.0 if at is None else max(now - at, 0) / 1000


def _share(part: float, whole: float) -> float:
    return part / whole if whole else 0.0
