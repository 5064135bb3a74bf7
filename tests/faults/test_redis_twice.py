"""Calls whose reply is lost are sent again: what they do is done once, and they are answered as the first time."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from typing import NamedTuple

import pytest

from tests.support.redis import Proxy, RedisServer
from tickwork.ids import new_nonce
from tickwork.model.outcomes import Aborted, Succeeded
from tickwork.model.policy import Policy
from tickwork.model.schedules import Schedule
from tickwork.model.tasks import Lease, Spec, Status
from tickwork.store.contract import Advance, Claim, Retried
from tickwork.store.redis import RedisStore
from tickwork.store.redis.net.target import parse
from tickwork.store.redis.scripts import compose
from tickwork.testing.contract.bench import edges_of


class Line(NamedTuple):
    """A caller's store behind a proxy that loses replies, and another on the same server that hears all."""

    bad: RedisStore
    good: RedisStore
    proxy: Proxy

    @contextmanager
    def losing(self, script: str) -> Iterator[None]:
        """The reply to the next call of a script is lost."""
        self.proxy.cut_replies(1, after=compose(script, self.bad.core.server.modern).sha.encode())
        yield
        assert self.proxy.cuts_left == 0, f"no reply of {script} was lost"

    async def run(self, task_id: str = "it") -> Lease:
        claim = Claim("w", ("default",), frozenset({"job"}), 1, 60_000, new_nonce())
        (grant,) = (await self.good.tasks.claim(claim)).grants
        assert grant.spec.id == task_id
        return grant.lease

    async def end(self, dead: bool = False) -> None:
        lease = await self.run()
        await self.good.tasks.finish([Aborted(lease, "boom") if dead else Succeeded(lease)])

    async def submit(self, **fields: int) -> None:
        await self.good.tasks.submit([Spec(id="it", type="job", nonce=new_nonce(), delay=fields.get("delay", 0))])

    async def facts(self, kind: str) -> int:
        events, _ = await self.good.log.read(0, 1000)
        return sum(event.kind == kind for event in events)

    async def load_scripts(self, *names: str) -> None:
        """A server that does not know a script is sent its text, in which the proxy would not find its digest."""
        for name in names:
            await self.good.core.ask(
                self.good.core.layout.root, "SCRIPT", "LOAD", compose(name, self.good.core.server.modern).text
            )


@pytest.fixture
async def line() -> AsyncIterator[Line]:
    with RedisServer() as server, Proxy(server.port) as proxy:
        good = RedisStore(parse(server.url), "test", Policy())
        bad = RedisStore(parse(f"redis://{proxy.host}:{proxy.port}/0"), "test", Policy())
        await good.open()
        await bad.open()
        line = Line(bad, good, proxy)
        await line.load_scripts("retry", "delete", "lock", "pause", "note", "run_now", "fire", "cancel", "resolve")
        yield line
        assert await good.queries.audit() == []
        await good.close()
        await bad.close()


@pytest.mark.parametrize("dead", [False, True], ids=["success", "dead"])
async def test_a_retry_runs_a_task_once(line: Line, dead: bool) -> None:
    await line.submit()
    await line.end(dead)
    found = Status.DEAD if dead else Status.SUCCESS
    with line.losing("retry"):
        assert await line.bad.operators.retry(["it"], found) == [Retried(found)]
    assert await line.facts("task.retried") == 1
    await line.end()


async def test_a_retry_that_comes_again_after_the_next_end_leaves_it(line: Line) -> None:
    """The first one may have run whole until the second one arrives."""
    await line.submit()
    await line.end()
    record = await line.good.queries.get("it")
    assert record is not None
    root = line.good.core.layout.root
    for _ in range(2):
        assert await line.good.operators._retry(root, [(record, ())], None) == [Retried(Status.SUCCESS)]
        if await line.facts("task.succeeded") == 1:
            await line.end()
    assert (await line.facts("task.retried"), await line.facts("task.succeeded")) == (1, 2)


async def test_a_delete_is_answered_by_what_was_there(line: Line) -> None:
    await line.submit()
    await line.end()
    with line.losing("delete"):
        assert await line.bad.operators.delete(["it"]) == [Status.SUCCESS]
    assert await line.good.queries.get("it") is None
    assert await line.bad.operators.delete(["it"]) == [None]
    assert await line.facts("task.deleted") == 1


async def test_a_delete_that_comes_again_leaves_the_next_task_of_that_id(line: Line) -> None:
    await line.submit()
    await line.end()
    root = line.good.core.layout.root
    ((_, mark),) = await line.good.operators._states(root, ["it"])
    await line.good.operators.delete(["it"])
    await line.submit()
    await line.end()
    assert await line.good.core.run("delete", root, "it", mark) == [b"s"]
    assert await line.good.queries.get("it") is not None


async def test_a_delayed_task_is_run_now_once(line: Line) -> None:
    await line.submit(delay=3_600_000)
    with line.losing("run_now"):
        assert await line.bad.operators.run_now(["it"]) == [Status.PENDING]
    assert await line.facts("task.hastened") == 1
    await line.end()


COUNT = 120  # more than one script takes


@pytest.mark.parametrize("verb", ["run_now", "reschedule", "cancel", "retry", "delete"])
async def test_many_are_steered_once(line: Line, verb: str) -> None:
    """One of several scripts of a call is sent again."""
    ids = [f"t{number}" for number in range(COUNT)]
    await line.good.tasks.submit([Spec(id=each, type="job", nonce=new_nonce(), delay=3_600_000) for each in ids])
    if verb in ("retry", "delete"):
        await line.good.operators.cancel(ids, False)
    operators = line.bad.operators
    with line.losing(verb):
        if verb == "retry":
            assert set(await operators.retry(ids)) == {Retried(Status.CANCELLED)}
        elif verb == "cancel":
            found = await operators.cancel(ids, False)
            assert found.count(Status.PENDING) + found.count(Status.CANCELLED) == COUNT
        elif verb == "reschedule":
            assert set(await operators.reschedule(ids, line.good.now() + 60_000)) == {Status.PENDING}
        else:
            steer, found_as = (operators.run_now, Status.PENDING) if verb == "run_now" else (
                operators.delete, Status.CANCELLED,
            )  # fmt: skip
            assert set(await steer(ids)) == {found_as}
    kinds = {
        "run_now": "hastened", "reschedule": "rescheduled", "cancel": "cancelled", "retry": "retried",
        "delete": "deleted",
    }  # fmt: skip
    assert await line.facts(f"task.{kinds[verb]}") == COUNT


async def test_many_dependants_are_told_once(line: Line) -> None:
    await line.submit()
    names = [f"d{number}" for number in range(COUNT)]
    await line.good.tasks.submit([Spec(id=each, type="job", nonce="n", depends_on=("it",)) for each in names])
    await line.end()
    (entry,) = await line.good.tasks.outbox(10)
    with line.losing("resolve"):
        await line.bad.tasks.resolve(edges_of(entry))
    assert await line.facts("task.resolved") == COUNT
    assert (await line.good.queries.stats()).statuses[Status.READY] == COUNT
    await line.good.tasks.clear_outbox([entry])
    assert await line.good.tasks.outbox(10) == []


async def test_a_lock_is_given_back_by_its_owner(line: Line) -> None:
    assert await line.bad.locks.acquire("it", "me", 60_000) is not None
    with line.losing("lock"):
        assert await line.bad.locks.release("it", "me") is True
    assert await line.good.locks.acquire("it", "other", 60_000) is not None
    assert await line.bad.locks.release("it", "me") is False


async def test_a_schedule_is_fired_once(line: Line) -> None:
    task = Spec(id="", type="job", nonce="")
    await line.good.schedules.put(Schedule(id="s", cron="* * * * *", task=task, next_at=1))
    tick = Spec(id="s@1", type="job", nonce="tick", schedule_id="s", scheduled_at=1)
    with line.losing("fire"):
        assert await line.bad.schedules.advance("s", 1, Advance(2), (tick,)) == Advance(2, "s@1", 1)
    assert (await line.facts("task.submitted"), await line.facts("schedule.fired")) == (1, 1)


@pytest.mark.parametrize("kind", ["queue", "type"])
async def test_what_was_paused_is_resumed(line: Line, kind: str) -> None:
    assert kind in ("queue", "type")
    await line.good.operators.pause(kind, "it")  # type: ignore[arg-type]  # see above
    with line.losing("pause"):
        assert await line.bad.operators.resume(kind, "it") is True  # type: ignore[arg-type]
    assert await line.bad.operators.resume(kind, "it") is False  # type: ignore[arg-type]
    assert await line.facts(f"{kind}.resumed") == 1


async def test_log_lines_are_written_once(line: Line) -> None:
    await line.submit()
    lease = await line.run()
    with line.losing("note"):
        assert await line.bad.tasks.note(lease, 0.5, "half", ["a", "b"]) is True
    assert await line.bad.tasks.note(lease, None, "", ["a", "b"]) is True, (
        "the same lines may be written again on purpose"
    )
    record = await line.good.queries.get("it")
    assert record is not None
    assert record.progress == 0.5
    assert (await line.good.queries.history("it")).lines == ["a", "b", "a", "b"]
