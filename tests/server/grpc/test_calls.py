"""Calls from end to end: what they do, how they fail, and what the audit log says of them."""

from __future__ import annotations

import asyncio
import json
import logging
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import grpc
import grpc.aio
import pytest

from tests.server.grpc.calling import Api, Failed, Grpc, calling
from tests.server.serving import HOME, OTHER
from tests.support.waiting import wait_until
from tickwork import Scheduler
from tickwork.server.calls import Call
from tickwork.server.grpc.gen import tickwork_pb2 as pb
from tickwork.server.grpc.statuses import TOLD_MAX, code_of, told
from tickwork.server.operations import Operation
from tickwork.server.problems import TITLES, Problem


async def failing(calling: Any) -> Failed:
    with pytest.raises(Failed) as error:
        await calling
    return error.value


class TestTasks:
    async def test_a_task_is_submitted_run_by_a_worker_and_read(self, url: str) -> None:
        app = Scheduler(url, namespace=HOME, server=True, server_port=0, server_tokens=True)

        @app.task("double")
        async def double(number: int) -> dict[str, int]:
            return {"twice": 2 * number}

        async with calling(url, node=True, app=app) as api:
            caller = await api.as_role("submitter")
            big = 2**62 + 1
            task = await caller.stub.SubmitTask(
                pb.SubmitTaskRequest(type="double", payload=json.dumps({"number": big}), tags={"a": "b"}),
                metadata=caller.metadata,
            )
            assert task.type == "double"
            found = task
            while found.status != "success":
                found = await caller.call("get_task", id=task.id)
            assert json.loads(found.result) == {"twice": 2 * big}
            assert json.loads(found.payload) == {"number": big}
            assert dict(found.tags) == {"a": "b"}
            assert found.HasField("finished_at")
            assert not found.HasField("error")
            kinds = [event.kind for event in (await caller.call("get_task_events", id=task.id)).items]
            assert kinds[0] == "task.submitted"

    async def test_a_batch_is_answered_task_by_task(self, caller: Grpc) -> None:
        found = await caller.call(
            "submit_tasks", tasks=[{"type": "a", "id": "one"}, {"type": "a", "id": "one"}, {"type": "b", "payload": 7}]
        )
        assert (found.created, found.refused) == (2, 1)
        assert [each.HasField("problem") for each in found.tasks] == [False, True, False]
        assert found.tasks[1].problem.existing_id == "one"

    async def test_a_batch_may_be_large_and_nothing_else(self, caller: Grpc) -> None:
        payload = "x" * 200_000
        found = await caller.call("submit_tasks", tasks=[{"type": "a", "payload": payload} for _ in range(20)])
        assert found.created == 20
        error = await failing(caller.call("submit_task", type="a", payload="x" * 1_100_000))
        assert (error.code, error.problem.code) == ("RESOURCE_EXHAUSTED", "too_large")
        error = await failing(caller.raw("/tickwork.v1.Tickwork/SubmitTasks", bytes(34_000_000)))
        assert error.code == "RESOURCE_EXHAUSTED"

    async def test_a_task_is_cancelled(self, caller: Grpc) -> None:
        task = await caller.call("submit_task", type="a", delay=3600.0)
        assert task.status == "pending"
        assert (await caller.call("cancel_task", id=task.id)).status == "cancelled"
        error = await failing(caller.call("run_task_now", id=task.id))
        assert (error.code, error.problem.status) == ("FAILED_PRECONDITION", 409)

    async def test_times_are_exact_to_the_millisecond(self, caller: Grpc) -> None:
        at = datetime.now(UTC).replace(microsecond=123_000) + timedelta(days=1)
        task = await caller.call("submit_task", type="a", schedule_at=at)
        assert task.scheduled_at.ToDatetime(tzinfo=UTC) == at

    async def test_an_id_that_is_taken_is_named(self, caller: Grpc) -> None:
        await caller.call("submit_task", type="a", id="mine")
        error = await failing(caller.call("submit_task", type="a", id="mine"))
        assert (error.code, error.problem.code, error.problem.existing_id) == ("ALREADY_EXISTS", "exists", "mine")

    async def test_a_list_is_walked_by_its_cursor(self, caller: Grpc) -> None:
        ids = [(await caller.call("submit_task", type="a", delay=60.0 + number)).id for number in range(5)]
        first = await caller.call("list_tasks", q="status:pending", limit=3)
        second = await caller.call("list_tasks", q="status:pending", limit=3, cursor=first.cursor)
        assert [each.id for each in (*first.items, *second.items)] == ids
        assert not second.HasField("cursor")


class TestSchedules:
    async def test_an_edit_leaves_clears_or_sets(self, caller: Grpc) -> None:
        await caller.call(
            "create_schedule", id="nightly", type="a", cron="0 3 * * *", queue="night", key="k", tags={"a": "b"},
            context={"x": 2**60},
        )  # fmt: skip
        edited = await caller.call("edit_schedule", id="nightly", priority=9, clear=["key", "cron", "tags"])
        assert (edited.queue, edited.priority, json.loads(edited.context)) == ("night", 9, {"x": 2**60})
        assert not edited.HasField("key")
        assert not edited.HasField("cron")
        assert not edited.tags
        again = await caller.call("edit_schedule", id="nightly", clear=["queue"])
        assert (again.queue, again.priority) == ("default", 9)

    async def test_one_that_exists_is_not_replaced(self, caller: Grpc) -> None:
        await caller.call("create_schedule", id="nightly", type="a", cron="0 3 * * *")
        error = await failing(caller.call("create_schedule", id="nightly", type="a"))
        assert error.code in ("ALREADY_EXISTS", "FAILED_PRECONDITION")
        assert error.problem.status == 409


class TestProblems:
    async def test_what_is_not_there(self, caller: Grpc) -> None:
        error = await failing(caller.call("get_task", id="no-such"))
        assert (error.code, error.problem.code) == ("NOT_FOUND", "task_not_found")
        assert error.details == error.problem.detail

    async def test_what_cannot_be_used(self, caller: Grpc) -> None:
        error = await failing(caller.call("list_tasks", q="statsu:dead"))
        assert (error.code, error.problem.code, error.problem.position) == ("INVALID_ARGUMENT", "bad_filter", 0)

    async def test_a_quota_says_when_to_come_again(self, url: str) -> None:
        async with calling(url, server_quota={"waiting": 1}) as api:
            caller = await api.as_role("submitter")
            await caller.call("submit_task", type="a")
            error = await failing(_until_refused(caller))
            assert (error.code, error.problem.code, error.trailing["retry-after"]) == (
                "RESOURCE_EXHAUSTED", "quota", "60",
            )  # fmt: skip

    async def test_a_mistake_of_the_server_tells_nothing(
        self, api: Api, caller: Grpc, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
    ) -> None:
        async def fail(*_: Any) -> None:
            raise RuntimeError("the secret of the house")

        monkeypatch.setattr(api.plane, "perform", fail)
        with caplog.at_level(logging.ERROR):
            error = await failing(caller.call("get_status"))
        assert (error.code, error.problem.code) == ("INTERNAL", "internal")
        assert "secret" not in str(error) + str(error.trailing)
        assert "the secret of the house" in caplog.text

    async def test_a_method_that_is_not_there(self, caller: Grpc) -> None:
        assert (await failing(caller.raw("/tickwork.v1.Tickwork/Burn", b""))).code == "UNIMPLEMENTED"

    @pytest.mark.parametrize(
        ("status", "code", "expected"),
        [
            (400, "bad_value", "INVALID_ARGUMENT"), (401, "bad_token", "UNAUTHENTICATED"),
            (403, "not_allowed", "PERMISSION_DENIED"), (404, "task_not_found", "NOT_FOUND"),
            (409, "exists", "ALREADY_EXISTS"), (409, "duplicate", "ALREADY_EXISTS"),
            (409, "not_retryable", "FAILED_PRECONDITION"), (410, "preview_over", "FAILED_PRECONDITION"),
            (429, "quota", "RESOURCE_EXHAUSTED"), (503, "store_unavailable", "UNAVAILABLE"),
            (507, "store_full", "RESOURCE_EXHAUSTED"), (500, "internal", "INTERNAL"),
        ],
    )  # fmt: skip
    def test_codes(self, status: int, code: str, expected: str) -> None:
        assert code_of(Problem(status, code, TITLES[status], "")).name == expected

    def test_what_is_told_fits_into_metadata(self) -> None:
        _, details, trailing = told(Problem(400, "bad_value", "Bad request", "ä\U0001f600\n" * 300))
        assert len(trailing[0][1]) <= TOLD_MAX
        assert trailing[0][1].isascii()
        assert json.loads(trailing[0][1])["detail"] == details


async def _until_refused(caller: Grpc) -> None:
    for _ in range(10_000):
        await caller.call("submit_task", type="a")


class TestNamespaces:
    async def test_metadata_names_the_namespace(self, api: Api) -> None:
        here, there = await api.as_role("admin"), await api.as_role("admin", namespace=OTHER)
        await there.call("submit_task", type="a", id="there")
        assert (await there.call("get_task", id="there")).id == "there"
        assert (await there.call("get_status")).namespace == OTHER
        assert (await failing(here.call("get_task", id="there"))).code == "NOT_FOUND"

    async def test_one_who_may_see_one_is_in_that_one(self, api: Api) -> None:
        caller = await api.as_role("viewer", OTHER)
        assert (await caller.call("get_status")).namespace == OTHER


class TestAudit:
    async def test_changes_and_refusals_are_told_as_by_http(self, api: Api) -> None:
        operator, viewer = await api.as_role("operator"), await api.as_role("viewer")
        await operator.call("pause_queue", name="q", note="why")
        await failing(viewer.call("pause_queue", name="q"))
        (change,) = (await operator.call("list_audit")).items
        assert (change.who, change.what, change.target, change.detail, change.via, change.address) == (
            "the operator", "paused a queue", "q", "why", "token", "127.0.0.1",
        )  # fmt: skip
        (refusal,) = (await operator.call("list_audit", journal="refusals")).items
        assert (refusal.who, refusal.what, refusal.result) == ("the viewer", "paused a queue", "not_allowed")

    async def test_a_change_is_told_even_if_its_caller_hangs_up(
        self, api: Api, caller: Grpc, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Else one could change things, and leave before it is written down who did."""
        method = api.plane.perform
        begun, go_on = asyncio.Event(), asyncio.Event()

        async def held(operation: Operation, *given: Any) -> Any:
            async def run(call: Call, **arguments: Any) -> Any:
                answer = await operation.run(call, **arguments)
                begun.set()
                await go_on.wait()
                return answer

            replaced = Operation(
                **{name: getattr(operation, name) for name in operation.__struct_fields__} | {"run": run}
            )
            return await method(replaced, *given)

        monkeypatch.setattr(api.plane, "perform", held)
        call = caller.stub.PauseQueue(pb.PauseQueueRequest(name="q"), metadata=caller.metadata)
        await begun.wait()
        call.cancel()
        assert await call.code() is grpc.StatusCode.CANCELLED
        monkeypatch.undo()
        assert not (await caller.call("list_audit")).items
        go_on.set()
        for _ in range(1000):
            found = (await caller.call("list_audit")).items
            if found:
                break
        assert [each.what for each in found] == ["paused a queue"]


async def test_values_are_masked_as_by_http(url: str) -> None:
    async with calling(url, server_mask=("card",)) as api:
        operator, viewer = await api.as_role("operator"), await api.as_role("viewer")
        task = await operator.call("submit_task", type="a", payload={"card": "4711", "n": 1})
        seen = await viewer.call("get_task", id=task.id)
        assert "4711" not in str(seen)
        assert seen.masked
        assert "4711" in (await operator.call("get_task", id=task.id)).payload


async def test_a_node_and_the_server_stop_in_time(url: str, tmp_path: Path) -> None:
    """A call that is being answered gets its answer."""
    async with calling(url) as api:
        caller = await api.as_role("admin")
        held = asyncio.Event()

        async def slow(*_: Any) -> Any:
            held.set()
            await asyncio.sleep(0.2)
            return await original(*_)

        original = api.plane.perform
        api.plane.perform = slow  # type: ignore[method-assign,assignment]
        asking = asyncio.ensure_future(caller.call("get_status"))
        await held.wait()
        await api.served.stop()
        assert (await asking).namespace == HOME
        await wait_until(lambda: not api.served._server)
