"""What the end of a gRPC call means for the attempt. Pure, and without grpc."""

from __future__ import annotations

import re
from collections.abc import Iterable

import msgspec

from tickwork.errors import Abort, ExecutorError, PayloadError, Snooze
from tickwork.executors.grpc_gen.executor_pb2 import ExecuteResponse
from tickwork.model.info import TaskResult
from tickwork.outbound.answers import PAUSE, pause
from tickwork.payload.codec import JSON
from tickwork.texts import NOTE_MAX, said

FINAL = frozenset(
    {
        "INVALID_ARGUMENT", "NOT_FOUND", "UNIMPLEMENTED", "PERMISSION_DENIED", "UNAUTHENTICATED", "FAILED_PRECONDITION",
        "OUT_OF_RANGE",
    }
)  # fmt: skip
# Of either side, with the status that also says "not now".
_TOO_LARGE = re.compile(r"message larger than max")
_SECONDS = re.compile(r"[0-9]{1,9}(\.[0-9]{1,3})?")


def of_status(place: str, code: str, details: str, trailers: Iterable[tuple[str, str | bytes]]) -> Exception:
    """What to raise for a call that ended with this status."""
    text = f"{place}: {code}" + (f": {said(details)}" if details else "")
    if code in FINAL or (code == "RESOURCE_EXHAUSTED" and _TOO_LARGE.search(details)):
        return Abort(text)
    wait = _asked_wait(trailers)
    if code == "RESOURCE_EXHAUSTED" or (code == "UNAVAILABLE" and wait is not None):
        return Snooze(pause(PAUSE if wait is None else wait))
    return ExecutorError(text)


def _asked_wait(trailers: Iterable[tuple[str, str | bytes]]) -> float | None:
    """The seconds after which the service wants to be asked again: `retry-after`, or gRPC's own pushback."""
    units = {"retry-after": 1.0, "grpc-retry-pushback-ms": 1000.0}
    for name, value in trailers:
        if name in units and isinstance(value, str) and _SECONDS.fullmatch(value):
            return float(value) / units[name]
    return None


def of_response(place: str, response: ExecuteResponse) -> TaskResult:
    """The result of the task. Raises `Abort` if it is not JSON: the work is done, so that a retry would do it again."""
    try:
        data = JSON.decode(response.data) if response.data else None
    except (PayloadError, msgspec.DecodeError) as error:
        raise Abort(f"{place}: the data of the response cannot be used: {said(str(error))}") from None
    return TaskResult(response.code, said(response.message, NOTE_MAX), data)
