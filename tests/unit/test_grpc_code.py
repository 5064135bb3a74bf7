"""The generated code of the gRPC protocol is that of the .proto, and the protocol only grows."""

from __future__ import annotations

import hashlib
from importlib.resources import files

import pytest

from tickwork.executors import grpc_gen
from tickwork.executors.grpc_gen import executor_pb2, executor_pb2_grpc

PROTO = files("tickwork") / "proto/tickwork/executor/v1/executor.proto"
# What services in other languages were built with. A field may be added at the end; none is changed or taken away.
MESSAGES = {
    "ExecuteRequest": "task_id type payload serializer attempt token deadline tags context idempotency_key namespace"
    " queue",
    "ExecuteResponse": "code message data",
    "CancelRequest": "task_id token idempotency_key attempt",
    "CancelResponse": "stopping",
}


def test_the_code_is_generated_from_the_proto_as_it_is() -> None:
    assert hashlib.sha256(PROTO.read_bytes()).hexdigest() == grpc_gen.PROTO_SHA256, "run make proto"


@pytest.mark.parametrize("message", MESSAGES)
def test_fields_keep_their_numbers(message: str) -> None:
    fields = executor_pb2.DESCRIPTOR.message_types_by_name[message].fields
    assert {field.name: field.number for field in fields} == {
        name: number for number, name in enumerate(MESSAGES[message].split(), 1)
    }


def test_the_service_has_the_name_of_the_proto() -> None:
    assert executor_pb2.DESCRIPTOR.services_by_name["Executor"].full_name == "tickwork.executor.v1.Executor"
    assert executor_pb2_grpc.ExecutorServicer.__module__ == "tickwork.executors.grpc_gen.executor_pb2_grpc"
