"""Messages become arguments, and answers become messages."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest
from google.protobuf.message import Message as Proto

from tests.server.grpc.calling import PROTOCOL, request_of
from tickwork.model.reports import Percentiles
from tickwork.server.grpc.codec import Codec
from tickwork.server.grpc.gen import tickwork_pb2 as pb
from tickwork.server.operations.reports import SeriesLine, SeriesView
from tickwork.server.operations.tasks import NewTask, NewTasks, Payload
from tickwork.server.problems import Refused

codec = Codec(PROTOCOL)
NOW = datetime(2030, 3, 17, 17, 46, 40, 123456, tzinfo=UTC)


def read(operation: str, request: Proto) -> dict[str, Any]:
    return codec.arguments(PROTOCOL.methods[operation], request.SerializeToString())


def arguments(operation: str, **values: Any) -> dict[str, Any]:
    return read(operation, request_of(PROTOCOL.methods[operation].request, values))


def refused(operation: str, request: Proto) -> Refused:
    with pytest.raises(Refused) as error:
        read(operation, request)
    assert error.value.problem.status == 400
    return error.value


class TestRequests:
    def test_what_is_left_out_is_at_the_default_of_the_operation(self) -> None:
        assert arguments("list_tasks") == {}
        assert arguments("list_tasks", q="type:mail", limit=7) == {"q": "type:mail", "limit": 7}

    def test_a_body_is_made_of_what_is_given(self) -> None:
        found = arguments("submit_task", type="mail", payload={"n": 1}, tags={"a": "b"}, schedule_at=NOW, delay=1.5)
        assert found == {"body": NewTask(type="mail", payload={"n": 1}, tags={"a": "b"}, schedule_at=NOW, delay=1.5)}

    def test_tasks_of_a_batch(self) -> None:
        found = arguments("submit_tasks", tasks=[{"type": "a", "depends_on": ["x"]}, {"type": "b", "payload": None}])
        assert found == {"body": NewTasks(tasks=[NewTask(type="a", depends_on=["x"]), NewTask(type="b", payload=None)])}

    @pytest.mark.parametrize("value", [2**53 + 1, -(2**63), 2**64 - 1, 2**80, None, 0.1, "ä\x00\u2028", [], {"": {}}])
    def test_values_of_a_payload_are_exact(self, value: Any) -> None:
        body = arguments("submit_task", type="mail", payload=value)["body"]
        assert body.payload == value
        assert type(body.payload) is type(value)

    def test_a_path_must_be_named(self) -> None:
        assert "id: it must be named" in str(refused("get_task", pb.GetTaskRequest()))

    @pytest.mark.parametrize(
        ("operation", "request_", "where"),
        [
            ("list_tasks", pb.ListTasksRequest(limit=0), "limit"),
            ("list_tasks", pb.ListTasksRequest(limit=501), "limit"),
            ("submit_task", pb.SubmitTaskRequest(), "type"),
            ("submit_task", pb.SubmitTaskRequest(type="a b"), "type"),
            ("submit_task", pb.SubmitTaskRequest(type="a", priority=11), "priority"),
            ("submit_task", pb.SubmitTaskRequest(type="a", unique="always"), "unique"),
            ("submit_task", pb.SubmitTaskRequest(type="a", context="[]"), "context"),
            ("submit_tasks", pb.SubmitTasksRequest(), "tasks"),
            ("submit_tasks", pb.SubmitTasksRequest(tasks=[pb.NewTask(type="a", delay=-1)]), "delay"),
            ("make_token", pb.MakeTokenRequest(name="a", role="king"), "role"),
            ("set_limit", pb.SetLimitRequest(of="type:a", rate="{}"), "rate"),
            ("list_audit", pb.ListAuditRequest(journal="all"), "journal"),
        ],
    )
    def test_bounds_are_those_of_the_operation(self, operation: str, request_: Proto, where: str) -> None:
        assert where in str(refused(operation, request_))

    @pytest.mark.parametrize("value", [float("nan"), float("inf"), float("-inf")])
    def test_numbers_are_finite(self, value: float) -> None:
        assert "finite" in str(refused("submit_task", pb.SubmitTaskRequest(type="a", delay=value)))
        assert "finite" in str(refused("preview_bulk", pb.PreviewBulkRequest(action="cancel", filter="a", rate=value)))

    def test_a_time_that_is_none_is_refused(self) -> None:
        request = pb.SubmitTaskRequest(type="a")
        request.schedule_at.seconds = 2**60
        assert "schedule_at" in str(refused("submit_task", request))

    def test_fields_that_are_not_known_are_refused(self) -> None:
        data = pb.SubmitTaskRequest(type="a").SerializeToString() + b"\xc2\x3e\x01x"  # a text in field 1000
        with pytest.raises(Refused, match=r"1000"):
            codec.arguments(PROTOCOL.methods["submit_task"], data)
        inner = pb.NewTask.FromString(pb.NewTask(type="a").SerializeToString() + b"\xc2\x3e\x01x")
        assert "1000" in str(refused("submit_tasks", pb.SubmitTasksRequest(tasks=[inner])))

    def test_bytes_that_are_no_message_are_refused(self) -> None:
        with pytest.raises(Refused) as error:
            codec.arguments(PROTOCOL.methods["submit_task"], b"\xff\xff")
        assert error.value.problem.code == "not_readable"


class TestJson:
    @pytest.mark.parametrize("field", ["payload", "context"])
    def test_depth_is_looked_at_before_it_is_decoded(self, field: str) -> None:
        request = pb.SubmitTaskRequest(type="a")
        setattr(request, field, "[" * 65 + "]" * 65)
        assert refused("submit_task", request).problem.code == "too_deep"
        setattr(request, field, "[" * 200_000)
        assert refused("submit_task", request).problem.code == "too_deep"

    def test_64_levels_are_fine(self) -> None:
        deep = json.loads("[" * 64 + "]" * 64)
        assert arguments("submit_task", type="a", payload=deep)["body"].payload == deep

    @pytest.mark.parametrize(
        ("text", "code"),
        [("", "not_json"), ("{", "not_json"), ("NaN", "not_json"), ('{"a": 1, "a": 2}', "repeated_name")],
    )
    def test_what_is_no_json_is_refused(self, text: str, code: str) -> None:
        error = refused("submit_task", pb.SubmitTaskRequest(type="a", payload=text))
        assert error.problem.code == code
        assert error.problem.detail.startswith("payload: ")

    def test_a_rate_is_a_number_or_a_text(self) -> None:
        assert arguments("set_limit", of="type:a", rate=2.5)["body"].rate == 2.5
        assert arguments("set_limit", of="type:a", rate="100/m")["body"].rate == "100/m"


class TestClear:
    def test_absent_null_and_given_are_three_things(self) -> None:
        body = arguments("edit_schedule", id="a", queue="q", clear=["cron", "tags", "context"])["body"]
        given = {name: getattr(body, name) for name in ("queue", "cron", "tags", "context", "key")}
        assert given == {"queue": "q", "cron": None, "tags": None, "context": None, "key": given["key"]}
        assert given["key"] is not None
        assert not given["key"]  # unset

    def test_null_in_json_is_null_too(self) -> None:
        body = arguments("edit_schedule", id="a", context=None, payload=None)["body"]
        assert (body.context, body.payload) == (None, None)

    @pytest.mark.parametrize("name", ["id", "enabled", "nothing", ""])
    def test_what_cannot_be_null_is_refused(self, name: str) -> None:
        assert "clear" in str(refused("edit_schedule", pb.EditScheduleRequest(id="a", clear=[name])))

    def test_given_and_cleared_is_refused(self) -> None:
        request = pb.EditScheduleRequest(id="a", cron="* * * * *", clear=["cron"])
        assert "cron" in str(refused("edit_schedule", request))


class TestAnswers:
    def test_values_are_json_even_null(self) -> None:
        data = codec.answer(
            PROTOCOL.methods["get_payload"], Payload(payload=2**63 + 1, context={"a": [None]}, result=None)
        )
        found = pb.Payload.FromString(data)
        assert (found.payload, found.context, found.result) == (str(2**63 + 1), '{"a":[null]}', "null")

    def test_a_list_may_have_gaps(self) -> None:
        counts: dict[str, list[int]] = {
            name: [1, 2]
            for name in ("submitted", "started", "success", "failed", "dead", "cancelled", "retries", "losses")
        }
        line = SeriesLine(name="a", wait=[None, Percentiles(0.0, 0.0, 0.0)], run=[None, None], **counts)
        data = codec.answer(PROTOCOL.methods["get_series"], SeriesView(grain="minute", times=[NOW, NOW], lines=[line]))
        found = pb.SeriesView.FromString(data)
        assert [each.HasField("value") for each in found.lines[0].wait] == [False, True]
        assert list(found.lines[0].losses) == [1, 2]
        assert found.times[1].ToDatetime(tzinfo=UTC) == NOW

    def test_a_text_that_is_none_is_shown_all_the_same(self) -> None:
        data = codec.answer(PROTOCOL.methods["export_tasks"], "a\ud800b")
        assert pb.ExportTasksResponse.FromString(data).text == "a\\ud800b"

    def test_nothing_is_an_empty_message(self) -> None:
        assert codec.answer(PROTOCOL.methods["delete_task"], None) == b""
