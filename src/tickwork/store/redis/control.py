"""Documents and journals on Redis, under a prefix of their own: a worker's user has no right to it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from tickwork.store.contract import DOCUMENTS_PAGE, ENTRIES_PAGE, Document, Entry, NotPermitted
from tickwork.store.redis.core import Part
from tickwork.store.rules import bounded_limit, number_before


class Control(Part):
    async def get(self, kind: str, name: str) -> str | None:
        layout = self._core.layout
        with self._naming_the_rights():
            found = await self._core.ask(layout.root, "HGET", f"{layout.control}doc:{kind}", name)
        return None if found is None else _text(found)

    async def page(self, kind: str, after: str = "", limit: int = DOCUMENTS_PAGE) -> list[Document]:
        limit = bounded_limit(limit, DOCUMENTS_PAGE)
        with self._naming_the_rights():
            found = await self._core.run("control_page", self._core.layout.root, kind, after, limit)
        return [Document(_text(name), _text(text)) for name, text in zip(found[::2], found[1::2], strict=True)]

    async def swap(self, kind: str, name: str, seen: str | None, new: str | None, most: int = 0) -> bool:
        # A text is sent with a letter before it, as the script is to tell an empty one from none.
        texts = ("" if text is None else f"={text}" for text in (seen, new))
        with self._naming_the_rights():
            return bool(await self._core.run("control_swap", self._core.layout.root, kind, name, *texts, most))

    async def append(self, journal: str, texts: Sequence[str], keep: int) -> int:
        with self._naming_the_rights():
            return int(await self._core.run("control_append", self._core.layout.root, journal, max(keep, 1), *texts))

    async def read(self, journal: str, before: int | None = None, limit: int = 100) -> list[Entry]:
        layout, end, count = self._core.layout, number_before(before), bounded_limit(limit, ENTRIES_PAGE)
        if end < 1 or count == 0:
            return []
        command = ("XREVRANGE", f"{layout.control}journal:{journal}", f"({end}-0", "-", "COUNT", count)
        with self._naming_the_rights():
            found = await self._core.ask(layout.root, *command)
        return [Entry(int(key.partition(b"-")[0]), int(at), _text(text)) for key, (_, at, _, text) in found]

    @contextmanager
    def _naming_the_rights(self) -> Iterator[None]:
        try:
            yield
        except NotPermitted as error:
            raise NotPermitted(
                f"tokens, sessions, views and journals at Redis {self._core.target.url} have keys of their own "
                f"({self._core.layout.control}*), which a worker's user may neither read nor write: give the server a "
                "user with the rights of `tickwork acl --for server`"
            ) from error


def _text(data: bytes) -> str:
    return data.decode(errors="replace")
