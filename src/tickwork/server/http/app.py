"""The whole of it as one ASGI application: the API, the event streams, the pages of health, and the dashboard.

Routes are the same for every server, and making them takes longer than serving a hundred requests. So a process makes
them once, and each request brings the control plane that it is for.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

from litestar import Litestar, MediaType, Request, Response, Router
from litestar.exceptions import HTTPException, ValidationException
from litestar.openapi.config import OpenAPIConfig
from litestar.openapi.plugins import JsonRenderPlugin
from litestar.openapi.spec import Components, SecurityScheme

from tickwork import __version__
from tickwork.errors import TickworkError
from tickwork.server.http.guard import API, Guard, plane_of
from tickwork.server.http.handlers import handler_of
from tickwork.server.http.pages import Page, Pages, page_handlers
from tickwork.server.http.session import session_handlers
from tickwork.server.http.streams import stream_handler
from tickwork.server.http.ui import ui_handlers
from tickwork.server.operations import operations
from tickwork.server.plane import ControlPlane
from tickwork.server.problems import TITLES, Problem, problem_of
from tickwork.texts import cut

PROBLEM = "application/problem+json"
DETAIL_MAX = 300
PART_MAX = 120  # of one message, which may repeat what was sent
_CODES = {404: "not_found", 405: "method_not_allowed", 413: "too_large"}


def openapi() -> dict[str, Any]:
    """The description of the API, as it is served."""
    return routes().openapi_schema.to_schema()


def http_app(plane: ControlPlane, pages: Mapping[str, Page] | None = None) -> Guard:
    """An ASGI application that can be served, or mounted in another one."""
    return Guard(routes(), plane, Pages(plane, pages or {}))  # type: ignore[arg-type]


@cache
def routes() -> Litestar:
    api = Router(API, route_handlers=[
        *(handler_of(each) for each in operations().values()), stream_handler(), *session_handlers(),
    ])  # fmt: skip
    return Litestar(
        [api, *page_handlers(), *ui_handlers()],
        openapi_config=OpenAPIConfig(
            title="Tickwork", version=__version__, path=f"{API}/openapi.json",
            # Both, so that the framework adds no page of its own to the API.
            render_plugins=[JsonRenderPlugin(path=["/", "/openapi.json"], media_type=MediaType.JSON)],
            description="The control plane of Tickwork: tasks, queues, schedules, workers, and what holds them back.",
            components=Components(security_schemes={"token": SecurityScheme(type="http", scheme="bearer")}),
            security=[{"token": []}],
        ),
        exception_handlers={TickworkError: _refused, HTTPException: _http_error, Exception: _failed},
        logging_config=None,  # the log is that of the program
        debug=False,
        pdb_on_exception=False,
    )  # fmt: skip


def _reply(problem: Problem) -> Response[Problem]:
    headers = {} if problem.retry_after is None else {"retry-after": str(max(round(problem.retry_after), 1))}
    return Response(problem, status_code=problem.status, media_type=PROBLEM, headers=headers)


def _refused(_: Request[Any, Any, Any], error: TickworkError) -> Response[Problem]:
    return _reply(problem_of(error))


def _http_error(_: Request[Any, Any, Any], error: HTTPException) -> Response[Problem]:
    status = error.status_code
    detail = _what_is_wrong(error) if isinstance(error, ValidationException) else cut(error.detail, DETAIL_MAX)
    code = _CODES.get(status, "bad_request" if status < 500 else "internal")
    return _reply(Problem(status, code, TITLES.get(status, "Error"), detail))


def _what_is_wrong(error: ValidationException) -> str:
    """Which field or parameter, and why; not the value itself."""
    found = error.extra if isinstance(error.extra, list) else []
    parts = [
        f"{cut(str(each.get('key', 'the body')), PART_MAX)}: {cut(str(each.get('message', '')), PART_MAX)}"
        for each in found
        if isinstance(each, dict)
    ]
    return cut("; ".join(parts) or cut(error.detail, PART_MAX), DETAIL_MAX)


def _failed(request: Request[Any, Any, Any], error: Exception) -> Response[Problem]:
    plane_of(request).log.error("a request of %s %s failed", request.method, request.url.path, exc_info=error)
    return _reply(Problem(500, "internal", TITLES[500], "this is a mistake in the server; its log says more"))
