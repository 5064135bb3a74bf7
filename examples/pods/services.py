"""The services outside: stock over HTTP, mail over gRPC. They know nothing of pods."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TypeAlias

import grpc.aio
import msgspec
from aiohttp import web

from tickwork.executors.grpc_gen.executor_pb2 import ExecuteRequest, ExecuteResponse
from tickwork.executors.grpc_gen.executor_pb2_grpc import ExecutorServicer, add_ExecutorServicer_to_server

Context: TypeAlias = "grpc.aio.ServicerContext[ExecuteRequest, ExecuteResponse]"


class Mail(ExecutorServicer):
    async def Execute(self, request: ExecuteRequest, context: Context) -> ExecuteResponse:  # noqa: N802
        letter = msgspec.json.decode(request.payload)
        return ExecuteResponse(message="sent", data=msgspec.json.encode(f"{letter['subject']} to {letter['to']}"))


async def count(request: web.Request) -> web.Response:
    return web.json_response({"warehouse": request.match_info["name"], "pieces": 1204})


@asynccontextmanager
async def services() -> AsyncIterator[tuple[str, str]]:
    """Serves both until the end of the block, and gives their addresses."""
    stock = web.Application()
    stock.router.add_post("/warehouses/{name}/count", count)
    runner = web.AppRunner(stock)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    mail = grpc.aio.server()
    add_ExecutorServicer_to_server(Mail(), mail)
    mail_port = mail.add_insecure_port("127.0.0.1:0")
    await mail.start()
    try:
        yield f"http://127.0.0.1:{runner.addresses[0][1]}", f"http://127.0.0.1:{mail_port}"
    finally:
        await mail.stop(0)
        await runner.cleanup()
