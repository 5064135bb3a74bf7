"""Tasks that a gRPC service runs."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import grpc
import pytest

from tests.integration.apps import Make, eventually
from tests.support.grpc_service import Service, serving
from tests.support.redis.tls import TlsFiles, tls_files
from tests.support.waiting import wait_until
from tickwork import ConfigError, Scheduler, Status, TaskFailed, TaskResult
from tickwork.executors.grpc_gen.executor_pb2 import ExecuteResponse


@pytest.fixture
def service() -> Service:
    return Service()


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> TlsFiles:
    return tls_files(tmp_path_factory.mktemp("tls"))


@pytest.fixture
async def port(service: Service) -> AsyncIterator[int]:
    async with serving(service) as port:
        yield port


def options(port: int, scheme: str = "http", host: str = "127.0.0.1", **target: Any) -> dict[str, Any]:
    address = f"{scheme}://{host}:{port}"
    target = {"address": address, "types": ["ship", "hang"], **target}
    return {"allow_addresses": [address], "grpc_targets": {"stock": target}}


async def error_of(app: Scheduler, type: str = "ship", **said: Any) -> str:
    task = await app.submit(type, {"id": 7}, **said)
    with pytest.raises(TaskFailed):
        await task.result(30)
    return (await task.info()).last_error or ""


async def connect(app: Scheduler) -> None:
    """So that a call with little time has it for itself."""
    await (await app.submit("ship", max_retry=1000)).result(60)


async def test_a_service_runs_a_task(make: Make, url: str, service: Service, port: int) -> None:
    service.response = ExecuteResponse(code=3, message="sent\x1b[2J\nby post", data=b'{"parcel": 12}')
    app = make(url, **options(port))
    async with app:
        task = await app.submit("ship", {"id": 7}, tags={"shop": "eu"}, context={"user": 1}, queue="default")
        assert await task.result(30) == {"parcel": 12}
        info = await task.info()
    assert info.result == TaskResult(3, "sent [2J by post", {"parcel": 12})
    [request] = service.asked
    assert (request.task_id, request.type, request.attempt, request.queue) == (task.id, "ship", 1, "default")
    assert (request.payload, request.serializer, request.context) == (b'{"id":7}', "json", b'{"user":1}')
    assert dict(request.tags) == {"shop": "eu"}
    assert request.idempotency_key == f"{task.id}:1"
    assert request.namespace == app.config.namespace
    assert len(request.token) == 32
    assert 0 < (request.deadline.ToDatetime(UTC) - datetime.now(UTC)).total_seconds() <= 10


async def test_a_handler_and_a_submission_name_a_target(make: Make, service: Service, port: int) -> None:
    app = make("memory://", **options(port, types=[]))

    @app.task(executor="grpc", target="stock")
    async def pack(id: int) -> dict[str, bool]:
        raise NotImplementedError

    @app.task
    async def weigh(id: int) -> dict[str, bool]:
        raise NotImplementedError

    async with app:
        assert await (await pack.submit(7)).result(30) == {"done": True}
        there = await weigh.options(executor="grpc", target="stock").submit(8)
        assert await there.result(30) == {"done": True}
    assert [(request.type, request.payload) for request in service.asked] == [
        ("pack", b'{"id":7}'),
        ("weigh", b'{"id":8}'),
    ]


async def test_a_response_without_data(make: Make, service: Service, port: int) -> None:
    service.response = ExecuteResponse()
    app = make("memory://", **options(port))
    async with app:
        assert await (await app.submit("ship")).result(30) is None
    assert service.asked[0].payload == b""


class TestStatuses:
    @pytest.mark.parametrize(
        "code",
        [
            "INVALID_ARGUMENT", "NOT_FOUND", "UNIMPLEMENTED", "PERMISSION_DENIED", "UNAUTHENTICATED",
            "FAILED_PRECONDITION", "OUT_OF_RANGE",
        ],
    )  # fmt: skip
    async def test_some_end_the_task(self, make: Make, service: Service, port: int, code: str) -> None:
        service.statuses = [(code, "no \x1b]0;such\nparcel", ())]
        app = make("memory://", **options(port))
        async with app:
            text = await error_of(app)
        assert text == f"gRPC target 'stock' (http://127.0.0.1:{port}): {code}: no ]0;such parcel"
        assert len(service.asked) == 1

    @pytest.mark.parametrize("code", ["UNAVAILABLE", "INTERNAL", "ABORTED", "UNKNOWN", "CANCELLED", "DATA_LOSS"])
    async def test_others_are_retried(self, make: Make, service: Service, port: int, code: str) -> None:
        service.statuses = [(code, "", ())]
        app = make("memory://", **options(port))
        async with app:
            task = await app.submit("ship")
            await task.result(30)
            info = await task.info()
        assert [request.attempt for request in service.asked] == [1, 2]
        assert [request.idempotency_key for request in service.asked] == [f"{task.id}:1", f"{task.id}:2"]
        assert [attempt.end for attempt in info.attempts] == ["failed"]
        assert info.attempts[0].error == f"gRPC target 'stock' (http://127.0.0.1:{port}): {code}"

    @pytest.mark.parametrize("code", ["UNAVAILABLE", "RESOURCE_EXHAUSTED"])
    async def test_not_now_charges_no_attempt(self, make: Make, service: Service, port: int, code: str) -> None:
        service.statuses = [(code, "full", [("retry-after", "0.05")])]
        app = make("memory://", max_retry=0, **options(port))
        async with app:
            task = await app.submit("ship")
            await task.result(30)
            info = await task.info()
        assert [request.attempt for request in service.asked] == [1, 1]
        assert (info.attempt, [attempt.end for attempt in info.attempts]) == (1, ["snoozed"])


class TestTime:
    async def test_a_service_is_told_the_least_of_both_limits(self, make: Make, service: Service, port: int) -> None:
        app = make("memory://", **options(port, timeout=50))
        async with app:
            await (await app.submit("ship", timeout=20)).result(30)
            await (await app.submit("ship", timeout=200)).result(30)
            await (await app.submit("ship", timeout=0)).result(30)
        shorter, longer, none = (left for left in service.time_left if left is not None)
        assert shorter <= 20 < longer <= 51
        assert 20 < none <= 51
        assert [request.HasField("deadline") for request in service.asked] == [True, True, False]

    async def test_no_answer_within_the_time_of_the_target(self, make: Make, service: Service, port: int) -> None:
        app = make("memory://", max_retry=0, **options(port, timeout=1))
        async with app:
            await connect(app)
            assert await error_of(app, "hang") == f"gRPC target 'stock' (http://127.0.0.1:{port}): no answer within 1 s"
            await wait_until(lambda: service.stopped and service.cancels, what="the service sees the end of the call")

    async def test_a_timeout_of_the_task_reaches_the_service(self, make: Make, service: Service, port: int) -> None:
        app = make("memory://", max_retry=0, **options(port))
        async with app:
            await connect(app)
            assert await error_of(app, "hang", timeout=1) == "timed out after 1 s"
            await wait_until(lambda: service.stopped and service.cancels, what="the service sees the end of the call")


class TestCancelling:
    async def test_it_reaches_the_service(self, make: Make, url: str, service: Service, port: int) -> None:
        app = make(url, **options(port))
        async with app:
            task = await app.submit("hang")
            await wait_until(lambda: service.asked, what="the call")
            await app.cancel(task.id, force=True)
            await wait_until(lambda: service.stopped == [task.id], what="the call is cancelled")
            await wait_until(lambda: service.cancels, what="Cancel is called")
            await eventually(lambda: _has_status(task, Status.CANCELLED))
        [request], [cancel] = service.asked, service.cancels
        assert (cancel.task_id, cancel.token, cancel.attempt) == (task.id, request.token, 1)
        assert cancel.idempotency_key == request.idempotency_key

    async def test_a_service_without_cancel_is_asked_once(self, make: Make, service: Service, port: int) -> None:
        service.implements_cancel = False
        app = make("memory://", max_retry=0, **options(port, timeout=1))
        async with app:
            await connect(app)
            await error_of(app, "hang")
            await wait_until(lambda: service.cancels, what="Cancel is called")
            executor: Any = app.executors._known["grpc"]
            await wait_until(lambda: not executor._cancels, what="its answer is read")
            await error_of(app, "hang")
            await wait_until(lambda: len(service.stopped) == 2, what="the second call is cancelled")
        assert len(service.cancels) == 1

    async def test_a_shutdown_gives_the_task_back(
        self, make: Make, service: Service, port: int, sqlite_url: str
    ) -> None:
        app = make(sqlite_url, **options(port))
        await app.start()
        task = await app.submit("hang")
        await wait_until(lambda: service.asked, what="the call")
        await app.shutdown(0)
        await wait_until(lambda: service.stopped == [task.id], what="the call is cancelled")
        later = make(sqlite_url)
        assert (await later.get_task(task.id)).status is Status.READY


class TestBounds:
    async def test_a_request_over_the_bound_is_not_sent(self, make: Make, service: Service, port: int) -> None:
        app = make("memory://", **options(port, request_limit=1000))
        async with app:
            text = await error_of(app, context={"long": "x" * 1000})
        assert "the request has 1," in text
        assert text.endswith("bytes, request_limit is 1,000")
        assert service.asked == []

    async def test_a_response_over_the_bound_ends_the_task(self, make: Make, service: Service, port: int) -> None:
        service.response = ExecuteResponse(data=b'"' + b"x" * 5_000_000 + b'"')
        app = make("memory://", **options(port, response_limit=1000))
        async with app:
            assert "message larger than max" in await error_of(app)
        assert len(service.asked) == 1

    async def test_compressed_responses_are_refused(self, make: Make, service: Service) -> None:
        service.response = ExecuteResponse(data=b'"' + b"x" * 50_000_000 + b'"')
        async with serving(service, compression=grpc.Compression.Gzip) as port:
            app = make("memory://", max_retry=0, **options(port))
            async with app:
                assert "gzip" in await error_of(app)

    @pytest.mark.parametrize(
        ("data", "complaint"), [(b"{", "truncated"), (b"[" * 100 + b"]" * 100, "nested"), (b"\xff", "malformed")]
    )
    async def test_data_that_is_no_json(
        self, make: Make, service: Service, port: int, data: bytes, complaint: str
    ) -> None:
        service.response = ExecuteResponse(data=data)
        app = make("memory://", **options(port))
        async with app:
            text = await error_of(app)
        assert "the data of the response cannot be used" in text
        assert complaint in text
        assert len(service.asked) == 1, "the work is done, so it is not done again"


class TestMetadata:
    async def test_secrets_come_from_files(self, make: Make, service: Service, port: int, tmp_path: Path) -> None:
        file = tmp_path / "token"
        file.write_text("first\n")
        metadata = {"authorization": {"secret": f"file:{file}", "prefix": "Bearer "}, "x-shop": "eu"}
        app = make("memory://", max_retry=0, **options(port, metadata=metadata))
        async with app:
            await (await app.submit("ship")).result(30)
            file.write_text("the second\n")
            await (await app.submit("ship")).result(30)
            file.unlink()
            text = await error_of(app)
        assert [(each["authorization"], each["x-shop"]) for each in service.metadata] == [
            ("Bearer first", "eu"),
            ("Bearer the second", "eu"),
        ]
        assert str(file) in text


class TestTls:
    @staticmethod
    def server(files: TlsFiles, *, ask_client: bool = False) -> grpc.ServerCredentials:
        pair = files["server_key"].read_bytes(), files["server_cert"].read_bytes()
        ca = files["ca"].read_bytes() if ask_client else None
        return grpc.ssl_server_credentials([pair], ca, ask_client)

    async def test_both_sides_show_a_certificate(self, make: Make, service: Service, files: TlsFiles) -> None:
        tls = {"ca": str(files["ca"]), "cert": str(files["client_cert"]), "key": str(files["client_key"])}
        async with serving(service, self.server(files, ask_client=True)) as port:
            app = make("memory://", **options(port, "https", "localhost", tls=tls))
            async with app:
                assert await (await app.submit("ship")).result(30) == {"done": True}

    async def test_the_name_of_the_certificate_may_be_another(
        self, make: Make, service: Service, files: TlsFiles
    ) -> None:
        tls = {"ca": str(files["ca"]), "server_name": "localhost"}
        async with serving(service, self.server(files)) as port:
            app = make("memory://", **options(port, "https", tls=tls))
            async with app:
                assert await (await app.submit("ship")).result(30) == {"done": True}

    async def test_a_certificate_of_another_name(self, make: Make, service: Service, files: TlsFiles) -> None:
        tls = {"ca": str(files["ca"]), "server_name": "elsewhere.example"}
        async with serving(service, self.server(files)) as port:
            app = make("memory://", max_retry=0, **options(port, "https", tls=tls))
            async with app:
                text = await error_of(app)
        assert text.startswith(f"gRPC target 'stock' (https://127.0.0.1:{port}): UNAVAILABLE: ")
        assert service.asked == []

    async def test_a_certificate_of_an_unknown_authority(self, make: Make, service: Service, files: TlsFiles) -> None:
        async with serving(service, self.server(files)) as port:
            app = make("memory://", max_retry=0, **options(port, "https"))
            async with app:
                assert "CERTIFICATE_VERIFY_FAILED" in await error_of(app)
        assert service.asked == []

    async def test_files_are_looked_at_before_the_first_task(self, make: Make, files: TlsFiles, tmp_path: Path) -> None:
        missing = str(tmp_path / "none.pem")
        app = make("memory://", **options(1, "https", tls={"ca": missing}))
        with pytest.raises(ConfigError, match=f"grpc_targets: stock: tls: .*{missing}.*: No such file"):
            await app.start()


class TestAddresses:
    @pytest.mark.parametrize("name", ["http_proxy", "https_proxy", "grpc_proxy", "all_proxy"])
    async def test_no_proxy_of_the_environment_is_used(
        self, make: Make, service: Service, port: int, monkeypatch: pytest.MonkeyPatch, name: str
    ) -> None:
        monkeypatch.setenv(name, "http://127.0.0.1:1")
        app = make("memory://", **options(port))
        async with app:
            assert await (await app.submit("ship")).result(30) == {"done": True}

    async def test_a_service_that_comes_later_is_found(self, make: Make, service: Service) -> None:
        async with serving(service) as port:
            pass
        app = make("memory://", max_retry=0, **options(port))
        async with app:
            assert "UNAVAILABLE" in await error_of(app)
            async with serving(service, port=port):
                task = await app.submit("ship", max_retry=1000)
                assert await task.result(60) == {"done": True}

    async def test_an_address_outside_of_the_list_is_refused_at_once(self) -> None:
        given = options(9)
        given["allow_addresses"] = ["http://127.0.0.1:10"]
        with pytest.raises(ConfigError, match=r"grpc_targets: stock: address http://127.0.0.1:9 is not allowed"):
            Scheduler("memory://", **given)

    async def test_a_name_that_leads_to_an_address_outside_of_the_list(
        self, make: Make, service: Service, port: int, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        async def lookup(*where: Any, **more: Any) -> list[Any]:
            return [(0, 0, 0, "", ("127.0.0.1", port))]

        app = make("memory://", max_retry=0, **options(port, host="stock.example.com"))
        monkeypatch.setattr(asyncio.get_running_loop(), "getaddrinfo", lookup)
        async with app:
            text = await error_of(app)
        assert "host stock.example.com is not called: it has the address 127.0.0.1 (loopback)" in text
        assert service.asked == []


class TestBadInput:
    @pytest.mark.parametrize(
        ("target", "complaint"),
        [
            ({"address": "http://127.0.0.1:9/path"}, "has a path"),
            ({"address": "127.0.0.1:9"}, "must begin with http"),
            ({"tls": {"ca": "/ca.pem"}}, "tls goes with an address of https"),
            ({"timeout": 0}, "timeout must be above 0 seconds"),
            ({"response_limit": 0}, "response_limit must be from 1"),
            ({"metadata": {"X-Shop": "eu"}}, "metadata 'X-Shop': a name is small letters"),
            ({"metadata": {"grpc-timeout": "1"}}, "metadata 'grpc-timeout'"),
            ({"metadata": {"x": "a\nb"}}, "metadata 'x': a value is at most 4096 printable"),
            ({"metadata": {"x": {"secret": "hunter2"}}}, "a secret is named by reference"),
            ({"adress": "http://127.0.0.1:9"}, "did you mean 'address'"),
        ],
    )
    def test_a_target_that_cannot_be_used(self, target: dict[str, Any], complaint: str) -> None:
        with pytest.raises(ConfigError, match=r"^grpc_targets: ") as refused:
            Scheduler("memory://", **options(9, **target))
        assert complaint in str(refused.value)
        assert "hunter2" not in str(refused.value)

    def test_two_targets_for_one_type(self) -> None:
        given = options(9)
        given["grpc_targets"]["mail"] = given["grpc_targets"]["stock"]
        with pytest.raises(ConfigError, match="grpc_targets: mail: target 'stock' runs type 'ship' already"):
            Scheduler("memory://", **given)

    async def test_an_unknown_target(self) -> None:
        app = Scheduler("memory://", **options(9))
        app.task("pack")(lambda: None)
        with pytest.raises(ConfigError, match="executor 'grpc' has no target 'stok'; known are stock"):
            await app.submit("ship", executor="grpc", target="stok")
        with pytest.raises(ConfigError, match="executor 'grpc' needs a target; known are stock"):
            await app.submit("pack", executor="grpc")
        await app.close()

    async def test_targets_may_be_set_by_a_command_line(self) -> None:
        app = Scheduler("memory://", **options(9))
        app.configure(**options(9, types=["pack"]))
        assert app.registry.executors.run_by == {"pack": "grpc"}
        app.configure(grpc_targets={})
        assert app.executors.list() == ["local"]
        await app.close()


async def _has_status(task: Any, status: Status) -> bool:
    return bool((await task.info()).status is status)
