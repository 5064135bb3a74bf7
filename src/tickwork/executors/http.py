"""Tasks that are run by HTTP services, which the configuration names: docs/http-executor.md."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

from tickwork.config.endpoints import Endpoint
from tickwork.errors import Abort, ConfigError, ExecutorError
from tickwork.executors.http_endpoints import CheckedEndpoint
from tickwork.handlers.context import TaskContext
from tickwork.handlers.registry import Entry, Registry
from tickwork.model.info import TaskResult
from tickwork.model.tasks import Spec
from tickwork.outbound import call_headers
from tickwork.outbound.addresses import Allowed
from tickwork.outbound.client import AnswerRefused, CallFailed, Outbound
from tickwork.payload.codec import JSON, encode
from tickwork.store.contract import Grant
from tickwork.texts import shown

HTTP = "http"  # the name of the executor


class HttpExecutor:
    """Calls the endpoint that a task names as its target. Needs the extra `http` where tasks are run."""

    def __init__(self, endpoints: Mapping[str, Endpoint], allowed: Allowed, registry: Registry) -> None:
        """Raises `ConfigError` for an endpoint that cannot be used."""
        self._allowed = allowed
        self._registry = registry
        self._endpoints: dict[str, CheckedEndpoint] = {}
        self.types: dict[str, str] = {}  # task types and the endpoints that run them
        self._clients: dict[str, Outbound] = {}  # while it is started; each endpoint has connections of its own
        for name, settings in endpoints.items():
            try:
                self._endpoints[name] = CheckedEndpoint(name, settings, allowed)
            except ConfigError as error:
                raise ConfigError(f"endpoints: {name}: {error}") from None
            for kind in settings.types:
                if self.types.setdefault(kind, name) != name:
                    raise ConfigError(
                        f"endpoints: {name}: endpoint {self.types[kind]!r} runs type {shown(kind)} already"
                    )

    @property
    def targets(self) -> list[str]:
        return sorted(self._endpoints)

    async def start(self) -> None:
        """Raises `ConfigError` if aiohttp or a file of a certificate is missing. Connects to nobody yet."""
        for name, endpoint in self._endpoints.items():
            try:
                self._clients[name] = Outbound(self._allowed, tls=endpoint.settings.tls)
            except ConfigError as error:
                raise ConfigError(f"endpoints: {name}: {error}") from None

    async def stop(self, grace: float) -> None:
        clients, self._clients = self._clients, {}
        for client in clients.values():
            await client.close()

    async def run(self, task: Grant, entry: Entry | None, context: TaskContext) -> TaskResult:
        name = task.spec.target or self.types.get(task.spec.type, "")
        endpoint = self._endpoints.get(name)
        if endpoint is None:  # this node has an older configuration than the one that submitted it
            raise ExecutorError(f"no endpoint {shown(name)} is configured here; known are {', '.join(self.targets)}")
        settings = endpoint.settings
        left = settings.timeout if context.remaining is None else min(settings.timeout, context.remaining)
        try:
            url, headers = endpoint.request(task, cache(lambda: self._payload(task.spec)))
            answer = await self._clients[name].request(
                settings.method, url, headers=call_headers.with_current(headers),
                body=self._body(task.spec, endpoint), timeout=left, limit=settings.response_limit,
            )  # fmt: skip
        except AnswerRefused as error:
            raise Abort(f"endpoint {name!r}: {error}") from None
        except (CallFailed, ConfigError) as error:  # a secret that cannot be read now may be mended soon, as well
            raise ExecutorError(f"endpoint {name!r}: {error}") from None
        return endpoint.result(answer)

    def _payload(self, spec: Spec) -> Any:
        """Raises `Abort` if the payload cannot be read."""
        if not spec.payload:
            return {}
        try:
            return self._registry.serializer(spec.serializer).decode(spec.payload)
        except Exception as error:  # a serializer of the user's own may raise anything
            text = f"the payload cannot be read as {spec.serializer}: {type(error).__name__}: {error}"
            raise Abort(f"the task cannot be sent: {text}") from None

    def _body(self, spec: Spec, endpoint: CheckedEndpoint) -> bytes | None:
        if not endpoint.sends_payload:
            return None
        body = spec.payload or b"{}"
        if spec.serializer != "json" and spec.payload:
            try:
                body = encode(JSON, self._payload(spec))
            except ValueError as error:
                raise Abort(f"the task cannot be sent: its payload is no JSON: {error}") from None
        if len(body) > endpoint.settings.request_limit:
            limit = endpoint.settings.request_limit
            raise Abort(f"the task cannot be sent: its payload has {len(body):,} bytes, request_limit is {limit:,}")
        return body
