"""Our cron engine against what five other engines answer: the tables of `tests/fixtures/cron`.

The README there describes each table, and lists what was left out and why. All rows must pass. A table that is missing
or shorter than in that list is a failure.
"""

from __future__ import annotations

import csv
import re
from collections import Counter
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from tickwork.cron import Cron, Dst
from tickwork.cron.parse import LAST, CronLine, _Field, _plain, parse
from tickwork.errors import CronError

FOLDER = Path(__file__).resolve().parents[1] / "fixtures" / "cron"
SECOND = timedelta(seconds=1)
WHOLE = parse("* * * * * *")
ATTRIBUTES = {
    "second": "seconds", "minute": "minutes", "hour": "hours", "day": "days", "month": "months", "weekday": "weekdays",
}  # fmt: skip
BOTH_RULES: tuple[Dst, ...] = ("once", "instant")

Row = dict[str, str]
TABLES: dict[str, list[Row]] = {}


def rows_of(table: str) -> pytest.MarkDecorator:
    with (FOLDER / f"{table}.tsv").open(encoding="utf-8", newline="") as file:
        TABLES[table] = list(csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE, strict=True))
    return pytest.mark.parametrize("row", [pytest.param(row, id=row["name"]) for row in TABLES[table]])


def test_every_table_is_used_and_as_long_as_its_readme_has_it() -> None:
    found = Counter((row["name"].rpartition("-")[0], table) for table, rows in TABLES.items() for row in rows)
    section = (FOLDER / "README.md").read_text(encoding="utf-8").partition("## Rows\n")[2].partition("## ")[0]
    head, _, *lines = re.findall(r"^\|(.+)\|$", section, re.MULTILINE)
    tables = [cell.strip(" `") for cell in head.split("|")[1:]]
    stated: dict[tuple[str, str], int] = {}
    for line in lines:
        name, *counts = (cell.strip() for cell in line.split("|"))
        stated |= {(name, table): int(count) for table, count in zip(tables, counts, strict=True) if count}
    assert stated == found
    assert {file.stem for file in FOLDER.glob("*.tsv")} == TABLES.keys()


def test_no_row_has_the_name_of_another() -> None:
    names = Counter(row["name"] for rows in TABLES.values() for row in rows)
    assert [name for name, count in names.items() if count > 1] == []


def crons(row: Row) -> list[Cron]:
    """The line under the rule of its row, or under both where it has no time that a change of the clock touches."""
    rules = BOTH_RULES if row["rule"] == "any" else [rule for rule in BOTH_RULES if rule == row["rule"]]
    assert rules
    return [Cron(row["line"], row["zone"], rule) for rule in rules]


def utc(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def next_of(cron: Cron, at: datetime) -> datetime | None:
    found = cron.next(at)
    return None if found is None else found.astimezone(UTC)


def check_step(cron: Cron, at: datetime, step: str) -> datetime:
    """One step on from `at`, to the time that is returned."""
    wanted = utc(step.lstrip("<>"))
    found = next_of(cron, wanted if step[0] == "<" else at)
    if step[0] == "<":  # the last run before `at`: it fires, and none comes between the two
        assert cron.matches(wanted)
        assert found is None or found >= at
    elif step[0] == ">":
        assert found is None or found > wanted
    else:
        assert found == wanted
    return wanted


@rows_of("times")
def test_times(row: Row) -> None:
    if row["times"] == "never":
        with pytest.raises(CronError, match="never comes"):
            crons(row)
        return
    for cron in crons(row):
        at = utc(row["start"])
        for step in row["times"].split():
            at = check_step(cron, at, step)


@rows_of("matches")
def test_matches(row: Row) -> None:
    at = utc(row["at"])
    if len(row["line"].split()) == 5:
        at = at.replace(second=0)  # a minute matches as a whole
    for cron in crons(row):
        assert cron.matches(at) is (row["matches"] == "yes")


@rows_of("within")
def test_matches_within(row: Row) -> None:
    found = next_of(Cron(row["line"], row["zone"]), utc(row["start"]) - SECOND)
    assert (found is not None and found <= utc(row["end"])) is (row["matches"] == "yes")


@rows_of("lines")
def test_lines_are_valid_or_refused(row: Row) -> None:
    if row["is"] == "valid":
        Cron(row["line"])
    else:
        assert row["is"] == "refused"
        with pytest.raises(CronError):
            Cron(row["line"])


def bits(values: str) -> int:
    """Of `1,3,5-7`, as the masks of a `CronLine`."""
    mask = 0
    for item in values.split(","):
        low, _, high = item.partition("-")
        mask |= sum(1 << value for value in range(int(low), int(high or low) + 1))
    return mask


@rows_of("fields")
def test_fields(row: Row) -> None:
    line = parse(row["line"])
    for field, attribute in ATTRIBUTES.items():
        check_field(line, field, row[field], attribute)
    for fact in row["other"].split():
        name, _, value = fact.partition("=")
        if name == "both":  # a day must fit both day fields, as one of them allows any
            assert line.any_day or line.any_weekday
        else:
            assert str(getattr(line, name)) == value


def check_field(line: CronLine, field: str, values: str, attribute: str) -> None:
    if values == "*":
        assert getattr(line, attribute) == getattr(WHOLE, attribute)
    elif values in ("L", "LW"):
        assert (line.last_day, line.workdays) == ((True, ()) if values == "L" else (False, (LAST,)))
    elif values:
        special = [item for item in values.split(",") if re.search("[L#]", item)]
        nth = [(int(item[0]), LAST if item[1] == "L" else int(item[2])) for item in special]
        plain = ",".join(item for item in values.split(",") if item not in special)
        assert getattr(line, attribute) == (bits(plain) if plain else 0)
        assert field != "weekday" or line.nth_weekdays == tuple(nth)


@rows_of("same")
def test_two_lines_are_the_same(row: Row) -> None:
    assert parse(row["line"]) == parse(row["same"])


@rows_of("one-field")
def test_one_field(row: Row) -> None:
    field = _Field("field", int(row["low"]), int(row["high"]), "")
    if row["values"] == "refused":
        with pytest.raises(CronError):
            _plain("a line", field, row["field"])
    else:
        assert _plain("a line", field, row["field"]) == bits(row["values"])
        assert parse(f"* * {row['field'].replace('0', '1')} * *").any_day is (row["star"] == "yes")
