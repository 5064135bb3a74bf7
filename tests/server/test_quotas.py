"""How much of a namespace may be used through the API: what is counted, and when."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tests.server.serving import Client, serving
from tickwork.server import quotas, spaces
from tickwork.server.plane import ControlPlane
from tickwork.server.problems import Refused


async def submit(caller: Client, *tasks: dict[str, Any]) -> int:
    return (await caller.post("/tasks/batch", {"tasks": [{"type": "a", **each} for each in tasks]})).status_code


@pytest.fixture(autouse=True)
def _old_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Numbers of the store are read once, so that what comes after is not among them."""
    monkeypatch.setattr(spaces.Cached.__init__, "__defaults__", (3600.0,))


async def test_batches_in_a_row_are_counted_before_the_store_is_read_again(url: str) -> None:
    async with serving(url, server_quota={"waiting": 5}) as server:
        caller = await server.as_role("submitter")
        assert [await submit(caller, *[{}] * 3) for _ in range(2)] == [200, 429]
        assert await submit(caller, {}, {}) == 200
        assert await submit(caller, {}) == 429


async def test_so_are_batches_at_once(url: str) -> None:
    async with serving(url, server_quota={"waiting": 5}) as server:
        caller = await server.as_role("submitter")
        found = await asyncio.gather(*(submit(caller, {}, {}) for _ in range(10)))
        assert sorted(found) == [200, 200, *[429] * 8]


async def test_what_was_read_anew_is_not_counted_twice(url: str) -> None:
    async with serving(url, server_quota={"waiting": 5}) as server:
        caller = await server.as_role("submitter")
        assert await submit(caller, *[{}] * 3) == 200
        server.plane.home.forget()
        assert await submit(caller, {}, {}) == 200
        server.plane.home.forget()
        assert await submit(caller, {}) == 429


async def test_queues_of_delayed_tasks_are_counted(url: str) -> None:
    async with serving(url, server_quota={"queues": 2}) as server:
        caller = await server.as_role("submitter")
        for queue, status in (("q1", 200), ("q2", 200), ("q3", 429), ("q1", 200)):
            assert await submit(caller, {"queue": queue, "delay": 3600}) == status, queue
            server.plane.home.forget()


async def test_a_name_that_nobody_has_submitted_for_a_day_is_forgotten(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with serving(url, server_quota={"types": 1}) as server:
        caller = await server.as_role("submitter")
        assert await submit(caller, {"type": "a"}) == 200
        assert await submit(caller, {"type": "b"}) == 429
        monkeypatch.setattr(quotas, "REMEMBERED", 0.0)
        assert await submit(caller, {"type": "b"}) == 200


async def test_names_of_tasks_that_were_refused_use_up_nothing(url: str) -> None:
    async with serving(url, server_quota={"types": 1, "queues": 1}) as server:
        caller = await server.as_role("submitter")
        bad = {"type": "bad", "queue": "other", "delay": 1, "schedule_at": "2030-01-01T00:00:00Z"}
        assert (await caller.post("/tasks", bad)).status_code == 400
        answer = await caller.post("/tasks/batch", {"tasks": [bad]})
        assert answer.json()["refused"] == 1
        assert await submit(caller, {"type": "a"}) == 200


async def test_over_the_api_too(url: str) -> None:
    async with serving(url, server_quota={"pauses": 1}) as server:
        operator = await server.as_role("operator")
        for kind, other in (("queues", "types"), ("types", "queues")):
            assert (await operator.post(f"/{kind}/a/pause", {"note": "one"})).status_code == 200
            assert (await operator.post(f"/{kind}/a/pause", {"note": "two"})).status_code == 200
            assert (await operator.post(f"/{other}/a/pause", {})).status_code == 429
            await operator.do("POST", f"/{kind}/a/resume")


async def test_what_is_paused_already_may_be_paused_again(url: str) -> None:
    async with serving(url, server_quota={"pauses": 1}) as server:
        plane: ControlPlane = server.plane
        await server.app.queues.pause("post", "one")
        await plane.quotas.check_pauses(plane.home, "queue", "post")
        for kind, name in (("queue", "other"), ("type", "post")):
            with pytest.raises(Refused, match="1 pauses already"):
                await plane.quotas.check_pauses(plane.home, kind, name)
