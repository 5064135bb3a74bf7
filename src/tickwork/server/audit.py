"""The audit log: who has changed what, from where, and who was refused.

It is not the event log, which is trimmed by what tasks do. There are four journals with a bound of their own, so that
a flood in one washes nothing out of another: changes, submits, refusals, and sign-ins, which anybody with a token may
repeat without end. All but changes that repeat within some seconds are counted in one entry. No operation removes an
entry.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Awaitable, Callable
from datetime import datetime
from typing import Literal

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from tickwork.clock import to_datetime
from tickwork.errors import StoreError
from tickwork.ids import new_id
from tickwork.observe.loggers import Log
from tickwork.server.callers import Caller
from tickwork.store.contract import ENTRIES_PAGE, Entry, Store
from tickwork.texts import cut

Journal = Literal["changes", "submits", "refusals", "sign_ins"]

KEPT: dict[Journal, int] = {"changes": 100_000, "submits": 10_000, "refusals": 10_000, "sign_ins": 10_000}
GATHER = 10.0  # seconds for which the same again is only counted
GATHERED_MAX = 1000  # different ones at a time
TEXT_MAX = 500  # characters of a detail
NAME_MAX = 200
LOOKS = 20  # pages of a journal that one request looks at


class AuditEntry(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One change, or several that were the same. `result` is `done`, or the code of the problem that refused it, or
    `unknown` where the store did not answer."""

    id: str
    who: str
    role: str
    via: str
    address: str
    what: str
    target: str = ""
    detail: str = ""
    result: str = "done"
    count: int = 1


class AuditRow(Struct, frozen=True, kw_only=True):
    """An entry as it is shown: `number` and `at` are given by the store."""

    number: int
    at: datetime
    id: str
    who: str
    role: str
    via: str
    address: str
    what: str
    target: str
    detail: str
    result: str
    count: int


class Wanted(Struct, frozen=True):
    """Which entries are asked for: those that have these texts in them, in any case."""

    who: str = ""
    what: str = ""
    target: str = ""

    def fits(self, row: AuditRow) -> bool:
        return (
            self.who.lower() in row.who.lower()
            and self.what.lower() in row.what.lower()
            and self.target.lower() in row.target.lower()
        )


_decode = msgspec.json.Decoder(AuditEntry).decode
_encode = msgspec.json.Encoder().encode


class Audit:
    def __init__(self, open_store: Callable[[], Awaitable[Store]], log: Log | None = None) -> None:
        self._open_store = open_store
        self._log = log or Log.of(None, "audit")
        self._gathered: dict[tuple[Journal, AuditEntry], int] = {}
        self._flushing: asyncio.Task[None] | None = None
        self._writing = asyncio.Lock()  # what was counted: whoever has it has taken the counts, and must write them

    async def change(self, caller: Caller, what: str, target: str, detail: str, result: str = "done") -> None:
        """Tell of a change at once. A store that cannot take it is told in the log of this process: the change itself
        is done."""
        await self._append("changes", [entry_of(caller, what, target, detail, result)])

    async def gather(
        self,
        journal: Journal,
        caller: Caller,
        what: str,
        target: str,
        detail: str,
        result: str = "done",
        count: int = 1,
    ) -> None:
        """Tell of it at once the first time, and count what is the same in the next seconds."""
        entry = replace(entry_of(caller, what, target, detail, result), id="")
        key = (journal, entry)
        if key in self._gathered:
            self._gathered[key] += count
        elif len(self._gathered) < GATHERED_MAX:
            self._gathered[key] = 0
            await self._append(journal, [replace(entry, id=new_id(), count=count)])
        else:
            crowd = replace(entry, who="many", address="", target="", detail="more than can be told apart")
            self._gathered[journal, crowd] = self._gathered.get((journal, crowd), 0) + count
        if self._flushing is None or self._flushing.done():
            self._flushing = asyncio.create_task(self._flush_later())

    async def _flush_later(self) -> None:
        while self._gathered:  # also what was counted while it wrote
            await asyncio.sleep(GATHER)
            await self._write_gathered()

    async def flush(self) -> None:
        """Write what was only counted so far."""
        async with self._writing:
            if self._flushing is not None:
                self._flushing.cancel()
                with contextlib.suppress(asyncio.CancelledError):
                    await self._flushing
        while self._gathered:
            await self._write_gathered()

    async def _write_gathered(self) -> None:
        async with self._writing:
            gathered, self._gathered = self._gathered, {}
            for (journal, entry), count in gathered.items():
                if count:
                    await self._append(journal, [replace(entry, id=new_id(), count=count)])

    async def _append(self, journal: Journal, entries: list[AuditEntry]) -> None:
        began = time.monotonic()
        try:
            store = await self._open_store()
            await store.control.append(f"audit.{journal}", [_encode(each).decode() for each in entries], KEPT[journal])
        except StoreError as error:
            for entry in entries:
                self._log.error(
                    "an entry of the audit log could not be written after %.1f s: %s: %s %s %s",
                    time.monotonic() - began, error, entry.who, entry.what, entry.target,
                )  # fmt: skip

    async def read(
        self, journal: Journal, before: int | None, limit: int, wanted: Wanted | None = None
    ) -> tuple[list[AuditRow], int | None]:
        """Newest first, and what to ask for those before, if there are any: after so many entries that do not fit the
        page is short. An entry that was sent twice is shown once."""
        control = (await self._open_store()).control
        size = limit if wanted is None else ENTRIES_PAGE
        rows: dict[str, AuditRow] = {}
        for _ in range(LOOKS):
            found = await control.read(f"audit.{journal}", before, size)
            for each in found:
                row = _row(each)
                if wanted is None or wanted.fits(row):
                    rows[row.id] = row
                if len(rows) == limit:
                    return list(rows.values()), each.number
            if len(found) < size:
                return list(rows.values()), None
            before = found[-1].number
        return list(rows.values()), before


async def append(store: Store, journal: Journal, caller: Caller, what: str, target: str, detail: str) -> None:
    """One entry by somebody who is not a server."""
    entry = entry_of(caller, what, target, detail, "done")
    await store.control.append(f"audit.{journal}", [_encode(entry).decode()], KEPT[journal])


def entry_of(caller: Caller, what: str, target: str, detail: str, result: str) -> AuditEntry:
    return AuditEntry(
        id=new_id(),
        who=cut(caller.name, NAME_MAX),
        role=caller.role if caller.is_known else "",
        via=caller.via,
        address=cut(caller.address, NAME_MAX),
        what=what,
        target=cut(target, NAME_MAX),
        detail=cut(detail, TEXT_MAX),
        result=result,
    )


def _row(entry: Entry) -> AuditRow:
    try:
        told = _decode(entry.text)
    except msgspec.MsgspecError:
        told = AuditEntry(id=f"{entry.number}", who="", role="", via="", address="", what="unreadable")
    return AuditRow(number=entry.number, at=to_datetime(entry.at), **msgspec.structs.asdict(told))
