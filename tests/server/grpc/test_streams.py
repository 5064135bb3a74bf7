"""Event streams: what they tell, and when they end."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import grpc
import grpc.aio
import pytest

from tests.server.grpc.calling import Api, Grpc, calling
from tests.server.serving import HOME, OTHER
from tests.support.waiting import wait_until
from tickwork import Scheduler
from tickwork.server import plane
from tickwork.server.grpc.gen import tickwork_pb2 as pb
from tickwork.server.grpc.stream import EVENTS_MAX, event_frames
from tickwork.server.live import Frame

Frames = Any


def follow(caller: Grpc, **given: Any) -> Frames:
    return caller.stub.StreamEvents(pb.StreamEventsRequest(**given), metadata=caller.metadata)


async def ending(frames: Frames) -> str:
    """The status with which a stream ends."""
    async with asyncio.timeout(30):
        try:
            while await frames.read() is not grpc.aio.EOF:
                pass
        except grpc.aio.AioRpcError as error:
            return error.code().name
    return "OK"


async def kinds_until(frames: Frames, wanted: str) -> list[str]:
    """What happened to tasks, up to the first of that kind."""
    found: list[str] = []
    async with asyncio.timeout(30):
        while wanted not in found:
            frame = await frames.read()
            assert frame is not grpc.aio.EOF, await frames.details()
            found += [event.kind for event in frame.events]
    return found


async def test_what_a_worker_does_is_told(url: str) -> None:
    app = Scheduler(url, namespace=HOME, server=True, server_port=0, server_tokens=True)

    @app.task("quick")
    async def quick() -> None:
        return None

    async with calling(url, node=True, app=app) as api:
        caller = await api.as_role("submitter")
        frames = follow(caller, topics=["task"])
        opened = await frames.read()
        assert opened.kind == "open"
        assert opened.HasField("seq")
        task = await caller.call("submit_task", type="quick")
        await kinds_until(frames, "task.succeeded")
        frames.cancel()
        again = follow(caller, task=task.id, after=opened.seq)
        await kinds_until(again, "task.succeeded")
        again.cancel()


async def test_numbers_of_the_whole_come_every_second(api: Api, caller: Grpc) -> None:
    await caller.call("submit_task", type="a")
    frames = follow(caller)
    async with asyncio.timeout(20):
        while (frame := await frames.read()).kind != "tick" or not frame.tick.counts:
            pass
    assert dict(frame.tick.counts) == {"ready": 1}
    frames.cancel()


async def test_facts_of_another_namespace_are_not_told(api: Api) -> None:
    here, there = await api.as_role("admin", HOME), await api.as_role("admin", OTHER)
    frames = follow(here, topics=["task"])
    await frames.read()
    await there.call("submit_task", type="a", id="theirs")
    await here.call("submit_task", type="a", id="mine")
    async with asyncio.timeout(20):
        while not (frame := await frames.read()).events:
            pass
    assert [event.id for event in frame.events] == ["mine"]
    frames.cancel()


async def test_a_topic_that_is_not_known_is_refused(caller: Grpc) -> None:
    frames = follow(caller, topics=["weather"])
    assert await frames.code() is grpc.StatusCode.INVALID_ARGUMENT
    assert "weather" in await frames.details()


async def revoke_viewer(admin: Grpc) -> float:
    (mine,) = [each for each in (await admin.call("list_tokens")).items if each.role == "viewer"]
    await admin.call("revoke_token", id=mine.id)
    return time.monotonic()


async def test_a_stream_ends_soon_after_its_token_is_revoked(api: Api) -> None:
    admin, viewer = await api.as_role("admin"), await api.as_role("viewer")
    frames = follow(viewer)
    assert (await frames.read()).kind == "open"
    revoked = await revoke_viewer(admin)
    assert await ending(frames) == "UNAUTHENTICATED"
    assert time.monotonic() - revoked < 5.0


async def test_so_does_that_of_a_client_which_does_not_read(api: Api) -> None:
    admin = await api.as_role("admin")
    options = [("grpc.http2.bdp_probe", 0), ("grpc.http2.lookahead_bytes", 1024)]
    viewer = await api.with_token(await api.server.token("viewer"), options=options)
    for _ in range(3):  # more than a client takes that does not read
        await api.server.app.submit_many("a" * 100, list(range(1000)), delay=3600)
    frames = follow(viewer, after=0)
    assert (await frames.read()).kind == "open"
    revoked = await revoke_viewer(admin)
    await wait_until(lambda: not api.plane._streams)
    assert time.monotonic() - revoked < 5.0
    frames.cancel()


async def test_streams_end_when_the_server_stops(api: Api, caller: Grpc) -> None:
    frames = [follow(caller) for _ in range(5)]
    for each in frames:
        assert (await each.read()).kind == "open"
    began = time.monotonic()
    await api.served.stop()
    assert time.monotonic() - began < 1.0
    for each in frames:
        assert await ending(each) == "UNAVAILABLE"
    assert api.plane._streams == {}


async def test_one_who_leaves_is_forgotten(api: Api, caller: Grpc) -> None:
    frames = follow(caller)
    await frames.read()
    assert api.plane._streams
    frames.cancel()
    await wait_until(lambda: not api.plane._streams)


async def test_there_are_not_too_many(api: Api, caller: Grpc, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plane, "STREAMS_OF_ONE", 2)
    frames = [follow(caller) for _ in range(2)]
    for each in frames:
        await each.read()
    third = follow(caller)
    assert await third.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
    for each in frames:
        each.cancel()


async def test_many_facts_come_in_messages_that_every_client_takes(api: Api, caller: Grpc) -> None:
    for _ in range(3):
        await api.server.app.submit_many("a", list(range(900)), delay=3600)
    frames = follow(caller, after=0, topics=["task"])
    counts: list[int] = []
    async with asyncio.timeout(30):
        while sum(counts) < 2700:
            frame = await frames.read()
            counts += [len(frame.events)] if frame.kind == "events" else []
    assert max(counts) <= EVENTS_MAX
    assert frame.HasField("seq")
    frames.cancel()


def test_only_the_last_part_says_where_to_go_on() -> None:
    rows: list[Any] = list(range(2 * EVENTS_MAX + 1))
    found = event_frames(Frame("events", rows, 77))
    assert [len(each.events) for each in found] == [EVENTS_MAX, EVENTS_MAX, 1]
    assert [each.seq for each in found] == [None, None, 77]
