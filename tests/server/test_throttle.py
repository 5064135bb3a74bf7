"""Failed logins are slowed down, by whoever makes them, and by nobody else's."""

from __future__ import annotations

import pytest

from tests.server.grpc.calling import Failed, calling
from tests.server.serving import Server, serving
from tickwork.server import throttle
from tickwork.server.problems import Refused
from tickwork.server.throttle import FAILURES_MAX, REST, Throttle

FORGED = f"tw_{'a' * 12}_{'s' * 43}"


async def guess(server: Server, times: int, **headers: str) -> list[int]:
    caller = await server.with_token(FORGED, **headers)
    return [(await caller.get("/status")).status_code for _ in range(times)]


class TestOthers:
    async def test_a_token_that_counts_gets_in_whoever_else_fails(self, server: Server) -> None:
        """All of them come from one address here, as behind a proxy or on a machine of many."""
        viewer, token = await server.as_role("viewer"), await server.token("viewer")
        assert (await guess(server, 15))[-1] == 429
        assert (await viewer.get("/status")).status_code == 200
        assert (await (await server.stranger()).post("/session", {"token": token})).status_code == 200
        wrong = await (await server.stranger()).post("/session", {"token": FORGED})
        assert (wrong.status_code, wrong.json()["code"]) == (429, "too_many_failures")
        assert int(wrong.headers["retry-after"]) >= 1

    async def test_so_it_does_by_grpc(self, url: str) -> None:
        async with calling(url) as api:
            guesser, viewer = await api.with_token(FORGED), await api.as_role("viewer")
            for _ in range(15):
                with pytest.raises(Failed) as failed:
                    await guesser.call("get_status")
            assert failed.value.code == "RESOURCE_EXHAUSTED"
            await viewer.call("get_status")


class TestProxies:
    async def test_each_client_of_a_listed_proxy_has_its_own_count(self, url: str) -> None:
        async with serving(url, server_proxies=("127.0.0.1", "10.0.0.0/8")) as server:
            assert (await guess(server, 15, **{"x-forwarded-for": "6.6.6.6"}))[-1] == 429
            assert await guess(server, 1, **{"x-forwarded-for": "7.7.7.7"}) == [401]
            assert await guess(server, 1, **{"x-forwarded-for": "6.6.6.6"}) == [429]

    @pytest.mark.parametrize(
        "hops", ["9.9.9.{}, 6.6.6.6", "9.9.9.{},6.6.6.6, 10.1.2.3", "x{}, 6.6.6.6:12{}", "6.6.6.6 ,10.0.0.1:80"]
    )
    async def test_it_is_the_last_hop_that_is_no_proxy(self, hops: str, url: str) -> None:
        """What stands before it, a client may have written."""
        async with serving(url, server_proxies=("127.0.0.1", "10.0.0.0/8")) as server:
            await guess(server, 11, **{"x-forwarded-for": "6.6.6.6"})
            for number in range(3):
                assert await guess(server, 1, **{"x-forwarded-for": hops.replace("{}", str(number))}) == [429]

    @pytest.mark.parametrize("hops", ["6.6.6.{}, unknown", "6.6.6.{}, 10.0.0.1,", "10.0.0.{}", "", "6.6.6.{}, _x"])
    async def test_where_that_cannot_be_told_it_is_the_proxy(self, hops: str, url: str) -> None:
        async with serving(url, server_proxies=("127.0.0.1", "10.0.0.0/8")) as server:
            answers = [await guess(server, 1, **{"x-forwarded-for": hops.replace("{}", str(n))}) for n in range(12)]
            assert answers[-1] == [429]

    async def test_addresses_of_version_6_have_brackets_or_none(self, url: str) -> None:
        async with serving(url, server_proxies=("127.0.0.1",)) as server:
            await guess(server, 11, **{"x-forwarded-for": "2001:db8::1"})
            for text in ("2001:db8::1", "[2001:db8::1]", "[2001:db8::1]:443"):
                assert await guess(server, 1, **{"x-forwarded-for": text}) == [429], text
            assert await guess(server, 1, **{"x-forwarded-for": "2001:db8::2"}) == [401]


class TestCounting:
    def test_failures_fade(self) -> None:
        now = 0.0
        counted = Throttle(lambda: now)
        for _ in range(FAILURES_MAX + 1):
            counted.check("a")
            counted.failed("a")
        with pytest.raises(Refused):
            counted.check("a")
        counted.check("b")
        now += REST + 0.1
        counted.check("a")

    def test_beyond_the_bound_of_addresses_all_new_ones_share_a_count(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(throttle, "CLIENTS_MAX", 5)
        counted = Throttle(lambda: 0.0)
        for number in range(5 + FAILURES_MAX + 1):
            counted.check(f"a{number}")
            counted.failed(f"a{number}")
        with pytest.raises(Refused, match="try again in"):
            counted.check("another")

    def test_one_that_is_counted_already_is_counted_on(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(throttle, "CLIENTS_MAX", 2)
        counted = Throttle(lambda: 0.0)
        for address in ("a", "b", *["a"] * FAILURES_MAX):
            counted.failed(address)
        with pytest.raises(Refused):
            counted.check("a")
        counted.check("b")
