"""Checks a remote worker in any language against the protocol of `docs/remote-workers.md`:

python -m tickwork.remote.conformance http://127.0.0.1:8000 --id resizer-1 --secret-file secret --type resize
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Iterator
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from pathlib import Path
from urllib.parse import urlsplit

import msgspec
from msgspec import Raw, Struct
from msgspec.structs import replace

from tickwork.ids import new_id
from tickwork.remote.protocol import (
    CANCEL,
    EXECUTE,
    HEALTH,
    CancelCall,
    ExecuteCall,
    Unfit,
    decoded_answer,
    decoded_health,
    plain,
    request_id_of,
)
from tickwork.remote.signing import SIGNATURE, TOLERANCE, WORKER, Keys, is_signed_answer, request_headers

TIMEOUT = 30.0
HUGE = 64 << 20  # bytes that no worker should take
CHUNK = 64 << 10
ANSWER_MAX = 4 << 20
NESTED = 10_000  # levels, which end a decoder that has no bound


class Wrong(Exception):
    """The worker does not do what the protocol says."""


class Got(Struct, frozen=True):
    """An answer, and what it must be bound to."""

    status: int
    headers: dict[str, str]
    body: bytes
    request_id: str


class Sent(Struct, frozen=True):
    """A request as it goes out."""

    method: str
    route: str
    body: bytes
    headers: dict[str, str]


class Worker:
    """The worker that is checked."""

    def __init__(self, url: str, id: str, secret: str) -> None:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or parts.hostname is None:
            raise ValueError(f"the address of a worker begins with http:// or https://, not {url!r}")
        self._kind = HTTPSConnection if parts.scheme == "https" else HTTPConnection
        self._host, self._port = parts.hostname, parts.port
        self._root = parts.path.rstrip("/")
        self.id = id
        self.keys = Keys.of(secret)

    def request(
        self, method: str, route: str, body: bytes = b"", *, keys: Keys | None = None, request_id: str = "",
        shift: int = 0, worker_id: str = "", path: str = "",
    ) -> Sent:  # fmt: skip
        """A request that is signed as it should be, but for what is given."""
        headers = request_headers(
            keys or self.keys, method, self._root + (path or route), body, worker_id=worker_id or self.id,
            request_id=request_id or new_id(), time=int(time.time()) + shift,
        )  # fmt: skip
        return Sent(method, route, body, headers)

    def send(self, sent: Sent) -> Got:
        connection = self._kind(self._host, self._port, timeout=TIMEOUT)
        try:
            headers = {**sent.headers, "content-type": "application/json"} if sent.body else sent.headers
            connection.request(sent.method, self._root + sent.route, sent.body or None, headers)
            answer = connection.getresponse()
            found = {name.lower(): value for name, value in answer.getheaders()}
            return Got(answer.status, found, answer.read(ANSWER_MAX), sent.headers.get("idempotency-key", ""))
        finally:
            connection.close()

    def send_huge(self) -> int | None:
        """The status of the answer to a body of 64 MiB; None if the worker hangs up."""
        connection = self._kind(self._host, self._port, timeout=TIMEOUT)
        try:
            connection.putrequest("POST", self._root + EXECUTE)
            headers = request_headers(
                self.keys, "POST", self._root + EXECUTE, b"", worker_id=self.id, request_id=new_id(),
                time=int(time.time()),
            )  # fmt: skip
            for name, value in {**headers, "content-length": str(HUGE), "content-type": "application/json"}.items():
                connection.putheader(name, value)
            connection.endheaders()
            try:
                for _ in range(HUGE // CHUNK):
                    connection.send(b" " * CHUNK)
            except OSError:  # it has answered, or hung up, before all was sent
                pass
            try:
                return connection.getresponse().status
            except (OSError, HTTPException):
                return None
        finally:
            connection.close()

    def expect(self, sent: Sent, *statuses: int, signed: bool = True) -> Got:
        got = self.send(sent)
        if got.status not in statuses:
            raise Wrong(f"answered {got.status}, not {' or '.join(map(str, statuses))}: {plain(_text(got.body))[:200]}")
        if signed and not self.has_signed(got):
            raise Wrong(f"the answer {got.status} is not signed for this request with the answer key")
        return got

    def has_signed(self, got: Got) -> bool:
        return is_signed_answer(
            self.keys, got.status, got.headers, got.body, worker_id=self.id, request_id=got.request_id
        )


def _text(body: bytes) -> str:
    return body[:1000].decode("utf-8", "replace")


def a_call(worker: Worker, type: str, payload: bytes) -> ExecuteCall:
    return ExecuteCall(
        id=new_id(), type=type, token=new_id().replace("-", ""), attempt=1, namespace="conformance",
        worker_id=worker.id, payload=Raw(payload), timeout=TIMEOUT, tags={"from": "conformance"},
    )  # fmt: skip


Check = tuple[str, Callable[[], None]]


def checks(worker: Worker, type: str | None, payload: bytes) -> Iterator[Check]:
    """Each is a name and a function that raises `Wrong`."""
    unknown = msgspec.json.encode(a_call(worker, "tickwork.conformance.unknown", b"null"))

    def refused(sent: Sent) -> None:
        got = worker.expect(sent, 401, signed=False)
        if got.request_id and worker.has_signed(got):
            raise Wrong("the 401 is signed: a stranger could use it as the answer to a request of somebody else")

    def health() -> None:
        try:
            decoded_health(worker.expect(worker.request("GET", HEALTH), 200).body)
        except Unfit as error:
            raise Wrong(f"the body is not that of a health answer: {error}") from None

    def huge() -> None:
        status = worker.send_huge()
        if status not in (None, 413):
            raise Wrong(f"a body of {HUGE:,} bytes was answered with {status}, not 413")
        health()

    def other(keys: Keys, name: str) -> Keys:
        return replace(keys, call=getattr(keys, name))

    good = worker.request("POST", EXECUTE, unknown)
    yield "health is answered, and signed", health
    yield "health without a signature is refused", lambda: refused(Sent("GET", HEALTH, b"", {}))
    yield "a call without a signature is refused", lambda: refused(Sent("POST", EXECUTE, unknown, {}))
    wrong = {**good.headers, SIGNATURE: "v1=" + "0" * 64}
    yield "a wrong signature is refused", lambda: refused(replace(good, headers=wrong))
    yield "another body is refused", lambda: refused(replace(good, body=unknown + b" "))
    yield (
        "a signature for another path is refused",
        lambda: refused(worker.request("POST", EXECUTE, unknown, path=CANCEL)),
    )
    elsewhere = worker.request("POST", EXECUTE, unknown, worker_id="somebody-else")
    yield "a call for another worker is refused", lambda: refused(elsewhere)
    renamed = {**good.headers, WORKER: "somebody-else"}
    yield "another worker's id is refused", lambda: refused(replace(good, headers=renamed))
    for name in ("answer", "report"):
        keys = other(worker.keys, name)
        yield (
            f"the {name} key does not sign calls",
            lambda keys=keys: refused(  # type: ignore[misc]
                worker.request("POST", EXECUTE, unknown, keys=keys)
            ),
        )
    for word, shift in (("old", -2 * TOLERANCE), ("future", 2 * TOLERANCE)):
        yield (
            f"a call of the {word} time is refused".replace("old", "past"),
            lambda shift=shift: refused(  # type: ignore[misc]
                worker.request("POST", EXECUTE, unknown, shift=shift)
            ),
        )
    yield "an unknown type is answered with 404", lambda: _done(worker.expect(good, 404))
    yield (
        "what is no JSON is answered with 400",
        lambda: _done(worker.expect(worker.request("POST", EXECUTE, b"{not json"), 400)),
    )
    deep = b'{"payload":' + b"[" * NESTED + b"]" * NESTED + b"}"
    yield (
        "what is nested too deep is answered with 400",
        lambda: _done(worker.expect(worker.request("POST", EXECUTE, deep), 400)),
    )
    yield "a body without end is answered with 413", huge
    cancel = msgspec.json.encode(CancelCall(id="unknown", token="0" * 32, reason="conformance"))
    yield (
        "the cancel of an unknown call does nothing",
        lambda: _done(worker.expect(worker.request("POST", CANCEL, cancel), 200)),
    )
    if type is not None:
        yield from _checks_of_type(worker, type, payload, refused)


def _checks_of_type(worker: Worker, type: str, payload: bytes, refused: Callable[[Sent], None]) -> Iterator[Check]:
    call = a_call(worker, type, payload)
    body, request_id = msgspec.json.encode(call), request_id_of(call.token)
    sent = worker.request("POST", EXECUTE, body, request_id=request_id)
    first: list[Got] = []

    def executes() -> None:
        first.append(worker.expect(sent, 200, 202))
        try:
            decoded_answer(first[0].body)
        except Unfit as error:
            raise Wrong(f"the answer is not what the protocol says: {error}") from None

    def repeats() -> None:
        again = worker.expect(sent, 200, 202)
        if not first or (again.status, again.body) != (first[0].status, first[0].body):
            raise Wrong("the same request again was answered in another way")

    yield f"a call of type {type} is answered, and signed", executes
    yield "the same call again gets the same answer", repeats
    later = worker.request("POST", EXECUTE, body, request_id=request_id, shift=1)
    yield "its idempotency key with another time is refused", lambda: refused(later)
    other = worker.request("POST", EXECUTE, body + b" ", request_id=request_id)
    yield "its idempotency key with another body is refused", lambda: refused(other)


def _done(_: Got) -> None:
    return None


def run(worker: Worker, type: str | None = None, payload: bytes = b"null") -> dict[str, str]:
    """Every check by its name, with what is wrong; empty if nothing is."""
    found: dict[str, str] = {}
    for name, check in checks(worker, type, payload):
        try:
            check()
            found[name] = ""
        except Wrong as error:
            found[name] = str(error)
        except (OSError, HTTPException) as error:
            found[name] = f"no answer: {error.__class__.__name__}: {error}"
    return found


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tickwork.remote.conformance", description="Check a remote worker.")
    parser.add_argument("url", help="its address, as it is registered: http://host:8000 or http://host:8000/path")
    parser.add_argument("--id", required=True, help="the id under which it is registered")
    parser.add_argument("--secret-file", required=True, type=Path, help="a file with its secret")
    parser.add_argument("--type", help="a task type that it may run now, once; without it nothing is run")
    parser.add_argument("--payload", default="null", help="the payload for that task, as JSON")
    given = parser.parse_args(arguments)
    try:
        msgspec.json.decode(given.payload)
        worker = Worker(given.url, given.id, given.secret_file.read_text())
    except (OSError, ValueError, msgspec.MsgspecError) as error:
        parser.error(str(error))
    found = run(worker, given.type, given.payload.encode())
    width = max(map(len, found))
    for name, wrong in found.items():
        print(f"{name:<{width}}  {f'WRONG: {wrong}' if wrong else 'ok'}")
    bad = sum(map(bool, found.values()))
    print(f"\n{bad} of {len(found)} checks failed" if bad else f"\nall {len(found)} checks passed")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
