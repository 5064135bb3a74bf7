"""Sessions: a new id at every login, an idle and an absolute end, logout on the server, and revocation."""

from __future__ import annotations

import asyncio
import time

import httpx
import pytest

from tests.integration.apps import eventually
from tests.server.serving import OTHER, Server, serving
from tests.server.streaming import following
from tickwork.clock import ManualClock
from tickwork.errors import StoreFull
from tickwork.server import sessions
from tickwork.server.callers import Role
from tickwork.server.http.app import http_app
from tickwork.server.sessions import COOKIE, HOST_COOKIE, IDLE, WHOLE
from tickwork.store.contract import Store

DAY = 86_400


def cookie_of(answer: httpx.Response) -> tuple[str, set[str]]:
    """The value of the cookie that an answer sets, and its attributes."""
    text = answer.headers["set-cookie"]
    pair, *attributes = [part.strip() for part in text.split(";")]
    name, _, value = pair.partition("=")
    assert name in (COOKIE, HOST_COOKIE)
    return value, {each.lower() for each in attributes}


class TestSigningIn:
    async def test_the_cookie_is_for_this_server_and_not_for_scripts(self, server: Server) -> None:
        stranger = await server.stranger()
        answer = await stranger.post("/session", {"token": await server.token("viewer")})
        value, attributes = cookie_of(answer)
        assert answer.status_code == 200
        assert attributes >= {"httponly", "samesite=strict", "path=/"}
        assert not [each for each in attributes if each.startswith("domain")]
        assert len(value) >= 43
        assert (answer.json()["caller"]["role"], answer.json()["caller"]["name"]) == ("viewer", "the viewer")

    async def test_over_https_it_is_secure(self, server: Server) -> None:
        transport = httpx.ASGITransport(http_app(server.plane))
        async with httpx.AsyncClient(transport=transport, base_url="https://localhost") as caller:
            answer = await caller.post("/api/v1/session", json={"token": await server.token("viewer")})
            assert (await caller.get("/api/v1/status")).status_code == 200
            left = await caller.delete("/api/v1/session")
            assert (await caller.get("/api/v1/status")).status_code == 401
        for each in (answer, left):
            assert each.headers["set-cookie"].startswith("__Host-tickwork_session=")
            assert cookie_of(each)[1] >= {"secure", "path=/"}
            assert each.headers["strict-transport-security"]

    async def test_over_https_one_of_the_plain_name_is_none(self, server: Server) -> None:
        """A page of another name of this site, or one without TLS, could have set that."""
        caller = await server.signed_in(Role.VIEWER)
        transport = httpx.ASGITransport(http_app(server.plane))
        headers = {"cookie": f"{COOKIE}={caller.cookies[COOKIE]}"}
        async with httpx.AsyncClient(transport=transport, base_url="https://localhost") as secure:
            assert (await secure.get("/api/v1/status", headers=headers)).status_code == 401

    @pytest.mark.parametrize(
        ("proxies", "proto", "secure"),
        [(("127.0.0.1",), "https", True), (("127.0.0.1",), "HTTPS", True), (("127.0.0.1",), "http", False),
         (("127.0.0.1",), "https, http", False), ((), "https", False), (("10.0.0.0/8",), "https", False)],
    )  # fmt: skip
    async def test_a_listed_proxy_says_whether_it_is_https(
        self, proxies: tuple[str, ...], proto: str, secure: bool, url: str
    ) -> None:
        async with serving(url, server_proxies=proxies) as server:
            caller = await server.stranger(**{"x-forwarded-proto": proto})
            answer = await caller.post("/session", {"token": await server.token("viewer")})
            value, attributes = cookie_of(answer)
            name = HOST_COOKIE if secure else COOKIE
            assert answer.headers["set-cookie"].startswith(f"{name}=")
            assert ("secure" in attributes) is ("strict-transport-security" in answer.headers) is secure
            assert (await caller.ask("GET", "/status", headers={"cookie": f"{name}={value}"})).status_code == 200

    async def test_below_a_path_it_has_the_plain_name(self, server: Server) -> None:
        """The other one is for whole hosts."""
        transport = httpx.ASGITransport(http_app(server.plane), root_path="/tick")
        async with httpx.AsyncClient(transport=transport, base_url="https://localhost") as caller:
            answer = await caller.post("/tick/api/v1/session", json={"token": await server.token("viewer")})
            assert answer.headers["set-cookie"].startswith(f"{COOKIE}=")
            assert cookie_of(answer)[1] >= {"secure", "path=/tick/"}
            assert (await caller.get("/tick/api/v1/status")).status_code == 200

    async def test_every_login_has_a_new_id_which_is_kept_as_a_hash(self, server: Server) -> None:
        token = await server.token("viewer")
        stranger = await server.stranger()
        stranger.cookies.set(COOKIE, "chosen-by-somebody-else")
        values = [cookie_of(await stranger.post("/session", {"token": token}))[0] for _ in range(2)]
        assert len({*values, "chosen-by-somebody-else"}) == 3
        kept = await (await server.app._access.open_store()).control.page("sessions")
        assert len(kept) == 2
        for value in values:
            assert not any(value in each.name + each.text for each in kept)

    async def test_a_token_of_a_worker_is_for_programs(self, server: Server) -> None:
        answer = await (await server.stranger()).post("/session", {"token": await server.token("worker")})
        assert (answer.status_code, answer.json()["code"]) == (403, "not_for_people")
        assert "set-cookie" not in answer.headers

    async def test_a_wrong_token_begins_none(self, server: Server) -> None:
        for token in ("x", "tw_a_b", "tw_aaaaaaaaaaaa_x"):
            answer = await (await server.stranger()).post("/session", {"token": token})
            assert answer.status_code == 401
            assert "set-cookie" not in answer.headers

    async def test_a_session_may_what_its_token_may(self, server: Server) -> None:
        viewer = await server.signed_in(Role.VIEWER, "home")
        assert (await viewer.get("/status")).status_code == 200
        assert (await viewer.post("/queues/q/pause", {})).status_code == 403
        assert (await viewer.get("/status", ns=OTHER)).status_code == 404

    async def test_a_stranger_is_told_nothing(self, server: Server) -> None:
        assert await (await server.stranger()).read("/session") == {
            "caller": None, "namespace": None, "namespaces": [], "version": None, "masked": False,
        }  # fmt: skip

    @pytest.mark.parametrize("value", ["", "x", "a b", "ä", "x" * 5000, "../..", "%00"])
    async def test_what_is_no_session_is_nobody(self, value: str, server: Server) -> None:
        stranger = await server.stranger()
        headers = {b"cookie": f"{COOKIE}={value}".encode("latin-1")}
        assert (await stranger.ask("GET", "/status", headers=headers)).status_code == 401

    async def test_the_number_of_sessions_has_a_bound(self, timed: Server, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(sessions, "SESSIONS_MAX", 2)
        token = await timed.token("viewer")
        stranger = await timed.stranger()
        for expected in (200, 200, 503):
            assert (await stranger.post("/session", {"token": token})).status_code == expected

    async def test_a_token_has_some_of_them_and_the_oldest_goes(
        self, timed: Server, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(sessions, "SESSIONS_OF_ONE", 3)
        monkeypatch.setattr(sessions, "FRESH", 0.0)
        token, other = await timed.token("viewer"), await timed.signed_in(Role.VIEWER)
        people = [await timed.stranger() for _ in range(5)]
        for each in people:
            clock.advance(1)
            assert (await each.post("/session", {"token": token})).status_code == 200
        assert [(await each.get("/status")).status_code for each in people] == [401, 401, 200, 200, 200]
        assert (await other.get("/status")).status_code == 200
        assert len(await (await timed.plane.home.store()).control.page("sessions")) == 4

    async def test_one_who_signs_in_all_the_time_keeps_nobody_out(
        self, timed: Server, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(sessions, "SESSIONS_MAX", 30)
        token, stranger = await timed.token("viewer"), await timed.stranger()
        answers = await asyncio.gather(*(stranger.post("/session", {"token": token}) for _ in range(25)))
        answers += [await stranger.post("/session", {"token": token}) for _ in range(10)]
        assert {each.status_code for each in answers} == {200}
        await timed.signed_in(Role.VIEWER)

    async def test_sessions_of_tokens_that_are_gone_make_room(
        self, timed: Server, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(sessions, "SESSIONS_MAX", 2)
        token = await timed.token("viewer")
        for _ in range(2):
            assert (await (await timed.stranger()).post("/session", {"token": token})).status_code == 200
        await timed.plane.tokens.revoke(token.split("_")[1])
        await timed.signed_in(Role.VIEWER)

    async def test_one_that_cannot_be_read_is_none(self, timed: Server, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(sessions, "SESSIONS_MAX", 2)
        control = (await timed.plane.home.store()).control
        caller = await timed.signed_in(Role.VIEWER)
        (found,) = await control.page("sessions")
        await control.swap("sessions", found.name, found.text, "{no json")
        await control.swap("sessions", "other", None, '{"role":"emperor"}')
        assert (await caller.get("/status")).status_code == 401
        await timed.signed_in(Role.VIEWER)


class TestEnds:
    async def test_one_that_rests_for_a_day_is_over(self, timed: Server, clock: ManualClock) -> None:
        caller = await timed.signed_in(Role.VIEWER)
        for _ in range(3):
            clock.advance(DAY - 400)
            assert (await caller.get("/status")).status_code == 200
        clock.advance(DAY)
        assert (await caller.get("/status")).status_code == 401

    async def test_one_that_is_used_is_over_after_a_week(self, timed: Server, clock: ManualClock) -> None:
        caller = await timed.signed_in(Role.VIEWER)
        for _ in range(13):
            clock.advance(DAY / 2)
            assert (await caller.get("/status")).status_code == 200
        clock.advance(DAY / 2)
        assert (await caller.get("/status")).status_code == 401
        assert (IDLE, WHOLE) == (DAY * 1000, 7 * DAY * 1000)

    async def test_signing_out_ends_it_on_the_server(self, server: Server) -> None:
        caller = await server.signed_in(Role.VIEWER)
        stolen = caller.cookies[COOKIE]
        answer = await caller.ask("DELETE", "/session")
        assert answer.status_code == 200
        value, attributes = cookie_of(answer)
        assert value.strip('"') == ""
        assert "max-age=0" in attributes
        thief = await server.stranger(cookie=f"{COOKIE}={stolen}")
        assert (await thief.get("/status")).status_code == 401
        assert await (await server.app._access.open_store()).control.page("sessions") == []

    async def test_signing_out_without_a_session_does_no_harm(self, server: Server) -> None:
        assert (await (await server.stranger()).ask("DELETE", "/session")).status_code == 200

    async def test_it_ends_with_its_token(self, server: Server) -> None:
        token = await server.token("viewer")
        caller = await server.stranger()
        await caller.post("/session", {"token": token})
        assert (await caller.get("/status")).status_code == 200
        await server.plane.tokens.revoke(token.split("_")[1])
        assert (await caller.get("/status")).status_code == 401

    async def test_it_ends_when_its_token_expires(self, timed: Server, clock: ManualClock) -> None:
        token = await timed.token("viewer", expires=60)
        caller = await timed.stranger()
        await caller.post("/session", {"token": token})
        clock.advance(61)
        assert (await caller.get("/status")).status_code == 401


class TestRevocation:
    @pytest.mark.parametrize("by_session", [False, True])
    async def test_open_streams_end_within_five_seconds(self, by_session: bool, url: str) -> None:
        """Also when it is revoked by another server, which cannot tell this one."""
        async with serving(url) as here, serving(url) as there:
            token = await here.token("viewer")
            caller = await there.with_token(None if by_session else token)
            if by_session:
                await caller.post("/session", {"token": token})
            async with following(caller) as stream:
                await stream.frame("tick")
                began = time.monotonic()
                await here.plane.tokens.revoke(token.split("_")[1])
                await stream.ends(5.0)
            assert time.monotonic() - began < 5.0
            await eventually(lambda: not there.plane._streams)

    async def test_signing_out_ends_the_streams_of_the_session(self, server: Server) -> None:
        caller = await server.signed_in(Role.VIEWER)
        async with following(caller) as stream:
            await stream.frame("tick")
            await caller.ask("DELETE", "/session")
            await stream.ends(5.0)

    async def test_streams_of_others_go_on(self, server: Server) -> None:
        token = await server.token("viewer", name="leaver")
        stays, leaves = await server.as_role("viewer", name="stays"), await server.with_token(token)
        async with following(stays) as one, following(leaves) as other:
            await server.plane.tokens.revoke(token.split("_")[1])
            await other.ends(5.0)
            await server.app.submit("mail", id="t")
            assert [each["id"] for each in await one.facts()] == ["t"]

    async def test_a_stop_of_the_server_ends_all_streams(self, url: str) -> None:
        async with serving(url) as server:
            caller = await server.as_role("viewer")
            async with asyncio.TaskGroup() as group, following(caller) as stream:
                group.create_task(server.plane.close())
                await stream.ends(5.0)


class TestFullStores:
    """A store that takes no writes can still be read, by those who have a token or a session already."""

    async def test_a_token_is_good_though_its_use_cannot_be_noted(
        self, server: Server, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        viewer = await server.as_role("viewer")
        tried = _fill(await server.plane.home.store(), monkeypatch)
        for _ in range(5):
            assert (await viewer.get("/status")).status_code == 200
        assert set(tried) == {"tokens"}
        assert len(tried) < 5  # not with every request

    async def test_so_is_a_session(self, timed: Server, clock: ManualClock, monkeypatch: pytest.MonkeyPatch) -> None:
        viewer = await timed.signed_in(Role.VIEWER)
        clock.advance(sessions.SEEN_EVERY / 1000 + 1)
        tried = _fill(await timed.plane.home.store(), monkeypatch)
        for _ in range(5):
            assert (await viewer.get("/status")).status_code == 200
        assert set(tried) == {"sessions"}


def _fill(store: Store, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Lets every write of a document fail; answers of which kinds they were."""
    tried: list[str] = []

    async def full(kind: str, *_: object) -> bool:
        tried.append(kind)
        raise StoreFull("no memory left")

    monkeypatch.setattr(store.control, "swap", full)
    return tried
