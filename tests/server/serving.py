"""A real control plane on a free port of the loopback, and those who call it."""

from __future__ import annotations

import asyncio
import itertools
import ssl
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import httpx

from tests.support.redis_store import empty_redis
from tickwork import Scheduler
from tickwork.clock import Clock
from tickwork.config import AlertRule
from tickwork.config.alerts import rules_in_force
from tickwork.model.outcomes import Aborted, Failed, Outcome, Succeeded
from tickwork.monitor.alerts import Alerts
from tickwork.monitor.listener import Listeners
from tickwork.monitor.statistics import Statistics
from tickwork.observe.bus import Bus
from tickwork.observe.loggers import Log
from tickwork.server.callers import EVERY, Caller, Role
from tickwork.server.operations import Operation
from tickwork.server.parts import serve
from tickwork.server.plane import ControlPlane
from tickwork.store.contract import Claim

HOME, OTHER, HIDDEN = "home", "other", "hidden"  # the last is of the same store, but not served
MAKER = Caller("maker", Role.ADMIN)
API = "/api/v1"
PATIENCE = 60.0
NO_ROOTS = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)  # reading the root certificates takes longer than a test


def url_of(kind: str, folder: Path) -> str:
    if kind == "memory":
        return "memory://"
    return f"sqlite:///{folder}/tick.db" if kind == "sqlite" else empty_redis()


class Server:
    """What is served, and clients of it. Requests go over the network."""

    def __init__(self, app: Scheduler, plane: ControlPlane, url: str, stack: AsyncExitStack) -> None:
        self.app = app
        self.plane = plane
        self.url = url
        self._stack = stack
        self._numbers = itertools.count(1)

    @property
    def port(self) -> int:
        return int(self.url.rpartition(":")[2])

    async def token(self, role: Role | str, *namespaces: str, name: str = "", expires: float | None = None) -> str:
        made = await self.plane.tokens.make(name or f"the {role}", Role(role), MAKER, namespaces or (EVERY,), expires)
        return made.token

    async def as_role(self, role: Role | str, *namespaces: str, name: str = "") -> Client:
        """Somebody with a token of that role."""
        return await self.with_token(await self.token(role, *namespaces, name=name))

    async def with_token(self, token: str | None, **headers: str) -> Client:
        given = headers if token is None else {"authorization": f"Bearer {token}", **headers}
        return await self._stack.enter_async_context(Client(self.url, given))

    async def stranger(self, **headers: str) -> Client:
        return await self.with_token(None, **headers)

    async def signed_in(self, role: Role | str, *namespaces: str) -> Client:
        """Somebody with a session, as a browser has it."""
        found = await self.stranger(**{"x-tickwork-csrf": "1"})
        answer = await found.post("/session", {"token": await self.token(role, *namespaces)})
        assert answer.status_code == 200, answer.text
        return found

    # --- tasks in a status, without a node

    async def run(self, task_type: str, outcome: Any, queue: str = "default") -> str:
        """Let the next task of a type run, and end as said."""
        store = await self.app._access.open_store()
        nonce = f"claim-{next(self._numbers)}"
        claim = Claim("w1", (queue,), frozenset({task_type}), 1, 30_000, nonce, 0, "")
        (grant,) = (await store.tasks.claim(claim)).grants
        ended: Outcome | None = outcome(grant.lease)
        if ended is not None:
            (verdict,) = (await store.tasks.finish([ended])).verdicts
            assert verdict.kind == "done"
        return grant.spec.id

    async def dead(self, error: str = "ValueError: boom", **options: Any) -> str:
        """The id of a new dead letter."""
        return await self._ended(lambda lease: Aborted(lease, error), **options)

    async def retrying(self, error: str = "ValueError: boom", **options: Any) -> str:
        return await self._ended(lambda lease: Failed(lease, error, 3_600_000), **options)

    async def succeeded(self, result: bytes | None = None, **options: Any) -> str:
        return await self._ended(lambda lease: Succeeded(lease, result), **options)

    async def running(self, **options: Any) -> str:
        return await self._ended(lambda lease: None, **options)

    async def count_up(self) -> None:
        """Statistics as the leader keeps them, up to now."""
        store = await self.app._access.open_store()
        await Statistics(store, Log.of(None, "statistics"), save_every=0.0).work()

    async def judge(self, *rules: AlertRule) -> None:
        """Look at alert rules once, as the leader does; at the built-in ones if none is given."""
        store, config = await self.app._access.open_store(), self.app.config
        await Alerts(rules or rules_in_force(config), store, config, Bus()).look()

    async def _ended(self, outcome: Any, **options: Any) -> str:
        kind = options.pop("type", None) or f"once.{next(self._numbers)}"
        await self.app.submit(kind, options.pop("payload", {"n": 1}), **options)
        return await self.run(kind, outcome, options.get("queue") or "default")


class Client(httpx.AsyncClient):
    """Asks the API; paths are below its root."""

    def __init__(self, url: str, headers: dict[str, str]) -> None:
        super().__init__(base_url=url, headers=headers, timeout=PATIENCE, trust_env=False, verify=NO_ROOTS)

    async def ask(self, method: str, path: str, body: Any = None, **more: Any) -> httpx.Response:
        return await self.request(method, f"{API}{path}", json=body, **more)

    async def get(self, path: str, **query: Any) -> httpx.Response:  # type: ignore[override]
        return await self.ask("GET", path, params=query)

    async def post(self, path: str, body: Any = None, **query: Any) -> httpx.Response:  # type: ignore[override]
        return await self.ask("POST", path, body, params=query)

    async def read(self, path: str, **query: Any) -> Any:
        """What a question that must be answered is answered."""
        answer = await self.get(path, **query)
        assert answer.status_code == 200, answer.text
        return answer.json()

    async def do(self, method: str, path: str, body: Any = None, **query: Any) -> Any:
        """A change that must be done."""
        answer = await self.ask(method, path, body, params=query)
        assert answer.status_code in (200, 201, 202, 204), answer.text
        return answer.json() if answer.content else None

    async def call(self, operation: Operation, names: dict[str, str], body: Any = None, **query: Any) -> httpx.Response:
        return await self.ask(operation.method, operation.path.format(**names), body, params=query)


@asynccontextmanager
async def serving(
    url: str, *, node: bool = False, clock: Clock | None = None, app: Scheduler | None = None, **options: Any
) -> AsyncIterator[Server]:
    """A control plane of two namespaces that asks for tokens; with `node`, as part of one that runs tasks."""
    given = {"server_port": 0, "server_tokens": True, "server_namespaces": (OTHER,), **options}
    app = app or Scheduler(url, namespace=HOME, clock=clock, **given)
    async with AsyncExitStack() as stack:
        if node:
            served = await _of_node(app, stack)
        else:
            served = await _alone(app, stack)
        async with AsyncExitStack() as clients:
            plane, address = served
            yield Server(app, plane, address, clients)


async def _alone(app: Scheduler, stack: AsyncExitStack) -> tuple[ControlPlane, str]:
    listeners = Listeners(app.config)
    plane = serve(app, app.config, listeners, app._other_namespace)
    (service,) = listeners.services()
    assert service.start is not None
    assert service.stop is not None
    stack.push_async_callback(app.close)
    await service.start()
    stack.push_async_callback(service.stop, 1.0)
    return plane, listeners.url("server_port")


async def _of_node(app: Scheduler, stack: AsyncExitStack) -> tuple[ControlPlane, str]:
    planes: list[ControlPlane] = []

    def keep(listeners: Listeners) -> None:
        planes.append(serve(app, app.config, listeners, app._other_namespace))

    app._serve = keep  # type: ignore[method-assign]
    await stack.enter_async_context(app)
    assert app._monitor.listeners is not None
    return planes[0], app._monitor.listeners.url("server_port")


async def raw(port: int, data: bytes, host: str = "127.0.0.1") -> bytes:
    """What a server answers to these bytes, up to the end of the connection."""
    reader, writer = await asyncio.open_connection(host, port)
    writer.write(data)
    try:
        async with asyncio.timeout(PATIENCE):
            return await reader.read()
    except ConnectionResetError:
        return b""
    finally:
        writer.close()
