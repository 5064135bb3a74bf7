"""Fair queues as programs use them: declared in code or in the configuration, kept by whatever becomes of a task."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tests.support.waiting import wait_until
from tickwork import ConfigError, Middleware, Scheduler
from tickwork.handlers.middleware import SubmitCall, SubmitNext
from tickwork.store.contract import Receipt
from tickwork.testing import run


async def costs(app: Scheduler, *ids: str) -> list[int]:
    store = await app._open()
    records = [await store.queries.get(task_id) for task_id in ids]
    return [record.spec.fair for record in records if record is not None]


async def cost_of(app: Scheduler, **options: Any) -> int:
    handle = await app.submit("work", **options)
    (cost,) = await costs(app, handle.id)
    return cost


@pytest.fixture
def app() -> Scheduler:
    app = Scheduler("memory://")

    @app.task(queue="mail")
    async def work() -> None: ...

    return app


async def test_the_tasks_of_a_fair_queue_cost_their_keys_what_the_weights_say(app: Scheduler) -> None:
    assert await cost_of(app) == 0
    app.queue("mail", fair=True, weights={"acme": 3, "slow": 0.5, "huge": 1000})
    assert await cost_of(app) == 1000, "also of a handler whose tasks were submitted before"
    found = [await cost_of(app, key=key) for key in ("acme", "slow", "huge", "other")]
    assert found == [333, 2000, 1, 1000]
    assert await cost_of(app, queue="elsewhere", key="acme") == 0
    many = await app.submit_many("work", [{}, {}], key="acme")
    assert await costs(app, *(handle.id for handle in many)) == [333, 333]
    app.queue("mail", fair=False)
    assert await cost_of(app, key="acme") == 0


async def test_fair_queues_are_named_in_the_configuration(app: Scheduler, monkeypatch: pytest.MonkeyPatch) -> None:
    app.configure(fair_queues=["mail", "reports"])
    assert (await cost_of(app, key="acme"), await cost_of(app, queue="other")) == (1000, 0)
    monkeypatch.setenv("TICKWORK_FAIR_QUEUES", "mail,other")
    named = Scheduler("memory://")
    assert named.config.fair_queues == ("mail", "other")
    with pytest.raises(ConfigError, match=r"fair_queues: .* holds 'a b'"):
        Scheduler("memory://", fair_queues=["a b"])


async def test_code_adds_weights_to_what_the_configuration_says(app: Scheduler) -> None:
    app.queue("mail", fair=True, weights={"acme": 2})
    app.configure(fair_queues=["mail"])
    assert (await cost_of(app, key="acme"), await cost_of(app, key="other")) == (500, 1000)


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        ({"fair": True, "weights": {"acme": 0}}, "the weight of key 'acme' must be a number from 0.01 to 1000, not 0"),
        ({"fair": True, "weights": {"acme": True}}, "must be a number"),
        ({"fair": True, "weights": {"acme": float("nan")}}, "must be a number"),
        ({"fair": True, "weights": {"acme": "3"}}, "must be a number"),
        ({"fair": True, "weights": {"": 3}}, "a key of weights must be a text"),
        ({"weights": {"acme": 3}}, "queue 'mail' has weights, which are for fair queues: give fair=True too"),
        ({"fair": 1}, "fair must be true or false, not 1"),
    ],
)
async def test_a_mistake_is_told_and_changes_nothing(app: Scheduler, arguments: dict[str, Any], why: str) -> None:
    with pytest.raises(ConfigError) as told:
        app.queue("mail", **arguments)
    assert why in str(told.value)
    assert await cost_of(app, key="acme") == 0


async def test_middleware_that_moves_a_task_moves_it_to_the_turns_of_its_queue(app: Scheduler) -> None:
    class ToMail(Middleware):
        async def submit(self, call: SubmitCall, next: SubmitNext) -> list[Receipt]:
            for task in call.tasks:
                task.queue, task.key = "reports", "acme"
            return await next(call)

    app.queue("reports", fair=True, weights={"acme": 4})
    app.use(ToMail())
    assert await cost_of(app) == 250


async def test_the_runs_of_a_schedule_take_their_turns(app: Scheduler) -> None:
    app.queue("mail", fair=True, weights={"acme": 4})
    schedule = await app.schedules.put("nightly", "work", cron="@daily", key="acme")
    assert await costs(app, await app.schedules.trigger(schedule.id)) == [250]
    await app.schedules.edit(schedule.id, queue="elsewhere")
    assert await costs(app, await app.schedules.trigger(schedule.id)) == [0]


async def test_one_customer_does_not_wait_for_the_tasks_of_another() -> None:
    app = Scheduler("memory://", concurrency=2)
    app.queue("default", fair=True)
    started: list[str] = []
    go_on = asyncio.Semaphore(0)

    @app.task
    async def work(customer: str) -> None:
        started.append(customer)
        await go_on.acquire()

    async with run(app):
        for _ in range(50):
            await work.options(key="a").submit("a")
        await wait_until(lambda: len(started) == 2)
        await work.options(key="b").submit("b")
        for _ in range(4):
            go_on.release()
        await wait_until(lambda: "b" in started[:6])
        for _ in range(60):
            go_on.release()
