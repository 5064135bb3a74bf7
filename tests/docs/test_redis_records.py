"""The page on records shows one real task byte by byte: its tables, its bytes and the code must say the same."""

from __future__ import annotations

import re
from typing import NamedTuple

import msgspec

from tests.docs.pages import ROOT, blocks_of
from tickwork.model.tasks import Place, Record, Spec, Status
from tickwork.store.redis import records, scripts

PAGE = ROOT / "docs" / "redis-records.md"
VALUE = bytes.fromhex(next(block.text for block in blocks_of(PAGE) if block.language == "text"))
_ROW = re.compile(r"^\| (\d+) \| (\d+) \| (?:`([0-9a-f ]+)`)? ?\| (.+) \| (.*) \|$", re.MULTILINE)
_FORMAT = re.compile(r"([cBHI])(\d*)")
_SIZES = {"B": 1, "H": 2, "I": 4}


class Row(NamedTuple):
    offset: int
    length: int
    data: bytes
    meaning: str
    here: str


def rows(heading: str = "") -> list[Row]:
    """The rows of all tables, or of the one below a heading."""
    text = PAGE.read_text()
    if heading:
        text = text.partition(f"## {heading}\n")[2].partition("\n## ")[0]
    return [
        Row(int(offset), int(length), bytes.fromhex(data), meaning, here)
        for offset, length, data, meaning, here in _ROW.findall(text)
    ]


def lua_format(part: str, name: str) -> list[int]:
    """The sizes of the fields of a format in a script; 0 for a text whose length stands before it."""
    found = re.search(rf"^local {name} = (?:FRESH \.\. )?'>?([^']+)'", scripts.read(f"parts/{part}"), re.MULTILINE)
    assert found is not None
    return [int(size) if size else _SIZES[letter] for letter, size in _FORMAT.findall(found[1])]


def unpacked() -> Record:
    return records.unpack("greet-ada", VALUE)


def test_the_tables_take_up_every_byte_of_the_example_in_order() -> None:
    at = 0
    for row in rows():
        assert (row.offset, row.length) == (at, len(row.data)), row
        assert row.data == VALUE[at : at + row.length], row
        at += row.length
    assert at == len(VALUE)


def test_the_example_is_the_task_that_the_page_tells_of() -> None:
    spec = Spec(id="greet-ada", type="greet", nonce="q7Xe2Lm9", payload=b'{"name":"Ada"}', max_retry=3, timeout=300.0)
    assert unpacked() == Record(
        spec=spec,
        seq=1,
        status=Status.SUCCESS,
        submitted_at=1794802873361,
        due_at=1794802873361,
        place=Place.MAIN,
        position=2,
        attempt=1,
        fence=1794802873389000,
        nonce="k4Rt8Zp1",
        worker_id="web-1",
        started_at=1794802873389,
        finished_at=1794802873398,
        result=b'"Hello, Ada"',
        execution_time=0.0025,
    )


def test_python_packs_what_was_asked_as_the_example_has_it() -> None:
    state_at = rows("The state")[0].offset
    assert records.pack_spec(unpacked().spec) == VALUE[:state_at]


def test_numbers_in_the_tables_are_those_in_the_bytes() -> None:
    numbers = [
        row for heading in ("The lengths", "The state", "The run") for row in rows(heading) if row.here.isdecimal()
    ]
    assert len(numbers) > 15
    for row in numbers:
        assert int.from_bytes(row.data) == int(row.here), row


def test_the_scripts_have_fields_of_the_same_sizes() -> None:
    assert [row.length for row in rows("The lengths")] == lua_format("lanes", "LENGTHS")
    assert [row.length for row in rows("The state")] == lua_format("lanes", "FRESH")
    texts = ("`k4Rt8Zp1`", "`web-1`")  # their lengths stand before them
    run = [0 if row.here in texts else row.length for row in rows("The run")]
    assert [*run, 0] == lua_format("records", "STATE")


def test_the_lists_have_as_many_fields_as_the_page_says() -> None:
    body, extras = rows("The body")[0], rows("The extras")[0]
    assert len(msgspec.msgpack.decode(VALUE[body.offset : rows("The state")[0].offset])) == 5
    assert len(msgspec.msgpack.decode(VALUE[extras.offset :])) == 4
    assert len(records.Body.__struct_fields__) == 18
    assert len(records.Extras.__struct_fields__) == 8


def test_every_status_letter_is_listed() -> None:
    listed = re.findall(r"^\| `(\w)` \| `(\w+)` \|", PAGE.read_text(), re.MULTILINE)
    assert dict(listed) == {letter: status.value for letter, status in records.STATUSES.items()}
