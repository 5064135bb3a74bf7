"""`app.webhooks`: how the webhooks of the configuration are, and what people do with them."""

from __future__ import annotations

import builtins
from datetime import datetime

import msgspec
from msgspec import Struct

from tickwork.client.access import Access
from tickwork.clock import to_datetime
from tickwork.config import Config
from tickwork.config.webhooks import Webhook
from tickwork.errors import ConfigError
from tickwork.ids import new_id
from tickwork.model.tasks import Status
from tickwork.store.contract import PAGE_MAX, Query, Store
from tickwork.texts import shown
from tickwork.webhooks import signing
from tickwork.webhooks.deliver import Sender, keys_of
from tickwork.webhooks.events import Body, queue_of
from tickwork.webhooks.health import clear, failures_of

TEST = "webhook.test"


class WebhookInfo(Struct, frozen=True, kw_only=True):
    """A webhook as users see it. `address` is without the path, which is a secret of some receivers. `failed` counts
    attempts since the last one that was answered with success, of which the first was at `failing_since`."""

    name: str
    address: str
    events: tuple[str, ...]
    enabled: bool
    note: str = ""  # why it is off
    waiting: int = 0
    failed: int = 0
    failing_since: datetime | None = None
    last_error: str = ""


class TestAnswer(Struct, frozen=True):
    """What an endpoint has answered to a test. The body is text of a stranger."""

    status: int
    body: bytes

    @property
    def ok(self) -> bool:
        return 200 <= self.status < 300


class Webhooks:
    """The webhooks of the configuration."""

    def __init__(self, access: Access) -> None:
        self._access = access

    async def list(self) -> builtins.list[WebhookInfo]:
        store = await self._access.open_store()
        paused = {pause.name: pause.note for pause in await store.queries.paused() if pause.kind == "queue"}
        return [await self._info(store, hook, paused) for hook in self._access.config.webhooks]

    async def _info(self, store: Store, hook: Webhook, paused: dict[str, str]) -> WebhookInfo:
        failures, _ = await failures_of(store, hook.name)
        queue = queue_of(hook.name)
        return WebhookInfo(
            name=hook.name,
            address=hook.origin,
            events=hook.events,
            enabled=queue not in paused,
            note=paused.get(queue, ""),
            waiting=await _waiting(store, queue),
            failed=failures.count,
            failing_since=to_datetime(failures.since) if failures.since else None,
            last_error=failures.error,
        )

    async def enable(self, name: str) -> bool:
        """Switch a webhook on again: its deliveries go on where they stopped. False when it was on."""
        hook, store = self._find(name), await self._access.open_store()
        await clear(store, hook.name)
        return await store.operators.resume("queue", queue_of(hook.name))

    async def test(self, name: str) -> TestAnswer:
        """Send a test event now, from this process. Raises `ExecutorError` if there is no answer."""
        hook, store = self._find(name), await self._access.open_store()
        sender = Sender(hook, self._access.config)
        try:
            event_id = f"evt_test_{new_id()}"
            body = Body(TEST, to_datetime(store.now()).isoformat(), {"webhook": hook.name})
            answer = await sender.send(event_id, msgspec.json.encode(body))
            return TestAnswer(answer.status, answer.body)
        finally:
            await sender.close()

    def secret(self, name: str) -> str:
        """What the receiver verifies with, in the form that libraries of Standard Webhooks take."""
        return secret_of(self._access.config, name)

    def _find(self, name: str) -> Webhook:
        return find(self._access.config, name)


def find(config: Config, name: str) -> Webhook:
    hooks = {hook.name: hook for hook in config.webhooks}
    if name not in hooks:
        known = ", ".join(hooks) or "none"
        raise ConfigError(f"there is no webhook {shown(name)} in the configuration; known are {known}")
    return hooks[name]


def secret_of(config: Config, name: str) -> str:
    return signing.secret_text(keys_of(find(config, name), config)()[0])


async def _waiting(store: Store, queue: str) -> int:
    """Deliveries that have not ended, each once, though they move on while they are counted."""
    found: set[str] = set()
    for status in (status for status in Status if not status.ended):
        cursor = None
        while True:
            page, cursor = await store.queries.page(Query(status, queue=queue, limit=PAGE_MAX, cursor=cursor))
            found |= {record.id for record in page}
            if cursor is None:
                break
    return len(found)
