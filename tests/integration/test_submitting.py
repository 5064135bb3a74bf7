"""Submitting: what exists already, what belongs together, and batches that are refused half way."""

from __future__ import annotations

from datetime import timedelta
from typing import Any, get_type_hints

import pytest

from tests.integration.apps import Make, facts, status_of, store_of
from tickwork import (
    ConfigError,
    DuplicateTask,
    Handle,
    PayloadError,
    ScheduleHandle,
    Scheduler,
    Status,
    StoreUnavailable,
    Task,
    TaskExists,
    TaskNotFound,
)
from tickwork.handlers.options import Options
from tickwork.model.tasks import Spec
from tickwork.store.contract import SUBMIT_MAX, Receipt
from tickwork.testing import ManualClock, drain


@pytest.fixture
def app(make: Make, url: str) -> Scheduler:
    app = make(url)

    @app.task
    async def work(n: int = 0) -> int:
        return n

    return app


# --- by function


async def test_the_options_of_a_function_hold_where_it_is_submitted_as_a_type(app: Scheduler) -> None:
    @app.task(queue="slow")
    async def job(n: int = 0) -> int:
        return n

    urgent = job.options(priority=10, delay=60)
    info = await (await app.submit(urgent, 1)).info()
    assert (info.priority, info.status, info.queue) == (10, Status.PENDING, "slow")
    (handle,) = await app.submit_many(urgent, [1])
    info = await handle.info()
    assert (info.priority, info.status, info.queue) == (10, Status.PENDING, "slow")
    info = await (await app.submit(urgent, 1, priority=2, delay=None)).info()
    assert (info.priority, info.status) == (2, Status.READY), "what is said with the submission goes before"
    assert isinstance(await app.submit(job.options(cron="@daily"), 1), ScheduleHandle)
    with pytest.raises(ConfigError, match="submit_many cannot take id"):
        await app.submit_many(job.options(id="one"), [1, 2])


# --- what exists already


async def test_the_handle_of_a_task_that_exists(app: Scheduler) -> None:
    first = await app.submit("work", 1, id="one")
    again = await app.submit("work", 2, id="one", if_exists="return")
    assert (again.id, first.created, again.created) == (first.id, True, False)
    assert (await again.info()).payload == {"n": 1}, "a task is never overwritten"
    one = await app.submit_task(Task(type="work", id="one", if_exists="return"))
    assert (one.id, one.created) == ("one", False)
    (listed,) = await app.submit_tasks([Task(type="work", id="one", if_exists="return")])
    assert isinstance(listed, Handle)
    assert not listed.created
    new = await app.submit("work", 3, id="two", if_exists="return")
    assert new.created
    assert (await new.info()).payload == {"n": 3}
    for options in ({}, {"if_exists": "raise"}):
        with pytest.raises(TaskExists):
            await app.submit("work", 2, id="one", **options)  # type: ignore[arg-type]


async def test_the_handle_of_the_task_that_holds_the_key(app: Scheduler) -> None:
    first = await app.submit("work", 1, dedup_key="k")
    again = await app.submit("work", 2, dedup_key="k", if_exists="return")
    assert (again.id, again.created) == (first.id, False)
    assert not app.handle(first.id).created
    with pytest.raises(DuplicateTask):
        await app.submit("work", 2, dedup_key="k")


async def test_the_handle_of_a_schedule_that_exists(app: Scheduler) -> None:
    first = await app.submit("work", 1, id="s", cron="@daily")
    again = await app.submit("work", 2, id="s", cron="@hourly", if_exists="return")
    assert (again.id, first.created, again.created) == (first.id, True, False)
    assert (await app.schedules.get("s")).cron == "@daily"
    with pytest.raises(TaskExists):
        await app.submit("work", 2, id="s", cron="@hourly")


# --- what belongs together


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"timezone": "Europe/Paris"}, "timezone is that of a cron line; give cron with it"),
        ({"timezone": "Nope"}, "timezone is that of a cron line"),
        ({"dedup_ttl": 60}, "dedup_ttl says how long a dedup_key is held; give dedup_key with it"),
        ({"if_exists": "ignore"}, "if_exists must be one of raise, return, not 'ignore'"),
        ({"if_exists": "ignore", "cron": "@daily"}, "if_exists must be one of raise, return"),
    ],
)
async def test_an_option_without_the_one_that_it_is_for(make: Make, options: dict[str, Any], message: str) -> None:
    app = make("memory://")

    @app.task
    async def work() -> None: ...

    with pytest.raises(ConfigError, match=message):
        await app.submit("work", **options)
    if "cron" not in options:
        with pytest.raises(ConfigError, match=message):
            await app.submit_many("work", [None], **options)


# --- a dedup key of a schedule


async def test_a_dedup_key_counts_for_each_run_of_a_schedule(make: Make, url: str, clock: ManualClock) -> None:
    app = make(url, clock=clock)
    ran: list[int] = []

    @app.task
    async def tick() -> None:
        ran.append(clock.now())

    async with app:
        handle = await app.submit("tick", id="s", cron="@hourly", dedup_key="k", dedup_ttl=timedelta(hours=2.5))
        for _ in range(6):
            (following,) = await app.schedules.next_runs("s", 1)
            clock.set(following)
            await drain(app)
        hour = 3_600_000
        assert [at - ran[0] for at in ran] == [0, 3 * hour]
        skipped = [event for event in await app.events.read(limit=1000) if event.kind == "schedule.skipped"]
        assert [event.detail for event in skipped] == [f"s@{ran[0]}"] * 2 + [f"s@{ran[1]}"] * 2
        assert (await app.schedules.get(handle.id)).last_task_id == f"s@{ran[1]}"
        with pytest.raises(DuplicateTask) as caught:
            await app.submit("tick", dedup_key="k")
        assert caught.value.existing_id == f"s@{ran[1]}"
        with pytest.raises(DuplicateTask):
            await app.schedules.trigger("s")


# --- batches


async def cut_second_submit(app: Scheduler, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The second call to the store fails. Answers the sizes of all calls, as they come."""
    store = await store_of(app)
    submit, calls = store.tasks.submit, list[int]()

    async def once(specs: list[Spec], *options: Any) -> list[Receipt]:
        calls.append(len(specs))
        if len(calls) == 2:
            raise StoreUnavailable("the wire is cut")
        return await submit(specs, *options)

    monkeypatch.setattr(store.tasks, "submit", once)
    return calls


async def test_a_batch_that_is_refused_half_way_says_what_was_created(
    app: Scheduler, monkeypatch: pytest.MonkeyPatch
) -> None:
    await cut_second_submit(app, monkeypatch)
    count = SUBMIT_MAX + 5
    with pytest.raises(StoreUnavailable, match=f"the wire is cut; {SUBMIT_MAX:,} of {count:,} tasks were") as caught:
        await app.submit_many("work", range(count))
    assert len(caught.value.submitted) == SUBMIT_MAX
    assert await status_of(app, caught.value.submitted[-1].id) == "ready"
    assert (await app.status()).tasks == {"ready": SUBMIT_MAX}


async def test_a_batch_whose_dependency_goes_away(app: Scheduler, monkeypatch: pytest.MonkeyPatch) -> None:
    first = await app.submit("work", delay=60)
    store = await store_of(app)
    submit, calls = store.tasks.submit, list[int]()

    async def dropping(specs: list[Spec], *options: Any) -> list[Receipt]:
        calls.append(len(specs))
        if len(calls) == 2:
            await first.cancel()
            await app.delete(first.id)
        return await submit(specs, *options)

    monkeypatch.setattr(store.tasks, "submit", dropping)
    with pytest.raises(TaskNotFound) as caught:
        await app.submit_many("work", range(SUBMIT_MAX + 5), depends_on=[first])
    assert len(caught.value.submitted) == SUBMIT_MAX
    assert (await facts(app, caught.value.submitted[0].id))[0] == "task.submitted"


async def test_an_error_of_one_submission_has_submitted_nothing(app: Scheduler) -> None:
    await app.submit("work", id="one")
    with pytest.raises(TaskExists) as caught:
        await app.submit("work", id="one")
    assert list(caught.value.submitted) == []


# --- lists of tasks


async def test_tasks_of_any_types_get_an_answer_each(make: Make, url: str) -> None:
    app = make(url, queues=("default", "slow"))

    @app.task
    async def double(n: int) -> int:
        return 2 * n

    @app.task(queue="slow")
    async def upper(text: str, mark: str = "!") -> str:
        return text.upper() + mark

    await app.submit("double", 1, id="taken")
    holder = await app.submit("double", 2, dedup_key="k")
    wanted = [
        Task(type="double", payload=21),
        Task(type="double", payload="no number"),
        Task(type="upper", payload={"text": "a"}, id="second", tags={"env": "test"}),
        Task(type="double", payload=1, id="taken"),
        Task(type="double", payload=1, id="taken", if_exists="return"),
        Task(type="double", payload=1, dedup_key="k"),
        Task(type="double", payload=1, dedup_key="k", if_exists="return"),
        Task(type="double", payload=1, depends_on=["nobody"]),
        Task(type="upper", payload={"text": "b"}, depends_on=["second"], durability="memory"),
        Task(type="double", payload=1, delay=timedelta(hours=1)),
        Task(type="double", payload=1, priority=99),
        Task(type="double", payload=1, cron="@daily", id="nightly"),
        "double",
    ]
    answers = await app.submit_tasks(wanted)  # type: ignore[arg-type]
    kinds = [type(answer) for answer in answers]
    assert kinds == [
        Handle, PayloadError, Handle, TaskExists, Handle, DuplicateTask, Handle, TaskNotFound, Handle, Handle,
        ConfigError, ScheduleHandle, ConfigError,
    ]  # fmt: skip
    handles = [answer for answer in answers if isinstance(answer, Handle)]
    assert [handle.id for handle in handles][2:4] == ["taken", holder.id]
    assert (await handles[5].info()).status == "pending"
    async with app:
        assert await handles[0].result(10) == 42
        assert await handles[4].result(10) == "B!"
    assert (await app.schedules.get("nightly")).cron == "@daily"


async def test_tasks_of_a_list_take_few_round_trips(app: Scheduler, monkeypatch: pytest.MonkeyPatch) -> None:
    store = await store_of(app)
    submit, calls = store.tasks.submit, list[int]()

    async def counted(specs: list[Spec], *options: Any) -> list[Receipt]:
        calls.append(len(specs))
        return await submit(specs, *options)

    monkeypatch.setattr(store.tasks, "submit", counted)
    tasks = (Task(type="work", payload=number, tags={"n": str(number)}) for number in range(SUBMIT_MAX + 5))
    answers = await app.submit_tasks(tasks)
    assert len({answer.id for answer in answers if isinstance(answer, Handle)}) == SUBMIT_MAX + 5
    assert calls == [SUBMIT_MAX, 5]
    assert await app.submit_tasks([]) == []


async def test_a_store_that_goes_away_half_way_is_the_answer_of_the_rest(
    app: Scheduler, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = await cut_second_submit(app, monkeypatch)
    answers = await app.submit_tasks(Task(type="work", payload=number) for number in range(2 * SUBMIT_MAX + 5))
    assert [isinstance(answer, Handle) for answer in answers] == [True] * SUBMIT_MAX + [False] * (SUBMIT_MAX + 5)
    assert {str(answer) for answer in answers[SUBMIT_MAX:]} == {"the wire is cut"}
    assert calls == [SUBMIT_MAX, SUBMIT_MAX], "the last five were not sent"


def test_a_task_record_has_the_options_of_submit() -> None:
    """Types and all, so that what one takes the other takes too."""
    record, options = get_type_hints(Task), get_type_hints(Options)
    assert record.keys() - options.keys() == {"type", "payload"}
    assert {name: record[name] for name in options} == options
