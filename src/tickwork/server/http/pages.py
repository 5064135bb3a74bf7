"""`/health`, `/ready`, `/live` and `/metrics` on the server of the API. Whoever may not look at its first namespace is
told how it is, and no more."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import msgspec
from litestar import Request, Response, get
from litestar.handlers import HTTPRouteHandler

from tickwork.client.health import health_of
from tickwork.monitor.listener import Reply
from tickwork.server.callers import Right
from tickwork.server.http.guard import plane_of
from tickwork.server.plane import ControlPlane
from tickwork.server.problems import Refused
from tickwork.server.spaces import Cached
from tickwork.timeouts import TimeLimit

JSON = "application/json"
FRESH = 1.0
LOOK_SECONDS = 2.0  # for looking up who asks: probes and scrapers do not wait for long

Page = Callable[[], Awaitable[Reply]]


class Pages:
    """The pages that a node has for itself, by path; a server alone looks at its store."""

    def __init__(self, plane: ControlPlane, of_node: Mapping[str, Page]) -> None:
        access = plane.home.client._access
        self._of_node = of_node
        self._store_health = Cached(lambda: health_of(access.open_store, "store", access.config), FRESH)

    async def health(self, path: str) -> Reply:
        if path in self._of_node:
            return await self._of_node[path]()
        health = await self._store_health.get()
        return Reply(200 if health.works else 503, JSON, msgspec.json.encode(health))

    async def metrics(self) -> Reply:
        if "/metrics" not in self._of_node:
            raise Refused(404, "no_metrics", "this server has no metrics: set metrics (--metrics) to serve them")
        return await self._of_node["/metrics"]()


def page_handlers() -> list[HTTPRouteHandler]:
    async def check(request: Request[Any, Any, Any]) -> None:
        """The numbers are those of the first namespace, so they are for those who may look at that."""
        plane = plane_of(request)
        try:
            with TimeLimit(LOOK_SECONDS, makes_up=True):
                caller = await plane.let_in(request.state.knock)
        except TimeoutError:
            raise Refused(503, "store_unavailable", "the store cannot be asked who you are: try again soon") from None
        if not caller.role.may(Right.VIEW) or not caller.may_see(plane.home.namespace):
            raise Refused(403, "not_allowed", "this needs a token of the role viewer for the first namespace here")

    async def may_look(request: Request[Any, Any, Any]) -> bool:
        try:
            await check(request)
        except Refused:  # how it is, is told to everybody, also while nobody can be looked up
            return False
        return True

    async def shown(request: Request[Any, Any, Any], path: str) -> Response[bytes]:
        reply = await pages_of(request).health(path)
        if not await may_look(request):
            status = "healthy" if reply.status < 400 else "unhealthy"
            reply = Reply(reply.status, JSON, msgspec.json.encode({"status": status}))
        return Response(reply.body, status_code=reply.status, media_type=reply.content_type)

    @get("/health", include_in_schema=False)
    async def health(request: Request[Any, Any, Any]) -> Response[bytes]:
        return await shown(request, "/health")

    @get("/ready", include_in_schema=False)
    async def ready(request: Request[Any, Any, Any]) -> Response[bytes]:
        return await shown(request, "/ready")

    @get("/live", include_in_schema=False)
    async def live(request: Request[Any, Any, Any]) -> Response[bytes]:
        return Response(b'{"status":"alive"}', media_type=JSON)

    @get("/metrics", include_in_schema=False)
    async def metrics(request: Request[Any, Any, Any]) -> Response[bytes]:
        await check(request)
        reply = await pages_of(request).metrics()
        return Response(reply.body, status_code=reply.status, media_type=reply.content_type)

    return [health, ready, live, metrics]


def pages_of(request: Request[Any, Any, Any]) -> Pages:
    pages: Pages = request.state.pages
    return pages
