"""Tasks that wait for other tasks."""

from __future__ import annotations

import asyncio

import pytest

from tests.integration.apps import Child, Gate, Make, eventually, facts, status_of
from tickwork import DuplicateTask, FixedDelay, Handle, NotRetryable, Scheduler, Status, TaskCancelled, TaskNotFound
from tickwork.node import unled
from tickwork.testing import ManualClock, drain, wait_for


@pytest.fixture
def order(app: Scheduler) -> list[str]:
    """What ran, in order. `bad` fails for good."""
    ran: list[str] = []

    @app.task
    async def step(name: str) -> str:
        ran.append(name)
        return name

    @app.task(max_retry=0)
    async def bad(name: str) -> None:
        ran.append(name)
        raise ValueError("no")

    return ran


async def test_a_chain_runs_in_order(app: Scheduler, order: list[str]) -> None:
    previous: list[Handle[str]] = []
    for number in range(8):
        previous = [await app.submit("step", str(number), depends_on=previous)]
    assert (await previous[0].info()).status is Status.BLOCKED
    async with app:
        assert await previous[0].result(10) == "7"
    assert order == [str(number) for number in range(8)]
    story = await facts(app, previous[0].id)
    assert story == ["task.submitted", "task.resolved", "task.claimed", "task.succeeded"]


async def test_each_step_of_a_chain_starts_without_waiting_for_a_scan(make: Make, url: str) -> None:
    app = make(url, scan_interval=600)

    @app.task
    async def step(number: int) -> int:
        return number

    async with app:
        previous: list[Handle[int]] = []
        for number in range(30):
            previous = [await app.submit("step", number, depends_on=previous)]
        assert await previous[0].result(300) == 29


async def test_fan_out_and_fan_in(app: Scheduler, order: list[str]) -> None:
    async with app:
        root = await app.submit("step", "root")
        leaves = [await app.submit("step", f"leaf {n}", depends_on=[root]) for n in range(20)]
        last = await app.submit("step", "last", depends_on=[leaf.id for leaf in leaves])
        assert set((await last.info()).depends_on) == {leaf.id for leaf in leaves}
        await last.result(10)
    assert order[0] == "root"
    assert order[-1] == "last"
    assert sorted(order[1:-1]) == sorted(f"leaf {n}" for n in range(20))


async def test_fan_in_waits_for_the_last_one(app: Scheduler, order: list[str]) -> None:
    gate = Gate()

    @app.task
    async def slow() -> None:
        await gate.pass_through()

    async with app:
        quick, held = await app.submit("step", "quick"), await slow.submit()
        joined = await app.submit("step", "joined", depends_on=[quick, held])
        await quick.result(10)
        await eventually(lambda: _waits_for(app, joined.id, held.id), what="the first one was crossed off")
        assert (await app.explain(joined.id)).text == f"It waits for {held.id}."
        gate.open()
        await joined.result(10)
    assert order == ["quick", "joined"]


async def _waits_for(app: Scheduler, task_id: str, upstream: str) -> bool:
    return (await app.get_task(task_id)).waiting_for == (upstream,)


async def test_a_failure_cancels_all_that_follows(app: Scheduler, order: list[str]) -> None:
    async with app:
        bad = await app.submit("bad", "bad")
        child = await app.submit("step", "child", depends_on=[bad])
        grandchild = await app.submit("step", "grandchild", depends_on=[child])
        with pytest.raises(TaskCancelled, match=f"task {bad.id}, on which it depends, did not succeed"):
            await child.result(10)
        with pytest.raises(TaskCancelled, match=f"task {child.id}, on which it depends, did not succeed"):
            await grandchild.result(10)
        assert (await app.explain(child.id)).text == (
            f"It has ended: cancelled (task {bad.id}, on which it depends, did not succeed)."
        )
    assert order == ["bad"]


async def test_a_cancelled_task_cancels_what_follows(app: Scheduler, order: list[str]) -> None:
    async with app:
        first = await app.submit("step", "first", delay=3600)
        child = await app.submit("step", "child", depends_on=[first])
        await first.cancel()
        with pytest.raises(TaskCancelled):
            await child.result(10)
    assert order == []


async def shipped_without_payment(app: Scheduler) -> tuple[Handle[None], Handle[str], Handle[str], list[str]]:
    """A payment that fails once, and what was cancelled with it."""
    ran: list[str] = []

    @app.task(max_retry=0)
    async def charge() -> None:
        ran.append("charge")
        if ran == ["charge"]:
            raise ValueError("card declined")

    @app.task
    async def send(what: str) -> str:
        ran.append(what)
        return what

    paid = await charge.submit()
    ship = await app.submit("send", "goods", id="ship-7", depends_on=[paid])
    mail = await app.submit("send", "mail", id="mail-7", depends_on=[paid, ship])
    await drain(app)
    assert (await mail.info()).status is Status.CANCELLED
    return paid, ship, mail, ran


async def test_a_retry_never_runs_a_task_without_what_it_depends_on(app: Scheduler) -> None:
    async with app:
        paid, ship, _, ran = await shipped_without_payment(app)
        with pytest.raises(NotRetryable, match=f"ship-7 depends on task {paid.id}, which is dead: retry that one"):
            await app.retry(ship.id)
        await app.queues.pause("default")
        await app.retry(paid.id)
        await app.retry(ship.id)
        assert (await ship.info()).waiting_for == (paid.id,)
        await app.queues.resume("default")
        assert await ship.result(10) == "goods"
        assert ran == ["charge", "charge", "goods"]


async def test_a_retry_with_cascade_brings_back_all_that_was_cancelled_with_it(app: Scheduler) -> None:
    async with app:
        paid, ship, mail, ran = await shipped_without_payment(app)
        late = await app.submit("send", "late", depends_on=[paid], delay=3600)
        await drain(app)
        followers = {ship.id, mail.id, late.id}
        assert {task.id for task in await app.dependants(paid.id)} == followers
        assert set(await app.retry(paid.id, cascade=True)) == followers
        assert await mail.result(10) == "mail"
        assert ran == ["charge", "charge", "goods", "mail"]


async def test_a_cascade_leaves_alone_what_was_cancelled_by_hand(app: Scheduler, order: list[str]) -> None:
    bad = await app.submit("bad", "bad")
    child = await app.submit("step", "child", depends_on=[bad])
    assert [task.id for task in await app.dependants(bad.id)] == [child.id]
    await child.cancel()
    async with app:
        await drain(app)
        assert await app.retry(bad.id, cascade=True) == []
        assert (await child.info()).status is Status.CANCELLED


async def test_dead_letters_come_back_with_their_dependants(app: Scheduler) -> None:
    async with app:
        _, ship, mail, _ = await shipped_without_payment(app)
        with pytest.raises(TaskNotFound):
            await app.dlq.retry(ship.id)
        assert await app.dlq.retry_all(cascade=True) == 1
        assert await mail.result(10) == "mail"


@pytest.mark.parametrize("road", ["retry", "retry_all"])
async def test_a_cascade_takes_the_dedup_keys_of_all_again(app: Scheduler, order: list[str], road: str) -> None:
    bad = await app.submit("bad", "bad", dedup_key="bad", dedup_ttl=3600)
    step = await app.submit("step", "step", depends_on=[bad], dedup_key="step", dedup_ttl=3600)
    async with app:
        await drain(app)
        assert (await step.info()).status is Status.CANCELLED
        await app.queues.pause("default")
        if road == "retry":
            assert await app.retry(bad.id, cascade=True) == [step.id]
        else:
            assert await app.dlq.retry_all(cascade=True) == 1
        for handle, key in ((bad, "bad"), (step, "step")):
            with pytest.raises(DuplicateTask) as refused:
                await app.submit("step", "second", dedup_key=key)
            assert refused.value.existing_id == handle.id


async def test_all_dead_letters_come_back_though_one_depends_on_another(app: Scheduler) -> None:
    gate, fails = Gate(), set[str]()

    @app.task(max_retry=0)
    async def step(name: str) -> str:
        if name == "second" and fails:
            await gate.pass_through()
        if name in fails:
            raise ValueError("no")
        return name

    async with app:
        first = await app.submit("step", "first")
        second = await app.submit("step", "second", depends_on=[first])
        await drain(app)
        fails |= {"first", "second"}
        await app.retry(second.id)
        await wait_for(app, second.id, "running")
        await app.retry(first.id)
        await wait_for(app, first.id, "dead")
        gate.open()
        await drain(app)
        assert [task.id for task in await app.dlq.list()] == [second.id, first.id]
        fails.clear()
        assert await app.dlq.retry_all() == 2
        assert await second.result(10) == "second"


async def test_dependencies_that_have_ended_already(app: Scheduler, order: list[str]) -> None:
    async with app:
        good, bad = await app.submit("step", "good"), await app.submit("bad", "bad")
        await drain(app)
        after_good = await app.submit("step", "after good", depends_on=[good])
        after_bad = await app.submit("step", "after bad", depends_on=[good, bad])
        assert await after_good.result(10) == "after good"
        with pytest.raises(TaskCancelled):
            await after_bad.result(10)
    assert order[2:] == ["after good"]


async def test_a_dependency_that_is_not_there(app: Scheduler, order: list[str]) -> None:
    with pytest.raises(TaskNotFound, match="no task 'nobody'"):
        await app.submit("step", "x", depends_on=["nobody"])
    with pytest.raises(TaskNotFound, match="no task 'me'"):
        await app.submit("step", "x", id="me", depends_on=["me"])
    assert (await app.status()).tasks == {}


async def test_the_same_dependency_twice(app: Scheduler, order: list[str]) -> None:
    first = await app.submit("step", "first")
    second = await app.submit("step", "second", depends_on=[first, first.id])
    async with app:
        assert await second.result(10) == "second"


async def test_a_delay_counts_besides_dependencies(make: Make, url: str, clock: ManualClock) -> None:
    app = make(url, clock=clock)
    ran: list[str] = []

    @app.task
    async def step(name: str) -> None:
        ran.append(name)

    async with app:
        first = await app.submit("step", "first")
        second = await app.submit("step", "second", depends_on=[first], delay=3600)
        await drain(app)
        assert ran == ["first"]
        assert await status_of(app, second.id) is Status.PENDING
        clock.advance(3600)
        await drain(app)
        assert ran == ["first", "second"]


async def test_a_retry_is_no_failure_yet(make: Make, url: str, clock: ManualClock) -> None:
    app = make(url, clock=clock)
    ran: list[str] = []

    @app.task(max_retry=1, retry=FixedDelay(60))
    async def flaky() -> None:
        ran.append("flaky")
        if len(ran) == 1:
            raise ValueError("no")

    @app.task
    async def after() -> None:
        ran.append("after")

    async with app:
        first = await flaky.submit()
        second = await app.submit("after", depends_on=[first])
        await drain(app)
        assert await status_of(app, second.id) is Status.BLOCKED
        clock.advance(60)
        await drain(app)
        assert ran == ["flaky", "flaky", "after"]


async def test_nobody_tells_for_a_while(make: Make, url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ends that were not told survive in the outbox until somebody does."""
    monkeypatch.setattr(unled, "SPREAD", 3600.0)
    app, gate = make(url), Gate()
    ran: list[str] = []

    @app.task
    async def step(name: str) -> None:
        await gate.pass_through()
        ran.append(name)

    await app.start(lead=False)
    first = await app.submit("step", "first")
    second = await app.submit("step", "second", depends_on=[first])
    gate.open()
    await first.result(10)
    assert await status_of(app, second.id) is Status.BLOCKED
    await app.shutdown()
    async with app:
        await second.result(10)
    assert ran == ["first", "second"]


async def test_across_processes(make: Make, file_url: str) -> None:
    client = make(file_url)
    with Child("tests.integration.child_node", file_url) as node:
        await node.expect("started")
        first = await client.submit("echo", "one")
        second = await client.submit("echo", "two", depends_on=[first])
        failed = await client.submit("fail", None, max_retry=0)
        third = await client.submit("echo", "three", depends_on=[second, failed])
        assert await second.result(20) == "two"
        with pytest.raises(TaskCancelled, match=f"task {failed.id}, on which it depends"):
            await third.result(20)
        assert await node.stop() == 0


async def test_many_dependants(app: Scheduler, order: list[str]) -> None:
    async with app:
        first = await app.submit("step", "first", delay=0.05)
        followers = await asyncio.gather(*(app.submit("step", str(n), depends_on=[first]) for n in range(300)))
        for follower in followers:
            await wait_for(app, follower.id, "success", timeout=20)
    assert len(order) == 301
    assert order[0] == "first"
