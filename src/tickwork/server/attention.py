"""What wants to be looked at, in the order of who must act: the rows at the top of the overview."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from datetime import datetime, timedelta
from typing import Literal

from msgspec import Struct

from tickwork.client.breakers import breakers_of
from tickwork.client.rulebook import read as read_rules
from tickwork.client.switches import SwitchInfo
from tickwork.client.views import seen_at
from tickwork.clock import to_datetime
from tickwork.model.alerts import Alert, AlertSilence
from tickwork.model.members import Worker
from tickwork.model.schedules import Schedule
from tickwork.model.tasks import Status
from tickwork.server.masking import Mask
from tickwork.server.mutes import FailureRow
from tickwork.server.spaces import Space
from tickwork.store.contract import Pause, Stats, Store

Level = Literal["bad", "heal", "rest"]

ROWS_MAX = 20
RECENT = timedelta(hours=1)
SCHEDULES_LOOK = 1000
LATE = 60_000  # milliseconds by which a tick may be overdue


class Attention(Struct, frozen=True, kw_only=True):
    """One thing to look at. `level` is whose turn it is: `bad` is yours, `heal` heals itself or is held on purpose,
    `rest` is over, or silenced. `link` is a path of the dashboard."""

    level: Level
    kind: Literal["breaker", "dead", "queue", "type", "worker", "schedule", "alert", "switch", "workers"]
    title: str
    text: str
    at: datetime | None
    link: str


async def attention(
    space: Space, stats: Stats, failures: list[FailureRow], alerts: list[Alert], mask: Mask
) -> list[Attention]:
    store = await space.store()
    now = to_datetime(store.now())
    rows = [
        *_alerts(alerts),
        *[row async for row in _breakers(store)],
        *_switches(await space.client.switches.list(), mask),
        *_dead(failures, stats, now),
        *[row async for row in _schedules(store, store.now())],
        *_no_worker(stats),
        *_pauses(await store.queries.paused(), stats),
        *_lost(seen_at(await space.members(), store.now()), now),
    ]
    order: tuple[Level, ...] = ("bad", "heal", "rest")
    return sorted(rows, key=lambda row: order.index(row.level))[:ROWS_MAX]


def _alerts(alerts: list[Alert]) -> Iterator[Attention]:
    for alert in alerts:
        if alert.state == "firing":
            value = "unknown" if alert.value is None else f"{alert.value:g}"
            found = f"{alert.metric} is {value}, the rule is {alert.operator} {alert.threshold:g}."
            yield Attention(
                level="bad" if alert.silenced is None else "rest", kind="alert", title=f"Alert {alert.name} fires",
                text=found if alert.silenced is None else f"{_silenced(alert.silenced)} {found}",
                at=alert.since, link="alerts",
            )  # fmt: skip


def _silenced(silence: AlertSilence) -> str:
    note = f", “{silence.note}”" if silence.note else ""
    return f"silenced by {silence.by} until {silence.until:%a %d %b %H:%M} UTC{note}."


async def _breakers(store: Store) -> AsyncIterator[Attention]:
    for breaker in await breakers_of(store, await read_rules(store)):
        why = f"by {breaker.by}: {breaker.note}" if breaker.by_hand else f"after {breaker.failures} failures in a row"
        state = "is open" if breaker.state == "open" else "is being tried"
        yield Attention(
            level="heal", kind="breaker", title=f"Breaker {breaker.of.removeprefix('type:')} {state}",
            text=f"{why}. {_tasks(breaker.waiting)}", at=None if breaker.by_hand else breaker.open_until,
            link=f"limits/breakers/{breaker.of}",
        )  # fmt: skip


def _switches(switches: list[SwitchInfo], mask: Mask) -> Iterator[Attention]:
    for switch in switches:
        kind, _, name = mask.rule(switch.of).partition(":")
        note = f"“{switch.note}”. " if switch.note else ""
        yield Attention(
            level="heal", kind="switch", title=f"{kind.capitalize()} {name} is switched off",
            text=f"{note}{_tasks(switch.waiting)}", at=switch.since, link="limits",
        )  # fmt: skip


def _dead(failures: list[FailureRow], stats: Stats, now: datetime) -> Iterator[Attention]:
    """Those of muted groups are left out. Of a group it is only known how many have ever died, so that where some are
    muted, the number is that of the others, and never more than there are."""
    heard = [each for each in failures if each.muted is None]
    recent = [each for each in heard if each.dead and now - each.last_seen < RECENT]
    count = stats.statuses[Status.DEAD]
    if len(heard) < len(failures):
        count = min(count, sum(each.dead for each in heard))
    if recent and count:
        first = recent[0]
        kinds = f"The last is {first.error or 'no exception'} in {', '.join(first.types)}."
        muted = " Muted errors are not counted." if len(heard) < len(failures) else ""
        yield Attention(
            level="bad", kind="dead", title=f"{count:,} dead letter{'' if count == 1 else 's'}", text=kinds + muted,
            at=first.last_seen, link="failures",
        )  # fmt: skip


async def _schedules(store: Store, now: int) -> AsyncIterator[Attention]:
    found: list[Schedule] = []
    cursor: str | None = None
    while len(found) < SCHEDULES_LOOK:
        page, cursor = await store.schedules.page(cursor)
        found += page
        if cursor is None:
            break
    for each in found:
        if each.stopped:
            yield Attention(
                level="bad", kind="schedule", title=f"Schedule {each.id} has stopped", text=f"{each.stopped}.",
                at=to_datetime(each.updated_at), link=f"schedules/{each.id}",
            )  # fmt: skip
        elif not each.paused and each.next_at is not None and now - each.next_at > LATE:
            yield Attention(
                level="bad", kind="schedule", title=f"Schedule {each.id} is late",
                text="no node has fired it; look whether one leads.", at=to_datetime(each.next_at),
                link=f"schedules/{each.id}",
            )  # fmt: skip


def _no_worker(stats: Stats) -> Iterator[Attention]:
    ready = stats.statuses[Status.READY]
    if ready and not stats.workers:
        yield Attention(
            level="bad", kind="workers", title="No worker is up", text=f"{_tasks(ready)}", at=None, link="workers"
        )


def _pauses(pauses: list[Pause], stats: Stats) -> Iterator[Attention]:
    for pause in pauses:
        kind: Literal["queue", "type"] = pause.kind
        waiting = sum(count for (queue, _), count in stats.ready.items() if kind == "queue" and queue == pause.name)
        note = f"“{pause.note}”. " if pause.note else ""
        link = f"queues/{pause.name}" if kind == "queue" else "queues"
        text = f"{note}{_tasks(waiting)}" if kind == "queue" else note
        yield Attention(
            level="heal", kind=kind, title=f"{kind.capitalize()} {pause.name} is paused", text=text,
            at=to_datetime(pause.at), link=link,
        )  # fmt: skip


def _lost(workers: list[Worker], now: datetime) -> Iterator[Attention]:
    for each in workers:
        if each.lost_at is not None and now - to_datetime(each.lost_at) < RECENT:
            yield Attention(
                level="rest", kind="worker", title=f"Worker {each.id} was lost",
                text="It was not heard of for a whole lease; its tasks are taken back.",
                at=to_datetime(each.lost_at), link=f"workers/{each.id}",
            )  # fmt: skip


def _tasks(count: int) -> str:
    return f"{count:,} task waits." if count == 1 else f"{count:,} tasks wait."
