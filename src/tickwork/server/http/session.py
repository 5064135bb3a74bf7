"""Who is signed in, signing in by a token, and signing out."""

from __future__ import annotations

from typing import Annotated, Any

from litestar import Request, Response, delete, get, post
from litestar.datastructures import Cookie
from litestar.handlers import HTTPRouteHandler
from litestar.params import JSONBody
from msgspec import Meta, Struct

from tickwork import __version__
from tickwork.server.callers import Caller
from tickwork.server.http.guard import plane_of
from tickwork.server.http.handlers import problem_responses
from tickwork.server.http.ui import root_of
from tickwork.server.plane import ControlPlane
from tickwork.server.problems import Refused
from tickwork.server.sessions import WHOLE, cookie_name


class Me(Struct, frozen=True, kw_only=True):
    """Somebody who is signed in."""

    name: str
    role: str
    rights: list[str]
    via: str


class SessionView(Struct, frozen=True, kw_only=True):
    """Who you are, and what this server serves you. `caller` is null for somebody who is not signed in, who is told
    nothing else."""

    caller: Me | None
    namespace: str | None
    namespaces: list[str]
    version: str | None
    masked: bool


class SignIn(Struct, forbid_unknown_fields=True):
    token: Annotated[str, Meta(min_length=1, max_length=200)]


def session_handlers() -> list[HTTPRouteHandler]:
    @get("/session", operation_id="get_session", summary="Who you are", tags=["session"], responses=problem_responses())
    async def get_session(request: Request[Any, Any, Any]) -> SessionView:
        """Who you are, and which namespaces you may see."""
        plane = plane_of(request)
        try:
            return _view(plane, await plane.let_in(request.state.knock))
        except Refused as error:
            if error.problem.status != 401:
                raise
            return SessionView(caller=None, namespace=None, namespaces=[], version=None, masked=False)

    @post(
        "/session", operation_id="sign_in", summary="Sign in", tags=["session"], status_code=200,
        responses=problem_responses(),
    )  # fmt: skip
    async def sign_in(request: Request[Any, Any, Any], data: JSONBody[SignIn]) -> Response[SessionView]:
        """Begin a session of the dashboard with a token; answers with a cookie."""
        plane = plane_of(request)
        caller, secret = await plane.sign_in(data.token, request.state.knock)
        await plane.home.audit.gather("sign_ins", caller, "signed in", "", "")
        return Response(_view(plane, caller), cookies=[_cookie(request, secret, WHOLE // 1000)])

    @delete(
        "/session", operation_id="sign_out", summary="Sign out", tags=["session"], status_code=200,
        responses=problem_responses(),
    )  # fmt: skip
    async def sign_out(request: Request[Any, Any, Any]) -> Response[SessionView]:
        """End the session, on the server too."""
        if request.state.knock.cookie:
            await plane_of(request).sessions.end(request.state.knock.cookie)
        gone = SessionView(caller=None, namespace=None, namespaces=[], version=None, masked=False)
        return Response(gone, cookies=[_cookie(request, "", 0)])

    return [get_session, sign_in, sign_out]


def _view(plane: ControlPlane, caller: Caller) -> SessionView:
    me = Me(name=caller.name, role=caller.role, rights=sorted(caller.role.rights), via=caller.via)
    namespaces = plane.namespaces_of(caller)
    return SessionView(
        caller=me,
        namespace=namespaces[0] if namespaces else None,
        namespaces=namespaces,
        version=__version__,
        masked=bool(plane.mask_for(caller)),
    )


def _cookie(request: Request[Any, Any, Any], value: str, seconds: int) -> Cookie:
    root, is_https = root_of(request), request.scope.get("scheme") == "https"
    return Cookie(
        cookie_name(is_https, root), value=value, path=f"{root}/", max_age=seconds, httponly=True, samesite="strict",
        secure=is_https,
    )  # fmt: skip
