"""What a note of a run writes must not grow with the log that the run has written before: bytes, never times."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from tests.support.redis import RedisServer, default_binary
from tickwork.clock import ManualClock
from tickwork.model.policy import Policy
from tickwork.store.contract import Store
from tickwork.store.redis import RedisStore
from tickwork.store.redis.net.target import parse
from tickwork.store.sqlite import SqliteStore
from tickwork.testing.contract.bench import START, Bench

LINE = "a line of the log " * 10
POLICY = Policy(log_lines_max=1000)


async def bytes_of_a_note(store: Store, written: Callable[[], int], lines_before: int) -> int:
    """How much ten notes of a line write, after so many lines."""
    await store.open()
    bench = Bench(store, ManualClock(START))
    lease = await bench.start("it")
    for _ in range(lines_before // 50):
        assert await store.tasks.note(lease, None, "", [LINE] * 50)
    before = written()
    for number in range(10):
        assert await store.tasks.note(lease, number / 10, "working", [LINE])
    after = written()
    assert len(await bench.lines("it")) == min(lines_before + 10, POLICY.log_lines_max)
    await store.close()
    return after - before


async def test_a_note_on_redis_writes_as_much_however_long_the_log_is() -> None:
    """What a server writes into its file is what its commands have changed."""
    with RedisServer(default_binary(), {"appendonly": "yes"}) as server:

        async def cost(namespace: str, lines_before: int) -> int:
            store = RedisStore(parse(server.url), namespace, POLICY)
            return await bytes_of_a_note(
                store, lambda: int(server.info("persistence")["aof_current_size"]), lines_before
            )

        few = await cost("few", 50)
        assert few > 10 * len(LINE)
        assert await cost("many", 900) < 1.5 * few
        assert await cost("full", 2000) < 1.5 * few


async def test_a_note_on_sqlite_writes_as_much_however_long_the_log_is(tmp_path: Path) -> None:
    """What it writes goes to the end of the write-ahead log, which begins anew only after a thousand pages."""

    async def cost(name: str, lines_before: int) -> int:
        path = tmp_path / name
        store = SqliteStore(str(path), "test", POLICY, ManualClock(START))

        def written() -> int:
            return path.with_name(f"{name}-wal").stat().st_size

        return await bytes_of_a_note(store, written, lines_before)

    few = await cost("few", 50)
    assert few > 0
    assert await cost("many", 900) < 1.5 * few
    assert await cost("full", 2000) < 2 * few
