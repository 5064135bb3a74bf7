"""Locks: one holder at a time by the store's clock, and a fence that only grows."""

from __future__ import annotations

import asyncio

from tickwork.testing.contract.bench import START, Bench


async def take_lock(bench: Bench, name: str, owner: str, ttl: int = 1000) -> int:
    fence = await bench.store.locks.acquire(name, owner, ttl)
    assert fence is not None
    return fence


async def test_a_free_lock_is_taken_and_others_are_refused(bench: Bench) -> None:
    assert await bench.store.locks.holder("it") is None
    await take_lock(bench, "it", "a")
    assert await bench.store.locks.acquire("it", "b", 1000) is None
    assert await bench.store.locks.holder("it") == ("a", START + 1000)


async def test_names_are_locks_of_their_own(bench: Bench) -> None:
    await take_lock(bench, "one", "a")
    await take_lock(bench, "two", "b")
    assert (await bench.store.locks.release("two", "a"), await bench.store.locks.release("one", "b")) == (False, False)


async def test_a_name_may_be_any_text(bench: Bench) -> None:
    for name in ("", "task:lock:a b", "ä'; DROP TABLE locks", "x" * 1000):
        await take_lock(bench, name, "a")
        assert await bench.store.locks.holder(name) == ("a", START + 1000)


async def test_one_of_many_gets_it(bench: Bench) -> None:
    answers = await asyncio.gather(*(bench.store.locks.acquire("it", f"owner-{n}", 1000) for n in range(20)))
    assert sum(answer is not None for answer in answers) == 1


async def test_ones_own_lock_is_renewed_with_the_same_fence(bench: Bench) -> None:
    fence = await take_lock(bench, "it", "a", 1000)
    bench.clock.advance(0.999)
    assert await take_lock(bench, "it", "a", 5000) == fence
    assert await bench.store.locks.holder("it") == ("a", START + 5999)


async def test_a_lock_runs_out_by_the_stores_clock(bench: Bench) -> None:
    first = await take_lock(bench, "it", "a", 1000)
    bench.clock.advance(0.999)
    assert await bench.store.locks.acquire("it", "b", 1000) is None
    bench.clock.advance(0.001)
    assert await bench.store.locks.holder("it") is None
    assert await take_lock(bench, "it", "b") > first


async def test_taking_ones_own_again_after_it_ran_out_is_a_new_holding(bench: Bench) -> None:
    first = await take_lock(bench, "it", "a", 1000)
    bench.clock.advance(1)
    assert await take_lock(bench, "it", "a") > first


async def test_extend_renews_what_is_held(bench: Bench) -> None:
    await take_lock(bench, "it", "a", 1000)
    bench.clock.advance(0.999)
    assert await bench.store.locks.extend("it", "a", 1000) is True
    assert await bench.store.locks.holder("it") == ("a", START + 1999)


async def test_extend_takes_nothing(bench: Bench) -> None:
    assert await bench.store.locks.extend("it", "a", 1000) is False
    await take_lock(bench, "it", "a", 1000)
    assert await bench.store.locks.extend("it", "b", 9000) is False
    assert await bench.store.locks.holder("it") == ("a", START + 1000)
    bench.clock.advance(1)
    assert await bench.store.locks.extend("it", "a", 1000) is False, "it ran out, so another may have had it since"
    assert await bench.store.locks.holder("it") is None


async def test_extend_may_shorten(bench: Bench) -> None:
    await take_lock(bench, "it", "a", 10_000)
    assert await bench.store.locks.extend("it", "a", 100) is True
    assert await bench.store.locks.holder("it") == ("a", START + 100)


async def test_only_its_owner_frees_a_lock(bench: Bench) -> None:
    await take_lock(bench, "it", "a")
    assert await bench.store.locks.release("it", "b") is False
    assert await bench.store.locks.holder("it") == ("a", START + 1000)
    assert await bench.store.locks.release("it", "a") is True
    assert await bench.store.locks.holder("it") is None


async def test_freeing_a_lock_again_is_answered_as_the_first_time(bench: Bench) -> None:
    """The reply may have been lost. After a minute, or when another has taken it, nobody asks any more."""
    await take_lock(bench, "it", "a")
    assert await bench.store.locks.release("it", "a") is True
    bench.clock.advance(59.999)
    assert await bench.store.locks.release("it", "b") is False
    assert await bench.store.locks.release("it", "a") is True
    assert await bench.store.locks.extend("it", "a", 1000) is False
    await bench.store.operators.prune(100)
    assert await bench.store.locks.release("it", "a") is True
    bench.clock.advance(0.001)
    assert await bench.store.locks.release("it", "a") is False
    await take_lock(bench, "it", "a")
    assert await bench.store.locks.release("it", "a") is True
    await take_lock(bench, "it", "b")
    assert await bench.store.locks.release("it", "a") is False
    assert await bench.store.locks.holder("it") == ("b", bench.clock.now() + 1000)


async def test_who_lost_a_lock_does_not_free_the_next_holders(bench: Bench) -> None:
    await take_lock(bench, "it", "a", 1000)
    bench.clock.advance(1)
    await take_lock(bench, "it", "b", 1000)
    assert await bench.store.locks.release("it", "a") is False
    assert await bench.store.locks.extend("it", "a", 1000) is False
    assert await bench.store.locks.holder("it") == ("b", START + 2000)


async def test_freeing_what_ran_out_is_refused(bench: Bench) -> None:
    await take_lock(bench, "it", "a", 1000)
    bench.clock.advance(1)
    assert await bench.store.locks.release("it", "a") is False


async def test_fences_only_grow_whatever_became_of_the_lock(bench: Bench) -> None:
    fences = [await take_lock(bench, "it", "a", 1000)]
    await bench.store.locks.release("it", "a")
    fences.append(await take_lock(bench, "it", "a", 1000))
    bench.clock.advance(1)
    fences.append(await take_lock(bench, "it", "b", 1000))
    bench.clock.advance(3600)
    await bench.store.operators.prune(100)
    fences.append(await take_lock(bench, "it", "a", 1000))
    bench.clock.advance(-7200)
    await bench.store.locks.release("it", "a")
    fences.append(await take_lock(bench, "it", "c", 1000))
    assert fences == sorted(set(fences))
    assert fences[0] > 0


async def test_a_fence_is_no_smaller_than_the_time(bench: Bench) -> None:
    """So those of a store that has forgotten its last moments are greater than any that it gave before."""
    for _ in range(3):
        assert await take_lock(bench, "it", "a") >= bench.clock.now() * 1000
        await bench.store.locks.release("it", "a")
        bench.clock.advance(0.001)


async def test_a_lock_for_no_time_is_free_at_once(bench: Bench) -> None:
    first = await take_lock(bench, "it", "a", 0)
    assert await bench.store.locks.holder("it") is None
    assert await take_lock(bench, "it", "b") > first


async def test_a_renewal_follows_a_clock_that_was_set_back(bench: Bench) -> None:
    await take_lock(bench, "it", "a", 1000)
    bench.clock.advance(-3600)
    assert await bench.store.locks.acquire("it", "b", 1000) is None
    assert await bench.store.locks.extend("it", "a", 1000) is True
    assert await bench.store.locks.holder("it") == ("a", START - 3_600_000 + 1000)


async def test_a_clock_that_is_set_back_leaves_a_lock_the_time_it_had_left(bench: Bench) -> None:
    await take_lock(bench, "it", "a", 30_000)
    await take_lock(bench, "long", "a", 120_000)
    for _ in range(2):
        bench.clock.advance(-3600)
        assert await bench.store.locks.acquire("it", "b", 1000) is None
        assert await bench.store.locks.holder("it") == ("a", bench.clock.now() + 30_000)
    bench.clock.advance(29.999)
    assert await bench.store.locks.acquire("it", "b", 1000) is None
    bench.clock.advance(0.001)
    assert await bench.store.locks.holder("it") is None
    assert await bench.store.locks.acquire("it", "b", 1000) is not None
    assert await bench.store.locks.holder("long") == ("a", bench.clock.now() + 90_000)
    assert await bench.store.locks.extend("long", "a", 1000) is True
    assert await bench.store.locks.holder("long") == ("a", bench.clock.now() + 1000)
    assert await bench.store.locks.release("it", "b") is True


async def test_locks_are_no_tasks(bench: Bench) -> None:
    await take_lock(bench, "it", "a")
    assert (await bench.walk(), await bench.facts()) == ([], [])


async def test_prune_leaves_what_is_held(bench: Bench) -> None:
    day = 86_400_000
    await take_lock(bench, "over", "a", 1000)
    await take_lock(bench, "held", "a", day)
    bench.clock.advance(7200)
    assert await bench.store.operators.prune(100) == 0
    assert await bench.store.locks.holder("held") == ("a", START + day)
    assert await bench.store.locks.extend("held", "a", 1000) is True
