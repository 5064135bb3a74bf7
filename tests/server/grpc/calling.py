"""Calls of the gRPC API, as clients make them: with the generated code, over the network."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import datetime
from typing import TYPE_CHECKING, Any

import grpc
import grpc.aio
import msgspec
from google.protobuf.timestamp_pb2 import Timestamp

from tests.server.serving import HOME, OTHER, Server, serving
from tickwork import Scheduler
from tickwork.server.callers import Role
from tickwork.server.grpc.gen import tickwork_pb2
from tickwork.server.grpc.gen.tickwork_pb2_grpc import TickworkStub
from tickwork.server.grpc.server import GrpcServer
from tickwork.server.grpc.shapes import Message, Shape, read_protocol
from tickwork.server.grpc.statuses import PROBLEM
from tickwork.server.parts import make_plane
from tickwork.server.problems import Problem
from tickwork.server.settings import settings_of

if TYPE_CHECKING:
    from tickwork.server.grpc.gen.tickwork_pb2_grpc import TickworkAsyncStub

PROTOCOL = read_protocol()
PATIENCE = 60.0


class Failed(Exception):
    """A call that was answered with an error."""

    def __init__(self, error: grpc.aio.AioRpcError) -> None:
        super().__init__(f"{error.code().name}: {error.details()}")
        self.code = error.code().name
        self.details = error.details() or ""
        self.trailing = dict(tuple(error.trailing_metadata() or ()))

    @property
    def problem(self) -> Problem:
        return msgspec.json.decode(self.trailing[PROBLEM], type=Problem)


class Grpc:
    """Somebody who calls, with or without a token."""

    def __init__(self, channel: grpc.aio.Channel, token: str | None, namespace: str | None = None) -> None:
        self.channel: Any = channel
        self.stub: TickworkAsyncStub = TickworkStub(channel)
        self.metadata: list[tuple[str, str]] = []
        if token is not None:
            self.metadata.append(("authorization", f"Bearer {token}"))
        if namespace is not None:
            self.metadata.append(("tickwork-namespace", namespace))

    async def call(self, operation: str, /, **values: Any) -> Any:
        """By the name of the operation, with values as JSON has them. Raises `Failed`."""
        method = PROTOCOL.methods[operation]
        return await self.send(method.name, request_of(method.request, values))

    async def send(self, name: str, request: Any, metadata: list[tuple[str, str]] | None = None) -> Any:
        given = self.metadata if metadata is None else metadata
        try:
            return await getattr(self.stub, name)(request, metadata=given, timeout=PATIENCE)
        except grpc.aio.AioRpcError as error:
            raise Failed(error) from None

    async def raw(self, path: str, data: bytes, metadata: list[tuple[str, str]] | None = None) -> bytes:
        call = self.channel.unary_unary(path)
        try:
            answer: bytes = await call(data, metadata=self.metadata if metadata is None else metadata, timeout=PATIENCE)
            return answer
        except grpc.aio.AioRpcError as error:
            raise Failed(error) from None


def request_of(message: Message, values: dict[str, Any]) -> Any:
    built = getattr(tickwork_pb2, message.name)()
    shapes = {field.name: field for field in message.fields}
    for name, value in values.items():
        if name == "clear" and name not in shapes:
            built.clear.extend(value)
            continue
        field = shapes[name]
        if field.label == "repeated":
            getattr(built, name).extend(_value(each, field.shape) for each in value)
        elif field.label == "map":
            getattr(built, name).update(value)
        elif field.shape.kind == "time":
            getattr(built, name).CopyFrom(_value(value, field.shape))
        else:
            setattr(built, name, _value(value, field.shape))
    return built


def _value(value: Any, shape: Shape) -> Any:
    if shape.kind == "json":
        return json.dumps(value)
    if shape.kind == "message":
        return request_of(PROTOCOL.messages[shape.message], value)
    if shape.kind == "time":
        stamp = Timestamp()
        stamp.FromDatetime(value if isinstance(value, datetime) else datetime.fromisoformat(value))
        return stamp
    return value


class Api:
    """A control plane that is served by gRPC too, and those who call it."""

    def __init__(self, server: Server, served: GrpcServer, stack: AsyncExitStack) -> None:
        self.server = server
        self.served = served
        self.plane = server.plane
        self._stack = stack

    async def as_role(self, role: Role | str, *namespaces: str, namespace: str | None = None) -> Grpc:
        return await self.with_token(await self.server.token(role, *namespaces), namespace)

    async def with_token(
        self, token: str | None, namespace: str | None = None, options: Sequence[tuple[str, int]] = ()
    ) -> Grpc:
        channel = grpc.aio.insecure_channel(self.served.address, [("grpc.use_local_subchannel_pool", 1), *options])
        self._stack.push_async_callback(channel.close)
        return Grpc(channel, token, namespace)


@asynccontextmanager
async def calling(url: str, *, http: bool = False, node: bool = False, **options: Any) -> AsyncIterator[Api]:
    """With `http`, or as part of a node, HTTP is served as well, which takes a second more."""
    async with serving(url, node=node, **options) if http or node else _alone(url, **options) as server:
        served = GrpcServer(server.plane)
        await served.start()
        try:
            async with AsyncExitStack() as stack:
                yield Api(server, served, stack)
        finally:
            await served.stop()


@asynccontextmanager
async def _alone(url: str, **options: Any) -> AsyncIterator[Server]:
    given = {"server_tokens": True, "server_namespaces": (OTHER,), **options}
    app = Scheduler(url, namespace=HOME, **given)
    plane = make_plane(settings_of(app.config), app, app._other_namespace)
    async with AsyncExitStack() as stack:
        yield Server(app, plane, "", stack)
        await plane.close()
        await app.close()
