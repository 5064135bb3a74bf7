"""`/health`, `/ready` and `/live` of a node. However often they are asked for, the store is looked at once a second at
most, and by one look at a time."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Mapping
from datetime import UTC, datetime
from typing import Literal

import msgspec

from tickwork.model.health import Check, Health
from tickwork.monitor.listener import Listener, Reply
from tickwork.node.duties import Duty
from tickwork.node.parts import Parts
from tickwork.observe.loggers import Log

FRESH = 1.0  # seconds that a look at the store is good for
JSON = "application/json"

Look = Callable[[], Awaitable[Health]]
# A node is `failed` if a part of it that it cannot do without has ended.
Condition = Literal["starting", "running", "draining", "failed"]
_NODE: dict[Condition, str] = {
    "starting": "the node is starting",
    "running": "the node is running",
    "draining": "the node is draining: it takes no more tasks",
    "failed": "the node has failed, its log says why: it takes no more tasks",
}


class HealthPages:
    """`look` asks the store, within a bounded time; `condition` is that of the node."""

    def __init__(
        self,
        look: Look,
        condition: Callable[[], Condition],
        log: Log,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._look = look
        self._condition = condition
        self._log = log
        self._clock = clock
        self._seen: Health | None = None
        self._seen_at = 0.0
        self._looking: asyncio.Task[Health] | None = None

    def join(self, parts: Parts, listener: Listener, every: float) -> None:
        """Be served by a listener, and look every so many seconds, whether anybody asks or not."""
        for path, page in (("/health", self.health), ("/ready", self.ready), ("/live", self.live)):
            listener.add(path, page)
        parts.duties.append(Duty("check health", self._check, every, who="all"))

    async def _check(self) -> None:
        await self._store()

    async def health(self) -> Reply:
        """All of it."""
        store = await self._store()
        return _reply({**store.checks, "node": self._node(fails=("failed",))}, store.timestamp)

    async def ready(self) -> Reply:
        """Whether this node can do its work now: it has started, does not drain, and the store answers."""
        store = await self._store()
        name = next(iter(store.checks))
        checks = {"node": self._node(fails=("starting", "draining", "failed")), name: store.checks[name]}
        return _reply(checks, store.timestamp)

    async def live(self) -> Reply:
        """Whether this process is worth keeping. The store is not asked. A dead event loop does not answer."""
        return _reply({"node": self._node(fails=("failed",))}, datetime.now(UTC))

    def _node(self, fails: tuple[Condition, ...]) -> Check:
        condition = self._condition()
        return Check("error" if condition in fails else "ok", _NODE[condition])

    async def _store(self) -> Health:
        if self._seen is not None and self._clock() - self._seen_at < FRESH:
            return self._seen
        if self._looking is None:
            self._looking = asyncio.ensure_future(self._look_now())
        return await asyncio.shield(self._looking)

    async def _look_now(self) -> Health:
        try:
            before, found = self._seen, await self._look()
            self._seen, self._seen_at = found, self._clock()
        finally:
            self._looking = None
        if (before.status if before else "healthy") != found.status:
            self._tell(found)
        return found

    def _tell(self, found: Health) -> None:
        level = logging.INFO if found.status == "healthy" else logging.WARNING
        wrong = "; ".join(check.message for check in found.checks.values() if check.status != "ok")
        self._log.line(level, "Health changed", status=found.status, **({"why": wrong} if wrong else {}))


def _reply(checks: Mapping[str, Check], at: datetime) -> Reply:
    health = Health.of(at, checks)
    return Reply(200 if health.works else 503, JSON, msgspec.json.encode(health) + b"\n")
