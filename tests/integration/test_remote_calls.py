"""Nodes that call remote workers, and what these may do to them."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any, Literal

import msgspec
import pytest
from click.testing import CliRunner

from tests.integration.apps import Make, eventually, store_of
from tests.support.hostile_http import ENDLESS_BODY, Request, Respond, answer, hang, reset, serving, vanish
from tests.support.serving import Answered, ask, served
from tickwork import Config, ConfigError, RemoteWorker, Scheduler, Status, TaskFailed, TickworkError
from tickwork.cli import commands
from tickwork.client.remote_workers import WorkerKeys
from tickwork.executors.remote import RemoteExecutor
from tickwork.executors.remote_calls import Called, Caller
from tickwork.model.members import Worker
from tickwork.node.probes import Probes
from tickwork.observe.loggers import Log
from tickwork.outbound.addresses import Allowed
from tickwork.outbound.client import Outbound
from tickwork.remote import Later, RemoteCall, RemoteWorkerApp, ReportRefused, report
from tickwork.remote.signing import Keys, answer_headers, is_signed_answer, request_headers

TYPES = ("echo", "wait", "later")


@pytest.fixture
def secret_file(tmp_path: Path) -> str:
    path = tmp_path / "administrator.secret"
    path.write_bytes(bytes(range(32)))
    return str(path)


def calling(app: Scheduler, address: str, callback_url: str | None = None) -> None:
    """Let the scheduler run these types by calls to one worker."""
    caller = Caller(Outbound(Allowed([address])), WorkerKeys(app.config))
    namespace = app.config.namespace
    executor = RemoteExecutor(
        caller, app.registry, namespace, lambda _: Called("w1", address), app._store, callback_url
    )
    app.executors.register("far", executor, types=TYPES)


def a_worker(app: Scheduler, **options: Any) -> RemoteWorkerApp:
    worker = RemoteWorkerApp("w1", secret=WorkerKeys(app.config).secret("w1"), **options)

    @worker.task("echo")
    async def echo(payload: Any, call: RemoteCall) -> Any:
        return {"payload": payload, "attempt": call.attempt, "tags": call.tags, "context": call.context}

    return worker


async def test_a_task_is_run_by_a_remote_worker(make: Make, secret_file: str) -> None:
    app = make("memory://", secret_file=secret_file)
    async with served(a_worker(app)) as address:
        calling(app, address)
        async with app:
            handle = await app.submit("echo", {"a": 1}, tags={"t": "1"}, context={"user": 7})
            assert await handle.result(30) == {
                "payload": {"a": 1}, "attempt": 1, "tags": {"t": "1"}, "context": {"user": 7},
            }  # fmt: skip
            packed = await app.submit("echo", [1, 2], serializer="msgpack")
            assert (await packed.result(30))["payload"] == [1, 2]


async def test_a_wrong_secret_is_a_failed_attempt_that_says_so(make: Make, secret_file: str) -> None:
    app = make("memory://", secret_file=secret_file)
    async with served(RemoteWorkerApp("w1", secret=b"x" * 32)) as address:
        calling(app, address)
        async with app:
            handle = await app.submit("echo", max_retry=1)
            with pytest.raises(TaskFailed, match="answered 401: the signature is wrong, and the answer is not signed"):
                await handle.result(30)
            info = await app.get_task(handle.id)
            assert (info.attempt, info.status) == (2, Status.DEAD)
            assert "Traceback" not in (info.last_error or "")


async def test_a_worker_without_a_free_slot_delays_the_task_without_blame(make: Make, secret_file: str) -> None:
    app = make("memory://", secret_file=secret_file)
    worker = a_worker(app, capacity=1)
    gate = asyncio.Event()

    @worker.task("wait")
    async def wait(payload: Any) -> str:
        await gate.wait()
        return "waited"

    async with served(worker) as address:
        calling(app, address)
        async with app:
            first = await app.submit("wait")
            await eventually(lambda: worker.running == 1)
            second = await app.submit("echo", max_retry=0)

            async def snoozed() -> bool:
                return any(each.end == "snoozed" for each in (await app.get_task(second.id)).attempts)

            await eventually(snoozed)
            gate.set()
            assert await first.result(30) == "waited"
            assert (await second.result(30))["attempt"] == 1


async def test_cancel_and_timeout_reach_the_worker(make: Make, secret_file: str) -> None:
    app = make("memory://", secret_file=secret_file)
    worker = a_worker(app)
    stopped: list[str] = []

    @worker.task("wait")
    async def wait(payload: str, call: RemoteCall) -> None:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            stopped.append(payload)
            raise

    async with served(worker) as address:
        calling(app, address)
        async with app:
            cancelled = await app.submit("wait", "cancelled")
            await eventually(lambda: worker.running == 1)
            await app.cancel(cancelled.id, force=True)
            await eventually(lambda: stopped == ["cancelled"])
            late = await app.submit("wait", "late", timeout=0.3, max_retry=0)
            with pytest.raises(TaskFailed, match="timed out after"):
                await late.result(30)
            await eventually(lambda: stopped == ["cancelled", "late"])
            assert (await app.get_task(cancelled.id)).status is Status.CANCELLED


# --- workers that answer what they should not


def signed_by(keys: Keys, body: bytes, status: int = 200, request_id: str | None = None, *more: str) -> Respond:
    """Answers what a worker with these keys would sign, to this request or to another one."""

    async def respond(request: Request, writer: asyncio.StreamWriter) -> None:
        wanted = request_id or request.header("idempotency-key") or ""
        headers = answer_headers(keys, status, body, worker_id="w1", request_id=wanted)
        lines = [f"{name}: {value}" for name, value in headers.items()]
        writer.write(answer(body, f"{status} Whatever", *lines, *more))

    return respond


DONE = b'{"status":"completed","result":"forged"}'
METADATA = "Location: http://169.254.169.254/latest/meta-data"
Make_answer = Callable[[Keys], Respond]


def unsigned(body: bytes, status: str = "200 OK", *headers: str) -> Make_answer:
    async def respond(_request: Request, writer: asyncio.StreamWriter) -> None:
        writer.write(answer(body, status, *headers))

    return lambda _keys: respond


HOSTILE: dict[str, tuple[Make_answer, int, str]] = {  # the answer, after how many attempts it is over, and how
    "hangs": (lambda _: hang, 2, "timed out after"),
    "resets": (lambda _: reset, 2, "has broken off its answer"),
    "vanishes": (lambda _: vanish, 2, "cannot call"),
    "sends without end": (lambda _: ENDLESS_BODY, 2, "more than 1048576 bytes"),
    "redirects": (unsigned(b"", "302 Found", METADATA), 2, "the redirect 302, which is not followed"),
    "does not sign": (unsigned(DONE), 2, "not signed with its secret"),
    "signs for another request": (lambda keys: signed_by(keys, DONE, 200, "another"), 2, "not signed with its secret"),
    "signs with another secret": (lambda _: signed_by(Keys.of(b"y" * 32), DONE), 2, "not signed with its secret"),
    "refuses without a signature": (unsigned(b"", "400 Bad"), 2, "answered 400, and the answer is not signed"),
    "refuses": (lambda keys: signed_by(keys, b'{"error":"no \\u001b[31m"}', 400), 1, "answered 400: no \ufffd[31m"),
    "fails": (lambda keys: signed_by(keys, b'{"status":"failed","error":"bad luck"}'), 2, "bad luck"),
    "fails for good": (lambda keys: signed_by(keys, b'{"status":"failed","error":"no","retry":false}'), 1, "no"),
    "breaks": (unsigned(b"", "502 Bad Gateway"), 2, "answered 502"),
    "answers no JSON": (lambda keys: signed_by(keys, b"<html>"), 1, "not what the protocol says"),
    "answers too deep": (lambda keys: signed_by(keys, b"[" * 9999 + b"]" * 9999), 1, "nested more than 64"),
    "says later with 200": (lambda keys: signed_by(keys, b'{"status":"accepted"}'), 2, "which is for 202"),
}


@pytest.mark.parametrize("how", HOSTILE)
async def test_hostile_answers(make: Make, secret_file: str, how: str) -> None:
    make_answer, attempts, text = HOSTILE[how]
    app = make("memory://", secret_file=secret_file)
    keys = WorkerKeys(app.config).of("w1")
    async with serving(make_answer(keys)) as server:
        calling(app, server.url)
        async with app:
            handle = await app.submit("echo", max_retry=1, timeout=0.5 if how == "hangs" else 30)
            with pytest.raises(TaskFailed):
                await handle.result(60)
            info = await app.get_task(handle.id)
    assert (info.attempt, info.status) == (attempts, Status.DEAD)
    assert text in (info.last_error or "")
    assert "Traceback" not in (info.last_error or "")
    assert not any("169.254" in each.line for each in server.requests)
    calls = [each for each in server.requests if each.line.startswith("POST /execute")]
    assert len(calls) == attempts
    assert len({each.header("idempotency-key") for each in calls}) == attempts


# --- ends that are reported later


async def later_app(
    make: Make, url: str, secret_file: str, calls: list[RemoteCall]
) -> tuple[Scheduler, RemoteWorkerApp]:
    app = make(url, secret_file=secret_file)
    worker = a_worker(app)

    @worker.task("later")
    async def later(payload: Any, call: RemoteCall) -> Later:
        calls.append(call)
        return Later()

    return app, worker


async def test_a_worker_reports_the_end_later(
    make: Make, url: str, secret_file: str, caplog: pytest.LogCaptureFixture
) -> None:
    calls: list[RemoteCall] = []
    app, worker = await later_app(make, url, secret_file, calls)
    async with served(worker) as address, served(app.callback_app()) as callback_url:
        calling(app, address, callback_url)
        async with app:
            handle = await app.submit("later", max_retry=1)
            await eventually(lambda: calls)
            await report(calls[0], {"video": 1}, code=3, message="rendered")
            assert await handle.result(30) == {"video": 1}
            info = await app.get_task(handle.id)
            assert info.result is not None
            assert (info.result.code, info.result.message, info.result.data) == (3, "rendered", {"video": 1})
            with pytest.raises(ReportRefused, match="409"):
                await report(calls[0], "second")
            failing = await app.submit("later", max_retry=1)
            await eventually(lambda: len(calls) == 2)
            await report(calls[1], error="bad luck")
            await eventually(lambda: len(calls) == 3)
            assert (calls[2].attempt, calls[2].token != calls[1].token) == (2, True)
            with pytest.raises(ReportRefused, match="409"):
                await report(calls[1], "late")
            await report(calls[2], error="no use", retry=False)
            with pytest.raises(TaskFailed, match="no use"):
                await failing.result(30)
    assert [each.message for each in caplog.records if "lost its lease" in each.message] == []


async def test_a_report_that_never_comes_is_a_failed_attempt_at_the_deadline(
    make: Make, url: str, secret_file: str
) -> None:
    calls: list[RemoteCall] = []
    app, worker = await later_app(make, url, secret_file, calls)
    async with served(worker) as address:
        calling(app, address)
        async with app:
            handle = await app.submit("later", max_retry=0, timeout=0.5)
            with pytest.raises(TaskFailed, match="timed out after"):
                await handle.result(30)
            await eventually(lambda: calls[0].cancelled)


async def test_wrong_late_and_foreign_tokens_look_the_same(make: Make, url: str, secret_file: str) -> None:
    calls: list[RemoteCall] = []
    app, worker = await later_app(make, url, secret_file, calls)
    reports = app.callback_app()

    async def tell(task_id: str, what: str = "status", **body: Any) -> tuple[int, bytes]:
        encoded = msgspec.json.encode({"status": "completed", "value": 0.5, **body})
        answered = await ask(reports, "POST", f"/tasks/{task_id}/{what}", encoded)
        return answered.status, answered.body

    async with served(worker) as address:
        calling(app, address)
        async with app:
            first, second = await app.submit("later"), await app.submit("later")
            await eventually(lambda: len(calls) == 2)
            tokens = {call.id: call.token for call in calls}
            refused = {
                await tell(first.id, token="0" * 32),
                await tell(first.id, token=tokens[second.id]),
                await tell("unknown", token=tokens[first.id]),
                await tell("no%20name", token=tokens[first.id]),
                await tell(first.id, "progress", token=tokens[second.id]),
            }
            assert {status for status, _ in refused} == {409}
            assert len(refused) == 1
            assert (await tell(first.id, "progress", token=tokens[first.id], note="half"))[0] == 200
            info = await app.get_task(first.id)
            assert (info.progress, info.progress_note) == (0.5, "half")
            assert (await tell(first.id, token=tokens[first.id]))[0] == 200
            assert {await tell(first.id, token=tokens[first.id])} == refused
            assert (await tell(second.id, token=tokens[second.id], data="x" * 300_000))[0] == 413
            assert (await tell(second.id, token=tokens[second.id], status="dead"))[0] == 400
            assert (await tell(second.id, token=tokens[second.id]))[0] == 200


@pytest.mark.parametrize(
    ("method", "path", "body", "status"),
    [
        ("GET", "/tasks/1/status", b"", 405),
        ("POST", "/tasks/1", b"", 404),
        ("POST", "/tasks/1/status", b"{", 400),
        ("POST", "/tasks/1/status", b"[" * 9999, 400),
        ("POST", "/tasks/1/status", b" " * (1 << 21), 413),
        ("POST", "/tasks/1/progress", b'{"token":"1","value":2}', 400),
        ("POST", "/workers/w1/heartbeat", b"", 401),
        ("POST", "/workers/a%0ab/heartbeat", b"", 401),
    ],
)
async def test_reports_that_make_no_sense(
    make: Make, secret_file: str, method: str, path: str, body: bytes, status: int
) -> None:
    answered = await ask(make("memory://", secret_file=secret_file).callback_app(), method, path, body)
    assert answered.status == status
    assert list(answered.json()) == ["error"]
    assert "set-cookie" not in answered.headers


# --- registration, and signs of life


ADDRESS = "http://127.0.0.1:8000"


async def test_an_address_is_checked_when_a_worker_is_registered(make: Make, url: str) -> None:
    app = make(url, allow_addresses=(ADDRESS,))
    for address, why in (
        ("http://127.0.0.1:8001", "is not allowed: allow_addresses lists"),
        ("http://169.254.169.254", "is not allowed"),
        ("ftp://127.0.0.1:8000", "must begin with http"),
        (f"{ADDRESS}/?x=1", "has a query"),
    ):
        with pytest.raises(ConfigError, match=f"worker far-1 cannot be registered: .*{why}"):
            await app.register_worker(RemoteWorker(id="far-1", address=address))
    for wrong in ({"capacity": 0}, {"weight": 0}, {"task_types": ("no name",)}, {"queues": ("no name",)}):
        with pytest.raises(ConfigError):
            await app.register_worker(RemoteWorker(id="far-1", **wrong))
    assert await app.list_workers() == []


async def test_an_id_that_lives_elsewhere_is_not_taken_over(make: Make, url: str) -> None:
    app = make(url, allow_addresses=(ADDRESS, "http://127.0.0.1:8001"))
    await app.register_worker(RemoteWorker(id="far-1", address=ADDRESS, task_types=("a",)))
    with pytest.raises(TickworkError, match=r"worker far-1 is online at 'http://127\.0\.0\.1:8000': unreg"):
        await app.register_worker(RemoteWorker(id="far-1", address="http://127.0.0.1:8001"))
    await app.register_worker(RemoteWorker(id="far-1", address=ADDRESS, task_types=("a", "b")))
    assert (await app.get_worker("far-1")).task_types == ("a", "b")
    await app.unregister_worker("far-1")
    await app.register_worker(RemoteWorker(id="far-1", address="http://127.0.0.1:8001"))


async def test_a_heartbeat_keeps_a_worker_online_and_tells_its_orders(make: Make, url: str, secret_file: str) -> None:
    app = make(url, secret_file=secret_file, allow_addresses=(ADDRESS,))
    reports, keys = app.callback_app(), WorkerKeys(app.config).of("far-1")

    async def beat(
        request_id: str, worker_id: str = "far-1", purpose: Literal["call", "report"] = "report"
    ) -> Answered:
        path = f"/workers/{worker_id}/heartbeat"
        headers = request_headers(
            keys, "POST", path, b"{}", worker_id="far-1", request_id=request_id, time=int(time.time()), purpose=purpose
        )
        return await ask(reports, "POST", path, b"{}", headers)

    assert (await beat("r1")).status == 404
    assert await app.list_workers() == []
    await app.register_worker(RemoteWorker(id="far-1", address=ADDRESS, task_types=("a",), labels={"gpu": "1"}))
    before = await app.get_worker("far-1")
    answered = await beat("r2")
    assert answered.json() == {"status": "ok", "orders": {"drain": False}}
    assert is_signed_answer(
        keys, 200, answered.headers, answered.body, worker_id="far-1", request_id="r2", purpose="reply"
    )
    after = await app.get_worker("far-1")
    assert (after.task_types, after.labels, after.started_at) == (before.task_types, before.labels, before.started_at)
    assert after.beat_at >= before.beat_at
    await app.drain_worker("far-1")
    assert (await beat("r3")).json() == {"status": "ok", "orders": {"drain": True}}
    assert (await beat("r3")).status == 401, "the same heartbeat again"
    assert (await beat("r4", purpose="call")).status == 401
    assert (await beat("r5", worker_id="far-2")).status == 401


async def test_a_worker_that_answers_probes_stays_online(make: Make, url: str, secret_file: str) -> None:
    app = make(url, secret_file=secret_file, worker_timeout=0.5)
    store = await store_of(app)
    worker = RemoteWorkerApp("far-1", secret=WorkerKeys(app.config).secret("far-1"))
    async with served(worker) as address:
        allowed = Allowed([address])
        caller = Caller(Outbound(allowed), WorkerKeys(app.config))
        probes = Probes(store, caller, app.config, Log.of(None, "remote"))
        member = Worker(id="far-1", address=address, task_types=("a",), declares=())
        await store.members.beat(member, 500)
        await store.members.beat(Worker(id="far-2", address=address, declares=()), 60_000)  # has another secret
        before = {each.id: each.expires_at for each in await store.members.workers()}
        await probes.work()
        after = {each.id: each for each in await store.members.workers()}
        assert after["far-1"].expires_at > before["far-1"]
        assert after["far-1"].task_types == ("a",)
        assert after["far-2"].expires_at == before["far-2"]
        await eventually(lambda: lost(app, "far-1"), what="the worker is offline without probes")
        await probes.work()
        assert (await app.get_worker("far-1")).status == "idle"
        await caller.close()


async def lost(app: Scheduler, worker_id: str) -> bool:
    store = await store_of(app)
    await store.tasks.reclaim(100)
    return (await app.get_worker(worker_id)).status == "offline"


def test_the_commands_of_remote_workers(sqlite_url: str, secret_file: str, monkeypatch: pytest.MonkeyPatch) -> None:
    Scheduler(sqlite_url).sync.status()

    def tickwork(*words: str) -> tuple[int, str]:
        result = CliRunner().invoke(commands, ["workers", *words, "--store", sqlite_url])
        return result.exit_code, result.output

    register = ("register", "far-1", "--address", ADDRESS, "--type", "a", "--type", "b", "--label", "gpu=a100",
                "--capacity", "4", "--weight", "2")  # fmt: skip
    code, said = tickwork(*register)
    assert (code, "is not allowed: allow_addresses is empty" in said) == (2, True), said
    monkeypatch.setenv("TICKWORK_ALLOW_ADDRESSES", ADDRESS)
    assert tickwork(*register) == (0, "registered worker far-1\n")
    worker = msgspec.json.decode(tickwork("list", "--json")[1])["workers"][0]
    assert {key: worker[key] for key in ("id", "address", "task_types", "labels", "capacity", "weight")} == {
        "id": "far-1", "address": ADDRESS, "task_types": ["a", "b"], "labels": {"gpu": "a100"}, "capacity": 4,
        "weight": 2,
    }  # fmt: skip
    assert tickwork("register", "far-2", "--label", "gpu")[0] == 2
    code, said = tickwork("secret", "far-1")
    assert (code, "secret_file" in said) == (2, True), said
    monkeypatch.setenv("TICKWORK_SECRET_FILE", secret_file)
    code, said = tickwork("secret", "far-1")
    assert (code, said.splitlines()[0]) == (0, WorkerKeys(Config(secret_file=secret_file)).secret("far-1").hex())
    assert "only this worker can read" in said
    assert tickwork("unregister", "far-1") == (0, "unregistered worker far-1\n")
    assert tickwork("unregister", "far-1")[0] != 0


# --- all of it together


@contextlib.asynccontextmanager
async def crew(
    make: Make, url: str, secret_file: str, *workers: str
) -> AsyncIterator[tuple[Scheduler, dict[str, RemoteWorkerApp]]]:
    """A scheduler, and remote workers that are registered with it."""
    keys = WorkerKeys(Config(secret_file=secret_file))
    apps = {each: RemoteWorkerApp(each, secret=keys.secret(each)) for each in workers}

    async def who(payload: Any, call: RemoteCall) -> list[Any]:
        return [call.worker_id, payload]

    for worker in apps.values():
        worker.task("who")(who)
    async with contextlib.AsyncExitStack() as stack:
        addresses = {each: await stack.enter_async_context(served(apps[each])) for each in workers}
        app = make(url, secret_file=secret_file, allow_addresses=tuple(addresses.values()))
        app.executors.register("remote", None, types=("who", "later"))
        for each, address in addresses.items():
            await app.register_worker(RemoteWorker(id=each, address=address, task_types=("who", "later")))
        await stack.enter_async_context(app)
        yield app, apps


async def test_tasks_reach_remote_workers_through_their_inboxes(make: Make, url: str, secret_file: str) -> None:
    async with crew(make, url, secret_file, "far-1", "far-2") as (app, _):
        handles = [await app.submit("who", number) for number in range(40)]
        results = [await each.result(60) for each in handles]
        assert [each[1] for each in results] == list(range(40))
        assert {each[0] for each in results} == {"far-1", "far-2"}
        assert {(await app.get_task(each.id)).worker_id for each in handles} == {"far-1", "far-2"}


async def test_a_task_can_name_its_remote_worker(make: Make, url: str, secret_file: str) -> None:
    async with crew(make, url, secret_file, "far-1", "far-2") as (app, _):
        handles = [await app.submit("who", target="far-2") for _ in range(10)]
        assert {(await each.result(60))[0] for each in handles} == {"far-2"}
        await app.register_worker(RemoteWorker(id="silent", task_types=("who",)))
        with pytest.raises(ConfigError, match="worker silent has no address, so no node can call it"):
            await app.submit("who", target="silent")


async def test_a_node_that_ends_tells_the_worker_and_gives_the_task_back(
    make: Make, file_url: str, secret_file: str
) -> None:
    stopped: list[int] = []
    async with crew(make, file_url, secret_file, "far-1") as (app, workers):

        @workers["far-1"].task("later")
        async def later(payload: Any, call: RemoteCall) -> str:
            if call.attempt == 1 and not stopped:
                try:
                    await asyncio.Event().wait()
                finally:
                    stopped.append(1)
            return "again"

        handle = await app.submit("later")
        await eventually(lambda: workers["far-1"].running == 1)
        await app.shutdown(0.2)
        await eventually(lambda: stopped)
        assert (await app.get_task(handle.id)).status in (Status.READY, Status.ASSIGNED)
        await app.start()
        assert await handle.result(60) == "again"
        assert (await app.get_task(handle.id)).attempt == 1


async def test_a_remote_worker_that_drains_or_leaves_is_given_nothing(make: Make, url: str, secret_file: str) -> None:
    async with crew(make, url, secret_file, "far-1", "far-2") as (app, _):

        async def whos() -> set[str]:
            handles = [await app.submit("who") for _ in range(6)]
            return {(await each.result(60))[0] for each in handles}

        async def only(worker_id: str) -> bool:
            return await whos() == {worker_id}

        await app.drain_worker("far-1")
        await eventually(lambda: only("far-2"), timeout=60)
        await app.resume_worker("far-1")
        await app.unregister_worker("far-2")
        await eventually(lambda: only("far-1"), timeout=60)
