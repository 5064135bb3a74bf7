"""Alerts of running schedulers: facts, log lines, observers, webhooks, and a leader that is killed."""

from __future__ import annotations

import asyncio
import json
import logging
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from tests.integration.apps import Child, Make, eventually, store_of
from tests.support.hostile_http import Request, answer, serving
from tickwork import Alert, AlertRule, FixedDelay, Scheduler
from tickwork.cli import commands
from tickwork.model.alerts import MARK, read_book
from tickwork.observe import AlertChanged

pytestmark = pytest.mark.timeout(120)
PATIENCE = 60.0
BACKLOG = AlertRule("backlog", "tasks_pending", 2, ">=", 0.2)
QUICK: dict[str, Any] = {"monitoring": True, "metrics_interval": 0.05, "alert_rules": [BACKLOG]}


async def nothing() -> None:
    """What they would do in an hour."""


async def fill(app: Scheduler, count: int = 2) -> None:
    have = len((await app.list_tasks()).items)
    for number in range(have, count):
        await app.submit("later", id=f"later-{number}", delay=3600)


async def alert(app: Scheduler, name: str, state: str) -> Alert | None:
    found = {each.name: each for each in await app.alerts()}
    return found[name] if name in found and found[name].state == state else None


async def told(app: Scheduler) -> list[tuple[str, str]]:
    return [(event.kind, event.id) for event in await app.events.read(limit=1000) if event.kind.startswith("alert.")]


async def turns(app: Scheduler) -> int:
    return read_book(await (await store_of(app)).marks.get(MARK)).turn


async def test_an_alert_is_told_as_a_fact_and_a_line_and_to_observers(
    make: Make, url: str, caplog: pytest.LogCaptureFixture
) -> None:
    app, seen = make(url, **QUICK), list[AlertChanged]()
    app.observe(seen.append, AlertChanged)
    app.task("later")(nothing)
    caplog.set_level(logging.INFO, "tickwork")
    async with app:
        await fill(app)
        fires = await eventually(lambda: alert(app, "backlog", "firing"), PATIENCE)
        assert (fires.value, fires.metric, fires.operator, fires.threshold) == (2, "tasks_pending", ">=", 2)
        assert (await app.alerts())[0] == fires, "those that fire come first"
        assert {each.name for each in await app.alerts()} > {"backlog", "no_online_workers", "store_nearly_full"}
        await app.cancel("later-0")
        await eventually(lambda: alert(app, "backlog", "ok"), PATIENCE)
        assert await told(app) == [("alert.fired", "backlog"), ("alert.resolved", "backlog")]
        await eventually(lambda: len(seen) == 2, PATIENCE)
    assert [(each.fact, each.id) for each in seen] == [("alert.fired", "backlog"), ("alert.resolved", "backlog")]
    lines = [line for line in caplog.messages if line.startswith("Alert ")]
    assert [line.partition(" detail=")[0] for line in lines] == [
        "Alert fired alert=backlog", "Alert resolved alert=backlog",
    ]  # fmt: skip
    assert "tasks_pending is 2; backlog fires when it is >= 2 for 0.2 s" in lines[0]


async def test_a_webhook_that_asks_for_alerts_is_told_of_them(make: Make, url: str, tmp_path: Path) -> None:
    (tmp_path / "secret").write_bytes(bytes(range(64)))
    bodies: list[dict[str, Any]] = []

    async def respond(request: Request, writer: Any) -> None:
        bodies.append(json.loads(request.body))
        writer.write(answer(b"", "200 OK"))

    async with serving(respond) as server:
        hook = {"name": "pager", "url": f"{server.url}/hook", "events": ["alert.fired"], "retry": FixedDelay(0.01)}
        more = {"webhooks": [hook], "allow_addresses": [server.url], "secret_file": str(tmp_path / "secret")}
        app = make(url, **QUICK, **more)
        app.task("later")(nothing)
        async with app:
            store = await store_of(app)
            await eventually(lambda: store.marks.get("webhook:pager"), PATIENCE)
            await fill(app)
            await eventually(lambda: bodies, PATIENCE)
    assert [(body["type"], body["data"]["id"]) for body in bodies] == [("alert.fired", "backlog")]
    assert bodies[0]["data"]["detail"].startswith("tasks_pending is 2;")


async def test_a_leader_that_is_killed_in_mid_duration_neither_loses_an_alert_nor_repeats_it(
    make: Make, file_url: str
) -> None:
    duration = 3.0
    rule = {"name": "backlog", "metric": "tasks_pending", "operator": ">=", "threshold": 2, "duration": duration}
    options = {"monitoring": True, "metrics_interval": 0.1, "alert_rules": [rule]}
    app = make(file_url, **options)
    await fill(app)
    said = [f"{name}={json.dumps(value)}" for name, value in options.items()]
    with Child("tests.integration.child_node", file_url, *said) as leader:
        await leader.expect("started")
        pending = await eventually(lambda: alert(app, "backlog", "pending"), PATIENCE)
        await leader.kill()
    async with app:
        fires = await eventually(lambda: alert(app, "backlog", "firing"), PATIENCE)
        after = await turns(app)
        await eventually(lambda: later(app, after + 5), PATIENCE)
        assert await told(app) == [("alert.fired", "backlog")]
    assert (fires.since - pending.since).total_seconds() >= duration


async def later(app: Scheduler, turn: int) -> bool:
    return await turns(app) >= turn


async def test_the_command_shows_how_the_rules_stand(
    make: Make, sqlite_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    app = make(sqlite_url, **QUICK)

    async def run(*args: str) -> tuple[int, str]:
        given = ["--store", sqlite_url, "alerts", *args]
        result = await asyncio.to_thread(CliRunner().invoke, commands, given, catch_exceptions=False)
        return result.exit_code, result.stdout

    await fill(app, 1)
    assert await run() == (0, "nobody looks at alert rules; set monitoring=True on the nodes that may lead\n")
    await fill(app)
    async with app:
        await eventually(lambda: alert(app, "backlog", "firing"), PATIENCE)
    status, text = await run()
    assert status == 1
    assert text.splitlines()[1].split()[:2] == ["backlog", "firing"]
    assert "tasks_pending >= 2 for 0.2 s" in text
    status, text = await run("--json")
    assert status == 1
    first = json.loads(text)["alerts"][0]
    assert (first["name"], first["state"], first["value"]) == ("backlog", "firing", 2)


def test_blocking_code_may_ask_as_well(tmp_path: Path) -> None:
    app = Scheduler(f"sqlite:///{tmp_path}/tick.db")
    assert app.sync.alerts() == []
    app.sync.close()


def test_nothing_is_imported_for_alerts_that_are_off() -> None:
    code = """
import asyncio, sys
from tickwork import Scheduler
async def main():
    async with Scheduler("memory://"):
        pass
asyncio.run(main())
print([name for name in sys.modules if name in ("tickwork.monitor.alerts", "tickwork.config.alerts")])
"""
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert shown.stdout == "[]\n"
