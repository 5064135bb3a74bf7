"""The types that a user's file meets: wrong calls are found, right ones are left alone."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
USER_FILE = ROOT / "tests" / "support" / "typed_user.py"
MARK = re.compile(r"  # type: ignore\[([a-z-]+)\]$")
FOUND = re.compile(r"^[^:]+:(\d+): error: (.*)\[([a-z-]+)\]$")


@pytest.fixture(scope="module")
def marked() -> dict[int, str]:
    """The lines that are wrong on purpose, each with the kind of its mistake."""
    lines = USER_FILE.read_text().splitlines()
    return {number: found[1] for number, line in enumerate(lines, 1) if (found := MARK.search(line))}


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> dict[int, str]:
    """What a strict type checker says of the file without its marks."""
    pytest.importorskip("mypy")
    copy = tmp_path_factory.mktemp("user") / "typed_user.py"
    copy.write_text("\n".join(MARK.sub("", line) for line in USER_FILE.read_text().splitlines()) + "\n")
    shown = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--no-error-summary", "--no-pretty", str(copy)],
        capture_output=True, text=True, cwd=ROOT, check=False,
    )  # fmt: skip
    assert shown.returncode in (0, 1), shown.stdout + shown.stderr
    errors = [match for line in shown.stdout.splitlines() if (match := FOUND.match(line))]
    assert errors, shown.stdout
    return {int(match[1]): match[3] for match in errors}


def test_every_mistake_is_found(marked: dict[int, str], found: dict[int, str]) -> None:
    lines = USER_FILE.read_text().splitlines()
    missed = [f"{number}: {lines[number - 1].strip()}" for number in marked if number not in found]
    assert missed == []
    assert len(marked) > 25


def test_each_is_found_for_the_right_reason(marked: dict[int, str], found: dict[int, str]) -> None:
    assert {number: found.get(number) for number in marked} == marked


def test_right_code_is_left_alone(marked: dict[int, str], found: dict[int, str]) -> None:
    lines = USER_FILE.read_text().splitlines()
    blamed = [f"{number}: {lines[number - 1].strip()}" for number in found if number not in marked]
    assert blamed == []
