"""Who may do what, for every method: by role, by namespace, and without a token."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

from tests.server.examples import NAMES, example
from tests.server.grpc.calling import PROTOCOL, Api, Failed, Grpc, calling
from tests.server.serving import HIDDEN, HOME, OTHER
from tickwork.server.callers import Role
from tickwork.server.grpc.gen.tickwork_pb2 import StreamEventsRequest
from tickwork.server.grpc.health import HEALTH
from tickwork.server.grpc.service import Service
from tickwork.server.operations import operations


@pytest.fixture
async def with_http(url: str) -> AsyncIterator[Api]:
    """The examples use HTTP to prepare what they need."""
    async with calling(url, http=True) as found:
        yield found


async def outcome(caller: Grpc, role: Role, api: Api, name: str) -> str:
    given = await example(api.server, await api.server.as_role(Role.ADMIN), name)
    values = {**given.names, **(given.body or {})}
    try:
        if name == "run_bulk" and role.may(operations()[name].right):  # a preview is good for whom it was made
            values["preview"] = (await caller.call("preview_bulk", action="cancel", filter="type:slow")).preview
        await caller.call(name, **values)
    except Failed as error:
        return error.code
    return "OK"


async def test_nothing_is_served_but_the_table_events_and_health(api: Api) -> None:
    table = {PROTOCOL.methods[name].path for name in operations()}
    assert set(Service(api.plane, PROTOCOL)._handlers) - table == {
        "/tickwork.v1.Tickwork/StreamEvents", f"/{HEALTH}/Check", f"/{HEALTH}/Watch",
    }  # fmt: skip
    assert table <= set(Service(api.plane, PROTOCOL)._handlers)


@pytest.mark.parametrize("role", list(Role))
async def test_a_role_may_do_what_its_rights_say_and_nothing_else(role: Role, with_http: Api) -> None:
    caller = await with_http.as_role(role, HOME)
    wrong: list[str] = []
    for name in NAMES:
        expected = "OK" if role.may(operations()[name].right) else "PERMISSION_DENIED"
        found = await outcome(caller, role, with_http, name)
        if found != expected:
            wrong.append(f"{name}: {found} instead of {expected}")
    assert wrong == []


async def refusal(caller: Grpc, name: str) -> str:
    """Of a call that is refused whatever it says."""
    with pytest.raises(Failed) as error:
        await caller.raw(PROTOCOL.methods[name].path, b"")
    return f"{error.value.code} {error.value.problem.code}"


@pytest.mark.parametrize("namespace", [OTHER, HIDDEN, "no-such"])
async def test_a_namespace_that_one_may_not_see_is_not_there(namespace: str, api: Api) -> None:
    caller = await api.with_token(await api.server.token(Role.ADMIN, HOME), namespace)
    for name in NAMES:
        assert await refusal(caller, name) == "NOT_FOUND namespace_not_found", name


async def test_without_a_token_every_method_is_refused(api: Api) -> None:
    stranger = await api.with_token(None)
    for name in NAMES:
        assert await refusal(stranger, name) == "UNAUTHENTICATED not_signed_in", name


async def test_streams_are_for_those_who_may_look(api: Api) -> None:
    for role in Role:
        caller = await api.as_role(role)
        stream: Any = caller.stub.StreamEvents(StreamEventsRequest(), metadata=caller.metadata, timeout=60)
        if role.may(operations()["list_events"].right):
            assert (await stream.read()).kind == "open"
            stream.cancel()
        else:
            assert (await stream.code()).name == "PERMISSION_DENIED"
