"""Limits, breakers and switches: what holds tasks back."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal

from msgspec import Meta, Struct
from msgspec.structs import replace

from tickwork.client.breakers import BreakerInfo
from tickwork.client.limits import LimitInfo
from tickwork.client.switches import SwitchInfo
from tickwork.server.callers import Right
from tickwork.server.calls import Call
from tickwork.server.masking import MASKED
from tickwork.server.operations import operation
from tickwork.server.operations.queues import Changed, Note

Of = Annotated[str, Meta(max_length=700)]


class SetLimit(Struct, forbid_unknown_fields=True, kw_only=True):
    """`rate` is a number of starts a second or a text such as `100/m`. Without rate and concurrency there is no limit,
    whatever the code says."""

    of: Of
    rate: float | Annotated[str, Meta(max_length=64)] | None = None
    burst: Annotated[int, Meta(ge=1, le=1_000_000)] | None = None
    concurrency: Annotated[int, Meta(ge=1, le=1_000_000)] | None = None
    per: Literal["key"] | None = None
    note: Note = ""


class EndRule(Struct, forbid_unknown_fields=True, kw_only=True):
    """What a rule is of, such as `type:mail`, and why it is ended; the audit log keeps the note."""

    of: Of
    note: Note = ""


class Stop(Struct, forbid_unknown_fields=True, kw_only=True):
    """What to stop, why, and until when; without an end, until somebody lifts it."""

    of: Of
    note: Note = ""
    until: datetime | None = None


@operation("GET", "/limits", Right.VIEW)
async def list_limits(call: Call) -> list[LimitInfo]:
    """The limits that hold, and how it is at each."""
    found = await call.client.limits.list()
    if not call.mask:
        return found
    return [replace(each, keys={MASKED: sum(each.keys.values())} if each.keys else {}) for each in found]


@operation("PUT", "/limits", Right.OPERATE, changes="set a limit")
async def set_limit(call: Call, body: SetLimit) -> list[LimitInfo]:
    """Limit a type (`type:mail`) or a queue (`queue:orders`), instead of what the code says of it."""
    call.tell(body.of, f"rate {body.rate}, burst {body.burst}, concurrency {body.concurrency}; {body.note}")
    await call.client.limits.set(
        body.of, rate=body.rate, burst=body.burst, concurrency=body.concurrency, per=body.per, note=body.note,
        by=call.caller.name,
    )  # fmt: skip
    return await call.client.limits.list()


@operation("POST", "/limits/remove", Right.OPERATE, changes="removed a limit")
async def remove_limit(call: Call, body: EndRule) -> Changed:
    """Take back what was set by hand: what the code says holds again."""
    call.tell(body.of, body.note)
    return Changed(await call.client.limits.remove(body.of, by=call.caller.name))


@operation("GET", "/breakers", Right.VIEW)
async def list_breakers(call: Call) -> list[BreakerInfo]:
    """The breakers that are not closed."""
    return await call.client.breakers.list()


@operation("POST", "/breakers/open", Right.OPERATE, changes="opened a breaker")
async def open_breaker(call: Call, body: Stop) -> BreakerInfo:
    """Let no task of a type, or to a target of an executor, start."""
    call.tell(body.of, body.note)
    await call.client.breakers.open(body.of, body.note, call.caller.name, body.until)
    return await call.client.breakers.get(body.of)


@operation("POST", "/breakers/close", Right.OPERATE, changes="closed a breaker")
async def close_breaker(call: Call, body: EndRule) -> Changed:
    """Let tasks through again; failures count from 0."""
    call.tell(body.of, body.note)
    return Changed(await call.client.breakers.close(body.of, by=call.caller.name))


@operation("GET", "/switches", Right.VIEW)
async def list_switches(call: Call) -> list[SwitchInfo]:
    """All that is switched off."""
    return [replace(each, of=call.mask.rule(each.of)) for each in await call.client.switches.list()]


@operation("POST", "/switches/off", Right.OPERATE, changes="switched off")
async def switch_off(call: Call, body: Stop) -> list[SwitchInfo]:
    """Start no task of a type (`type:mail`), of a key (`key:acme`) or with a tag (`tag:customer=acme`)."""
    call.tell(body.of, body.note)
    await call.client.switches.off(body.of, body.note, call.caller.name, body.until)
    return await call.client.switches.list()


@operation("POST", "/switches/on", Right.OPERATE, changes="switched on")
async def switch_on(call: Call, body: EndRule) -> Changed:
    """Start them again."""
    call.tell(body.of, body.note)
    return Changed(await call.client.switches.on(body.of, by=call.caller.name))
