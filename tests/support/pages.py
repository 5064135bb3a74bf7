"""Reading the pages that a node serves, with real requests."""

from __future__ import annotations

import asyncio
import json
import urllib.error
import urllib.request
from typing import Any, NamedTuple

from tickwork import Scheduler

PATIENCE = 60  # seconds for an answer


class Page(NamedTuple):
    status: int
    headers: dict[str, str]
    body: bytes

    def json(self) -> Any:
        return json.loads(self.body)


def url_of(app: Scheduler, option: str = "health_port") -> str:
    """Where a scheduler that has started serves the pages of an option."""
    assert app._monitor.listeners is not None
    return app._monitor.listeners.url(option)


async def fetch(url: str, method: str = "GET", body: bytes | None = None) -> Page:
    """One request from a thread, so that it goes over the network to a server on this event loop."""
    return await asyncio.to_thread(_fetch, url, method, body)


def _fetch(url: str, method: str, body: bytes | None) -> Page:
    request = urllib.request.Request(url, data=body, method=method)
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(request, timeout=PATIENCE) as answer:
            return Page(answer.status, _lower(answer.headers), answer.read())
    except urllib.error.HTTPError as error:
        with error:
            return Page(error.code, _lower(error.headers), error.read())


def _lower(headers: Any) -> dict[str, str]:
    return {name.lower(): value for name, value in headers.items()}
