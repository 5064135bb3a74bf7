"""The standard health service, `grpc.health.v1.Health`, for load balancers and probes.

It says whether the store can be reached, to anybody, and nothing else. Its two messages are written with messages that
every protobuf has and that look the same on the wire: a request is a text in field 1 (`StringValue`), an answer a
number in field 1 (`Int32Value`). So the service needs no package of its own, and nothing clashes with
grpcio-health-checking where a program has that.
"""

from __future__ import annotations

import asyncio

import grpc
from google.protobuf.message import DecodeError
from google.protobuf.wrappers_pb2 import Int32Value, StringValue

from tickwork.client.health import health_of
from tickwork.server.grpc.shapes import SERVICE
from tickwork.server.plane import ControlPlane
from tickwork.server.problems import Refused
from tickwork.server.spaces import Cached

HEALTH = "grpc.health.v1.Health"
SERVING, NOT_SERVING, UNKNOWN = 1, 2, 3
FRESH = 1.0  # seconds for which a look at the store is good
LOOK_AGAIN = 5.0
WATCHES_MAX = 100
Context = grpc.aio.ServicerContext[bytes, bytes]


class Health:
    def __init__(self, plane: ControlPlane) -> None:
        access = plane.home.client._access
        self._look = Cached(lambda: health_of(access.open_store, "store", access.config), FRESH)
        self._watches = 0

    async def check(self, data: bytes) -> bytes:
        status = await self._status(_name_in(data))
        if status == UNKNOWN:
            raise Refused(404, "service_not_found", f"there is no such service here; there is {SERVICE}")
        return _answer(status)

    async def watch(self, data: bytes, context: Context) -> None:
        """Tell how it is, and whenever that changes, until the caller leaves."""
        if self._watches >= WATCHES_MAX:
            raise Refused(429, "too_many_streams", "too many watch the health of this server")
        name, told = _name_in(data), 0
        self._watches += 1
        try:
            while True:
                status = await self._status(name)
                if status != told:
                    await context.write(_answer(status))
                    told = status
                await asyncio.sleep(LOOK_AGAIN)
        finally:
            self._watches -= 1

    async def _status(self, name: str) -> int:
        if name not in ("", SERVICE):
            return UNKNOWN
        return SERVING if (await self._look.get()).works else NOT_SERVING


def _name_in(data: bytes) -> str:
    try:
        return StringValue.FromString(data).value
    except DecodeError:
        raise Refused(400, "not_readable", "this is no HealthCheckRequest") from None


def _answer(status: int) -> bytes:
    return Int32Value(value=status).SerializeToString()
