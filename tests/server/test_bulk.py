"""Bulk actions over the API: shown first, then done to exactly what was shown."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tests.integration.apps import eventually
from tests.server.examples import preview_of
from tests.server.serving import HOME, OTHER, Client, Server, serving
from tickwork.clock import ManualClock
from tickwork.server import previews
from tickwork.server.callers import Role


async def ended(client: Client, run: str) -> Any:
    async def look() -> Any:
        found = await client.read(f"/bulk/{run}")
        return found if found["state"] != "running" else None

    return await eventually(look, what="the bulk action has ended")


async def done(client: Client, action: str, filter: str, **more: Any) -> Any:
    """Preview it, do it, and wait for its end."""
    preview = await preview_of(client, action, filter, **more)
    answer = await client.post("/bulk", {"preview": preview["preview"]})
    assert answer.status_code == 202, answer.text
    return await ended(client, answer.json()["id"])


async def statuses(client: Client, kind: str) -> list[str]:
    return sorted(each["status"] for each in (await client.read("/tasks", q=f"type:{kind}", limit=500))["items"])


class TestPreview:
    async def test_it_counts_and_shows_some_and_changes_nothing(self, admin: Client, server: Server) -> None:
        await server.app.submit_many("mail", [{"n": number} for number in range(12)], delay=60)
        preview = await preview_of(admin, "cancel", "type:mail")
        assert (preview["count"], preview["at_least"], preview["statuses"]) == (12, False, {"pending": 12})
        assert len(preview["samples"]) == 5
        assert (preview["action"], preview["filter"]) == ("cancel", "type:mail")
        assert await statuses(admin, "mail") == ["pending"] * 12

    async def test_beyond_a_bound_it_says_at_least(
        self, admin: Client, server: Server, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(previews, "COUNT_MAX", 10)
        await server.app.submit_many("mail", [1] * 300, delay=60)
        preview = await preview_of(admin, "cancel", "type:mail")
        assert preview["at_least"]
        assert preview["count"] >= 10

    @pytest.mark.parametrize(
        ("wanted", "code"),
        [
            ({"action": "cancel", "filter": "  "}, "bad_filter"),
            ({"action": "cancel", "filter": "status:dead"}, "bad_filter"),
            ({"action": "cancel", "filter": "status:running"}, "bad_filter"),
            ({"action": "retry", "filter": "status:pending"}, "bad_filter"),
            ({"action": "reschedule", "filter": "type:a"}, "bad_value"),
            ({"action": "cancel", "filter": "type:a", "delay": 5}, "bad_value"),
            ({"action": "explode", "filter": "type:a"}, "bad_request"),
            ({"action": "cancel", "filter": "type:a", "rate": 0}, "bad_request"),
            ({"action": "cancel", "filter": "nope:1"}, "bad_filter"),
            ({"action": "cancel"}, "bad_request"),
        ],
    )
    async def test_what_makes_no_sense_is_refused(self, wanted: dict[str, Any], code: str, admin: Client) -> None:
        answer = await admin.post("/bulk/preview", wanted)
        assert (answer.status_code, answer.json()["code"]) == (400, code)


class TestDoing:
    async def test_each_action_does_what_it_says(self, any_url: str) -> None:
        async with serving(any_url) as server:
            server.app.task("mail")(lambda number: None)
            admin = await server.as_role("admin")
            await server.app.submit_many("mail", [1] * 30, delay=3600)
            run = await done(admin, "reschedule", "type:mail", delay=7200)
            assert (run["state"], run["done"]) == ("done", 30)
            assert (await done(admin, "run_now", "type:mail"))["done"] == 30
            assert await statuses(admin, "mail") == ["ready"] * 30
            assert (await done(admin, "cancel", "type:mail"))["done"] == 30
            assert await statuses(admin, "mail") == ["cancelled"] * 30
            assert (await done(admin, "retry", "status:cancelled type:mail"))["done"] == 30
            assert await statuses(admin, "mail") == ["ready"] * 30
            await done(admin, "cancel", "type:mail")
            assert (await done(admin, "delete", "status:cancelled type:mail"))["done"] == 30
            assert await statuses(admin, "mail") == []

    async def test_tasks_that_came_after_the_moment_are_not_touched(self, timed: Server, clock: ManualClock) -> None:
        admin = await timed.as_role("admin")
        await timed.app.submit_many("mail", [1] * 3, delay=60)
        preview = await preview_of(admin, "cancel", "type:mail")
        clock.advance(0.001)
        await timed.app.submit("mail", id="later", delay=60)
        run = await ended(admin, (await admin.do("POST", "/bulk", {"preview": preview["preview"]}))["id"])
        assert (run["done"], run["expected"]) == (3, 3)
        assert (await admin.read("/tasks/later"))["status"] == "pending"

    async def test_not_even_one_that_is_named_by_its_id(self, timed: Server, clock: ManualClock) -> None:
        admin = await timed.as_role("admin")
        preview = await preview_of(admin, "cancel", "id:later")
        clock.advance(0.001)
        await timed.app.submit("mail", id="later", delay=60)
        await ended(admin, (await admin.do("POST", "/bulk", {"preview": preview["preview"]}))["id"])
        assert (await admin.read("/tasks/later"))["status"] == "pending"

    async def test_no_more_are_touched_than_the_preview_has_counted(self, admin: Client, server: Server) -> None:
        """Tasks that were there already may come to match it only afterwards."""
        await server.app.submit_many("mail", [1] * 3, delay=60)
        await server.app.submit_many("later", [1] * 3, queue="q")
        preview = await preview_of(admin, "cancel", "queue:q,default status:pending")
        assert (preview["count"], preview["at_least"]) == (3, False)
        for each in await server.app.list_tasks(type="later"):
            await server.app.reschedule(each.id, delay=60)
        run = await admin.do("POST", "/bulk", {"preview": preview["preview"]})

        async def ended() -> Any:
            found = await admin.read(f"/bulk/{run['id']}")
            return found if found["ended_at"] else None

        shown = await eventually(ended)
        assert (shown["state"], shown["done"], shown["expected"]) == ("done", 3, 3)
        assert [*await statuses(admin, "mail"), *await statuses(admin, "later")].count("cancelled") == 3

    async def test_a_running_one_is_stopped_only_by_force(self, admin: Client, server: Server) -> None:
        task = await server.running(type="run")
        assert (await preview_of(admin, "cancel", "type:run"))["count"] == 0
        assert (await done(admin, "cancel", "type:run status:running", force=True))["done"] == 1
        assert (await admin.read(f"/tasks/{task}"))["cancelling"] is True

    async def test_what_could_not_be_changed_is_counted_with_why(self, admin: Client, server: Server) -> None:
        await server.app.submit("mail", id="up", delay=60)
        await server.app.submit("mail", id="down", depends_on=["up"])
        await server.app.cancel("down")
        await server.app.cancel("up")
        run = await done(admin, "retry", "id:down status:cancelled")
        assert (run["done"], run["refused"], run["state"]) == (0, 1, "done")
        assert "up" in run["errors"][0]

    async def test_it_goes_at_the_rate_that_was_said(self, admin: Client, server: Server) -> None:
        await server.app.submit_many("mail", [1] * 40, delay=60)
        began = asyncio.get_running_loop().time()
        run = await done(admin, "cancel", "type:mail", rate=50)
        assert run["done"] == 40
        assert asyncio.get_running_loop().time() - began >= 0.7

    async def test_progress_is_shown_and_it_can_be_stopped(self, admin: Client, server: Server) -> None:
        await server.app.submit_many("mail", [1] * 50, delay=60)
        preview = await preview_of(admin, "cancel", "type:mail", rate=5)
        run = (await admin.do("POST", "/bulk", {"preview": preview["preview"]}))["id"]

        async def begun() -> bool:
            return bool((await admin.read(f"/bulk/{run}"))["done"])

        await eventually(begun)
        shown = await admin.do("DELETE", f"/bulk/{run}")
        assert shown["state"] == "stopped"
        assert 0 < shown["done"] < 50
        assert (await statuses(admin, "mail")).count("cancelled") == shown["done"]
        assert (await admin.read(f"/bulk/{run}"))["ended_at"] is not None

    async def test_its_begin_and_its_end_are_in_the_audit_log(self, admin: Client, server: Server) -> None:
        await server.app.submit_many("mail", [1] * 3, delay=60)
        await done(admin, "cancel", "type:mail")

        async def told() -> Any:
            found = (await admin.read("/audit"))["items"]
            return [(each["what"], each["target"], each["detail"]) for each in found] if len(found) == 2 else None

        assert await eventually(told) == [
            ("ended a bulk action: done", "cancel", "type:mail: 3 done, 0 refused"),
            ("began a bulk action", "cancel", "type:mail: 3 expected"),
        ]

    async def test_one_that_is_not_known_is_404(self, admin: Client, server: Server) -> None:
        assert (await admin.get("/bulk/no-such")).status_code == 404
        assert (await admin.ask("DELETE", "/bulk/no-such")).status_code == 404
        await server.app.submit_many("mail", [1] * 3, delay=60)
        run = await done(admin, "cancel", "type:mail")
        assert (await admin.get(f"/bulk/{run['id']}", ns=OTHER)).status_code == 404


class TestHandles:
    async def test_the_handle_of_somebody_else_is_refused(self, server: Server) -> None:
        one = await server.as_role(Role.OPERATOR, name="ines")
        other = await server.as_role(Role.OPERATOR, name="olga")
        preview = await preview_of(one, "cancel", "type:mail")
        answer = await other.post("/bulk", {"preview": preview["preview"]})
        assert (answer.status_code, answer.json()["code"]) == (400, "bad_preview")

    async def test_also_of_somebody_else_of_the_same_name(self, server: Server) -> None:
        one, other = [await server.as_role(Role.OPERATOR, name="deploy") for _ in range(2)]
        preview = await preview_of(one, "cancel", "type:mail")
        assert (await other.post("/bulk", {"preview": preview["preview"]})).status_code == 400
        assert (await one.post("/bulk", {"preview": preview["preview"]})).status_code == 202

    async def test_it_is_of_one_namespace(self, server: Server) -> None:
        everywhere = await server.as_role(Role.ADMIN)
        preview = await preview_of(everywhere, "cancel", "type:mail")
        answer = await everywhere.post("/bulk", {"preview": preview["preview"]}, ns=OTHER)
        assert (answer.status_code, answer.json()["code"]) == (400, "bad_preview")
        assert (await everywhere.post("/bulk", {"preview": preview["preview"]}, ns=HOME)).status_code == 202

    async def test_it_is_over_after_ten_minutes(self, timed: Server, clock: ManualClock) -> None:
        admin = await timed.as_role("admin")
        preview = (await preview_of(admin, "cancel", "type:mail"))["preview"]
        clock.advance(600)
        assert (await admin.post("/bulk", {"preview": preview})).status_code == 202
        clock.advance(1)
        late = await admin.post("/bulk", {"preview": preview})
        assert (late.status_code, late.json()["code"]) == (410, "preview_over")

    async def test_one_that_was_changed_is_refused(self, admin: Client) -> None:
        handle = (await preview_of(admin, "cancel", "type:mail"))["preview"]
        place = len(handle) // 2
        forged = handle[:place] + ("A" if handle[place] != "A" else "B") + handle[place + 1 :]
        for each in (forged, handle[:-8], "", "x", "ä" * 50, "A" * 8000, "====", handle[4:]):
            answer = await admin.post("/bulk", {"preview": each})
            assert (answer.status_code, answer.json()["code"]) == (400, "bad_preview"), each

    async def test_all_servers_of_a_store_know_it(self, url: str) -> None:
        async with serving(url) as first, serving(url) as second:
            token = await first.token("admin")
            one, two = await first.with_token(token), await second.with_token(token)
            preview = await preview_of(one, "cancel", "type:mail")
            assert (await two.post("/bulk", {"preview": preview["preview"]})).status_code == 202


class TestSingleUse:
    async def test_one_is_used_once_and_the_second_is_told_the_run(self, any_url: str) -> None:
        async with serving(any_url) as server:
            server.app.task("mail")(lambda number: None)
            admin = await server.as_role("admin")
            await server.app.submit_many("mail", [1] * 3, delay=3600)
            handle = (await preview_of(admin, "reschedule", "type:mail", delay=60))["preview"]
            first = await admin.do("POST", "/bulk", {"preview": handle})
            again = await admin.post("/bulk", {"preview": handle})
            assert (again.status_code, again.json()["code"]) == (409, "preview_used")
            assert again.json()["existing_id"] == first["id"]
            await ended(admin, first["id"])
            assert (await admin.post("/bulk", {"preview": handle})).status_code == 409

    async def test_of_two_at_once_one_begins(self, admin: Client, server: Server) -> None:
        await server.app.submit_many("mail", [1] * 3, delay=3600)
        handle = (await preview_of(admin, "cancel", "type:mail"))["preview"]
        answers = await asyncio.gather(*(admin.post("/bulk", {"preview": handle}) for _ in range(5)))
        assert sorted(each.status_code for each in answers) == [202, 409, 409, 409, 409]

    async def test_another_server_of_the_store_knows_that_too(self, url: str) -> None:
        async with serving(url) as one, serving(url) as two:
            token = await one.token("admin")
            here, there = await one.with_token(token), await two.with_token(token)
            await one.app.submit_many("mail", [1] * 3, delay=3600)
            handle = (await preview_of(here, "cancel", "type:mail"))["preview"]
            run = await here.do("POST", "/bulk", {"preview": handle})
            assert (await there.post("/bulk", {"preview": handle})).json()["existing_id"] == run["id"]

    async def test_those_that_are_over_are_forgotten(self, timed: Server, clock: ManualClock) -> None:
        admin = await timed.as_role("admin")
        for _ in range(3):
            handle = (await preview_of(admin, "cancel", "type:mail"))["preview"]
            await ended(admin, (await admin.do("POST", "/bulk", {"preview": handle}))["id"])
            clock.advance(601)
        store = await timed.app._access.open_store()
        assert len(await store.control.page(previews.KIND)) == 1

    async def test_too_many_are_refused_until_some_are_over(
        self, timed: Server, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(previews, "USED_MAX", 1)
        admin = await timed.as_role("admin")
        handles = [(await preview_of(admin, "cancel", f"type:mail{n}"))["preview"] for n in range(2)]
        await ended(admin, (await admin.do("POST", "/bulk", {"preview": handles[0]}))["id"])
        answer = await admin.post("/bulk", {"preview": handles[1]})
        assert (answer.status_code, answer.json()["code"]) == (429, "too_many_bulks")


class TestWhoIsOut:
    """A bulk action goes on only while whoever began it is let in."""

    async def run(self, server: Server, caller: Client) -> str:
        await server.app.submit_many("mail", [1] * 50, delay=3600)
        handle = (await preview_of(caller, "cancel", "type:mail", rate=5))["preview"]
        run: str = (await caller.do("POST", "/bulk", {"preview": handle}))["id"]
        return run

    async def test_one_of_a_revoked_token_stops(self, admin: Client, server: Server) -> None:
        operator = await server.as_role("operator", name="ines")
        run = await self.run(server, operator)
        (token,) = [each["id"] for each in await admin.read("/tokens") if each["name"] == "ines"]
        await admin.do("DELETE", f"/tokens/{token}")
        shown = await ended(admin, run)
        assert shown["state"] == "stopped"
        assert shown["done"] < 50
        assert "is no longer let in" in shown["errors"][0]

        async def told() -> bool:
            entries = (await admin.read("/audit"))["items"]
            return ("ines", "ended a bulk action: stopped") in [(each["who"], each["what"]) for each in entries]

        await eventually(told)

    async def test_one_of_a_session_that_was_ended_stops(self, admin: Client, server: Server) -> None:
        signed = await server.signed_in("operator")
        run = await self.run(server, signed)
        assert (await signed.ask("DELETE", "/session")).status_code in (200, 204)
        assert (await ended(admin, run))["state"] == "stopped"
