"""The ASGI application of a remote worker, called without a server."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import msgspec
import pytest

from tests.support.serving import SECRET, Answered, a_call, ask, execute, signed
from tests.support.waiting import wait_until
from tickwork.remote import CallFailed, Completed, Later, RemoteCall, RemoteWorkerApp
from tickwork.remote.protocol import CancelCall, request_id_of
from tickwork.remote.replays import Full, Replays, Reply
from tickwork.remote.signing import Keys, Signed, is_signed_answer

NOW = 1_700_000_000.0


def a_worker(**options: Any) -> RemoteWorkerApp:
    worker = RemoteWorkerApp("w1", secret=SECRET, **options)

    @worker.task("echo")
    async def echo(payload: Any, call: RemoteCall) -> Any:
        return {"payload": payload, "attempt": call.attempt}

    return worker


def is_signed(answered: Answered, request_id: str) -> bool:
    return is_signed_answer(
        Keys.of(SECRET), answered.status, answered.headers, answered.body, worker_id="w1", request_id=request_id
    )


async def test_a_call_is_run_and_its_answer_signed() -> None:
    answered = await execute(a_worker(), a_call(payload=[1, "x"]))
    assert answered.status == 200
    assert answered.json() == {
        "status": "completed", "result": {"payload": [1, "x"], "attempt": 1}, "code": 0, "message": "",
    }  # fmt: skip
    assert is_signed(answered, request_id_of("t1"))


async def test_a_function_without_a_call_and_one_in_a_thread() -> None:
    worker = a_worker()
    threads: list[str] = []

    @worker.task("double")
    def double(payload: int) -> Completed:
        threads.append(threading.current_thread().name)
        return Completed(payload * 2, code=7, message="doubled")

    answered = await execute(worker, a_call("double", 21))
    assert answered.json() == {"status": "completed", "result": 42, "code": 7, "message": "doubled"}
    assert threads != [threading.current_thread().name]
    refused = await execute(worker, a_call("double", "many", token="t2"))
    assert refused.status == 422
    assert "Expected `int`" in refused.json()["error"]


async def test_the_same_call_again_gets_the_same_answer_and_runs_nothing() -> None:
    worker = a_worker(clock=lambda: NOW)
    runs: list[int] = []
    gate = asyncio.Event()

    @worker.task("count")
    async def count(payload: Any) -> int:
        runs.append(1)
        await gate.wait()
        return len(runs)

    calls = [asyncio.ensure_future(execute(worker, a_call("count"), at=NOW)) for _ in range(3)]
    await wait_until(lambda: runs)
    gate.set()
    answers = [await each for each in calls] + [await execute(worker, a_call("count"), at=NOW)]
    assert runs == [1]
    assert len({each.body for each in answers}) == 1
    assert all(is_signed(each, request_id_of("t1")) for each in answers)


async def test_another_request_under_the_same_id_is_refused() -> None:
    worker = a_worker(clock=lambda: NOW)
    assert (await execute(worker, a_call(), at=NOW)).status == 200
    later = await execute(worker, a_call(), at=NOW + 1)
    other = await execute(worker, a_call(payload="other"), at=NOW)
    assert (later.status, other.status) == (401, 401)
    assert "idempotency key" in later.json()["error"]
    assert not is_signed(later, request_id_of("t1"))


@pytest.mark.parametrize(
    ("how", "why"),
    [
        ({"secret": "11" * 32}, "wrong"),
        ({"worker_id": "w2"}, "another worker"),
        ({"at": NOW - 1000}, "another time"),
        ({"at": NOW + 1000}, "another time"),
    ],
)
async def test_what_is_not_signed_for_this_worker_now(how: dict[str, Any], why: str) -> None:
    answered = await execute(a_worker(clock=lambda: NOW), a_call(), **{"at": NOW, **how})
    assert answered.status == 401
    assert why in answered.json()["error"]
    assert not is_signed(answered, request_id_of("t1"))


async def test_two_secrets_while_one_is_changed() -> None:
    worker = RemoteWorkerApp("w1", secret="22" * 32, old_secret=SECRET)
    health = await ask(worker, "GET", "/health", b"", signed("GET", "/health"))
    assert health.status == 200
    assert is_signed(health, "r1")


async def test_health_tells_how_busy_it_is() -> None:
    health = await ask(a_worker(capacity=3), "GET", "/health", b"", signed("GET", "/health"))
    assert health.json() == {"status": "ok", "running": 0, "capacity": 3}
    assert (await ask(a_worker(), "GET", "/health")).status == 401


@pytest.mark.parametrize(
    ("body", "status"),
    [(b"{not json", 400), (b"[]", 400), (b"{}", 400), (b'{"payload":' + b"[" * 9999 + b"]" * 9999 + b"}", 400)],
)
async def test_bodies_that_are_no_calls(body: bytes, status: int) -> None:
    answered = await ask(a_worker(), "POST", "/execute", body, signed("POST", "/execute", body))
    assert answered.status == status
    assert is_signed(answered, "r1")


async def test_an_unknown_type_path_or_method() -> None:
    unknown = await execute(a_worker(), a_call("nothing"))
    assert unknown.status == 404
    assert "'nothing'" in unknown.json()["error"]
    assert is_signed(unknown, request_id_of("t1"))
    assert (await ask(a_worker(), "POST", "/other")).status == 404
    assert (await ask(a_worker(), "GET", "/execute")).status == 405


@pytest.mark.parametrize("headers", [{}, {"content-length": "2000"}, {"content-length": "9" * 5000}])
async def test_a_body_over_the_bound(headers: dict[str, str]) -> None:
    answered = await ask(a_worker(body_limit=1000), "POST", "/execute", b" " * 1001, headers)
    assert answered.status == 413


async def test_all_slots_are_busy() -> None:
    worker = a_worker(capacity=1)
    gate = asyncio.Event()

    @worker.task("wait")
    async def wait(payload: Any) -> None:
        await gate.wait()

    first = asyncio.ensure_future(execute(worker, a_call("wait")))
    await wait_until(lambda: worker.running == 1)
    busy = await execute(worker, a_call(token="t2"))
    assert (busy.status, busy.headers["retry-after"]) == (429, "1")
    assert is_signed(busy, request_id_of("t2"))
    gate.set()
    assert (await first).status == 200
    assert worker.running == 0
    assert (await execute(worker, a_call(token="t2"))).status == 429, "what was recorded on its way is not run later"
    assert (await execute(worker, a_call(token="t3"))).status == 200


async def test_failures_keep_their_text_and_no_traceback() -> None:
    worker = a_worker()

    @worker.task("break")
    async def broken(payload: Any) -> None:
        raise ValueError("no such size")

    @worker.task("refuse")
    async def refuse(payload: Any) -> None:
        raise CallFailed("never", retry=False)

    @worker.task("unwritable")
    async def unwritable(payload: Any) -> Any:
        return object()

    first, second, third = [
        (await execute(worker, a_call(kind, token=kind))).json() for kind in ("break", "refuse", "unwritable")
    ]
    assert first == {"status": "failed", "error": "ValueError: no such size", "retry": True, "retry_after": None}
    assert second == {"status": "failed", "error": "never", "retry": False, "retry_after": None}
    assert third["retry"] is False
    assert "cannot be written as JSON" in third["error"]


async def test_a_result_that_is_too_large_or_too_deep() -> None:
    worker = a_worker(body_limit=1000)

    @worker.task("large")
    async def large(payload: Any) -> str:
        return "x" * 1000

    @worker.task("deep")
    async def deep(payload: Any) -> Any:
        value: Any = 1
        for _ in range(100):
            value = [value]
        return value

    assert "limit is 1,000" in (await execute(worker, a_call("large", token="1"))).json()["error"]
    assert "nested" in (await execute(worker, a_call("deep", token="2"))).json()["error"]


async def test_the_end_of_the_time_and_a_cancel_stop_the_function() -> None:
    worker = a_worker()
    stopped: list[str] = []

    @worker.task("wait")
    async def wait(payload: str, call: RemoteCall) -> None:
        try:
            await asyncio.get_running_loop().create_future()
        finally:
            stopped.append(payload)

    late = await execute(worker, a_call("wait", "late", token="t1", timeout=0.05))
    assert late.json()["error"] == "timed out after 0.05 s"
    running = asyncio.ensure_future(execute(worker, a_call("wait", "cancelled", token="t2")))
    await wait_until(lambda: worker.running == 1)
    body = msgspec.json.encode(CancelCall(id="task1", token="t2"))
    cancelled = await ask(worker, "POST", "/cancel", body, signed("POST", "/cancel", body, request_id="c2"))
    assert cancelled.json() == {"status": "cancelled"}
    assert (await running).json()["retry"] is False
    assert stopped == ["late", "cancelled"]
    unknown = msgspec.json.encode(CancelCall(id="task1", token="t3"))
    answered = await ask(worker, "POST", "/cancel", unknown, signed("POST", "/cancel", unknown, request_id="c3"))
    assert (answered.status, answered.json()) == (200, {"status": "unknown"})


async def test_a_function_that_ends_later_can_still_be_cancelled() -> None:
    worker = a_worker()
    calls: list[RemoteCall] = []

    @worker.task("later")
    async def later(payload: Any, call: RemoteCall) -> Later:
        calls.append(call)
        return Later()

    answered = await execute(worker, a_call("later", callback_url="https://example.com/reports"))
    assert (answered.status, answered.json()) == (202, {"status": "accepted"})
    assert is_signed(answered, request_id_of("t1"))
    assert not calls[0].cancelled
    body = msgspec.json.encode(CancelCall(id="task1", token="t1"))
    await ask(worker, "POST", "/cancel", body, signed("POST", "/cancel", body, request_id="c1"))
    assert calls[0].cancelled


async def test_a_worker_that_stops_refuses_calls_and_ends_those_that_run() -> None:
    worker = a_worker()

    @worker.task("wait")
    async def wait(payload: Any) -> None:
        await asyncio.get_running_loop().create_future()

    running = asyncio.ensure_future(execute(worker, a_call("wait")))
    await wait_until(lambda: worker.running == 1)
    await worker.stop()
    assert (await running).json()["retry"] is True
    answered = await execute(worker, a_call(token="t2"))
    assert (answered.status, answered.headers["retry-after"]) == (503, "5")


async def test_mounted_under_a_path_of_another_application() -> None:
    """Servers and frameworks differ in whether the path has the root in it; the signature covers the whole path."""
    headers = signed("GET", "/jobs/health")
    for path in ("/jobs/health", "/health"):
        assert (await ask(a_worker(), "GET", path, b"", headers, root="/jobs")).status == 200


@pytest.mark.parametrize("options", [{"id": "no spaces"}, {"capacity": 0}, {"secret": "short"}])
def test_options_that_make_no_sense(options: dict[str, Any]) -> None:
    with pytest.raises(ValueError):
        RemoteWorkerApp(**{"id": "w1", "secret": SECRET, **options})


def test_functions_that_cannot_be_called() -> None:
    worker = a_worker()
    with pytest.raises(ValueError, match="already"):
        worker.task("echo")(lambda payload: None)
    with pytest.raises(TypeError, match="takes a payload"):
        worker.task("none")(lambda: None)


def a_request(number: int, at: int) -> Signed:
    return Signed("w1", f"r{number}", at, f"v1={number}", Keys.of(SECRET))


async def test_requests_are_remembered_while_they_are_not_too_old() -> None:
    replays = Replays(2, 100)
    replays.add(a_request(1, 1000), 1000)
    replays.add(a_request(2, 1000), 1000)
    with pytest.raises(Full):
        replays.add(a_request(3, 1300), 1300)
    replays.add(a_request(3, 1301), 1301)
    assert len(replays) == 1
    assert replays.find(a_request(3, 1301)) is not None


async def test_answers_are_forgotten_when_there_is_no_room_but_not_their_requests() -> None:
    replays = Replays(10, 100)
    for number in (1, 2):
        seen = replays.add(a_request(number, 1000), 1000)
        replays.answered(f"r{number}", seen, Reply(200, b"x" * 60))
    first, second = replays.find(a_request(1, 1000)), replays.find(a_request(2, 1000))
    assert first is not None
    assert first.answer is None
    assert second is not None
    assert second.answer is not None
