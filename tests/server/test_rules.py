"""Dead letters, failure groups, limits, breakers and switches over the API."""

from __future__ import annotations

from typing import Any

import pytest

from tests.server.serving import Client, Server


class TestDeadLetters:
    async def test_they_are_listed_newest_first_and_by_pages(self, admin: Client, server: Server) -> None:
        made = [await server.dead(id=f"d{number}") for number in range(5)]
        seen: list[str] = []
        cursor: str | None = None
        while True:
            page = await admin.read("/dead-letters", limit=2, **({} if cursor is None else {"cursor": cursor}))
            seen += [each["id"] for each in page["items"]]
            cursor = page["cursor"]
            if cursor is None:
                break
        assert seen == made[::-1]

    async def test_one_is_run_again_or_removed(self, admin: Client, server: Server) -> None:
        one, other = await server.dead(), await server.dead()
        assert (await admin.do("POST", f"/dead-letters/{one}/retry", {}))["status"] == "ready"
        assert (await admin.ask("DELETE", f"/dead-letters/{other}")).status_code == 204
        assert (await admin.get(f"/tasks/{other}")).status_code == 404

    async def test_what_is_no_dead_letter_is_refused(self, admin: Client, server: Server) -> None:
        task = await server.succeeded()
        assert (await admin.post(f"/dead-letters/{task}/retry", {})).status_code in (404, 409)
        assert (await admin.ask("DELETE", f"/dead-letters/{task}")).status_code in (404, 409)
        assert (await admin.read(f"/tasks/{task}"))["status"] == "success"
        assert (await admin.post("/dead-letters/no-such/retry", {})).status_code == 404


class TestFailures:
    async def test_they_are_grouped_by_what_went_wrong(self, admin: Client, server: Server) -> None:
        await server.count_up()
        for number in range(3):
            await server.dead(f"ValueError: order {number} is broken", type="order")
        await server.retrying("KeyError: 'x'", type="mail")
        await server.count_up()
        found = await admin.read("/failures")
        assert (found["dead"], found["retrying"]) == (3, 1)
        by_error = {each["error"]: each for each in found["items"]}
        assert (by_error["ValueError"]["total"], by_error["ValueError"]["message"]) == (3, "order # is broken")
        only = (await admin.read("/failures", type="mail"))["items"]
        assert [each["error"] for each in only] == ["KeyError"]
        one = by_error["ValueError"]
        assert await admin.read(f"/failures/{one['id']}") == one
        tasks = (await admin.read("/tasks", q=f"group:{one['id']}"))["items"]
        assert {each["type"] for each in tasks} == {"order"}

    async def test_a_group_that_is_not_there_is_404(self, admin: Client) -> None:
        answer = await admin.get("/failures/no-such")
        assert (answer.status_code, answer.json()["code"]) == (404, "group_not_found")


class TestLimits:
    async def test_a_limit_is_set_and_removed(self, server: Server) -> None:
        operator = await server.as_role("operator", name="ines")
        body = {"of": "type:mail", "rate": "100/m", "burst": 5, "concurrency": 3, "note": "slow down"}
        (shown,) = await operator.do("PUT", "/limits", body)
        assert (shown["of"], shown["burst"], shown["concurrency"]) == ("type:mail", 5, 3)
        assert (shown["by"], shown["note"], shown["origin"]) == ("ines", "slow down", "hand")
        assert await operator.read("/limits") == [shown]
        body = {"of": "type:mail", "note": "it is over"}
        assert await operator.do("POST", "/limits/remove", body) == {"changed": True}
        assert await _told(operator) == ("removed a limit", "type:mail", "it is over")
        assert await operator.do("POST", "/limits/remove", {"of": "type:mail"}) == {"changed": False}
        assert await operator.read("/limits") == []

    @pytest.mark.parametrize(
        "body",
        [
            {}, {"of": "mail"}, {"of": "type:a b"}, {"of": "key:x", "rate": 1}, {"of": "type:a", "rate": "x"},
            {"of": "type:a", "rate": -1}, {"of": "type:a", "rate": "1" * 64}, {"of": "type:a", "rate": "1" * 65},
            {"of": "type:a", "rate": 1e308}, {"of": "type:a", "concurrency": 0}, {"of": "type:a", "per": "x"},
            {"of": "type:a\n", "rate": 1}, {"of": "type:" + "a" * 700, "rate": 1}, {"of": "type:a", "rate": "1e-400"},
        ],
    )  # fmt: skip
    async def test_what_cannot_be_is_refused(self, body: dict[str, Any], admin: Client) -> None:
        answer = await admin.ask("PUT", "/limits", body)
        assert answer.status_code == 400, answer.text
        assert await admin.read("/limits") == []

    async def test_a_breaker_is_opened_and_closed(self, server: Server) -> None:
        operator = await server.as_role("operator", name="ines")
        body = {"of": "type:mail", "note": "down", "until": "2099-01-01T00:00:00Z"}
        shown = await operator.do("POST", "/breakers/open", body)
        assert (shown["state"], shown["by"], shown["by_hand"]) == ("open", "ines", True)
        assert await operator.read("/breakers") == [shown]
        body = {"of": "type:mail", "note": "it is mended"}
        assert await operator.do("POST", "/breakers/close", body) == {"changed": True}
        assert await _told(operator) == ("closed a breaker", "type:mail", "it is mended")
        assert await operator.read("/breakers") == []

    async def test_switches_stop_types_keys_and_tags(self, server: Server) -> None:
        operator = await server.as_role("operator", name="ines")
        for of in ("type:mail", "key:acme corp", "tag:customer=acme"):
            await operator.do("POST", "/switches/off", {"of": of, "note": "why"})
        found = await operator.read("/switches")
        assert [each["of"] for each in found] == ["key:acme corp", "tag:customer=acme", "type:mail"]
        assert {(each["by"], each["note"]) for each in found} == {("ines", "why")}
        body = {"of": "key:acme corp", "note": "they have paid"}
        assert await operator.do("POST", "/switches/on", body) == {"changed": True}
        assert await _told(operator) == ("switched on", "key:acme corp", "they have paid")
        assert await operator.do("POST", "/switches/on", {"of": "key:acme corp"}) == {"changed": False}

    @pytest.mark.parametrize(
        "body",
        [
            {"of": "x"}, {"of": "queue:a"}, {"of": "type:"}, {"of": "tag:a"}, {"of": "type:a", "note": "x" * 2001},
            {"of": "type:a", "until": "2030-01-01T00:00:00"}, {"of": "type:a", "until": "0001-01-01T00:00:00+14:00"},
            {"of": "type:a", "until": "9999-12-31T23:59:59-14:00"}, {"of": "key:" + "x" * 600},
        ],
    )  # fmt: skip
    @pytest.mark.parametrize("path", ["/switches/off", "/breakers/open"])
    async def test_a_stop_that_cannot_be_is_refused(self, path: str, body: dict[str, Any], admin: Client) -> None:
        answer = await admin.post(path, body)
        assert answer.status_code == 400, answer.text


async def _told(client: Client) -> tuple[str, str, str]:
    """What the newest entry of the audit log says."""
    (entry,) = (await client.read("/audit", limit=1))["items"]
    return entry["what"], entry["target"], entry["detail"]
