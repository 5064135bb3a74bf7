"""Several partitions of a Redis namespace: what they promise beside the contract, which runs on them too."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from tests.support.redis_store import ClockedRedisStore, empty_redis, restricted_redis, shared_server
from tests.support.waiting import wait_until
from tickwork import ConfigError, Scheduler
from tickwork.clock import ManualClock
from tickwork.errors import StoreError, StoreUnavailable
from tickwork.ids import partition_of
from tickwork.model.facts import Event
from tickwork.model.members import Worker
from tickwork.model.outcomes import Aborted, Outcome, Released, Succeeded
from tickwork.model.policy import Policy
from tickwork.model.tasks import Lease, Status
from tickwork.node import duties
from tickwork.observe.bus import Bus
from tickwork.store.contract import Edge, Grant, OutboxEntry, Query, Receipt
from tickwork.store.redis.keys import PARTITIONS_MAX, Layout
from tickwork.store.redis.rounds import STAY
from tickwork.testing.contract.bench import START, Bench

COUNT = 4


def open_bench(policy: Policy | None = None, partitions: int = COUNT) -> Bench:
    clock = ManualClock(START)
    return Bench(ClockedRedisStore(clock, restricted_redis(), policy or Policy(), partitions=partitions), clock)


@pytest.fixture
async def bench() -> AsyncIterator[Bench]:
    bench = open_bench()
    await bench.store.open()
    yield bench
    assert await bench.store.queries.audit() == [], "a test left the store unsound"
    await bench.store.close()


def ids_in(place: int, count: int, count_of_parts: int = COUNT, prefix: str = "n") -> list[str]:
    names = (f"{prefix}{number}" for number in range(100_000))
    return [name for name in names if partition_of(name, count_of_parts) == place][:count]


def place_of(grant: Grant) -> int:
    return partition_of(grant.spec.id, COUNT)


class Cut:
    """Partitions that cannot be reached. With `lose_replies` calls are executed there, but not answered."""

    def __init__(self, bench: Bench) -> None:
        store: Any = bench.store
        self._core = store.core
        self._run = store.core.run
        self.places: set[int] = set()
        self.lose_replies = False
        self._core.run = self.run

    async def run(self, name: str, prefix: str, *args: Any, **options: Any) -> Any:
        parts = self._core.layout.parts
        cut = prefix in parts and parts.index(prefix) in self.places
        if cut and not self.lose_replies:
            raise StoreUnavailable("that node is down")
        reply = await self._run(name, prefix, *args, **options)
        if cut:
            raise StoreUnavailable("the reply was lost")
        return reply

    async def heal(self) -> None:
        """Everything can be reached again, and the store knows it."""
        self.places = set()
        await wait_until(lambda: all(self._core.reach.has(part) for part in self._core.layout.parts))


# --- fairness and priority


async def drain(bench: Bench, size: int, on_batch: Callable[[list[Grant]], None]) -> None:
    """Work as a worker does: end a batch and claim the next one in the same call, until nothing is left."""
    grants = await bench.claim(size)
    while grants:
        on_batch(grants)
        outcomes: list[Outcome] = [Succeeded(grant.lease) for grant in grants]
        finished = await bench.store.tasks.finish(outcomes, bench.new_claim(size))
        assert finished.claimed is not None
        grants = finished.claimed.grants


async def test_an_even_backlog_is_drained_evenly(bench: Bench) -> None:
    for place in range(COUNT):
        await bench.store.tasks.submit([bench.spec(name) for name in ids_in(place, 100)])
    started: Counter[int] = Counter()
    widest = 0

    def count(grants: list[Grant]) -> None:
        nonlocal widest
        started.update(map(place_of, grants))
        if max(started.values()) < 100:  # else one of them is empty
            widest = max(widest, max(started.values()) - min(started[place] for place in range(COUNT)))

    await drain(bench, 5, count)
    assert started == dict.fromkeys(range(COUNT), 100)
    assert widest <= 5 * STAY


@pytest.mark.parametrize("place", range(COUNT))
async def test_a_high_task_is_passed_over_by_few_claims(bench: Bench, place: int) -> None:
    """Never by more than `STAY` for each other partition that has work."""
    for other in range(COUNT):
        await bench.store.tasks.submit([bench.spec(name, priority=1) for name in ids_in(other, 300)])
    claims = 0
    high = ids_in(place, 1, prefix="high")[0]
    grants = await bench.claim(5)
    await bench.submit(high, priority=10)
    while high not in (names := [grant.spec.id for grant in grants]):
        outcomes: list[Outcome] = [Succeeded(grant.lease) for grant in grants]
        finished = await bench.store.tasks.finish(outcomes, bench.new_claim(5))
        assert finished.claimed is not None
        grants = finished.claimed.grants
        claims += 1
    assert names[0] == high, "in its partition it is the first"
    assert claims <= STAY * (COUNT - 1) + 1


async def test_a_fair_queue_delays_nobody_in_any_partition(bench: Bench) -> None:
    """Each partition is fair by itself, so a key waits until its own is visited, and no longer."""
    for place in range(COUNT):
        await bench.store.tasks.submit([bench.spec(name, key="many", fair=1000) for name in ids_in(place, 200)])
    await bench.claim(5)
    for place in range(COUNT):
        await bench.submit(ids_in(place, 201)[-1], key=f"few{place}", fair=1000)
    started: list[str | None] = []
    await drain(bench, 5, lambda grants: started.extend(grant.spec.key for grant in grants))
    last = max(started.index(f"few{place}") for place in range(COUNT))
    assert last < 5 * STAY * COUNT


async def test_a_claim_takes_from_the_next_partition_what_the_first_lacks(bench: Bench) -> None:
    for place in range(COUNT):
        await bench.store.tasks.submit([bench.spec(name) for name in ids_in(place, 3)])
    assert len(await bench.claim(12)) == 12


async def test_processes_begin_in_different_partitions() -> None:
    places = set()
    for _ in range(40):
        store: Any = open_bench().store
        places.add(store.tasks._dispatch.rounds.place)
    assert places == set(range(COUNT))


# --- a partition that cannot be reached


async def tasks_in_two(bench: Bench) -> tuple[str, str]:
    (one,), (other,) = ids_in(0, 1), ids_in(3, 1)
    await bench.submit(one)
    await bench.submit(other)
    return one, other


async def test_a_claim_takes_from_the_partitions_that_can_be_reached(bench: Bench) -> None:
    one, other = await tasks_in_two(bench)
    cut = Cut(bench)
    cut.places = {3}
    assert await bench.claimed_ids(10) == [one]
    await cut.heal()
    assert await bench.claimed_ids(10, worker="w2") == [other]


async def test_without_any_partition_a_claim_says_so(bench: Bench) -> None:
    cut = Cut(bench)
    cut.places = set(range(COUNT))
    with pytest.raises(StoreUnavailable):
        await bench.claim(10)
    await cut.heal()


async def test_tasks_that_were_granted_without_an_answer_are_given_back(bench: Bench) -> None:
    """The next claim of that turn finds them, long before their lease runs out."""
    one, other = await tasks_in_two(bench)
    cut = Cut(bench)
    cut.places, cut.lose_replies = {3}, True
    assert await bench.claimed_ids(10) == [one]
    assert await bench.status(other) is Status.RUNNING, "granted, but nobody knows"
    await cut.heal()
    assert await bench.claimed_ids(10) == [other]
    assert "task.released" in await bench.facts(other)
    assert (await bench.record(other)).attempt == 1


async def test_a_claim_that_is_sent_again_gets_what_it_was_granted_without_an_answer(bench: Bench) -> None:
    one, other = await tasks_in_two(bench)
    cut = Cut(bench)
    cut.places, cut.lose_replies = set(range(COUNT)), True
    with pytest.raises(StoreUnavailable):
        await bench.claim(10, nonce="same")
    await cut.heal()
    assert sorted(await bench.claimed_ids(10, nonce="same")) == sorted((one, other))
    assert (await bench.record(other)).attempt == 1


async def test_outcomes_of_other_partitions_are_handed_in(bench: Bench) -> None:
    one, other = await tasks_in_two(bench)
    leases = {grant.spec.id: grant.lease for grant in await bench.claim(10)}
    cut = Cut(bench)
    cut.places = {3}
    outcomes: list[Outcome] = [Succeeded(leases[other]), Succeeded(leases[one])]
    finished = await bench.store.tasks.finish(outcomes)
    assert [verdict.kind for verdict in finished.verdicts] == ["later", "done"]
    assert finished.incomplete
    await cut.heal()
    assert [verdict.kind for verdict in (await bench.store.tasks.finish(outcomes)).verdicts] == ["done", "already"]


async def test_leases_of_other_partitions_are_renewed(bench: Bench) -> None:
    one, other = await tasks_in_two(bench)
    leases = {grant.spec.id: grant.lease for grant in await bench.claim(10)}
    cut = Cut(bench)
    cut.places = {3}
    assert await bench.store.tasks.extend([leases[other], leases[one]], 30_000) == ["unknown", "held"]
    assert await bench.store.tasks.extend([leases[other]], 30_000) == ["unknown"]
    await cut.heal()
    assert await bench.store.tasks.extend([leases[other], leases[one]], 30_000) == ["held", "held"]


async def test_duties_are_done_in_the_partitions_that_can_be_reached(bench: Bench) -> None:
    one, other = await tasks_in_two(bench)
    (late,), (up,), (down,) = ids_in(1, 1), ids_in(2, 1), ids_in(1, 1, prefix="down")
    await bench.claim(10)
    await bench.submit(late, delay=1000)
    await bench.submit(up)
    await bench.submit(down, depends_on=(up,))
    await bench.end(Succeeded((await bench.claim())[0].lease))
    cut = Cut(bench)
    cut.places = {3}
    bench.clock.advance(1)
    await duties.promote(bench.store, 10)
    assert await bench.status(late) is Status.READY
    assert (await bench.store.tasks.reclaim(10, ("w1",))).ids == [one]
    assert (await bench.store.members.workers()) == []
    await duties.propagate(bench.store, 10, Bus())
    assert await bench.status(down) is Status.READY
    bench.clock.advance(8 * 86_400)
    assert await bench.store.operators.prune(10) == 1
    await cut.heal()
    assert (await bench.store.tasks.reclaim(10, ("w1",))).ids == [other]


async def test_dependants_out_of_reach_do_not_hold_up_others(bench: Bench) -> None:
    ups = ids_in(0, 2)
    (far,), (near,) = ids_in(3, 1), ids_in(1, 1)
    for up, down in zip(ups, (far, near), strict=True):
        await bench.submit(up)
        await bench.submit(down, depends_on=(up,))
    for grant in await bench.claim(10):
        await bench.end(Succeeded(grant.lease))
    cut = Cut(bench)
    cut.places = {3}
    await duties.propagate(bench.store, 10, Bus())
    assert await bench.status(near) is Status.READY
    await cut.heal()
    await bench.propagate()
    assert await bench.status(far) is Status.READY


async def test_workers_of_unknown_life_count_no_loss(bench: Bench) -> None:
    """The members are in the part of the namespace that cannot be reached."""
    store: Any = bench.store
    (one,) = ids_in(0, 1)
    await bench.submit(one)
    await bench.claim(1)
    await bench.pass_time(29)
    run = store.core.run

    async def without_root(name: str, prefix: str, *args: Any, **options: Any) -> Any:
        if prefix == store.core.layout.root:
            raise StoreUnavailable("that node is down")
        return await run(name, prefix, *args, **options)

    await bench.pass_time(2)
    store.core.run = without_root
    assert (await bench.store.tasks.reclaim(10)).ids == [one]
    store.core.run = run
    assert (await bench.record(one)).losses == 0


# --- pauses


async def test_a_resume_that_is_cut_short_is_seen_and_can_be_repeated(bench: Bench) -> None:
    await bench.submit_many(40)
    await bench.store.operators.pause("queue", "default", "for now")
    cut = Cut(bench)
    for place in range(COUNT):
        cut.places = {place}
        with pytest.raises(StoreUnavailable):
            await bench.store.operators.resume("queue", "default")
        assert [pause.name for pause in await bench.store.queries.paused()] == ["default"]
    await cut.heal()
    assert await bench.store.operators.resume("queue", "default") is True
    assert await bench.store.queries.paused() == []
    assert len(await bench.claimed_ids(100)) == 40
    assert (await bench.facts()).count("queue.resumed") == 1


async def test_a_pause_that_is_cut_short_is_seen(bench: Bench) -> None:
    cut = Cut(bench)
    cut.places = {2}
    with pytest.raises(StoreUnavailable):
        await bench.store.operators.pause("queue", "default", "for now")
    assert [pause.name for pause in await bench.store.queries.paused()] == ["default"]
    await cut.heal()


# --- dependencies


async def noted(bench: Bench, upstream: str) -> list[str]:
    return await bench.store.queries.dependants(upstream, 100)


async def test_a_dependency_over_partitions(bench: Bench) -> None:
    (up,), (down,), (last,) = ids_in(0, 1), ids_in(1, 1), ids_in(3, 1)
    specs = [bench.spec(up), bench.spec(down, depends_on=(up,)), bench.spec(last, depends_on=(up, down))]
    assert [receipt.verdict for receipt in await bench.store.tasks.submit(specs)] == ["created"] * 3
    for name in (up, down, last):
        (grant,) = await bench.claim(10)
        assert grant.spec.id == name
        assert await bench.end(Succeeded(grant.lease)) == "done"
        await bench.propagate()


async def test_a_failed_dependency_over_partitions_cancels(bench: Bench) -> None:
    (up,), (down,), (late,) = ids_in(0, 1), ids_in(1, 1), ids_in(2, 1)
    await bench.store.tasks.submit([bench.spec(up), bench.spec(down, depends_on=(up,))])
    (grant,) = await bench.claim(10)
    await bench.end(Aborted(grant.lease, "boom"))
    await bench.propagate()
    assert await bench.status(down) is Status.CANCELLED
    assert (await bench.submit(late, depends_on=(up,))).verdict == "created"
    await bench.propagate()
    assert await bench.status(late) is Status.CANCELLED, "it had ended before"


async def test_a_refused_dependant_is_not_listed_with_its_upstreams(bench: Bench) -> None:
    (up,), (other, holder), (missing,) = ids_in(0, 1), ids_in(1, 2), ids_in(2, 1)
    await bench.submit(up)
    await bench.submit(holder, dedup_key=holder, dedup_ttl=60_000)
    refused = await bench.submit(other, dedup_key=holder, dedup_ttl=60_000, depends_on=(up,))
    assert refused == Receipt(other, "duplicate", holder)
    assert await noted(bench, up) == []
    assert (await bench.submit(other, depends_on=(up, missing))).verdict == "orphan"
    assert await noted(bench, up) == []


async def test_entries_that_must_stay_do_not_hold_up_the_outbox(bench: Bench) -> None:
    """Submits that died between the note of a dependency and the creation of the dependant."""
    store: Any = bench.store
    for number in range(30):
        (up,), (down,) = ids_in(0, 1, prefix=f"up{number}-"), ids_in(1, 1, prefix=f"down{number}-")
        await bench.submit(up)
        await store.tasks.wait_for(bench.spec(down, depends_on=(up,)), [up])
    (up,), (down,) = ids_in(0, 1), ids_in(1, 1)
    await bench.submit(up)
    await bench.submit(down, depends_on=(up,))
    for grant in await bench.claim(50):
        await bench.end(Succeeded(grant.lease))
    for _ in range(5):
        await duties.propagate(store, 10, Bus())
    assert await bench.status(down) is Status.READY
    assert await duties.propagate(store, 10, Bus()) is None, "it waits, instead of looking again at once"
    bench.clock.advance(61)
    await bench.propagate()
    assert await store.tasks.outbox(100) == []


@pytest.mark.parametrize("place", [0, 1], ids=["same partition", "another"])
async def test_a_dependant_that_is_about_to_exist_is_told_later(bench: Bench, place: int) -> None:
    """The upstream ends, and is told of, between the note of a dependency and the creation of the dependant."""
    store: Any = bench.store
    (up,), (down,) = ids_in(0, 1), ids_in(place, 1, prefix="down")
    await bench.submit(up)
    await store.tasks.wait_for(bench.spec(down, depends_on=(up,)), [up])
    (grant,) = await bench.claim(10)
    await bench.end(Succeeded(grant.lease))
    for entry in await store.tasks.outbox(10):
        await store.tasks.resolve([Edge(down, entry.id, True)])
        await store.tasks.clear_outbox([entry])
    bench.clock.advance(2)
    assert [entry.id for entry in await store.tasks.outbox(10)] == [up], "its note is kept for a while"
    await bench.submit(down, depends_on=(up,))
    await bench.propagate()
    assert await bench.status(down) is Status.READY


async def test_a_submit_that_was_cut_short_is_brought_to_its_end_when_it_is_sent_again(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The task was created, but whether its upstream had ended meanwhile was not looked up, and all has been told."""
    store: Any = bench.store
    (up,), (down,) = ids_in(0, 1), ids_in(1, 1)
    await bench.submit(up)
    (grant,) = await bench.claim(10)
    spec, looks, wait_for = bench.spec(down, depends_on=(up,)), 0, store.tasks.wait_for

    async def cut_short(*args: Any) -> Any:
        nonlocal looks
        looks += 1
        if looks == 2:
            await bench.end(Succeeded(grant.lease))
            raise StoreUnavailable("that node is down")
        return await wait_for(*args)

    with monkeypatch.context() as patch:
        patch.setattr(store.tasks, "wait_for", cut_short)
        with pytest.raises(StoreUnavailable):
            await store.tasks.submit([spec])
    await store.tasks._core.run("unawait", store.core.part(up), up, down, 1)  # as if the note of it had been lost
    assert await bench.status(down) is Status.BLOCKED
    (receipt,) = await store.tasks.submit([spec])
    assert receipt.verdict == "created"
    assert await bench.status(down) is Status.READY
    await bench.propagate()


async def test_the_outbox_shows_all_partitions_in_turns(bench: Bench) -> None:
    for place in range(COUNT):
        for up, down in zip(ids_in(place, 5), ids_in(place, 5, prefix="down"), strict=True):
            await bench.submit(up)
            await bench.submit(down, depends_on=(up,))
    for grant in await bench.claim(50):
        await bench.end(Succeeded(grant.lease))
    entries: list[OutboxEntry] = await bench.store.tasks.outbox(8)
    assert Counter(partition_of(entry.id, COUNT) for entry in entries) == dict.fromkeys(range(COUNT), 2)
    await bench.propagate()


async def test_a_retry_takes_its_dedup_key_again_in_every_partition(bench: Bench) -> None:
    upstreams = [ids_in(place, 4)[3] for place in range(COUNT)]
    for upstream in upstreams:
        await bench.submit(upstream)
    for place in range(COUNT):
        plain, dependant, key, _ = ids_in(place, 4)
        for task_id, depends_on in ((plain, ()), (dependant, (upstreams[place - 1],))):
            await bench.submit(task_id, dedup_key=key, dedup_ttl=60_000, depends_on=depends_on)
            await bench.cancel(task_id, False)
            await bench.retry(task_id)
            assert await bench.submit(key, dedup_key=key) == Receipt(key, "duplicate", task_id)
            await bench.cancel(task_id, False)


# --- members


async def test_a_living_worker_that_loses_its_lease_counts_no_loss(bench: Bench) -> None:
    ids = await bench.submit_many(8)
    for _ in range(3):
        await bench.store.members.beat(Worker(id="w1"), 100_000)
        leases: list[Lease] = [grant.lease for grant in await bench.claim(8)]
        assert len(leases) == 8
        await bench.pass_time(31)
        assert sorted((await bench.store.tasks.reclaim(10)).ids) == ids
    for task_id in ids:
        record = await bench.record(task_id)
        assert (record.status, record.losses) == (Status.READY, 0)
        assert record.last_error == "worker w1 was cut off (its lease ran out)"


async def test_lost_work_comes_back_in_every_partition(bench: Bench) -> None:
    await bench.submit_many(40)
    first = await bench.claimed_ids(40, worker="w1")
    assert len(first) == 40
    assert sorted((await bench.store.tasks.reclaim(100, ("w1",))).ids) == sorted(first)
    again = await bench.claim(40, worker="w2")
    assert len(again) == 40
    await bench.store.tasks.finish([Released(grant.lease) for grant in again])
    assert len(await bench.claimed_ids(100, worker="w3")) == 40


async def test_suspects_of_all_partitions_are_run_one_at_a_time(bench: Bench) -> None:
    names = [ids_in(place, 1)[0] for place in range(COUNT)]
    for name in names:
        await bench.submit(name)
    for worker in ("w1", "w2"):
        assert len(await bench.claim(10, worker)) == COUNT
        await bench.store.tasks.reclaim(10, (worker,))
    for _ in names:
        (grant,) = await bench.claim(10, "w3")
        assert await bench.claim(10, "w3") == []
        finished = await bench.store.tasks.finish([Succeeded(grant.lease)], bench.new_claim(0, "w3"))
        assert finished.claimed is not None


# --- the log


async def test_a_follower_is_told_of_every_fact_while_many_write() -> None:
    """Each writer's clock is that of its partition; facts are read while they are written."""
    url = empty_redis()
    app = Scheduler(url, partitions=COUNT)
    told: list[str] = []
    written = 0

    async def write(number: int) -> None:
        nonlocal written
        for step in range(100):
            await app.submit("job", id=f"t{number}-{step}")
            written += 1

    async with app.events.subscribe(kinds=["task.submitted"]) as events:
        writing = asyncio.gather(*(write(number) for number in range(8)))
        async for event in events:
            told.append(event.id)
            if len(told) == 800:
                break
        await writing
    assert written == 800
    assert len(set(told)) == 800
    await app.close()


async def read_one_by_one(bench: Bench) -> list[Event]:
    found: list[Event] = []
    while events := (await bench.store.log.read(found[-1].seq if found else 0, 1))[0]:
        found += events
    return found


async def test_every_fact_has_a_number_of_its_own_and_none_is_passed_over(bench: Bench) -> None:
    await bench.submit_many(60)
    await bench.store.members.beat(Worker(id="w9"))
    events = await read_one_by_one(bench)
    assert len({event.seq for event in events}) == 61
    assert "worker.joined" in [event.kind for event in events]


async def test_facts_between_two_reads_come_after_the_first(bench: Bench) -> None:
    """A partition that is behind, since it has written nothing for long, or since its clock is."""
    store: Any = bench.store
    (ahead,), (behind,) = ids_in(0, 1), ids_in(1, 1)
    await bench.submit(ahead)
    seen = (await bench.events())[-1].seq
    await store.core.ask(store.core.layout.parts[1], "SET", f"{store.core.layout.parts[1]}clock", START - 3_600_000)
    await bench.submit(behind)
    assert [event.id for event in (await bench.store.log.read(seen, 10))[0]] == [behind]


async def test_a_clock_that_ran_ahead_does_not_hide_the_log(bench: Bench) -> None:
    bench.clock.advance(3600)
    await bench.submit_many(20, "early")
    bench.clock.set(START)
    await bench.submit_many(20, "late")
    events = await bench.events()
    assert len(events) == 40
    assert [event.id[:4] for event in events] == ["earl"] * 20 + ["late"] * 20


async def test_numbers_of_facts_stay_exact_for_two_hundred_years() -> None:
    bench = open_bench(partitions=PARTITIONS_MAX)
    bench.clock.set(8_580_000_000_000)  # in the year 2241
    await bench.store.open()
    await bench.submit_many(150)
    events = await read_one_by_one(bench)
    assert len({event.seq for event in events}) == len(events) == 150
    assert events[-1].seq < 2**53
    await bench.store.close()


async def test_a_reader_that_fell_behind_is_told_that_facts_are_gone() -> None:
    bench = open_bench(Policy(events_max=10))
    await bench.store.open()
    for number in range(700):
        await bench.submit(f"t{number}")
    events, missed = await bench.store.log.read(0, 1000)
    assert missed > 0
    assert len(events) < 700
    assert [event.id for event in events][-1] == "t699"
    assert (await bench.store.log.read(events[-1].seq, 10)) == ([], 0)
    await bench.store.close()


# --- the namespace


async def test_a_dedup_key_draws_an_id_beside_it() -> None:
    app = Scheduler(empty_redis(), partitions=COUNT)
    for number in range(20):
        key = f"order:{number}"
        handle = await app.submit("job", 1, dedup_key=key)
        assert partition_of(handle.id, COUNT) == partition_of(key, COUNT)
    (other,) = ids_in((partition_of("order:1000", COUNT) + 1) % COUNT, 1)
    with pytest.raises(StoreError, match="leave the id out"):
        await app.submit("job", 1, id=other, dedup_key="order:1000")
    await app.close()


async def test_the_number_of_partitions_is_the_namespaces() -> None:
    url = empty_redis()
    first = Scheduler(url, partitions=COUNT)
    await first.submit("job", 1)
    await first.close()
    with pytest.raises(StoreError, match=r"has partitions=4, not 1: give that number"):
        await Scheduler(url).submit("job", 1)
    with pytest.raises(ConfigError, match="for Redis only"):
        Scheduler("memory://", partitions=2)


async def test_a_node_works_through_all_partitions() -> None:
    app = Scheduler(empty_redis(), partitions=COUNT, scan_interval=30)

    @app.task
    async def double(number: int) -> int:
        return 2 * number

    async with app:
        handles = [await double.submit(number) for number in range(50)]
        assert [await handle.result(20) for handle in handles] == [2 * number for number in range(50)]
        late = await double.options(delay=0.1).submit(21)
        assert await late.result(20) == 42
        assert await app.audit() == []


async def test_pruning_goes_on_while_there_is_more(bench: Bench) -> None:
    await bench.submit_many(60)
    for _ in range(10):
        for grant in await bench.claim(50):
            await bench.end(Succeeded(grant.lease))
    bench.clock.advance(8 * 86_400)
    assert await duties.prune(bench.store, 10) == 0, "again, at once"
    while await duties.prune(bench.store, 10) == 0:
        continue
    assert (await bench.store.queries.stats()).statuses[Status.SUCCESS] == 0


async def test_dependants_in_a_partition_that_is_away_hold_up_no_other(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    (up,), downs = ids_in(0, 1), [ids_in(place, 60) for place in (1, 2, 3)]
    await bench.submit(up)
    for names in downs:
        await bench.store.tasks.submit([bench.spec(name, depends_on=(up,)) for name in names])
    (grant,) = await bench.claim(1)
    await bench.end(Succeeded(grant.lease))
    store: Any = bench.store
    honest, calls = store.core.run, []

    async def cut_off(name: str, prefix: str, *args: Any, **options: Any) -> Any:
        if name == "resolve" and prefix == store.core.layout.parts[2]:
            calls.append(name)
            raise StoreUnavailable("partition 2 is away")
        return await honest(name, prefix, *args, **options)

    monkeypatch.setattr(store.core, "run", cut_off)
    assert await duties.propagate(store, 100, Bus()) is None
    assert len(calls) == 1, "it was asked again in vain"
    assert (await store.queries.stats()).statuses[Status.READY] == 120
    (entry,) = await store.tasks.outbox(10)
    assert sorted(entry.dependants) == sorted(downs[1])
    with pytest.raises(StoreUnavailable, match="partition"):
        await duties.propagate(store, 100, Bus())
    monkeypatch.undo()
    await wait_until(lambda: store.core.reach.has(store.core.layout.parts[2]), what="it is noticed that it is back")
    await duties.propagate(store, 100, Bus())
    assert (await store.queries.stats()).statuses[Status.READY] == 180
    assert await store.tasks.outbox(10) == []


async def test_many_are_steered_in_all_partitions(bench: Bench) -> None:
    ids = await bench.submit_many(300, delay=60_000)
    ups, downs = ids[:100], [f"{up}-down" for up in ids[:100]]
    specs = [bench.spec(down, depends_on=(up,)) for up, down in zip(ups, downs, strict=True)]
    await bench.store.tasks.submit(specs)
    assert set(await bench.store.operators.cancel(ids, False)) == {Status.PENDING}
    await bench.propagate()
    assert (await bench.store.queries.stats()).statuses[Status.CANCELLED] == 400
    assert {each.upstream for each in await bench.store.operators.retry([*ids, *downs])} == {""}
    statuses = (await bench.store.queries.stats()).statuses
    assert (statuses[Status.READY], statuses[Status.BLOCKED]) == (300, 100)
    assert await bench.store.operators.delete(downs[:2]) == [Status.BLOCKED] * 2


async def test_wake_lists_of_queues_that_are_not_used_any_more_go_by_themselves() -> None:
    url = empty_redis()
    app = Scheduler(url, partitions=COUNT)
    await app.submit("job", 1, queue="mail")
    server, wake = shared_server(), f"{Layout('scheduler').root}wake:mail"
    await wait_until(lambda: server.command("TTL", wake) > 0)
    assert server.command("LLEN", wake) == 1
    await app.close()


# --- lists by an index


@pytest.mark.parametrize("partitions", [16, PARTITIONS_MAX])
async def test_an_indexed_list_over_many_partitions_has_every_task_once(partitions: int) -> None:
    """Also where there are more partitions than one page could look at in large steps."""
    bench = open_bench(partitions=partitions)
    await bench.store.open()
    await bench.store.operators.index(True)
    ids = [each for start in range(0, 6000, 1000) for each in await bench.submit_many(1000, f"t{start}-")]
    found: list[str] = []
    cursor, pages = None, 0
    while cursor is not None or not pages:
        page, cursor = await bench.store.queries.page(Query(limit=1000, cursor=cursor))
        found += [record.id for record in page]
        pages += 1
        assert page, "a page goes on"
    assert sorted(found) == sorted(ids)
    assert pages <= 20
    await bench.store.close()


async def test_a_removed_task_keeps_nothing_back_in_an_indexed_list(bench: Bench) -> None:
    await bench.store.operators.index(True)
    old, new, newest = ids_in(0, 1)[0], *ids_in(1, 2)
    for task_id in (old, new, newest):
        await bench.submit(task_id)
        bench.clock.advance(1)
    shared_server().command("DEL", f"{Layout('test', COUNT).parts[1]}task:{newest}")
    try:
        assert await bench.walk() == [new, old]
    finally:
        await bench.store.operators.mend()
