"""What newcomers see first: a program and what it prints, commands that exist, figures that the docs have."""

from __future__ import annotations

import re

from tests.docs import pages

README = pages.ROOT / "README.md"
FIRST_SCREEN = README.read_text(encoding="utf-8").partition("\n## ")[0]


def test_the_first_program_has_twelve_lines_and_shows_what_it_prints() -> None:
    """`test_snippets.py` runs it and compares."""
    programs = [block for block in pages.blocks_of(README) if block.language == "python"]
    assert [block.output for block in programs if "print(" in block.text] == ["sent 'Hello' to ada@example.com\n"]
    assert len([line for line in programs[0].text.splitlines() if line.strip()]) == 12


def test_the_commands_are_there() -> None:
    makefile = (pages.ROOT / "Makefile").read_text(encoding="utf-8")
    named = re.findall(r"^make (\S+)", FIRST_SCREEN, re.MULTILINE)
    assert named == ["demo", "test"]
    assert [name for name in named if f"\n{name}:" not in makefile] == []


def test_the_speed_of_rq_is_that_of_the_table() -> None:
    page = (pages.ROOT / "docs" / "performance.md").read_text(encoding="utf-8")
    table = page.partition("\n## All libraries, 15 November\n")[2]
    column = re.compile(r"^\| \**([\w ]+?)\** \|[^|]*\|[^|]*\| ([\d,]+)/s", re.MULTILINE)
    drained = dict(column.findall(table))  # 10 at once
    line = FIRST_SCREEN.partition("**Beside RQ")[2].partition("[figures")[0]
    assert re.findall(r"\d[\d,]+", line) == [drained["RQ"], drained["RQ simple"], "10", drained["Tickwork"]]


def test_the_picture_is_small() -> None:
    """It is fetched with the page."""
    [picture] = re.findall(r"!\[[^\]]+\]\(([^)]+\.png)\)", FIRST_SCREEN)
    assert (pages.ROOT / picture).stat().st_size < 150_000
