"""A migration of Redis that is killed at some moment, again and again, and two that run at once: nothing is lost."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.layout2 import NAMESPACE, expected, load_redis
from tests.support.redis import RedisServer
from tests.support.redis.process import end, spawn
from tests.support.waiting import wait_until
from tickwork.errors import StoreUnavailable
from tickwork.model.policy import Policy
from tickwork.model.tasks import Status
from tickwork.store.redis import RedisStore
from tickwork.store.redis.keys import Layout
from tickwork.store.redis.net.target import parse

pytestmark = pytest.mark.timeout(120)

ROOT = Layout(NAMESPACE).root
BEFORE = Layout(NAMESPACE).before(ROOT)
MORE = 20_000
# Copies of a task that is delayed, so that the migration takes a while.
COPY = """
local value, member = redis.call('GET', ARGV[1] .. 'task:pending-at'), nil
for _, found in ipairs(redis.call('ZRANGE', ARGV[1] .. 'delayed', 0, -1)) do
  if string.sub(found, 12) == 'pending-at' then
    member = string.sub(found, 1, 11)
  end
end
for number = 1, tonumber(ARGV[2]) do
  redis.call('SET', ARGV[1] .. 'task:copy' .. number, value)
  redis.call('ZADD', ARGV[1] .. 'delayed', 4102444800000, member .. 'copy' .. number)
end
"""


@pytest.fixture
def server() -> Iterator[RedisServer]:
    with RedisServer() as server:
        load_redis(server, 1)
        server.command("EVAL", COPY, 0, BEFORE, MORE)
        yield server


def migrate(server: RedisServer, folder: Path, name: str) -> subprocess.Popen[bytes]:
    command = ["-m", "tickwork", "migrate", "--take-over", "--store", server.url, "--namespace", NAMESPACE]
    return spawn([sys.executable, *command], folder, folder / f"{name}.log")


def moved(server: RedisServer) -> int:
    count: int = server.command("EVAL", f"return #redis.call('KEYS', '{ROOT}task:*')", 0)
    return count


async def check(server: RedisServer) -> None:
    store = RedisStore(parse(server.url), NAMESPACE, Policy())
    await store.open()
    try:
        statuses = (await store.queries.stats()).statuses
        wanted = {status: expected()["counts"][status] for status in Status}
        wanted[Status.PENDING] += MORE
        assert statuses == wanted
        problems = await store.queries.audit()
        assert [problem for problem in problems if "main-damaged" not in problem] == []
        assert server.command("KEYS", f"{BEFORE}task:*") == []
    finally:
        await store.close()


async def test_a_migration_that_is_killed_again_and_again_goes_on_where_it_was(
    server: RedisServer, tmp_path: Path
) -> None:
    for number, share in enumerate((0, 0.3, 0.6)):
        migration = migrate(server, tmp_path, f"killed{number}")
        await wait_until(lambda: moved(server) > share * MORE, what="some of it to have moved")  # noqa: B023
        end(migration)
        assert server.command("EXISTS", f"{ROOT}layout") == 0, "it was killed before its end"
        store = RedisStore(parse(server.url), NAMESPACE, Policy(), patience=0)
        with pytest.raises(StoreUnavailable, match=r"is being migrated.*run `tickwork migrate` again"):
            await store.open()
        await store.close()
    last = migrate(server, tmp_path, "last")
    assert last.wait(60) == 0, (tmp_path / "last.log").read_text()
    await check(server)


async def test_two_migrations_at_once_do_no_harm(server: RedisServer, tmp_path: Path) -> None:
    both = [migrate(server, tmp_path, name) for name in ("one", "two")]
    assert [each.wait(60) for each in both] == [0, 0], [
        (tmp_path / f"{name}.log").read_text() for name in ("one", "two")
    ]
    await check(server)
