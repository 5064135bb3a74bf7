from __future__ import annotations

import asyncio
import subprocess
import sys
from datetime import UTC, datetime, timedelta

import pytest

from tests.integration.apps import Gate, Make, eventually
from tickwork import ConfigError, ExponentialBackoff, FixedDelay, Scheduler, Snooze, Status, TaskFailed
from tickwork.model.facts import Fact
from tickwork.testing import AppMaker, ManualClock, drain, wait_for


async def test_days_pass_in_milliseconds(tickwork_app: AppMaker, tickwork_clock: ManualClock) -> None:
    app = tickwork_app()
    ran: list[str] = []

    @app.task(max_retry=1, retry=FixedDelay(86_400))
    async def remind(user: str) -> str:
        ran.append(user)
        if len(ran) == 1:
            raise OSError("the mail server is away")
        return f"reminded {user}"

    loop = asyncio.get_running_loop()
    started = loop.time()
    async with app:
        handle = await remind.options(delay=timedelta(days=3)).submit("ann")
        await drain(app)
        assert ran == []
        tickwork_clock.advance(timedelta(days=3) - timedelta(milliseconds=1))
        await drain(app)
        assert ran == []
        tickwork_clock.advance(0.001)
        await drain(app)
        assert ran == ["ann"]
        tickwork_clock.advance(timedelta(days=1))
        await drain(app)
        assert await handle.result(timeout=1) == "reminded ann"
    assert loop.time() - started < 5


async def test_the_clock_can_be_set_to_a_date(tickwork_app: AppMaker, tickwork_clock: ManualClock) -> None:
    app = tickwork_app()
    fired: list[int] = []

    @app.periodic("0 0 1 1 *")
    async def new_year() -> None:
        fired.append(tickwork_clock.now())

    tickwork_clock.set(datetime(2030, 12, 31, 23, 59, 59, tzinfo=UTC))
    async with app:
        await drain(app)
        assert fired == []
        tickwork_clock.set(datetime(2031, 1, 1, tzinfo=UTC))
        await drain(app)
        assert len(fired) == 1


async def test_drain_follows_what_handlers_submit_and_dependants(app: Scheduler) -> None:
    done: list[int] = []

    @app.task
    async def countdown(n: int) -> None:
        done.append(n)
        if n:
            first = await countdown.submit(n - 1)
            await app.submit(after, None, depends_on=[first])

    @app.task
    async def after() -> None:
        done.append(-1)

    async with app:
        await countdown.submit(5)
        await drain(app)
    assert sorted(done) == [-1] * 5 + [0, 1, 2, 3, 4, 5]


async def test_drain_says_what_is_left(app: Scheduler) -> None:
    gate = Gate()

    @app.task
    async def stuck() -> None:
        await gate.pass_through()

    async with app:
        handle = await stuck.submit()
        await eventually(lambda: gate.entered)
        with pytest.raises(TimeoutError, match=rf"(?s)within 0.1 s: 1 running.*stuck {handle.id}: It is running on"):
            await drain(app, timeout=timedelta(milliseconds=100))
        gate.open()
        await drain(app)


async def test_drain_says_that_nobody_works(app: Scheduler) -> None:
    @app.task
    async def idle() -> None: ...

    handle = await idle.submit()
    with pytest.raises(TimeoutError, match=rf"(?s)1 ready.*idle {handle.id}: No worker is up"):
        await drain(app, timeout=0.05)


async def test_drain_says_which_schedule_is_due(make: Make, clock: ManualClock, url: str) -> None:
    app = make(url, clock=clock)

    @app.task
    async def job() -> None: ...

    await app.schedules.put("hourly", "job", cron="@hourly")
    clock.advance(3600)
    with pytest.raises(TimeoutError, match="schedule hourly is due"):
        await drain(app, timeout=0.05)


async def test_wait_for_a_status(app: Scheduler) -> None:
    gate = Gate()

    @app.task(max_retry=0)
    async def work() -> None:
        await gate.pass_through()
        raise ValueError("no luck")

    async with app:
        handle = await work.submit()
        assert (await wait_for(app, handle.id, "running")).status is Status.RUNNING
        with pytest.raises(TimeoutError, match=f"task {handle.id} is running, and was not success within 0.05 s"):
            await wait_for(app, handle.id, Status.SUCCESS, timeout=timedelta(seconds=0.05))
        gate.open()
        with pytest.raises(AssertionError, match=r"is dead \(ValueError: no luck"):
            await wait_for(app, handle.id, "completed")
        with pytest.raises(TaskFailed):
            await handle.result(1)
        with pytest.raises(TimeoutError, match="task nobody is not there"):
            await wait_for(app, "nobody", "success", timeout=0.05)


def test_programs_without_pytest_may_import_it() -> None:
    code = "import sys, tickwork.testing as t; print('pytest' in sys.modules, hasattr(t, 'tickwork_app'), t.drain)"
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert shown.stdout.startswith("False False <function drain")


# --- from due time to due time


def days(clock: ManualClock) -> float:
    """Since the start of the clock."""
    return (clock.now() - ManualClock().now()) / 86_400_000


async def test_a_daily_schedule_runs_thirty_times_in_thirty_days(make: Make, clock: ManualClock, url: str) -> None:
    app = make(url, clock=clock)
    ran: list[datetime] = []

    @app.periodic("0 9 * * *")
    async def report() -> None:
        ran.append(datetime.fromtimestamp(clock.now() / 1000, UTC))

    clock.set(datetime(2026, 3, 1, tzinfo=UTC))
    async with app:
        await drain(app, until=timedelta(days=30))
    assert ran == [datetime(2026, 3, 1 + day, 9, tzinfo=UTC) for day in range(30)]
    assert clock.now() == datetime(2026, 3, 31, tzinfo=UTC).timestamp() * 1000


async def test_a_chain_of_retries_runs_at_its_own_times(tickwork_app: AppMaker, tickwork_clock: ManualClock) -> None:
    app = tickwork_app()
    ran: list[float] = []

    @app.task(max_retry=4, retry=ExponentialBackoff(base=86_400, max=10 * 86_400, jitter=False))
    async def fail() -> None:
        ran.append(days(tickwork_clock))
        raise OSError("the printer is on fire")

    async with app:
        handle = await fail.submit()
        await drain(app, until=timedelta(days=100))
        assert (await handle.info()).status is Status.DEAD
    assert ran == [0, 1, 3, 7, 15]
    assert days(tickwork_clock) == 100


async def test_all_that_waits_for_a_time_comes_in_order(tickwork_app: AppMaker, tickwork_clock: ManualClock) -> None:
    app = tickwork_app()
    ran: list[tuple[float, str]] = []

    @app.task
    async def note(text: str, again: bool = False) -> None:
        ran.append((days(tickwork_clock), text))
        if again:
            await note.options(delay=timedelta(days=1)).submit(text + "!")

    @app.task
    async def patient() -> None:
        if days(tickwork_clock) < 4:
            raise Snooze(86_400)
        ran.append((days(tickwork_clock), "snoozed"))

    async with app:
        await app.schedules.put("second-days", "note", {"text": "tick"}, cron="13 22 */2 * *")
        first = await note.options(delay=timedelta(days=2.5)).submit("late", again=True)
        await app.submit(note, {"text": "after"}, depends_on=[first])
        await patient.submit()
        expired = await app.submit(note, {"text": "never"}, depends_on=[first], expires=3600)
        await drain(app, until=timedelta(days=5))
        assert (await expired.info()).status is Status.CANCELLED
    ticks = [entry for entry in ran if entry[1] == "tick"]
    rest = [entry for entry in ran if entry[1] != "tick"]
    assert len(ticks) == 3
    assert ran == sorted(ran, key=lambda entry: entry[0])
    assert rest == [(2.5, "late"), (2.5, "after"), (3.5, "late!"), (4, "snoozed")]


async def test_nothing_behind_the_end_is_run(tickwork_app: AppMaker, tickwork_clock: ManualClock) -> None:
    app = tickwork_app()
    ran: list[str] = []

    @app.task
    async def note(text: str) -> None:
        ran.append(text)

    async with app:
        end = datetime.fromtimestamp(tickwork_clock.now() / 1000, UTC) + timedelta(days=1)
        await note.options(schedule_at=end).submit("at the end")
        await note.options(schedule_at=end + timedelta(milliseconds=1)).submit("behind it")
        await drain(app, until=end)
        assert ran == ["at the end"]
        await drain(app, until=0.001)
        assert ran == ["at the end", "behind it"]


async def test_time_moves_forward_only_and_only_by_a_clock_that_can_be_moved(tickwork_app: AppMaker) -> None:
    with pytest.raises(ConfigError, match="run\\(app, clock=ManualClock"):
        await drain(Scheduler("memory://"), until=60)
    app = tickwork_app()
    with pytest.raises(ConfigError, match="before the time of the clock"):
        await drain(app, until=timedelta(seconds=-1))
    with pytest.raises(ConfigError, match="until must know its zone"):
        await drain(app, until=datetime(2030, 1, 1))
    with pytest.raises(ConfigError, match="until must be a number of seconds"):
        await drain(app, until="tomorrow")  # type: ignore[arg-type]


async def test_many_short_steps_cost_no_worker_its_place(tickwork_app: AppMaker) -> None:
    """Each step is shorter than a lease, and many are made within one real heartbeat."""
    app = tickwork_app(lease_ttl=30, renew_interval=10)
    ran: list[int] = []

    @app.periodic("*/10 * * * * *")
    async def often() -> None:
        ran.append(1)

    async with app:
        await drain(app, until=timedelta(minutes=10))
        kinds = [event.kind for event in await app.events.read(limit=1000)]
    assert len(ran) == 60
    assert kinds.count(Fact.WORKER_LOST) == 0
