"""How a store and those who work on it are: a bounded look, which never raises because the store is away."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import UTC, datetime

from tickwork.client.breakers import unclosed
from tickwork.config import Config
from tickwork.errors import StoreError
from tickwork.model.health import Check, Health
from tickwork.model.info import WorkerInfo
from tickwork.model.tasks import WAITING, Status
from tickwork.store.contract import Stats, Store
from tickwork.texts import cut
from tickwork.timeouts import TimeLimit, of_late

PATIENCE = 2.0  # seconds for the store to answer
FULL = 0.8  # share of `dlq_max` from which dead letters are too many
MESSAGE_MAX = 300  # characters
NAMES_MAX = 5


async def health_of(open_store: Callable[[], Awaitable[Store]], name: str, config: Config) -> Health:
    """`name` is that of the check of the store."""
    try:
        with TimeLimit(PATIENCE, makes_up=True) as limit:
            store = await open_store()
            stats = await store.queries.stats()
            breakers = await open_breakers(store)
    except TimeoutError:
        return unreachable(name, f"no answer within {PATIENCE:g} s{of_late(limit.late)}")
    except StoreError as error:
        return unreachable(name, str(error))
    return Health.of(
        datetime.now(UTC),
        {
            name: Check("ok", f"{name} connection healthy"),
            "workers": Check("ok" if stats.workers else "warning", f"{stats.workers} workers active"),
            "queues": Check("ok", f"queued: {_queued(stats)}, running: {stats.statuses[Status.RUNNING]}"),
            "dlq": _dead_letters(stats.statuses[Status.DEAD], config),
            "breakers": _breakers(breakers),
        },
    )


async def with_workers_of(
    host: str, health: Health, workers: Callable[[str], Awaitable[list[WorkerInfo]]], name: str
) -> Health:
    """The same, unhealthy also if no worker of this host has given a sign of life within its lease."""
    if not health.works:
        return health
    try:
        with TimeLimit(PATIENCE, makes_up=True) as limit:
            found = sum(worker.host == host for worker in await workers("online"))
    except TimeoutError:
        return unreachable(name, f"no answer within {PATIENCE:g} s{of_late(limit.late)}")
    check = Check("ok", f"{found} workers of {host}") if found else Check("error", f"no worker of {host} is up")
    return Health.of(health.timestamp, {**health.checks, "here": check})


def unreachable(name: str, why: str) -> Health:
    text = cut(f"{name} connection failed: {why}".partition("\n")[0], MESSAGE_MAX)
    return Health.of(datetime.now(UTC), {name: Check("error", text)})


async def open_breakers(store: Store) -> list[str]:
    """The names of the circuit breakers that hold tasks. One that is half open holds none until one tries: where nobody
    submits any more, that may be for ever."""
    return [each.of for each in await unclosed(store) if each.state == "open" or each.waiting]


def _queued(stats: Stats) -> int:
    return sum(stats.statuses[status] for status in WAITING)


def _dead_letters(count: int, config: Config) -> Check:
    if config.dlq and count > FULL * config.dlq_max:
        return Check("warning", f"DLQ: {count} tasks, of at most {config.dlq_max}: the oldest will be dropped")
    return Check("ok", f"DLQ: {count} tasks")


def _breakers(names: list[str]) -> Check:
    if not names:
        return Check("ok", "breakers open: 0")
    more = ", ..." if len(names) > NAMES_MAX else ""
    return Check("warning", f"breakers open: {len(names)} ({', '.join(sorted(names)[:NAMES_MAX])}{more})")
