"""Reading event streams as a browser does."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, NamedTuple

import httpx

from tests.server.serving import API, Client


class Frame(NamedTuple):
    kind: str
    data: Any
    id: str | None


class Reader:
    """Frames of one stream; those with the numbers of the whole and signs of life are left out unless asked for."""

    def __init__(self, response: httpx.Response) -> None:
        self.response = response
        self.all: list[Frame] = []
        self.text = ""
        self._lines = response.aiter_lines()

    async def frame(self, *kinds: str, timeout: float = 20) -> Frame:
        """The next frame of one of these kinds. Raises `EOFError` at the end."""
        async with asyncio.timeout(timeout):
            while True:
                found = await self._next()
                if found.kind in (kinds or ("events",)):
                    return found

    async def facts(self, count: int = 1, timeout: float = 20) -> list[Any]:
        """So many facts at least, from as many frames as it takes."""
        found: list[Any] = []
        while len(found) < count:
            found += (await self.frame("events", timeout=timeout)).data
        return found

    async def ends(self, timeout: float) -> None:
        async with asyncio.timeout(timeout):
            try:
                while True:
                    await self._next()
            except EOFError:
                return

    async def _next(self) -> Frame:
        fields: dict[str, str] = {}
        try:
            async for line in self._lines:
                self.text += f"{line}\n"
                if not line:
                    if "event" in fields:
                        frame = Frame(fields["event"], json.loads(fields["data"]), fields.get("id"))
                        self.all.append(frame)
                        return frame
                    continue
                name, _, value = line.partition(":")
                if name:
                    fields[name] = value.strip()
        except httpx.RemoteProtocolError:
            pass
        raise EOFError


@asynccontextmanager
async def following(client: Client, headers: dict[str, str] | None = None, **query: Any) -> AsyncIterator[Reader]:
    async with client.stream("GET", f"{API}/events/stream", params=query, headers=headers) as response:
        assert response.status_code == 200, await response.aread()
        reader = Reader(response)
        await reader.frame("open")
        yield reader
