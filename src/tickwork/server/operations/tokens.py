"""Tokens: make one, list them, revoke one."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct, field

from tickwork.server.callers import EVERY, Right, Role
from tickwork.server.calls import Call
from tickwork.server.operations import operation
from tickwork.server.problems import Refused
from tickwork.server.tokens import NewToken, TokenInfo


class MakeToken(Struct, forbid_unknown_fields=True, kw_only=True):
    """`expires` is in seconds from now; without it, the token is good until it is revoked."""

    name: Annotated[str, Meta(min_length=1, max_length=100)]
    role: Role
    namespaces: Annotated[list[str], Meta(min_length=1, max_length=100)] = field(default_factory=lambda: [EVERY])
    expires: Annotated[float, Meta(gt=0, le=315_360_000)] | None = None


def _see_all(call: Call, namespaces: list[str]) -> None:
    """Changing what is good elsewhere needs the rights there."""
    if EVERY not in call.caller.namespaces and not set(namespaces) <= set(call.caller.namespaces):
        raise Refused(403, "more_than_you", "this token is also for namespaces that are not yours")


@operation("GET", "/tokens", Right.ADMINISTER)
async def list_tokens(call: Call) -> list[TokenInfo]:
    """The tokens, without their secrets; those that are for your namespaces."""
    found = await call.plane.tokens.infos()
    mine = set(call.caller.namespaces)
    return [each for each in found if EVERY in mine or mine & set(each.namespaces)]


@operation("POST", "/tokens", Right.ADMINISTER, status=201, changes="made a token")
async def make_token(call: Call, body: MakeToken) -> NewToken:
    """Make a token. It is shown this once, and kept as a hash."""
    call.tell(body.name, f"{body.role} of {', '.join(body.namespaces)}")
    return await call.plane.tokens.make(body.name, body.role, call.caller, body.namespaces, body.expires)


@operation("DELETE", "/tokens/{id}", Right.ADMINISTER, changes="revoked a token")
async def revoke_token(call: Call, id: str) -> TokenInfo:
    """End a token, its sessions and its event streams, within five seconds."""
    token = await call.plane.tokens.get(id)
    _see_all(call, list(token.namespaces))
    call.tell(token.name, id)
    return await call.plane.tokens.revoke(id)
