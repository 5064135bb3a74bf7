"""Failed attempts, dead letters, dedup, and what operators may do to a task."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.integration.apps import Child, Gate, Make, eventually, facts, status_of, store_of
from tests.integration.child_poison import NEIGHBOURS
from tickwork import (
    Abort,
    ConfigError,
    CustomRetry,
    DuplicateTask,
    ExponentialBackoff,
    FixedDelay,
    LeaseLost,
    LinearBackoff,
    NotCancellable,
    NotRetryable,
    QueueStats,
    Retry,
    RetryPolicy,
    Scheduler,
    Snooze,
    Status,
    StoreError,
    TaskCancelled,
    TaskContext,
    TaskExists,
    TaskFailed,
    TaskNotFound,
    TickworkError,
)
from tickwork.ids import new_nonce
from tickwork.model.members import Worker as Member
from tickwork.model.outcomes import Outcome, Succeeded
from tickwork.model.tasks import Spec
from tickwork.store.contract import Claim, Finished
from tickwork.testing import ManualClock, drain, wait_for

DAY = 86_400


async def observed_delays(app: Scheduler, clock: ManualClock, task_id: str, ran: list[int]) -> list[float]:
    """The waits between attempts, each proved by moving the clock to a millisecond before and then onto it."""
    delays: list[float] = []
    await drain(app)
    while (info := await app.get_task(task_id)).status is Status.RETRYING:
        wait = round(info.scheduled_at.timestamp() * 1000) - clock.now()
        before = len(ran)
        clock.set(clock.now() + wait - 1)
        await drain(app)
        assert len(ran) == before, f"it ran before its {wait} ms were over"
        clock.set(clock.now() + 1)
        await drain(app)
        assert len(ran) == before + 1, f"it did not run after {wait} ms"
        delays.append(wait / 1000)
    return delays


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"retry": ExponentialBackoff(1, 5, 2.0, jitter=False), "max_retry": 5}, [1, 2, 4, 5, 5]),
        ({"retry": FixedDelay(DAY), "max_retry": 3}, [DAY, DAY, DAY]),
        ({"retry": LinearBackoff(1, 30, 45), "max_retry": 4}, [1, 31, 45, 45]),
        ({"retry": CustomRetry([1, 5, 0.25]), "max_retry": 5}, [1, 5, 0.25, 0.25, 0.25]),
        ({"retry": CustomRetry([7]), "max_retry": 0}, []),
        ({"max_retry": 2}, [40, 40]),
        ({}, [40, 40, 40]),
    ],
)
async def test_delays_between_attempts(
    make: Make, url: str, clock: ManualClock, options: dict[str, Any], expected: list[float]
) -> None:
    app = make(url, clock=clock, retry=FixedDelay(40), max_retry=3)
    ran: list[int] = []

    @app.task(**options)
    async def fail(ctx: TaskContext) -> None:
        ran.append(ctx.attempt)
        raise ValueError("no")

    async with app:
        handle = await app.submit("fail")
        assert await observed_delays(app, clock, handle.id, ran) == expected
        assert ran == list(range(1, len(expected) + 2))
        info = await handle.info()
        assert (info.status, info.attempt, info.retry_count) == (Status.DEAD, len(expected) + 1, len(expected))


@pytest.mark.parametrize(
    ("strategy", "centres"),
    [
        (ExponentialBackoff(8, 20, 2.0, jitter=True), [8, 16, 20]),
        (RetryPolicy(retry_delay=10, backoff_rate=3.0).backoff, [10, 30, 90]),
    ],
)
async def test_jitter_stays_within_a_quarter(
    make: Make, url: str, clock: ManualClock, strategy: Any, centres: list[float]
) -> None:
    app = make(url, clock=clock)
    ran: list[int] = []

    @app.task(retry=strategy)
    async def fail(ctx: TaskContext) -> None:
        ran.append(ctx.attempt)
        raise ValueError("no")

    async with app:
        handle = await app.submit("fail", max_retry=3)
        delays = await observed_delays(app, clock, handle.id, ran)
        assert len(delays) == 3
        for delay, centre in zip(delays, centres, strict=True):
            assert 0.75 * centre <= delay <= 1.25 * centre
            assert delay <= getattr(strategy, "max", 3600)
        assert delays != centres, "three exact waits are no jitter"


async def test_a_retry_policy_stands_for_two_options(make: Make, clock: ManualClock) -> None:
    app = make("memory://", clock=clock)

    @app.task(retry=RetryPolicy(max_retries=1, retry_delay=1))
    async def fail() -> None:
        raise ValueError("no")

    async def said(**options: Any) -> tuple[int | None, Any]:
        info = await (await app.submit("fail", **options)).info()
        return info.max_retry, info.retry

    assert await said() == (1, ExponentialBackoff(1, 3600, 2.0))
    assert await said(max_retry=7) == (7, ExponentialBackoff(1, 3600, 2.0))
    assert await said(retry=RetryPolicy(max_retries=2)) == (2, ExponentialBackoff(10, 3600, 2.0))
    assert await said(retry=FixedDelay(1)) == (1, FixedDelay(1))


async def test_the_number_of_retries_is_said_once(make: Make) -> None:
    app = make("memory://")
    twice: dict[str, Any] = {"retry": RetryPolicy(max_retries=1), "max_retry": 7}
    said = r"a RetryPolicy says how many retries there are \(1\), so max_retry=7 cannot be given beside it"

    @app.task
    async def work() -> None: ...

    with pytest.raises(ConfigError, match=said):
        app.task("other", **twice)
    with pytest.raises(ConfigError, match=said):
        await app.submit("work", **twice)
    with pytest.raises(ConfigError, match=said):
        await app.schedules.put("s", "work", cron="@daily", **twice)


# --- what a handler may raise


async def test_retry_after_a_time_of_its_own(make: Make, url: str, clock: ManualClock) -> None:
    app = make(url, clock=clock)
    ran: list[int] = []

    @app.task(max_retry=3, retry=FixedDelay(7))
    async def ask(ctx: TaskContext) -> str:
        ran.append(ctx.attempt)
        if ctx.attempt == 1:
            raise Retry(timedelta(hours=2), "the shop is closed")
        if ctx.attempt == 2:
            raise Retry
        return "open"

    async with app:
        handle = await ask.submit()
        await wait_for(app, handle.id, "retrying")
        assert (await handle.info()).last_error == "the shop is closed"
        assert await observed_delays(app, clock, handle.id, ran) == [7200, 7]
        assert await handle.result(1) == "open"
        assert ran == [1, 2, 3]


async def test_retry_at_once(make: Make, url: str, clock: ManualClock) -> None:
    app = make(url, clock=clock)

    @app.task(max_retry=2, retry=FixedDelay(DAY))
    async def ask(ctx: TaskContext) -> int:
        if ctx.attempt < 3:
            raise Retry(0 if ctx.attempt == 1 else -5)
        return ctx.attempt

    async with app:
        assert await (await ask.submit()).result(10) == 3


async def test_retry_does_not_go_past_the_maximum(app: Scheduler) -> None:
    @app.task(max_retry=1)
    async def ask() -> None:
        raise Retry(0, "once more")

    async with app:
        handle = await ask.submit()
        with pytest.raises(TaskFailed, match="once more"):
            await handle.result(10)
        assert (await handle.info()).attempt == 2


async def test_abort_is_final(app: Scheduler) -> None:
    @app.task(max_retry=5)
    async def give_up() -> None:
        raise Abort("the account is closed")

    async with app:
        handle = await give_up.submit()
        with pytest.raises(TaskFailed, match=r"failed for good \(dead\): the account is closed"):
            await handle.result(10)
        assert (await handle.info()).attempt == 1


async def test_snooze_gives_the_attempt_back(make: Make, url: str, clock: ManualClock) -> None:
    app = make(url, clock=clock)
    ran: list[int] = []

    @app.task(max_retry=0)
    async def later(ctx: TaskContext) -> str:
        ran.append(ctx.attempt)
        match len(ran):
            case 1:
                raise Snooze(3600)
            case 2:
                raise Snooze(timedelta(minutes=1))
            case 3:
                raise Snooze(datetime.fromtimestamp(clock.now() / 1000, UTC) + timedelta(days=2))
        return "now"

    async with app:
        handle = await later.submit()
        for wait in (3600, 60, 2 * DAY):
            await drain(app)
            info = await handle.info()
            assert (info.status, info.attempt) == (Status.PENDING, 0)
            assert round(info.scheduled_at.timestamp() * 1000) == clock.now() + wait * 1000
            clock.advance(wait)
        await drain(app)
        assert await handle.result(1) == "now"
        assert ran == [1, 1, 1, 1]


@pytest.mark.parametrize(
    "raiser",
    [
        lambda: Retry(float("nan")),
        lambda: Retry(float("inf")),
        lambda: Retry(1e300),
        lambda: Retry("soon"),  # type: ignore[arg-type]
        lambda: Snooze(float("inf")),
        lambda: Snooze(1e18),
        lambda: Snooze(datetime(2100, 1, 1)),
        lambda: Snooze(datetime.max.replace(tzinfo=UTC)),
        lambda: Snooze("later"),  # type: ignore[arg-type]
    ],
)
async def test_times_that_make_no_sense_fail_the_attempt(app: Scheduler, raiser: Callable[[], Exception]) -> None:
    @app.task(max_retry=1)
    async def odd() -> None:
        raise raiser()

    @app.task
    async def fine() -> int:
        return 1

    async with app:
        handle = await odd.submit()
        with pytest.raises(TaskFailed, match=r"ValueError: (Retry\(after\)|Snooze\(until\))"):
            await handle.result(10)
        assert (await handle.info()).attempt == 2
        assert await (await fine.submit()).result(10) == 1


async def test_one_bad_outcome_spoils_no_other(make: Make, url: str) -> None:
    """Outcomes go to the store in batches; each has to stand for itself."""
    app = make(url, concurrency=50)
    gate = Gate()

    @app.task(max_retry=0)
    async def work(n: int) -> int:
        await gate.pass_through()
        if n % 5 == 0:
            raise OSError(f"bad \udcff \x00 {n}")
        return n

    async with app:
        handles = [await work.submit(n) for n in range(40)]
        await eventually(lambda: gate.inside == 40)
        gate.open()
        await drain(app)
        for n, handle in enumerate(handles):
            assert await status_of(app, handle.id) is (Status.DEAD if n % 5 == 0 else Status.SUCCESS)


async def test_an_outcome_that_the_store_refuses_spoils_no_other(make: Make, url: str) -> None:
    app = make(url, concurrency=50)
    gate = Gate()
    ran: list[int] = []

    @app.task(max_retry=5)
    async def work(n: int) -> int:
        ran.append(n)
        await gate.pass_through()
        return n

    store = await store_of(app)
    finish = store.tasks.finish

    async def picky(outcomes: list[Outcome], then_claim: Claim | None = None) -> Finished:
        if any(isinstance(outcome, Succeeded) and outcome.result == b"13" for outcome in outcomes):
            raise StoreError("thirteen is too much")
        return await finish(outcomes, then_claim)

    store.tasks.finish = picky  # type: ignore[method-assign]
    async with app:
        handles = [await work.submit(n) for n in range(40)]
        await eventually(lambda: gate.inside == 40)
        gate.open()
        await drain(app)
        assert [await status_of(app, h.id) for h in handles if h is not handles[13]] == [Status.SUCCESS] * 39
        with pytest.raises(TaskFailed, match="its outcome could not be stored: thirteen is too much"):
            await handles[13].result(1)
        assert sorted(ran) == list(range(40)), "nothing that was done is done again"
        assert await (await work.submit(99)).result(10) == 99


async def test_dead_letters_can_be_off(make: Make, url: str) -> None:
    app = make(url, dlq=False, max_retry=0)

    @app.task
    async def fail() -> None:
        raise ValueError("no")

    async with app:
        handle = await fail.submit()
        with pytest.raises(TaskFailed, match=r"failed for good \(failed\)"):
            await handle.result(10)
        assert (await handle.info()).status is Status.FAILED
        assert (await app.dlq.list()).items == []


# --- poison


async def lose(app: Scheduler, task_id: str, times: int) -> None:
    """Workers claim the task and vanish."""
    store = await store_of(app)
    for number in range(times):
        ghost = f"ghost-{number}"
        await store.members.beat(Member(id=ghost))
        claimed = await store.tasks.claim(Claim(ghost, ("default",), frozenset({"work"}), 1, 30_000, new_nonce()))
        assert [grant.spec.id for grant in claimed.grants] == [task_id]
        await store.tasks.reclaim(10, (ghost,))


async def test_a_task_that_kills_three_workers_becomes_a_dead_letter(make: Make, url: str) -> None:
    app = make(url)
    ran: list[int] = []

    @app.task
    async def work() -> None:
        ran.append(1)

    handle = await work.submit()
    await lose(app, handle.id, 2)
    info = await handle.info()
    assert (info.status, info.losses, info.attempt) == (Status.READY, 2, 0)
    assert "was lost (its process is gone)" in (info.last_error or "")
    await lose(app, handle.id, 1)
    dead = await app.dlq.get(handle.id)
    assert (dead.losses, dead.attempt) == (3, 0)
    assert "not run again after 3 lost workers" in (dead.last_error or "")
    async with app:
        await drain(app)
        assert ran == []
        await app.dlq.retry(handle.id)
        await handle.result(10)
    assert ran == [1]
    assert (await handle.info()).losses == 0


@pytest.mark.timeout(120)
@pytest.mark.parametrize("workers", [1, 4])
async def test_a_poison_task_takes_no_neighbour_along(make: Make, file_url: str, tmp_path: Path, workers: int) -> None:
    app = make(file_url)
    gate = tmp_path / "gate"
    gate.touch()
    ids = [(await app.submit("poison", str(tmp_path))).id]
    ids += [
        (await app.submit("innocent", {"folder": str(tmp_path), "number": number})).id for number in range(NEIGHBOURS)
    ]
    for death in range(4):
        if death == 2:
            gate.unlink()  # all have cost two workers by now: from here on they are quick
        with Child("tests.integration.child_poison", file_url, str(workers)) as node:

            async def over(node: Child = node) -> bool:
                return node.process.poll() is not None or all([(await status_of(app, i)).ended for i in ids])

            await eventually(over, 30)
            if node.process.poll() is None:
                await node.stop()
                break
    assert [await status_of(app, task_id) for task_id in ids] == [Status.DEAD, *[Status.SUCCESS] * NEIGHBOURS]
    assert [(await app.get_task(task_id)).losses for task_id in ids] == [3, 2, 2, 2]


# --- dead letters


async def die(app: Scheduler, count: int) -> list[str]:
    """Tasks that died, in that order."""
    ids = []
    for number in range(count):
        handle = await app.submit("fragile", number, max_retry=0)
        await wait_for(app, handle.id, "dead")
        ids.append(handle.id)
    return ids


def fragile(app: Scheduler) -> list[bool]:
    broken = [True]

    @app.task("fragile")
    async def handler(n: int) -> int:
        if broken[0]:
            raise ValueError(f"broken {n}")
        return n

    return broken


async def test_dead_letters(app: Scheduler) -> None:
    broken = fragile(app)
    async with app:
        ids = await die(app, 5)
        fine = await app.submit("fragile", 9, delay=3600)
        first = await app.dlq.list(limit=2)
        second = await app.dlq.list(limit=2, cursor=first.cursor)
        third = await app.dlq.list(limit=2, cursor=second.cursor)
        assert [len(page) for page in (first, second, third)] == [2, 2, 1]
        assert third.cursor is None
        assert sorted(info.id for page in (first, second, third) for info in page) == sorted(ids)
        assert (await app.dlq.get(ids[0])).payload == {"n": 0}
        for wrong in (fine.id, "nobody"):
            for call in (app.dlq.get, app.dlq.retry, app.dlq.remove):
                with pytest.raises(TaskNotFound):
                    await call(wrong)
        assert (await app.queue_stats()).dlq_count == 5
        broken[0] = False
        await app.dlq.retry(ids[0])
        assert (await wait_for(app, ids[0], "success")).attempt == 1
        await app.dlq.remove(ids[1])
        with pytest.raises(TaskNotFound):
            await app.get_task(ids[1])
        assert await app.dlq.retry_all() == 3
        for task_id in ids[2:]:
            await wait_for(app, task_id, "success")
        assert await app.dlq.retry_all() == 0
        broken[0] = True
        await die(app, 3)
        assert await app.dlq.clear() == 3
        assert await app.dlq.clear() == 0
        assert (await app.status()).tasks == {"success": 4, "pending": 1}


async def test_the_counts_of_one_queue(make: Make, url: str) -> None:
    app = make(url, queues=("default", "slow"))

    @app.task(max_retry=0)
    async def fail() -> None:
        raise ValueError("no")

    async with app:
        dying = [await app.submit("fail", queue=queue) for queue in ("slow", "slow", "default")]
        for handle in dying:
            await wait_for(app, handle.id, "dead")
        assert (await app.queue_stats("slow")).worker_count == 1
    await app.submit("fail", queue="slow", delay=DAY)
    await app.submit("fail", queue="slow", priority=10)
    await app.submit("fail", queue="other", delay=DAY)
    assert await app.queue_stats("slow") == QueueStats(delayed_count=1, high_count=1, dlq_count=2)
    assert await app.queue_stats("nobody") == QueueStats()
    assert await app.queue_stats() == QueueStats(delayed_count=2, high_count=1, dlq_count=3)
    with pytest.raises(ConfigError, match="queue must be 1 to 128 letters"):
        await app.queue_stats("a b")


async def test_dead_letters_are_bounded(make: Make, url: str) -> None:
    app = make(url, dlq_max=3)
    fragile(app)
    async with app:
        ids = await die(app, 5)
        assert sorted(info.id for info in await app.dlq.list()) == sorted(ids[2:]), "the oldest go"
        assert (await app.status()).dropped_dead_letters == 2
        assert (await facts(app, ids[0]))[-1] == "task.dropped"
        with pytest.raises(TaskNotFound):
            await app.get_task(ids[0])


async def test_many_dead_letters_are_all_reached(make: Make, url: str) -> None:
    app = make(url, concurrency=100)
    broken = fragile(app)
    async with app:
        await app.submit_many("fragile", range(1200), max_retry=0)
        await drain(app, timeout=30)
        broken[0] = False
        assert await app.dlq.retry_all() == 1200
        await drain(app, timeout=30)
        assert (await app.status()).tasks == {"success": 1200}


# --- dedup and ids


async def test_a_dedup_key_lasts_its_time(make: Make, url: str, clock: ManualClock) -> None:
    app = make(url, clock=clock, dedup_ttl=100)

    @app.task
    async def pay() -> None: ...

    async with app:
        first = await app.submit("pay", dedup_key="order:1", dedup_ttl=3600)
        with pytest.raises(DuplicateTask, match=f"dedup key 'order:1' is held by task '{first.id}'") as caught:
            await app.submit("pay", dedup_key="order:1")
        assert (caught.value.existing_id, caught.value.dedup_key) == (first.id, "order:1")
        await app.submit("pay", dedup_key="order:2")
        await drain(app)
        assert await status_of(app, first.id) is Status.SUCCESS
        with pytest.raises(DuplicateTask):
            await app.submit("pay", dedup_key="order:1")  # an end does not free it
        clock.advance(99.999)
        with pytest.raises(DuplicateTask):
            await app.submit("pay", dedup_key="order:2")
        clock.advance(0.001)
        await app.submit("pay", dedup_key="order:2")
        clock.advance(3500)
        third = await app.submit("pay", dedup_key="order:1")
        assert third.id != first.id


async def test_cancel_and_delete_free_a_dedup_key(make: Make, url: str) -> None:
    app = make(url)

    @app.task
    async def pay() -> None: ...

    first = await app.submit("pay", dedup_key="k", delay=60)
    await first.cancel()
    second = await app.submit("pay", dedup_key="k")
    async with app:
        await second.result(10)
    with pytest.raises(DuplicateTask):
        await app.submit("pay", dedup_key="k")
    await app.delete(second.id)
    await app.submit("pay", dedup_key="k")


async def test_dedup_can_be_off(make: Make, url: str) -> None:
    app = make(url, dedup=False)

    @app.task
    async def pay() -> None: ...

    first = await app.submit("pay", dedup_key="k")
    second = await app.submit("pay", dedup_key="k")
    assert first.id != second.id
    assert {task.id for task in (await app.list_tasks()).items} == {first.id, second.id}


async def test_of_many_at_once_one_wins(app: Scheduler) -> None:
    @app.task
    async def pay() -> None: ...

    answers = await asyncio.gather(*(app.submit("pay", dedup_key="k") for _ in range(20)), return_exceptions=True)
    winners = [answer for answer in answers if not isinstance(answer, BaseException)]
    assert len(winners) == 1
    assert all(isinstance(a, DuplicateTask) and a.existing_id == winners[0].id for a in answers if a not in winners)


async def test_an_id_is_never_taken_twice(app: Scheduler) -> None:
    @app.task
    async def work(n: int) -> int:
        return n

    async with app:
        handle = await app.submit("work", 1, id="mine")
        with pytest.raises(TaskExists, match="task 'mine' exists already; choose another id") as caught:
            await app.submit("work", 2, id="mine")
        assert caught.value.task_id == "mine"
        assert await handle.result(10) == 1
        with pytest.raises(TaskExists):
            await app.submit("work", 2, id="mine")
        assert (await app.get_task("mine")).payload == {"n": 1}
        await app.delete("mine")
        assert await (await app.submit("work", 3, id="mine")).result(10) == 3


# --- operators


async def test_cancel_of_what_waits(make: Make, url: str) -> None:
    app = make(url)
    ran: list[int] = []

    @app.task(max_retry=1, retry=FixedDelay(3600))
    async def work() -> None:
        ran.append(1)
        raise ValueError("no")

    upstream = await app.submit("work", delay=3600)
    for options in ({}, {"delay": 3600}, {"depends_on": [upstream]}):
        handle = await app.submit("work", **options)
        await handle.cancel()
        assert await status_of(app, handle.id) is Status.CANCELLED
        with pytest.raises(TaskCancelled, match="cancelled by request"):
            await handle.result(1)
        await handle.cancel()  # again: it is what was wanted
        await handle.cancel(force=True)
    async with app:
        retrying = await app.submit("work")
        await wait_for(app, retrying.id, "retrying")
        await retrying.cancel()
        assert await status_of(app, retrying.id) is Status.CANCELLED
        await drain(app)
    assert ran == [1]


async def test_what_cannot_be_cancelled(app: Scheduler) -> None:
    broken = fragile(app)
    async with app:
        (dead,) = await die(app, 1)
        with pytest.raises(NotCancellable, match=r"has ended already \(dead\)"):
            await app.cancel(dead)
        broken[0] = False
        handle = await app.submit("fragile", 1)
        await handle.result(10)
        for force in (False, True):
            with pytest.raises(NotCancellable, match=r"has ended already \(success\)"):
                await handle.cancel(force)
        with pytest.raises(TaskNotFound, match="no task 'nobody'"):
            await app.cancel("nobody")


async def test_retry_by_hand(make: Make, url: str, clock: ManualClock) -> None:
    app = make(url, clock=clock)
    gate = Gate()
    ran: list[int] = []

    @app.task
    async def work(ctx: TaskContext) -> int:
        ran.append(ctx.fence)
        if len(ran) == 3:
            await gate.pass_through()
        return len(ran)

    async with app:
        later = await app.submit("work", delay=DAY)
        with pytest.raises(NotRetryable, match=r"is pending: it has not ended, .* run_now\(\) \(`tickwork run-now`"):
            await app.retry(later.id)
        await app.run_now(later.id)
        assert await later.result(10) == 1
        await app.retry(later.id)
        await drain(app)
        info = await later.info()
        assert await later.result(10) == 2
        assert (info.attempt, info.retry_count) == (1, 0)
        assert ran[1] > ran[0], "a fence only grows"
        running = await app.submit("work")
        await wait_for(app, running.id, "running")
        with pytest.raises(TickworkError, match="is running: only a task that has ended can be retried"):
            await app.retry(running.id)
        blocked = await app.submit("work", depends_on=[running])
        with pytest.raises(TickworkError, match="is blocked: only a task that has ended"):
            await app.retry(blocked.id)
        with pytest.raises(TaskNotFound):
            await app.retry("nobody")
        gate.open()
        cancelled = await app.submit("work", delay=DAY)
        await cancelled.cancel()
        await app.retry(cancelled.id)
        await drain(app)
        assert await status_of(app, cancelled.id) is Status.SUCCESS


async def test_run_now(make: Make, url: str, clock: ManualClock) -> None:
    app = make(url, clock=clock)
    gate = Gate()

    @app.task(retry=FixedDelay(DAY), max_retry=1)
    async def work(ctx: TaskContext) -> int:
        if ctx.attempt == 1:
            raise ValueError("not yet")
        await gate.pass_through()
        return ctx.attempt

    async with app:
        later = await app.submit("work", delay=DAY)
        blocked = await app.submit("work", depends_on=[later])
        await app.run_now(later.id)
        await wait_for(app, later.id, "retrying")
        await app.run_now(later.id)
        await wait_for(app, later.id, "running")
        await app.run_now(later.id)  # it does already
        with pytest.raises(NotRetryable, match="is blocked: it waits for other tasks, not for its time"):
            await app.run_now(blocked.id)
        gate.open()
        assert await later.result(10) == 2
        with pytest.raises(NotRetryable, match=r"has ended already \(success\): retry\(\) .*runs it again"):
            await app.run_now(later.id)
        with pytest.raises(TaskNotFound, match="no task 'nobody'"):
            await app.run_now("nobody")


async def test_delete(make: Make, url: str) -> None:
    app = make(url)

    @app.task
    async def work() -> None: ...

    handle = await work.submit()
    with pytest.raises(TickworkError, match="is ready: only ended tasks can be deleted; cancel it first"):
        await app.delete(handle.id)
    await handle.cancel()
    await app.delete(handle.id)
    for call in (app.delete, app.get_task, app.explain):
        with pytest.raises(TaskNotFound, match="never submitted, deleted, or past its retention"):
            await call(handle.id)
    with pytest.raises(TaskNotFound):
        await handle.result(1)


async def test_a_cancel_wakes_those_who_wait_for_it(make: Make, url: str) -> None:
    app = make(url)

    @app.task
    async def work() -> None: ...

    handle = await app.submit("work", delay=60)
    waiting = asyncio.ensure_future(handle.result(10))
    await asyncio.sleep(0)
    await handle.cancel()
    with pytest.raises(TaskCancelled):
        await waiting


ENDS_BY_NAME = [("completed", Status.SUCCESS), ("failed", Status.DEAD), ("cancelled", Status.CANCELLED)]


NOT_HELD = r"^this token does not hold task .*; nothing was changed$"


async def test_ending_a_task_by_its_token(make: Make, url: str) -> None:
    app = make(url, renew_interval=0.05)
    gate = Gate()
    tokens: list[str] = []

    @app.task
    async def work(ctx: TaskContext) -> str:
        tokens.append(ctx.token)
        await gate.pass_through()
        return "from the handler"

    async with app:
        for status, expected in ENDS_BY_NAME:
            handle = await work.submit()
            await eventually(lambda: gate.inside == 1)
            for token, message in (
                (None, "its token is needed to end it"),
                ("", "its token is needed to end it"),
                ("junk", NOT_HELD),
                ("\ud800", NOT_HELD),
                (tokens[-1] + "0", NOT_HELD),
            ):
                with pytest.raises(LeaseLost, match=message):
                    await app.update_task_status(handle.id, status, "from outside", token)
            assert await status_of(app, handle.id) is Status.RUNNING
            await app.update_task_status(handle.id, status, "from outside", tokens[-1])
            info = await handle.info()
            assert info.status is expected
            await eventually(lambda: gate.inside == 0, what="the handler was told that it lost its task")
            after = await handle.info()
            assert after == info, "the handler that lost its task changes nothing"
            for again, _ in ENDS_BY_NAME:
                with pytest.raises(LeaseLost, match=NOT_HELD):
                    await app.update_task_status(handle.id, again, "too late", tokens[-1])
            assert await handle.info() == info
            if expected is Status.SUCCESS:
                assert info.result is not None
                assert (info.result.message, info.result.data) == ("from outside", None)
            if expected is Status.DEAD:
                assert info.last_error == "from outside"


async def test_a_token_ends_no_other_task(make: Make, url: str) -> None:
    """Tasks that were claimed together have a token each, and none can be made from another."""
    app = make(url, concurrency=10)
    gate = Gate()
    tokens: dict[str, str] = {}

    @app.task
    async def work(ctx: TaskContext) -> None:
        tokens[ctx.task_id] = ctx.token
        await gate.pass_through()

    await app.submit_many("work", [None] * 10)
    async with app:
        await eventually(lambda: gate.inside == 10)
        assert len(set(tokens.values())) == 10
        records = [await (await app._open()).queries.get(task_id) for task_id in tokens]
        assert not any(record is not None and record.nonce in "".join(tokens.values()) for record in records)
        refused = 0
        for task_id in tokens:
            for other, token in tokens.items():
                if other != task_id:
                    with pytest.raises(LeaseLost, match=NOT_HELD):
                        await app.update_task_status(task_id, "completed", token=token)
                    refused += 1
        assert refused == 90
        for task_id, token in tokens.items():
            await app.update_task_status(task_id, "completed", token=token)
        gate.open()


async def test_the_token_of_an_attempt_that_is_over_looks_like_any_wrong_one(make: Make, url: str) -> None:
    app = make(url, retry=FixedDelay(0.01))
    gate, tokens = Gate(), list[str]()

    @app.task(max_retry=1)
    async def work(ctx: TaskContext) -> None:
        tokens.append(ctx.token)
        if ctx.attempt == 1:
            raise ValueError("once more")
        await gate.pass_through()

    async with app:
        handle = await work.submit()
        await eventually(lambda: gate.inside == 1, 30)
        waiting = await work.options(delay=3600).submit()
        for task_id, token in ((handle.id, tokens[0]), (waiting.id, tokens[1])):
            for status, _ in ENDS_BY_NAME:
                with pytest.raises(LeaseLost, match=NOT_HELD):
                    await app.update_task_status(task_id, status, token=token)
        with pytest.raises(ConfigError, match="nothing becomes ready by it"):
            await app.update_task_status(handle.id, "ready", token=tokens[1])
        await app.update_task_status(handle.id, "completed", token=tokens[1])
        gate.open()


async def test_moving_a_task_by_hand(make: Make, url: str) -> None:
    app = make(url)

    @app.task
    async def work() -> None: ...

    handle = await app.submit("work", delay=60)
    with pytest.raises(TickworkError, match="is pending and cannot become success"):
        await app.update_task_status(handle.id, "success")
    await app.update_task_status(handle.id, "pending")  # it is already
    await app.update_task_status(handle.id, "ready")
    assert await status_of(app, handle.id) is Status.READY
    with pytest.raises(TickworkError, match="is ready and cannot become running"):
        await app.update_task_status(handle.id, Status.RUNNING)
    await app.update_task_status(handle.id, "cancelled", "not needed")
    with pytest.raises(TaskCancelled, match="not needed"):
        await handle.result(1)
    with pytest.raises(TickworkError, match="is cancelled and cannot become success"):
        await app.update_task_status(handle.id, "completed")
    await app.update_task_status(handle.id, "ready")
    assert await status_of(app, handle.id) is Status.READY
    with pytest.raises(ValueError, match="unknown status 'done'; known are pending, blocked, ready"):
        await app.update_task_status(handle.id, "done")
    with pytest.raises(TaskNotFound):
        await app.update_task_status("nobody", "ready")


# --- explain


async def test_explain_before_anyone_works(make: Make, url: str, clock: ManualClock) -> None:
    app = make(url, clock=clock)

    @app.task
    async def work() -> None: ...

    clock.set(datetime(2030, 1, 1, tzinfo=UTC))
    ready = await app.submit("work")
    assert (await app.explain(ready.id)).text == "No worker is up."
    pending = await app.submit("work", delay=90)
    assert (await app.explain(pending.id)).text == "It waits for its time, 2030-01-01 00:01:30 UTC."
    blocked = await app.submit("work", depends_on=[ready, pending])
    sentence = (await app.explain(blocked.id)).text
    assert sentence in (f"It waits for {ready.id}, {pending.id}.", f"It waits for {pending.id}, {ready.id}.")
    await app.queues.pause("default", "maintenance")
    since = "since 2030-01-01 00:00:00 UTC"
    assert (await app.explain(ready.id)).text == f"Queue default is paused {since}: maintenance."
    await app.queues.resume("default")
    await app.queues.pause_type("work")
    assert (await app.explain(ready.id)).text == f"Type work is paused {since}."
    await app.queues.resume_type("work")
    await ready.cancel()
    assert (await app.explain(ready.id)).text == "It has ended: cancelled (cancelled by request)."
    with pytest.raises(TaskNotFound):
        await app.explain("nobody")


async def test_explain_while_others_work(make: Make, url: str) -> None:
    app = make(url, concurrency=1, renew_interval=0.05, retry=FixedDelay(3600))
    gate = Gate()

    @app.task
    async def work() -> None:
        await gate.pass_through()

    @app.task(max_retry=1)
    async def fail() -> None:
        raise ValueError("first line\nsecond line")

    async with app:
        failing = await fail.submit()
        await wait_for(app, failing.id, "retrying")
        sentence = (await app.explain(failing.id)).text
        assert sentence.startswith("Attempt 1 failed (ValueError: first line); the next one is due at 20")
        running = await work.submit()
        await eventually(lambda: gate.inside)
        assert (await app.explain(running.id)).text.startswith(f"It is running on {app.id}, attempt 1; its lease ends")
        waiting = await work.submit()

        async def busy() -> bool:
            return (await app.explain(waiting.id)).text == "All workers that may run it are busy."

        await eventually(busy)
        elsewhere = await app.submit("work", queue="elsewhere")
        assert (await app.explain(elsewhere.id)).text == "No worker that is up serves queue elsewhere."
        store = await store_of(app)
        await store.tasks.submit([Spec(id="strange", type="unheard", nonce="n")])
        assert (await app.explain("strange")).text == "No worker that is up on queue default knows task type unheard."
        gate.open()
        await waiting.result(10)
        assert (await app.explain(waiting.id)).text == "It has ended: success."
        await app.run_now(failing.id)
        await wait_for(app, failing.id, "dead")
        assert (await app.explain(failing.id)).text == "It has ended: dead (ValueError: first line)."


async def test_explain_a_cancel_that_takes_its_time(app: Scheduler) -> None:
    release = asyncio.Event()

    @app.task
    async def slow() -> None:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            await release.wait()
            raise

    async with app:
        handle = await slow.submit()
        await wait_for(app, handle.id, "running")
        await handle.cancel(force=True)
        sentence = (await app.explain(handle.id)).text
        assert sentence.startswith(f"It is running on {app.id}, attempt 1, and was asked to stop; its lease ends at ")
        assert (await handle.info()).cancelling
        release.set()
        await wait_for(app, handle.id, "cancelled")


# --- types that nobody here knows


async def submit_unknown(app: Scheduler, count: int) -> None:
    """As another process would; on memory:// a client refuses types that are not registered."""
    store = await store_of(app)
    specs = [Spec(id=f"strange-{n}", type="unheard", nonce=f"n{n}") for n in range(count)]
    await store.tasks.submit(specs)


async def test_an_unknown_type_is_left_alone_visibly(make: Make, url: str) -> None:
    app = make(url, scan_interval=0.1)
    looks: list[float] = []

    @app.task
    async def known() -> int:
        return 1

    store = await store_of(app)

    def count(send: Callable[..., Any]) -> Callable[..., Any]:
        async def count_and_send(*args: Any) -> Any:
            looks.append(time.monotonic())
            return await send(*args)

        return count_and_send

    for name in ("claim", "stand"):
        if hasattr(store.tasks, name):
            setattr(store.tasks, name, count(getattr(store.tasks, name)))
    async with app:
        await submit_unknown(app, 3)
        await eventually(lambda: _parked(app))
        assert await (await known.submit()).result(10) == 1, "what it knows goes on"
        (queue,) = await app.queues.list()
        assert (queue.normal, queue.parked) == (3, {"unheard": 3})
        info = await app.get_task("strange-0")
        assert (info.status, info.attempt, info.losses) == (Status.READY, 0, 0)
        assert await facts(app, "strange-0") == ["task.submitted", "task.parked"]
        seen = len(looks)
        await eventually(lambda: len(looks) >= seen + 4, timeout=30)
        assert looks[seen + 3] - looks[seen] > 3 * 0.1 * 0.8, "an idle worker looks once a scan, not more"
        assert await facts(app, "strange-0") == ["task.submitted", "task.parked"], "it is moved aside once"

        @app.task
        async def unheard() -> str:
            return "heard"

        for n in range(3):
            await wait_for(app, f"strange-{n}", "success")


async def _parked(app: Scheduler) -> bool:
    return (await app.queues.list())[0].parked == {"unheard": 3}


async def test_many_tasks_of_an_unknown_type_hide_no_other(make: Make, url: str) -> None:
    app = make(url, scan_interval=10)

    @app.task
    async def known() -> int:
        return 1

    await submit_unknown(app, 500)
    handle = await known.submit()
    async with app:
        assert await handle.result(5) == 1


async def test_a_result_that_is_too_large_is_refused_with_its_size(app: Scheduler) -> None:
    @app.task
    async def verbose() -> str:
        return "x" * 300_000

    async with app:
        handle = await verbose.submit()
        with pytest.raises(TaskFailed, match=r"the result has 300,002 bytes, payload_limit is 262,144"):
            await handle.result(10)
        assert (await handle.info()).attempt == 1, "trying again would not help"


async def test_an_exception_that_cannot_be_looked_at_still_fails_its_task() -> None:
    app = Scheduler("memory://")

    class Odd(Retry):
        def __str__(self) -> str:
            raise RuntimeError("no")

    @app.task(max_retry=0, timeout=0)
    async def job() -> None:
        raise Odd(1)

    async with app:
        handle = await app.submit("job")
        await wait_for(app, handle.id, "dead")


async def test_no_more_ended_tasks_are_kept_than_may_be(make: Make, url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Soon, and not only when old tasks are looked for."""
    monkeypatch.setattr("tickwork.node.duties.PRUNE_LOOK", 0.05)
    app = make(url, retention_max=5, cleanup_interval=3600)

    @app.task
    async def work(n: int) -> int:
        return n

    async with app:
        handles = await app.submit_many("work", range(40))
        await eventually(lambda: _kept(app, 5), what="only the last five are kept")
        assert (await handles[-1].info()).result is not None


async def _kept(app: Scheduler, count: int) -> bool:
    return (await app.status()).tasks == {"success": count}
