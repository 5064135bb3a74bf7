"""Options, findings, saved views and tokens over the API."""

from __future__ import annotations

from typing import Any

import pytest

from tests.integration.apps import eventually
from tests.server.serving import HOME, MAKER, OTHER, Client, Server, serving
from tests.support.redis_store import NAMESPACE, SERVER, WORKER, empty_redis, restricted_redis
from tickwork import ConfigError, Scheduler
from tickwork.clock import ManualClock
from tickwork.server import tokens
from tickwork.server.callers import Caller, Role
from tickwork.server.problems import Refused
from tickwork.store.contract import NotPermitted


class TestOptions:
    async def test_each_says_its_value_and_where_it_comes_from(self, admin: Client) -> None:
        rows = {each["name"]: each for each in await admin.read("/config")}
        assert rows["namespace"] == {"name": "namespace", "value": "'home'", "origin": "argument"}
        assert rows["lease_ttl"]["origin"] == "default"

    async def test_what_is_right_and_wrong_with_the_store(self, admin: Client) -> None:
        found = await admin.read("/doctor")
        assert {each["level"] for each in found} <= {"ok", "warning", "problem"}
        texts = [each["text"] for each in found]
        assert "no worker is up" in texts, "as `tickwork doctor` says"
        assert not [text for text in texts if "audit" in text], "that one looks at every task"


class TestViews:
    async def test_a_filter_is_saved_replaced_and_forgotten(self, server: Server) -> None:
        operator, viewer = await server.as_role("operator", name="ines"), await server.as_role("viewer")
        await operator.do("PUT", "/views/dead-mail", {"filter": "status:dead type:mail"})
        await operator.do("PUT", "/views/dead-mail", {"filter": "status:dead"})
        assert await viewer.read("/views") == [{"name": "dead-mail", "filter": "status:dead", "by": "ines"}]
        assert await operator.do("DELETE", "/views/dead-mail") == {"changed": True}
        assert await operator.do("DELETE", "/views/dead-mail") == {"changed": False}
        assert await viewer.read("/views") == []

    @pytest.mark.parametrize(
        ("name", "filter"), [("a%20b", "status:dead"), ("ok", "nope:1"), ("ok", "x" * 2001), ("x" * 129, "status:dead")]
    )
    async def test_what_is_no_name_or_no_filter_is_refused(self, name: str, filter: str, admin: Client) -> None:
        assert (await admin.ask("PUT", f"/views/{name}", {"filter": filter})).status_code == 400
        assert await admin.read("/views") == []

    async def test_views_are_of_one_namespace(self, admin: Client) -> None:
        await admin.do("PUT", "/views/mine", {"filter": "status:dead"})
        assert await admin.read("/views", ns=OTHER) == []


class TestTokens:
    async def test_one_is_shown_once_and_kept_as_a_hash(self, admin: Client, server: Server) -> None:
        answer = await admin.post("/tokens", {"name": "deploy", "role": "operator", "namespaces": [HOME]})
        assert answer.status_code == 201
        made = answer.json()
        assert made["token"].startswith(f"tw_{made['info']['id']}_")
        secret = made["token"].split("_", 2)[2]
        assert len(secret) >= 43  # 256 bits
        listed = await admin.get("/tokens")
        assert secret not in listed.text
        assert "digest" not in listed.text
        stored = await (await server.app._access.open_store()).control.get("tokens", made["info"]["id"])
        assert stored is not None
        assert secret not in stored
        assert (await (await server.with_token(made["token"])).read("/session"))["caller"]["name"] == "deploy"

    async def test_when_it_was_used_is_known(self, timed: Server, clock: ManualClock) -> None:
        admin = await timed.as_role("admin")
        made = (await admin.do("POST", "/tokens", {"name": "x", "role": "viewer"}))["token"]
        clock.advance(100)
        await (await timed.with_token(made)).read("/status")
        (found,) = [each for each in await admin.read("/tokens") if each["name"] == "x"]
        assert found["used_at"] == "2030-03-17T17:48:20Z"

    async def test_it_ends_when_it_said(self, timed: Server, clock: ManualClock) -> None:
        admin = await timed.as_role("admin")
        made = (await admin.do("POST", "/tokens", {"name": "x", "role": "viewer", "expires": 60}))["token"]
        caller = await timed.with_token(made)
        assert (await caller.get("/status")).status_code == 200
        clock.advance(59.9)
        assert (await caller.get("/status")).status_code == 200
        clock.advance(0.2)
        assert (await caller.get("/status")).status_code == 401

    async def test_one_that_is_revoked_is_refused_at_once_here(self, admin: Client, server: Server) -> None:
        made = await admin.do("POST", "/tokens", {"name": "x", "role": "viewer"})
        caller = await server.with_token(made["token"])
        assert (await caller.get("/status")).status_code == 200
        assert (await admin.do("DELETE", f"/tokens/{made['info']['id']}"))["name"] == "x"
        assert (await caller.get("/status")).status_code == 401
        assert (await admin.ask("DELETE", f"/tokens/{made['info']['id']}")).status_code == 404

    async def test_and_within_five_seconds_by_another_server(self, url: str) -> None:
        assert tokens.FRESH <= 2.5
        async with serving(url) as here, serving(url) as there:
            token = await here.token("viewer")
            caller = await there.with_token(token)
            assert (await caller.get("/status")).status_code == 200
            await here.plane.tokens.revoke(token.split("_")[1])

            async def is_out() -> bool:
                return (await caller.get("/status")).status_code == 401

            await eventually(is_out, timeout=5)

    async def test_an_administrator_of_one_namespace_grants_no_more(self, server: Server, url: str) -> None:
        local = await server.as_role("admin", HOME)
        for namespaces in (["*"], [OTHER], [HOME, OTHER], [HOME, "*"]):
            answer = await local.post("/tokens", {"name": "x", "role": "viewer", "namespaces": namespaces})
            assert (answer.status_code, answer.json()["code"]) == (403, "more_than_you"), namespaces
        assert (await local.post("/tokens", {"name": "x", "role": "admin", "namespaces": [HOME]})).status_code == 201
        without = await local.post("/tokens", {"name": "x", "role": "viewer"})
        assert without.status_code == 403, "the default is all namespaces"

    async def test_nor_revokes_or_sees_what_is_for_others(self, server: Server) -> None:
        local, everywhere = await server.as_role("admin", HOME), await server.as_role("admin", name="everywhere")
        both = await everywhere.do("POST", "/tokens", {"name": "both", "role": "viewer", "namespaces": [HOME, OTHER]})
        answer = await local.ask("DELETE", f"/tokens/{both['info']['id']}")
        assert (answer.status_code, answer.json()["code"]) == (403, "more_than_you")
        assert "everywhere" not in {each["name"] for each in await local.read("/tokens")}
        assert (await everywhere.get("/tokens")).text.count('"both"') == 1

    async def test_no_role_grants_more_than_it_has(self, server: Server) -> None:
        for maker in Role:
            for role in Role:
                caller = Caller("m", maker)
                if role.rights <= maker.rights:
                    await server.plane.tokens.make("x", role, caller)
                else:
                    with pytest.raises(Refused) as refused:
                        await server.plane.tokens.make("x", role, caller)
                    assert refused.value.problem.status == 403

    @pytest.mark.parametrize(
        "body",
        [
            {}, {"name": "x"}, {"name": "", "role": "viewer"}, {"name": "x", "role": "root"},
            {"name": "x" * 101, "role": "viewer"}, {"name": "x", "role": "viewer", "namespaces": []},
            {"name": "x", "role": "viewer", "namespaces": ["a b"]}, {"name": "x", "role": "viewer", "expires": 0},
            {"name": "x", "role": "viewer", "expires": -1}, {"name": "x", "role": "viewer", "expires": 1e12},
            {"name": "x", "role": "viewer", "expires": 0.1},
        ],
    )  # fmt: skip
    async def test_what_cannot_be_is_refused(self, body: dict[str, Any], admin: Client) -> None:
        assert (await admin.post("/tokens", body)).status_code == 400
        assert len(await admin.read("/tokens")) == 1

    async def test_there_is_a_bound(self, admin: Client, server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(tokens, "TOKENS_MAX", 3)
        for _ in range(2):
            await admin.do("POST", "/tokens", {"name": "x", "role": "viewer"})
        answer = await admin.post("/tokens", {"name": "x", "role": "viewer"})
        assert (answer.status_code, answer.json()["code"]) == (409, "too_many_tokens")

    async def test_too_many_wrong_ones_from_one_address_are_slowed_down(self, server: Server) -> None:
        stranger = await server.with_token("tw_aaaaaaaaaaaa_wrong")
        answers = [await stranger.get("/status") for _ in range(12)]
        assert [each.status_code for each in answers[:11]] == [401] * 11
        assert answers[11].status_code == 429
        assert int(answers[11].headers["retry-after"]) >= 1
        signing = await (await server.stranger()).post("/session", {"token": "tw_aaaaaaaaaaaa_wrong"})
        assert signing.status_code == 429

    async def test_a_worker_of_redis_cannot_read_them(self, server: Server) -> None:
        """Its user has no right to the keys under which they lie; see also `tests/contract/test_control.py`."""
        allowed = Scheduler(restricted_redis(user=SERVER), namespace=NAMESPACE)
        url = allowed.config.store
        assert url is not None
        worker = Scheduler(url.replace(f"{SERVER}:", f"{WORKER}:"), namespace=NAMESPACE)
        try:
            kept = tokens.Tokens(allowed._access.open_store)
            made = await kept.make("x", Role.ADMIN, MAKER)
            assert await kept.find(made.token) is not None
            control = (await worker._access.open_store()).control
            for attempt in (
                control.get("tokens", made.info.id), control.page("tokens"),
                control.swap("tokens", "mine", None, "{}"), control.read("audit.changes"),
                control.append("audit.changes", ["x"], 1),
            ):  # fmt: skip
                with pytest.raises(NotPermitted):
                    await attempt
        finally:
            await allowed.close()
            await worker.close()


async def test_each_namespace_says_how_many_partitions_it_has() -> None:
    url = empty_redis()
    made = Scheduler(url, namespace=OTHER, partitions=4)
    await made.submit("mail", id="there")
    await made.close()
    async with serving(url) as server:
        admin = await server.as_role("admin")
        assert (await admin.read("/tasks/there", ns=OTHER))["status"] == "ready"
        assert (await admin.read("/status", ns=OTHER))["tasks"]["ready"] == 1


class TestUnreadableTokens:
    """As of a newer version: they are left out, and told in the log once."""

    TEXTS = ('{"id":"aaaaaaaaaaaa","name":"x"}', "no json", "")

    async def test_they_are_left_out(self, url: str, caplog: pytest.LogCaptureFixture) -> None:
        async with serving(url) as server:
            admin = await server.as_role("admin")
            control = (await server.plane.home.store()).control
            (good,) = await control.page("tokens")
            emperor = good.text.replace('"admin"', '"emperor"').replace(good.name, "eeeeeeeeeeee")
            for number, text in enumerate((*self.TEXTS, emperor)):
                await control.swap("tokens", f"bad{number}", None, text)
            for _ in range(2):
                assert [each["id"] for each in await admin.read("/tokens")] == [good.name]
            forged = await server.with_token(f"tw_bad3_{'s' * 43}")
            assert (await forged.get("/status")).json()["code"] == "bad_token"
            assert (await admin.ask("DELETE", "/tokens/bad3")).json()["code"] == "token_not_found"
        told = [each.getMessage() for each in caplog.records if "cannot be read" in each.getMessage()]
        assert sorted(each.partition(" cannot")[0] for each in told) == [f"token bad{number}" for number in range(4)]

    async def test_a_server_starts_with_them_and_they_let_nobody_in(self, url: str) -> None:
        app = Scheduler(url, namespace=HOME, host="0.0.0.0", server_port=0)
        await (await app._access.open_store()).control.swap("tokens", "bad", None, "no json")
        with pytest.raises(ConfigError, match="nobody could sign in"):
            async with serving(url, app=app):
                pass

    async def test_one_with_more_than_this_version_knows_can_be_revoked(self, server: Server) -> None:
        token = await server.token("viewer")
        control = (await server.plane.home.store()).control
        (found,) = await control.page("tokens")
        await control.swap("tokens", found.name, found.text, found.text.replace("{", '{"colour":"red",', 1))
        assert (await server.plane.tokens.revoke(token.split("_")[1])).id == found.name
        assert await control.page("tokens") == []
