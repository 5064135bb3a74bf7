"""A heart whose store answers its beats with errors."""

from __future__ import annotations

import asyncio
import time
from typing import cast

import pytest

from tickwork.errors import StoreError
from tickwork.model.members import Worker as Member
from tickwork.model.policy import Policy
from tickwork.model.tasks import Lease
from tickwork.node.heart import Heart
from tickwork.observe.loggers import Log
from tickwork.store.contract import Heard
from tickwork.store.memory import MemoryStore
from tickwork.timeouts import TimeLimit
from tickwork.worker.worker import Worker


class Holder:
    """As much of a worker as a heart looks at."""

    id = "w"
    running: tuple[str, ...] = ("it",)

    def leases(self) -> list[Lease]:
        return [Lease("it", 1, "n")]

    def inside(self) -> list[tuple[str, tuple[str, ...]]]:
        return []


async def test_renewals_that_are_refused_are_told_of_now_and_then(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    store = MemoryStore(Policy())

    async def refused(leases: list[Lease], ttl: int) -> list[str]:
        raise StoreError("a wrong answer")

    monkeypatch.setattr(store.tasks, "extend", refused)
    worker = cast("Worker", Holder())
    heart = Heart(store, [worker], lambda worker: Member(id="w"), 30, 10, Log.of(None, "heart"), lambda rival: None)
    assert [await heart._beat() for _ in range(3)] == [False] * 3
    assert caplog.messages == ["leases could not be renewed, trying again: a wrong answer"]


async def test_a_worker_that_is_killed_during_a_heartbeat_is_no_member_when_its_leases_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Or its loss would count as an interrupted connection, and a task that kills its workers would never be found."""
    store, calls = MemoryStore(Policy()), list[tuple[str, int]]()

    async def extend(leases: list[Lease], ttl: int) -> list[str]:
        calls.append(("leases", ttl))
        return ["held"] * len(leases)

    async def beat(member: Member, ttl: int) -> Heard:
        calls.append(("member", ttl))
        return Heard(None)

    monkeypatch.setattr(store.tasks, "extend", extend)
    monkeypatch.setattr(store.members, "beat", beat)
    worker = cast("Worker", Holder())
    heart = Heart(store, [worker], lambda worker: Member(id="w"), 30, 10, Log.of(None, "heart"), lambda rival: None)
    assert await heart._beat()
    (first, lease), (second, membership) = calls
    assert (first, lease, second) == ("leases", 30_000, "member")
    assert membership <= 28_500


@pytest.mark.parametrize("renewed", [True, False])
async def test_runs_whose_leases_were_renewed_go_on_though_the_heartbeat_is_not_answered(
    monkeypatch: pytest.MonkeyPatch, renewed: bool
) -> None:
    store, silent, cut_off = MemoryStore(Policy()), asyncio.Event(), list[str]()

    async def extend(leases: list[Lease], ttl: int) -> list[str]:
        if not renewed:
            await silent.wait()
        return ["held"] * len(leases)

    async def beat(member: Member, ttl: int) -> Heard:
        await silent.wait()
        return Heard(None)

    monkeypatch.setattr(store.tasks, "extend", extend)
    monkeypatch.setattr(store.members, "beat", beat)
    holder = Holder()
    holder.cut_off = lambda: cut_off.append("all")  # type: ignore[attr-defined]
    worker = cast("Worker", holder)
    heart = Heart(store, [worker], lambda worker: Member(id="w"), 30, 10, Log.of(None, "heart"), lambda rival: None)
    heart._renewed_at = time.monotonic() - 28.95  # the last renewal is trusted for another twentieth of a second
    monkeypatch.setattr("tickwork.node.heart.TimeLimit", lambda seconds: TimeLimit(seconds / 10))
    began = time.monotonic()
    assert not await heart._beat()
    await asyncio.sleep(0)
    assert cut_off == ([] if renewed else ["all"])
    assert heart._renewed_at >= began
