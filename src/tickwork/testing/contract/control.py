"""Control: documents by kind and name, compared and set; journals, numbered and bounded."""

from __future__ import annotations

import asyncio

from tickwork.store.contract import DOCUMENTS_PAGE, ENTRIES_MAX, ENTRIES_PAGE, Entry
from tickwork.testing.contract.bench import START, Bench

ODD = ("a b", "ä'; DROP TABLE x", "=", "\n", "(", "[", "-", "+", "\0", "1", "01", "{x}:3:", "x" * 4000)


async def names_of(bench: Bench, kind: str, after: str = "", limit: int = DOCUMENTS_PAGE) -> list[str]:
    return [document.name for document in await bench.store.control.page(kind, after, limit)]


async def texts_of(bench: Bench, journal: str, before: int | None = None, limit: int = 100) -> list[str]:
    return [entry.text for entry in await bench.store.control.read(journal, before, limit)]


# --- documents


async def test_a_document_is_read_as_it_was_written(bench: Bench) -> None:
    control = bench.store.control
    assert await control.get("view", "mine") is None
    assert await control.swap("view", "mine", None, "1") is True
    assert await control.swap("view", "mine", "1", "2") is True
    assert await control.get("view", "mine") == "2"
    assert await control.get("view", "other") is None


async def test_a_document_that_has_changed_since_it_was_read_stays(bench: Bench) -> None:
    control = bench.store.control
    await control.swap("view", "mine", None, "1")
    assert await control.swap("view", "mine", None, "2") is False
    assert await control.swap("view", "mine", "0", "2") is False
    assert await control.swap("view", "mine", "0", None) is False
    assert await control.get("view", "mine") == "1"
    assert await control.swap("view", "none", "0", "2") is False
    assert await control.get("view", "none") is None
    assert await names_of(bench, "view") == ["mine"]


async def test_a_change_of_a_document_that_is_sent_twice_says_yes_twice(bench: Bench) -> None:
    control = bench.store.control
    await control.swap("view", "mine", None, "1")
    assert [await control.swap("view", "mine", "1", "2") for _ in range(2)] == [True, True]
    assert [await control.swap("view", "mine", "2", None) for _ in range(2)] == [True, True]
    assert await control.get("view", "mine") is None
    assert await names_of(bench, "view") == []


async def test_an_empty_document_is_not_none(bench: Bench) -> None:
    control = bench.store.control
    assert await control.swap("view", "mine", None, "") is True
    assert await control.get("view", "mine") == ""
    assert await names_of(bench, "view") == ["mine"]
    assert await control.swap("view", "mine", None, "1") is False
    assert await control.swap("view", "mine", "", "1") is True


async def test_documents_of_different_kinds_are_apart(bench: Bench) -> None:
    control = bench.store.control
    await control.swap("view", "mine", None, "1")
    await control.swap("token", "mine", None, "2")
    await control.swap("view:token", "mine", None, "3")
    assert [await control.get(kind, "mine") for kind in ("view", "token", "view:token")] == ["1", "2", "3"]
    await control.swap("view", "mine", "1", None)
    assert [await names_of(bench, kind) for kind in ("view", "token", "view:token")] == [[], ["mine"], ["mine"]]


async def test_a_document_may_have_any_name_and_text(bench: Bench) -> None:
    control = bench.store.control
    for text in ODD:
        assert await control.swap("view", text, None, text) is True
        assert await control.get("view", text) == text
    documents = await control.page("view")
    assert [document.name for document in documents] == sorted(ODD)
    assert all(document.text == document.name for document in documents)
    for name in ODD:
        assert await names_of(bench, "view", name, 1) == sorted(ODD)[sorted(ODD).index(name) + 1 :][:1]


async def test_one_of_many_changes_of_a_document_at_a_time_wins(bench: Bench) -> None:
    control = bench.store.control
    await control.swap("view", "mine", None, "0")
    answers = await asyncio.gather(*(control.swap("view", "mine", "0", f"{number + 1}") for number in range(20)))
    assert sum(answers) == 1
    assert await control.get("view", "mine") == f"{answers.index(True) + 1}"


async def test_pages_of_documents_are_sorted_by_code_points(bench: Bench) -> None:
    names = ["B", "a", "a0", "aa", "b", "é", "￿", "🎈"]  # where UTF-16 would put the last one before the one before it
    for name in reversed(names):
        await bench.store.control.swap("view", name, None, "x")
    assert await names_of(bench, "view") == names == sorted(names)


async def test_documents_are_paged_by_their_last_name(bench: Bench) -> None:
    control = bench.store.control
    names = [f"{number:03}" for number in range(DOCUMENTS_PAGE + 5)]
    for name in names:
        await control.swap("view", name, None, f"text of {name}")
    assert await names_of(bench, "view", limit=3) == names[:3]
    assert await names_of(bench, "view", "002", 3) == names[3:6]
    await control.swap("view", "002", "text of 002", None)
    assert await names_of(bench, "view", "002", 3) == names[3:6], "it need not be there"
    assert await names_of(bench, "view", names[-2]) == names[-1:]
    assert await names_of(bench, "view", names[-1]) == []
    assert await names_of(bench, "view", limit=0) == []
    assert await names_of(bench, "none") == []
    (document,) = await control.page("view", "002", 1)
    assert (document.name, document.text) == ("003", "text of 003")


async def test_a_page_of_documents_is_bounded(bench: Bench) -> None:
    for number in range(DOCUMENTS_PAGE + 1):
        await bench.store.control.swap("view", f"{number:03}", None, "x")
    assert len(await bench.store.control.page("view")) == DOCUMENTS_PAGE
    assert len(await bench.store.control.page("view", limit=10_000)) == DOCUMENTS_PAGE
    assert await bench.store.control.page("view", limit=-1) == []


async def test_no_more_documents_of_a_kind_than_may_be(bench: Bench) -> None:
    control = bench.store.control
    await control.swap("token", "elsewhere", None, "x")
    assert [await control.swap("view", name, None, "x", 2) for name in "abc"] == [True, True, False]
    assert await names_of(bench, "view") == ["a", "b"]
    assert await control.swap("view", "b", None, "x", 2) is True, "sent twice"
    assert await control.swap("view", "b", "x", "y", 2) is True, "it is there"
    assert await control.swap("view", "a", "x", "y", 1) is True, "it is there, and so is one too many"
    assert await control.swap("view", "a", "y", None, 2) is True
    assert await control.swap("view", "c", None, "x", 2) is True
    assert await control.swap("view", "d", None, "x") is True, "without a bound"


async def test_many_documents_that_are_created_at_a_time_keep_the_bound(bench: Bench) -> None:
    answers = await asyncio.gather(*(bench.store.control.swap("view", f"{n}", None, "x", 5) for n in range(20)))
    assert sum(answers) == 5
    assert len(await bench.store.control.page("view")) == 5


async def test_documents_and_journals_leave_no_facts(bench: Bench) -> None:
    before = await bench.store.log.last()
    await bench.store.control.swap("view", "mine", None, "1")
    await bench.store.control.append("audit", ["a"], 10)
    assert await bench.store.log.last() == before


# --- journals


async def test_entries_are_numbered_and_timed_in_their_order(bench: Bench) -> None:
    control = bench.store.control
    assert await control.read("audit") == []
    assert await control.append("audit", ["a", "b"], 100) == 2
    bench.clock.advance(5)
    assert await control.append("audit", ["c"], 100) == 3
    assert await control.read("audit") == [
        Entry(3, START + 5000, "c"),
        Entry(2, START, "b"),
        Entry(1, START, "a"),
    ]


async def test_journals_are_apart(bench: Bench) -> None:
    control = bench.store.control
    assert await control.append("audit", ["a"], 100) == 1
    assert await control.append("logins", ["b"], 100) == 1
    assert await control.append("audit", ["c"], 1) == 2
    assert (await texts_of(bench, "audit"), await texts_of(bench, "logins")) == (["c"], ["b"])


async def test_a_journal_keeps_the_newest_and_gives_no_number_twice(bench: Bench) -> None:
    control = bench.store.control
    assert await control.append("audit", [f"{number}" for number in range(1, 11)], 3) == 10
    assert [entry.number for entry in await control.read("audit")] == [10, 9, 8]
    assert await control.append("audit", ["11"], 5) == 11
    assert await texts_of(bench, "audit") == ["11", "10", "9", "8"]
    assert await control.append("audit", ["12"], 1) == 12
    assert await texts_of(bench, "audit") == ["12"]
    assert await control.append("audit", ["13"], 0) == 13
    assert await texts_of(bench, "audit") == ["13"], "the newest stays"
    assert await control.append("audit", ["14"], 10) == 14


async def test_of_many_entries_just_as_many_as_asked_are_kept(bench: Bench) -> None:
    for first in range(0, 5 * ENTRIES_MAX, ENTRIES_MAX):
        await bench.store.control.append("audit", [f"{first + n}" for n in range(ENTRIES_MAX)], 250)
    assert await texts_of(bench, "audit", limit=ENTRIES_PAGE) == [f"{n}" for n in range(499, 249, -1)]


async def test_appending_nothing_answers_the_newest_number(bench: Bench) -> None:
    control = bench.store.control
    assert await control.append("audit", [], 10) == 0
    assert await control.read("audit") == []
    await control.append("audit", ["a", "b"], 10)
    assert await control.append("audit", (), 10) == 2
    assert await texts_of(bench, "audit") == ["b", "a"]


async def test_an_append_that_is_sent_twice_stands_there_twice(bench: Bench) -> None:
    assert [await bench.store.control.append("audit", ["a"], 10) for _ in range(2)] == [1, 2]
    assert await texts_of(bench, "audit") == ["a", "a"]


async def test_a_journal_is_read_backwards_in_pages(bench: Bench) -> None:
    await bench.store.control.append("audit", [f"{number}" for number in range(1, 11)], 8)
    assert await texts_of(bench, "audit", limit=3) == ["10", "9", "8"]
    assert await texts_of(bench, "audit", 8, 3) == ["7", "6", "5"]
    assert await texts_of(bench, "audit", 5) == ["4", "3"]
    assert await texts_of(bench, "audit", 11, 1) == await texts_of(bench, "audit", 10**30, 1) == ["10"]
    for before in (3, 2, 1, 0, -1, -(10**30)):
        assert await texts_of(bench, "audit", before) == [], before
    for limit in (0, -1):
        assert await texts_of(bench, "audit", limit=limit) == []


async def test_a_read_of_a_journal_is_bounded(bench: Bench) -> None:
    for _ in range(ENTRIES_PAGE // ENTRIES_MAX + 1):
        await bench.store.control.append("audit", ["x"] * ENTRIES_MAX, 10_000)
    assert len(await bench.store.control.read("audit")) == 100
    assert len(await bench.store.control.read("audit", limit=10_000)) == ENTRIES_PAGE


async def test_an_entry_may_have_any_text_and_a_journal_any_name(bench: Bench) -> None:
    for name in ODD:
        assert await bench.store.control.append(name, ["", *ODD], 100) == len(ODD) + 1
        assert await texts_of(bench, name) == [*reversed(ODD), ""]


async def test_appends_at_the_same_time_do_not_mix(bench: Bench) -> None:
    texts = [[f"{call}.{number}" for number in range(5)] for call in range(10)]
    lasts = await asyncio.gather(*(bench.store.control.append("audit", each, 100) for each in texts))
    found = list(reversed(await bench.store.control.read("audit")))
    assert [entry.number for entry in found] == list(range(1, 51))
    for last, each in zip(lasts, texts, strict=True):
        assert [entry.text for entry in found[last - 5 : last]] == each
