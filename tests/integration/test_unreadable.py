"""A task that this version cannot read ends as a dead letter: nodes live on, others run, and people are told."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from tests.integration.apps import Make, eventually, status_of
from tests.support.damage import EVERY_DAMAGE, Damage, RedisDamage, SqliteDamage
from tests.support.redis_store import empty_redis
from tickwork import NotRetryable, ResultError, Scheduler, Status, StoreError, TaskFailed
from tickwork.cli import commands
from tickwork.model.tasks import CANNOT_READ
from tickwork.testing import wait_for

NAMESPACE = "scheduler"
EACH = [("sqlite", "a newer retry strategy"), ("redis", "a newer retry strategy"), ("redis", "cut in the label")]


def url_and_damage(store: str, folder: Path) -> tuple[str, Damage]:
    if store == "redis":
        return empty_redis(), RedisDamage(NAMESPACE)
    return f"sqlite:///{folder}/tick.db", SqliteDamage(f"{folder}/tick.db", NAMESPACE)


async def submit_with_one_bad(url: str, damage: Damage, kind: str) -> None:
    client = Scheduler(url)
    for number, task_id in enumerate(("g0", "g1", "bad", "g2", "g3")):
        await client.submit("work", number, id=task_id)
    await client.close()
    damage.task("bad", kind)


@pytest.mark.parametrize(("store", "kind"), EVERY_DAMAGE, ids=str)
async def test_a_node_lives_on(make: Make, tmp_path: Path, store: str, kind: str) -> None:
    url, damage = url_and_damage(store, tmp_path)
    await submit_with_one_bad(url, damage, kind)
    app = make(url)

    @app.task
    async def work(number: int) -> int:
        return number

    async with app:
        dead = await wait_for(app, "bad", "dead")
        assert dead.last_error is not None
        assert dead.last_error.startswith(f"{CANNOT_READ}: ")
        for number, task_id in enumerate(("g0", "g1", "g2", "g3")):
            assert await app.handle(task_id).result(10) == (number if number < 2 else number + 1)
        assert await (await work.submit(7)).result(10) == 7
        assert app.exhausted is False
        with pytest.raises(TaskFailed, match=CANNOT_READ):
            await app.handle("bad").result(5)
    assert [task.id for task in await app.dlq.list()] == ["bad"]
    assert ((await app.dlq.get("bad")).last_error or "").startswith(f"{CANNOT_READ}: ")
    assert {task.id for task in await app.list_tasks()} >= {"bad", "g0", "g1", "g2", "g3"}
    assert [(await app.get_task(task_id)).losses for task_id in ("bad", "g0", "g1", "g2", "g3")] == [0] * 5
    assert CANNOT_READ in (await app.explain("bad")).text
    await app.dlq.remove("bad")
    assert (await app.dlq.list()).items == []


@pytest.mark.parametrize(("store", "kind"), EACH, ids=str)
async def test_the_command_line_shows_it(tmp_path: Path, store: str, kind: str) -> None:
    url, damage = url_and_damage(store, tmp_path)
    await submit_with_one_bad(url, damage, kind)

    async def tickwork(*args: str) -> Any:
        return await asyncio.to_thread(CliRunner().invoke, commands, ["--store", url, *args])

    listed = await tickwork("tasks", "--json")
    tasks = {task["id"]: task for task in json.loads(listed.stdout)["tasks"]}
    assert tasks.keys() == {"bad", "g0", "g1", "g2", "g3"}
    assert tasks["bad"]["last_error"].startswith(CANNOT_READ)
    for command in (("tasks",), ("task", "bad"), ("task", "bad", "--json"), ("events",), ("stats",), ("dlq",)):
        shown = await tickwork(*command)
        assert shown.exit_code == 0, shown.output
    assert CANNOT_READ in (await tickwork("task", "bad")).stdout
    sick = await tickwork("doctor")
    assert sick.exit_code == 1
    assert f"problem  task bad: {CANNOT_READ}: " in sick.stdout
    assert "tickwork delete ID" in sick.stdout
    app = Scheduler(url)

    @app.task
    async def work(number: int) -> None: ...

    async with app:
        await wait_for(app, "bad", "dead")
    assert "bad" in (await tickwork("dlq", "list")).stdout
    assert (await tickwork("doctor", "--mend")).exit_code == 1
    assert (await tickwork("delete", "bad")).exit_code == 0
    assert CANNOT_READ not in (await tickwork("doctor")).stdout


@pytest.mark.parametrize(("store", "kind"), EACH, ids=str)
async def test_all_dead_letters_are_sent_round_again(make: Make, tmp_path: Path, store: str, kind: str) -> None:
    url, damage = url_and_damage(store, tmp_path)
    await submit_with_one_bad(url, damage, kind)
    app = make(url, max_retry=0)

    @app.task
    async def work(number: int) -> None:
        raise ValueError("boom")

    async with app:
        for task_id in ("bad", "g0", "g1", "g2", "g3"):
            await wait_for(app, task_id, "dead")
        if kind == "cut in the label":
            with pytest.raises(
                NotRetryable, match="task bad is damaged, and nothing is left of it that could run: delete"
            ):
                await app.dlq.retry("bad")
            assert await app.dlq.retry_all() == 4
        else:
            await app.dlq.retry("bad")
            await wait_for(app, "bad", "dead")
        await eventually(lambda: all_dead(app))
    assert await app.dlq.clear() == 5


async def all_dead(app: Scheduler) -> bool:
    return (await app.status()).tasks == {"dead": 5}


async def test_a_success_that_cannot_be_read_any_more(make: Make, tmp_path: Path) -> None:
    for store in ("sqlite", "redis"):
        url, damage = url_and_damage(store, tmp_path)
        app = make(url)

        @app.task
        async def work(number: int) -> int:
            return number

        async with app:
            handle = await app.submit("work", 1, id="bad")
            await handle.result(10)
        damage.task("bad", "no msgpack")
        late = make(url)
        with pytest.raises(ResultError, match=f"task bad has ended, but {CANNOT_READ}"):
            await late.handle("bad").result(5)
        assert await status_of(late, "bad") is Status.SUCCESS
        await late.delete("bad")


@pytest.mark.parametrize("store", ["sqlite", "redis"])
async def test_a_schedule_that_cannot_be_read_does_not_keep_others_from_firing(
    make: Make, tmp_path: Path, store: str
) -> None:
    url, damage = url_and_damage(store, tmp_path)
    client = make(url)
    await client.schedules.put("bad", "tick", cron="* * * * * *")
    damage.schedule("bad")
    app, ran = make(url), asyncio.Event()

    @app.task
    async def tick() -> None:
        ran.set()

    await app.schedules.put("good", "tick", cron="* * * * * *")
    async with app:
        await asyncio.wait_for(ran.wait(), 10)
        bad, good = await app.schedules.list()
        assert (bad.id, bad.enabled, good.id, good.enabled) == ("bad", False, "good", True)
        assert bad.stopped.startswith(f"{CANNOT_READ}: ")
        assert await app.schedules.get("bad") == bad
        for steer in (app.schedules.pause, app.schedules.resume, app.schedules.trigger):
            with pytest.raises(StoreError, match=f"schedule bad: {CANNOT_READ}.*; delete it, or put it anew"):
                await steer("bad")
    shown = await asyncio.to_thread(CliRunner().invoke, commands, ["--store", url, "doctor"])
    assert f"schedule bad: {CANNOT_READ}" in shown.stdout
    await app.schedules.delete("bad")
    assert [schedule.id for schedule in await app.schedules.list()] == ["good"]


NEWER_CLIENT = """
import asyncio, sys
from tickwork import Scheduler

async def main():
    value = 1
    for _ in range(int(sys.argv[2])):
        value = [value]
    client = Scheduler(sys.argv[1])
    try:
        await client.submit("work", 1, id="deep", context={"x": value})
        print("accepted")
    except Exception as error:
        print(type(error).__name__, error)

asyncio.run(main())
"""


@pytest.mark.parametrize("depth", [900, 3000, 9000])
def test_clients_of_every_python_refuse_what_is_too_deep(tmp_path: Path, depth: int) -> None:
    """Each Python has a recursion limit of its own; a raised one changes nothing, either."""
    for limit in (1000, 100_000):
        program = f"import sys\nsys.setrecursionlimit({limit})\n{NEWER_CLIENT}"
        said = subprocess.run(
            [sys.executable, "-c", program, f"sqlite:///{tmp_path}/a.db", str(depth)],
            capture_output=True,
            text=True,
            timeout=60,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        )
        assert "it is nested more than 64 levels deep" in said.stdout, said.stderr


async def test_facts_that_cannot_be_read_are_shown_as_such(make: Make, tmp_path: Path) -> None:
    url, damage = url_and_damage("sqlite", tmp_path)
    assert isinstance(damage, SqliteDamage)
    app = make(url)
    await app.submit("work", 1, id="it")
    damage.run('UPDATE "@events" SET facts = ?', b"\xc1")
    await app.submit("work", 2)
    assert [event.kind for event in await app.events.read()] == ["log.unreadable", "task.submitted"]
    following = app.events.subscribe(after=0)
    assert (await anext(following)).kind == "log.unreadable"
    assert (await anext(following)).kind == "task.submitted"
    for command in (("events",), ("events", "--json"), ("task", "it"), ("doctor",)):
        shown = await asyncio.to_thread(CliRunner().invoke, commands, ["--store", url, *command])
        assert shown.exception is None or isinstance(shown.exception, SystemExit), shown.output
    assert (
        "log.unreadable" in (await asyncio.to_thread(CliRunner().invoke, commands, ["--store", url, "events"])).stdout
    )


async def test_a_fact_of_a_kind_that_only_a_newer_version_knows(make: Make, tmp_path: Path) -> None:
    url, damage = url_and_damage("sqlite", tmp_path)
    assert isinstance(damage, SqliteDamage)
    app = make(url)
    await app.submit("work", 1, id="it")
    ((facts,),) = damage.run('SELECT facts FROM "@events"')
    damage.run('UPDATE "@events" SET facts = ?', facts.replace(b"task.submitted", b"task.dreamt_of"))
    for command in (("events",), ("task", "it")):
        shown = await asyncio.to_thread(CliRunner().invoke, commands, ["--store", url, *command])
        assert shown.exit_code == 0, shown.output
        assert "task.dreamt_of" in shown.stdout
