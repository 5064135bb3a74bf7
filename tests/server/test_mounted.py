"""The control plane inside of somebody else's application."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx
from fastapi import FastAPI
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.routing import Mount, Route

from tests.server.serving import MAKER, Client
from tests.support.serving import served
from tickwork import Scheduler
from tickwork.server.callers import Role
from tickwork.server.sessions import COOKIE
from tickwork.server.tokens import Tokens


async def hello(_: Request) -> PlainTextResponse:
    return PlainTextResponse("hello")


@asynccontextmanager
async def mounted(url: str, outer: Any, path: str = "/ops", **options: Any) -> AsyncIterator[tuple[str, str]]:
    """The address of the outer application, and a token of an operator."""
    app = Scheduler(url, server_tokens=True, **options)
    try:
        token = (await Tokens(app._access.open_store).make("ines", Role.OPERATOR, MAKER)).token
        async with served(outer(app.asgi())) as address:
            yield f"{address}{path}", token
    finally:
        await app.close()


def starlette(inner: Any) -> Starlette:
    return Starlette(routes=[Route("/", hello), Mount("/ops", inner)])


def fastapi(inner: Any) -> FastAPI:
    outer = FastAPI()
    outer.mount("/ops", inner)
    return outer


async def test_servers_of_one_process_begin_and_end_in_any_order() -> None:
    """Their applications share the routes, and nothing that begins or ends."""
    apps = [Scheduler("memory://") for _ in range(2)]
    orders: list[asyncio.Queue[Any]] = [asyncio.Queue() for _ in apps]
    answers: list[asyncio.Queue[Any]] = [asyncio.Queue() for _ in apps]
    serving = [
        asyncio.ensure_future(app.asgi()({"type": "lifespan"}, order.get, answer.put))
        for app, order, answer in zip(apps, orders, answers, strict=True)
    ]
    for what in ("startup", "shutdown"):
        for order, answer in zip(orders, answers, strict=True):
            await order.put({"type": f"lifespan.{what}"})
            assert await answer.get() == {"type": f"lifespan.{what}.complete"}
    await asyncio.gather(*serving)
    for app in apps:
        await app.close()


async def test_closing_the_scheduler_ends_what_was_mounted(url: str) -> None:
    app = Scheduler(url)
    async with served(starlette(app.asgi())) as address:
        async with httpx.AsyncClient() as caller, caller.stream("GET", f"{address}/ops/api/v1/events/stream") as stream:
            lines = stream.aiter_lines()
            await anext(lines)
            await app.close()
            async with asyncio.timeout(10):
                assert [line async for line in lines if line.startswith("event: missed")] == []
        (plane,) = app._mounted
        assert plane.home.hub._tasks == []
        assert app._access.opened_store() is None, "nothing has opened it again"


class TestMounted:
    async def test_the_api_answers_below_the_path(self, url: str) -> None:
        for outer in (starlette, fastapi):
            async with mounted(url, outer) as (address, token):
                async with Client(address, {"authorization": f"Bearer {token}"}) as caller:
                    made = await caller.post("/tasks", {"type": "mail"})
                    assert made.status_code == 201
                    assert (await caller.read(f"/tasks/{made.json()['id']}"))["type"] == "mail"
                    assert (await caller.get("/openapi.json")).status_code == 200
                async with Client(address, {}) as stranger:
                    assert (await stranger.get("/status")).status_code == 401

    async def test_the_page_says_where_it_is(self, url: str) -> None:
        async with mounted(url, starlette) as (address, _), httpx.AsyncClient(trust_env=False) as browser:
            page = await browser.get(f"{address}/")
            deep = await browser.get(f"{address}/tasks/some-id")
            outer = await browser.get(address.removesuffix("/ops") + "/")
        for answer in (page, deep):
            assert answer.status_code == 200
            assert '<base href="/ops/">' in answer.text
            assert answer.headers["content-security-policy"]
        assert outer.text == "hello"
        assert "content-security-policy" not in outer.headers

    async def test_the_cookie_is_for_the_path_only(self, url: str) -> None:
        async with mounted(url, starlette) as (address, token), Client(address, {"x-tickwork-csrf": "1"}) as browser:
            answer = await browser.post("/session", {"token": token})
            assert answer.status_code == 200
            assert "path=/ops/" in answer.headers["set-cookie"].lower()
            assert (await browser.get("/status")).status_code == 200
            assert (await browser.post("/queues/q/pause", {})).status_code == 200
            outer = browser.build_request("GET", address.removesuffix("/ops") + "/")
            assert COOKIE not in outer.headers.get("cookie", "")
            gone = await browser.ask("DELETE", "/session")
            assert "path=/ops/" in gone.headers["set-cookie"].lower()
            assert (await browser.get("/status")).status_code == 401

    async def test_the_guard_stands_before_it_there_too(self, url: str) -> None:
        async with mounted(url, starlette) as (address, token):
            async with Client(address, {"authorization": f"Bearer {token}", "host": "evil.example"}) as caller:
                assert (await caller.get("/status")).status_code == 421
            async with Client(address, {"authorization": f"Bearer {token}", "origin": "http://evil.example"}) as caller:
                assert (await caller.post("/queues/q/pause", {})).status_code == 403
            async with httpx.AsyncClient(trust_env=False) as stranger:
                for path in ("//api/v1/status", "/api//v1/status"):
                    assert (await stranger.get(address + path)).status_code in (401, 404)

    async def test_its_own_names_are_named_by_an_option(self, url: str) -> None:
        async with mounted(url, starlette, server_hosts=("shop.example",)) as (address, token):
            headers = {"authorization": f"Bearer {token}", "host": "shop.example"}
            async with Client(address, headers) as caller:
                assert (await caller.get("/status")).status_code == 200

    async def test_a_path_that_only_begins_like_the_mount_is_not_below_it(self, url: str) -> None:
        def outer(inner: Any) -> Starlette:
            return Starlette(routes=[Mount("/api", inner)])

        async with mounted(url, outer, "/api") as (address, token):
            async with Client(address, {"authorization": f"Bearer {token}"}) as caller:
                assert (await caller.get("/status")).status_code == 200
            async with Client(address, {}) as stranger:
                assert (await stranger.get("/status")).status_code == 401


async def test_a_node_shows_its_own_metrics_on_the_port_of_the_api(url: str) -> None:
    app = Scheduler(url, server=True, server_port=0, metrics=True, metrics_port=0)

    @app.task
    async def greet() -> None: ...

    async with app, httpx.AsyncClient() as caller:
        await (await greet.submit()).result(timeout=10)
        text = (await caller.get(f"{app.server_url}/metrics")).text
        assert 'scheduler_task_executed_total{status="success",type="greet"} 1.0' in text
