"""Groups of failures that are muted over the API."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from tests.server.conftest import START
from tests.server.serving import Client, Server
from tickwork.clock import ManualClock
from tickwork.server import mutes
from tickwork.store.contract import Store

IN_AN_HOUR = datetime.fromtimestamp(START / 1000 + 3600, UTC).isoformat()


@pytest.fixture
async def operator(timed: Server) -> Client:
    """Of a server with two groups of dead letters."""
    await timed.count_up()
    await timed.dead("ValueError: boom", type="order")
    await timed.dead("KeyError: 'x'", type="mail")
    await timed.dead("KeyError: 'x'", type="mail")
    await timed.count_up()
    return await timed.as_role("operator", name="ines")


async def ids(client: Client) -> dict[str, str]:
    return {each["error"]: each["id"] for each in (await client.read("/failures"))["items"]}


async def muted(client: Client) -> dict[str, Any]:
    return {each["error"]: each["muted"] for each in (await client.read("/failures"))["items"]}


async def documents(server: Server) -> list[str]:
    store: Store = await server.app._access.open_store()
    return [each.name for each in await store.control.page(mutes.KIND)]


async def test_a_group_is_muted_until_a_time_and_heard_again_then(operator: Client, clock: ManualClock) -> None:
    group = (await ids(operator))["KeyError"]
    shown = await operator.do("POST", f"/failures/{group}/mute", {"until": IN_AN_HOUR, "note": "known"})
    assert (shown["muted"]["by"], shown["muted"]["note"]) == ("ines", "known")
    assert datetime.fromisoformat(shown["muted"]["until"]) == datetime.fromisoformat(IN_AN_HOUR)
    assert await muted(operator) == {"KeyError": shown["muted"], "ValueError": None}
    assert (await operator.read(f"/failures/{group}"))["muted"] == shown["muted"]
    clock.advance(3600)
    assert await muted(operator) == {"KeyError": None, "ValueError": None}


async def test_a_group_is_unmuted_and_both_are_in_the_audit_log(operator: Client) -> None:
    group = (await ids(operator))["KeyError"]
    await operator.do("POST", f"/failures/{group}/mute", {"until": IN_AN_HOUR, "note": "known"})
    assert await operator.do("POST", f"/failures/{group}/unmute") == {"changed": True}
    assert await operator.do("POST", f"/failures/{group}/unmute") == {"changed": False}
    assert await muted(operator) == {"KeyError": None, "ValueError": None}
    entries = (await operator.read("/audit", limit=3))["items"]
    assert [(each["what"], each["target"], each["detail"]) for each in entries[1:]] == [
        ("unmuted a group of failures", group, ""), ("muted a group of failures", group, "known"),
    ]  # fmt: skip


async def test_nobody_is_asked_to_look_at_muted_groups(operator: Client) -> None:
    async def row() -> list[tuple[str, str]]:
        rows = (await operator.read("/overview"))["attention"]
        return [(each["title"], each["text"]) for each in rows if each["kind"] == "dead"]

    assert [title for title, _ in await row()] == ["3 dead letters"]
    found = await ids(operator)
    await operator.do("POST", f"/failures/{found['KeyError']}/mute", {"until": IN_AN_HOUR})
    assert await row() == [("1 dead letter", "The last is ValueError in order. Muted errors are not counted.")]
    await operator.do("POST", f"/failures/{found['ValueError']}/mute", {"until": IN_AN_HOUR})
    assert await row() == []


async def test_mutes_that_have_ended_are_dropped_and_there_are_not_more_than_may_be(
    operator: Client, timed: Server, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mutes, "MUTES_MAX", 1)
    one, other = (await ids(operator)).values()
    await operator.do("POST", f"/failures/{one}/mute", {"until": IN_AN_HOUR})
    answer = await operator.post(f"/failures/{other}/mute", {"until": IN_AN_HOUR})
    assert (answer.status_code, answer.json()["code"]) == (409, "not_muted")
    clock.advance(3600)
    assert await operator.do("POST", f"/failures/{one}/unmute") == {"changed": False}
    await operator.do("POST", f"/failures/{other}/mute", {"until": "2099-01-01T00:00:00Z"})
    assert await documents(timed) == [other]


@pytest.mark.parametrize(
    "body", [{}, {"until": "2001-01-01T00:00:00Z"}, {"until": "2099-01-01T00:00:00"}, {"until": None}]
)
async def test_a_mute_that_cannot_be_is_refused(body: dict[str, Any], operator: Client) -> None:
    group = (await ids(operator))["KeyError"]
    assert (await operator.post(f"/failures/{group}/mute", body)).status_code == 400
    assert await muted(operator) == {"KeyError": None, "ValueError": None}


async def test_a_group_that_is_not_there_cannot_be_muted_nor_may_a_viewer(operator: Client, timed: Server) -> None:
    answer = await operator.post("/failures/no-such/mute", {"until": IN_AN_HOUR})
    assert (answer.status_code, answer.json()["code"]) == (404, "group_not_found")
    viewer, group = await timed.as_role("viewer"), (await ids(operator))["KeyError"]
    assert (await viewer.post(f"/failures/{group}/mute", {"until": IN_AN_HOUR})).status_code == 403


class TestUnreadable:
    """A document that cannot be read harms only itself."""

    TEXTS = ("{not json", "[]", '{"by": 1}', '{"name": "x", "filter": 7, "by": "y"}')

    async def test_mutes(self, operator: Client, timed: Server, caplog: pytest.LogCaptureFixture) -> None:
        store: Store = await timed.app._access.open_store()
        group = (await ids(operator))["KeyError"]
        for name, text in zip((group, "b", "c", "d"), self.TEXTS, strict=True):
            assert await store.control.swap(mutes.KIND, name, None, text)
        for _ in range(2):
            assert (await muted(operator))["KeyError"] is None
            await operator.read("/overview")
        told = [each.getMessage() for each in caplog.records if "cannot be read" in each.getMessage()]
        assert len([each for each in told if group in each]) == 1
        assert await operator.do("POST", f"/failures/{group}/unmute") == {"changed": False}
        await operator.do("POST", f"/failures/{group}/mute", {"until": IN_AN_HOUR})
        assert (await muted(operator))["KeyError"] is not None

    async def test_views(self, operator: Client, timed: Server) -> None:
        store: Store = await timed.app._access.open_store()
        await operator.do("PUT", "/views/mine", {"filter": "status:dead"})
        for number, text in enumerate(self.TEXTS):
            assert await store.control.swap("views", f"broken{number}", None, text)
        assert [each["name"] for each in await operator.read("/views")] == ["mine"]
        await operator.do("PUT", "/views/broken0", {"filter": "status:dead"})
        assert [each["name"] for each in await operator.read("/views")] == ["broken0", "mine"]
