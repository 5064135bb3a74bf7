"""What nodes cost while there is nothing to do."""

from __future__ import annotations

import asyncio

from tickwork import Scheduler
from tickwork.store.sqlite import SqliteStore


def commits(store: SqliteStore) -> list[int]:
    """Counts the transactions of a store from now on."""
    count, session = [0], store.core.write._session
    commit = session.commit

    def counted() -> None:
        commit()
        count[0] += 1

    session.commit = counted  # type: ignore[method-assign]
    return count


async def test_idle_processes_on_one_file_do_not_wake_each_other(sqlite_url: str) -> None:
    apps = [Scheduler(sqlite_url) for _ in range(3)]
    for app in apps:
        app.task("job")(lambda: None)
        await app.start()
    store = apps[0]._store
    assert isinstance(store, SqliteStore)
    await asyncio.sleep(0.5)  # the start itself is lively
    count = commits(store)
    await asyncio.sleep(1.5)
    assert count[0] < 30, "about six calls a second are its own; each look at another's would add fifty"
    for app in apps:
        await app.shutdown(1)
