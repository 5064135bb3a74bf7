"""Problems as gRPC tells them: a status code, the sentence, and the whole problem as JSON in the trailing metadata."""

from __future__ import annotations

import json

import grpc
import msgspec
from msgspec.structs import replace

from tickwork.server.problems import TITLES, Problem
from tickwork.texts import cut

PROBLEM = "tickwork-problem"
RETRY_AFTER = "retry-after"
TOLD_MAX = 2_500  # bytes of the problem, and of the sentence: clients take some 8 kB of metadata in all
INTERNAL = Problem(500, "internal", TITLES[500], "this is a mistake in the server; its log says more")
STOPPING = Problem(503, "stopping", "Stopping", "the server is stopping: try again soon")

_EXISTING = ("exists", "duplicate")
_STATUSES = {
    400: grpc.StatusCode.INVALID_ARGUMENT,
    401: grpc.StatusCode.UNAUTHENTICATED,
    403: grpc.StatusCode.PERMISSION_DENIED,
    404: grpc.StatusCode.NOT_FOUND,
    408: grpc.StatusCode.DEADLINE_EXCEEDED,
    409: grpc.StatusCode.FAILED_PRECONDITION,
    413: grpc.StatusCode.RESOURCE_EXHAUSTED,
    429: grpc.StatusCode.RESOURCE_EXHAUSTED,
    431: grpc.StatusCode.RESOURCE_EXHAUSTED,
    500: grpc.StatusCode.INTERNAL,
    503: grpc.StatusCode.UNAVAILABLE,
    507: grpc.StatusCode.RESOURCE_EXHAUSTED,
}


def code_of(problem: Problem) -> grpc.StatusCode:
    if problem.status == 409 and problem.code in _EXISTING:
        return grpc.StatusCode.ALREADY_EXISTS
    return _STATUSES.get(problem.status, grpc.StatusCode.FAILED_PRECONDITION)


def told(problem: Problem) -> tuple[grpc.StatusCode, str, tuple[tuple[str, str], ...]]:
    """Code, details and trailing metadata. Metadata is ASCII and bounded, so a long sentence is cut."""
    while len(text := json.dumps(msgspec.to_builtins(problem))) > TOLD_MAX and len(problem.detail) > 10:
        problem = replace(problem, detail=cut(problem.detail, len(problem.detail) // 2))
    trailing = [(PROBLEM, text)]
    if problem.retry_after is not None:
        trailing.append((RETRY_AFTER, str(max(round(problem.retry_after), 1))))
    return code_of(problem), problem.detail, tuple(trailing)
