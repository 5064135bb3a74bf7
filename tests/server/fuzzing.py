"""Requests made from the description of the API, to a server in a process of its own."""

from __future__ import annotations

import asyncio
import sys
import tempfile
from collections import Counter
from typing import Any, NamedTuple

import schemathesis
from benchmarks.control import served
from hypothesis import HealthCheck, Phase, given, seed, settings
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.core.result import Ok
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from tests.suite.seed import drawn, tree_hash
from tickwork import RemoteWorker, Scheduler
from tickwork.server.callers import Caller, Role
from tickwork.server.tokens import Tokens

CHECKS = [
    not_a_server_error, status_code_conformance, content_type_conformance, response_headers_conformance,
    response_schema_conformance,
]  # fmt: skip
ENDLESS = ("stream_events",)
KNOWN = {"tasks": "t", "schedules": "s", "queues": "default", "types": "mail", "workers": "w", "dead-letters": "t"}


class Found(NamedTuple):
    """What is wrong, and how often each status was answered, by the names of operations."""

    wrong: dict[str, str]
    statuses: dict[str, Counter[int]]


def fuzz(url: str, token: str, examples: int, only: str = "") -> Found:
    """Requests that fit the description, and as many that do not."""
    headers = {"Authorization": f"Bearer {token}"}
    schema = schemathesis.openapi.from_url(f"{url}/api/v1/openapi.json", headers=headers)
    found = Found({}, {})
    for result in schema.get_all_operations():
        assert isinstance(result, Ok), result
        operation = result.ok()
        name = operation.definition.raw["operationId"]
        if name in ENDLESS or only not in name:
            continue
        found.statuses[name] = Counter()
        for mode in (GenerationMode.POSITIVE, GenerationMode.NEGATIVE):
            try:
                _attack(operation, mode, headers, found.statuses[name], examples)
            except (Exception, BaseExceptionGroup) as error:
                found.wrong[f"{name}, {mode.value}"] = str(error)
    return found


def _attack(
    operation: Any,
    mode: GenerationMode,
    headers: dict[str, str],
    statuses: Counter[int],
    examples: int,
) -> None:
    @seed(drawn(f"requests of {operation.label}, {mode.value}", 1 << 64))
    @settings(
        max_examples=examples, deadline=None, database=None,
        suppress_health_check=list(HealthCheck), phases=[Phase.generate],
    )  # fmt: skip
    @given(case=operation.as_strategy(generation_mode=mode))
    def attack(case: Any) -> None:
        (case.query or {}).pop("ns", None)  # nearly all of them would be namespaces that are not there
        if mode is GenerationMode.POSITIVE and case.path_parameters:
            known = KNOWN.get(case.operation.path.split("/")[3])
            case.path_parameters |= {name: known for name in ("id", "name") if known and name in case.path_parameters}
        response = case.call(headers=headers)  # of the real token, not of one that was made up
        statuses[response.status_code] += 1
        case.validate_response(response, checks=CHECKS)

    attack()


async def make_token(url: str) -> str:
    """And some things that can be looked at."""
    app = Scheduler(url)
    try:
        await app.submit("mail", {"to": "ada"}, id="t", key="k", tags={"a": "b"}, depends_on=[])
        await app.schedules.put("s", "mail", cron="0 3 * * *", payload={"to": "ada"})
        await app.register_worker(RemoteWorker(id="w", task_types=("mail",)))
        await app.limits.set("type:mail", rate="100/m")
        await app.switches.off("key:acme")
        await app.breakers.open("type:sms")
        return (await Tokens(app._access.open_store).make("fuzz", Role.ADMIN, Caller("fuzz", Role.ADMIN))).token
    finally:
        await app.close()


def main(examples: str, only: str = "") -> None:
    """`python -m tests.server.fuzzing EXAMPLES [OPERATION]`: so many requests of each kind for each operation."""
    with tempfile.TemporaryDirectory() as folder:
        url = f"sqlite:///{folder}/tick.db"
        token = asyncio.run(make_token(url))
        with served(url, "--tokens") as (address, _):
            found = fuzz(f"http://{address}", token, int(examples), only)
    print(f"{sum(map(Counter.total, found.statuses.values()))} requests, seed {tree_hash()}")
    for name, text in found.wrong.items():
        print(f"--- {name}\n{text}\n")
    sys.exit(1 if found.wrong else 0)


if __name__ == "__main__":
    main(*sys.argv[1:])
