"""Who may do what, for every operation of the table: by role, by namespace, and without a token."""

from __future__ import annotations

import itertools
import re
import sqlite3
from pathlib import Path

import pytest

from tests.server.examples import NAMES, example
from tests.server.serving import HIDDEN, HOME, OTHER, Server
from tickwork.server.callers import EVERY, Right, Role
from tickwork.server.http.app import routes
from tickwork.server.operations import operations

BESIDE = {  # routes that are no operation of the table, each of which decides itself who may use it
    "/api/v1/session", "/api/v1/events/stream",
    "/api/v1/openapi.json", "/api/v1/openapi.json/openapi.json", "/api/v1/openapi.json/{path:str}",
    "/health", "/ready", "/live", "/metrics", "/", "/{path:path}",
}  # fmt: skip


def contents(folder: Path) -> set[str]:
    """All rows of all tables, but for the audit log and when tokens were used."""
    with sqlite3.connect(folder / "tick.db") as connection:
        lines = list(connection.iterdump())
    connection.close()
    return {re.sub(r',"used_at":\d+', "", line) for line in lines if "audit." not in line}


class TestRoutes:
    def test_every_route_is_an_operation_or_known_to_decide_itself(self) -> None:
        table = {f"/api/v1{each.path}".replace("}", ":str}") for each in operations().values()}
        found = {route.path for route in routes().routes}
        assert found - table == BESIDE
        assert table - found == set()

    def test_every_method_of_a_route_is_one_of_the_table(self) -> None:
        table = {(f"/api/v1{each.path}".replace("}", ":str}"), each.method) for each in operations().values()}
        found = {(route.path, method) for route in routes().routes for method in route.methods}
        others = {pair for pair in found - table if pair[1] != "OPTIONS" and pair[0] not in BESIDE}
        assert others == set()

    def test_every_operation_has_a_right_and_says_what_it_changes(self) -> None:
        for each in operations().values():
            assert isinstance(each.right, Right)
            assert bool(each.changes) is (each.method != "GET" and not each.name.startswith("preview_")), each.name
            assert each.documentation, each.name

    def test_each_right_is_of_some_role_and_no_role_but_admin_has_all(self) -> None:
        for right in Right:
            assert [role for role in Role if role.may(right)], right
        assert [role for role in Role if role.rights == frozenset(Right)] == [Role.ADMIN]


class TestRoles:
    @pytest.mark.parametrize("role", list(Role))
    async def test_a_role_may_do_what_its_rights_say_and_nothing_else(self, role: Role, server: Server) -> None:
        caller, admin = await server.as_role(role, HOME), await server.as_role(Role.ADMIN)
        wrong: list[str] = []
        for name in NAMES:
            operation = operations()[name]
            given = await example(server, caller if role.may(Right.OPERATE) else admin, name)
            answer = await caller.call(operation, given.names, given.body, ns=HOME)
            expected = operation.status if role.may(operation.right) else 403
            if answer.status_code != expected:
                wrong.append(f"{name}: {answer.status_code} instead of {expected}: {answer.text[:200]}")
            elif expected == 403:
                assert answer.json()["code"] == "not_allowed", name
        assert wrong == []

    @pytest.mark.parametrize("role", [role for role in Role if role is not Role.ADMIN])
    async def test_what_a_role_may_not_do_changes_nothing(self, role: Role, server: Server, tmp_path: Path) -> None:
        caller, admin = await server.as_role(role, HOME), await server.as_role(Role.ADMIN)
        refused = [name for name in NAMES if not role.may(operations()[name].right)]
        given = {name: await example(server, admin, name) for name in refused}
        before = contents(tmp_path)
        for name in refused:
            answer = await caller.call(operations()[name], given[name].names, given[name].body, ns=HOME)
            assert answer.status_code == 403, name
        assert contents(tmp_path) == before
        assert refused

    async def test_the_snapshot_of_these_tests_sees_a_change(self, server: Server, tmp_path: Path) -> None:
        before = contents(tmp_path)
        await server.app.queues.pause("q")
        assert contents(tmp_path) != before


class TestNamespaces:
    @pytest.mark.parametrize("role", list(Role))
    async def test_a_namespace_that_one_may_not_see_is_not_there(
        self, role: Role, server: Server, tmp_path: Path
    ) -> None:
        """Not even for an administrator of another one."""
        caller, admin = await server.as_role(role, HOME), await server.as_role(Role.ADMIN)
        given = {name: await example(server, admin, name) for name in NAMES}
        before = contents(tmp_path)
        for name, namespace in itertools.product(NAMES, (OTHER, HIDDEN, "no-such")):
            answer = await caller.call(operations()[name], given[name].names, given[name].body, ns=namespace)
            assert (answer.status_code, answer.json()["code"]) == (404, "namespace_not_found"), name
        assert contents(tmp_path) == before

    async def test_a_namespace_of_the_store_that_is_not_served_is_not_there_for_anybody(self, server: Server) -> None:
        everywhere = await server.as_role(Role.ADMIN, EVERY)
        answer = await everywhere.get("/status", ns=HIDDEN)
        assert (answer.status_code, answer.json()["code"]) == (404, "namespace_not_found")

    async def test_things_of_one_namespace_are_not_found_in_another(self, server: Server) -> None:
        everywhere = await server.as_role(Role.ADMIN, EVERY)
        task = await server.dead()
        await server.app.schedules.put("nightly", "mail", cron="0 3 * * *")
        assert (await everywhere.get(f"/tasks/{task}", ns=OTHER)).status_code == 404
        assert (await everywhere.get("/schedules/nightly", ns=OTHER)).status_code == 404
        assert (await everywhere.post(f"/tasks/{task}/retry", {}, ns=OTHER)).status_code == 404
        for path in ("/tasks", "/dead-letters", "/schedules", "/events"):
            assert (await everywhere.read(path, ns=OTHER))["items"] == [], path

    async def test_a_caller_of_one_namespace_is_in_that_one_unless_it_says_otherwise(self, server: Server) -> None:
        caller = await server.as_role(Role.VIEWER, OTHER)
        assert (await caller.read("/status"))["namespace"] == OTHER
        assert (await caller.get("/status", ns=HOME)).status_code == 404

    async def test_a_namespace_that_is_said_twice_is_never_more_than_one_may_see(self, server: Server) -> None:
        caller = await server.as_role(Role.VIEWER, HOME)
        for query in (f"ns={HOME}&ns={OTHER}", f"ns={OTHER}&ns={HOME}"):
            answer = await caller.ask("GET", f"/status?{query}")
            assert answer.status_code in (400, 404) or answer.json()["namespace"] == HOME


class TestStrangers:
    async def test_without_a_token_every_operation_answers_401_and_changes_nothing(
        self, server: Server, tmp_path: Path
    ) -> None:
        stranger, admin = await server.stranger(), await server.as_role(Role.ADMIN)
        given = {name: await example(server, admin, name) for name in NAMES}
        before = contents(tmp_path)
        for name in NAMES:
            answer = await stranger.call(operations()[name], given[name].names, given[name].body)
            assert answer.status_code == 401, name
            assert answer.headers["www-authenticate"] == "Bearer"
        assert contents(tmp_path) == before

    @pytest.mark.parametrize("token", ["x", "tw_", "tw_a_b", "tw__", "Bearer", "tw_" + "a" * 300, "tw_ä_x"])
    async def test_what_is_no_token_is_refused_without_saying_why(self, token: str, server: Server) -> None:
        stranger = await server.stranger()
        header = b"Bearer " + token.encode("latin-1")
        answer = await stranger.ask("GET", "/status", headers={b"authorization": header})
        assert (answer.status_code, answer.json()["code"]) == (401, "bad_token")

    async def test_a_token_of_another_secret_is_refused(self, server: Server) -> None:
        token = await server.token(Role.ADMIN)
        for forged in (token[:-1] + ("a" if token[-1] != "a" else "b"), token + "a", token[:-1]):
            answer = await (await server.with_token(forged)).get("/status")
            assert (answer.status_code, answer.json()["code"]) == (401, "bad_token")

    async def test_a_path_with_more_slashes_is_not_another_way_in(self, server: Server) -> None:
        stranger = await server.stranger()
        for path in ("//api/v1/status", "/api//v1/status", "/api/v1//status", "/api/v1/status//"):
            answer = await stranger.request("GET", server.url + path)
            assert (answer.status_code, answer.json()["code"]) == (404, "not_found"), path
        for path in ("/api/v1/status/", "/api%2fv1/status", "/api/v1%2Fstatus"):
            answer = await stranger.request("GET", server.url + path)
            assert answer.status_code == 401, path
