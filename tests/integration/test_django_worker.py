"""`python manage.py tickwork_worker`: a process of its own that runs the Django tasks of a project."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from django.core.management import CommandError, call_command
from django.test import override_settings

from tests.integration.apps import ROOT
from tests.integration.django_site import configured, more, settings, tasks
from tests.integration.django_site.configured import finished, tasks_on
from tickwork.contrib.django.interface import TaskResultStatus, task_backends


class Worker:
    """`manage.py tickwork_worker`, and what it says."""

    def __init__(self, url: str, *arguments: str) -> None:
        environ = {**os.environ, "SITE_STORE": url, "PYTHONPATH": str(ROOT), "PYTHONUNBUFFERED": "1"}
        self.process = subprocess.Popen(
            [sys.executable, "-W", "error", str(configured.MANAGE), "tickwork_worker", *arguments],
            cwd=ROOT, env=environ, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        )  # fmt: skip
        self.said: list[str] = []

    def wait_for(self, word: str) -> None:
        assert self.process.stdout is not None
        for line in iter(self.process.stdout.readline, ""):
            self.said.append(line)
            if word in line:
                return
        raise AssertionError(f"it ended without saying {word!r}:\n{''.join(self.said)}")

    def end(self) -> int:
        """By SIGTERM, as a supervisor would."""
        self.process.terminate()
        assert self.process.stdout is not None
        self.said += self.process.stdout.readlines()
        return self.process.wait(60)

    def __enter__(self) -> Worker:
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        assert self.process.stdout is not None
        self.process.stdout.close()


async def test_a_worker_of_the_project_runs_its_tasks(file_url: str) -> None:
    with tasks_on(file_url), Worker(file_url) as worker:
        results = [
            tasks.add.enqueue(1), tasks.add_async.enqueue(2), tasks.send_mail.enqueue("ada"), more.hidden.enqueue(),
            tasks.query.enqueue(), tasks.query_async.enqueue(),
        ]  # fmt: skip
        for result in results:
            await finished(result)
        where = await finished(tasks.where.enqueue())
        assert worker.end() == 0
        task_backends["default"].app.sync.close()
    assert [result.return_value for result in results[:4]] == [2, 3, "sent to ada", "found"]
    assert [result.status for result in results[4:]] == [TaskResultStatus.SUCCESSFUL] * 2
    assert where.return_value[0] == worker.process.pid
    said = "".join(worker.said)
    assert "Traceback" not in said
    assert "queues: default, mails" in said
    assert "Task scheduler stopped" in said


async def test_a_worker_ends_what_runs_before_it_stops(file_url: str) -> None:
    with tasks_on(file_url), Worker(file_url) as worker:
        result = tasks.slow.enqueue(1.0)
        worker.wait_for("slow has begun")
        assert worker.end() == 0
        result.refresh()
        assert result.return_value == "done"
        task_backends["default"].app.sync.close()


async def test_a_worker_of_one_queue(file_url: str) -> None:
    with tasks_on(file_url), Worker(file_url, "--queues", "mails", "--concurrency", "2") as worker:
        left = tasks.add.enqueue(1)
        await finished(tasks.send_mail.enqueue("ada"))
        (member,) = task_backends["default"].app.sync.list_workers()
        assert (member.queues, member.capacity) == (("mails",), 2)
        assert worker.end() == 0
        left.refresh()
        assert left.status == TaskResultStatus.READY
        task_backends["default"].app.sync.close()


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["--backend", "other"], "TASKS has no backend 'other'; it has default, immediate"),
        (["--backend", "immediate"], "not a TickworkBackend"),
        (["--concurrency", "0"], "concurrency"),
        (["--queues", "two words"], "two words"),
    ],
)
def test_a_worker_that_cannot_be(arguments: list[str], problem: str) -> None:
    with override_settings(TASKS=settings.TASKS), pytest.raises(CommandError, match=problem):
        call_command("tickwork_worker", *arguments)
