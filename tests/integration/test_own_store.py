"""A scheduler on a store object that the user made."""

from __future__ import annotations

from typing import Any, cast

import pytest
from examples.measured_store import MeasuredStore

from tickwork import ConfigError, Scheduler, Store, make_store
from tickwork.clock import ManualClock
from tickwork.config import Config


def measured(url: str = "memory://") -> MeasuredStore:
    return MeasuredStore(make_store(url))


async def test_it_is_used_for_everything() -> None:
    store = measured()
    app = Scheduler(cast("Store", store))

    @app.task
    async def double(number: int) -> int:
        return 2 * number

    async with app:
        assert await (await double.submit(21)).result(10) == 42
    assert {"tasks.submit", "tasks.claim", "tasks.finish"} <= set(store.seconds)
    assert app.url == "memory://"


async def test_the_environment_does_not_overrule_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TICKWORK_STORE", "sqlite:///elsewhere.db")
    app = Scheduler(cast("Store", measured()))
    assert app.url == "memory://"


async def test_a_command_line_overrules_it(tmp_path: object) -> None:
    app = Scheduler(cast("Store", measured()))
    app.configure(store=f"sqlite:///{tmp_path}/tick.db")
    assert app.url.startswith("sqlite:")


def test_its_clock_is_its_own() -> None:
    with pytest.raises(ConfigError, match="give the clock to the store"):
        Scheduler(cast("Store", measured()), clock=ManualClock())


def test_its_capabilities_are_those_of_the_scheduler() -> None:
    assert not Scheduler("memory://").capabilities.shared
    assert Scheduler("sqlite:///tick.db").capabilities.durabilities == ("memory", "disk")
    redis = Scheduler("redis://localhost", partitions=4).capabilities
    assert (redis.remote, redis.own_clock, redis.partitions) == (True, True, 4)


@pytest.mark.parametrize(
    "option", [{"durability": "disk"}, {"namespace": "other"}, {"retention": 5}, {"partitions": 4}]
)
def test_options_of_a_store_are_refused_beside_it(option: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match=f"{next(iter(option))}: options of the store have no effect"):
        Scheduler(cast("Store", measured()), **option)


def test_what_is_no_store_is_refused() -> None:
    with pytest.raises(ConfigError, match="a URL, a redis-py client or a Store, not dict"):
        Scheduler(cast("Store", {}))


async def test_make_store_takes_the_options_of_a_store() -> None:
    store = make_store("memory://", Config(dlq_max=1))
    app = Scheduler(store, max_retry=0)

    @app.task
    async def fails() -> None:
        raise ValueError

    async with app:
        for handle in [await fails.submit() for _ in range(3)]:
            with pytest.raises(Exception, match=r"failed for good|no task"):
                await handle.result(10)
        assert (await app.status()).dropped_dead_letters == 2
