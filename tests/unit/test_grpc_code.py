"""The generated code of both gRPC protocols is that of their .proto files, and that of executors only grows."""

from __future__ import annotations

from pathlib import Path

import pytest
from requirements import grpc_code

from tickwork.executors import grpc_gen
from tickwork.executors.grpc_gen import executor_pb2, executor_pb2_grpc
from tickwork.server.grpc import gen

# What services in other languages were built with. A field may be added at the end; none is changed or taken away.
MESSAGES = {
    "ExecuteRequest": "task_id type payload serializer attempt token deadline tags context idempotency_key namespace"
    " queue",
    "ExecuteResponse": "code message data",
    "CancelRequest": "task_id token idempotency_key attempt",
    "CancelResponse": "stopping",
}


GIVEN = {grpc_gen.__name__: grpc_gen.SHA256, gen.__name__: gen.SHA256}


def package_of(protocol: grpc_code.Protocol) -> str:
    return ".".join(protocol.target.relative_to(grpc_code.ROOT / "src").parts)


@pytest.mark.parametrize("protocol", grpc_code.PROTOCOLS, ids=package_of)
class TestDigest:
    """Nothing that goes into the code was changed since it was generated, nor the code. The generator has an
    environment of its own, which is not there as a rule: `make proto-check` makes it, and compares the files."""

    def test_it_is_that_of_the_code_and_of_what_it_is_made_of(self, protocol: grpc_code.Protocol) -> None:
        assert grpc_code.digest(protocol, grpc_code.stored(protocol)) == GIVEN[package_of(protocol)], "run make proto"

    def test_each_of_them_counts(
        self, protocol: grpc_code.Protocol, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        files = grpc_code.stored(protocol)
        seen = {GIVEN[package_of(protocol)]}
        for name, text in files.items():
            seen.add(grpc_code.digest(protocol, {**files, name: text + "\n"}))
        seen.add(grpc_code.digest(protocol, {name: text for name, text in files.items() if name.endswith(".py")}))
        changed = tmp_path / "changed"
        for path in (protocol.source, *grpc_code.GENERATOR):
            changed.write_bytes(path.read_bytes() + b"\n")
            if path == protocol.source:
                seen.add(grpc_code.digest(protocol._replace(source=changed), files))
            else:
                others = [changed if each == path else each for each in grpc_code.GENERATOR]
                monkeypatch.setattr(grpc_code, "GENERATOR", tuple(others))
                seen.add(grpc_code.digest(protocol, files))
                monkeypatch.undo()
        assert len(seen) == 1 + len(files) + 1 + 3


@pytest.mark.parametrize("message", MESSAGES)
def test_fields_keep_their_numbers(message: str) -> None:
    fields = executor_pb2.DESCRIPTOR.message_types_by_name[message].fields
    assert {field.name: field.number for field in fields} == {
        name: number for number, name in enumerate(MESSAGES[message].split(), 1)
    }


def test_the_service_has_the_name_of_the_proto() -> None:
    assert executor_pb2.DESCRIPTOR.services_by_name["Executor"].full_name == "tickwork.executor.v1.Executor"
    assert executor_pb2_grpc.ExecutorServicer.__module__ == "tickwork.executors.grpc_gen.executor_pb2_grpc"
