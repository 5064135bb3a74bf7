"""Signatures of calls, answers and reports: HMAC-SHA256 with keys that are each made of the worker's secret by one more
HMAC, so that a worker in any language needs nothing else. `docs/remote-workers.md` has fixed examples of all of them.
"""

from __future__ import annotations

import hashlib
import hmac
import re
from collections.abc import Mapping, Sequence
from typing import Literal

from msgspec import Struct

from tickwork.ids import NAME

VERSION = "v1"
TOLERANCE = 300  # seconds that the clocks of both sides may differ
SECRET_BYTES = 32

WORKER = "tickwork-worker"
KEY = "tickwork-key"
TIME = "tickwork-time"
SIGNATURE = "tickwork-signature"
REQUEST = "idempotency-key"  # the id of the request: the same as long as it is about the same run of a task

Purpose = Literal["call", "answer", "report", "reply"]

_HEX_SECRET = re.compile(r"[0-9a-fA-F]{64}")
_TIME = re.compile(r"[0-9]{1,12}")


class BadSignature(Exception):
    """A request, or an answer, that the other side of this secret has not signed in this way, or not lately."""


class Keys(Struct, frozen=True):
    """What is made of one secret of a worker. `id` names the secret in requests and tells nothing of it."""

    id: str
    call: bytes
    answer: bytes
    report: bytes
    reply: bytes  # of the scheduler, to reports

    @classmethod
    def of(cls, secret: str | bytes) -> Keys:
        """The keys of a secret as `tickwork workers secret` prints it, or of its bytes."""
        raw = secret_bytes(secret)
        return cls(
            hmac.digest(raw, f"tickwork {VERSION} id".encode(), "sha256").hex()[:16],
            hmac.digest(raw, f"tickwork {VERSION} call".encode(), "sha256"),
            hmac.digest(raw, f"tickwork {VERSION} answer".encode(), "sha256"),
            hmac.digest(raw, f"tickwork {VERSION} report".encode(), "sha256"),
            hmac.digest(raw, f"tickwork {VERSION} reply".encode(), "sha256"),
        )

    def __repr__(self) -> str:
        return f"Keys(id={self.id!r})"

    def _key(self, purpose: Purpose) -> bytes:
        return {"call": self.call, "answer": self.answer, "report": self.report, "reply": self.reply}[purpose]

    def sign(self, purpose: Purpose, *parts: str, body: bytes) -> str:
        """The value of the header `Tickwork-Signature`."""
        lines = (VERSION, purpose, *parts, hashlib.sha256(body).hexdigest())
        return f"{VERSION}={hmac.digest(self._key(purpose), chr(10).join(lines).encode(), 'sha256').hex()}"


class Signed(Struct, frozen=True):
    """A request whose signature fits."""

    worker_id: str
    request_id: str
    time: int
    signature: str
    keys: Keys


def secret_bytes(secret: str | bytes) -> bytes:
    """64 hexadecimal digits, or the 32 bytes themselves."""
    if isinstance(secret, bytes) and len(secret) == SECRET_BYTES:
        return secret
    text = secret.decode("ascii", "replace") if isinstance(secret, bytes) else secret
    if not _HEX_SECRET.fullmatch(text.strip()):
        raise ValueError(
            f"the secret of a worker is {SECRET_BYTES} bytes, or {2 * SECRET_BYTES} hexadecimal digits as "
            "`tickwork workers secret ID` prints them"
        )
    return bytes.fromhex(text.strip())


def request_headers(
    keys: Keys,
    method: str,
    target: str,
    body: bytes,
    *,
    worker_id: str,
    request_id: str,
    time: int,
    purpose: Literal["call", "report"] = "call",
) -> dict[str, str]:
    """The headers that sign a request. `target` is the path of its URL, with the query if there is one."""
    signature = keys.sign(purpose, method, target, worker_id, keys.id, str(time), request_id, body=body)
    return {WORKER: worker_id, KEY: keys.id, TIME: str(time), REQUEST: request_id, SIGNATURE: signature}


def check_request(
    secrets: Sequence[Keys],
    method: str,
    target: str,
    headers: Mapping[str, str],
    body: bytes,
    *,
    now: float,
    purpose: Literal["call", "report"] = "call",
) -> Signed:
    """Raises `BadSignature`. Whether the request has come before is another question."""
    worker_id, time, request_id = headers.get(WORKER, ""), headers.get(TIME, ""), headers.get(REQUEST, "")
    if not (NAME.fullmatch(worker_id) and NAME.fullmatch(request_id) and _TIME.fullmatch(time)):
        raise BadSignature("the request is not signed")
    given = headers.get(SIGNATURE, "")
    keys = next((each for each in secrets if each.id == headers.get(KEY, "")), secrets[0])
    wanted = keys.sign(purpose, method, target, worker_id, headers.get(KEY, ""), time, request_id, body=body)
    if not _same(given, wanted):
        raise BadSignature("the signature is wrong")
    if abs(now - int(time)) > TOLERANCE:
        raise BadSignature(f"the request is of another time: the clocks differ by more than {TOLERANCE} seconds")
    return Signed(worker_id, request_id, int(time), given, keys)


def answer_headers(
    keys: Keys,
    status: int,
    body: bytes,
    *,
    worker_id: str,
    request_id: str,
    purpose: Literal["answer", "reply"] = "answer",
) -> dict[str, str]:
    """The headers that sign an answer, which fits this one request only."""
    signature = keys.sign(purpose, str(status), worker_id, keys.id, request_id, body=body)
    return {KEY: keys.id, REQUEST: request_id, SIGNATURE: signature}


def is_signed_answer(
    keys: Keys,
    status: int,
    headers: Mapping[str, str],
    body: bytes,
    *,
    worker_id: str,
    request_id: str,
    purpose: Literal["answer", "reply"] = "answer",
) -> bool:
    """Whether the worker (`reply`: the scheduler) has signed this answer, to this request, with the secret that the
    request names."""
    wanted = keys.sign(purpose, str(status), worker_id, keys.id, request_id, body=body)
    return _same(headers.get(SIGNATURE, ""), wanted)


def _same(given: str, wanted: str) -> bool:
    return hmac.compare_digest(given.encode("utf-8", "replace"), wanted.encode())
