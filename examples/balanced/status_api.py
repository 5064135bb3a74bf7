"""A small HTTP API beside a scheduler: submit a task, ask for it, for the workers, and for the whole."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
from aiohttp import web

from tickwork import Scheduler, Service, TaskNotFound, TickworkError


class StatusApi:
    def __init__(self, app: Scheduler, port: int = 0) -> None:
        self.address = ""
        self._app = app
        self._port = port
        self._stopped = asyncio.Event()
        routes = web.Application()
        routes.router.add_get("/status", self._status)
        routes.router.add_get("/workers", self._workers)
        routes.router.add_get("/tasks/{id}", self._task)
        routes.router.add_post("/tasks", self._submit)
        self._runner = web.AppRunner(routes)

    def service(self) -> Service:
        return Service("the status API", self._run, start=self._start, stop=self._stop)

    async def _start(self) -> None:
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", self._port).start()
        self.address = f"http://127.0.0.1:{self._runner.addresses[0][1]}"

    async def _run(self) -> None:
        await self._stopped.wait()

    async def _stop(self, grace: float) -> None:
        await self._runner.cleanup()
        self._stopped.set()

    async def _status(self, request: web.Request) -> web.Response:
        return answer(await self._app.status())

    async def _workers(self, request: web.Request) -> web.Response:
        return answer(await self._app.list_workers())

    async def _task(self, request: web.Request) -> web.Response:
        try:
            return answer(await self._app.get_task(request.match_info["id"]))
        except TaskNotFound as error:
            return answer({"error": str(error)}, 404)

    async def _submit(self, request: web.Request) -> web.Response:
        try:
            asked = msgspec.json.decode(await request.read(), type=dict[str, Any])
            task = await self._app.submit(asked["type"], asked["payload"])
        except (TickworkError, msgspec.DecodeError, KeyError) as error:
            return answer({"error": str(error)}, 400)
        return answer({"id": task.id}, 202)


def answer(value: object, status: int = 200) -> web.Response:
    return web.Response(body=msgspec.json.encode(value), content_type="application/json", status=status)
