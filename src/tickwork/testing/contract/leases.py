"""Who may write to a task, and how it is taken back from a worker that is gone."""

from __future__ import annotations

import pytest

from tickwork.model.members import Worker
from tickwork.model.outcomes import Aborted, Failed, Outcome, Released, Snoozed, Stopped, Succeeded
from tickwork.model.policy import Policy
from tickwork.model.tasks import Lease, Record, Status
from tickwork.store.contract import Reclaimed
from tickwork.testing.contract.bench import OUTCOMES, Bench

LEASE, RENEW = Policy().lease_ttl, Policy().renew_interval
SILENCE = (LEASE - RENEW) / 1000  # seconds without any sign of life that the store takes for normal
ALL_OUTCOMES = pytest.mark.parametrize("kind", list(OUTCOMES))
EVERY_LOSS = pytest.mark.parametrize("loss", ["reclaimed", "claimed by another", "retried by hand", "deleted", "other"])


async def lose(bench: Bench, lease: Lease, loss: str) -> None:
    """Make a lease stale."""
    if loss in ("reclaimed", "claimed by another"):
        assert (await bench.store.tasks.reclaim(10, gone=("w1",))).ids == [lease.id]
        if loss == "claimed by another":
            assert await bench.claimed_ids(worker="w2") == [lease.id]
    elif loss == "retried by hand":
        await bench.end(Aborted(lease, "boom"))
        await bench.retry(lease.id)
    elif loss == "deleted":
        await bench.end(Succeeded(lease))
        await bench.delete(lease.id)
    else:  # the same worker got it once more
        await bench.end(Released(lease))
        assert await bench.claimed_ids(worker="w1") == [lease.id]


async def snapshot(bench: Bench) -> tuple[Record | None, list[str]]:
    return await bench.store.queries.get("it"), await bench.facts()


# --- stale leases


@EVERY_LOSS
@ALL_OUTCOMES
async def test_no_outcome_with_a_stale_lease_changes_anything(bench: Bench, loss: str, kind: str) -> None:
    lease = await bench.start("it")
    await lose(bench, lease, loss)
    before = await snapshot(bench)
    assert await bench.end(OUTCOMES[kind](lease)) == "lost"
    assert await snapshot(bench) == before


@EVERY_LOSS
async def test_a_stale_lease_cannot_be_extended(bench: Bench, loss: str) -> None:
    lease = await bench.start("it")
    await lose(bench, lease, loss)
    before = await snapshot(bench)
    assert await bench.store.tasks.extend([lease], 1_000_000) == ["lost"]
    assert await snapshot(bench) == before


@EVERY_LOSS
async def test_nothing_is_noted_with_a_stale_lease(bench: Bench, loss: str) -> None:
    lease = await bench.start("it")
    await lose(bench, lease, loss)
    before = await snapshot(bench)
    assert await bench.store.tasks.note(lease, 0.5, "half", ["line"]) is False
    assert await snapshot(bench) == before


@pytest.mark.parametrize("wrong", ["fence", "nonce", "both"])
async def test_a_lease_must_match_fence_and_nonce(bench: Bench, wrong: str) -> None:
    lease = await bench.start("it")
    fence = lease.fence if wrong == "nonce" else lease.fence + 1
    nonce = lease.nonce if wrong == "fence" else "forged"
    forged = Lease("it", fence, nonce)
    assert await bench.store.tasks.extend([forged], 1000) == ["lost"]
    assert await bench.store.tasks.note(forged, 1.0, "", []) is False
    assert await bench.end(Succeeded(forged)) == "lost"
    assert await bench.status("it") is Status.RUNNING


async def test_the_holder_after_a_loss_can_finish(bench: Bench) -> None:
    await lose(bench, await bench.start("it"), "reclaimed")
    (grant,) = await bench.claim(worker="w2")
    assert await bench.end(Succeeded(grant.lease, b"2")) == "done"
    assert (await bench.record("it")).result == b"2"


async def test_a_batch_is_judged_one_by_one(bench: Bench) -> None:
    await bench.submit_many(4)
    a, b, c, d = (grant.lease for grant in await bench.claim(4))
    await bench.end(Succeeded(b))
    outcomes: list[Outcome] = [
        Succeeded(a),
        Succeeded(b),
        Succeeded(Lease(c.id, 1, "forged")),
        Failed(d, "boom", 10),
        Aborted(d, "x"),
    ]
    done = await bench.store.tasks.finish(outcomes)
    assert [(verdict.kind, verdict.status) for verdict in done.verdicts] == [
        ("done", Status.SUCCESS),
        ("already", Status.SUCCESS),
        ("lost", None),
        ("done", Status.RETRYING),
        ("already", Status.RETRYING),
    ]
    assert await bench.status(c.id) is Status.RUNNING


async def test_a_finish_of_nothing_may_claim(bench: Bench) -> None:
    await bench.submit("it")
    done = await bench.store.tasks.finish([], bench.new_claim())
    assert done.verdicts == []
    assert done.claimed is not None
    assert [grant.spec.id for grant in done.claimed.grants] == ["it"]


# --- sent twice


@ALL_OUTCOMES
async def test_a_finish_sent_twice_is_already_done(bench: Bench, kind: str) -> None:
    lease = await bench.start("it")
    outcome = OUTCOMES[kind](lease)
    assert await bench.end(outcome) == "done"
    before = await snapshot(bench)
    (verdict,) = (await bench.store.tasks.finish([outcome])).verdicts
    assert (verdict.kind, verdict.status) == ("already", before[0].status if before[0] else None)
    assert await snapshot(bench) == before


async def test_a_finish_and_claim_sent_twice_gives_the_same_batch(bench: Bench) -> None:
    lease = await bench.start("it")
    await bench.submit_many(4)
    claim = bench.new_claim(2)
    first = await bench.store.tasks.finish([Succeeded(lease)], claim)
    again = await bench.store.tasks.finish([Succeeded(lease)], claim)
    assert again.verdicts[0].kind == "already"
    assert again.claimed == first.claimed
    assert (await bench.store.queries.stats()).statuses[Status.RUNNING] == 2


async def test_a_claim_sent_twice_gets_the_same_batch_in_the_same_order(bench: Bench) -> None:
    bench.together()
    for task_id, priority, queue in (("d", 1, "a"), ("b", 10, "b"), ("c", 5, "b"), ("e", 1, "b"), ("a", 10, "a")):
        await bench.submit(task_id, priority=priority, queue=queue)
    first = await bench.claim(5, queues=("a", "b"), nonce="same")
    assert [grant.spec.id for grant in first] == ["a", "b", "c", "d", "e"]
    assert await bench.claim(5, queues=("a", "b"), nonce="same") == first
    assert (await bench.facts()).count("task.claimed") == 5


async def test_a_claim_sent_twice_takes_nothing_that_came_in_between(bench: Bench) -> None:
    await bench.submit("first")
    first = await bench.claim(5, nonce="same")
    await bench.submit("second")
    assert await bench.claim(5, nonce="same") == first
    assert await bench.status("second") is Status.READY


async def test_an_empty_claim_sent_twice_is_empty_twice(bench: Bench) -> None:
    assert await bench.claim(5, nonce="same") == []
    await bench.submit("it")
    assert await bench.claim(5, nonce="same") == []
    assert [grant.spec.id for grant in await bench.claim(5, nonce="next")] == ["it"]


async def test_the_last_claim_of_each_turn_may_be_sent_again(bench: Bench) -> None:
    await bench.submit_many(8)
    first = await bench.claim(2, nonce="n1", turn=0)
    for number in range(3):  # the other turn goes on meanwhile, as often as it likes
        other = await bench.claim(2 if number == 0 else 1, nonce=f"n{number + 2}", turn=1)
    assert await bench.claim(2, nonce="n1", turn=0) == first
    assert await bench.claim(1, nonce="n4", turn=1) == other
    assert (await bench.facts()).count("task.claimed") == 6


async def test_a_turn_knows_its_own_nonces_only(bench: Bench) -> None:
    await bench.submit_many(2)
    (first,) = await bench.claim(1, nonce="same", turn=0)
    (second,) = await bench.claim(1, nonce="same", turn=1)
    assert first.spec.id != second.spec.id


async def test_a_claim_sent_again_gives_only_what_still_runs(bench: Bench) -> None:
    await bench.submit_many(3)
    first = await bench.claim(3, nonce="same")
    await bench.end(Succeeded(first[1].lease))
    assert await bench.claim(3, nonce="same") == [first[0], first[2]]


async def test_a_claim_sent_again_does_not_give_what_was_taken_back(bench: Bench) -> None:
    await bench.submit("it")
    await bench.claim(nonce="same")
    await bench.store.tasks.reclaim(10, gone=("w1",))
    assert await bench.claim(nonce="same") == []
    assert await bench.claimed_ids(worker="w2") == ["it"]
    assert await bench.claim(nonce="same") == []


async def test_a_nonce_counts_for_its_own_worker_only(bench: Bench) -> None:
    bench.together()
    await bench.submit_many(2)
    first = await bench.claim(1, worker="w1", nonce="same")
    second = await bench.claim(1, worker="w2", nonce="same")
    assert [grant.spec.id for grant in first + second] == ["t0", "t1"]


# --- fences


async def test_fences_only_grow(bench: Bench) -> None:
    """Over every way in which a task can come to run again, also within one millisecond and with the clock set back."""
    fences: list[int] = []

    async def take() -> Lease:
        (grant,) = await bench.claim()
        assert grant.spec.id == "it"
        fences.append(grant.lease.fence)
        return grant.lease

    await bench.submit("it")
    await bench.end(Released(await take()))
    await bench.end(Failed(await take(), "boom", 0))
    await bench.end(Snoozed(await take(), delay=0))
    await take()
    await bench.store.tasks.reclaim(10, gone=("w1",))
    await bench.end(Succeeded(await take()))
    await bench.retry("it")
    bench.clock.advance(-3600)
    await bench.end(Aborted(await take(), "boom"))
    await bench.retry("it")
    bench.clock.advance(7200)
    await bench.end(Stopped(await take()))
    await bench.retry("it")
    await take()
    assert fences == sorted(set(fences)), "strictly growing"
    assert (await bench.record("it")).fence >= fences[-1]


@pytest.mark.parametrize("loss", ["reclaimed", "retried by hand"])
async def test_the_fence_moves_on_as_soon_as_the_lease_is_void(bench: Bench, loss: str) -> None:
    lease = await bench.start("it")
    await lose(bench, lease, loss)
    assert (await bench.record("it")).fence > lease.fence


# --- extend


async def test_extend_keeps_a_lease(bench: Bench) -> None:
    lease = await bench.start("it")
    for _ in range(10):
        bench.clock.advance(10)
        assert await bench.store.tasks.extend([lease], 30_000) == ["held"]
        assert (await bench.store.tasks.reclaim(10)).ids == []
    assert (await bench.record("it")).lease_until == bench.clock.now() + 30_000


async def test_extend_saves_a_lease_that_ran_out_but_was_not_taken(bench: Bench) -> None:
    lease = await bench.start("it")
    await bench.pass_time(31)
    assert await bench.store.tasks.extend([lease], 30_000) == ["held"]
    assert (await bench.store.tasks.reclaim(10)).ids == []


async def test_extend_answers_each_in_order(bench: Bench) -> None:
    bench.together()
    await bench.submit_many(3)
    a, b, c = (grant.lease for grant in await bench.claim(3))
    await bench.cancel("t1", True)
    await bench.end(Succeeded(c))
    assert await bench.store.tasks.extend([c, b, a, Lease("nobody", 1, "n")], 1000) == [
        "lost",
        "cancel",
        "held",
        "lost",
    ]
    assert await bench.store.tasks.extend([], 1000) == []


async def test_extend_tells_of_a_cancel_and_still_renews(bench: Bench) -> None:
    lease = await bench.start("it")
    await bench.cancel("it", True)
    bench.clock.advance(10)
    assert await bench.store.tasks.extend([lease], 30_000) == ["cancel"]
    assert (await bench.record("it")).lease_until == bench.clock.now() + 30_000


async def test_extend_can_give_a_long_lease(bench: Bench) -> None:
    lease = await bench.start("it")
    await bench.store.tasks.extend([lease], 3_600_000)
    await bench.pass_time(600)
    assert (await bench.store.tasks.reclaim(10)).ids == []


async def test_extend_can_shorten_a_lease(bench: Bench) -> None:
    await bench.start("it")
    lease = await bench.start("other")
    assert await bench.store.tasks.extend([lease], 1_000) == ["held"]
    bench.clock.advance(1)
    assert (await bench.store.tasks.reclaim(10)).ids == ["other"]


async def test_each_claim_brings_its_own_lease_time(bench: Bench) -> None:
    bench.together()
    await bench.submit_many(2)
    await bench.claim(lease_ttl=5000, worker="short")
    await bench.claim(lease_ttl=60_000, worker="long")
    await bench.pass_time(6)
    assert (await bench.store.tasks.reclaim(10)).ids == ["t0"]


# --- reclaim


async def test_a_lease_holds_to_its_last_millisecond(bench: Bench) -> None:
    await bench.start("it")
    await bench.pass_time(25)
    bench.clock.advance(4.999)
    assert (await bench.store.tasks.reclaim(10)).ids == []
    bench.clock.advance(0.001)
    assert (await bench.store.tasks.reclaim(10)).ids == ["it"]


async def test_a_loss_gives_the_attempt_back_and_counts(bench: Bench) -> None:
    await bench.start("it")
    await bench.pass_time(30)
    await bench.store.tasks.reclaim(10)
    record = await bench.record("it")
    assert (record.status, record.attempt, record.losses, record.lease_until) == (Status.READY, 0, 1, 0)
    assert record.last_error is not None
    assert "w1" in record.last_error
    (grant,) = await bench.claim(worker="w2")
    assert (grant.attempt, grant.losses) == (1, 1)


async def test_a_worker_that_still_beats_was_cut_off_and_that_is_no_loss(bench: Bench) -> None:
    """It could not renew its lease in time. Nothing has died of the task, so it is run again however often that is."""
    for number in range(Policy().max_losses + 1):
        await bench.store.members.beat(Worker(id="w1"))
        if number:
            assert await bench.claimed_ids() == ["it"]
        else:
            await bench.start("it")
        for _ in range(7):
            await bench.pass_time(5)
            await bench.store.members.beat(Worker(id="w1"))
        assert await bench.store.tasks.reclaim(10) == Reclaimed(["it"], [])
        record = await bench.record("it")
        assert (record.status, record.attempt, record.losses) == (Status.READY, 0, 0)
        assert record.last_error is not None
        assert record.last_error.startswith("worker w1 was cut off")
    await bench.claim(worker="w2")
    await bench.store.tasks.reclaim(10, gone=("w2",))
    assert (await bench.record("it")).losses == 1, "one that is gone is a loss"


async def test_losses_and_attempts_are_never_mixed(bench: Bench) -> None:
    await bench.end(Failed(await bench.start("it"), "boom", 0))
    await bench.claim()
    await bench.store.tasks.reclaim(10, gone=("w1",))
    (grant,) = await bench.claim()
    assert (grant.attempt, grant.losses) == (2, 1)
    await bench.end(Snoozed(grant.lease))
    record = await bench.record("it")
    assert (record.attempt, record.losses) == (1, 1)


@pytest.mark.parametrize(
    ("policy", "end"),
    [(Policy(max_losses=3), Status.DEAD), (Policy(max_losses=3, dlq=False), Status.FAILED)],
    ids=["dlq", "dlq-off"],
)
async def test_a_task_that_loses_too_many_workers_is_not_run_again(bench: Bench, policy: Policy, end: Status) -> None:
    await bench.submit("poison")
    for number in range(3):
        assert await bench.status("poison") is Status.READY
        await bench.claim(worker=f"victim-{number}")
        await bench.store.tasks.reclaim(10, gone=(f"victim-{number}",), why="killed by signal 9")
    record = await bench.record("poison")
    assert (record.status, record.losses, record.attempt) == (end, 3, 0)
    assert record.finished_at == bench.clock.now()
    assert record.last_error is not None
    for word in ("victim-2", "killed by signal 9", "3"):
        assert word in record.last_error
    assert await bench.claimed_ids() == []


@pytest.mark.parametrize("policy", [Policy(max_losses=1)], ids=["one"])
async def test_with_max_losses_of_one_the_first_loss_is_the_last(bench: Bench, policy: Policy) -> None:
    await bench.start("it")
    assert (await bench.store.tasks.reclaim(10, gone=("w1",))).ids == ["it"]
    assert await bench.status("it") is Status.DEAD


async def test_retry_by_hand_forgets_the_losses(bench: Bench) -> None:
    await bench.submit("it")
    for _ in range(3):
        await bench.claim()
        await bench.store.tasks.reclaim(10, gone=("w1",))
    assert await bench.retry("it") is Status.DEAD
    await bench.claim()
    await bench.store.tasks.reclaim(10, gone=("w1",))
    assert await bench.status("it") is Status.READY


async def test_reclaim_takes_no_more_than_its_limit_oldest_lease_first(bench: Bench) -> None:
    bench.together()
    for number in range(12):  # t9 comes before t10 in time, not in the alphabet
        await bench.submit(f"t{number}")
        await bench.claim()
        await bench.pass_time(0.5)
    await bench.pass_time(40)
    assert (await bench.store.tasks.reclaim(10)).ids == [f"t{number}" for number in range(10)]
    assert (await bench.store.tasks.reclaim(10)).ids == ["t10", "t11"]
    assert (await bench.store.tasks.reclaim(10)).ids == []


@pytest.mark.parametrize("gone", [(), ("w1",)], ids=["expired", "gone"])
async def test_leases_that_ran_out_together_are_taken_back_by_id(bench: Bench, gone: tuple[str, ...]) -> None:
    bench.together()
    ids = sorted(await bench.submit_many(12))
    assert ids[1:3] == ["t1", "t10"], "not the order of submits"
    await bench.claim(12)
    await bench.pass_time(0 if gone else 31)
    assert (await bench.store.tasks.reclaim(100, gone)).ids == ids
    assert await bench.claimed_ids(20) == ids


async def test_a_renewed_lease_is_as_old_as_its_new_end(bench: Bench) -> None:
    bench.together()
    await bench.submit_many(3)
    leases = [grant.lease for grant in await bench.claim(3)]
    await bench.pass_time(5)
    await bench.store.tasks.extend([leases[1], leases[0]], 30_000)
    await bench.pass_time(40)
    assert (await bench.store.tasks.reclaim(10)).ids == ["t2", "t0", "t1"]


async def test_the_work_of_a_gone_worker_is_taken_back_at_once(bench: Bench) -> None:
    bench.together()
    await bench.submit_many(3)
    await bench.claim(2, worker="dead")
    await bench.claim(1, worker="alive")
    await bench.store.members.beat(Worker(id="dead"))
    await bench.store.members.beat(Worker(id="alive"))
    taken = await bench.store.tasks.reclaim(10, gone=("dead",), why="killed by signal 9")
    assert (taken.ids, taken.lost_workers) == (["t0", "t1"], ["dead"])
    assert "killed by signal 9" in ((await bench.record("t0")).last_error or "")
    assert await bench.status("t2") is Status.RUNNING


async def test_the_work_of_gone_workers_is_bounded_by_the_limit(bench: Bench) -> None:
    bench.together()
    await bench.submit_many(12)
    for number in range(12):
        await bench.claim(1, worker=f"w{number % 2}")
    first = (await bench.store.tasks.reclaim(5, gone=("w1", "w0"))).ids
    rest = (await bench.store.tasks.reclaim(100, gone=("w1", "w0"))).ids
    assert len(first) == 5
    assert sorted(first + rest) == sorted(f"t{number}" for number in range(12))


async def test_gone_workers_count_as_lost_once_all_was_taken_back(bench: Bench) -> None:
    """If the caller dies in between, another one finds that there is something to do."""
    bench.together()
    await bench.submit_many(5)
    await bench.store.members.beat(Worker(id="w1", node="n1"))
    await bench.store.members.campaign("n1", 60_000)
    await bench.claim(5)
    assert await bench.store.tasks.reclaim(3, gone=("w1",)) == Reclaimed(["t0", "t1", "t2"], [])
    assert (await bench.store.members.workers())[0].lost_at is None
    assert [(await bench.record(task_id)).losses for task_id in ("t0", "t3")] == [1, 0]
    assert await bench.store.tasks.reclaim(3, gone=("w1",)) == Reclaimed(["t3", "t4"], ["w1"])
    assert (await bench.record("t3")).losses == 1
    assert (await bench.store.members.campaign("n2", 60_000)).id == "n2"


async def test_the_work_of_a_gone_worker_is_found_behind_that_of_many_others(bench: Bench) -> None:
    await bench.submit_many(2010)
    await bench.store.members.beat(Worker(id="dead"))
    for _ in range(2):
        assert len(await bench.claim(1000, worker="alive")) == 1000
        bench.clock.advance(0.001)
    assert len(await bench.claim(10, worker="dead")) == 10
    taken = await bench.store.tasks.reclaim(50, gone=("dead",))
    assert (len(taken.ids), taken.lost_workers) == (10, ["dead"])


async def test_a_gone_worker_that_holds_nothing_and_is_unknown_is_no_error(bench: Bench) -> None:
    taken = await bench.store.tasks.reclaim(10, gone=("nobody",))
    assert (taken.ids, taken.lost_workers) == ([], [])


async def test_a_forced_cancel_is_fulfilled_by_the_loss_of_its_worker(bench: Bench) -> None:
    await bench.start("it")
    await bench.cancel("it", True, "no longer needed")
    await bench.store.tasks.reclaim(10, gone=("w1",))
    record = await bench.record("it")
    assert (record.status, record.message, record.cancel) == (Status.CANCELLED, "no longer needed", False)


# --- the grace after silence


async def test_silence_up_to_the_bound_is_normal(bench: Bench) -> None:
    await bench.submit("it")
    await bench.claim(lease_ttl=10_000)
    bench.clock.advance(SILENCE)
    assert (await bench.store.tasks.reclaim(10)).ids == ["it"]


async def test_after_a_longer_silence_leases_get_one_lease_of_grace(bench: Bench) -> None:
    lease = await bench.start("it")
    bench.clock.advance(3600)
    assert (await bench.store.tasks.reclaim(10)).ids == [], "the store was out of touch: whoever lives may say so"
    await bench.pass_time(LEASE / 1000 - 0.001)
    assert (await bench.store.tasks.reclaim(10)).ids == []
    bench.clock.advance(0.001)
    assert (await bench.store.tasks.reclaim(10)).ids == ["it"]
    assert await bench.end(Succeeded(lease)) == "lost"


async def test_one_millisecond_over_the_bound_is_a_silence(bench: Bench) -> None:
    await bench.submit("it")
    await bench.claim(lease_ttl=10_000)
    bench.clock.advance(SILENCE + 0.001)
    assert (await bench.store.tasks.reclaim(10)).ids == []


@pytest.mark.parametrize("first", ["beat", "claim", "extend", "reclaim"])
async def test_whoever_comes_first_after_a_silence_sets_the_grace(bench: Bench, first: str) -> None:
    await bench.start("it")
    bench.clock.advance(3600)
    match first:
        case "beat":
            await bench.store.members.beat(Worker(id="w2"))
        case "claim":
            await bench.claim(worker="w2")
        case "extend":
            await bench.store.tasks.extend([], 30_000)
        case _:
            await bench.store.tasks.reclaim(10)
    if bench.store.capabilities.partitions > 1:
        await bench.witness()  # each partition knows only of the calls that reach it
    await bench.pass_time(29)
    assert (await bench.store.tasks.reclaim(10)).ids == []
    await bench.pass_time(1)
    assert (await bench.store.tasks.reclaim(10)).ids == ["it"]


async def test_who_speaks_up_in_the_grace_keeps_the_task(bench: Bench) -> None:
    lease = await bench.start("it")
    bench.clock.advance(3600)
    await bench.store.tasks.reclaim(10)
    assert await bench.store.tasks.extend([lease], 30_000) == ["held"]
    await bench.pass_time(25)
    assert await bench.store.tasks.extend([lease], 30_000) == ["held"]
    await bench.pass_time(25)
    assert (await bench.store.tasks.reclaim(10)).ids == []
    assert await bench.end(Succeeded(lease)) == "done"


async def test_a_clock_set_back_brings_a_grace(bench: Bench) -> None:
    await bench.submit("it")
    await bench.claim(lease_ttl=1000)
    await bench.pass_time(2)
    bench.clock.advance(-0.001)
    assert (await bench.store.tasks.reclaim(10)).ids == []
    await bench.pass_time(29)
    assert (await bench.store.tasks.reclaim(10)).ids == []
    await bench.pass_time(1)
    assert (await bench.store.tasks.reclaim(10)).ids == ["it"]


HOUR = 3600


async def test_a_clock_set_back_keeps_nobodys_task_for_longer_than_its_lease(bench: Bench) -> None:
    """It ran an hour ahead, and is put right. Whoever died just before is noticed as at any other time."""
    await bench.store.members.beat(Worker(id="w1"))
    lease = await bench.start("it")
    bench.clock.advance(-HOUR)
    assert await bench.store.tasks.reclaim(10) == Reclaimed([], [])
    await bench.pass_time(29)
    assert await bench.store.tasks.reclaim(10) == Reclaimed([], [])
    assert (await bench.record("it")).lease_until == bench.clock.now() + 1000
    await bench.pass_time(1)
    assert await bench.store.tasks.reclaim(10) == Reclaimed(["it"], ["w1"])
    assert await bench.end(Succeeded(lease)) == "lost"


async def test_who_renews_after_the_clock_was_set_back_keeps_its_task(bench: Bench) -> None:
    await bench.submit_many(2)
    short, long = [(await bench.claim(lease_ttl=ttl, worker="w1"))[0].lease for ttl in (30_000, 120_000)]
    bench.clock.advance(-HOUR)
    assert await bench.store.tasks.extend([short], 30_000) == ["held"]
    await bench.pass_time(29)
    assert (await bench.store.tasks.reclaim(10)).ids == []
    await bench.pass_time(70)
    assert (await bench.store.tasks.reclaim(10)).ids == [short.id], "a longer lease keeps what it had left"
    assert await bench.store.tasks.extend([long], 30_000) == ["held"]


async def test_members_that_were_lost_stay_so_when_the_clock_is_set_back(bench: Bench) -> None:
    await bench.store.members.beat(Worker(id="gone"))
    await bench.store.members.beat(Worker(id="there"))
    await bench.store.tasks.reclaim(10, gone=("gone",))
    before = {worker.id: worker.expires_at for worker in await bench.store.members.workers()}
    bench.clock.advance(-HOUR)
    await bench.store.tasks.reclaim(10)
    after = {worker.id: worker.expires_at for worker in await bench.store.members.workers()}
    assert after == {"gone": before["gone"], "there": before["there"] - HOUR * 1000}


async def test_a_gone_worker_has_no_grace(bench: Bench) -> None:
    await bench.start("it")
    await bench.store.members.beat(Worker(id="w1"))
    bench.clock.advance(3600)
    taken = await bench.store.tasks.reclaim(10, gone=("w1",))
    assert (taken.ids, taken.lost_workers) == (["it"], ["w1"])


async def test_in_the_grace_no_worker_counts_as_lost(bench: Bench) -> None:
    await bench.store.members.beat(Worker(id="w1"))
    bench.clock.advance(3600)
    assert (await bench.store.tasks.reclaim(10)).lost_workers == []
    await bench.pass_time(30)
    assert (await bench.store.tasks.reclaim(10)).lost_workers == ["w1"]


# --- lost workers


async def test_a_silent_worker_is_lost_once(bench: Bench) -> None:
    await bench.store.members.beat(Worker(id="w1", running=3))
    await bench.pass_time(29)
    assert (await bench.store.tasks.reclaim(10)).lost_workers == []
    await bench.pass_time(1)
    assert (await bench.store.tasks.reclaim(10)).lost_workers == ["w1"]
    assert (await bench.store.tasks.reclaim(10)).lost_workers == []
    lost = next(worker for worker in await bench.store.members.workers() if worker.id == "w1")
    assert (lost.status, lost.lost_at, lost.running) == ("offline", bench.clock.now(), 0)


async def test_several_lost_workers_are_named_in_order(bench: Bench) -> None:
    for name in ("w2", "w3", "w1"):
        await bench.store.members.beat(Worker(id=name))
    await bench.pass_time(30)
    assert (await bench.store.tasks.reclaim(10)).lost_workers == ["w1", "w2", "w3"]


async def test_a_loss_is_written_in_the_log(bench: Bench) -> None:
    await bench.store.members.beat(Worker(id="w1"))
    await bench.pass_time(30)
    await bench.store.tasks.reclaim(10)
    await bench.store.tasks.reclaim(10)
    assert [event.kind for event in await bench.events() if event.id == "w1"] == ["worker.joined", "worker.lost"]


async def test_a_lost_worker_that_beats_again_joins_again(bench: Bench) -> None:
    await bench.store.members.beat(Worker(id="w1"))
    await bench.store.tasks.reclaim(10, gone=("w1",))
    assert (await bench.store.queries.stats()).workers == 0
    await bench.store.members.beat(Worker(id="w1"))
    assert (await bench.store.queries.stats()).workers == 1
    (back,) = await bench.store.members.workers()
    assert (back.status, back.lost_at) == ("idle", None)
    kinds = [event.kind for event in await bench.events() if event.id == "w1"]
    assert kinds == ["worker.joined", "worker.lost", "worker.joined"]


async def test_a_worker_that_beats_is_never_lost(bench: Bench) -> None:
    for _ in range(20):
        await bench.store.members.beat(Worker(id="w1"))
        await bench.pass_time(10)
        assert (await bench.store.tasks.reclaim(10)).lost_workers == []


async def test_a_blank_lease_is_nobodys(bench: Bench) -> None:
    await bench.submit("it")
    assert await bench.end(Succeeded(Lease("it", 0, ""))) == "lost"


async def lose_all(bench: Bench, worker: str, count: int) -> None:
    """A worker takes as many tasks as it can get, and dies."""
    assert len(await bench.claim(50, worker)) == count
    await bench.store.tasks.reclaim(50, gone=(worker,))


async def test_of_suspects_a_worker_gets_one_at_a_time(bench: Bench) -> None:
    bench.together()
    await bench.submit_many(4)
    await lose_all(bench, "w1", 4)
    await lose_all(bench, "w2", 4)
    await bench.submit_many(2, "new")
    first = await bench.claim(50, "w3")
    assert [grant.spec.id for grant in first] == ["t0", "new0", "new1"], "what is not to blame goes on"
    assert await bench.claimed_ids(worker="w3") == []
    assert await bench.claimed_ids(worker="w4") == ["t1"], "another worker may try the next one"
    assert await bench.end(Succeeded(first[0].lease)) == "done"
    assert await bench.claimed_ids(worker="w3") == ["t2"]


async def test_workers_of_one_process_run_one_suspect(bench: Bench) -> None:
    """They go down together, so two suspects would go down together, too."""
    bench.together()
    await bench.submit_many(4)
    await lose_all(bench, "w1", 4)
    await lose_all(bench, "w2", 4)
    first = await bench.claim(50, "n-1", node="n")
    assert [grant.spec.id for grant in first] == ["t0"]
    assert await bench.claimed_ids(worker="n-2", node="n") == []
    assert await bench.claimed_ids(worker="n-1", node="n") == []
    assert await bench.claimed_ids(worker="m-1", node="m") == ["t1"], "another process may try the next one"
    assert await bench.end(Succeeded(first[0].lease)) == "done"
    assert await bench.claimed_ids(worker="n-2", node="n") == ["t2"]
    assert await bench.claimed_ids(worker="n-1", node="n") == []
    await bench.store.tasks.reclaim(50, gone=("n-2",))
    assert await bench.claimed_ids(worker="n-1", node="n") == ["t3"], "what was taken back is no longer its own"


async def test_a_process_is_not_a_worker_of_the_same_name(bench: Bench) -> None:
    bench.together()
    await bench.submit_many(2)
    await lose_all(bench, "w1", 2)
    await lose_all(bench, "w2", 2)
    assert await bench.claimed_ids(worker="n") == ["t0"], "a worker without a node is a process of its own"
    assert await bench.claimed_ids(worker="n", node="m") == ["t1"]


async def test_a_process_that_left_leaves_no_suspect_behind(bench: Bench) -> None:
    bench.together()
    await bench.submit_many(2)
    await lose_all(bench, "w1", 2)
    await lose_all(bench, "w2", 2)
    await bench.store.members.beat(Worker(id="n-1", node="n"))
    assert await bench.claimed_ids(worker="n-1", node="n") == ["t0"]
    await bench.store.members.leave("n-1")
    assert await bench.claimed_ids(worker="n-2", node="n") == ["t1"]


async def test_only_the_one_that_is_to_blame_becomes_a_dead_letter(bench: Bench) -> None:
    await bench.submit("poison")
    await bench.submit_many(5)
    for worker in ("w1", "w2"):
        await lose_all(bench, worker, 6)
    for number in range(6):
        worker = f"next{number}"
        (grant,) = await bench.claim(50, worker)
        if grant.spec.id == "poison":
            await bench.store.tasks.reclaim(50, gone=(worker,))
        else:
            await bench.end(Succeeded(grant.lease))
    assert await bench.status("poison") is Status.DEAD
    assert (await bench.store.queries.stats()).statuses[Status.SUCCESS] == 5
