"""Assigned dispatch: the leader gives tasks to workers, by strategy, labels and target."""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable

import pytest

from tests.integration.apps import Gate, Make, eventually, status_of, store_of
from tickwork import ConfigError, Fact, Scheduler, Status


async def kinds_of(app: Scheduler, task_id: str) -> list[str]:
    return [event.kind for event in await app.events.read(task_id=task_id)]


async def test_the_leader_gives_tasks_to_workers(make: Make, url: str) -> None:
    app = make(url, dispatch="assigned", concurrency=3)

    @app.task
    async def double(number: int) -> int:
        return 2 * number

    async with app:
        handles = [await double.submit(number) for number in range(30)]
        assert [await handle.result(30) for handle in handles] == [2 * number for number in range(30)]
        kinds = await kinds_of(app, handles[0].id)
        assert kinds == [Fact.TASK_SUBMITTED, Fact.TASK_ASSIGNED, Fact.TASK_CLAIMED, Fact.TASK_SUCCEEDED]
        assert await (await store_of(app)).queries.audit() == []


async def test_only_the_queues_that_say_so_are_assigned(make: Make, url: str) -> None:
    app = make(url, dispatch={"heavy": "assigned"}, queues=("default", "heavy"))

    @app.task
    async def work() -> None: ...

    async with app:
        pulled, given = await work.submit(), await work.options(queue="heavy").submit()
        for handle in (pulled, given):
            await handle.result(30)
        assert Fact.TASK_ASSIGNED not in await kinds_of(app, pulled.id)
        assert Fact.TASK_ASSIGNED in await kinds_of(app, given.id)


async def test_no_worker_is_given_more_than_it_has_slots_for(make: Make, url: str) -> None:
    app, gate = make(url, dispatch="assigned", concurrency=2), Gate()
    app.registry.register("hold", gate.pass_through)
    async with app:
        handles = [await app.submit("hold") for _ in range(5)]
        await eventually(lambda: gate.inside == 2, 30)
        statuses = Counter([await status_of(app, handle.id) for handle in handles])
        assert statuses == {Status.RUNNING: 2, Status.READY: 3}
        gate.open()
        for handle in handles:
            await handle.result(30)


async def test_tasks_that_no_worker_may_run_wait_and_hold_up_no_other(make: Make, url: str) -> None:
    app = make(url, dispatch="assigned", labels={"zone": "eu"})

    @app.task
    async def work() -> str:
        return "done"

    async with app:
        strange = await work.options(requires={"gpu": "a100"}).submit()
        assert await work.options(requires={"zone": "eu"}).call(timeout=30) == "done"
        assert await work.call(timeout=30) == "done"
        assert await status_of(app, strange.id) == Status.READY
        explanation = await app.explain(strange.id)
        assert explanation.reason == "labels_missing"
        assert "gpu=a100" in explanation.text


async def test_the_strategy_decides_who_gets_a_task(make: Make, url: str) -> None:
    if url == "memory://":
        pytest.skip("two schedulers cannot share it")
    options = {"dispatch": "assigned", "concurrency": 50, "load_balance_strategy": "weighted_round_robin"}
    apps = [make(url, scheduler_id=f"w{weight}", weight=weight, **options) for weight in (1, 3)]
    ran: Counter[str] = Counter()

    def counting(name: str) -> Callable[[], Awaitable[None]]:
        async def work() -> None:
            ran[name] += 1

        return work

    for app in apps:
        app.registry.register("work", counting(app.id))
    async with apps[0], apps[1]:
        members = (await store_of(apps[0])).members

        async def both_joined() -> bool:
            return len(await members.workers()) == 2

        await eventually(both_joined, 30)
        while len(ran) < 2:  # until the leader knows both
            await (await apps[0].submit("work")).result(30)
        ran.clear()
        for handle in await apps[0].submit_many("work", [None] * 40):
            await handle.result(60)
    assert ran["w3"] == pytest.approx(30, abs=3), ran


async def test_a_task_may_name_its_worker(make: Make, url: str) -> None:
    app = make(url, scheduler_id="here")

    @app.task
    async def work() -> str:
        return "done"

    async with app:
        assert await work.options(target="here").call(timeout=30) == "done"
        with pytest.raises(ConfigError, match="no worker 'elsewhere'"):
            await work.options(target="elsewhere").submit()


async def test_without_a_leader_workers_pull(make: Make, url: str) -> None:
    app = make(url, dispatch="assigned", leader_lease_ttl=0.3, leader_renew_interval=0.1, renew_interval=0.2,
               lease_ttl=2)  # fmt: skip

    @app.task
    async def work() -> str:
        return "done"

    await app.start(lead=False)
    try:
        handle = await work.submit()
        assert await handle.result(30) == "done"
        assert Fact.TASK_ASSIGNED not in await kinds_of(app, handle.id)
    finally:
        await app.shutdown()
