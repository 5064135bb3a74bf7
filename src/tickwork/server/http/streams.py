"""Event streams by HTTP (server-sent events)."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from typing import Annotated, Any

from litestar import Request, get
from litestar.handlers import HTTPRouteHandler
from litestar.params import QueryParameter
from litestar.response import Stream as EventStream

from tickwork.model.facts import Fact
from tickwork.server.callers import Caller, Right
from tickwork.server.http.guard import plane_of
from tickwork.server.http.handlers import NS, problem_responses
from tickwork.server.live import Frame, topics_of
from tickwork.server.operations import Operation
from tickwork.server.plane import ControlPlane
from tickwork.server.problems import Refused
from tickwork.server.spaces import Space
from tickwork.texts import shown

MEDIA = "text/event-stream"
LOOK_AGAIN = 1.0  # seconds between two looks whether the caller may still listen, beside those that tokens are good
FAMILIES = frozenset(fact.partition(".")[0] for fact in Fact)
NUMBER_MAX = 2**62


async def no_call(call: Any) -> None:
    """Follow the log as it grows."""


STREAM = Operation("stream_events", "GET", "/events/stream", Right.VIEW, no_call, "events", media=MEDIA)


def stream_handler() -> HTTPRouteHandler:
    @get(
        "/events/stream",
        operation_id="stream_events",
        summary="Follow the log as it grows",
        tags=["events"],
        media_type=MEDIA,
        responses=problem_responses(),
    )
    async def stream_events(
        request: Request[Any, Any, Any],
        ns: NS = None,
        topics: Annotated[str, QueryParameter(max_length=500, description="Such as task,worker; all if empty.")] = "",
        task: Annotated[str | None, QueryParameter(max_length=128, description="Facts of one task only.")] = None,
        after: Annotated[int | None, QueryParameter(ge=0, le=NUMBER_MAX, description="Go on after this fact.")] = None,
    ) -> EventStream:
        """Facts of the log as server-sent events, at most four frames a second.

        `events` has facts, of which one about the same thing stands for those before it; `tick` has the numbers of the
        whole; `missed` says how many facts were left out. Reconnecting with `Last-Event-ID` goes on where it was.
        """
        plane, caller = plane_of(request), request.state.caller
        space = await plane.admit(STREAM, caller, ns)
        names = [name for name in topics.split(",") if name]
        for name in names:
            if name not in FAMILIES:
                raise Refused(400, "bad_topic", f"{shown(name)} is no topic; known are {', '.join(sorted(FAMILIES))}")
        last = _last_id(request.headers.get("last-event-id"))
        begin = max((each for each in (after, last) if each is not None), default=None)
        stream = frames(plane, space, caller, names, task, begin)
        first = await anext(stream)  # before the answer begins, so that what refuses it is a problem of its own
        return EventStream(_texts(first, stream), media_type=MEDIA, headers={"x-accel-buffering": "no"})

    return stream_events


def _last_id(text: str | None) -> int | None:
    return int(text) if text is not None and text.isdecimal() and len(text) <= 19 else None


async def frames(
    plane: ControlPlane, space: Space, caller: Caller, topics: list[str], task: str | None, after: int | None
) -> AsyncIterator[Frame]:
    """Until the caller leaves, or may not listen any more."""
    owner = plane.begin_stream(caller)
    try:
        stream = await space.hub.join(topics_of(topics, task), plane.mask_for(caller), after)
        try:
            looked = time.monotonic()
            yield Frame("open", {"seq": stream.seq}, stream.seq)
            async for frame in stream.frames():
                if time.monotonic() - looked > LOOK_AGAIN:
                    looked = time.monotonic()
                    if not await plane.is_still_in(caller):
                        return
                yield frame
        finally:
            space.hub.leave(stream)
    finally:
        plane.end_stream(owner)


async def _texts(first: Frame, others: AsyncIterator[Frame]) -> AsyncIterator[bytes]:
    yield first.text
    async for frame in others:
        yield frame.text
