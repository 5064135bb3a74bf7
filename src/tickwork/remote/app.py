"""A remote worker as an ASGI application: alone under any ASGI server, or mounted in an application."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from typing import Any, TypeVar
from weakref import WeakValueDictionary

from tickwork.ids import NAME
from tickwork.remote.asgi import (
    Disconnected,
    Receive,
    Request,
    Scope,
    Send,
    json_reply,
    refusal,
    send_reply,
    serve_lifespan,
)
from tickwork.remote.handlers import CallFailed, Function, Handler, RemoteCall, UnfitPayload, encoded_end
from tickwork.remote.protocol import (
    BODY_MAX,
    CANCEL,
    EXECUTE,
    HEALTH,
    ExecuteCall,
    Failed,
    Health,
    Later,
    Unfit,
    decoded_call,
    decoded_cancel,
    plain,
)
from tickwork.remote.replays import Full, Replayed, Replays, Reply
from tickwork.remote.signing import BadSignature, Keys, Signed, answer_headers, check_request
from tickwork.timeouts import TimeLimit

LOGGER = logging.getLogger("tickwork.remote")
BUSY_SECONDS = 1  # after which a call may be tried again that found no free slot
STOPPING_SECONDS = 5
REQUESTS_MAX = 200_000  # that are remembered for five minutes: 666 a second
ANSWERS_MAX = 16 << 20  # bytes of their answers
TRACE_HEADERS = ("traceparent", "tracestate", "baggage", "sentry-trace")

F = TypeVar("F", bound=Function)


class RemoteWorkerApp:
    """Runs tasks that nodes send to it, each signed with the worker's secret.

        worker = RemoteWorkerApp("resizer-1", secret=Path("/run/secrets/resizer-1").read_text())

        @worker.task("resize")
        async def resize(payload: dict[str, Any], call: RemoteCall) -> str: ...

    `uvicorn module:worker` serves it alone; `app.mount("/tickwork", worker)` puts it into Starlette or FastAPI. While a
    secret is changed, `old_secret` is accepted too. `capacity` is how many calls run at a time.
    """

    def __init__(
        self,
        id: str,
        *,
        secret: str | bytes,
        old_secret: str | bytes | None = None,
        capacity: int = 10,
        body_limit: int = BODY_MAX,
        clock: Callable[[], float] = time.time,
    ) -> None:
        if not NAME.fullmatch(id):
            raise ValueError(f"the id of a worker is 1 to 128 letters, digits and ._:@-, not {id[:100]!r}")
        if capacity < 1:
            raise ValueError(f"capacity is how many calls run at a time, at least 1, not {capacity}")
        self.id = id
        self.capacity = capacity
        self.body_limit = body_limit
        self._secrets = [Keys.of(secret)] + ([] if old_secret is None else [Keys.of(old_secret)])
        self._clock = clock
        self._handlers: dict[str, Handler] = {}
        self._replays = Replays(REQUESTS_MAX, ANSWERS_MAX)
        self._busy = 0
        self._tasks: dict[str, asyncio.Future[Any]] = {}  # by token
        self._calls: WeakValueDictionary[str, RemoteCall] = WeakValueDictionary()  # also those that end later
        self._threads = ThreadPoolExecutor(capacity, f"{id}-thread")
        self._stopping = False

    def task(self, type: str) -> Callable[[F], F]:
        """Let a function, sync or async, run the tasks of a type. A decorator."""

        def register(function: F) -> F:
            if type in self._handlers:
                raise ValueError(f"worker {self.id} has a function for {type!r} already")
            self._handlers[type] = Handler(type, function)
            return function

        return register

    @property
    def running(self) -> int:
        """How many calls run now."""
        return self._busy

    async def stop(self) -> None:
        """Take no more calls, and cancel those that run. An ASGI server with a lifespan does it at its end."""
        self._stopping = True
        for call in list(self._calls.values()):
            call._cancelled = True
        for task in list(self._tasks.values()):
            task.cancel()
        self._threads.shutdown(wait=False, cancel_futures=True)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await serve_lifespan(receive, send, self.stop)
        elif scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1003})
        else:
            request = Request(scope)
            try:
                reply = await self._reply(request, receive)
            except Disconnected:
                return
            await send_reply(send, reply)

    async def _reply(self, request: Request, receive: Receive) -> Reply:
        method = {EXECUTE: "POST", CANCEL: "POST", HEALTH: "GET"}.get(request.route)
        if method is None:
            return refusal(404, "this worker has POST /execute, POST /cancel and GET /health")
        if request.method != method:
            return refusal(405, f"{request.route} takes {method}", allow=method)
        if (refused := await request.read(receive, self.body_limit)) is not None:
            return refused
        try:
            signed = check_request(
                self._secrets, method, request.target, request.headers, request.body, now=self._clock()
            )
            if signed.worker_id != self.id:
                raise BadSignature("the request is for another worker")
            seen = None if request.route == HEALTH else self._replays.find(signed)
        except (BadSignature, Replayed) as error:
            # Not signed: whoever sent this would get an answer that fits the request of somebody else.
            return refusal(401, str(error) or "another request came under this idempotency key")
        if request.route == HEALTH:
            health = Health("stopping" if self._stopping else "ok", self._busy, self.capacity)
            return self._signed(signed, json_reply(200, health))
        if seen is not None:
            return await self._repeated(signed, seen.answer)
        try:
            seen = self._replays.add(signed, self._clock())
        except Full:
            text = "too many calls in the last minutes to tell whether one comes twice"
            return self._signed(signed, refusal(429, text, retry_after="60"))
        work = asyncio.ensure_future(self._answer(request, signed))
        work.add_done_callback(lambda done: self._replays.answered(signed.request_id, seen, done.result()))
        # The work goes on if the connection breaks: the node may send the same request again.
        return await asyncio.shield(work)

    async def _repeated(self, signed: Signed, answer: asyncio.Future[Reply] | None) -> Reply:
        if answer is None:
            return self._signed(signed, refusal(409, "this call was answered before, and the answer is not kept"))
        return await asyncio.shield(answer)

    def _signed(self, signed: Signed, reply: Reply) -> Reply:
        of_answer = answer_headers(
            signed.keys, reply.status, reply.body, worker_id=self.id, request_id=signed.request_id
        )
        return Reply(reply.status, reply.body, {**reply.headers, **of_answer})

    async def _answer(self, request: Request, signed: Signed) -> Reply:
        """Never raises: what goes wrong in here is an answer too."""
        try:
            reply = await (self._execute(request) if request.route == EXECUTE else self._cancel(request))
        except Unfit as error:
            reply = refusal(400, f"the body is not what the protocol says: {error}")
        except UnfitPayload as error:
            reply = refusal(422, f"the payload does not fit: {error}")
        except Exception:
            LOGGER.exception("worker %s could not answer a call", self.id)
            reply = refusal(500, "the worker has failed")
        return self._signed(signed, reply)

    async def _execute(self, request: Request) -> Reply:
        call = decoded_call(request.body)
        handler = self._handlers.get(call.type)
        if handler is None:
            return refusal(404, f"worker {self.id} has no function for tasks of type {plain(call.type)[:128]!r}")
        if self._stopping:
            return refusal(503, "the worker is stopping", retry_after=str(STOPPING_SECONDS))
        if self._busy >= self.capacity:
            return refusal(429, f"all {self.capacity} slots are busy", retry_after=str(BUSY_SECONDS))
        payload = handler.payload(call)
        trace = {name: request.headers[name] for name in TRACE_HEADERS if name in request.headers}
        end = await self._run(handler, payload, call, RemoteCall(call, trace))
        return Reply(202 if isinstance(end, Later) else 200, encoded_end(end, self.body_limit))

    async def _run(self, handler: Handler, payload: Any, call: ExecuteCall, given: RemoteCall) -> Any:
        self._calls[call.token] = given
        self._busy += 1
        task = self._tasks[call.token] = handler.start(payload, given, self._threads, self._freed)
        try:
            with nullcontext() if call.timeout is None else TimeLimit(call.timeout):
                return await task
        except CallFailed as error:
            return Failed(error.error, error.retry, error.retry_after)
        except TimeoutError as error:
            if task.cancelled():
                given._cancelled = True
                return Failed(f"timed out after {call.timeout:g} s")
            return self._failed(call, error)
        except asyncio.CancelledError:
            return Failed("the worker is stopping" if self._stopping else "cancelled", retry=self._stopping)
        except Exception as error:
            return self._failed(call, error)
        finally:
            self._tasks.pop(call.token, None)

    def _freed(self) -> None:
        self._busy -= 1

    def _failed(self, call: ExecuteCall, error: Exception) -> Failed:
        LOGGER.warning("task %s (%s) failed", call.id, call.type, exc_info=error)
        return Failed(f"{type(error).__name__}: {error}")

    async def _cancel(self, request: Request) -> Reply:
        cancel = decoded_cancel(request.body)
        call, task = self._calls.get(cancel.token), self._tasks.get(cancel.token)
        if call is None:
            return json_reply(200, {"status": "unknown"})
        call._cancelled = True
        if task is not None:
            task.cancel()
        return json_reply(200, {"status": "cancelled"})
