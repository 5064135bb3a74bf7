"""Commands on all tasks that a filter matches: what they ask, say and refuse, and that they can be interrupted."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.integration.test_cli import data, good, own_folder, run, status_of, until
from tickwork.cli import bulk

__all__ = ["own_folder"]

# A program that takes its time: one task a page, a pause with each.
SLOW = """
import asyncio, sys
from tickwork.cli import commands
from tickwork.client import bulk, steering

bulk.PAGE, honest = 1, steering.cancel

async def slow(*args):
    await asyncio.sleep(0.3)
    return await honest(*args)

steering.cancel = slow
commands(sys.argv[1:])
"""


def submit(count: int, name: str = "t", *options: str) -> list[str]:
    ids = [f"{name}{n}" for n in range(count)]
    for each in ids:
        good("submit", "add", "--delay", "1h", "--id", each, *options)
    return ids


def test_a_filter_stands_in_the_place_of_ids() -> None:
    tagged, plain = submit(3, "tagged", "--tag", "batch=7"), submit(2)
    assert good("cancel", "--tag", "batch=7", "--yes") == "3 tasks cancelled\n"
    assert {status_of(each) for each in tagged} == {"cancelled"}
    assert good("run-now", "--type", "add", "--status", "pending", "--yes") == "2 tasks sent to run\n"
    assert {status_of(each) for each in plain} == {"ready"}
    assert data("retry", "--status", "cancelled", "--yes")["done"] == 3
    assert good("cancel", "--all", "--yes") == "5 tasks cancelled\n"
    assert good("delete", "--older-than", "1d", "--yes") == "0 tasks deleted\n"
    assert good("delete", "--queue", "default", "--older-than", "0s", "--yes") == "5 tasks deleted\n"
    assert data("tasks")["tasks"] == []


def test_a_dry_run_only_counts() -> None:
    submit(2)
    assert good("cancel", "--type", "add", "--dry-run") == "2 tasks would be cancelled\n"
    assert data("cancel", "--type", "add", "--dry-run") == {
        "matched": 2, "done": 2, "refused": {}, "brought_back": 0, "dry_run": True, "interrupted": False,
    }  # fmt: skip
    assert {task["status"] for task in data("tasks")["tasks"]} == {"pending"}


def test_the_question_says_how_many(monkeypatch: pytest.MonkeyPatch) -> None:
    submit(2)
    monkeypatch.setattr(bulk, "somebody_answers", lambda: True)
    refused = run("cancel", "--type", "add", input="n\n")
    assert (refused.exit_code, "Cancel 2 tasks?" in refused.stderr) == (1, True)
    assert {task["status"] for task in data("tasks")["tasks"]} == {"pending"}
    assert run("cancel", "--type", "add", "--json", input="y\n").exit_code == 2, "a program is not asked"
    assert "2 tasks cancelled" in good("cancel", "--type", "add", input="y\n")
    assert good("cancel", "--type", "add") == "0 tasks cancelled\n", "nothing to ask about"


def test_without_a_terminal_yes_has_to_be_said() -> None:
    (task,) = submit(1)
    refused = run("cancel", "--type", "add", input="y\n")
    assert (refused.exit_code, "Cancel 1 task? Nobody can be asked here: --yes" in refused.stderr) == (2, True)
    assert status_of(task) == "pending"


@pytest.mark.parametrize(
    ("words", "why"),
    [
        ((), "name tasks by their ids, or by a filter"),
        (("it", "--type", "add"), "by their ids or by a filter, not by both"),
        (("it", "--dry-run"), "--dry-run is for a filter"),
        (("--all", "--type", "add"), "--all means every task"),
        (("--status", "success", "--yes"), "cancel is for tasks that are blocked"),
        (("--status", "running", "--yes"), "by force only: give force=True (--force)"),
        (("--older-than", "soon"), "soon"),
    ],
)
def test_what_cannot_be_meant_is_a_mistake(words: tuple[str, ...], why: str) -> None:
    submit(1)
    refused = run("cancel", *words)
    assert (refused.exit_code, why in refused.stderr) == (2, True), refused.stderr


def test_what_was_left_alone_is_told_with_the_reason() -> None:
    good("submit", "add", "--id", "up")
    good("submit", "add", "--id", "down", "--depends-on", "up")
    good("cancel", "down", "up")
    good("delete", "up")
    refused = run("retry", "--status", "cancelled", "--yes")
    assert (refused.exit_code, refused.stdout) == (1, "0 tasks sent to run\n")
    assert "1 task left alone (upstream), down: task down depends on task up, which is gone" in refused.stderr


def test_dead_letters_go_by_the_same_filters() -> None:
    submit(1)
    assert good("dlq", "clear", "--older-than", "1h", "--yes") == "0 dead letters deleted\n"
    assert data("dlq", "retry-all", "--queue", "other", "--dry-run")["matched"] == 0


def test_an_interrupt_says_how_far_it_came(own_folder: Path) -> None:
    ids = submit(30)
    command = ["cancel", "--type", "add", "--yes", "--json"]
    with (own_folder / "out").open("w") as out, (own_folder / "err").open("w") as err:
        process = subprocess.Popen(
            [sys.executable, "-c", SLOW, *command], stdout=out, stderr=err, env={**os.environ, "PYTHONUNBUFFERED": "1"}
        )
    some = re.compile(r"^[1-9]\d* tasks cancelled so far", re.MULTILINE)
    until(lambda: some.search((own_folder / "err").read_text()), "word on how far it is")
    process.send_signal(signal.SIGINT)
    assert process.wait(30) == 1
    told = json.loads((own_folder / "out").read_text())
    assert told["interrupted"] is True
    assert 1 <= told["done"] < len(ids)
    assert "interrupted: the same command goes on with the rest" in (own_folder / "err").read_text()
    left = sum(status_of(each) == "pending" for each in ids)
    assert len(ids) - told["done"] - 1 <= left <= len(ids) - told["done"]
    assert good("cancel", "--type", "add", "--yes") == f"{left} task{'s' if left > 1 else ''} cancelled\n"
