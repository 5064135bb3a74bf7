"""A full dead-letter queue drops its oldest tasks, and every store warns of how many."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from tickwork.model.outcomes import Aborted
from tickwork.model.policy import Policy
from tickwork.store import rules
from tickwork.testing.contract.bench import Bench


async def die(bench: Bench, *ids: str) -> None:
    for task_id in ids:
        await bench.submit(task_id)
    grants = await bench.claim(len(ids))
    await bench.store.tasks.finish([Aborted(grant.lease, "boom") for grant in grants])


@pytest.mark.parametrize("policy", [Policy(dlq_max=1)], ids=["one"])
async def test_it_is_warned_of_at_once_and_then_once_a_minute_with_all_that_came_since(
    bench: Bench, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = [1000.0]
    monkeypatch.setattr(rules, "time", SimpleNamespace(monotonic=lambda: clock[0]))

    def warnings() -> list[tuple[str, str]]:
        texts = [text for text in caplog.messages if "the dead-letter queue is full" in text]
        return [(text.split("dropped ")[1].split()[0], text.split("the last one ")[1].split(";")[0]) for text in texts]

    bench.together()
    await die(bench, "t0")
    assert warnings() == []
    await die(bench, "t1")
    assert warnings() == [("1", "t0 (job)")]
    await die(bench, "t2", "t3", "t4")
    clock[0] += 59.9
    await die(bench, "t5")
    assert len(warnings()) == 1
    clock[0] += 0.1
    await die(bench, "t6")
    assert warnings() == [("1", "t0 (job)"), ("5", "t5 (job)")]
    clock[0] += 60
    await die(bench, "t7")
    assert warnings()[2:] == [("1", "t6 (job)")], "what was warned of is not counted again"
