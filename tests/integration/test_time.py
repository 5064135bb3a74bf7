"""Delays, priorities and schedules: what starts when, and how often."""

from __future__ import annotations

import asyncio
import functools
import itertools
import logging
import time
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest

from tests.integration.apps import Gate, Make, eventually, facts, status_of, store_of
from tickwork import (
    ConfigError,
    CronError,
    FixedDelay,
    PayloadError,
    PeriodicTask,
    Priority,
    RetryPolicy,
    ScheduleHandle,
    ScheduleNotFound,
    Scheduler,
    Status,
    TaskContext,
    TaskExists,
    TaskNotFound,
)
from tickwork.cli import output
from tickwork.clock import to_millis
from tickwork.model import ticks
from tickwork.model.schedules import Misfire, Schedule
from tickwork.model.tasks import Spec
from tickwork.node import firing
from tickwork.observe.bus import Bus
from tickwork.testing import ManualClock, drain, wait_for

MIDNIGHT = datetime(2030, 1, 1, tzinfo=UTC)
HOUR = 3600


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(MIDNIGHT)


async def kinds(app: Scheduler, schedule_id: str) -> list[tuple[str, str]]:
    """The facts about a schedule."""
    return [(event.kind, event.detail) for event in await app.events.read(limit=10_000) if event.id == schedule_id]


async def runs_of(app: Scheduler, schedule_id: str) -> list[str]:
    """The hours (of 1 January 2030) for which a run exists, in order."""
    tasks = [info for info in await app.list_tasks(limit=1000) if info.schedule_id == schedule_id]
    return sorted(info.scheduled_at.strftime("%d-%H:%M:%S") for info in tasks)


# --- delays


async def test_delayed_tasks_start_at_their_time_and_not_at_the_next_poll(make: Make, url: str) -> None:
    app = make(url, scan_interval=30, concurrency=50)
    lateness: list[float] = []

    @app.task
    async def note(due: float) -> None:
        lateness.append(time.time() - due)

    async with app:
        handles = []
        for number in range(40):
            at = time.time() + 0.05 + 0.01 * (number * 7 % 40)
            handles.append(await app.submit("note", at, schedule_at=datetime.fromtimestamp(at, UTC)))
        for handle in handles:
            await handle.result(10)
    assert max(lateness) < 15, "none waits for the next poll"
    assert min(lateness) > -0.002, "none may start early"


async def test_a_delay_shorter_than_the_one_it_sleeps_for(make: Make, url: str) -> None:
    app = make(url, scan_interval=30)
    ran: list[str] = []

    @app.task
    async def note(name: str) -> None:
        ran.append(name)

    async with app:
        await app.submit("note", "long", delay=20)
        short = await app.submit("note", "short", delay=timedelta(milliseconds=50))
        await short.result(5)
    assert ran == ["short"]


async def test_a_retry_starts_at_its_time(make: Make, url: str) -> None:
    app = make(url, scan_interval=30, retry=FixedDelay(0.1))
    at: list[float] = []

    @app.task
    async def fail(ctx: TaskContext) -> None:
        at.append(time.monotonic())
        if ctx.attempt < 3:
            raise ValueError("no")

    async with app:
        await (await fail.submit()).result(5)
    gaps = [later - earlier for earlier, later in itertools.pairwise(at)]
    assert all(0.095 < gap < 1 for gap in gaps), gaps


async def test_times_are_kept_to_the_millisecond(make: Make, url: str, clock: ManualClock) -> None:
    app = make(url, clock=clock)

    @app.task
    async def work() -> None: ...

    by_delay = await app.submit("work", delay=1.5)
    by_delta = await app.submit("work", delay=timedelta(days=400))
    at = datetime(2030, 1, 1, 5, 30, 0, 250_000, tzinfo=timezone(timedelta(hours=5)))
    by_moment = await app.submit("work", schedule_at=at)
    past = await app.submit("work", schedule_at=MIDNIGHT - timedelta(days=1))
    now = await app.submit("work", delay=0)
    assert (await by_delay.info()).scheduled_at == MIDNIGHT + timedelta(seconds=1.5)
    assert (await by_delta.info()).scheduled_at == MIDNIGHT + timedelta(days=400)
    assert (await by_moment.info()).scheduled_at == MIDNIGHT + timedelta(minutes=30, milliseconds=250)
    assert [await status_of(app, h.id) for h in (by_delay, past, now)] == ["pending", "ready", "ready"]
    stats = await app.queue_stats()
    assert (stats.delayed_count, stats.normal_count) == (3, 2)


async def test_a_time_before_all_clocks_means_now(make: Make, url: str) -> None:
    app = make(url)

    @app.task
    async def work() -> int:
        return 1

    zone = timezone(timedelta(hours=14))
    async with app:
        handle = await app.submit("work", schedule_at=datetime.min.replace(tzinfo=zone))
        assert await handle.result(10) == 1
        assert (await handle.info()).scheduled_at == datetime(1970, 1, 1, tzinfo=UTC)


@pytest.mark.parametrize("at", [253_402_300_800_000, -62_135_683_200_000, 2**53 - 1])
async def test_a_stored_time_out_of_the_calendar_is_shown_all_the_same(make: Make, url: str, at: int) -> None:
    app = make(url)

    @app.task
    async def work() -> None: ...

    store = await store_of(app)
    await store.tasks.submit([Spec(id="far", type="work", nonce="n", at=at)])
    assert [info.id for info in await app.list_tasks()] == ["far"]
    assert (await app.get_task("far")).scheduled_at.year in ((9999,) if at > 0 else (1, 1970))
    assert await app.explain("far")
    output.moment((await app.get_task("far")).scheduled_at)


async def test_due_tasks_start_in_the_order_of_their_times(make: Make, url: str, clock: ManualClock) -> None:
    app = make(url, clock=clock, concurrency=1)
    order: list[int] = []

    @app.task
    async def note(n: int) -> None:
        order.append(n)

    for n in (3, 1, 2):
        await app.submit("note", n, delay=n)
    clock.advance(10)
    async with app:
        await drain(app)
    assert order == [1, 2, 3]


# --- priorities


async def test_bands_are_strict_and_fifo_inside(make: Make, url: str) -> None:
    app = make(url, concurrency=1)
    order: list[str] = []

    @app.task
    async def note(name: str) -> None:
        order.append(name)

    for number, priority in enumerate([1, 5, 10, 4, 9, Priority.HIGH, Priority.LOW, 7]):
        await app.submit("note", f"{int(priority)}:{number}", priority=priority)
    stats = await app.queue_stats()
    assert (stats.high_count, stats.normal_count, stats.low_count) == (2, 3, 3)
    async with app:
        await drain(app)
    assert order == ["10:2", "10:5", "5:1", "9:4", "7:7", "1:0", "4:3", "1:6"]


async def test_a_worker_serves_its_queues_only(make: Make, url: str) -> None:
    app = make(url, queues=["a", "b"])
    ran: list[str] = []

    @app.task
    async def note(name: str) -> None:
        ran.append(name)

    @app.task(queue="a")
    async def at_home(name: str) -> None:
        ran.append(name)

    for queue in ("a", "b", "c"):
        await app.submit("note", queue, queue=queue)
    await at_home.submit("home")
    async with app:
        await eventually(lambda: len(ran) == 3)
        assert sorted(ran) == ["a", "b", "home"]
        await eventually(lambda: _statuses(app, {"success": 3, "ready": 1}), what="three have ended, one is left")


async def _statuses(app: Scheduler, expected: dict[str, int]) -> bool:
    return (await app.status()).tasks == expected


async def test_a_paused_queue_starts_nothing(make: Make, url: str) -> None:
    app = make(url, scan_interval=30)

    @app.task
    async def work() -> int:
        return 1

    async with app:
        await app.queues.pause("default", "the shop is being painted")
        handle = await work.submit()
        other = await app.submit("work", queue="other")
        (info,) = [queue for queue in await app.queues.list() if queue.name == "default"]
        assert (info.paused, info.note, info.normal, info.workers) == (True, "the shop is being painted", 1, 1)
        with pytest.raises(TimeoutError):
            await handle.result(0.2)
        assert await app.queues.resume("default")
        assert not await app.queues.resume("default")
        assert await handle.result(5) == 1
        await app.queues.pause_type("work")
        handle = await work.submit()
        with pytest.raises(TimeoutError):
            await handle.result(0.2)
        assert await app.queues.resume_type("work")
        assert await handle.result(5) == 1
        assert await status_of(app, other.id) is Status.READY


# --- schedules of the program


async def test_a_periodic_function(make: Make, url: str, clock: ManualClock) -> None:
    app = make(url, clock=clock)
    ran: list[str] = []

    @app.periodic("0 */5 * * * *")
    async def sweep(ctx: TaskContext) -> None:
        ran.append(ctx.task_id)
        raise ValueError("a failed run is not retried and does not stop the next")

    @app.periodic("@daily", id="report", timezone="Asia/Shanghai", overlap="allow", priority=10)
    def daily() -> None:
        ran.append("daily")

    assert (await app.schedules.list()).items == [], "nothing is written before start()"
    assert app.list_registered() == ["report", "sweep"]
    async with app:
        for _ in range(3):
            clock.advance(300)
            await drain(app)
        assert ran == [f"sweep@{clock.now() - n * 300_000}" for n in (2, 1, 0)]
        report, swept = await app.schedules.list()
        assert (report.id, report.timezone, report.overlap) == ("report", "Asia/Shanghai", "allow")
        assert report.next_at == datetime(2030, 1, 1, 16, tzinfo=UTC)
        assert (swept.next_at, swept.last_fire_at) == (
            MIDNIGHT + timedelta(minutes=20),
            MIDNIGHT + timedelta(minutes=15),
        )
        assert (swept.last_task_id, swept.last_status, swept.stopped) == (ran[-1], "dead", "")
        clock.set(datetime(2030, 1, 1, 16, tzinfo=UTC))
        await drain(app)
        assert "daily" in ran
        assert (await app.get_task(f"report@{clock.now()}")).priority == 10
    info = await app.get_task(ran[0])
    assert (info.attempt, info.max_retry, info.schedule_id) == (1, 0, "sweep")
    assert info.scheduled_at == MIDNIGHT + timedelta(minutes=5)


async def test_a_task_that_is_there_already_gets_a_cron_line(make: Make, url: str, clock: ManualClock) -> None:
    app = make(url, clock=clock, queues=("default", "reports"))
    ran: list[str] = []

    @app.periodic("0 3 * * *", payload={"kind": "daily"})
    @app.task(queue="reports", max_retry=2, timeout=60)
    async def report(kind: str, size: int = 1) -> None:
        ran.append(kind)

    for _ in range(2):  # saying the same again is no mistake
        app.periodic("0 4 * * mon", payload="weekly", id="weekly", priority=10)(report.options(tags={"by": "cron"}))
    async with app:
        daily, weekly = await app.schedules.list()
        assert (daily.type, daily.queue, daily.max_retry, daily.timeout) == ("report", "reports", 2, 60)
        assert (weekly.type, weekly.queue, weekly.priority, weekly.tags) == ("report", "reports", 10, {"by": "cron"})
        clock.set(MIDNIGHT + timedelta(hours=3))
        await drain(app)
        assert ran == ["daily"]
        by_hand = await (await report.submit("by hand")).info()
        assert (by_hand.queue, by_hand.max_retry, by_hand.timeout) == ("reports", 2, 60)


def test_a_cron_line_for_a_task_that_is_wrong() -> None:
    app = Scheduler("memory://")

    @app.periodic("0 3 * * *", payload={"kind": "daily"})
    @app.task
    async def report(kind: str, size: int = 1) -> None: ...

    with pytest.raises(ConfigError, match=r"schedule 'report' is declared already, for 'report' by '0 3 .*id="):
        app.periodic("@hourly", payload="hourly")(report)
    with pytest.raises(PayloadError, match="Expected `int`"):
        app.periodic("@hourly", payload={"kind": "x", "size": "large"}, id="bad")(report)
    with pytest.raises(ConfigError, match="unknown option 'delay'"):
        app.periodic("@hourly", payload="x", id="bad")(report.options(delay=5))
    with pytest.raises(ConfigError, match=r"run_in of task 'report' is said with app\.task"):
        app.periodic("@hourly", payload="x", id="bad", run_in="thread")(report)
    assert (app.list_registered(), app.registry.list()) == (["report"], ["report"])


async def test_a_run_by_hand_takes_the_options_of_the_ticks(make: Make) -> None:
    app = make("memory://")

    @app.periodic("@daily", queue="slow", priority=1, timeout=5, key="k", tags={"a": "b"}, overlap="queue")
    async def sweep() -> None: ...

    @app.periodic("@daily", retry=RetryPolicy(max_retries=4, retry_delay=1))
    async def retried() -> None: ...

    by_hand = await (await sweep.submit()).info()
    assert (by_hand.queue, by_hand.priority, by_hand.timeout, by_hand.max_retry, by_hand.tags) == (
        "slow", 1, 5, 0, {"a": "b"},
    )  # fmt: skip
    assert (await (await retried.submit()).info()).max_retry == 4


async def test_a_periodic_function_that_is_wrong(make: Make) -> None:
    app = make("memory://")
    with pytest.raises(CronError, match="minute"):

        @app.periodic("61 * * * *")
        async def bad() -> None: ...

    with pytest.raises(ConfigError, match=r"'greedy' has parameters \(n\) and no payload for its runs; give one: "):

        @app.periodic("@daily")
        async def greedy(n: int) -> None: ...

    with pytest.raises(ConfigError, match="Atlantis"):

        @app.periodic("@daily", timezone="Atlantis/Town")
        async def lost() -> None: ...

    assert app.registry.list() == []
    assert app.list_registered() == []


class Cleanup(PeriodicTask):
    name = "cleanup"
    spec = "@hourly"
    timeout = 0.05

    def __init__(self) -> None:
        self.ran = 0

    async def run(self, ctx: TaskContext) -> None:
        self.ran += 1
        await asyncio.sleep(60)


class FromSettings(PeriodicTask):
    name = "stats"

    def __init__(self, settings: dict[str, str]) -> None:
        self.settings = settings
        self.seen: list[str] = []

    @property
    def spec(self) -> str:  # type: ignore[override]
        return self.settings["stats_cron"]

    def run(self, ctx: TaskContext) -> str:
        self.seen.append(ctx.type)
        return "counted"


async def test_periodic_task_objects(make: Make, url: str, clock: ManualClock) -> None:
    app = make(url, clock=clock)
    cleanup, stats = Cleanup(), FromSettings({"stats_cron": "30 * * * *"})
    simple: list[str] = []

    async def simple_run(ctx: TaskContext) -> None:
        simple.append(ctx.task_id)

    app.register(cleanup)
    app.register(stats)
    app.register(PeriodicTask.of("simple", "*/30 * * * *", 5, simple_run))
    app.register(PeriodicTask.of("blocking", "@hourly", 5, lambda ctx: simple.append(ctx.type)))
    assert app.list_registered() == ["blocking", "cleanup", "simple", "stats"]
    with pytest.raises(ConfigError, match="'cleanup' is registered already"):
        app.register(Cleanup())
    with pytest.raises(CronError):
        app.register(PeriodicTask.of("broken", "not a line", 5, simple_run))
    assert not app.registry.has("broken")
    async with app:
        clock.advance(HOUR / 2)
        await drain(app)
        assert (cleanup.ran, stats.seen, len(simple)) == (0, ["stats"], 1)
        assert await runs_of(app, "stats") == ["01-00:30:00"]
        clock.advance(HOUR / 2)
        await drain(app)
        assert (cleanup.ran, len(simple)) == (1, 3)
        info = await app.get_task(f"cleanup@{clock.now()}")
        assert (info.status, info.attempt) == (Status.DEAD, 1)
        assert "timed out after 0.05 s" in (info.last_error or "")
        clock.advance(HOUR)
        await drain(app)
        assert cleanup.ran == 2, "a failed run does not stop the next"


async def test_options_of_periodic_task_objects(make: Make, url: str) -> None:
    class Slow(PeriodicTask):
        name = "slow"
        spec = "@hourly"
        queue = "reports"
        overlap = "queue"
        misfire = "all"
        max_retry = 2
        timeout = timedelta(minutes=10)

        def run(self, ctx: TaskContext) -> None: ...

    class Odd(Slow):
        name = "odd"
        misfire = "never"  # type: ignore[assignment]

    task = Slow()
    task.priority = 10
    task.enabled = False
    app = make(url)
    app.register(task)
    with pytest.raises(ConfigError, match="misfire must be one of latest, skip, all, not 'never'"):
        app.register(Odd())
    assert app.registry.list() == ["slow"]
    async with app:
        (info,) = await app.schedules.list()
        assert (info.queue, info.overlap, info.misfire, info.max_retry, info.timeout, info.priority, info.enabled) == (
            "reports", "queue", "all", 2, 600, 10, False,
        )  # fmt: skip
        by_hand = await (await app.submit("slow")).info()
        assert (by_hand.queue, by_hand.max_retry, by_hand.timeout, by_hand.priority) == ("reports", 2, 600, 10)


async def test_a_periodic_task_that_comes_later_is_written_too(make: Make, url: str) -> None:
    app = make(url)
    async with app:
        await asyncio.to_thread(app.register, FromSettings({"stats_cron": "30 * * * *"}))

        @app.periodic("@hourly")
        async def sweep() -> None: ...

        async def written() -> bool:
            return [schedule.id for schedule in await app.schedules.list()] == ["stats", "sweep"]

        await eventually(written)


async def test_a_periodic_task_that_comes_later_fires(make: Make, url: str) -> None:
    app = make(url)
    ran: list[str] = []

    class Beat(PeriodicTask):
        name = "beat"
        spec = "* * * * * *"

        async def run(self, ctx: TaskContext) -> None:
            ran.append("beat")

    async with app:
        app.register(Beat())

        @app.periodic("* * * * * *")
        async def tick() -> None:
            ran.append("tick")

        await eventually(lambda: {"beat", "tick"} <= set(ran), timeout=60)


def test_a_periodic_task_without_a_name_or_a_line() -> None:
    class Nameless(PeriodicTask):
        spec = "@daily"

        def run(self, ctx: TaskContext) -> None: ...

    class Lineless(PeriodicTask):
        name = "lineless"

        def run(self, ctx: TaskContext) -> None: ...

    app = Scheduler("memory://")
    with pytest.raises(ConfigError, match="periodic task Nameless has no name; set it on the class or the object"):
        app.register(Nameless())
    with pytest.raises(ConfigError, match="periodic task Lineless has no spec"):
        app.register(Lineless())
    assert (app.registry.list(), app.list_registered()) == ([], [])


async def test_a_restart_does_not_move_the_next_tick(make: Make, url: str, clock: ManualClock) -> None:
    app = make(url, clock=clock)
    ran: list[int] = []

    @app.periodic("@every 1h")
    async def interval() -> None:
        ran.append(clock.now())

    for _ in range(7):
        async with app:
            await drain(app)
        clock.advance(10 * 60)
    assert ran == [clock.now() - 10 * 60_000], "seven starts within the hour must not put it off"
    info = await app.schedules.get("interval")
    assert (info.created_at, info.updated_at) == (MIDNIGHT, MIDNIGHT)
    assert [kind for kind, _ in await kinds(app, "interval")].count("schedule.put") == 1, "nothing had changed"


async def test_a_changed_line_is_taken_over_at_start(make: Make, file_url: str, clock: ManualClock) -> None:
    first, second = make(file_url, clock=clock), make(file_url, clock=clock)

    @first.periodic("0 6 * * *", id="job")
    async def old() -> None: ...

    @second.periodic("0 3 * * *", id="job")
    async def new() -> None: ...

    async with first:
        pass
    await first.schedules.pause("job")
    async with second:
        info = await second.schedules.get("job")
        assert (info.cron, info.enabled) == ("0 3 * * *", False), "a pause outlives a restart"
        await second.schedules.resume("job")
        assert (await second.schedules.get("job")).next_at == MIDNIGHT + timedelta(hours=3)


# --- schedules by submit(cron=...)


async def test_submit_with_a_cron_line(make: Make, url: str, clock: ManualClock) -> None:
    app = make(url, clock=clock)
    seen: list[Any] = []

    @app.task
    async def report(kind: str, ctx: TaskContext) -> None:
        seen.append((kind, dict(ctx.tags)))

    async with app:
        handle = await app.submit(
            "report", "daily", cron="0 6 * * *", timezone="Europe/Berlin", tags={"a": "b"}, priority=10
        )
        assert isinstance(handle, ScheduleHandle)
        schedule = await handle.schedule()
        assert (schedule.id, schedule.on_exhausted, schedule.type) == (handle.id, "stop", "report")
        assert schedule.next_at == MIDNIGHT + timedelta(hours=5)
        assert schedule.description
        with pytest.raises(TypeError, match="is a schedule and has no result of its own"):
            await handle.result()
        with pytest.raises(TypeError, match=r"is a schedule, not a task; ask for its schedule\(\)"):
            await handle.info()
        assert repr(handle) == f"<ScheduleHandle {handle.id}>"
        for day in (1, 2):
            clock.set(datetime(2030, 1, day, 5, tzinfo=UTC))
            await drain(app)
        assert seen == [("daily", {"a": "b"})] * 2
        with pytest.raises(TaskExists):
            await app.submit("report", "daily", cron="0 6 * * *", id=handle.id)
        await handle.cancel()
        with pytest.raises(ScheduleNotFound):
            await handle.schedule()
        clock.advance(24 * HOUR)
        await drain(app)
        assert len(seen) == 2


async def test_a_submitted_schedule_stops_when_its_retries_are_spent(
    make: Make, url: str, clock: ManualClock, caplog: pytest.LogCaptureFixture
) -> None:
    app = make(url, clock=clock)
    ran: list[int] = []
    broken = [True]

    @app.task(max_retry=1, retry=FixedDelay(60))
    async def report() -> None:
        ran.append(clock.now())
        if broken[0]:
            raise ValueError("no")

    async with app:
        handle = await app.submit("report", cron="@hourly", id="hourly-report")
        clock.advance(HOUR)
        await drain(app)
        assert (await app.schedules.get(handle.id)).enabled, "one retry is left"
        clock.advance(60)
        await drain(app)
        task_id = f"hourly-report@{clock.now() - 60_000}"
        stopped = await app.schedules.get(handle.id)
        assert (stopped.enabled, stopped.next_at, stopped.last_status) == (False, None, "dead")
        assert stopped.stopped == f"task {task_id} used up its retries"
        assert ("schedule.stopped", stopped.stopped) in await kinds(app, handle.id)
        (line,) = [record for record in caplog.records if record.getMessage().startswith("Schedule stopped")]
        assert line.levelno == logging.ERROR
        assert "hourly-report" in line.getMessage()
        clock.advance(5 * HOUR)
        await drain(app)
        assert len(ran) == 2, "a stopped schedule does not fire"
        broken[0] = False
        await app.schedules.resume(handle.id)
        resumed = await app.schedules.get(handle.id)
        assert (resumed.enabled, resumed.stopped) == (True, "")
        assert resumed.next_at == MIDNIGHT + timedelta(hours=7)
        clock.advance(HOUR)
        await drain(app)
        assert len(ran) == 3, "ticks of the stop are not made up for"
        clock.advance(HOUR)
        await drain(app)
        assert len(ran) == 4


async def test_a_schedule_may_go_on_after_failures(make: Make, url: str, clock: ManualClock) -> None:
    app = make(url, clock=clock)
    ran: list[int] = []

    @app.task(max_retry=0)
    async def fail() -> None:
        ran.append(1)
        raise ValueError("no")

    async with app:
        await app.schedules.put("stubborn", "fail", cron="@hourly", on_exhausted="continue")
        for _ in range(3):
            clock.advance(HOUR)
            await drain(app)
        assert len(ran) == 3


# --- overlap


async def overlapping(make: Make, url: str, clock: ManualClock, overlap: str) -> tuple[Scheduler, Gate]:
    app = make(url, clock=clock)
    gate = Gate()

    @app.task(max_retry=0)
    async def slow() -> None:
        await gate.pass_through()
        raise ValueError("also a failed run is over")

    await app.schedules.put("slow", "slow", cron="@hourly", overlap=overlap)  # type: ignore[arg-type]
    return app, gate


async def fired(app: Scheduler, count: int) -> bool:
    return [kind for kind, _ in await kinds(app, "slow")].count("schedule.fired") == count


def holds(gate: Gate, count: int) -> bool:
    return gate.inside == count


async def test_overlap_skip(make: Make, url: str, clock: ManualClock, caplog: pytest.LogCaptureFixture) -> None:
    app, gate = await overlapping(make, url, clock, "skip")
    with caplog.at_level(logging.DEBUG, "tickwork"):
        async with app:
            clock.advance(HOUR)
            await eventually(lambda: gate.inside == 1)
            clock.advance(HOUR)
            first = f"slow@{clock.now() - HOUR * 1000}"
            await eventually(lambda: _has(app, ("schedule.skipped", first)))
            assert gate.entered == 1
            gate.open()
            await drain(app)
            clock.advance(HOUR)
            await drain(app)
            assert gate.entered == 2
            assert await runs_of(app, "slow") == ["01-01:00:00", "01-03:00:00"]
    (line,) = [r for r in caplog.records if r.getMessage().startswith("Task already running on another instance")]
    assert line.levelno == logging.DEBUG
    assert f"schedule=slow detail={first}" in line.getMessage()


async def _has(app: Scheduler, fact: tuple[str, str]) -> bool:
    return fact in await kinds(app, "slow")


async def test_overlap_queue(make: Make, url: str, clock: ManualClock) -> None:
    app, gate = await overlapping(make, url, clock, "queue")
    async with app:
        for number in (1, 2, 3):
            clock.advance(HOUR)
            await eventually(functools.partial(fired, app, number), what=f"{number} ticks fired")
        await eventually(lambda: gate.inside == 1)
        second, third = f"slow@{clock.now() - HOUR * 1000}", f"slow@{clock.now()}"
        assert [await status_of(app, i) for i in (second, third)] == [Status.BLOCKED, Status.BLOCKED]
        gate.open()
        await drain(app)
    assert (gate.entered, gate.most) == (3, 1), "one after the other, failed or not"


async def test_overlap_allow(make: Make, url: str, clock: ManualClock) -> None:
    app, gate = await overlapping(make, url, clock, "allow")
    async with app:
        for number in (1, 2, 3):
            clock.advance(HOUR)
            await eventually(functools.partial(holds, gate, number), what=f"{number} runs at once")
        gate.open()
        await drain(app)


async def test_a_definition_can_be_read_back_whole(make: Make, url: str) -> None:
    app = make(url)

    @app.task
    async def job(n: int) -> None: ...

    put = await app.schedules.put(
        "s", "job", 5, cron="TZ=Europe/Paris 0 9 * * *", queue="slow", priority=9, max_retry=2, timeout=90,
        retry=FixedDelay(7), key="k", tags={"a": "b"}, context={"c": [1]}, serializer="msgpack", dst="instant",
        misfire_grace=60, misfire_cap=3, dedup_key="d", dedup_ttl=30,
    )  # fmt: skip
    found = await app.schedules.get("s")
    assert found == put
    assert (found.payload, found.queue, found.priority, found.max_retry, found.timeout) == (
        {"n": 5},
        "slow",
        9,
        2,
        90.0,
    )
    assert (found.retry, found.key, found.tags, found.context) == (FixedDelay(7), "k", {"a": "b"}, {"c": [1]})
    assert (found.serializer, found.dst, found.misfire_grace, found.misfire_cap) == ("msgpack", "instant", 60.0, 3)
    assert (found.dedup_key, found.dedup_ttl) == ("d", 30.0)
    assert (found.timezone, found.description) == ("Europe/Paris", "at 09:00 every day")
    assert (await app.schedules.put("by-hand", "job", 1, timezone="Asia/Tokyo")).timezone == "Asia/Tokyo"


# --- misfires: nobody was up when the ticks came


@pytest.mark.parametrize(
    ("options", "hours", "expected", "missed"),
    [
        ({}, 10, ["01-10:00:00"], "9 ticks"),
        ({"misfire": "latest"}, 10.5, ["01-10:00:00"], "9 ticks"),
        ({"misfire": "latest", "misfire_grace": 60}, 10.5, [], "10 ticks"),
        ({"misfire": "latest"}, 1, ["01-01:00:00"], None),
        ({"misfire": "skip"}, 10.5, [], "10 ticks"),
        ({"misfire": "skip"}, 10, ["01-10:00:00"], "9 ticks"),
        ({"misfire": "all", "misfire_grace": 86_400}, 5.5, [f"01-0{n}:00:00" for n in range(1, 6)], None),
        ({"misfire": "all", "misfire_grace": 86_400, "misfire_cap": 2}, 5.5, ["01-04:00:00", "01-05:00:00"], "3 ticks"),
        ({"misfire": "all", "misfire_grace": 2 * HOUR}, 5.5, ["01-04:00:00", "01-05:00:00"], "3 ticks"),
        ({"misfire": "all", "misfire_grace": 86_400, "overlap": "allow"}, 2.5, ["01-01:00:00", "01-02:00:00"], None),
        ({"misfire": "latest"}, 24 * 3650, ["30-00:00:00"], "1000 ticks"),  # of ten years, counted so far
    ],
)  # fmt: skip
async def test_misfires(
    make: Make, url: str, clock: ManualClock, options: Any, hours: float, expected: list[str], missed: str | None
) -> None:
    app = make(url, clock=clock)
    order: list[int] = []

    @app.task
    async def tick(ctx: TaskContext) -> None:
        order.append(int(ctx.task_id.partition("@")[2]))

    await app.schedules.put("tick", "tick", cron="@hourly", **options)
    clock.advance(hours * HOUR)
    async with app:
        await drain(app)
        told = [detail for kind, detail in await kinds(app, "tick") if kind == "schedule.missed"]
        assert told == ([] if missed is None else [missed])
        assert await runs_of(app, "tick") == expected
        assert len(order) == len(expected)
        assert order == sorted(order), "caught up in their order"
        next_at = (await app.schedules.get("tick")).next_at
        assert next_at == MIDNIGHT + timedelta(hours=int(hours) + 1)
        clock.set(next_at)
        await drain(app)
        assert len(order) == len(expected) + 1, "and on it goes"


@pytest.mark.parametrize(
    ("cron", "back", "cap", "expected"),
    [
        ("* * * * * *", timedelta(hours=36), 5, [4, 3, 2, 1, 0]),
        ("* * * * * *", timedelta(days=3650), 1, [0]),
        ("* * 23 * 12 *", timedelta(days=3650), 2, [1, 0]),  # a month of bursts, a year apart
        ("0 * * * * *", timedelta(seconds=150), 100, [120, 60, 0]),
    ],
)
def test_all_that_was_missed_means_the_latest_of_it(cron: str, back: timedelta, cap: int, expected: list[int]) -> None:
    now = datetime(2030, 12, 31, 23, 59, 59, tzinfo=UTC) if "12" in cron else MIDNIGHT
    now_ms, first = to_millis(now), to_millis(now - back)
    schedule = Schedule(
        id="s", cron=cron, task=Spec(id="", type="t", nonce=""), misfire=Misfire.ALL, misfire_cap=cap,
        misfire_grace=10**12,
    )  # fmt: skip
    line = ticks.cron_of(schedule)
    started = time.process_time()
    run, missed = ticks.ticks_to_run(schedule, line, line.next_ms(first - 1) or 0, now_ms)
    assert [(now_ms - tick) // 1000 for tick in run] == expected
    assert missed <= 1000
    assert time.process_time() - started < 5, "not by walking through all of them"


# --- steering schedules


async def test_pause_and_resume(make: Make, url: str, clock: ManualClock) -> None:
    app = make(url, clock=clock)
    ran: list[int] = []

    @app.task
    async def tick() -> None:
        ran.append(clock.now())

    async with app:
        await app.schedules.put("tick", "tick", cron="@hourly")
        await app.schedules.pause("tick")
        paused = await app.schedules.get("tick")
        assert (paused.enabled, paused.next_at) == (False, None)
        assert await app.schedules.next_runs("tick") == []
        clock.advance(3.5 * HOUR)
        await drain(app)
        assert ran == []
        await app.schedules.resume("tick")
        await drain(app)
        assert ran == [], "ticks of the pause are not made up for"
        clock.advance(0.5 * HOUR)
        await drain(app)
        assert ran == [clock.now()]


async def test_next_runs(make: Make, url: str, clock: ManualClock) -> None:
    app = make(url, clock=clock)

    @app.task
    async def tick() -> None: ...

    await app.schedules.put("tick", "tick", cron="0 9 * * mon-fri", timezone="Asia/Tokyo")
    runs = await app.schedules.next_runs("tick", 4)
    assert [run.astimezone(UTC).strftime("%a %d %H:%M") for run in runs] == [
        "Wed 02 00:00", "Thu 03 00:00", "Fri 04 00:00", "Mon 07 00:00",
    ]  # fmt: skip
    assert len(await app.schedules.next_runs("tick")) == 5
    await app.schedules.put("by-hand", "tick")
    assert await app.schedules.next_runs("by-hand") == []


async def test_trigger(make: Make, url: str, clock: ManualClock) -> None:
    app = make(url, clock=clock)
    ran: list[str] = []

    @app.task
    async def tick(payload: str, ctx: TaskContext) -> None:
        ran.append(f"{payload} {ctx.task_id}")

    async with app:
        info = await app.schedules.put("by-hand", "tick", "data", name="only when asked")
        assert (info.cron, info.next_at, info.description, info.name) == (
            None, None, "only when triggered", "only when asked",
        )  # fmt: skip
        clock.advance(100 * HOUR)
        await drain(app)
        assert ran == []
        first = await app.schedules.trigger("by-hand")
        second = await app.schedules.trigger("by-hand")  # in the same millisecond
        await drain(app)
        assert sorted(ran) == sorted([f"data {first}", f"data {second}"]), "asked twice, run twice"
        assert (await app.get_task(first)).schedule_id == "by-hand"


async def test_a_trigger_takes_no_tick_away(make: Make, url: str, clock: ManualClock) -> None:
    app = make(url, clock=clock)
    ran: list[str] = []

    @app.task
    async def tick(ctx: TaskContext) -> None:
        ran.append(ctx.task_id)

    await app.schedules.put("tick", "tick", cron="@hourly", overlap="allow")
    clock.advance(HOUR)
    triggered = await app.schedules.trigger("tick")  # in the very millisecond of the tick
    async with app:
        await drain(app)
        assert sorted(ran) == sorted([triggered, f"tick@{clock.now()}"])
        await app.schedules.pause("tick")
        await app.schedules.trigger("tick")
        await drain(app)
        assert len(ran) == 3, "a paused one can be triggered"


async def test_deleting_a_schedule(make: Make, url: str, clock: ManualClock) -> None:
    app = make(url, clock=clock)
    gate = Gate()

    @app.task
    async def tick() -> None:
        await gate.pass_through()

    async with app:
        await app.schedules.put("tick", "tick", cron="@hourly")
        clock.advance(HOUR)
        await eventually(lambda: gate.inside == 1)
        await app.schedules.delete("tick")
        assert (await app.schedules.list()).items == []
        gate.open()
        await drain(app)
        assert await status_of(app, f"tick@{clock.now()}") is Status.SUCCESS, "what was fired goes on"
        clock.advance(HOUR)
        await drain(app)
        assert gate.entered == 1
        schedules = app.schedules
        for call in (schedules.get, schedules.pause, schedules.resume, schedules.trigger, schedules.delete):
            with pytest.raises(ScheduleNotFound, match="no schedule 'tick'"):
                await call("tick")
        with pytest.raises(ScheduleNotFound):
            await schedules.next_runs("tick")


async def test_replacing_a_schedule_keeps_its_history(make: Make, url: str, clock: ManualClock) -> None:
    app = make(url, clock=clock)

    @app.task
    async def tick(n: int) -> int:
        return n

    async with app:
        await app.schedules.put("tick", "tick", 1, cron="@hourly")
        clock.advance(HOUR)
        await drain(app)
        await app.schedules.put("tick", "tick", 2, cron="@hourly")
        info = await app.schedules.get("tick")
        assert (info.created_at, info.updated_at) == (MIDNIGHT, MIDNIGHT + timedelta(hours=1))
        assert info.last_fire_at == MIDNIGHT + timedelta(hours=1)
        assert info.next_at == MIDNIGHT + timedelta(hours=2)
        with pytest.raises(TaskExists):
            await app.schedules.put("tick", "tick", 3, cron="@hourly", create=True)
        clock.advance(HOUR)
        await drain(app)
        task = await wait_for(app, f"tick@{clock.now()}", "success")
        assert task.payload == {"n": 2}


async def test_schedules_that_are_refused(make: Make) -> None:
    app = make("memory://")

    @app.task
    async def tick(n: int) -> None: ...

    put = app.schedules.put
    with pytest.raises(PayloadError, match="Expected `int`, got `str`"):
        await put("a", "tick", "x", cron="@daily")
    with pytest.raises(CronError):
        await put("a", "tick", 1, cron="every day")
    with pytest.raises(ConfigError, match="overlap must be one of skip, queue, allow, not 'maybe'"):
        await put("a", "tick", 1, cron="@daily", overlap="maybe")  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="misfire must be one of latest, skip, all"):
        await put("a", "tick", 1, cron="@daily", misfire="some")  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="on_exhausted must be one of stop, continue"):
        await put("a", "tick", 1, cron="@daily", on_exhausted="cry")  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="misfire_cap must be a whole number from 1 on"):
        await put("a", "tick", 1, cron="@daily", misfire_cap=0)
    with pytest.raises(ConfigError, match="at most 100 characters"):
        await put("a" * 101, "tick", 1, cron="@daily")
    with pytest.raises(ConfigError, match="a schedule's id must be"):
        await put("a b", "tick", 1, cron="@daily")
    with pytest.raises(ConfigError, match=r"unknown option 'overlapp'; did you mean 'overlap'\?"):
        await put("a", "tick", 1, cron="@daily", overlapp="skip")  # type: ignore[call-arg]
    assert (await app.schedules.list()).items == []


# --- several nodes


async def test_two_nodes_fire_each_tick_once(make: Make, file_url: str, clock: ManualClock) -> None:
    nodes = [make(file_url, clock=clock, batch_size=10) for _ in range(2)]
    ran: list[str] = []

    for node in nodes:

        @node.periodic("*/10 * * * * *", id="tick", overlap="allow")
        async def tick(ctx: TaskContext) -> None:
            ran.append(ctx.task_id)

    first, second = nodes
    async with first, second:
        stores = [await store_of(node) for node in nodes]
        ticks = []
        for _ in range(30):
            clock.advance(10)
            ticks.append(f"tick@{clock.now()}")
            # Both at the same time, whoever leads: leadership saves work and keeps nothing correct.
            await asyncio.gather(*(firing.fire_schedules(store, 10, Bus()) for store in stores * 3))
        await drain(first)
        assert sorted(ran) == ticks
        assert (await first.status()).tasks == {"success": 30}
        assert [kind for kind, _ in await kinds(first, "tick")].count("schedule.fired") == 30


async def test_ticks_by_the_real_clock(make: Make, url: str) -> None:
    app = make(url, scan_interval=30)
    lateness: list[float] = []

    @app.periodic("* * * * * *")
    async def tick(ctx: TaskContext) -> None:
        lateness.append(time.time() - int(ctx.task_id.partition("@")[2]) / 1000)

    async with app:
        await eventually(lambda: len(lateness) == 2)
    assert all(-0.002 < late < 15 for late in lateness), "never early, and no tick waits for the next scan"


async def test_the_run_of_a_schedule_tells_its_story(make: Make, url: str, clock: ManualClock) -> None:
    app = make(url, clock=clock)

    @app.periodic("@hourly")
    async def tick() -> None: ...

    async with app:
        clock.advance(HOUR)
        await drain(app)
        task_id = f"tick@{clock.now()}"
        assert await facts(app, task_id) == ["task.submitted", "task.claimed", "task.succeeded"]
        assert [kind for kind, _ in await kinds(app, "tick")] == ["schedule.put", "schedule.fired"]
        with pytest.raises(TaskNotFound):
            await app.get_task(f"tick@{clock.now() + HOUR * 1000}")


async def test_two_who_create_one_schedule_make_it_once(file_url: str) -> None:
    app = Scheduler(file_url)
    made = await asyncio.gather(
        *(app.submit("job", n, cron="@daily", id="one") for n in range(5)), return_exceptions=True
    )
    assert sum(not isinstance(answer, BaseException) for answer in made) == 1
    await app.close()
