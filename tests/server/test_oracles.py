"""Whoever may not see a value may not find it out by asking whether it is there."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

from tests.server.serving import Client, Server, serving
from tests.server.streaming import following
from tickwork.server.masking import MASKED

SECRET, WRONG = "canary77", "canary78"
KEY = f"cust-{SECRET}"


@pytest.fixture
async def masked(url: str) -> AsyncIterator[Server]:
    """A task whose key and tags repeat what is hidden in its payload, and one that hides nothing."""
    async with serving(url, server_mask=("password", "*_token")) as server:
        tags = {"note": SECRET, "team": "post"}
        await server.app.submit("mail", {"password": SECRET}, id="secret", key=KEY, tags=tags)
        named = {SECRET: "yes"}  # the name of a tag may repeat it as well
        await server.app.submit("sms", {"password": SECRET}, id="named", tags=named)
        await server.app.submit("mail", {"to": "ada"}, id="plain", key="acme", tags={"note": "hello"})
        yield server


async def found(client: Client, q: str) -> dict[str, Any]:
    page = await client.read("/tasks", q=q)
    return {**page, "items": [each["id"] for each in page["items"]]}


@pytest.mark.parametrize("q", ["key:cust-{}", "tag.note:{}", "status:ready key:cust-{}", "id:secret key:cust-{}"])
async def test_a_right_guess_is_answered_as_a_wrong_one(q: str, masked: Server) -> None:
    """In all of the answer, as how many tasks were looked at tells as much as a task."""
    viewer, operator = await masked.as_role("viewer"), await masked.as_role("operator")
    for form in (q, f"type:mail {q}"):
        right = await found(viewer, form.format(SECRET))
        assert right == await found(viewer, form.format(WRONG))
        assert right["items"] == []
        assert (await found(operator, form.format(SECRET)))["items"] == ["secret"]
    exported = [(await viewer.get("/tasks/export", q=q.format(each))).text for each in (SECRET, WRONG)]
    assert exported[0] == exported[1]


@pytest.mark.parametrize("q", ["-key:cust-{}", "-tag.note:{}"])
async def test_nor_is_it_left_out_by_a_right_guess(q: str, masked: Server) -> None:
    viewer = await masked.as_role("viewer")
    right, wrong = [await found(viewer, f"type:mail {q.format(each)}") for each in (SECRET, WRONG)]
    assert right == wrong
    assert sorted(right["items"]) == ["plain", "secret"]


async def test_nor_is_a_tag_found_by_a_name_that_is_hidden(masked: Server) -> None:
    viewer, operator = await masked.as_role("viewer"), await masked.as_role("operator")
    assert await found(viewer, f"tag.{SECRET}:yes") == await found(viewer, f"tag.{WRONG}:yes")
    assert (await found(operator, f"tag.{SECRET}:yes"))["items"] == ["named"]


async def test_what_a_viewer_sees_is_found(masked: Server) -> None:
    viewer = await masked.as_role("viewer")
    assert (await found(viewer, "key:acme"))["items"] == ["plain"]
    assert (await found(viewer, "key:acme,other status:ready"))["items"] == ["plain"]
    assert (await found(viewer, "tag.note:hello"))["items"] == ["plain"]
    assert (await found(viewer, "tag.team:post"))["items"] == ["secret"]
    assert (await found(viewer, "type:mail -key:acme"))["items"] == ["secret"]


@pytest.mark.parametrize("of", ["key:cust-{}", "tag:note={}"])
async def test_a_switch_is_not_found_by_what_it_is_of(of: str, masked: Server) -> None:
    viewer, operator = await masked.as_role("viewer"), await masked.as_role("operator")
    await masked.app.switches.off(of.format(SECRET))
    for kind in ("switch", "switch.off"):
        right, wrong = [await viewer.read("/events", kind=kind, id=of.format(each)) for each in (SECRET, WRONG)]
        assert right == wrong
        assert right["items"] == []
    assert len((await operator.read("/events", kind="switch", id=of.format(SECRET)))["items"]) == 1
    shown = [each["id"] for each in (await viewer.read("/events", kind="switch"))["items"]]
    assert [each["of"] for each in await viewer.read("/switches")] == shown
    assert shown[0].endswith(MASKED)


async def test_a_stream_of_one_task_tells_of_no_switch(masked: Server) -> None:
    viewer = await masked.as_role("viewer")
    last = (await viewer.read("/events"))["last"]
    await masked.app.switches.off(f"key:{KEY}")
    async with following(viewer, task=f"key:{KEY}", after=last) as stream:
        await stream.frame("tick")
        await stream.frame("tick")
    assert [frame.kind for frame in stream.all if frame.kind == "events"] == []


class TestViews:
    FILTERS = (
        f"tag.api_token:{SECRET}", f"key:{KEY}", f"-tag.note:{SECRET}", f"error:{SECRET}", f"status:dead -key:{KEY}"
    )  # fmt: skip

    async def test_those_that_name_values_of_tasks_are_for_those_who_see_them(self, masked: Server) -> None:
        viewer, operator = await masked.as_role("viewer"), await masked.as_role("operator")
        for number, text in enumerate((*self.FILTERS, "status:dead type:mail")):
            await operator.do("PUT", f"/views/view{number}", {"filter": text})
        assert [each["filter"] for each in await viewer.read("/views")] == ["status:dead type:mail"]
        assert len(await operator.read("/views")) == len(self.FILTERS) + 1

    async def test_without_a_mask_all_are_for_all(self, server: Server) -> None:
        viewer, operator = await server.as_role("viewer"), await server.as_role("operator")
        await operator.do("PUT", "/views/mine", {"filter": f"key:{KEY}"})
        assert [each["filter"] for each in await viewer.read("/views")] == [f"key:{KEY}"]
