"""A Redis store whose clock the test owns, on a server that this test process starts once."""

from __future__ import annotations

from functools import cache
from typing import Any

from tests.support.redis import RedisServer, default_binary
from tickwork.clock import ManualClock
from tickwork.model import Policy
from tickwork.store.redis import RedisStore
from tickwork.store.redis.scripts import Script, compose
from tickwork.store.redis.target import parse

CLOCK = """
local function clock()
  return tonumber(redis.call('GET', KEYS[1] .. 'clock'))
end
"""


@cache
def shared_server() -> RedisServer:
    server = RedisServer(default_binary())
    server.start()
    return server


def empty_redis() -> str:
    """The URL of this process's server, with nothing in it."""
    server = shared_server()
    server.command("FLUSHALL")
    return server.url


class ClockedRedisStore(RedisStore):
    """Its scripts read the time off a key, which is set before a call whenever the test has moved its clock."""

    def __init__(self, clock: ManualClock, url: str, policy: Policy | None = None, **options: Any) -> None:
        super().__init__(parse(url), "test", policy, **options)
        self._clock = clock
        self._clock.on_change(self.hints.notify_all)
        self._shown: dict[str, int] = {}

    def now(self) -> int:
        return self._clock.now()

    def _script(self, name: str) -> Script:
        return compose(name, self.server.modern, CLOCK)

    async def run(self, name: str, prefix: str, *args: Any, purpose: str = "ask", quiet: bool = False) -> Any:
        if self._shown.get(prefix) != self._clock.now():
            self._shown[prefix] = self._clock.now()
            await self.ask(prefix, "SET", f"{prefix}clock", self._clock.now())
        return await super().run(name, prefix, *args, purpose=purpose, quiet=quiet)
