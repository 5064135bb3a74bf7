"""The filter language over the API: every qualifier, pages to the end, and what is wrong with a filter."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

from tests.server.serving import Client, Server, serving
from tests.support.redis_store import empty_redis
from tickwork.clock import ManualClock
from tickwork.model.fingerprint import fingerprint
from tickwork.model.outcomes import Held
from tickwork.model.tasks import ParkReason
from tickwork.server import filters
from tickwork.store.contract import Claim


@pytest.fixture
async def world(url: str, clock: ManualClock) -> AsyncIterator[Client]:
    """Tasks that differ in one thing each."""
    async with serving(url, clock=clock) as server:
        await _fill(server, clock)
        yield await server.as_role("viewer")


async def _fill(server: Server, clock: ManualClock) -> None:
    app = server.app
    await app.submit("mail", id="old", delay=1_000_000, key="acme corp", tags={"who": "ada"}, priority=9)
    clock.advance(7200)
    await app.submit("mail", id="new", delay=60, queue="post", key="acme", tags={"who": "bob, jr"})
    await app.submit("sms", id="ready")
    await app.submit("sms", id="down", depends_on=["ready"])
    await app.schedules.put("nightly", "report", cron="0 3 * * *")
    triggered = await app.schedules.trigger("nightly")
    await app.cancel(triggered)
    await server.dead("ValueError: boom", type="die", id="dead")
    await server.retrying("KeyError: 'x'", type="again", id="retrying")
    await server.running(type="run", id="running")
    await server.succeeded(type="win", id="won")
    clock.advance(90)


async def ids(client: Client, q: str, **query: Any) -> set[str]:
    found = (await client.read("/tasks", q=q, **query))["items"]
    return {"triggered" if each["schedule_id"] else each["id"] for each in found}


class TestStoppedByHand:
    """Such tasks are ready, and their records do not tell what they wait for."""

    @pytest.fixture
    async def stopped(self, url: str, clock: ManualClock) -> AsyncIterator[Server]:
        async with serving(url, clock=clock) as server:
            app = server.app
            await app.submit("mail", id="in-a-paused-queue", queue="post")
            await app.submit("sms", id="of-a-paused-type")
            await app.submit("off", id="of-a-switched-type")
            await app.submit("mail", id="of-a-switched-tag", tags={"who": "ada"})
            await app.submit("open", id="behind-a-breaker")
            await app.submit("mail", id="free")
            await app.queues.pause("post", "a move")
            await app.queues.pause_type("sms")
            await app.switches.off("type:off", "the bill", "ines")
            await app.switches.off("tag:who=ada")
            await app.breakers.open("type:open")
            store = await app._access.open_store()  # a worker that leaves those types aside, and takes nothing
            claim = Claim("w1", ("default",), frozenset({"none"}), limit=1, lease_ttl=1000, nonce="n")
            assert (await store.tasks.claim(claim)).grants == []
            yield server

    @pytest.mark.parametrize(
        ("q", "expected"),
        [
            ("waits:paused", {"in-a-paused-queue", "of-a-paused-type"}),
            ("waits:switch", {"of-a-switched-type", "of-a-switched-tag"}),
            ("waits:breaker", {"behind-a-breaker"}),
            ("waits:breaker,paused", {"in-a-paused-queue", "of-a-paused-type", "behind-a-breaker"}),
            ("waits:worker", {"free"}),
            ("waits:limit", set()),
        ],
    )
    async def test_it_is_found(self, stopped: Server, q: str, expected: set[str]) -> None:
        assert await ids(await stopped.as_role("viewer"), q) == expected

    async def test_it_says_why_in_the_list(self, stopped: Server) -> None:
        items = (await (await stopped.as_role("viewer")).read("/tasks"))["items"]
        rows = {each["id"]: (each["held_by"], each["why"]) for each in items}
        assert rows["of-a-switched-type"][0] == rows["of-a-switched-tag"][0] == "switch"
        assert "Type off was switched off by ines" in rows["of-a-switched-type"][1]
        assert rows["behind-a-breaker"][0] == "breaker"
        assert "Breaker type:open was opened" in rows["behind-a-breaker"][1]
        assert rows["free"][0] is None

    async def test_it_is_counted(self, stopped: Server) -> None:
        viewer = await stopped.as_role("viewer")
        assert [(each["of"], each["waiting"]) for each in await viewer.read("/breakers")] == [("type:open", 1)]
        switches = {each["of"]: each["waiting"] for each in await viewer.read("/switches")}
        assert switches["type:off"] == 1
        counts = await viewer.read("/counts")
        assert (counts["held"], counts["breakers"]) == (2, 1)

    async def test_bulk_actions_go_by_it(self, stopped: Server) -> None:
        operator = await stopped.as_role("operator")
        found = await operator.do("POST", "/bulk/preview", {"action": "cancel", "filter": "waits:breaker"})
        assert (found["count"], [each["id"] for each in found["samples"]]) == (1, ["behind-a-breaker"])

    async def test_ended_tasks_are_not_walked_for_it(self, stopped: Server) -> None:
        for number in range(30):
            await stopped.succeeded(type="done", id=f"done-{number}")
        assert (await (await stopped.as_role("viewer")).read("/tasks", q="waits:breaker"))["looked"] == 6


class TestParked:
    """Records of tasks that were put aside, or given back at a gate, name what they wait for."""

    @pytest.mark.parametrize(("reason", "word"), filters._PARKED.items())
    async def test_it_is_found_by_its_reason(self, url: str, clock: ManualClock, reason: ParkReason, word: str) -> None:
        async with serving(url, clock=clock) as server:
            await server.app.submit("mail", id="free")
            await server.app.submit("sms", id="parked")
            store = await server.app._access.open_store()
            if reason is ParkReason.TYPE_PAUSED:
                await server.app.queues.pause_type("sms")
                claim = Claim("w1", ("default",), frozenset({"sms"}), limit=1, lease_ttl=1000, nonce="n")
                assert (await store.tasks.claim(claim)).grants == []
            else:
                await server.run("sms", lambda lease: Held(lease, "type:sms", reason, 3_600_000))
            record = await store.queries.get("parked")
            assert record is not None
            assert record.parked is reason
            viewer = await server.as_role("viewer")
            found = {each: await ids(viewer, f"waits:{each}") for each in filters.WAITS}
            assert {each for each, names in found.items() if "parked" in names} == {word}

    def test_every_reason_has_a_word_or_means_that_no_worker_fits(self) -> None:
        unnamed = set(ParkReason) - set(filters._PARKED)
        assert unnamed == {ParkReason.TYPE_UNKNOWN, ParkReason.LABELS_MISSING}


class TestQualifiers:
    @pytest.mark.parametrize(
        ("q", "expected"),
        [
            ("", {"old", "new", "ready", "down", "triggered", "dead", "retrying", "running", "won"}),
            ("status:pending", {"old", "new"}),
            ("status:dead,cancelled", {"dead", "triggered"}),
            ("-status:pending,dead type:mail,die", set()),
            ("type:mail", {"old", "new"}),
            ("mail", {"old", "new"}),
            ("type:mail,sms -type:sms", {"old", "new"}),
            ("queue:post", {"new"}),
            ("-queue:default", {"new"}),
            ("key:acme", {"new"}),
            ('key:"acme corp"', {"old"}),
            ("-key:acme type:mail", {"old"}),
            ("id:old,new", {"old", "new"}),
            ("id:old status:dead", set()),
            ("-id:old type:mail", {"new"}),
            ("worker:w1", {"dead", "retrying", "running", "won"}),
            ("schedule:nightly", {"triggered"}),
            ("priority:9", {"old"}),
            ("error:boom", {"dead"}),
            ('error:"ValueError: boom"', {"dead"}),
            ("error:KeyError,ValueError", {"dead", "retrying"}),
            (f"group:{fingerprint('ValueError: boom').id}", {"dead"}),
            ("waits:time", {"old", "retrying"}),
            ("waits:slot", {"new"}),
            ("waits:worker", {"ready"}),
            ("waits:tasks", {"down"}),
            ("submitted>1h", {"old"}),
            ("submitted<1h type:mail", {"new"}),
            ("submitted>=2030-03-17T18:00Z type:mail", {"new"}),
            ("submitted<2030-03-17T18:00Z", {"old"}),
            ("run>1m", {"running"}),
            ("run<=0s", {"dead", "retrying", "won"}),
            ("wait>10s", {"ready", "new", "down"}),
            ("attempt>=1", {"dead", "retrying", "running", "won"}),
            ("attempt<1 type:mail", {"old", "new"}),
            ("tag.who:ada", {"old"}),
            ('tag.who:"bob, jr"', {"new"}),
            ("-tag.who:ada type:mail", {"new"}),
        ],
    )
    async def test_a_qualifier_finds_what_it_names(self, q: str, expected: set[str], world: Client) -> None:
        assert await ids(world, q) == expected

    async def test_every_qualifier_is_tried_here(self) -> None:
        marks = self.test_a_qualifier_finds_what_it_names.pytestmark  # type: ignore[attr-defined]
        tried = " ".join(case[0] for case in marks[0].args[1])
        for name in filters.QUALIFIERS:
            assert name.replace("NAME", "who") in tried, name

    async def test_a_word_by_itself_may_be_an_id(self, world: Client) -> None:
        (row,) = (await world.read("/tasks", q="schedule:nightly"))["items"]
        assert await ids(world, row["id"]) == {"triggered"}

    async def test_an_export_has_what_the_list_has(self, world: Client) -> None:
        answer = await world.get("/tasks/export", q="type:mail")
        assert answer.headers["content-type"] == "text/csv; charset=utf-8"
        assert answer.headers["content-disposition"] == 'attachment; filename="tickwork-tasks.csv"'
        head, *rows = answer.text.splitlines()
        assert head.startswith("id,type,queue,priority,status")
        assert {row.partition(",")[0] for row in rows} == {"old", "new"}


class TestMistakes:
    @pytest.mark.parametrize(
        ("q", "position", "part"),
        [
            ("status:ded", 0, "ded"),
            ("type:mail stauts:dead", 10, "Did you mean status?"),
            ("payload:x", 0, "does not search payloads"),
            ("type:mail submitted:2h", 10, "submitted is compared"),
            ("type>2", 0, "write type:VALUE"),
            ("status:", 0, "needs a value"),
            ("attempt>x", 0, "whole number"),
            ("run>soon", 0, "duration"),
            ("submitted>2030-01-01T00:00", 0, "needs its zone"),
            ("waits:godot", 0, "waits: takes"),
            ('type:mail "acme', 9, "quote has no end"),
            ('key:"acme', 0, "key: needs a value"),
            ("what is this?", 8, "no id and no type"),
            ("<script>", 0, "no id and no type"),
            (" ".join(["type:a"] * 31), 210, "at most 30 parts"),
            ("type:" + ",".join("abcdefghijklmnopqrstu"), 0, "at most 20 values"),
        ],
    )
    async def test_it_is_said_what_is_wrong_and_where(self, q: str, position: int, part: str, admin: Client) -> None:
        answer = await admin.get("/tasks", q=q)
        assert (answer.status_code, answer.json()["code"]) == (400, "bad_filter")
        assert part in answer.json()["detail"]
        assert answer.json().get("position") == position

    @pytest.mark.parametrize(
        "q",
        [
            "submitted>9999-12-31T23:59:59-14:00", "submitted<0001-01-01T00:00:00+14:00", "run>1e400s",
            "wait>" + "9" * 60,
            "attempt>" + "9" * 1000, "priority:" + "9" * 1000, "\x00", "key:\x00", "error:\ud7ff", "tag.:x",
            "tag.a.b:x",
            "-", ":", '"', '""', "type:a,,b", "a:b:c", "key:*", "key:(a+)+$", "id:..", "worker:'; drop table", "\\",
            "²",
        ],
    )  # fmt: skip
    async def test_hostile_filters_are_no_mistake_of_the_server(self, q: str, admin: Client) -> None:
        assert (await admin.get("/tasks", q=q)).status_code in (200, 400)
        assert (await admin.get("/tasks/export", q=q)).status_code in (200, 400)

    async def test_too_long_a_filter_is_refused_before_it_is_read(self, admin: Client) -> None:
        answer = await admin.get("/tasks", q="x" * 2001)
        assert answer.status_code == 400
        assert len(answer.text) < 500

    async def test_too_many_combinations_are_refused(self, admin: Client) -> None:
        many = ",".join(f"v{number}" for number in range(10))
        answer = await admin.get("/tasks", q=f"type:{many} queue:{many}")
        assert (answer.status_code, answer.json()["code"]) == (400, "bad_filter")


async def nothing(_number: int) -> None: ...


class TestPages:
    @pytest.mark.parametrize("q", ["", "status:pending", "type:a,b", "status:pending,cancelled type:a,b", "-type:a"])
    @pytest.mark.parametrize("limit", [1, 7, 500])
    async def test_pages_lead_to_the_end_and_show_each_task_once(
        self, q: str, limit: int, admin: Client, server: Server
    ) -> None:
        for kind in ("a", "b"):
            await server.app.submit_many(kind, [1] * 20, delay=60)
        one = (await admin.read("/tasks", q="type:b", limit=1))["items"][0]["id"]
        await server.app.cancel(one)
        whole = {each["id"] for each in (await admin.read("/tasks", q=q, limit=500))["items"]}
        seen: list[str] = []
        cursor: str | None = None
        for _ in range(200):
            page = await admin.read("/tasks", q=q, limit=limit, **({} if cursor is None else {"cursor": cursor}))
            assert len(page["items"]) <= limit
            seen += [each["id"] for each in page["items"]]
            cursor = page["cursor"]
            if cursor is None:
                break
        assert cursor is None
        assert len(seen) == len(set(seen))
        assert set(seen) == whole
        assert len(whole) == {"": 40, "-type:a": 20, "status:pending": 39}.get(q, 40)

    @pytest.mark.parametrize("indexed", [False, True])
    async def test_pages_go_on_in_every_list_of_every_store(self, any_url: str, indexed: bool) -> None:
        async with serving(any_url) as server:
            app = server.app
            for kind in ("a", "b"):
                app.task(kind)(nothing)
                await app.submit_many(kind, [1] * 5, requires={"zone": "north"})
                await app.submit_many(kind, [1] * 5, queue="post")
            await app.submit_many("a", [1] * 5, delay=60)
            if indexed:
                await app.index_tasks()
            store = await app._access.open_store()
            claim = Claim("w1", ("default", "post"), frozenset({"b"}), limit=3, lease_ttl=60_000, nonce="n")
            assert len((await store.tasks.claim(claim)).grants) == 3
            viewer = await server.as_role("viewer")
            for q, count in (
                ("", 25),
                ("status:ready", 17),
                ("type:a", 15),
                ("type:a,b queue:post", 10),
                ("-type:b", 15),
            ):
                seen: list[str] = []
                cursor: dict[str, str | None] = {}
                for _ in range(60):
                    page = await viewer.read("/tasks", q=q, limit=2, **cursor)
                    seen += [each["id"] for each in page["items"]]
                    cursor = {"cursor": page["cursor"]}
                    if page["cursor"] is None:
                        break
                assert (len(seen), len(set(seen)), page["cursor"]) == (count, count, None), q

    @pytest.mark.parametrize(
        "cursor", ["x", "0~x", "999~", "1~5", "0~5.\x00", "0~" + "9" * 400, "-1~", "0", "~", "0~1\n", "٠~", "0~5.a b"]
    )
    async def test_a_cursor_that_no_page_gave_is_refused(self, cursor: str, admin: Client) -> None:
        for path in ("/tasks", "/dead-letters"):
            answer = await admin.get(path, cursor=cursor)
            assert answer.status_code in (200, 400), answer.text
            if answer.status_code == 200:  # it has the form of one; then it is only a place in a list
                assert answer.json()["items"] == []

    async def test_schedules_refuse_a_cursor_that_is_none(self, admin: Client) -> None:
        for cursor in ("\x00", "x" * 501, "\ud7ff", "%"):
            assert (await admin.get("/schedules", cursor=cursor)).status_code in (200, 400)

    async def test_a_cursor_of_schedules_that_redis_does_not_know_is_refused(self) -> None:
        async with serving(empty_redis()) as server:
            answer = await (await server.as_role("viewer")).get("/schedules", cursor="x")
            assert (answer.status_code, answer.json()["code"]) == (400, "bad_cursor")

    async def test_the_limit_has_bounds(self, admin: Client) -> None:
        for limit in (0, -1, 501, "x", 1.5, 10**30):
            assert (await admin.get("/tasks", limit=limit)).status_code == 400

    async def test_the_total_is_said_where_counters_know_it(self, world: Client) -> None:
        assert (await world.read("/tasks", q="status:dead,pending"))["total"] == 3
        assert (await world.read("/tasks", q="type:mail"))["total"] is None


class TestValuesNamedTwice:
    @pytest.mark.parametrize(
        "q", ["status:pending,pending", "type:mail,mail", "queue:default,default type:mail", "id:a,a"]
    )
    async def test_a_task_is_listed_once(self, q: str, server: Server) -> None:
        await server.app.submit("mail", id="a", delay=60)
        viewer = await server.as_role("viewer")
        assert [each["id"] for each in (await viewer.read("/tasks", q=q))["items"]] == ["a"]

    async def test_and_counted_once_by_a_preview(self, server: Server) -> None:
        await server.app.submit("mail", id="a", delay=60)
        operator = await server.as_role("operator")
        for q in ("type:mail,mail", "status:pending,pending"):
            answer = await operator.post("/bulk/preview", {"action": "cancel", "filter": q})
            assert answer.json()["count"] == 1, q
