"""What a handler declares of its errors: which are worth a retry, which end the task, and when a retry comes."""

from __future__ import annotations

import asyncio
import logging
from datetime import UTC, datetime
from functools import partial
from typing import Any

import pytest

from tests.integration import child_retry_rules
from tests.integration.apps import Make, eventually
from tests.integration.child_retry_rules import ERRORS, RULES, Busy, Declined, Expired, wait
from tickwork import (
    Abort,
    ConfigError,
    ExecutorError,
    ExponentialBackoff,
    FixedDelay,
    PeriodicTask,
    Retry,
    RetryPolicy,
    Scheduler,
    Snooze,
    Status,
    TaskContext,
    TaskInfo,
)
from tickwork.handlers.middleware import Middleware, RunCall, RunNext

ENDS_AT_ONCE = {
    "not named": "retry_on of its handler does not name ValueError",
    "aborted": "abort_on of its handler names Declined",
    "aborted, by a subclass": "abort_on of its handler names Expired",
    "a group with one not named": "retry_on of its handler does not name ValueError",
    "a group with one aborted": "abort_on of its handler names Expired",
    "not an Exception": "retry_on of its handler does not name SystemExit",
}
RETRIED = ("retried", "retried, by a subclass", "a group of those retried", "the handler asks for a retry")
KINDS = ("loop", "thread", "process", "object")


def declare(app: Scheduler, kind: str, **rules: Any) -> None:
    """A handler `charge` that raises what its payload names."""

    async def charge(how: str) -> None:
        raise ERRORS[how]()

    def charge_in_thread(how: str) -> None:
        raise ERRORS[how]()

    class Charger:
        def handle(self, ctx: TaskContext, payload: dict[str, str]) -> None:
            raise ERRORS[payload["how"]]()

    match kind:
        case "loop":
            app.task("charge", **rules)(charge)
        case "thread":
            app.task("charge", **rules)(charge_in_thread)
        case "process":
            target = child_retry_rules.deliver if callable(rules.get("retry")) else child_retry_rules.charge
            app.task("charge", run_in="process", **rules)(target)
        case "object":
            app.registry.register("charge", Charger(), **rules)


async def ended(app: Scheduler, how: str, **options: Any) -> TaskInfo:
    handle = await app.submit("charge", {"how": how}, **options)

    async def look() -> TaskInfo | None:
        info = await handle.info()
        return info if info.status.ended else None

    found: TaskInfo = await eventually(look, timeout=60)
    return found


async def waiting(app: Scheduler, how: str, **options: Any) -> float:
    """The seconds that a failed task waits for its next attempt."""
    handle = await app.submit("charge", {"how": how}, **options)

    async def look() -> TaskInfo | None:
        info = await handle.info()
        return info if info.status is Status.RETRYING else None

    info: TaskInfo = await eventually(look, timeout=60)
    (failed,) = info.attempts
    assert failed.finished_at is not None
    await handle.cancel()
    return round((info.scheduled_at - failed.finished_at).total_seconds(), 3)


@pytest.mark.parametrize("kind", KINDS)
async def test_only_named_errors_are_retried_and_others_end_the_task(make: Make, url: str, kind: str) -> None:
    app = make(url)
    declare(app, kind, **RULES)
    async with app:
        for how in RETRIED:
            info = await ended(app, how)
            assert (info.status, info.attempt) == (Status.DEAD, 3), how
        for how, why in ENDS_AT_ONCE.items():
            info = await ended(app, how)
            assert (info.status, info.attempt) == (Status.DEAD, 1), how
            assert info.last_error is not None
            assert info.last_error.endswith(why)


@pytest.mark.parametrize("kind", ["loop", "thread", "object"])
async def test_abort_on_alone_leaves_the_retries_of_other_errors(make: Make, kind: str) -> None:
    app = make("memory://")
    declare(app, kind, abort_on=(Declined, OSError), max_retry=1)
    async with app:
        assert (await ended(app, "not named")).attempt == 2
        assert (await ended(app, "retried")).attempt == 1
        assert (await ended(app, "aborted")).attempt == 1


async def refused_at_start(make: Make, **rules: Any) -> str:
    app = make("memory://")
    app.task("charge", run_in="process", **rules)(child_retry_rules.charge)
    with pytest.raises(ConfigError) as refused:
        await app.start()
    return str(refused.value)


async def test_where_both_name_an_error_it_ends_the_task(make: Make) -> None:
    app = make("memory://")
    declare(app, "loop", retry_on=Exception, abort_on=Expired)
    async with app:
        assert (await ended(app, "aborted, by a subclass")).attempt == 1
        assert (await ended(app, "aborted")).attempt == 4


async def test_no_retry_follows_where_none_is_left_whatever_the_rules_say(make: Make) -> None:
    app = make("memory://")
    declare(app, "loop", retry_on=ConnectionError)
    async with app:
        info = await ended(app, "retried", max_retry=0)
        assert (info.status, info.attempt) == (Status.DEAD, 1)


@pytest.mark.parametrize(("retry_on", "attempts"), [(TimeoutError, 2), (ConnectionError, 1)])
async def test_a_timeout_counts_as_a_timeout_error(make: Make, retry_on: type[Exception], attempts: int) -> None:
    app = make("memory://")

    @app.task(timeout=0.05, max_retry=1, retry_on=retry_on)
    async def charge(how: str) -> None:
        await asyncio.Event().wait()

    async with app:
        assert (await ended(app, "")).attempt == attempts


async def test_a_timeout_of_a_child_process_counts_as_a_timeout_error(make: Make) -> None:
    app = make("memory://")
    declare(app, "process", **RULES)
    async with app:
        info = await ended(app, "timeout", timeout=0.5)
        assert info.attempt == 1
        assert "does not name TimeoutError" in str(info.last_error)


async def test_a_process_that_dies_counts_as_an_executor_error(make: Make) -> None:
    app = make("memory://")
    declare(app, "process", **RULES)
    async with app:
        info = await ended(app, "the process dies")
        assert info.attempt == 1
        assert "does not name ChildDied" in str(info.last_error)


async def test_an_error_of_an_executor_can_be_named(make: Make) -> None:
    class Elsewhere:
        async def run(self, task: Any, entry: Any, context: Any) -> None:
            raise ExecutorError("no machine")

    app = make("memory://")
    app.executors.register("elsewhere", Elsewhere())
    declare(app, "loop", retry_on=ConnectionError, max_retry=1)
    app.registry.unregister("charge")
    declare(app, "loop", abort_on=ExecutorError, max_retry=1, executor="elsewhere")
    async with app:
        assert (await ended(app, "retried")).attempt == 1


async def test_what_a_middleware_makes_of_an_error_counts(make: Make) -> None:
    class Translating(Middleware):
        async def run(self, call: RunCall, next: RunNext) -> Any:
            try:
                return await next(call)
            except Exception as error:
                raise Declined("translated") from error

    app = make("memory://")
    app.use(Translating())
    declare(app, "process", **RULES)
    async with app:
        info = await ended(app, "retried")
        assert (info.attempt, str(info.last_error).partition("\n")[0]) == (1, "Declined: translated")


@pytest.mark.parametrize("verdict", [Abort("no"), Snooze(3600)])
async def test_what_a_handler_raises_on_purpose_means_what_it_says(make: Make, verdict: Exception) -> None:
    app = make("memory://")

    @app.task(retry_on=ConnectionError, abort_on=Exception)
    async def charge() -> None:
        raise verdict

    async with app:
        handle = await charge.submit()
        wanted = Status.DEAD if isinstance(verdict, Abort) else Status.PENDING

        async def done() -> bool:
            info = await handle.info()
            return info.status is wanted and (info.result is not None or info.scheduled_at > datetime.now(UTC))

        await eventually(done)


@pytest.mark.parametrize("kind", KINDS)
class TestARetryFunction:
    async def test_says_when_by_the_error_and_the_number_of_the_retry(self, make: Make, url: str, kind: str) -> None:
        app = make(url)
        declare(app, kind, retry=wait, max_retry=2)
        async with app:
            assert await waiting(app, "busy") == 77
            assert await waiting(app, "not named") == 33  # said as a timedelta
            handle = await app.submit("charge", {"how": "busy"})
            for scheduled in (77, 78):
                await eventually(lambda: is_retrying(app, handle.id), timeout=60)
                info = await handle.info()
                last = info.attempts[-1].finished_at
                assert last is not None
                assert round((info.scheduled_at - last).total_seconds(), 3) == scheduled
                await app.run_now(handle.id)

    async def test_may_say_that_there_is_no_retry(self, make: Make, kind: str) -> None:
        app = make("memory://")
        declare(app, kind, retry=wait, max_retry=2)
        async with app:
            info = await ended(app, "cannot be helped")
            assert info.attempt == 1
            assert str(info.last_error).endswith("as the retry function of its handler says so")

    async def test_that_fails_costs_no_task(self, make: Make, kind: str, caplog: pytest.LogCaptureFixture) -> None:
        app = make("memory://", retry=FixedDelay(55))
        declare(app, kind, retry=wait, max_retry=2)
        told = []
        with caplog.at_level(logging.ERROR):
            async with app:
                for how in ("nonsense", "broken", "exit"):
                    assert await waiting(app, how) == 55, how
                told = [each.getMessage() for each in caplog.records if "Retry rules" in each.getMessage()]
        assert len(told) == 3
        for text, line in zip(("'soon'", "LookupError: no such pipe", "SystemExit: time is up"), told, strict=True):
            assert text in line
            assert "charge" in line

    async def test_yields_to_a_strategy_of_the_submission(self, make: Make, kind: str) -> None:
        app = make("memory://")
        declare(app, kind, retry=wait, max_retry=2)
        async with app:
            assert await waiting(app, "busy", retry=FixedDelay(12)) == 12


async def is_retrying(app: Scheduler, task_id: str) -> bool:
    return (await app.get_task(task_id)).status is Status.RETRYING


async def test_a_retry_function_is_asked_for_a_retry_without_a_time_only(make: Make) -> None:
    app = make("memory://")
    asked: list[tuple[int, str]] = []

    def wait(retry: int, error: BaseException) -> float:
        asked.append((retry, type(error).__name__))
        return 44

    @app.task(retry=wait)
    async def charge(how: str) -> None:
        raise Retry() if how == "when you like" else Retry(11)

    async with app:
        assert await waiting(app, "when you like") == 44
        assert await waiting(app, "at a time") == 11
    assert asked == [(0, "Retry")]


async def test_a_retry_function_is_not_asked_after_the_last_attempt(make: Make) -> None:
    app = make("memory://")
    asked: list[int] = []

    def wait(retry: int, error: BaseException) -> float:
        asked.append(retry)
        return 0.01

    @app.task(retry=wait, max_retry=2)
    async def charge(how: str) -> None:
        raise Busy(1)

    async with app:
        assert (await ended(app, "")).attempt == 3
    assert asked == [0, 1]


async def test_periodic_functions_and_objects_have_rules_too(make: Make, url: str) -> None:
    app = make(url)

    @app.periodic("0 0 1 1 *", max_retry=1, retry_on=ConnectionError)
    async def sweep() -> None:
        raise ValueError("dust")

    @app.periodic("0 0 1 1 *", max_retry=1, retry=lambda retry, error: None)
    async def mop() -> None:
        raise ValueError("water")

    class Polish(PeriodicTask):
        name = "polish"
        spec = "0 0 1 1 *"
        max_retry = 1
        abort_on = (ValueError, KeyError)

        def retry(self, retry: int, error: BaseException) -> float:
            return 0.01

        async def run(self, ctx: TaskContext) -> None:
            raise ValueError("wax")

    app.register(Polish())
    async with app:
        for name in ("sweep", "mop", "polish"):
            task = await app.schedules.trigger(name)
            info = await eventually(partial(dead, app, task))
            assert info.attempt == 1, name


async def dead(app: Scheduler, task_id: str) -> TaskInfo | None:
    info = await app.get_task(task_id)
    return info if info.status is Status.DEAD else None


class TestRefused:
    @pytest.mark.parametrize("option", ["retry_on", "abort_on"])
    @pytest.mark.parametrize(
        "value", ["ConnectionError", ConnectionError("no answer"), (ConnectionError, "x"), 5, int, object(), Retry]
    )
    def test_what_is_no_exception_class(self, option: Any, value: Any) -> None:
        app = Scheduler("memory://")
        with pytest.raises(ConfigError, match=option):
            app.task("charge", **{option: value})
        with pytest.raises(ConfigError, match=option):
            app.registry.register("charge", lambda: None, **{option: value})

    @pytest.mark.parametrize("option", ["retry_on", "abort_on"])
    async def test_rules_with_one_submission_or_schedule(self, make: Make, option: Any) -> None:
        app = make("memory://")
        rules: Any = {option: ConnectionError}

        @app.task
        async def charge() -> None: ...

        async with app:
            for wrong in (
                app.submit("charge", **rules),
                app.call("charge", **rules),
                app.submit_many("charge", [{}], **rules),
                app.submit("charge", cron="* * * * *", **rules),
                app.schedules.put("s", "charge", cron="* * * * *", **rules),
                charge.options(**rules).submit(),
            ):
                with pytest.raises(ConfigError, match=rf"{option} is an option of the handler.*@app\.task\({option}="):
                    await wrong

    async def test_a_function_with_one_submission_or_schedule(self, make: Make) -> None:
        app = make("memory://")
        strategy: Any = {"retry": wait}

        @app.task
        async def charge() -> None: ...

        async with app:
            for wrong in (
                app.submit("charge", **strategy),
                app.call("charge", **strategy),
                app.submit("charge", cron="* * * * *", **strategy),
                app.schedules.put("s", "charge", cron="* * * * *", **strategy),
            ):
                with pytest.raises(ConfigError, match=r"cannot be stored with a task.*@app\.task\(retry="):
                    await wrong

    async def test_a_function_as_the_default_of_a_scheduler(self) -> None:
        strategy: Any = wait
        with pytest.raises(ConfigError, match="retry"):
            Scheduler("memory://", retry=strategy)

    @pytest.mark.parametrize("value", [lambda: 1, lambda retry: 1, lambda a, b, c: 1, ExponentialBackoff, 5])
    def test_what_is_no_retry_function(self, value: Any) -> None:
        with pytest.raises(ConfigError, match="retry"):
            Scheduler("memory://").task("charge", retry=value)

    def test_an_async_retry_function(self) -> None:
        async def wait(retry: int, error: BaseException) -> float:
            return 1.0

        strategy: Any = wait
        with pytest.raises(ConfigError, match="must not be async"):
            Scheduler("memory://").task("charge", retry=strategy)

    def test_rules_beside_a_task_that_is_declared_already(self) -> None:
        app = Scheduler("memory://")

        @app.task
        async def charge() -> None: ...

        with pytest.raises(ConfigError, match=r"retry_on of task 'charge' is said with app\.task"):
            app.periodic("* * * * *", retry_on=ConnectionError)(charge)
        with pytest.raises(ConfigError, match=r"a retry function of task 'charge' is said with app\.task"):
            app.periodic("* * * * *", retry=wait)(charge)

    @pytest.mark.parametrize("rules", [{"retry_on": ConnectionError}, {"retry": wait}])
    def test_rules_for_retries_of_a_periodic_function_that_has_none(self, rules: Any) -> None:
        app = Scheduler("memory://")
        with pytest.raises(ConfigError, match="give max_retry too"):

            @app.periodic("* * * * *", **rules)
            async def sweep() -> None: ...

        @app.periodic("* * * * *", retry_on=ConnectionError, retry=RetryPolicy(2))
        async def mop() -> None: ...

    async def test_rules_that_a_child_process_does_not_know(self, make: Make) -> None:
        for rules in ({"retry_on": ValueError}, {**RULES, "retry": wait}, {"retry": lambda retry, error: 1}):
            assert "child process does not know them" in await refused_at_start(make, **rules)
