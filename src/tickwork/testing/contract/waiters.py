"""Who submits a task may ask in the same call to be told of its end."""

from __future__ import annotations

from typing import Any

import pytest

from tickwork.model.outcomes import Aborted, Succeeded
from tickwork.model.tasks import Spec, Status
from tickwork.store.contract import Receipt
from tickwork.store.hints import Hint
from tickwork.testing.contract.bench import Bench

PATIENCE = 10.0  # seconds until a hint that does not come fails the test


async def submit_for(bench: Bench, waiter: Hint, *specs: Spec) -> Receipt:
    (receipt,) = await bench.store.tasks.submit(list(specs), None, waiter)
    return receipt


WAYS: dict[str, dict[str, Any]] = {
    "plain": {},
    "delayed": {"delay": 60_000},
    "large": {"payload": b"x" * 100_000},
    "with a dedup key": {"dedup_key": "k", "dedup_ttl": 3_600_000},
    "unique": {"dedup_key": "k", "unique": "unfinished"},
    "with a deadline": {"expires": 3_600_000},
    "with a retention": {"retention": 3_600_000},
    "behind another": {"depends_on": ("up",)},
    "behind another that has ended": {"depends_on": ("ended",)},
}


@pytest.mark.parametrize("fields", WAYS.values(), ids=WAYS)
async def test_who_submits_may_be_told_of_the_end(bench: Bench, fields: dict[str, Any]) -> None:
    bench.together()
    await bench.end(Succeeded(await bench.start("ended")))
    await bench.submit("up")
    (up,) = await bench.claim()
    with bench.store.hint("it") as hint:
        await bench.listens(hint)
        assert await submit_for(bench, hint, bench.spec("it", **fields)) == Receipt("it", "created")
        assert hint.announced
        await bench.end(Succeeded(up.lease))
        await bench.propagate()
        await bench.run_now("it")
        (grant,) = await bench.claim()
        assert grant.spec.id == "it"
        assert await hint.wait(0) is False, "it has not ended yet"
        await bench.end(Succeeded(grant.lease, b"42"))
        assert await hint.wait(PATIENCE)
        record = await bench.store.queries.get("it", hint)
    assert record is not None
    assert (record.status, record.result) == (Status.SUCCESS, b"42")


async def test_a_cancel_is_an_end_too(bench: Bench) -> None:
    with bench.store.hint("it") as hint:
        await bench.listens(hint)
        await submit_for(bench, hint, bench.spec("it"))
        await bench.cancel("it")
        assert await hint.wait(PATIENCE)


async def test_a_submit_that_is_sent_again_has_told_who_waits(bench: Bench) -> None:
    spec = bench.spec("it")
    with bench.store.hint("it") as hint:
        await bench.listens(hint)
        for _ in range(2):
            assert (await submit_for(bench, hint, spec)).verdict == "created"
            assert hint.announced
        (grant,) = await bench.claim()
        await bench.end(Succeeded(grant.lease))
        assert await hint.wait(PATIENCE)


async def test_a_submit_that_is_refused_announces_nobody(bench: Bench) -> None:
    bench.together()
    await bench.submit("it", dedup_key="k", dedup_ttl=60_000)
    refused = (
        (bench.spec("it"), Receipt("it", "exists")),
        (bench.spec("other", dedup_key="k", dedup_ttl=60_000), Receipt("other", "duplicate", "it")),
        (bench.spec("late", depends_on=("nobody",)), Receipt("late", "orphan", "nobody")),
    )
    for spec, receipt in refused:
        with bench.store.hint(spec.id) as hint:
            assert await submit_for(bench, hint, spec) == receipt
            assert not hint.announced


async def test_who_was_told_of_an_end_is_told_of_the_next_after_a_look(bench: Bench) -> None:
    with bench.store.hint("it") as hint:
        await bench.listens(hint)
        await submit_for(bench, hint, bench.spec("it"))
        (grant,) = await bench.claim()
        await bench.end(Aborted(grant.lease, "boom"))
        assert await hint.wait(PATIENCE)
        await bench.store.queries.get("it", hint)
        await bench.retry("it")
        await bench.store.queries.get("it", hint)
        (grant,) = await bench.claim()
        await bench.end(Succeeded(grant.lease))
        assert await hint.wait(PATIENCE)
