"""Alerts over the API: how the rules stand, and silencing them."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from tests.server.conftest import START
from tests.server.serving import Client, Server
from tickwork.clock import ManualClock
from tickwork.config import AlertRule

RULE = AlertRule("backlog", "tasks_pending", 1, ">=")
IN_AN_HOUR = datetime.fromtimestamp(START / 1000 + 3600, UTC)


@pytest.fixture
async def operator(timed: Server) -> Client:
    """Of a server on which a rule fires."""
    await timed.app.submit("mail", {"to": "a"}, delay=3600)
    await timed.judge(RULE)
    return await timed.as_role("operator", name="ines")


async def test_alerts_are_none_while_nobody_judges(admin: Client) -> None:
    assert await admin.read("/alerts") == []


async def test_an_alert_is_silenced_until_a_time_and_the_silence_ends_by_itself(
    operator: Client, clock: ManualClock
) -> None:
    body = {"name": "backlog", "until": IN_AN_HOUR.isoformat(), "note": "big import"}
    shown = await operator.do("POST", "/alerts/silence", body)
    assert (shown["state"], shown["silenced"]["by"], shown["silenced"]["note"]) == ("firing", "ines", "big import")
    assert datetime.fromisoformat(shown["silenced"]["until"]) == IN_AN_HOUR
    assert await operator.read("/alerts") == [shown]
    clock.advance(3600)
    assert [each["silenced"] for each in await operator.read("/alerts")] == [None]


async def test_a_silence_is_ended_by_hand_and_both_are_in_the_audit_log(operator: Client) -> None:
    await operator.do("POST", "/alerts/silence", {"name": "backlog", "duration": 3600, "note": "big import"})
    assert await operator.do("POST", "/alerts/unsilence", {"name": "backlog"}) == {"changed": True}
    assert await operator.do("POST", "/alerts/unsilence", {"name": "backlog"}) == {"changed": False}
    assert [each["silenced"] for each in await operator.read("/alerts")] == [None]
    entries = (await operator.read("/audit", limit=3))["items"]
    assert [(each["what"], each["target"], each["detail"]) for each in entries[1:]] == [
        ("ended the silence of an alert", "backlog", ""), ("silenced an alert", "backlog", "big import"),
    ]  # fmt: skip


async def test_a_silenced_alert_asks_nobody_to_look(operator: Client) -> None:
    (row,) = [each for each in (await operator.read("/overview"))["attention"] if each["kind"] == "alert"]
    assert (row["level"], (await operator.read("/counts"))["firing"]) == ("bad", 1)
    body = {"name": "backlog", "until": IN_AN_HOUR.isoformat(), "note": "big import"}
    await operator.do("POST", "/alerts/silence", body)
    (row,) = [each for each in (await operator.read("/overview"))["attention"] if each["kind"] == "alert"]
    assert (row["level"], (await operator.read("/counts"))["firing"]) == ("rest", 0)
    assert row["text"].startswith("silenced by ines until Sun 17 Mar 18:46 UTC, “big import”.")


@pytest.mark.parametrize(
    "body",
    [
        {"name": "backlog"}, {"name": "backlog", "duration": 0}, {"name": "backlog", "duration": -1},
        {"name": "backlog", "duration": 1e308}, {"name": "backlog", "until": "2001-01-01T00:00:00Z"},
        {"name": "backlog", "until": "2099-01-01T00:00:00"}, {"name": "backlgo", "duration": 60},
        {"name": "backlog", "duration": 60, "until": IN_AN_HOUR.isoformat()}, {"name": "", "duration": 60},
        {"name": "backlog", "duration": 60, "note": "x" * 2001}, {"duration": 60}, {"name": "backlog", "until": None},
    ],
)  # fmt: skip
async def test_a_silence_that_cannot_be_is_refused(body: dict[str, Any], operator: Client) -> None:
    answer = await operator.post("/alerts/silence", body)
    assert answer.status_code == 400, answer.text
    assert [each["silenced"] for each in await operator.read("/alerts")] == [None]


async def test_a_viewer_may_not_silence(operator: Client, timed: Server) -> None:
    viewer = await timed.as_role("viewer")
    assert (await viewer.post("/alerts/silence", {"name": "backlog", "duration": 60})).status_code == 403
    assert (await viewer.post("/alerts/unsilence", {"name": "backlog"})).status_code == 403
