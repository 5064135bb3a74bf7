"""A gRPC service that runs tasks: it answers what the type of a task says, and keeps what it was asked."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

import grpc
import grpc.aio

from tickwork.executors.grpc_gen.executor_pb2 import CancelRequest, CancelResponse, ExecuteRequest, ExecuteResponse
from tickwork.executors.grpc_gen.executor_pb2_grpc import ExecutorServicer, add_ExecutorServicer_to_server


class Service(ExecutorServicer):
    def __init__(self) -> None:
        self.asked: list[ExecuteRequest] = []
        self.metadata: list[Mapping[str, Any]] = []
        self.time_left: list[float | None] = []
        self.stopped: list[str] = []  # ids of tasks whose call was cancelled
        self.cancels: list[CancelRequest] = []
        self.statuses: list[tuple[str, str, Sequence[tuple[str, str]]]] = []  # told first, one after the other
        self.response = ExecuteResponse(data=b'{"done": true}')
        self.implements_cancel = True

    async def Execute(self, request: ExecuteRequest, context: Any) -> ExecuteResponse:  # noqa: N802
        self.asked.append(request)
        self.metadata.append(dict(context.invocation_metadata()))
        self.time_left.append(context.time_remaining())
        if self.statuses:
            code, details, trailers = self.statuses.pop(0)
            await context.abort(grpc.StatusCode[code], details, tuple(trailers))
        if request.type == "hang":
            try:
                await asyncio.Event().wait()
            finally:
                self.stopped.append(request.task_id)
        return self.response

    async def Cancel(self, request: CancelRequest, context: Any) -> CancelResponse:  # noqa: N802
        self.cancels.append(request)
        if not self.implements_cancel:
            await context.abort(grpc.StatusCode.UNIMPLEMENTED, "not here")
        return CancelResponse(stopping=True)


@asynccontextmanager
async def serving(
    service: Service,
    credentials: grpc.ServerCredentials | None = None,
    *,
    port: int = 0,
    compression: grpc.Compression | None = None,
) -> AsyncIterator[int]:
    """The port of 127.0.0.1 where it serves."""
    server = grpc.aio.server(compression=compression)
    add_ExecutorServicer_to_server(service, server)
    address = f"127.0.0.1:{port}"
    port = server.add_insecure_port(address) if credentials is None else server.add_secure_port(address, credentials)
    await server.start()
    try:
        yield port
    finally:
        await server.stop(0)
