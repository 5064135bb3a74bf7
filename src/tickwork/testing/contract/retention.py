"""Tasks that say for themselves how long they are kept after their end."""

from __future__ import annotations

import pytest

from tickwork.model.outcomes import Aborted, Succeeded
from tickwork.model.policy import Policy
from tickwork.model.tasks import Status
from tickwork.testing.contract.bench import Bench

_MINUTE = [Policy(retention=60_000)]


async def _end(bench: Bench, *ids: str, retention: int | None = None) -> None:
    for task_id in ids:
        await bench.end(Succeeded(await bench.start(task_id, retention=retention)))


@pytest.mark.parametrize("policy", _MINUTE, ids=["a-minute"])
@pytest.mark.parametrize("seconds", [10, 600])
async def test_a_task_is_kept_as_long_as_it_says(bench: Bench, policy: Policy, seconds: int) -> None:
    await _end(bench, "it", retention=seconds * 1000)
    bench.clock.advance(seconds - 0.001)
    assert await bench.store.operators.prune(10) == 0
    bench.clock.advance(0.001)
    assert await bench.store.operators.prune(10) == 1
    assert await bench.status("it") is None


@pytest.mark.parametrize("policy", _MINUTE, ids=["a-minute"])
@pytest.mark.parametrize("status", [Status.SUCCESS, Status.DEAD, Status.CANCELLED], ids=str)
async def test_every_end_counts(bench: Bench, policy: Policy, status: Status) -> None:
    await bench.bring(status, retention=1000)
    bench.clock.advance(1)
    assert await bench.store.operators.prune(10) == 1


@pytest.mark.parametrize("policy", _MINUTE, ids=["a-minute"])
async def test_one_that_is_kept_longer_does_not_keep_those_behind_it(bench: Bench, policy: Policy) -> None:
    bench.together()
    await _end(bench, *(f"long{number}" for number in range(5)), retention=600_000)
    await _end(bench, "a", "b")
    bench.clock.advance(60)
    assert [await bench.store.operators.prune(1) for _ in range(3)] == [1, 1, 0]
    assert sorted(await bench.walk()) == [f"long{number}" for number in range(5)]


@pytest.mark.parametrize("policy", _MINUTE, ids=["a-minute"])
async def test_their_own_ends_go_first_in_their_order(bench: Bench, policy: Policy) -> None:
    bench.together()
    await _end(bench, "plain")
    await _end(bench, "late", retention=50_000)
    await _end(bench, "soon", retention=10_000)
    bench.clock.advance(60)
    left = []
    for _ in range(3):
        assert await bench.store.operators.prune(1) == 1
        left.append(sorted(await bench.walk()))
    assert left == [["late", "plain"], ["plain"], []]


@pytest.mark.parametrize("policy", [Policy(retention_max=2)], ids=["two"])
async def test_if_there_are_too_many_the_oldest_go_whatever_they_say(bench: Bench, policy: Policy) -> None:
    bench.together()
    await _end(bench, "long", retention=10**12)
    await _end(bench, "a", "b")
    assert await bench.store.operators.prune(10) == 1
    assert sorted(await bench.walk()) == ["a", "b"]


@pytest.mark.parametrize("policy", [Policy(retention_max=2)], ids=["two"])
async def test_those_whose_time_is_over_make_room_first(bench: Bench, policy: Policy) -> None:
    await _end(bench, "a", "b")
    await _end(bench, "short", retention=0)
    assert await bench.store.operators.prune(10) == 1
    assert sorted(await bench.walk()) == ["a", "b"]


async def test_an_untold_end_stays_until_it_is_told(bench: Bench) -> None:
    await bench.submit("it", retention=0)
    await bench.submit("waits", depends_on=("it",), delay=60_000)
    await bench.cancel("it", False)
    assert await bench.store.operators.prune(10) == 0
    await bench.propagate()
    assert await bench.store.operators.prune(10) == 1


@pytest.mark.parametrize("policy", [Policy(retention=60_000, retention_max=250)], ids=["250"])
async def test_many_ends_of_all_kinds_go_in_their_order(bench: Bench, policy: Policy) -> None:
    """First those that are too many, then those whose time is over, past those that stay."""
    bench.together()
    ids = await bench.submit_many(400)
    await bench.submit("untold", priority=10)
    await bench.submit("waits", depends_on=("untold",))
    await bench.end(Succeeded((await bench.claim())[0].lease))
    grants = await bench.claim(400)
    for number, grant in enumerate(grants):
        if number == 200:
            await _end(bench, "kept", retention=3_600_000)
        await bench.end(Succeeded(grant.lease) if number % 3 else Aborted(grant.lease, "boom"))
    assert [await bench.store.operators.prune(100) for _ in range(3)] == [100, 52, 0]
    assert sorted(await bench.walk(limit=1000)) == sorted([*ids[152:], "kept", "untold", "waits"])
    bench.clock.advance(60)
    assert [await bench.store.operators.prune(100) for _ in range(4)] == [100, 100, 48, 0]
    assert sorted(await bench.walk(limit=1000)) == ["kept", "untold", "waits"]


@pytest.mark.parametrize("policy", _MINUTE, ids=["a-minute"])
async def test_a_retried_task_begins_anew(bench: Bench, policy: Policy) -> None:
    await _end(bench, "it", retention=10_000)
    await bench.retry("it")
    bench.clock.advance(100)
    assert await bench.store.operators.prune(10) == 0
    (grant,) = await bench.claim()
    await bench.end(Succeeded(grant.lease))
    bench.clock.advance(9)
    assert await bench.store.operators.prune(10) == 0
    bench.clock.advance(1)
    assert await bench.store.operators.prune(10) == 1


async def test_a_deleted_task_leaves_no_end_behind(bench: Bench) -> None:
    await _end(bench, "it", retention=1000)
    await bench.delete("it")
    await _end(bench, "it")
    bench.clock.advance(1)
    assert await bench.store.operators.prune(10) == 0
    assert await bench.status("it") is Status.SUCCESS


@pytest.mark.parametrize("policy", [Policy(retention=60_000, retention_max=1)], ids=["one"])
@pytest.mark.parametrize("indexed", [False, True], ids=["without", "indexed"])
async def test_another_task_of_the_same_id_is_kept_as_usual(bench: Bench, policy: Policy, indexed: bool) -> None:
    bench.together()
    if indexed:
        await bench.store.operators.index(True)
    await _end(bench, "it", retention=5000)
    await _end(bench, "other")
    assert await bench.store.operators.prune(10) == 1
    assert (await bench.status("it"), await bench.status("other")) == (None, Status.SUCCESS)
    await bench.delete("other")
    await _end(bench, "it")
    bench.clock.advance(10)
    assert await bench.store.operators.prune(10) == 0
    bench.clock.advance(50)
    assert await bench.store.operators.prune(10) == 1
