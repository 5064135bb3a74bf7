"""Whether an endpoint lives: failures in a row, and the switch. A webhook is off while its queue is paused, so that its
deliveries wait in their order, and all other webhooks go on."""

from __future__ import annotations

import msgspec
from msgspec import Struct

from tickwork.config.webhooks import Webhook
from tickwork.observe.loggers import Log
from tickwork.store.contract import Store
from tickwork.texts import NOTE_MAX, cut
from tickwork.webhooks.events import queue_of

ERROR_MAX = 300  # characters


class Failures(Struct, frozen=True, omit_defaults=True):
    """Deliveries that have failed since the last one that did not."""

    count: int = 0
    since: int = 0  # milliseconds
    error: str = ""


def mark_of(name: str) -> str:
    return f"webhook-failures:{name}"


async def failures_of(store: Store, name: str) -> tuple[Failures, str | None]:
    """As they are, and the mark that says so."""
    stored = await store.marks.get(mark_of(name))
    try:
        return Failures() if stored is None else msgspec.json.decode(stored, type=Failures), stored
    except msgspec.MsgspecError:  # of a later version
        return Failures(), stored


async def clear(store: Store, name: str) -> None:
    """The row of failures has ended."""
    while True:
        stored = await store.marks.get(mark_of(name))
        if stored is None or await store.marks.swap(mark_of(name), stored, None):
            return


class Health:
    """Of one webhook."""

    def __init__(self, hook: Webhook, store: Store, log: Log) -> None:
        self._hook = hook
        self._store = store
        self._log = log

    async def succeeded(self) -> None:
        await clear(self._store, self._hook.name)

    async def failed(self, error: str) -> None:
        hook, now = self._hook, self._store.now()
        while True:
            before, stored = await failures_of(self._store, hook.name)
            after = Failures(before.count + 1, before.since or now, cut(error, ERROR_MAX))
            if await self._store.marks.swap(mark_of(hook.name), stored, msgspec.json.encode(after).decode()):
                break
        if after.count >= hook.disable_after and now - after.since >= hook.disable_time * 1000:
            await self.switch_off(f"{after.count} deliveries in a row have failed, the last one: {after.error}")

    async def switch_off(self, why: str) -> None:
        queue = queue_of(self._hook.name)
        if any(pause.kind == "queue" and pause.name == queue for pause in await self._store.queries.paused()):
            return
        await self._store.operators.pause("queue", queue, cut(why, NOTE_MAX))
        self._log.error(
            "webhook %s (%s) is switched off: %s. Its events wait. When it is mended: `tickwork webhooks enable %s`",
            self._hook.name, self._hook.origin, why, self._hook.name,
        )  # fmt: skip
