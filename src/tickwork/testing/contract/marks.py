"""Marks: small texts by name, compared and set."""

from __future__ import annotations

import asyncio

from tickwork.model.facts import Fact, NewFact
from tickwork.testing.contract.bench import Bench


async def test_a_mark_is_read_as_it_was_written(bench: Bench) -> None:
    marks = bench.store.marks
    assert await marks.get("place") is None
    assert await marks.swap("place", None, "1") is True
    assert await marks.swap("place", "1", "2") is True
    assert await marks.get("place") == "2"
    assert await marks.get("other") is None


async def test_a_mark_that_has_changed_since_it_was_read_stays(bench: Bench) -> None:
    marks = bench.store.marks
    await marks.swap("place", None, "1")
    assert await marks.swap("place", None, "2") is False
    assert await marks.swap("place", "0", "2") is False
    assert await marks.get("place") == "1"
    assert await marks.swap("none", "0", "2") is False
    assert await marks.get("none") is None


async def test_a_swap_that_is_sent_twice_says_yes_twice(bench: Bench) -> None:
    marks = bench.store.marks
    await marks.swap("place", None, "1")
    assert [await marks.swap("place", "1", "2") for _ in range(2)] == [True, True]
    assert [await marks.swap("place", "2", None) for _ in range(2)] == [True, True]
    assert await marks.get("place") is None


async def test_an_empty_mark_is_not_none(bench: Bench) -> None:
    marks = bench.store.marks
    assert await marks.swap("place", None, "") is True
    assert await marks.get("place") == ""
    assert await marks.swap("place", None, "1") is False
    assert await marks.swap("place", "", "1") is True


async def test_a_mark_may_have_any_name_and_text(bench: Bench) -> None:
    marks = bench.store.marks
    for text in ("a b", "ä'; DROP TABLE marks", "=", "\n", "x" * 4000):
        assert await marks.swap(text, None, text) is True
        assert await marks.get(text) == text


async def test_one_of_many_swaps_at_a_time_wins(bench: Bench) -> None:
    marks = bench.store.marks
    await marks.swap("place", None, "0")
    answers = await asyncio.gather(*(marks.swap("place", "0", f"{number + 1}") for number in range(20)))
    assert sum(answers) == 1
    assert await marks.get("place") == f"{answers.index(True) + 1}"


async def test_marks_leave_no_facts(bench: Bench) -> None:
    before = await bench.store.log.last()
    await bench.store.marks.swap("place", None, "1")
    assert await bench.store.log.last() == before


FIRED, RESOLVED = NewFact(Fact.ALERT_FIRED, "a", "3 > 2"), NewFact(Fact.ALERT_RESOLVED, "b")


async def test_facts_are_appended_in_the_step_that_changes_the_mark(bench: Bench) -> None:
    marks = bench.store.marks
    assert await marks.swap("place", None, "1", [FIRED, RESOLVED, FIRED]) is True
    bench.clock.advance(5)
    assert await marks.swap("place", "1", None, (RESOLVED,)) is True
    events = await bench.events()
    assert [(event.kind, event.id, event.detail) for event in events] == [
        ("alert.fired", "a", "3 > 2"),
        ("alert.resolved", "b", ""),
        ("alert.fired", "a", "3 > 2"),
        ("alert.resolved", "b", ""),
    ]
    assert [event.at - events[0].at for event in events] == [0, 0, 0, 5000]
    assert bench.follow_each_other([event.seq for event in events])


async def test_a_swap_that_changes_nothing_appends_no_facts(bench: Bench) -> None:
    marks = bench.store.marks
    assert await marks.swap("place", None, "1", [FIRED]) is True
    assert await marks.swap("place", None, "1", [FIRED]) is True, "sent twice"
    assert await marks.swap("place", "0", "2", [RESOLVED]) is False
    assert await marks.swap("other", "0", "2", [RESOLVED]) is False
    assert await bench.facts() == ["alert.fired"]


async def test_facts_of_many_swaps_at_a_time_are_those_of_the_one_that_wins(bench: Bench) -> None:
    marks = bench.store.marks
    swaps = (marks.swap("place", None, f"{number}", [NewFact(Fact.ALERT_FIRED, f"{number}")]) for number in range(20))
    answers = await asyncio.gather(*swaps)
    assert [event.id for event in await bench.events()] == [f"{answers.index(True)}"]
