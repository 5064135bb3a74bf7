"""Signed requests from a node to remote workers."""

from __future__ import annotations

import time

import msgspec
from msgspec import Struct

from tickwork.client.remote_workers import WorkerKeys
from tickwork.errors import ExecutorError
from tickwork.ids import new_id
from tickwork.outbound import call_headers
from tickwork.outbound.addresses import parse
from tickwork.outbound.client import Answer, Outbound
from tickwork.remote.protocol import BODY_MAX, CANCEL, HEALTH, CancelCall, Health, Unfit, decoded_health, request_id_of
from tickwork.remote.signing import is_signed_answer, request_headers
from tickwork.texts import said


class Called(Struct, frozen=True):
    """A remote worker as a node calls it."""

    id: str
    address: str


class Replied(Struct, frozen=True):
    """What came back. Only what is signed comes from the worker itself."""

    answer: Answer
    signed: bool

    @property
    def status(self) -> int:
        return self.answer.status

    @property
    def body(self) -> bytes:
        return self.answer.body


class Caller:
    """Calls remote workers, each with keys of its own."""

    def __init__(self, outbound: Outbound, keys: WorkerKeys) -> None:
        self._outbound = outbound
        self._keys = keys

    async def send(
        self, worker: Called, method: str, route: str, body: bytes, *, request_id: str, timeout: float
    ) -> Replied:
        """Raises what `Outbound.request` raises."""
        url = worker.address.rstrip("/") + route
        keys = self._keys.of(worker.id)
        headers = request_headers(
            keys, method, parse(url).path, body, worker_id=worker.id, request_id=request_id, time=int(time.time())
        )
        if body:
            headers["content-type"] = "application/json"
        answer = await self._outbound.request(
            method, url, headers=call_headers.with_current(headers), body=body or None, timeout=timeout, limit=BODY_MAX
        )
        signed = is_signed_answer(
            keys, answer.status, answer.headers, answer.body, worker_id=worker.id, request_id=request_id
        )
        return Replied(answer, signed)

    async def cancel(self, worker: Called, task_id: str, token: str, reason: str, timeout: float) -> None:
        """Ask a worker to stop a run. What it answers changes nothing."""
        body = msgspec.json.encode(CancelCall(id=task_id, token=token, reason=reason))
        await self.send(worker, "POST", CANCEL, body, request_id=request_id_of(token, "cancel"), timeout=timeout)

    async def probe(self, worker: Called, timeout: float) -> Health:
        """How a worker is. Raises `ExecutorError` when it does not say so, signed."""
        replied = await self.send(worker, "GET", HEALTH, b"", request_id=new_id(), timeout=timeout)
        if replied.status != 200 or not replied.signed:
            how = "" if replied.signed else ", which is not signed with its secret"
            raise ExecutorError(f"worker {worker.id} has answered a probe with {replied.status}{how}")
        try:
            return decoded_health(replied.body)
        except Unfit as error:
            text = said(str(error))
            raise ExecutorError(f"worker {worker.id} has answered a probe with something else: {text}") from None

    async def close(self) -> None:
        await self._outbound.close()
