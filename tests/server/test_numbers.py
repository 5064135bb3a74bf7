"""Status, statistics and reports over the API."""

from __future__ import annotations

import csv
import io
from typing import Any

import pytest

from tests.server.serving import Client, Server, serving
from tickwork import __version__
from tickwork.client import queues
from tickwork.clock import ManualClock
from tickwork.store.contract import Ask, Gate


async def some_ends(server: Server) -> None:
    await server.count_up()
    await server.succeeded(type="mail")
    await server.succeeded(type="mail")
    await server.dead(type="sms", queue="post")
    await server.count_up()


class TestStatus:
    async def test_how_the_whole_is(self, admin: Client, server: Server) -> None:
        await server.app.submit("mail")
        shown = await admin.read("/status")
        assert (shown["namespace"], shown["version"], shown["workers"]) == ("home", __version__, 0)
        assert shown["tasks"]["ready"] == 1
        assert shown["health"]["status"] in ("healthy", "degraded")
        assert shown["leader"] is None

    async def test_the_numbers_beside_the_entries(self, admin: Client, server: Server) -> None:
        await server.app.submit("mail")
        await server.app.schedules.put("nightly", "mail", cron="0 3 * * *")
        await server.app.breakers.open("type:mail")
        shown = await admin.read("/counts")
        assert (shown["tasks"]["ready"], shown["schedules"], shown["workers"]) == (1, 1, 0)
        assert shown["firing"] == 0

    async def test_the_overview_says_what_wants_to_be_looked_at(self, admin: Client, server: Server) -> None:
        await some_ends(server)
        await server.app.submit("mail", queue="post")
        await server.app.queues.pause("post", "a break")
        await server.app.breakers.open("type:mail", "down")
        await server.app.switches.off("type:sms", "the bill")
        shown = await admin.read("/overview")
        kinds = {each["kind"] for each in shown["attention"]}
        assert kinds >= {"dead", "queue", "breaker", "workers", "switch"}
        titles = [each["title"] for each in shown["attention"]]
        assert "Breaker mail is open" in titles
        assert "Type sms is switched off" in titles
        assert [each["level"] for each in shown["attention"]] == sorted(
            (each["level"] for each in shown["attention"]), key=("bad", "heal", "rest").index
        )
        assert shown["status"]["tasks"]["dead"] == 1
        assert [each["error"] for each in shown["failures"]] == ["ValueError"]


async def test_a_schedule_that_nobody_fires_is_told(url: str, clock: ManualClock) -> None:
    async with serving(url, clock=clock) as server:
        viewer = await server.as_role("viewer")
        await server.app.schedules.put("nightly", "mail", cron="0 3 * * *")
        assert (await viewer.read("/overview"))["attention"] == []
        clock.advance(86_400)
        (late,) = (await viewer.read("/overview"))["attention"]
        assert (late["level"], late["title"], late["link"]) == ("bad", "Schedule nightly is late", "schedules/nightly")


class TestQueues:
    async def test_what_holds_tasks_is_told_beside_those_that_are_ready(self, admin: Client, server: Server) -> None:
        await some_ends(server)  # of type mail in the queue default, of type sms in the queue post
        await server.succeeded(type="both")
        await server.succeeded(type="both", queue="post")
        await server.count_up()
        names = (
            "breaker:type:sms", "limit:type:mail/key=a", "limit:type:mail/key=b", "limit:queue:post", "switch:key:acme",
            "switch:type:both",
        )  # fmt: skip
        gates = (await server.app._access.open_store()).gates
        asks = [Ask(f"{name} {number}", (Gate(name, shut=True),)) for name in names for number in range(2)]
        await gates.enter(asks)
        for queue in ("default", "post"):
            await server.app.submit("mail", queue=queue)
        held = {each["name"]: [tuple(hold.values()) for hold in each["holds"]] for each in await admin.read("/queues")}
        assert sorted(held["default"]) == [("limit", "type:mail", 4), ("switch", "type:both", None)]
        assert sorted(held["post"]) == [
            ("breaker", "type:sms", 2), ("limit", "queue:post", 2), ("switch", "type:both", None),
        ]  # fmt: skip

    async def test_of_one_queue_only_so_many_are_counted(
        self, admin: Client, server: Server, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        await server.app.submit_many("mail", [1] * 30, delay=60)
        shown = await admin.read("/stats/queues", queue="default")
        assert (shown["delayed_count"], shown["at_least"]) == (30, False)
        monkeypatch.setattr(queues, "PAGE_MAX", 4)
        shown = await admin.read("/stats/queues", queue="default")
        assert (shown["delayed_count"], shown["at_least"]) == (20, True)


class TestReports:
    async def test_by_type_and_queue(self, admin: Client, server: Server) -> None:
        await some_ends(server)
        report = await admin.read("/reports", by="type")
        rows = {each["name"]: each for each in report["rows"]}
        assert (rows["mail"]["success"], rows["sms"]["dead"], report["total"]["success"]) == (2, 1, 2)
        by_queue = {each["name"]: each for each in (await admin.read("/reports", by="queue"))["rows"]}
        assert by_queue["post"]["dead"] == 1
        only = await admin.read("/reports", type="mail")
        assert [each["name"] for each in only["rows"]] == ["mail"]

    async def test_as_csv(self, admin: Client, server: Server) -> None:
        await some_ends(server)
        answer = await admin.get("/reports/export", by="type")
        assert answer.headers["content-type"] == "text/csv; charset=utf-8"
        assert answer.headers["content-disposition"] == 'attachment; filename="tickwork-report.csv"'
        head, *rows = answer.text.splitlines()
        assert head.startswith("name,at,submitted,started,success")
        assert ",wait_p50,wait_p95,wait_p99,run_p50,run_p95,run_p99," in head
        assert [row.partition(",")[0] for row in rows] == ["mail", "sms", "total"]
        mail = next(csv.DictReader(io.StringIO(answer.text)))
        assert float(mail["run_p50"]) <= float(mail["run_p99"])
        only = (await admin.get("/reports/export", type="mail")).text.splitlines()
        assert [row.partition(",")[0] for row in only[1:]] == ["mail", "total"]

    async def test_over_time(self, timed: Server, clock: ManualClock) -> None:
        admin = await timed.as_role("admin")
        await some_ends(timed)
        shown = await admin.read("/stats/series", minutes=60, by="type")
        assert shown["grain"] == "minute"
        lines = {each["name"]: each for each in shown["lines"]}
        assert lines["mail"]["success"][-1] == 2
        assert len(lines["mail"]["success"]) == len(shown["times"])
        assert (await admin.read("/stats/series", minutes=1440))["grain"] == "hour"
        assert (await admin.read("/stats/series", minutes=400 * 1440))["grain"] == "day"

    @pytest.mark.parametrize(
        "query",
        [
            {"since": "x"}, {"by": "x"}, {"type": "a b"}, {"since": "2030-01-01T00:00:00"},
            {"since": "2099-01-01T00:00:00Z"}, {"since": "2030-01-02T00:00:00Z", "until": "2030-01-01T00:00:00Z"},
            {"since": "9999-12-31T23:59:59-14:00"}, {"since": "1969-01-01T00:00:00Z", "until": "1969-02-01T00:00:00Z"},
            {"until": "2000-01-01T00:00:00"}, {"since": "1699-08-14T21:51:31Z", "until": "2000-01-01T00:00:00Z"},
        ],
    )  # fmt: skip
    async def test_what_cannot_be_reported_is_refused(self, query: dict[str, Any], admin: Client) -> None:
        answer = await admin.get("/reports", **query)
        assert answer.status_code == 400, answer.text
        query.pop("type", None)
        if query:
            assert (await admin.get("/reports/export", **query)).status_code == 400

    @pytest.mark.parametrize("query", [{"since": "0001-01-01T00:00:00+14:00"}, {"since": "0001-01-01T00:00:00Z"}])
    @pytest.mark.parametrize("by", ["type", "day", "hour", "minute"])
    async def test_the_beginning_of_the_calendar_is_no_mistake_of_the_server(
        self, query: dict[str, Any], by: str, admin: Client
    ) -> None:
        assert (await admin.get("/reports", by=by, **query)).status_code in (200, 400)

    @pytest.mark.parametrize("minutes", [0, 4, 400 * 1440 + 1, "x"])
    async def test_a_series_has_bounds(self, minutes: Any, admin: Client) -> None:
        assert (await admin.get("/stats/series", minutes=minutes)).status_code == 400
        assert (await admin.get("/overview", minutes=minutes)).status_code == 400
