"""The types that a user's file meets: wrong calls are found, right ones are left alone."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
USER_FILE = ROOT / "tests" / "support" / "typed_user.py"
LINES = ["", *USER_FILE.read_text().splitlines()]
MARK = re.compile(r"  # type: ignore\[([a-z-]+)\]$")
FOUND = re.compile(r"^[^:]*typed_user\.py:(\d+): error: (.*)\[([a-z-]+)\]$")

Found = dict[int, str]


@pytest.fixture(scope="module")
def marked() -> Found:
    """The lines that are wrong on purpose, each with what mypy calls its mistake."""
    return {number: found[1] for number, line in enumerate(LINES) if (found := MARK.search(line))}


@pytest.fixture(scope="module", params=["mypy", "pyright"])
def checker(request: pytest.FixtureRequest) -> str:
    pytest.importorskip(request.param)
    return str(request.param)


@pytest.fixture(scope="module")
def found(checker: str, tmp_path_factory: pytest.TempPathFactory) -> Found:
    """What a type checker, at its strictest, says of the file without its marks."""
    copy = tmp_path_factory.mktemp("user") / "typed_user.py"
    copy.write_text("\n".join([*(MARK.sub("", line) for line in LINES[1:]), "# pyright: strict", ""]))
    run: Callable[[Path], Found] = {"mypy": by_mypy, "pyright": by_pyright}[checker]
    found = run(copy)
    assert found
    return found


def by_mypy(file: Path) -> Found:
    cache = ROOT / ".mypy_cache"
    kept = cache if os.access(cache if cache.exists() else ROOT, os.W_OK) else os.devnull
    shown = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--no-error-summary", "--no-pretty", "--cache-dir", kept, str(file)],
        capture_output=True, text=True, cwd=ROOT, check=False,
    )  # fmt: skip
    assert shown.returncode in (0, 1), shown.stdout + shown.stderr
    errors = [match for line in shown.stdout.splitlines() if (match := FOUND.match(line))]
    return {int(match[1]): match[3] for match in errors}


def by_pyright(file: Path) -> Found:
    shown = subprocess.run(
        [sys.executable, "-m", "pyright", "--pythonpath", sys.executable, "--outputjson", str(file)],
        capture_output=True, text=True, cwd=file.parent, check=False,
    )  # fmt: skip
    assert shown.returncode in (0, 1), shown.stdout + shown.stderr
    errors = json.loads(shown.stdout)["generalDiagnostics"]
    return {each["range"]["start"]["line"] + 1: each["message"] for each in errors}


def test_every_mistake_is_found(marked: Found, found: Found) -> None:
    missed = [f"{number}: {LINES[number].strip()}" for number in marked if number not in found]
    assert missed == []
    assert len(marked) > 60


@pytest.mark.parametrize("checker", ["mypy"], indirect=True)  # the names of the mistakes are mypy's
def test_each_is_found_for_the_right_reason(marked: Found, found: Found) -> None:
    assert {number: found.get(number) for number in marked} == marked


def test_right_code_is_left_alone(marked: Found, found: Found) -> None:
    blamed = [f"{number}: {LINES[number].strip()}: {found[number]}" for number in found if number not in marked]
    assert blamed == []
