"""Silences of running schedulers: observers, log lines and webhooks hear nothing until they end; and the commands."""

from __future__ import annotations

import asyncio
import json
import logging
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from tests.integration.apps import Make, eventually, store_of
from tests.integration.test_alerts import PATIENCE, QUICK, alert, fill, nothing, told
from tests.support.hostile_http import Request, answer, serving
from tickwork import ConfigError, FixedDelay, Scheduler
from tickwork.cli import commands
from tickwork.observe import AlertChanged

pytestmark = pytest.mark.timeout(120)


async def test_nobody_hears_of_a_silenced_alert_until_the_silence_ends(
    make: Make, url: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "secret").write_bytes(bytes(range(64)))
    bodies: list[dict[str, Any]] = []

    async def respond(request: Request, writer: Any) -> None:
        bodies.append(json.loads(request.body))
        writer.write(answer(b"", "200 OK"))

    async with serving(respond) as server:
        events = ["alert.fired", "alert.resolved"]
        hook = {"name": "pager", "url": f"{server.url}/hook", "events": events, "retry": FixedDelay(0.01)}
        more = {"webhooks": [hook], "allow_addresses": [server.url], "secret_file": str(tmp_path / "secret")}
        app, seen = make(url, **QUICK, **more), list[AlertChanged]()
        app.observe(seen.append, AlertChanged)
        app.task("later")(nothing)
        caplog.set_level(logging.INFO, "tickwork")
        async with app:
            store = await store_of(app)
            await eventually(lambda: store.marks.get("webhook:pager"), PATIENCE)
            await eventually(lambda: alert(app, "backlog", "ok"), PATIENCE)
            await app.silence_alert("backlog", timedelta(hours=1), "big import", "ines")
            await fill(app)
            fires = await eventually(lambda: alert(app, "backlog", "firing"), PATIENCE)
            assert fires.silenced is not None
            assert (fires.silenced.by, fires.silenced.note) == ("ines", "big import")
            assert await told(app) == [("alert.fired_silently", "backlog")]
            assert (seen, [line for line in caplog.messages if line.startswith("Alert ")]) == ([], [])
            assert await app.unsilence_alert("backlog")
            await eventually(lambda: bodies and seen, PATIENCE)
            assert await told(app) == [("alert.fired_silently", "backlog"), ("alert.fired", "backlog")]
    # Deliveries about one alert are in order, so that a first one would have come before.
    assert [(body["type"], body["data"]["id"]) for body in bodies] == [("alert.fired", "backlog")]
    assert [(each.fact, each.id) for each in seen] == [("alert.fired", "backlog")]
    assert len([line for line in caplog.messages if line.startswith("Alert fired alert=backlog")]) == 1


async def test_a_silence_needs_an_end_ahead_and_a_rule_that_there_is(make: Make, url: str) -> None:
    app = make(url, **QUICK)
    async with app:
        await eventually(lambda: alert(app, "backlog", "ok"), PATIENCE)
        with pytest.raises(ConfigError, match=r"no alert rule 'backlgo' .*did you mean 'backlog'\?"):
            await app.silence_alert("backlgo", timedelta(hours=1))
        with pytest.raises(ConfigError, match="a silence needs an end"):
            await app.silence_alert("backlog", None)  # type: ignore[arg-type]
        with pytest.raises(ConfigError, match="until must be in the future"):
            await app.silence_alert("backlog", datetime(2001, 1, 1, tzinfo=UTC))
        assert await app.unsilence_alert("backlog") is False


async def test_the_commands_silence_a_rule_and_end_that(
    make: Make, sqlite_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    app = make(sqlite_url, **QUICK)

    async def run(*args: str) -> tuple[int, str]:
        given = ["--store", sqlite_url, *args]
        result = await asyncio.to_thread(CliRunner().invoke, commands, given, catch_exceptions=False)
        return result.exit_code, result.output

    await fill(app)
    async with app:
        await eventually(lambda: alert(app, "backlog", "firing"), PATIENCE)
    assert (await run("alerts"))[0] == 1
    silence = ("alerts", "silence", "backlog")
    status, text = await run(*silence, "--note", "big import")
    assert (status, "a silence needs an end" in text) == (2, True)
    assert await run(*silence, "--for", "2h", "--note", "big import", "--by", "ines") == (0, "backlog  silenced\n")
    status, text = await run("alerts")
    assert status == 0, "what is silenced is nobody's turn"
    assert "by ines" in text.splitlines()[1]
    status, text = await run("alerts", "--json")
    first = json.loads(text)["alerts"][0]
    assert (status, first["silenced"]["by"], first["silenced"]["note"]) == (0, "ines", "big import")
    assert await run("alerts", "resume", "backlog") == (0, "backlog  not silenced any more\n")
    status, text = await run("alerts", "resume", "backlog", "--json")
    assert (status, json.loads(text)["done"]) == (0, "was not silenced")
    assert (await run("alerts", "list"))[0] == 1
    status, text = await run("audit")
    assert "silenced an alert" in text
    assert "big import" in text
    assert "ended the silence of an alert" in text


async def test_blocking_code_silences_as_well(make: Make, sqlite_url: str) -> None:
    app = make(sqlite_url, **QUICK)
    async with app:
        await eventually(lambda: alert(app, "backlog", "ok"), PATIENCE)
    blocking = Scheduler(sqlite_url)

    def steer() -> list[bool]:
        blocking.sync.silence_alert("backlog", timedelta(hours=1))
        was = [each.silenced is not None for each in blocking.sync.alerts() if each.name == "backlog"]
        return [*was, blocking.sync.unsilence_alert("backlog"), blocking.sync.unsilence_alert("backlog")]

    try:
        assert await asyncio.to_thread(steer) == [True, True, False]
    finally:
        await asyncio.to_thread(blocking.sync.close)
