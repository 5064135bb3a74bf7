"""Following a task: `handle.follow()` and `tickwork task ID --follow`."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from tests.integration.apps import FAST
from tickwork import Scheduler, Status, StoreUnavailable, TaskContext, TaskNotFound, TaskUpdate
from tickwork.cli import commands
from tickwork.client import following
from tickwork.client.following import lines_since

PATIENCE = 60.0


class Steps:
    """An application with a handler that goes on when the test says so."""

    def __init__(self, url: str) -> None:
        self.app = Scheduler(url, **{**FAST, "timeout": 0})
        self.steps: asyncio.Queue[str] = asyncio.Queue()
        self.app.task("walk", max_retry=1)(self._walk)

    async def _walk(self, ctx: TaskContext) -> None:
        while step := await self.steps.get():
            if step == "fail":
                raise ValueError("stumbled")
            if step == "half":
                ctx.progress(0.5, "half way")
            else:
                ctx.logger.info(step)

    def go(self, *steps: str) -> None:
        for step in steps:
            self.steps.put_nowait(step)


@asynccontextmanager
async def walking(url: str) -> AsyncIterator[Steps]:
    steps = Steps(url)
    async with steps.app:
        yield steps
        await steps.app.shutdown(timeout=0.2)


def texts(updates: list[TaskUpdate]) -> list[str]:
    """The lines without their times."""
    return [line.split(" ", 1)[1] for update in updates for line in update.lines]


async def collect(updates: Any, until: str | None = None) -> list[TaskUpdate]:
    """Updates up to the one with a line that ends so, or to the last one."""
    found: list[TaskUpdate] = []
    async with asyncio.timeout(PATIENCE):
        async for update in updates:
            found.append(update)
            if until is not None and any(line.endswith(until) for line in update.lines):
                break
    return found


class TestHandle:
    async def test_lines_come_while_the_task_runs_and_the_end_ends_it(self, url: str) -> None:
        async with walking(url) as steps:
            handle = await steps.app.submit("walk")
            async with aclosing(handle.follow()) as updates:
                steps.go("left")
                first = await collect(updates, "left")
                assert (await handle.info()).status is Status.RUNNING
                steps.go("right", "half", "last", "")
                rest = await collect(updates)
        assert texts([*first, *rest]) == ["INFO left", "INFO right", "INFO last"]
        assert [update.status for update in rest][-1] is Status.SUCCESS
        assert (rest[-1].id, rest[-1].progress, rest[-1].progress_note) == (handle.id, 0.5, "half way")

    async def test_a_retry_is_followed_too(self, url: str) -> None:
        async with walking(url) as steps:
            handle = await steps.app.submit("walk")
            steps.go("one", "fail", "two", "")
            found = await collect(handle.follow())
        assert texts(found) == ["INFO one", "INFO two"]
        assert (found[-1].status, found[-1].attempt) == (Status.SUCCESS, 2)

    async def test_what_has_ended_is_told_at_once(self, url: str) -> None:
        async with walking(url) as steps:
            handle = await steps.app.submit("walk")
            steps.go("one", "")
            await handle.result(PATIENCE)
            (only,) = await collect(handle.follow())
        assert (only.status, texts([only])) == (Status.SUCCESS, ["INFO one"])

    async def test_two_may_follow_and_one_may_stop(self, url: str) -> None:
        async with walking(url) as steps:
            handle = await steps.app.submit("walk")
            steps.go("one")
            first, second = handle.follow(), handle.follow()
            await collect(first, "one")
            await collect(second, "one")
            await first.aclose()
            steps.go("two", "")
            assert texts(await collect(second)) == ["INFO two"]

    async def test_a_task_that_is_not_there(self, url: str) -> None:
        app = Scheduler(url)
        with pytest.raises(TaskNotFound):
            await anext(app.handle("nobody").follow())
        await app.shutdown()

    async def test_a_schedule_cannot_be_followed(self) -> None:
        app = Scheduler("memory://")
        app.task("walk")(lambda: None)
        async with app:
            handle = await app.submit("walk", cron="0 0 1 1 *")
            with pytest.raises(TypeError, match="is a schedule and has no log of its own"):
                handle.follow()

    async def test_an_outage_is_waited_out(self, monkeypatch: pytest.MonkeyPatch) -> None:
        looks, look = 0, following._look

        async def look_or_fail(*args: Any) -> Any:
            nonlocal looks
            looks += 1
            if looks == 2:
                raise StoreUnavailable("gone for a moment")
            return await look(*args)

        monkeypatch.setattr(following, "_look", look_or_fail)
        monkeypatch.setattr(following, "OUTAGE", 0.01)
        app = Scheduler("memory://")
        app.task("walk")(lambda: None)
        handle = await app.submit("walk", delay=3600)
        async with aclosing(handle.follow()) as updates:
            assert (await anext(updates)).status is Status.PENDING
            await app.cancel(handle.id)
            (last,) = await collect(updates)
        assert (last.status, looks) == (Status.CANCELLED, 3)
        await app.shutdown()


class TestLines:
    @pytest.mark.parametrize(
        ("before", "now", "new", "missed"),
        [
            ("", "", "", False),
            ("", "ab", "ab", False),
            ("ab", "ab", "", False),
            ("ab", "abc", "c", False),
            ("abc", "cde", "de", False),
            ("abc", "bcd", "d", False),
            ("abc", "def", "def", True),
            ("aab", "aba", "a", False),
        ],
    )
    def test_lines_since(self, before: str, now: str, new: str, missed: bool) -> None:
        assert lines_since(list(before), list(now)) == (tuple(new), missed)

    async def test_more_lines_than_are_kept_are_told_as_missed(self) -> None:
        async with walking("memory://") as steps:
            handle = await steps.app.submit("walk")
            async with aclosing(handle.follow()) as updates:
                steps.go("first")
                await collect(updates, "first")
                steps.go(*(f"line {number}" for number in range(300)), "")
                found = await collect(updates)
        assert any(update.missed for update in found)
        assert texts(found)[-1] == "INFO line 299"


async def start(*args: str, folder: Path) -> asyncio.subprocess.Process:
    """`tickwork` as a process of its own."""
    return await asyncio.create_subprocess_exec(
        sys.executable, "-c", "from tickwork.cli import main; main()", *args, cwd=folder,
        env={**os.environ, "PYTHONUNBUFFERED": "1"}, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip


async def read_until(process: asyncio.subprocess.Process, text: str) -> str:
    assert process.stdout is not None
    said = ""
    async with asyncio.timeout(PATIENCE):
        while text not in said:
            line = (await process.stdout.readline()).decode()
            assert line, f"it ended before {text!r}: {said}"
            said += line
    return said


class TestCommand:
    async def test_it_shows_lines_as_they_come_and_ends_with_the_task(self, file_url: str, tmp_path: Path) -> None:
        async with walking(file_url) as steps:
            handle = await steps.app.submit("walk")
            follower = await start("task", handle.id, "--follow", "--store", file_url, folder=tmp_path)
            steps.go("left")
            said = await read_until(follower, "INFO left")
            steps.go("half", "right", "")
            out, err = await asyncio.wait_for(follower.communicate(), PATIENCE)
        said += out.decode()
        assert follower.returncode == 0, err
        assert said.index("running, attempt 1") < said.index("INFO left") < said.index("INFO right")
        assert "50% half way" in said
        assert said.splitlines()[-1].endswith("success, attempt 1")

    async def test_a_task_that_fails_has_status_1_and_json_has_a_line_for_each_update(
        self, sqlite_url: str, tmp_path: Path
    ) -> None:
        async with walking(sqlite_url) as steps:
            handle = await steps.app.submit("walk", max_retry=0)
            steps.go("left", "fail")
            follower = await start("task", handle.id, "-f", "--json", "--store", sqlite_url, folder=tmp_path)
            out, err = await asyncio.wait_for(follower.communicate(), PATIENCE)
        assert (follower.returncode, err) == (1, b"")
        found = [json.loads(line) for line in out.splitlines()]
        assert found[-1]["status"] == "dead"
        assert [line.split(" ", 1)[1] for update in found for line in update["lines"]] == ["INFO left"]

    async def test_ctrl_c_ends_it_without_noise(self, sqlite_url: str, tmp_path: Path) -> None:
        app = Scheduler(sqlite_url)
        await app.submit("walk", id="one", delay=3600)
        await app.shutdown()
        follower = await start("task", "one", "--follow", "--store", sqlite_url, folder=tmp_path)
        await read_until(follower, "pending")
        follower.send_signal(signal.SIGINT)
        _, err = await asyncio.wait_for(follower.communicate(), PATIENCE)
        assert (follower.returncode, err) == (0, b"")

    async def test_a_line_cannot_steer_the_terminal(self, sqlite_url: str) -> None:
        async with walking(sqlite_url) as steps:
            handle = await steps.app.submit("walk")
            steps.go("\x1b[2Jgone", "")
            await handle.result(PATIENCE)
        args = ["task", handle.id, "--follow", "--store", sqlite_url]
        shown = await asyncio.to_thread(CliRunner().invoke, commands, args)
        assert (shown.exit_code, "\x1b" in shown.stdout, "gone" in shown.stdout) == (0, False, True)
