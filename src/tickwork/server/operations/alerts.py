"""Alerts: how the rules stand, and silencing them."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Annotated

from msgspec import Meta, Struct

from tickwork.model.alerts import Alert
from tickwork.server.callers import Right
from tickwork.server.calls import Call
from tickwork.server.operations import operation
from tickwork.server.operations.queues import Changed, Note
from tickwork.server.operations.tasks import Seconds
from tickwork.server.problems import Refused

RuleName = Annotated[str, Meta(min_length=1, max_length=256)]


class SilenceAlert(Struct, forbid_unknown_fields=True, kw_only=True):
    """Which rule, why, and until when or for how many seconds: one of the two must be said."""

    name: RuleName
    until: datetime | None = None
    duration: Seconds | None = None
    note: Note = ""


class UnsilenceAlert(Struct, forbid_unknown_fields=True, kw_only=True):
    name: RuleName


@operation("GET", "/alerts", Right.VIEW)
async def list_alerts(call: Call) -> list[Alert]:
    """How the alert rules stand, those that fire first. None while no node with `monitoring` has led."""
    return await call.client.alerts()


@operation("POST", "/alerts/silence", Right.OPERATE, changes="silenced an alert")
async def silence_alert(call: Call, body: SilenceAlert) -> Alert:
    """Tell nobody that a rule fires or is over, until the silence ends. If it fires then, it is told then."""
    call.tell(body.name, body.note)
    if (body.until is None) == (body.duration is None):
        raise Refused(400, "bad_value", "a silence needs an end: give either `until` or `duration`")
    until = body.until or timedelta(seconds=body.duration or 0)
    await call.client.silence_alert(body.name, until, body.note, call.caller.name)
    return next(each for each in await call.client.alerts() if each.name == body.name)


@operation("POST", "/alerts/unsilence", Right.OPERATE, changes="ended the silence of an alert")
async def unsilence_alert(call: Call, body: UnsilenceAlert) -> Changed:
    """End a silence now. If the rule fires, that is told at the next look."""
    call.tell(body.name)
    return Changed(await call.client.unsilence_alert(body.name))
