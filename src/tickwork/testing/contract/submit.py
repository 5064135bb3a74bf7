"""What may be submitted, twice or with a key or behind others, and what the receipt says."""

from __future__ import annotations

import asyncio
from typing import Any, cast

import pytest

from tickwork.backoff import CustomRetry, ExponentialBackoff
from tickwork.model.outcomes import Aborted, Succeeded
from tickwork.model.policy import Policy
from tickwork.model.tasks import History, Spec, Status
from tickwork.store.contract import SUBMIT_MAX, BlockingTasks, OutboxEntry, Receipt
from tickwork.testing.contract.bench import Bench

# --- ids and nonces


async def test_the_same_submit_sent_twice_creates_one_task(bench: Bench) -> None:
    spec = bench.spec("it")
    assert await bench.store.tasks.submit([spec]) == [Receipt("it", "created")]
    assert await bench.store.tasks.submit([spec]) == [Receipt("it", "created")]
    assert await bench.facts("it") == ["task.submitted"]
    assert await bench.claimed_ids() == ["it"]


async def test_another_submit_of_the_same_id_is_refused(bench: Bench) -> None:
    await bench.submit("it", payload=b"1")
    assert await bench.submit("it", payload=b"2") == Receipt("it", "exists")
    assert (await bench.record("it")).spec.payload == b"1"


@pytest.mark.parametrize("status", [Status.RUNNING, Status.SUCCESS, Status.DEAD, Status.CANCELLED], ids=str)
async def test_a_late_copy_of_a_submit_does_not_run_it_again(bench: Bench, status: Status) -> None:
    await bench.bring(status, nonce="mine")
    assert (await bench.submit("it", nonce="mine")).verdict == "created"
    assert (await bench.submit("it", nonce="other")).verdict == "exists"
    assert await bench.status("it") is status


OPTIONS: list[dict[str, Any]] = [
    {}, {"queue": "mail", "priority": 10, "key": "k", "tags": {"a": "b"}}, {"delay": 1000}, {"payload": b"x" * 100_000},
    {"dedup_key": "k", "dedup_ttl": 1000}, {"depends_on": ("up",)}, {"depends_on": ("nobody",)},
]  # fmt: skip


@pytest.mark.parametrize("options", OPTIONS, ids=lambda options: ", ".join(options) or "plain")
async def test_a_submit_that_blocks_is_a_submit_or_leaves_it_to_one(bench: Bench, options: dict[str, Any]) -> None:
    """`submit` with the same spec must be right whatever became of `submit_blocking`."""
    bench.together()
    if not bench.store.capabilities.blocking_submits:
        return
    await bench.submit("up")
    tasks, spec, other = cast("BlockingTasks", bench.store.tasks), bench.spec("it", **options), bench.spec("it")
    is_orphan = "nobody" in spec.depends_on
    expected = Receipt("it", "orphan", "nobody") if is_orphan else Receipt("it", "created")
    assert await asyncio.to_thread(tasks.submit_blocking, spec) in (None, expected)
    assert await bench.store.tasks.submit([spec]) == [expected]
    assert await bench.facts("it") == ([] if is_orphan else ["task.submitted"])
    if not is_orphan:
        assert (await bench.record("it")).spec == spec
        assert await asyncio.to_thread(tasks.submit_blocking, other) in (None, Receipt("it", "exists"))


async def test_an_id_may_be_used_again_after_delete(bench: Bench) -> None:
    await bench.bring(Status.SUCCESS)
    await bench.delete("it")
    assert (await bench.submit("it")).verdict == "created"
    assert await bench.status("it") is Status.READY


async def test_what_was_asked_is_kept_to_the_last_field(bench: Bench) -> None:
    bench.together()
    await bench.submit("up")
    spec = Spec(
        id="full:1@x",
        type="ns.job",
        nonce="n",
        queue="mail",
        priority=7,
        payload=b"\x00\xff{}",
        serializer="msgpack",
        at=bench.clock.now() + 10,
        max_retry=7,
        timeout=1.5,
        retry=ExponentialBackoff(1, 60, 2.0, jitter=False),
        dedup_key="clé",
        dedup_ttl=5,
        key="customer:1",
        tags={"env": "prod", "ünï": "códe"},
        context={"trace": "00-ab", "depth": 3, "nested": {"a": [1, None, True]}},
        executor="http",
        target="w9",
        depends_on=("up",),
        run_after="end",
        schedule_id="s",
        scheduled_at=5,
        unique="unfinished",
        expires=60_000,
        expires_at=6,
        retention=7,
        workflow="flow",
    )
    await bench.store.tasks.submit([spec])
    assert (await bench.record("full:1@x")).spec == spec


async def test_a_custom_retry_strategy_survives(bench: Bench) -> None:
    await bench.submit("it", retry=CustomRetry((1.0, 5.0)))
    assert (await bench.claim())[0].spec.retry == CustomRetry((1.0, 5.0))


async def test_a_new_record_has_nothing_but_its_beginning(bench: Bench) -> None:
    await bench.submit("it")
    record = await bench.record("it")
    now = bench.clock.now()
    assert (record.submitted_at, record.due_at, record.attempt, record.losses) == (now, now, 0, 0)
    assert (record.started_at, record.finished_at, record.worker_id, record.last_error) == (None, None, None, None)
    assert (record.result, record.progress, record.parked, record.waiting) == (None, None, None, [])
    assert not record.cancel
    assert await bench.store.queries.history("it") == History()


# --- time


@pytest.mark.parametrize("before", [1, 1000, 10**12])
async def test_a_time_in_the_past_is_now(bench: Bench, before: int) -> None:
    await bench.submit("it", at=bench.clock.now() - before)
    assert await bench.status("it") is Status.READY


async def test_this_very_moment_is_now(bench: Bench) -> None:
    bench.together()
    await bench.submit("at", at=bench.clock.now())
    await bench.submit("delay", delay=0)
    assert await bench.claimed_ids() == ["at", "delay"]


async def test_a_time_ahead_waits(bench: Bench) -> None:
    await bench.submit("it", at=bench.clock.now() + 1)
    assert await bench.status("it") is Status.PENDING


async def test_an_absolute_time_goes_before_a_delay(bench: Bench) -> None:
    await bench.submit("it", at=bench.clock.now() - 1, delay=60_000)
    assert await bench.status("it") is Status.READY


# --- dedup keys


async def test_a_dedup_key_refuses_a_second_task_and_names_the_first(bench: Bench) -> None:
    bench.together()
    await bench.submit("first", dedup_key="k", dedup_ttl=1000)
    assert await bench.submit("second", dedup_key="k", dedup_ttl=1000) == Receipt("second", "duplicate", "first")
    assert await bench.status("second") is None
    assert await bench.facts("second") == []


async def test_the_holder_of_a_key_may_be_sent_twice(bench: Bench) -> None:
    bench.together()
    spec = bench.spec("it", dedup_key="k", dedup_ttl=1000)
    await bench.store.tasks.submit([spec])
    assert await bench.store.tasks.submit([spec]) == [Receipt("it", "created")]


async def test_a_dedup_key_lasts_its_ttl_by_the_stores_clock(bench: Bench) -> None:
    bench.together()
    await bench.submit("first", dedup_key="k", dedup_ttl=1000)
    bench.clock.advance(0.999)
    assert (await bench.submit("second", dedup_key="k")).verdict == "duplicate"
    bench.clock.advance(0.001)
    assert (await bench.submit("third", dedup_key="k", dedup_ttl=1000)).verdict == "created"
    assert (await bench.submit("fourth", dedup_key="k")).other == "third"


async def test_every_key_is_free_after_its_ttl_however_many_there_were(bench: Bench) -> None:
    bench.together()
    for number in range(40):
        await bench.submit(f"old{number}", dedup_key=f"k{number}", dedup_ttl=1000)
    bench.clock.advance(2)
    assert (await bench.submit("new", dedup_key="k39", dedup_ttl=1000)).verdict == "created"


async def test_a_refused_duplicate_does_not_renew_the_key(bench: Bench) -> None:
    bench.together()
    await bench.submit("first", dedup_key="k", dedup_ttl=1000)
    bench.clock.advance(0.5)
    await bench.submit("second", dedup_key="k", dedup_ttl=60_000)
    bench.clock.advance(0.5)
    assert (await bench.submit("third", dedup_key="k")).verdict == "created"


async def test_a_key_without_ttl_holds_for_no_time_at_all(bench: Bench) -> None:
    bench.together()
    specs = [bench.spec("a", dedup_key="k"), bench.spec("b", dedup_key="k")]
    assert [receipt.verdict for receipt in await bench.store.tasks.submit(specs)] == ["created", "created"]


@pytest.mark.parametrize("status", [Status.SUCCESS, Status.DEAD, Status.RETRYING, Status.RUNNING], ids=str)
async def test_a_dedup_key_outlives_the_run(bench: Bench, status: Status) -> None:
    bench.together()
    await bench.bring(status, dedup_key="k", dedup_ttl=60_000)
    assert (await bench.submit("again", dedup_key="k")).verdict == "duplicate"


@pytest.mark.parametrize("status", [Status.READY, Status.PENDING, Status.BLOCKED, Status.RETRYING], ids=str)
async def test_a_cancel_frees_the_key(bench: Bench, status: Status) -> None:
    bench.together()
    await bench.bring(status, dedup_key="k", dedup_ttl=3_600_000)
    await bench.cancel("it", False)
    assert (await bench.submit("again", dedup_key="k")).verdict == "created"


async def test_a_forced_cancel_frees_the_key_when_the_run_ends(bench: Bench) -> None:
    bench.together()
    lease = await bench.bring(Status.RUNNING, dedup_key="k", dedup_ttl=60_000)
    await bench.cancel("it", True)
    assert (await bench.submit("early", dedup_key="k")).verdict == "duplicate"
    await bench.end(Aborted(lease, "stopped"))
    assert (await bench.submit("again", dedup_key="k")).verdict == "created"


async def test_a_delete_frees_the_key(bench: Bench) -> None:
    bench.together()
    await bench.bring(Status.SUCCESS, dedup_key="k", dedup_ttl=60_000)
    await bench.delete("it")
    assert (await bench.submit("again", dedup_key="k")).verdict == "created"


@pytest.mark.parametrize("status", [Status.CANCELLED, Status.SUCCESS, Status.DEAD], ids=str)
async def test_a_retry_holds_the_key_for_its_whole_ttl_again(bench: Bench, status: Status) -> None:
    bench.together()
    await bench.bring(status, dedup_key="k", dedup_ttl=1000)
    bench.clock.advance(0.6)
    await bench.retry("it")
    bench.clock.advance(0.999)
    assert await bench.submit("early", dedup_key="k") == Receipt("early", "duplicate", "it")
    bench.clock.advance(0.001)
    assert (await bench.submit("late", dedup_key="k")).verdict == "created"


async def test_a_retry_takes_a_key_that_has_run_out(bench: Bench) -> None:
    bench.together()
    await bench.bring(Status.DEAD, dedup_key="k", dedup_ttl=1000)
    await bench.submit("another", dedup_key="k", dedup_ttl=500)
    bench.clock.advance(5)
    await bench.retry("it")
    assert (await bench.submit("again", dedup_key="k")).other == "it"


async def test_a_retry_goes_on_without_a_key_that_another_holds(bench: Bench) -> None:
    bench.together()
    await bench.bring(Status.CANCELLED, dedup_key="k", dedup_ttl=60_000)
    await bench.submit("other", dedup_key="k", dedup_ttl=1000)
    assert await bench.retry("it") is Status.CANCELLED
    assert await bench.status("it") is Status.READY
    assert (await bench.submit("third", dedup_key="k")).other == "other"
    bench.clock.advance(1)
    assert (await bench.submit("fourth", dedup_key="k")).verdict == "created", "the retry has no claim to it"


async def test_a_retry_to_blocked_takes_the_key_too(bench: Bench) -> None:
    bench.together()
    await bench.bring(Status.BLOCKED, dedup_key="k", dedup_ttl=60_000)
    await bench.cancel("it", False)
    await bench.retry("it")
    assert await bench.status("it") is Status.BLOCKED
    assert (await bench.submit("again", dedup_key="k")).other == "it"


async def test_a_retry_that_changes_nothing_takes_no_key(bench: Bench) -> None:
    bench.together()
    await bench.bring(Status.BLOCKED, dedup_key="k", dedup_ttl=60_000)
    await bench.cancel("it", False)
    assert await bench.retry("it", Status.DEAD) is Status.CANCELLED
    await bench.cancel("upstream", False)
    assert await bench.retry("it") is Status.CANCELLED
    assert await bench.status("it") is Status.CANCELLED
    assert (await bench.submit("again", dedup_key="k")).verdict == "created"


async def test_a_retry_sent_twice_holds_the_key_once(bench: Bench) -> None:
    bench.together()
    await bench.bring(Status.CANCELLED, dedup_key="k", dedup_ttl=1000)
    await bench.retry("it")
    bench.clock.advance(0.9)
    await bench.retry("it")
    bench.clock.advance(0.1)
    assert (await bench.submit("again", dedup_key="k")).verdict == "created"


async def test_the_end_of_an_old_holder_does_not_free_the_new_holders_key(bench: Bench) -> None:
    bench.together()
    await bench.submit("old", dedup_key="k", dedup_ttl=1000)
    bench.clock.advance(1)
    await bench.submit("new", dedup_key="k", dedup_ttl=1000)
    await bench.cancel("old", False)
    await bench.delete("old")
    assert (await bench.submit("third", dedup_key="k")).other == "new"


@pytest.mark.parametrize("policy", [Policy(retention_max=0)], ids=["keep-none"])
async def test_prune_does_not_free_a_key_before_its_time(bench: Bench, policy: Policy) -> None:
    bench.together()
    await bench.bring(Status.SUCCESS, dedup_key="k", dedup_ttl=60_000)
    assert await bench.store.operators.prune(10) == 1
    assert (await bench.submit("again", dedup_key="k")).verdict == "duplicate"
    bench.clock.advance(60)
    assert (await bench.submit("later", dedup_key="k")).verdict == "created"


@pytest.mark.parametrize("policy", [Policy(retention_max=0)], ids=["keep-none"])
async def test_a_later_task_of_the_same_id_does_not_free_the_first_ones_key(bench: Bench, policy: Policy) -> None:
    bench.together()
    await bench.bring(Status.SUCCESS, dedup_key="k", dedup_ttl=60_000)
    await bench.store.operators.prune(10)
    await bench.submit("it")
    await bench.cancel("it", False)
    assert (await bench.submit("again", dedup_key="k")).verdict == "duplicate"
    await bench.delete("it")
    assert (await bench.submit("again", dedup_key="k")).verdict == "duplicate"


@pytest.mark.parametrize("policy", [Policy(dlq_max=0)], ids=["no-room"])
async def test_a_dropped_dead_letter_keeps_its_key(bench: Bench, policy: Policy) -> None:
    bench.together()
    await bench.end(Aborted(await bench.start("it", dedup_key="k", dedup_ttl=60_000), "boom"))
    assert await bench.status("it") is None
    assert (await bench.submit("again", dedup_key="k")).verdict == "duplicate"


async def test_prune_keeps_living_keys_and_forgets_expired_ones(bench: Bench) -> None:
    await bench.submit("short", dedup_key="short", dedup_ttl=1000)
    await bench.submit("long", dedup_key="long", dedup_ttl=60_000)
    bench.clock.advance(2)
    await bench.store.operators.prune(100)
    assert (await bench.submit("s2", dedup_key="short")).verdict == "created"
    assert (await bench.submit("l2", dedup_key="long")).verdict == "duplicate"


@pytest.mark.parametrize("policy", [Policy(dedup=False)], ids=["dedup-off"])
async def test_dedup_can_be_turned_off(bench: Bench, policy: Policy) -> None:
    bench.together()
    await bench.submit("first", dedup_key="k", dedup_ttl=60_000)
    assert (await bench.submit("second", dedup_key="k", dedup_ttl=60_000)).verdict == "created"


# --- batches


async def test_a_batch_gives_each_its_own_receipt_in_order(bench: Bench) -> None:
    bench.together()
    await bench.submit("taken")
    await bench.submit("holder", dedup_key="k", dedup_ttl=1000)
    receipts = await bench.store.tasks.submit(
        [
            bench.spec("new"),
            bench.spec("taken"),
            bench.spec("dup", dedup_key="k", dedup_ttl=1000),
            bench.spec("lonely", depends_on=("nobody",)),
            bench.spec("also new"),
        ]
    )
    assert receipts == [
        Receipt("new", "created"),
        Receipt("taken", "exists"),
        Receipt("dup", "duplicate", "holder"),
        Receipt("lonely", "orphan", "nobody"),
        Receipt("also new", "created"),
    ]
    assert await bench.claimed_ids() == ["taken", "holder", "new", "also new"]


async def test_inside_one_batch_the_first_of_an_id_or_key_wins(bench: Bench) -> None:
    bench.together()
    twice = bench.spec("a")
    receipts = await bench.store.tasks.submit(
        [
            twice,
            twice,
            bench.spec("a"),
            bench.spec("b", dedup_key="k", dedup_ttl=1000),
            bench.spec("c", dedup_key="k", dedup_ttl=1000),
        ]
    )
    assert [receipt.verdict for receipt in receipts] == ["created", "created", "exists", "created", "duplicate"]


async def test_an_empty_batch_is_no_error(bench: Bench) -> None:
    assert await bench.store.tasks.submit([]) == []


async def test_the_largest_batch_goes_in_at_once(bench: Bench) -> None:
    receipts = await bench.store.tasks.submit([bench.spec() for _ in range(SUBMIT_MAX)])
    assert {receipt.verdict for receipt in receipts} == {"created"}
    assert (await bench.store.queries.stats()).statuses[Status.READY] == SUBMIT_MAX


# --- depends_on


async def finish(bench: Bench, task_id: str, ok: bool = True) -> None:
    (grant,) = await bench.claim()
    assert grant.spec.id == task_id
    assert await bench.end(Succeeded(grant.lease) if ok else Aborted(grant.lease, "boom")) == "done"


async def test_thousands_in_one_call_keep_their_order_also_beside_other_calls(bench: Bench) -> None:
    bench.together()
    calls = [[bench.spec(f"{call}.{number:04}") for number in range(1000)] for call in range(3)]
    await asyncio.gather(*map(bench.store.tasks.submit, calls))
    claimed = [task_id for _ in range(3) for task_id in await bench.claimed_ids(1000)]
    for call in range(3):
        mine = [task_id for task_id in claimed if task_id.startswith(f"{call}.")]
        assert mine == sorted(mine)
    assert len(claimed) == 3000


async def test_a_known_id_among_many_new_ones_is_the_only_one_refused(bench: Bench) -> None:
    await bench.submit("t7")
    receipts = await bench.store.tasks.submit([bench.spec(f"t{number}") for number in range(250)])
    assert [receipt.id for receipt in receipts if receipt.verdict != "created"] == ["t7"]
    assert receipts[7].verdict == "exists"
    assert len(await bench.claimed_ids(1000)) == 250


async def test_the_same_call_once_more_creates_nothing(bench: Bench) -> None:
    specs = [bench.spec(f"t{number}") for number in range(120)]
    first, again = await bench.store.tasks.submit(specs), await bench.store.tasks.submit(specs)
    assert again == first
    assert len(await bench.claimed_ids(1000)) == 120


async def test_an_orphan_is_refused_and_leaves_nothing(bench: Bench) -> None:
    bench.together()
    await bench.submit("up")
    receipt = await bench.submit("it", depends_on=("up", "nobody"), dedup_key="k", dedup_ttl=1000)
    assert receipt == Receipt("it", "orphan", "nobody")
    assert await bench.status("it") is None
    assert (await bench.submit("other", dedup_key="k")).verdict == "created"
    await finish(bench, "up")
    assert await bench.store.tasks.outbox(10) == []


async def test_a_task_cannot_wait_for_itself(bench: Bench) -> None:
    assert await bench.submit("it", depends_on=("it",)) == Receipt("it", "orphan", "it")


@pytest.mark.parametrize("pruned", [False, True], ids=["as-is", "pruned"])
async def test_a_dedup_key_that_ran_out_holds_again_when_the_clock_is_set_back(bench: Bench, pruned: bool) -> None:
    bench.together()
    await bench.submit("first", dedup_key="order", dedup_ttl=1000)
    bench.clock.advance(1)
    if pruned:
        await bench.store.operators.prune(100)
    bench.clock.advance(-0.001)
    assert (await bench.submit("second", dedup_key="order", dedup_ttl=1000)).verdict == "duplicate"


async def test_a_dependant_starts_after_its_upstream(bench: Bench) -> None:
    await bench.submit("up")
    await bench.submit("it", depends_on=("up",))
    assert await bench.status("it") is Status.BLOCKED
    assert (await bench.record("it")).waiting == ["up"]
    await finish(bench, "up")
    fence = (await bench.record("up")).fence
    assert await bench.store.tasks.outbox(10) == [OutboxEntry("up", Status.SUCCESS, ("it",), None, fence)]
    await bench.propagate()
    assert await bench.claimed_ids() == ["it"]


async def test_a_chain_inside_one_batch(bench: Bench) -> None:
    names = ["a", "b", "c"]
    specs = [bench.spec("a"), bench.spec("b", depends_on=("a",)), bench.spec("c", depends_on=("b",))]
    assert [receipt.verdict for receipt in await bench.store.tasks.submit(specs)] == ["created"] * 3
    for name in names:
        await finish(bench, name)
        await bench.propagate()
    assert [await bench.status(name) for name in names] == [Status.SUCCESS] * 3


async def test_in_one_batch_an_earlier_task_cannot_wait_for_a_later_one(bench: Bench) -> None:
    specs = [bench.spec("a", depends_on=("b",)), bench.spec("b")]
    assert [receipt.verdict for receipt in await bench.store.tasks.submit(specs)] == ["orphan", "created"]


async def test_the_last_of_several_upstreams_frees_it(bench: Bench) -> None:
    bench.together()
    for name in ("u1", "u2", "u3"):
        await bench.submit(name)
    await bench.submit("it", depends_on=("u1", "u2", "u3"))
    for name in ("u1", "u2", "u3"):
        assert await bench.status("it") is Status.BLOCKED
        await finish(bench, name)
        await bench.propagate()
    assert await bench.status("it") is Status.READY
    assert (await bench.facts("it")).count("task.resolved") == 3


async def test_an_upstream_named_twice_counts_once(bench: Bench) -> None:
    await bench.submit("up")
    await bench.submit("it", depends_on=("up", "up"))
    assert (await bench.record("it")).waiting == ["up"]
    await finish(bench, "up")
    await bench.propagate()
    assert await bench.status("it") is Status.READY


async def test_an_upstream_that_has_succeeded_is_met_at_once(bench: Bench) -> None:
    await bench.bring(Status.SUCCESS, "up")
    await bench.submit("it", depends_on=("up",))
    assert await bench.status("it") is Status.READY
    assert await bench.store.tasks.outbox(10) == []


async def test_a_dependant_of_both_met_and_unmet_upstreams_waits_for_the_unmet(bench: Bench) -> None:
    await bench.bring(Status.SUCCESS, "done")
    await bench.submit("open")
    await bench.submit("it", depends_on=("done", "open"))
    assert (await bench.record("it")).waiting == ["open"]


@pytest.mark.parametrize("status", [Status.DEAD, Status.CANCELLED], ids=str)
async def test_a_dependant_of_what_has_ended_badly_is_cancelled_through_the_outbox(
    bench: Bench, status: Status
) -> None:
    await bench.bring(status, "up")
    assert (await bench.submit("it", depends_on=("up",))).verdict == "created"
    assert await bench.status("it") is Status.BLOCKED
    await bench.propagate()
    assert await bench.status("it") is Status.CANCELLED
    assert "up" in (await bench.record("it")).message


@pytest.mark.parametrize("status", [Status.DEAD, Status.CANCELLED, Status.SUCCESS], ids=str)
async def test_run_after_end_is_met_by_any_end(bench: Bench, status: Status) -> None:
    await bench.bring(status, "up")
    await bench.submit("it", depends_on=("up",), run_after="end")
    assert await bench.status("it") is Status.READY


async def test_run_after_end_starts_after_a_failure(bench: Bench) -> None:
    await bench.submit("up")
    await bench.submit("cleanup", depends_on=("up",), run_after="end")
    await finish(bench, "up", ok=False)
    assert await bench.status("cleanup") is Status.BLOCKED
    await bench.propagate()
    assert await bench.status("cleanup") is Status.READY


async def test_a_failure_cancels_down_the_whole_tree(bench: Bench) -> None:
    await bench.submit("root")
    for name, upstream in (("a", "root"), ("b", "root"), ("aa", "a"), ("ab", "a"), ("aaa", "aa")):
        await bench.submit(name, depends_on=(upstream,))
    await bench.submit("after all", depends_on=("aaa",), run_after="end")
    await finish(bench, "root", ok=False)
    await bench.propagate()
    for name in ("a", "b", "aa", "ab", "aaa"):
        assert await bench.status(name) is Status.CANCELLED
    assert await bench.status("after all") is Status.READY


async def test_a_failed_upstream_cancels_though_others_are_still_open(bench: Bench) -> None:
    bench.together()
    await bench.submit("bad", priority=10)
    await bench.submit("open")
    await bench.submit("it", depends_on=("open", "bad"))
    await finish(bench, "bad", ok=False)
    await bench.propagate()
    assert await bench.status("it") is Status.CANCELLED
    assert (await bench.record("it")).waiting == []
    await finish(bench, "open")
    assert await bench.store.tasks.outbox(10) == [], "nobody waits for it any more"


async def test_a_cancelled_dependant_is_not_told(bench: Bench) -> None:
    await bench.submit("up")
    await bench.submit("it", depends_on=("up",))
    await bench.cancel("it", False)
    await finish(bench, "up")
    assert await bench.store.tasks.outbox(10) == []


async def test_a_freed_dependant_whose_time_is_ahead_waits_for_it(bench: Bench) -> None:
    await bench.submit("up")
    await bench.submit("it", depends_on=("up",), delay=60_000)
    await finish(bench, "up")
    await bench.propagate()
    assert await bench.status("it") is Status.PENDING
    bench.clock.advance(60)
    assert await bench.claimed_ids() == ["it"]


async def test_a_dependants_delay_counts_from_its_submit(bench: Bench) -> None:
    await bench.submit("up")
    await bench.submit("it", depends_on=("up",), delay=60_000)
    bench.clock.advance(60)
    await finish(bench, "up")
    await bench.propagate()
    assert await bench.status("it") is Status.READY


async def test_resolve_sent_twice_counts_once(bench: Bench) -> None:
    await bench.submit("u1")
    await bench.submit("u2")
    await bench.submit("it", depends_on=("u1", "u2"))
    assert await bench.resolve("it", "u1", True) is True
    assert await bench.resolve("it", "u1", True) is False
    assert await bench.resolve("it", "u1", False) is False
    assert await bench.status("it") is Status.BLOCKED
    assert await bench.resolve("it", "u2", True) is True
    assert await bench.resolve("it", "u2", True) is False
    assert await bench.facts("it") == ["task.submitted", "task.resolved", "task.resolved"]


async def test_resolve_of_a_stranger_changes_nothing(bench: Bench) -> None:
    await bench.submit("up")
    await bench.submit("it", depends_on=("up",))
    assert await bench.resolve("it", "other", True) is False
    assert await bench.resolve("nobody", "up", True) is False
    assert await bench.resolve("up", "it", True) is False
    assert await bench.status("it") is Status.BLOCKED


# --- the outbox


async def test_an_end_nobody_waits_for_is_not_in_the_outbox(bench: Bench) -> None:
    await bench.bring(Status.SUCCESS)
    assert await bench.store.tasks.outbox(10) == []


async def test_the_end_of_a_schedules_run_is_in_the_outbox(bench: Bench) -> None:
    lease = await bench.bring(Status.DEAD, schedule_id="nightly")
    assert await bench.store.tasks.outbox(10) == [OutboxEntry("it", Status.DEAD, (), "nightly", lease.fence)]


async def test_the_outbox_keeps_the_schedule_of_a_deleted_run(bench: Bench) -> None:
    await bench.bring(Status.DEAD, schedule_id="nightly")
    await bench.delete("it")
    assert await bench.store.tasks.outbox(10) == [OutboxEntry("it", Status.DEAD, (), "nightly")]


async def test_the_outbox_tells_until_it_is_told(bench: Bench) -> None:
    await bench.submit("up")
    await bench.submit("it", depends_on=("up",))
    await finish(bench, "up")
    first = await bench.store.tasks.outbox(10)
    assert await bench.store.tasks.outbox(10) == first, "reading does not take out"
    await bench.resolve("it", "up", True)
    assert [entry.id for entry in await bench.store.tasks.outbox(10)] == ["up"], "telling alone does not either"
    await bench.store.tasks.clear_outbox(first)
    assert await bench.store.tasks.outbox(10) == []
    await bench.store.tasks.clear_outbox([*first, OutboxEntry("nobody", Status.SUCCESS, ())])


async def test_the_outbox_is_read_oldest_first_up_to_the_limit(bench: Bench) -> None:
    bench.together()
    for name in ("c", "a", "b"):
        await bench.submit(name)
        await bench.submit(f"after {name}", depends_on=(name,), delay=1)
    for name in ("c", "a", "b"):
        await finish(bench, name)
    assert [entry.id for entry in await bench.store.tasks.outbox(2)] == ["c", "a"]
    assert [entry.id for entry in await bench.store.tasks.outbox(9)] == ["c", "a", "b"]


async def test_a_new_dependant_does_not_move_an_entry_back(bench: Bench) -> None:
    bench.together()
    for name in ("a", "b"):
        await bench.submit(name)
        await bench.submit(f"after {name}", depends_on=(name,))
        await finish(bench, name, ok=False)
    await bench.submit("late", depends_on=("a",))
    assert [(entry.id, entry.dependants) for entry in await bench.store.tasks.outbox(9)] == [
        ("a", ("after a", "late")),
        ("b", ("after b",)),
    ]


async def test_a_dependant_that_came_between_reading_and_unsettling_is_told_too(bench: Bench) -> None:
    await bench.submit("up")
    await bench.submit("early", depends_on=("up",))
    await finish(bench, "up", ok=False)
    (entry,) = await bench.store.tasks.outbox(10)
    await bench.submit("late", depends_on=("up",))
    for dependant in entry.dependants:
        await bench.resolve(dependant, "up", False)
    await bench.store.tasks.clear_outbox([entry])
    await bench.propagate()
    assert await bench.status("late") is Status.CANCELLED


async def test_a_dependant_that_comes_after_the_outbox_was_told_is_told_as_well(bench: Bench) -> None:
    await bench.bring(Status.DEAD, "up", schedule_id="s")
    await bench.propagate()
    await bench.submit("it", depends_on=("up",))
    await bench.propagate()
    assert await bench.status("it") is Status.CANCELLED


async def test_dependants_wait_for_the_second_life_of_a_retried_upstream(bench: Bench) -> None:
    await bench.submit("up")
    await bench.submit("it", depends_on=("up",))
    await finish(bench, "up", ok=False)
    await bench.retry("up")
    assert await bench.store.tasks.outbox(10) == []
    await finish(bench, "up")
    await bench.propagate()
    assert await bench.status("it") is Status.READY


async def test_a_delete_of_the_upstream_does_not_strand_its_dependants(bench: Bench) -> None:
    await bench.submit("up")
    await bench.submit("it", depends_on=("up",))
    await finish(bench, "up", ok=False)
    await bench.delete("up")
    assert await bench.store.queries.audit() == []
    await bench.propagate()
    assert await bench.status("it") is Status.CANCELLED


@pytest.mark.parametrize("policy", [Policy(dlq_max=0)], ids=["no-room"])
async def test_a_dropped_dead_letter_does_not_strand_its_dependants(bench: Bench, policy: Policy) -> None:
    await bench.submit("up")
    await bench.submit("it", depends_on=("up",))
    await finish(bench, "up", ok=False)
    assert await bench.status("up") is None
    assert await bench.store.queries.audit() == []
    await bench.propagate()
    assert await bench.status("it") is Status.CANCELLED


async def test_a_dependants_id_used_again_is_told_once(bench: Bench) -> None:
    await bench.submit("up")
    for _ in range(2):
        await bench.submit("it", depends_on=("up",))
        await bench.cancel("it", False)
        await bench.delete("it")
    await bench.submit("it", depends_on=("up",))
    await finish(bench, "up")
    assert [entry.dependants for entry in await bench.store.tasks.outbox(10)] == [("it",)]
