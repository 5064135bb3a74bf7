"""What is said between a node and a remote worker, as data. `docs/remote-workers.md` is the protocol for people."""

from __future__ import annotations

import hashlib
from datetime import datetime
from typing import Annotated, Any, Literal, TypeVar

import msgspec
from msgspec import UNSET, Meta, Raw, Struct, UnsetType

from tickwork.payload.depth import TOO_DEEP, is_deep_json
from tickwork.texts import storable

EXECUTE, CANCEL, HEALTH = "/execute", "/cancel", "/health"
BODY_MAX = 1 << 20  # bytes of a call or an answer, unless somebody says otherwise
ERROR_MAX = 2000  # characters of an error that are kept


T = TypeVar("T")


class ExecuteCall(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The body of `POST /execute`: one run of one task.

    `deadline` is when the run is over, by the clock of the node, and `timeout` the seconds until then. `token` is the
    proof of this run, for a report to `callback_url` after a 202.
    """

    id: str
    type: str
    token: str
    attempt: int
    namespace: str
    worker_id: str
    payload: Raw | UnsetType = UNSET
    deadline: datetime | None = None
    timeout: float | None = None
    tags: dict[str, str] = {}
    context: dict[str, Any] = {}
    callback_url: str | None = None


class CancelCall(Struct, frozen=True, kw_only=True):
    """The body of `POST /cancel`: the run with this token is to stop."""

    id: str
    token: str
    reason: str = ""


class Completed(Struct, frozen=True, tag_field="status", tag="completed"):
    """The task has succeeded. A handler may return one, to say a code and a message beside its result."""

    result: Any = None
    code: int = 0
    message: str = ""


class Failed(Struct, frozen=True, tag_field="status", tag="failed"):
    """This run has failed. `retry` says whether another one may succeed; `retry_after` is in seconds."""

    error: str = ""
    retry: bool = True
    retry_after: float | None = None


class Later(Struct, frozen=True, tag_field="status", tag="accepted"):
    """The body of a 202: the worker goes on, and reports the end later. A handler returns one for that."""


class CompletedRaw(Struct, frozen=True, tag_field="status", tag="completed"):
    """`Completed` as a node reads it: the result stays as it is written."""

    result: Raw | UnsetType = UNSET
    code: Annotated[int, Meta(ge=-(2**31), lt=2**31)] = 0
    message: str = ""


Answer = CompletedRaw | Failed | Later


class StatusReport(Struct, frozen=True, kw_only=True):
    """The body of `POST <callback_url>/tasks/<id>/status`, by which a worker tells the end of a call after a 202."""

    token: str
    status: Literal["completed", "failed"]
    message: str = ""
    code: Annotated[int, Meta(ge=-(2**31), lt=2**31)] = 0
    data: Raw | UnsetType = UNSET
    retry: bool = True


class ProgressReport(Struct, frozen=True, kw_only=True):
    """The body of `POST <callback_url>/tasks/<id>/progress`."""

    token: str
    value: Annotated[float, Meta(ge=0, le=1)]
    note: str = ""


class Orders(Struct, frozen=True):
    """What the scheduler asks of a worker, in the answer to its heartbeat."""

    drain: bool = False


class HeartbeatAnswer(Struct, frozen=True):
    status: Literal["ok"] = "ok"
    orders: Orders = Orders()


class Refusal(Struct, frozen=True):
    """The body of every answer of 400 and more."""

    error: str


class Health(Struct, frozen=True):
    """The body of the answer to `GET /health`. What a worker may run is the registration's to say, not the worker's."""

    status: Literal["ok", "stopping"] = "ok"
    running: int = 0
    capacity: int = 0


class Unfit(Exception):
    """A body that is not what the protocol says."""


def request_id_of(token: str, what: str = "execute") -> str:
    """The idempotency key of a request about one run. It tells nothing of the token."""
    return hashlib.sha256(f"tickwork {what} {token}".encode()).hexdigest()[:32]


def decoded_call(body: bytes) -> ExecuteCall:
    return _decoded(body, _call_decoder)


def decoded_cancel(body: bytes) -> CancelCall:
    return _decoded(body, _cancel_decoder)


def decoded_answer(body: bytes) -> Answer:
    return _decoded(body, _answer_decoder)


def decoded_report(body: bytes) -> StatusReport:
    return _decoded(body, _report_decoder)


def decoded_progress(body: bytes) -> ProgressReport:
    return _decoded(body, _progress_decoder)


def decoded_health(body: bytes) -> Health:
    return _decoded(body, _health_decoder)


def refusal_text(body: bytes) -> str:
    """What an answer of 400 or more says of itself, if it is of this protocol."""
    try:
        return plain(_decoded(body, _refusal_decoder).error)
    except Unfit:
        return ""


def plain(text: str) -> str:
    """A text of the other side as it may be stored and shown: no control characters, and not without end."""
    kept = "".join(each if each.isprintable() or each == "\n" else "�" for each in text[:ERROR_MAX])
    return storable(kept)


def _decoded(body: bytes, decoder: msgspec.json.Decoder[T]) -> T:
    if is_deep_json(body):
        raise Unfit(TOO_DEEP)
    try:
        return decoder.decode(body)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise Unfit(str(error)) from None


_answer_decoder: msgspec.json.Decoder[Answer] = msgspec.json.Decoder(Answer)
_call_decoder = msgspec.json.Decoder(ExecuteCall)
_cancel_decoder = msgspec.json.Decoder(CancelCall)
_report_decoder = msgspec.json.Decoder(StatusReport)
_progress_decoder = msgspec.json.Decoder(ProgressReport)
_health_decoder = msgspec.json.Decoder(Health)
_refusal_decoder = msgspec.json.Decoder(Refusal)
