"""Sending: one request for one attempt of a delivery, and what its answer means."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from tickwork.config import Config
from tickwork.config.webhooks import Webhook
from tickwork.errors import Abort, ConfigError, ExecutorError, Retry
from tickwork.handlers.context import TaskContext
from tickwork.observe.loggers import Log
from tickwork.outbound.addresses import Allowed
from tickwork.outbound.answers import NOT_NOW, pause_of
from tickwork.outbound.client import Answer, Outbound
from tickwork.outbound.keys import derive
from tickwork.outbound.secrets import AdministratorSecret, Secret
from tickwork.store.contract import Store
from tickwork.webhooks import signing
from tickwork.webhooks.events import Delivery, body_of, needs_record
from tickwork.webhooks.health import Health

LABEL = "tickwork webhook"
ANSWER_MAX = 65_536  # bytes: nothing of an answer matters but its status
GONE = 410

Keys = Callable[[], list[bytes]]


def keys_of(hook: Webhook, config: Config) -> Keys:
    """The keys that sign, the current one first. Files are read when they are used, and again after a change."""
    if hook.secret is not None:
        given = [Secret(reference) for reference in (hook.secret, hook.old_secret) if reference is not None]
        return lambda: [_key(hook, secret) for secret in given]
    if config.secret_file is None:
        raise ConfigError(
            f"webhook {hook.name!r} has no secret: name a file with its `secret`, or set `secret_file`, from which the "
            "keys of all webhooks are derived"
        )
    administrator = AdministratorSecret(config.secret_file)
    name = f"{config.namespace}/{hook.name}"
    return lambda: [derive(administrator.bytes(), LABEL, name)]


def _key(hook: Webhook, secret: Secret) -> bytes:
    try:
        return signing.key_of(secret.bytes())
    except ValueError as error:
        raise ConfigError(f"webhook {hook.name!r}: {secret!r} cannot be used: {error}") from None


class Sender:
    """Sends to one webhook, with connections of its own. Raises `ConfigError` at once where its address is not allowed,
    or its secret cannot be read."""

    def __init__(self, hook: Webhook, config: Config) -> None:
        allowed = Allowed(config.allow_addresses)
        try:
            allowed.check(hook.url)
        except ConfigError as error:
            raise ConfigError(f"webhook {hook.name!r}: {error}") from None
        self._hook = hook
        self._keys = keys_of(hook, config)
        self._keys()
        self._client = Outbound(allowed)

    async def send(self, event_id: str, body: bytes) -> Answer:
        headers = signing.headers(self._keys(), event_id, int(time.time()), body)
        return await self._client.request(
            "POST", self._hook.url, headers=headers, body=body, timeout=self._hook.timeout, limit=ANSWER_MAX
        )

    async def close(self) -> None:
        await self._client.close()


class Deliverer:
    """The handler of the deliveries of one webhook."""

    def __init__(self, hook: Webhook, sender: Sender, store: Store, log: Log) -> None:
        self._hook = hook
        self._sender = sender
        self._store = store
        self._health = Health(hook, store, log)

    async def handle(self, ctx: TaskContext, payload: Delivery) -> int:
        """The status of the answer. Every answer but a 2xx is a failed attempt."""
        if payload.webhook != self._hook.name:
            raise Abort(f"it is a delivery for webhook {payload.webhook!r}")
        fact = payload.event
        record = await self._store.queries.get(fact.id) if needs_record(self._hook, fact) else None
        try:
            answer = await self._sender.send(payload.id, body_of(self._hook, fact, record))
        except (ExecutorError, ConfigError) as error:  # also an address or a secret that cannot be used any more
            await self._health.failed(str(error))
            raise ExecutorError(str(error)) from None
        if not 200 <= answer.status < 300:
            raise await self._refusal(answer)
        await self._health.succeeded()
        return answer.status

    async def _refusal(self, answer: Answer) -> Exception:
        text = f"{self._hook.origin} has answered {answer.status}"
        await self._health.failed(text)
        if answer.status == GONE:
            await self._health.switch_off(f"{text}: it wants no more")
        if answer.status in NOT_NOW and "retry-after" in answer.headers:
            return Retry(pause_of(answer), text)
        return ExecutorError(text)


def senders(hooks: Sequence[Webhook], config: Config) -> dict[str, Sender]:
    return {hook.name: Sender(hook, config) for hook in hooks}
