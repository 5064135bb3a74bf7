"""What remote workers send to `callback_url`: ends of runs that they have answered with 202, progress, heartbeats."""

from __future__ import annotations

import re
import time
from collections.abc import Callable

from msgspec import UNSET
from msgspec.structs import replace

from tickwork.client.access import Access
from tickwork.client.remote_workers import WorkerKeys
from tickwork.client.specs import completed
from tickwork.errors import ConfigError, StoreError, StoreUnavailable
from tickwork.ids import NAME, is_token_of
from tickwork.model.members import Orders as GivenOrders
from tickwork.model.outcomes import Aborted, Outcome, Succeeded
from tickwork.model.tasks import Record, Status
from tickwork.observe.loggers import Log
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
from tickwork.remote.protocol import (
    BODY_MAX,
    HeartbeatAnswer,
    Orders,
    StatusReport,
    Unfit,
    decoded_progress,
    decoded_report,
    plain,
)
from tickwork.remote.replays import Full, Replayed, Replays, Reply
from tickwork.remote.signing import BadSignature, Signed, answer_headers, check_request
from tickwork.store.contract import Grant, Store
from tickwork.worker import outcomes

_ROUTE = re.compile(r"/(?:tasks/([^/]+)/(status|progress)|workers/([^/]+)/(heartbeat))")
HEARTBEATS_MAX = 1000  # of one worker, that are remembered for five minutes
REFUSED = "no run of this task has this token now: it is wrong or late, or the end was reported before"


class CallbackApp:
    """An ASGI application. It answers everybody who can reach it, and believes tokens and signatures only."""

    def __init__(self, access: Access, clock: Callable[[], float] = time.time) -> None:
        self._access = access
        self._clock = clock
        self._keys = WorkerKeys(access.config)
        self._heartbeats: dict[str, Replays] = {}  # of each worker, so that one cannot use up the room of all
        self._log = Log.of(access.config.logger, "callbacks")

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await serve_lifespan(receive, send, _nothing)
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
        found = _ROUTE.fullmatch(request.route)
        if found is None:
            return refusal(404, "reports go to /tasks/ID/status, /tasks/ID/progress or /workers/ID/heartbeat")
        if request.method != "POST":
            return refusal(405, "reports are sent by POST", allow="POST")
        if (refused := await request.read(receive, BODY_MAX)) is not None:
            return refused
        answers = {"status": self._status, "progress": self._progress, "heartbeat": self._heartbeat}
        try:
            return await answers[found[2] or found[4]](found[1] or found[3], request)
        except Unfit as error:
            return refusal(400, f"the body is not what the protocol says: {plain(str(error))}")
        except StoreUnavailable:
            return refusal(503, "the store cannot be reached now", retry_after="1")
        except (StoreError, ConfigError) as error:
            self._log.error("a report could not be taken: %s", error)
            return refusal(500, "the report could not be taken; the log of the scheduler says why")

    # --- runs

    async def _status(self, task_id: str, request: Request) -> Reply:
        report = decoded_report(request.body)
        limit = self._access.config.payload_limit
        if report.data is not UNSET and len(bytes(report.data)) > limit:
            return refusal(413, f"the data has more than {limit:,} bytes: report a reference to it instead")
        store, record = await self._run(task_id, report.token)
        if record is None:
            return refusal(409, REFUSED)
        verdict = (await store.tasks.finish([self._outcome(store, record, report)])).verdicts[0]
        if verdict.kind == "later":
            raise StoreUnavailable("its partition cannot be reached")
        return refusal(409, REFUSED) if verdict.kind == "lost" else json_reply(200, {"status": "ok"})

    async def _progress(self, task_id: str, request: Request) -> Reply:
        report = decoded_progress(request.body)
        store, record = await self._run(task_id, report.token)
        if record is None or not await store.tasks.note(record.lease, report.value, plain(report.note), []):
            return refusal(409, REFUSED)
        return json_reply(200, {"status": "ok"})

    async def _run(self, task_id: str, token: str) -> tuple[Store, Record | None]:
        """The task, if it runs now under this token."""
        store = await self._access.open_store()
        record = await store.queries.get(task_id) if NAME.fullmatch(task_id) else None
        if record is None:
            is_token_of(token, task_id, 0, "nobody")  # takes as long as for a task that is there
            return store, None
        holds = is_token_of(token, record.id, record.fence, record.nonce)
        return store, record if holds and record.status is Status.RUNNING else None

    def _outcome(self, store: Store, record: Record, report: StatusReport) -> Outcome:
        seconds = 0.0 if record.started_at is None else max(store.now() - record.started_at, 0) / 1000
        message = plain(report.message)
        if report.status == "completed":
            data = b"null" if report.data is UNSET else bytes(report.data)
            return Succeeded(record.lease, None if data == b"null" else data, report.code, message, seconds)
        text = message or "the worker gives no reason"
        if not report.retry:
            return Aborted(record.lease, text, seconds)
        config = self._access.config
        spec = completed(record.spec, self._access.registry.find(record.spec.type), config)
        grant = Grant(spec, record.lease, record.attempt, record.losses, record.submitted_at)
        return outcomes.failed(grant, text, config.retry, seconds)

    # --- workers

    async def _heartbeat(self, worker_id: str, request: Request) -> Reply:
        if not NAME.fullmatch(worker_id):
            return refusal(401, "the request is not signed")
        try:
            signed = check_request(
                [self._keys.of(worker_id)], "POST", request.target, request.headers, request.body,
                now=self._clock(), purpose="report",
            )  # fmt: skip
            seen = self._heartbeats.setdefault(signed.worker_id, Replays(HEARTBEATS_MAX, 0))
            if signed.worker_id != worker_id or seen.find(signed) is not None:
                raise Replayed
            seen.add(signed, self._clock())
        except BadSignature as error:
            return refusal(401, str(error))
        except Replayed:
            return refusal(401, "the request is for another worker, or came before")
        except Full:
            return refusal(429, "too many heartbeats in the last minutes", retry_after="60")
        store = await self._access.open_store()
        found = next((each for each in await store.members.workers() if each.id == worker_id), None)
        if found is None or not found.address or found.host:
            return _signed(signed, refusal(404, f"worker {worker_id} is not registered as a remote worker"))
        ttl = round(self._access.config.worker_timeout * 1000)
        heard = await store.members.beat(replace(found, running=0), ttl, join=False)
        return _signed(signed, json_reply(200, HeartbeatAnswer(orders=Orders(drain=GivenOrders.of(heard.order).drain))))


def _signed(signed: Signed, reply: Reply) -> Reply:
    headers = answer_headers(
        signed.keys, reply.status, reply.body, worker_id=signed.worker_id, request_id=signed.request_id, purpose="reply"
    )
    return Reply(reply.status, reply.body, {**reply.headers, **headers})


async def _nothing() -> None:
    return None
