"""Progress and log lines on their way to a store that fails, or that has given the task to another."""

from __future__ import annotations

import asyncio
from typing import cast

import pytest

from tests.support.waiting import wait_until
from tickwork.errors import StoreError, StoreFull, StoreUnavailable
from tickwork.handlers.context import TaskContext
from tickwork.model.outcomes import Succeeded
from tickwork.model.tasks import Lease, Spec
from tickwork.observe.loggers import Log
from tickwork.store.contract import Grant, Store
from tickwork.store.memory import MemoryStore
from tickwork.worker import notes
from tickwork.worker.run import Run

Words = tuple[float | None, str, list[str]]


class Answering:
    """A store that answers each note with the next of its answers, and with True when there are no more."""

    def __init__(self, *answers: bool | StoreError) -> None:
        self.tasks = self
        self.capabilities = MemoryStore().capabilities
        self.answers = list(answers)
        self.asked = 0
        self.kept: list[Words] = []

    async def note(self, lease: Lease, value: float | None, text: str, lines: list[str]) -> bool:
        self.asked += 1
        answer = self.answers.pop(0) if self.answers else True
        if isinstance(answer, StoreError):
            raise answer
        if answer:
            self.kept.append((value, text, lines))
        return answer


class Desk:
    def __init__(self, store: Answering) -> None:
        self.store = store
        self.lost: list[Run] = []
        self.notes = notes.Notes(cast("Store", store), self.lost.append, Log.of(None, "worker"))
        self.notes.begin(asyncio.get_running_loop())
        self.run = run = Run(Grant(Spec(id="it", type="job", nonce=""), Lease("it", 1, "n"), 1, 0, 0), True)
        self.context = run.context = TaskContext(
            task_id="it", type="job", attempt=1, fence=1, timeout=0, tags={}, context={},
            wake=lambda: self.notes.later(run),
        )  # fmt: skip

    async def asked(self, times: int) -> None:
        await wait_until(lambda: self.store.asked >= times, what=f"{times} notes")


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(notes, "INTERVAL", 0.0)


async def test_what_could_not_be_written_in_an_outage_is_written_after_it() -> None:
    desk = Desk(Answering(StoreUnavailable("away")))
    desk.context.progress(0.2, "begun")
    desk.context.logger.info("one")
    await desk.asked(2)
    ((value, text, lines),) = desk.store.kept
    assert (value, text) == (0.2, "begun")
    assert [line.split()[-1] for line in lines] == ["one"]


async def test_newer_progress_is_not_overwritten_by_what_could_not_be_written() -> None:
    desk = Desk(Answering())
    taken = desk.context._notes
    taken.progress(0.2, "old")
    words = taken.take()
    taken.progress(0.4, "new")
    taken.put_back(*words)
    await desk.asked(1)
    assert desk.store.kept == [(0.4, "new", [])]


async def test_a_note_that_is_refused_tells_the_worker_that_the_lease_is_lost() -> None:
    desk = Desk(Answering(False))
    desk.context.progress(0.5)
    await wait_until(lambda: desk.lost, what="the loss is told")
    assert desk.lost == [desk.run]


async def test_progress_that_the_store_cannot_take_is_given_up(caplog: pytest.LogCaptureFixture) -> None:
    desk = Desk(Answering(StoreError("too long")))
    desk.context.progress(0.5)
    await wait_until(lambda: caplog.messages, what="the warning")
    assert caplog.messages == ["task it: progress could not be written: too long"]
    desk.context.progress(0.6)
    await desk.asked(2)
    assert desk.store.kept == [(0.6, "", [])]


async def test_of_a_run_that_has_ended_only_its_outcome_takes_the_write_last() -> None:
    desk = Desk(Answering())
    desk.context.progress(1.0, "done")
    desk.run.ended = True
    await wait_until(lambda: desk.notes._task is not None and desk.notes._task.done(), what="its timer has gone off")
    assert desk.store.asked == 0
    await desk.notes.write_last([Succeeded(Lease("another", 1, "n"))])
    assert desk.store.asked == 0
    await desk.notes.write_last([Succeeded(desk.run.grant.lease)])
    assert desk.store.kept == [(1.0, "done", [])]
    await desk.notes.write_last([Succeeded(desk.run.grant.lease)])
    assert desk.store.asked == 1


async def test_in_an_outage_write_last_wait_with_their_outcome() -> None:
    desk = Desk(Answering(StoreUnavailable("away")))
    desk.context.progress(1.0, "done")
    desk.run.ended = True
    with pytest.raises(StoreUnavailable):
        await desk.notes.write_last([Succeeded(desk.run.grant.lease)])
    await desk.notes.write_last([Succeeded(desk.run.grant.lease)])
    assert desk.store.kept == [(1.0, "done", [])]


@pytest.mark.parametrize("error", [StoreFull("no room"), StoreError("too long")])
async def test_an_outcome_does_not_wait_for_write_last_that_cannot_be_written(
    error: StoreError, caplog: pytest.LogCaptureFixture
) -> None:
    desk = Desk(Answering(error))
    desk.context.progress(1.0, "done")
    desk.run.ended = True
    await desk.notes.write_last([Succeeded(desk.run.grant.lease)])
    assert caplog.messages == [f"task it: its last notes could not be written: {error}"]
