"""Lists by type, queue and key, with and without the indexes that make them cheap."""

from __future__ import annotations

from typing import Any

import pytest

from tickwork.model.outcomes import Succeeded
from tickwork.model.tasks import Status
from tickwork.store.contract import PAGE_MAX, Query
from tickwork.testing.contract.bench import Bench

_QUERIES: list[tuple[dict[str, Any], list[str]]] = [
    ({"type": "mail"}, ["mail-b-y", "mail-a-x"]),
    ({"queue": "a"}, ["mail-a-x", "job-a-none"]),
    ({"key": "x"}, ["job-b-x", "mail-a-x"]),
    ({"key": "x", "type": "job"}, ["job-b-x"]),
    ({"key": "x", "queue": "a"}, ["mail-a-x"]),
    ({"key": "y", "type": "job"}, []),
    ({"type": "mail", "queue": "a", "key": "x"}, ["mail-a-x"]),
    ({"type": "job", "status": Status.READY}, ["job-b-x"]),
    ({"type": "job", "status": Status.PENDING}, ["job-a-none"]),
    ({"key": "y", "status": Status.CANCELLED}, ["mail-b-y"]),
    ({"queue": "b", "tags": {"kind": "mail"}}, ["mail-b-y"]),
    ({"key": "nobody"}, []),
    ({"type": "nothing"}, []),
]


@pytest.fixture(params=[False, True], ids=["without", "indexed"])
async def listed(bench: Bench, request: pytest.FixtureRequest) -> Bench:
    """A store whose lists are indexed, or not."""
    if request.param:
        assert await bench.store.operators.index(True) is True
    return bench


async def _four_tasks(bench: Bench) -> None:
    for name in ("job-a-none", "mail-a-x", "mail-b-y", "job-b-x"):
        kind, queue, key = name.split("-")
        delay = 60_000 if name == "job-a-none" else 0
        key_given = None if key == "none" else key
        await bench.submit(name, type=kind, queue=queue, key=key_given, delay=delay, tags={"kind": kind})
    await bench.cancel("mail-b-y", False)


@pytest.mark.parametrize(("query", "expected"), _QUERIES, ids=str)
@pytest.mark.parametrize("limit", [1, 2, 50])
async def test_filters_by_type_queue_and_key(
    listed: Bench, query: dict[str, Any], expected: list[str], limit: int
) -> None:
    await _four_tasks(listed)
    assert sorted(await listed.walk(limit=limit, **query)) == sorted(expected)


@pytest.mark.parametrize("first", [False, True], ids=["indexed later", "indexed first"])
@pytest.mark.parametrize("limit", [1, 2, 50])
async def test_indexed_lists_are_newest_first(bench: Bench, first: bool, limit: int) -> None:
    bench.together()
    if first:
        await bench.store.operators.index(True)
    await _four_tasks(bench)
    if not first:
        await bench.store.operators.index(True)
    for query, expected in _QUERIES:
        assert await bench.walk(limit=limit, **query) == expected, query
    assert await bench.walk(limit=limit) == ["job-b-x", "mail-b-y", "mail-a-x", "job-a-none"]


@pytest.mark.parametrize("status", [s for s in Status if s not in (Status.ASSIGNED, Status.FAILED)], ids=str)
async def test_a_task_of_any_status_is_in_its_lists(listed: Bench, status: Status) -> None:
    await listed.bring(status, key="k")
    for query in ({"key": "k"}, {"type": "job"}, {"queue": "default"}):
        assert "it" in await listed.walk(**query)
        assert "it" in await listed.walk(status=status, **query)


@pytest.mark.parametrize("forget", ["delete", "prune"])
async def test_what_is_removed_is_in_no_list(listed: Bench, forget: str) -> None:
    await listed.bring(Status.SUCCESS, key="k", retention=0)
    await listed.submit("other", key="k")
    if forget == "delete":
        await listed.delete("it")
    else:
        assert await listed.store.operators.prune(10) == 1
    for query in ({"key": "k"}, {"type": "job"}, {"queue": "default"}):
        assert await listed.walk(**query) == ["other"]


async def test_it_is_told_whether_anything_had_to_be_done(bench: Bench) -> None:
    operators = bench.store.operators
    assert [await operators.index(on) for on in (False, True, True, False, False, True)] == [
        False, True, False, True, False, True,
    ]  # fmt: skip


async def test_lists_are_right_when_the_indexes_come_and_go(bench: Bench) -> None:
    await _four_tasks(bench)
    for on in (True, False, True):
        await bench.store.operators.index(on)
        await bench.submit(f"more-{on}-{bench.clock.now()}", key="x")
        bench.clock.advance(1)
        for query, expected in _QUERIES:
            found = [name for name in await bench.walk(**query) if not name.startswith("more")]
            assert sorted(found) == sorted(expected)
    assert len(await bench.walk(key="x")) == 5


async def test_it_reports_what_it_has_indexed(bench: Bench) -> None:
    await bench.submit_many(20)
    told: list[int] = []
    await bench.store.operators.index(True, told.append)
    assert told[-1] == 20
    assert told == sorted(told)


async def test_an_indexed_list_goes_through_many_others_without_a_look(bench: Bench) -> None:
    """Without indexes, the first pages of this list may be empty."""
    await bench.submit("first", type="rare", queue="rare", key="rare")
    await bench.submit_many(PAGE_MAX + 500, type="often", queue="often", key="often")
    await bench.submit("last", type="rare", queue="rare", key="rare")
    await bench.store.operators.index(True)
    for kind in ("type", "queue", "key"):
        records, cursor = await bench.store.queries.page(Query(**{kind: "rare"}))  # type: ignore[arg-type]
        assert ([record.id for record in records], cursor) == (["last", "first"], None)


async def test_a_page_of_an_indexed_list_looks_at_no_more_than_it_may(bench: Bench) -> None:
    await bench.submit("first", key="wanted")
    await bench.submit_many(PAGE_MAX + 500)
    await bench.store.operators.index(True)
    records, cursor = await bench.store.queries.page(Query(type="job", tags={"not": "there"}))
    assert records == []
    assert cursor is not None, "the rest was not looked at"
    assert await bench.walk(type="job", tags={"not": "there"}) == []
    assert len(await bench.walk(type="job", limit=1000)) == PAGE_MAX + 501


async def test_a_walk_while_tasks_come_and_go_gives_each_task_once(bench: Bench) -> None:
    bench.together()
    await bench.store.operators.index(True)
    await bench.submit_many(10)
    records, cursor = await bench.store.queries.page(Query(type="job", limit=4))
    await bench.submit("new")
    await bench.cancel("t5", False)
    await bench.delete("t5")
    rest, end = await bench.store.queries.page(Query(type="job", limit=10, cursor=cursor))
    assert [record.id for record in [*records, *rest]] == ["t9", "t8", "t7", "t6", "t4", "t3", "t2", "t1", "t0"]
    assert end is None


async def test_a_record_in_an_indexed_list_is_whole(bench: Bench) -> None:
    await bench.store.operators.index(True)
    await bench.end(Succeeded(await bench.start("it", key="k", tags={"a": "b"}), b"1"))
    records, _ = await bench.store.queries.page(Query(key="k"))
    assert records == [await bench.record("it")]
