"""How a worker tells the end of a call that it has answered with 202."""

from __future__ import annotations

import asyncio
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from typing import Any
from urllib.parse import quote, urlsplit

import msgspec
from msgspec import Raw

from tickwork.remote.handlers import RemoteCall
from tickwork.remote.protocol import StatusReport, refusal_text

ANSWER_MAX = 64 << 10  # bytes of an answer to a report that are read


class ReportRefused(Exception):
    """The scheduler does not take the report: the run is over by now, for whatever reason, and nothing is to be done;
    or the report is not what it should be. `status` is that of HTTP."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(f"the report was answered with {status}: {text or 'no reason is given'}")
        self.status = status


async def report(
    call: RemoteCall,
    result: Any = None,
    *,
    error: str | None = None,
    retry: bool = True,
    code: int = 0,
    message: str = "",
    timeout: float = 10.0,
) -> None:
    """Tell the end of a call: its result, or an error, after which the task is tried again unless `retry` is False.

    Raises `ReportRefused`, or `OSError` if the scheduler cannot be reached; the same report may then be sent again.
    """
    body = encoded_report(call, result, error=error, retry=retry, code=code, message=message)
    await asyncio.to_thread(send, report_url(call), body, timeout)


def report_url(call: RemoteCall) -> str:
    if call.callback_url is None:
        raise ValueError(f"the scheduler of task {call.id} takes no reports: it has no callback_url")
    return f"{call.callback_url.rstrip('/')}/tasks/{quote(call.id, safe='')}/status"


def encoded_report(
    call: RemoteCall,
    result: Any = None,
    *,
    error: str | None = None,
    retry: bool = True,
    code: int = 0,
    message: str = "",
) -> bytes:
    """The body of the request, for those who send it by other means."""
    if error is not None:
        return msgspec.json.encode(StatusReport(token=call.token, status="failed", message=error, retry=retry))
    data = Raw(msgspec.json.encode(result))
    return msgspec.json.encode(
        StatusReport(token=call.token, status="completed", message=message, code=code, data=data)
    )


def send(url: str, body: bytes, timeout: float) -> None:
    """Straight to the host of the URL: no proxies, no redirects."""
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or parts.hostname is None:
        raise ValueError(f"a callback URL begins with http:// or https://, not {url[:100]!r}")
    kind = HTTPSConnection if parts.scheme == "https" else HTTPConnection
    connection = kind(parts.hostname, parts.port, timeout=timeout)
    try:
        connection.request("POST", parts.path, body, {"Content-Type": "application/json"})
        answer = connection.getresponse()
        text = refusal_text(answer.read(ANSWER_MAX))
    except HTTPException as error:
        raise ConnectionError(f"{url}: {type(error).__name__}: {error}") from error
    finally:
        connection.close()
    if answer.status != 200:
        raise ReportRefused(answer.status, text)
