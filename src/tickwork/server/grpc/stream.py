"""The one operation that answers with a stream. It is not in the table, since HTTP has a form of its own for it; here
it is declared like the others, so that its messages are made in the same way."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct

from tickwork.server.callers import Right
from tickwork.server.calls import Call
from tickwork.server.live import Frame, Tick
from tickwork.server.operations import Operation
from tickwork.server.operations.events import Number
from tickwork.server.rows import EventRow

EVENTS_MAX = 1000  # of one message
Topic = Annotated[str, Meta(max_length=64)]


class EventFrame(Struct, frozen=True, kw_only=True):
    """What a stream is sent at a time. `kind` is `open`, `events`, `tick`, `missed` or `alive`. `seq` is where to go on
    after a disconnect; `missed` is how many facts were left out."""

    kind: str
    seq: int | None = None
    events: list[EventRow] = []
    tick: Tick | None = None
    missed: int | None = None


async def stream_events(
    call: Call,
    topics: Annotated[list[Topic], Meta(max_length=50)] = [],  # noqa: B006 - only read, and never called
    task: Annotated[str, Meta(max_length=128)] | None = None,
    after: Number | None = None,
) -> EventFrame:
    """Follow the log as it grows, at most four frames a second.

    The first frame is `open`. `events` has facts, of which one about the same thing stands for those before it; `tick`
    has the numbers of the whole, every second. `topics` are such as `task` and `worker`, all if there are none; `task`
    asks for the facts of one task; `after` goes on after the fact of that number.
    """
    raise NotImplementedError  # the service follows the hub itself


STREAM = Operation("stream_events", "GET", "/events/stream", Right.VIEW, stream_events, "events")


def event_frames(frame: Frame) -> list[EventFrame]:
    """As one message, or as several: clients take messages of 4 MiB unless they say otherwise. Only the last says where
    to go on, so that nothing is lost if the stream ends between them."""
    if frame.kind == "events" and len(frame.data) > EVENTS_MAX:
        parts = [frame.data[start : start + EVENTS_MAX] for start in range(0, len(frame.data), EVENTS_MAX)]
        last = EventFrame(kind=frame.kind, seq=frame.seq, events=parts[-1])
        return [*(EventFrame(kind=frame.kind, events=part) for part in parts[:-1]), last]
    return [
        EventFrame(
            kind=frame.kind,
            seq=frame.seq,
            events=frame.data if frame.kind == "events" else [],
            tick=frame.data if frame.kind == "tick" else None,
            missed=frame.data["count"] if frame.kind == "missed" else None,
        )
    ]
