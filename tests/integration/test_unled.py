"""Nodes that only work, and none that leads: what goes on, and who says what does not."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import pytest

from tests.integration.apps import Gate, Make, eventually, status_of, store_of
from tickwork import Scheduler, Status
from tickwork.client import checkup
from tickwork.node import unled


@pytest.fixture
def app(make: Make, url: str) -> Scheduler:
    app = make(url)

    @app.task
    async def step(name: str) -> str:
        return name

    @app.task(max_retry=0)
    async def bad() -> None:
        raise ValueError("no")

    return app


async def test_dependants_are_told_though_nobody_leads(app: Scheduler) -> None:
    await app.start(lead=False)
    first = await app.submit("step", "first")
    chain = [first]
    for number in range(3):
        chain.append(await app.submit("step", str(number), depends_on=[chain[-1]]))
    assert await chain[-1].result(20) == "2"
    fails = await app.submit("bad")
    follows = await app.submit("step", "never", depends_on=[fails])
    await eventually(lambda: _is(app, follows.id, Status.CANCELLED))
    assert (await app.status()).leader_id is None


async def _is(app: Scheduler, task_id: str, status: Status) -> bool:
    return await status_of(app, task_id) is status


async def test_what_ended_while_no_node_was_up_is_told_by_the_next(app: Scheduler) -> None:
    first = await app.submit("step", "first")
    second = await app.submit("step", "second", depends_on=[first])
    await app.cancel(first.id)
    assert (await app.explain(second.id)).text == (
        f"It waits for {first.id}. {first.id} has ended, but no node is up that would tell it so."
    )
    await app.start(lead=False)
    await eventually(lambda: _is(app, second.id, Status.CANCELLED))


async def test_a_dependant_that_is_told_in_a_moment(app: Scheduler, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unled, "SPREAD", 3600.0)
    gate = Gate()

    @app.task
    async def held() -> None:
        await gate.pass_through()

    await app.start(lead=False)
    first = await app.submit("held")
    second = await app.submit("step", "second", depends_on=[first])
    gate.open()
    await first.result(10)
    assert (await app.explain(second.id)).text == (
        f"It waits for {first.id}. {first.id} has ended, and it will be told so in a moment."
    )


async def test_a_node_that_stands_in_asks_nothing_while_another_leads(make: Make, file_url: str) -> None:
    leading, working = make(file_url), make(file_url)
    calls: list[int] = []
    store = await store_of(working)
    outbox = store.tasks.outbox

    async def counted(limit: int) -> Any:
        calls.append(limit)
        return await outbox(limit)

    @leading.task
    async def step() -> None: ...

    async with leading:
        await eventually(lambda: leading._node and leading._node.candidate.leads)
        store.tasks.outbox = counted  # type: ignore[method-assign]
        await working.start(lead=False)
        for _ in range(5):
            first = await leading.submit("step")
            await (await leading.submit("step", depends_on=[first])).result(10)
        assert calls == []
    # Nobody leads any more: as soon as the beat says so, it stands in.
    await eventually(lambda: calls)


async def test_a_minute_without_a_leader_is_told_once(
    make: Make, url: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(unled, "WARN_AFTER", 0.5)
    monkeypatch.setattr(unled, "SPREAD", 0.0)
    app = make(url, renew_interval=0.1)
    with caplog.at_level(logging.WARNING, "tickwork"):
        await app.start(lead=False)
        await eventually(lambda: "no node has led" in caplog.text)
        assert "tickwork up --role scheduler" in caplog.text
        store = await store_of(app)
        await store.members.campaign("other#1", 60_000)
        await eventually(lambda: "node other leads now" in caplog.text)
        await asyncio.sleep(0.5)  # time for more lines, which must not come
    assert caplog.text.count("no node has led") == 1


async def test_a_client_sees_who_leads(make: Make, file_url: str) -> None:
    client, app = make(file_url), make(file_url, scheduler_id="chief")
    assert (await client.status()).leader_id is None
    async with app:
        await eventually(lambda: app._node and app._node.candidate.leads)
        status = await client.status()
        assert (status.leader_id, status.is_leader, status.running) == ("chief", False, False)


async def test_the_doctor_says_that_nobody_leads(make: Make, file_url: str) -> None:
    client, app = make(file_url), make(file_url)
    await app.start(lead=False)
    found = list(checkup.check_patient(await checkup.examine(client)))
    assert [finding.text for finding in found if finding.level == "problem"] == [
        "no node leads: schedules do not run, and ended tasks are not removed"
    ]
    await app.shutdown()
    async with app:
        await eventually(lambda: app._node and app._node.candidate.leads)
        found = list(checkup.check_patient(await checkup.examine(client)))
        assert [finding for finding in found if finding.level == "problem"] == []
