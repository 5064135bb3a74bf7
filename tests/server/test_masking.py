"""What is hidden from viewers stays hidden, wherever it may come up: one canary, looked for in every answer."""

from __future__ import annotations

import json
import zlib
from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any
from urllib.parse import quote

import pytest

from tests.integration.apps import eventually
from tests.server.examples import NAMES, preview_of
from tests.server.serving import Client, Server, serving
from tests.server.streaming import following
from tickwork import RemoteWorker, Scheduler, TaskContext
from tickwork.model.gates import limit_gate
from tickwork.model.outcomes import Aborted, Held, Snoozed
from tickwork.model.tasks import ParkReason
from tickwork.server.callers import Right
from tickwork.server.masking import MASKED, Mask
from tickwork.server.operations import operations
from tickwork.store.contract import Ask, Gate

CANARY = "c4n4ry"
MASK = ("password", "*_token")
PAYLOAD = {"user": "ada", "password": CANARY, "deep": [{"api_token": CANARY}], "note": f"it is {CANARY}"}


@dataclass
class Login:
    """What a serializer of somebody's own may answer."""

    password: str

    __hash__ = object.__hash__


class Zipped:
    name = "zipped"

    def encode(self, value: Any) -> bytes:
        return zlib.compress(json.dumps(value).encode())

    def decode(self, data: bytes, type: Any = Any) -> Any:
        return json.loads(zlib.decompress(data))


@pytest.fixture
async def masked(url: str) -> AsyncIterator[Server]:
    async with serving(url, server_mask=MASK) as server:
        yield server


async def fill(server: Server) -> list[str]:
    """Tasks that have the canary wherever one may have it."""
    app = server.app
    everywhere: dict[str, Any] = {
        "payload": PAYLOAD, "key": f"key-{CANARY}", "dedup_key": f"dedup-{CANARY}", "dedup_ttl": 3600,
        "context": {"password": CANARY, "free": CANARY}, "tags": {"password": CANARY, "other": CANARY},
    }  # fmt: skip
    await server.count_up()
    error = f"ValueError: wrong password {CANARY}\n\nTraceback (most recent call last):\n  {CANARY}"
    dead = await server.dead(error, **everywhere, id="dead")
    retrying = await server.retrying(error, **{**everywhere, "dedup_key": None, "dedup_ttl": None}, id="retrying")
    small = {"payload": PAYLOAD, "key": f"key-{CANARY}", "tags": {"password": CANARY}}
    won = await server.succeeded(b'{"password":"c4n4ry","text":"c4n4ry"}', **small, id="won")
    ids = [dead, retrying, won]
    ids.append(await server._ended(lambda lease: Snoozed(lease, delay=60_000, error=error), **small, id="snoozed"))
    ids.append(await server._ended(lambda lease: Aborted(lease, CANARY), **small, id="word"))
    ids.append(await server._ended(lambda lease: Aborted(lease, f"{CANARY}: no"), **small, id="word2"))
    gate = limit_gate("type:held", f"key-{CANARY}")
    await app.limits.set("type:held", concurrency=1, per="key")
    store = await app._access.open_store()
    assert [each is None for each in await store.gates.enter([Ask(each, (Gate(gate, slots=1),)) for each in "ab"])] == [
        True, False,
    ]  # fmt: skip
    ids.append(
        await server._ended(
            lambda lease: Held(lease, gate, ParkReason.LIMITED, 60_000), type="held", **small, id="held"
        )
    )
    await app.switches.off(f"key:key-{CANARY}", "why")
    await app.switches.off(f"tag:password={CANARY}", "why")
    await app.submit("mail", PAYLOAD, id="pending", delay=60, depends_on=None, key=f"key-{CANARY}")
    await app.submit("mail", PAYLOAD, id="waiting", key=f"key-{CANARY}", tags={"password": CANARY})
    await app.submit("mail", PAYLOAD, id="after", depends_on=["pending"], key=f"key-{CANARY}")
    await app.update_task_status("pending", "cancelled", f"because {CANARY}")
    await app.schedules.put(
        "nightly", "mail", PAYLOAD, cron="0 3 * * *", key=f"key-{CANARY}", dedup_key=f"dedup-{CANARY}",
        context={"password": CANARY}, tags={"password": CANARY},
    )  # fmt: skip
    await server.count_up()
    return [*ids, "pending", "waiting", "after"]


async def answers(client: Client, tasks: list[str]) -> dict[str, str]:
    """Every question of the table, of every task."""
    found: dict[str, str] = {}
    groups = [each["id"] for each in (await client.read("/failures"))["items"]]
    for name in NAMES:
        operation = operations()[name]
        if operation.method != "GET" or operation.right is not Right.VIEW:
            continue
        ids = {"tasks": tasks, "schedules": ["nightly"], "failures": groups, "queues": ["default"], "workers": ["w1"]}
        of = ids.get(operation.path.split("/")[1], []) if "{" in operation.path else [""]
        for each in of:
            answer = await client.ask("GET", operation.path.format(id=each, name=each))
            assert answer.status_code in (200, 404), answer.text
            found[f"{name} {each}".strip()] = answer.text
    return found


class TestCanary:
    async def test_no_answer_to_a_viewer_has_it(self, masked: Server) -> None:
        tasks = await fill(masked)
        await masked.app.register_worker(RemoteWorker(id="w1"))
        for role in ("viewer", "submitter"):
            found = await answers(await masked.as_role(role), tasks)
            assert len(found) > 60
            assert [name for name, text in found.items() if CANARY in text] == []

    async def test_an_operator_sees_it(self, masked: Server) -> None:
        """Else the test above could not fail."""
        tasks = await fill(masked)
        found = await answers(await masked.as_role("operator"), tasks)
        hits = {name.split()[0] for name, text in found.items() if CANARY in text}
        assert hits >= {
            "list_tasks", "export_tasks", "get_task", "get_payload", "explain_task", "get_task_events", "list_events",
            "list_dead_letters", "list_schedules", "get_schedule", "list_switches", "list_limits", "list_failures",
            "get_dependencies",
        }  # fmt: skip

    async def test_without_masks_a_viewer_sees_all(self, server: Server) -> None:
        tasks = await fill(server)
        found = await answers(await server.as_role("viewer"), tasks)
        assert any(CANARY in text for text in found.values())

    async def test_streams_have_it_for_nobody_but_operators(self, masked: Server) -> None:
        viewer, operator = await masked.as_role("viewer"), await masked.as_role("operator")
        async with following(viewer) as hidden, following(operator) as open_one:
            await fill(masked)
            for stream in (hidden, open_one):
                while not any("dead" in str(frame.data) for frame in stream.all):
                    await stream.frame("events")
                await stream.frame("tick")
        async with following(viewer, after=0) as again:
            await again.frame("events")
        assert CANARY in open_one.text
        assert CANARY not in hidden.text
        assert CANARY not in again.text

    async def test_what_one_submits_is_answered_masked_too(self, masked: Server) -> None:
        submitter = await masked.as_role("submitter")
        answer = await submitter.post("/tasks", {"type": "mail", "payload": PAYLOAD, "id": "mine"})
        assert answer.status_code == 201
        assert CANARY not in answer.text
        again = await submitter.post("/tasks", {"type": "mail", "id": "mine", "if_exists": "return"})
        assert CANARY not in again.text

    async def test_samples_of_a_preview_are_for_those_who_see_all(self, masked: Server) -> None:
        await fill(masked)
        assert (await (await masked.as_role("submitter")).post("/bulk/preview", {})).status_code == 403
        shown = await preview_of(await masked.as_role("operator"), "retry", "status:dead")
        assert shown["samples"]

    async def test_log_lines_and_notes_of_a_real_run_are_hidden(self, url: str) -> None:
        app = Scheduler(url, namespace="home", server=True, server_port=0, server_tokens=True, server_mask=MASK)

        @app.task("work", max_retry=0)
        async def work(ctx: TaskContext, password: str) -> None:
            ctx.logger.info("got %s", password)
            ctx.progress(0.5, f"at {password}")
            raise ValueError(password)

        async with serving(url, app=app, node=True) as server:
            handle = await app.submit("work", {"password": CANARY})
            await eventually(lambda: _has_ended(app, handle.id), timeout=20)
            viewer, operator = await server.as_role("viewer"), await server.as_role("operator")
            for path in ("", "/logs", "/attempts", "/events", "/explain", "/payload"):
                assert CANARY not in (await viewer.get(f"/tasks/{handle.id}{path}")).text, path
            shown = await viewer.read(f"/tasks/{handle.id}")
            whole = (await operator.get(f"/tasks/{handle.id}")).text
        assert shown["masked"] is True
        assert shown["last_error"] == f"ValueError: {MASKED}"
        assert whole.count(CANARY) >= 4


class TestFiltersAsOracles:
    """Whoever may not see a value may not find it out by asking for it either."""

    @pytest.mark.parametrize("q", [f"error:{CANARY}", "error:c", f"-error:{CANARY}", f"tag.password:{CANARY}"])
    async def test_what_is_hidden_cannot_be_searched_for(self, q: str, masked: Server) -> None:
        await fill(masked)
        viewer, operator = await masked.as_role("viewer"), await masked.as_role("operator")
        for path in ("/tasks", "/tasks/export"):
            answer = await viewer.ask("GET", f"{path}?q={quote(q)}")
            assert (answer.status_code, answer.json()["code"]) == (400, "bad_filter")
            assert MASKED in answer.json()["detail"]
        assert (await operator.get("/tasks", q=q)).status_code == 200

    async def test_by_the_class_of_an_error_and_by_other_tags_it_can(self, masked: Server) -> None:
        await masked.app.submit("mail", id="t", tags={"who": "ada"})
        viewer = await masked.as_role("viewer")
        assert [each["id"] for each in (await viewer.read("/tasks", q="tag.who:ada"))["items"]] == ["t"]


class TestMask:
    @pytest.mark.parametrize(
        ("text", "shown"),
        [
            ("ValueError: x", f"ValueError: {MASKED}"),
            ("ValueError", f"ValueError: {MASKED}"),
            ("my.module.PaymentFailed: x", f"my.module.PaymentFailed: {MASKED}"),
            ("hunter2", MASKED),
            ("hunter2: wrong", MASKED),
            ("s3cret.Value: wrong", MASKED),
            ("Exit code 3", MASKED),
            ("", ""),
            (None, None),
        ],
    )
    def test_of_an_error_only_what_is_a_class_is_shown(self, text: str | None, shown: str | None) -> None:
        assert Mask(["password"]).error(text) == shown
        assert Mask().error(text) == text

    def test_a_class_that_repeats_a_hidden_value_is_not_shown(self) -> None:
        assert Mask(["password"]).of({"password": "Sesame"}).error("SesameError: x") == MASKED

    def test_names_are_patterns_without_regard_to_case(self) -> None:
        mask = Mask(["password", "*_TOKEN"])
        assert [mask.hides(name) for name in ("Password", "api_token", "token", "passwords")] == [
            True,
            True,
            False,
            False,
        ]

    def test_values_of_any_kind_are_found_again(self) -> None:
        hidden = Mask(["pin"]).of({"pin": [1234, {"a": "abcd"}], "short": 1})
        shown = hidden.value({"pin": 1, "x": "has 1234", "y": ["abcd"], "z": b"raw", "n": 1234, "ok": 5, "yes": True})
        assert shown == {
            "pin": MASKED, "x": MASKED, "y": [MASKED], "z": MASKED, "n": MASKED, "ok": 5, "yes": True,
        }  # fmt: skip

    def test_names_of_fields_that_repeat_a_hidden_value_are_hidden_too(self) -> None:
        payload = {"password": CANARY, "by": {f"user-{CANARY}": 1, "other": [{CANARY: 2}]}}
        hidden = Mask(MASK).of(payload)
        assert hidden.value(payload) == {"password": MASKED, "by": {MASKED: 1, "other": [{MASKED: 2}]}}
        assert hidden.value({CANARY: "a tag"}) == {MASKED: "a tag"}

    @pytest.mark.parametrize("payload", [b"\x80c4n4ry", Login("c4n4ry"), {"c4n4ry"}])
    def test_where_a_payload_has_no_names_to_go_by_all_that_may_repeat_it_is_hidden(self, payload: Any) -> None:
        hidden = Mask(MASK).of(payload, {}, {"who": CANARY})
        assert hidden.value(payload) == MASKED
        assert hidden.name(f"key-{CANARY}") == MASKED
        assert hidden.value({"who": CANARY}) == {MASKED: MASKED}
        assert Mask().of(payload).value(payload) is payload

    def test_plain_values_of_any_kind_are_shown(self) -> None:
        plain = [None, True, 1, 1.5, "x", datetime(2030, 1, 1, tzinfo=UTC), Decimal("1.5"), timedelta(1)]
        assert Mask(MASK).of({"password": CANARY}, plain).value(plain) == plain


async def test_a_task_whose_serializer_the_server_does_not_know_shows_no_key(masked: Server) -> None:
    """A server alone knows none of the program, so that it cannot tell what of the payload is hidden."""
    writer = Scheduler(masked.app.config.store, namespace=masked.app.config.namespace)
    options: dict[str, Any] = {"key": f"key-{CANARY}", "dedup_key": CANARY, "tags": {"who": CANARY}}
    await writer.submit("mail", PAYLOAD, id="own", serializer=Zipped(), **options)
    await writer.close()
    viewer, operator = await masked.as_role("viewer"), await masked.as_role("operator")
    for path in ("/tasks", "/tasks/own", "/tasks/own/payload", "/tasks/export"):
        assert CANARY not in (await viewer.get(path)).text, path
    assert CANARY in (await operator.get("/tasks/own")).text


async def _has_ended(app: Scheduler, task_id: str) -> bool:
    return (await app.get_task(task_id)).status.ended
