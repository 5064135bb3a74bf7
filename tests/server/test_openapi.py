"""The description of the API: it is what is kept in the repository, and answers are as it says."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest
from benchmarks.control import served

from docs import openapi
from tests.server.examples import NAMES, example
from tests.server.fuzzing import fuzz, make_token
from tests.server.serving import Client, Server
from tickwork.server.callers import Role
from tickwork.server.operations import operations

PROBLEM = "application/problem+json"


def test_the_file_in_the_repository_is_what_is_served() -> None:
    assert openapi.FILE.read_text() == openapi.text(), "python -m docs.openapi writes it"


@pytest.fixture
async def document(admin: Client) -> Any:
    return await admin.read("/openapi.json")


def described(document: Any, name: str) -> Any:
    operation = operations()[name]
    return document["paths"][f"/api/v1{operation.path}"][operation.method.lower()]


def check(document: Any, schema: Any, value: Any) -> list[str]:
    """What is wrong with a value."""
    whole = {"$ref": "#/$defs/it", "$defs": {"it": schema}, "components": document["components"]}
    return [f"{each.instance_path}: {each.message}" for each in jsonschema_rs.iter_errors(whole, value)]


class TestDocument:
    async def test_it_has_every_operation_with_its_name_and_words(self, document: Any) -> None:
        for name in NAMES:
            found = described(document, name)
            assert found["operationId"] == name
            assert found["summary"]
            assert found["description"]
            assert str(operations()[name].status) in found["responses"]
        paths = {(path, method) for path, item in document["paths"].items() for method in item}
        assert len(paths) == len(NAMES) + 4  # the session, and the stream

    async def test_errors_are_problem_documents(self, document: Any) -> None:
        for name in NAMES:
            responses = described(document, name)["responses"]
            assert {"400", "401", "403", "404", "409", "413", "415", "421", "429", "431", "503"} <= set(responses)
            for status, found in responses.items():
                if int(status) >= 400:
                    assert list(found["content"]) == [PROBLEM], (name, status)

    async def test_every_parameter_of_an_operation_is_in_it(self, document: Any) -> None:
        for name in NAMES:
            found = described(document, name)
            told = {each["name"] for each in found.get("parameters", [])} - {"ns"}
            assert told == set(operations()[name].parameters) - {"body"}, name
            assert ("requestBody" in found) is ("body" in operations()[name].parameters), name


class TestAnswers:
    async def test_every_operation_answers_as_it_is_described(
        self, server: Server, admin: Client, document: Any
    ) -> None:
        await server.dead(key="k", tags={"a": "b"})
        await server.retrying()
        wrong: list[str] = []
        for name in NAMES:
            given = await example(server, admin, name)
            answer = await admin.call(operations()[name], given.names, given.body)
            told = described(document, name)["responses"][str(answer.status_code)]
            if answer.status_code == 204:
                assert answer.content == b""
                continue
            (media, content), *_ = told["content"].items()
            assert answer.headers["content-type"].partition(";")[0] == media, name
            if media == "application/json":
                wrong += [f"{name}{each}" for each in check(document, content["schema"], answer.json())]
        assert wrong == []

    async def test_errors_are_as_they_are_described(self, server: Server, admin: Client, document: Any) -> None:
        viewer, stranger = await server.as_role(Role.VIEWER), await server.stranger()
        await admin.do("POST", "/tasks", {"type": "a", "id": "t"})
        seen = set()
        for client, method, path, body, name in (
            (admin, "POST", "/tasks", {"type": "a", "id": "t"}, "submit_task"),
            (admin, "POST", "/tasks", {}, "submit_task"),
            (viewer, "POST", "/tasks", {"type": "a"}, "submit_task"),
            (stranger, "GET", "/tasks", None, "list_tasks"),
            (admin, "GET", "/tasks?q=nope:1", None, "list_tasks"),
            (admin, "GET", "/tasks/none", None, "get_task"),
        ):
            answer = await client.ask(method, path, body)
            told = described(document, name)["responses"][str(answer.status_code)]
            assert check(document, told["content"][PROBLEM]["schema"], answer.json()) == []
            seen.add(answer.status_code)
        assert seen == {400, 401, 403, 404, 409}

    def test_the_check_of_these_tests_sees_what_is_wrong(self) -> None:
        document = {"components": {"schemas": {"A": {"type": "object", "required": ["a"]}}}}
        assert check(document, {"$ref": "#/components/schemas/A"}, {"a": 1}) == []
        assert check(document, {"$ref": "#/components/schemas/A"}, {}) != []


def test_no_request_that_can_be_made_from_it_is_a_mistake_of_the_server(tmp_path: Path) -> None:
    """A short run, another for each commit; `make fuzz` does longer ones."""
    url = f"sqlite:///{tmp_path}/tick.db"
    token = asyncio.run(make_token(url))
    with served(url, "--tokens") as (address, _):
        found = fuzz(f"http://{address}", token, examples=4)
    assert found.wrong == {}
    assert len(found.statuses) == len(NAMES) + 3
    statuses = {status for counts in found.statuses.values() for status in counts}
    assert {200, 201, 400, 404} <= statuses, "requests came through to the operations"
