"""Django's task framework on Tickwork: every method of its interface."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.core.exceptions import ImproperlyConfigured
from django.db.backends.sqlite3.base import DatabaseWrapper
from django.test import override_settings
from django.utils import timezone

from tests.integration.django_site import configured, settings, tasks
from tests.integration.django_site.configured import finished
from tickwork.contrib.django import TickworkBackend
from tickwork.contrib.django.interface import (
    InvalidTask,
    TaskResultDoesNotExist,
    TaskResultStatus,
    signals,
    task_backends,
)
from tickwork.contrib.django.results import error_of


@pytest.fixture
def backend(url: str) -> Iterator[TickworkBackend]:
    """On an empty store; nothing runs there yet."""
    with configured.tasks_on(url):
        backend = task_backends["default"]
        yield backend
        backend.app.sync.shutdown()


@pytest.fixture
def worker(backend: TickworkBackend) -> TickworkBackend:
    """The same, with a worker in this process."""
    backend.app.sync.start()
    return backend


# --- enqueue


def test_the_backend_supports_all_of_the_interface(backend: TickworkBackend) -> None:
    assert isinstance(backend, TickworkBackend)
    assert backend.supports_defer
    assert backend.supports_async_task
    assert backend.supports_get_result
    assert backend.supports_priority
    assert backend.check() == []


def test_enqueue_gives_a_result_that_waits(backend: TickworkBackend) -> None:
    before = timezone.now() - timedelta(milliseconds=1)  # it is told in milliseconds
    result = tasks.add.enqueue(1, b=2)
    assert result.status == TaskResultStatus.READY
    assert (result.args, result.kwargs) == ([1], {"b": 2})
    assert result.backend == "default"
    assert before <= result.enqueued_at <= timezone.now()
    assert (result.started_at, result.finished_at, result.last_attempted_at) == (None, None, None)
    assert (result.attempts, result.worker_ids, result.errors) == (0, [], [])
    assert not result.is_finished
    with pytest.raises(ValueError, match="not finished"):
        result.return_value  # noqa: B018


def test_it_is_stored_as_one_task_of_its_path(backend: TickworkBackend) -> None:
    result = tasks.add.enqueue(1, b=2)
    stored = backend.app.sync.get_task(result.id)
    assert stored.type == "tests.integration.django_site.tasks.add"
    assert stored.payload == {"args": [1], "kwargs": {"b": 2}}
    assert (stored.queue, stored.priority, stored.max_retry) == ("default", 5, 0)


@pytest.mark.parametrize(("priority", "band"), [(100, 10), (1, 10), (0, 5), (-1, 1), (-100, 1)])
def test_priorities_are_bands(backend: TickworkBackend, priority: int, band: int) -> None:
    result = tasks.add.using(priority=priority).enqueue(1)
    assert backend.app.sync.get_task(result.id).priority == band
    assert backend.get_result(result.id).task.priority == priority


def test_queue_and_time_come_back_as_they_were(backend: TickworkBackend) -> None:
    after = timezone.now() + timedelta(days=1)
    result = tasks.send_mail.using(run_after=after).enqueue("ada")
    again = backend.get_result(result.id)
    assert (again.task.queue_name, again.task.priority, again.task.run_after) == ("mails", 7, after)
    assert again.task.func is tasks.send_mail.func
    assert again.status == TaskResultStatus.READY
    assert str(backend.app.sync.get_task(result.id).status) == "pending"


def test_a_time_without_a_zone_is_local_where_the_project_has_none(backend: TickworkBackend) -> None:
    with override_settings(USE_TZ=False, TIME_ZONE="Europe/Berlin"):
        after = datetime(2031, 7, 1, 12)
        result = tasks.add.using(run_after=after).enqueue(1)
        stored = backend.app.sync.get_task(result.id)
        again = backend.get_result(result.id)
    assert stored.scheduled_at == datetime(2031, 7, 1, 10, tzinfo=UTC)
    assert again.task.run_after == after
    assert again.enqueued_at.tzinfo is None


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"queue_name": "unknown"}, "Queue"),
        ({"priority": 101}, "priority"),
        ({"run_after": datetime(2031, 1, 1)}, "aware"),
    ],
)
def test_what_django_refuses_is_refused(backend: TickworkBackend, change: dict[str, Any], problem: str) -> None:
    with pytest.raises(InvalidTask, match=problem):
        tasks.add.using(**change)


def test_arguments_that_are_no_json_are_refused(backend: TickworkBackend) -> None:
    with pytest.raises(TypeError, match="Unsupported type"):
        tasks.add.enqueue(object())
    assert backend.app.sync.status().tasks == {}


async def test_the_async_side(worker: TickworkBackend) -> None:
    result = await tasks.add.aenqueue(1, b=2)
    assert result.status == TaskResultStatus.READY
    while not result.is_finished:
        await result.arefresh()
    assert result.return_value == 3
    assert (await tasks.add.aget_result(result.id)).return_value == 3
    with pytest.raises(TaskResultDoesNotExist):
        await worker.aget_result("nothing")
    with pytest.raises(TypeError, match="Unsupported type"):
        await tasks.add.aenqueue(object())


def test_enqueueing_from_threads_and_from_short_event_loops(backend: TickworkBackend) -> None:
    def enqueue() -> None:
        tasks.add.enqueue(1)
        asyncio.run(tasks.add.aenqueue(2))

    threads = [threading.Thread(target=enqueue) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert backend.app.sync.status().tasks == {"ready": 8}
    assert {id(task_backends["default"].app)} == {id(backend.app)}


# --- running


@pytest.mark.parametrize("name", ["add", "add_async"])
async def test_a_task_runs(worker: TickworkBackend, name: str) -> None:
    result = await finished(getattr(tasks, name).enqueue(1, b=2))
    assert result.status == TaskResultStatus.SUCCESSFUL
    assert result.return_value == 3
    assert result.worker_ids == [worker.app.id]
    assert result.attempts == 1
    assert result.enqueued_at <= result.started_at <= result.finished_at
    assert result.last_attempted_at == result.started_at
    assert result.errors == []


@pytest.mark.parametrize(
    ("name", "path"), [("fail", "tests.integration.django_site.tasks.Broken"), ("fail_async", "builtins.ValueError")]
)
async def test_a_task_that_fails(worker: TickworkBackend, name: str, path: str) -> None:
    result = await finished(getattr(tasks, name).enqueue("no\nway"))
    assert result.status == TaskResultStatus.FAILED
    (error,) = result.errors
    assert error.exception_class_path == path
    assert error.exception_class in (tasks.Broken, ValueError)
    assert f"in {name}" in error.traceback
    assert "contrib" not in error.traceback
    assert "no\nway" in error.traceback
    assert result.attempts == 1, "a Django task is not retried, unless it says so"
    with pytest.raises(ValueError, match="failed"):
        result.return_value  # noqa: B018


async def test_retries_are_attempts(worker: TickworkBackend) -> None:
    result = await finished(tasks.fail_twice.enqueue())
    broken = "tests.integration.django_site.tasks.Broken"
    assert result.return_value == [3, [broken, broken]]
    assert result.attempts == 3
    assert result.worker_ids == [worker.app.id] * 3
    assert [error.exception_class_path for error in result.errors] == [broken, broken]
    assert result.started_at < result.last_attempted_at


async def test_abort_ends_a_task_at_once(worker: TickworkBackend) -> None:
    result = await finished(tasks.give_up.enqueue())
    (error,) = result.errors
    assert (error.exception_class_path, error.traceback) == ("tickwork.errors.TaskFailed", "it is of no use")


async def test_an_error_that_is_not_worth_a_retry(worker: TickworkBackend) -> None:
    result = await finished(tasks.fail_for_good.enqueue("x"))
    assert (result.status, result.attempts) == (TaskResultStatus.FAILED, 1)
    assert result.errors[0].exception_class is tasks.Broken


async def test_a_task_that_takes_too_long_fails(worker: TickworkBackend) -> None:
    result = await finished(tasks.too_slow.enqueue())
    assert [error.traceback for error in result.errors] == ["timed out after 0.2 s"]
    assert result.errors[0].exception_class.__name__ == "TaskFailed"


def test_a_cancelled_task_has_failed(backend: TickworkBackend) -> None:
    result = tasks.add.enqueue(1)
    backend.app.sync.cancel(result.id)
    result.refresh()
    assert result.status == TaskResultStatus.FAILED
    assert result.attempts == 0
    assert result.errors[0].exception_class.__name__ == "TaskCancelled"


async def test_a_return_value_that_is_no_json_fails_the_task(worker: TickworkBackend) -> None:
    result = await finished(tasks.no_json.enqueue())
    assert result.errors[0].exception_class is TypeError


async def test_the_context_of_a_task(worker: TickworkBackend) -> None:
    result = await finished(tasks.told.enqueue(word="a"))
    assert result.return_value == ["a", result.id, "RUNNING", {"word": "a"}, 1, 1]
    result = await finished(tasks.told_async.enqueue("b"))
    assert result.return_value == ["b", result.id, 1]


async def test_sync_tasks_run_in_threads(worker: TickworkBackend) -> None:
    assert (await finished(tasks.where.enqueue())).return_value == [os.getpid(), False]


@pytest.mark.parametrize("name", ["add", "fail", "add_async", "fail_async", "fail_twice", "fail_for_good"])
async def test_signals_tell_of_a_task(worker: TickworkBackend, name: str) -> None:
    told: list[tuple[str, str]] = []

    def tell(word: str) -> Callable[..., None]:
        def receive(sender: type, task_result: Any, **_: Any) -> None:
            assert sender is TickworkBackend
            told.append((word, str(task_result.status)))

        return receive

    receivers = {signal: tell(signal) for signal in ("task_enqueued", "task_started", "task_finished")}
    for signal, receiver in receivers.items():
        getattr(signals, signal).connect(receiver)
    try:
        arguments = {"add": [1], "add_async": [1], "fail_twice": []}.get(name, ["x"])
        await finished(getattr(tasks, name).enqueue(*arguments))
    finally:
        for signal, receiver in receivers.items():
            getattr(signals, signal).disconnect(receiver)
    end = "FAILED" if name in ("fail", "fail_async", "fail_for_good") else "SUCCESSFUL"
    runs = 3 if name == "fail_twice" else 1
    assert told.count(("task_enqueued", "READY")) == 1
    told.remove(("task_enqueued", "READY"))  # a worker may have been quicker
    assert told == [*[("task_started", "RUNNING")] * runs, ("task_finished", end)]


@pytest.mark.parametrize("name", ["query", "query_async"])
async def test_connections_to_the_database_are_closed_after_each_task(
    worker: TickworkBackend, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """CONN_MAX_AGE is 0 by default: no connection outlives the task, as none outlives a request."""
    closed: list[int] = []
    close = DatabaseWrapper.close

    def noted(self: DatabaseWrapper) -> None:
        closed.append(id(self.connection))
        close(self)

    monkeypatch.setattr(DatabaseWrapper, "close", noted)
    result = await finished(getattr(tasks, name).enqueue())
    assert result.return_value in closed


# --- results


async def test_the_result_that_enqueue_gives_is_the_one_that_is_read(backend: TickworkBackend) -> None:
    result = tasks.add.enqueue(1, b=2)
    assert tasks.add.get_result(result.id) == result
    assert await tasks.add.aget_result(result.id) == result
    result = await tasks.send_mail.using(priority=-3, run_after=timezone.now() + timedelta(days=1)).aenqueue("ada")
    assert backend.get_result(result.id) == result


def test_a_result_of_nothing(backend: TickworkBackend) -> None:
    for unknown in ("nothing", "no name at all", "ü"):
        with pytest.raises(TaskResultDoesNotExist):
            backend.get_result(unknown)


def test_the_result_of_another_task_is_not_taken_for_ours(backend: TickworkBackend) -> None:
    result = tasks.add.enqueue(1)
    with pytest.raises(Exception, match="does not match"):
        tasks.fail.get_result(result.id)


@pytest.mark.parametrize(
    ("type", "payload", "problem"),
    [
        ("mail", {"to": "ada"}, "no Django task"),
        ("os.path.join", {"args": [], "kwargs": {}}, "no Django task"),
        ("gone.for.good", {"args": [], "kwargs": {}}, "not there any more"),
    ],
)
def test_a_task_that_is_not_djangos(sqlite_url: str, type: str, payload: dict[str, Any], problem: str) -> None:
    with configured.tasks_on(sqlite_url):
        backend = task_backends["default"]
        handle = backend.app.sync.submit(type, payload)
        with pytest.raises(TaskResultDoesNotExist, match=problem):
            backend.get_result(handle.id)


@pytest.mark.parametrize(
    ("text", "path", "trace"),
    [
        ("timed out after 5 s", "tickwork.errors.TaskFailed", "timed out after 5 s"),
        ("KeyError: 'a'\n\nTraceback\nKeyError: 'a'", "builtins.KeyError", "Traceback\nKeyError: 'a'"),
        ("Mine\n\nTraceback\nshop.errors.Mine", "shop.errors.Mine", "Traceback\nshop.errors.Mine"),
        ("Mine: x\n\nTraceback\nMine: x", "__main__.Mine", "Traceback\nMine: x"),
        (
            "Mine: x\n\nTraceback\na.Mine: x\n\nDuring handling\n\nTraceback\nb.Mine: x\na note",
            "b.Mine", "Traceback\na.Mine: x\n\nDuring handling\n\nTraceback\nb.Mine: x\na note",
        ),
    ],
)  # fmt: skip
def test_a_stored_error_names_its_class(text: str, path: str, trace: str) -> None:
    error = error_of(text)
    assert (error.exception_class_path, error.traceback) == (path, trace)


# --- settings


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"store": "nonsense://"}, "nonsense"),
        ({"store": "memory://", "concurency": 5}, "did you mean 'concurrency'"),
        ({"store": "memory://", "timeout": "soon"}, "timeout"),
    ],
)
def test_wrong_options_are_told_by_check(options: dict[str, Any], problem: str) -> None:
    backend = {**settings.TASKS["default"], "OPTIONS": options}
    with override_settings(TASKS={"default": backend}):
        (error,) = task_backends["default"].check()
        assert (error.id, problem in error.msg, "TASKS['default']" in error.msg) == ("tickwork.E001", True, True)
        with pytest.raises(ImproperlyConfigured, match=problem):
            tasks.add.enqueue(1)


def test_a_store_must_be_named() -> None:
    with override_settings(TASKS={"default": {**settings.TASKS["default"], "OPTIONS": {}}}):
        (error,) = task_backends["default"].check()
        assert "names no store" in error.msg


def test_a_queue_that_cannot_be_one() -> None:
    backend = {**settings.TASKS["default"], "QUEUES": ["two words"]}
    with override_settings(TASKS={"default": backend}):
        assert "tickwork.E002" in {problem.id for problem in task_backends["default"].check()}


def test_nothing_imports_django_by_itself() -> None:
    code = "import sys, tickwork.scheduler, tickwork.testing, tickwork.cli.run; print('django' in sys.modules)"
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert shown.stdout.strip() == "False"
