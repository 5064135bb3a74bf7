"""Tests by path and kind of store, as the table of `affected.txt` names them; and the plugin of pytest that leaves only
those which the environment variable lists: `SUITE_CHOICES='["contract[memory]"]' pytest -p tests.suite.choices`."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable
from fnmatch import fnmatchcase
from pathlib import Path
from typing import NamedTuple

import pytest

VARIABLE = "SUITE_CHOICES"
KINDS = ("memory", "sqlite", "redis", "redis-partitioned", "redis-6.2", "valkey")
_WRITTEN = re.compile(r"([\w./*-]+?)(?:\[([\w.,-]+)\])?")


class Choice(NamedTuple):
    """The tests of a file, of a folder (with a slash at its end) or of a pattern of files, all below tests/; only those
    of some kinds of store, if kinds are named."""

    path: str
    kinds: tuple[str, ...] = ()

    @classmethod
    def read(cls, word: str) -> Choice:
        match = _WRITTEN.fullmatch(word)
        if match is None:
            raise ValueError(f"{word!r} is neither a path nor a path with kinds of stores in brackets")
        path, kinds = match[1], tuple((match[2] or "").split(",")) if match[2] else ()
        unknown = set(kinds) - set(KINDS)
        if unknown:
            raise ValueError(f"{word!r} names no kind of store: {', '.join(sorted(unknown))}")
        named = Path(path).suffix == ".py" or path.endswith("/")
        return cls(path if named else f"{path}/", kinds)

    def __str__(self) -> str:
        if not self.kinds:
            return self.path
        return f"{self.path.rstrip('/')}[{','.join(self.kinds)}]"

    def has_file(self, file: str) -> bool:
        """Whether a test file, by its path from the root of the repository, belongs to it."""
        path = f"tests/{self.path}"
        return file.startswith(path) if path.endswith("/") else fnmatchcase(file, path)

    def files(self, root: Path) -> list[str]:
        """The test files that belong to it."""
        tests = root / "tests"
        below = tests.glob(f"{self.path}**/test_*.py" if self.path.endswith("/") else self.path)
        return sorted(str(file.relative_to(root)) for file in below)

    def has(self, file: str, kinds: Iterable[str]) -> bool:
        """Whether a test of that file belongs to it, whose parameters name those kinds of stores."""
        return self.has_file(file) and (not self.kinds or not set(self.kinds).isdisjoint(kinds))


def file_of(item: pytest.Item) -> str:
    """The path of a test's file, from the root of the repository."""
    return item.nodeid.partition("::")[0]


def kinds_of(item: pytest.Item) -> list[str]:
    """The kinds of stores that the parameters of a test name."""
    callspec = getattr(item, "callspec", None)
    return [] if callspec is None else [value for value in callspec.params.values() if value in KINDS]


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    words = os.environ.get(VARIABLE)
    if not words:
        return
    choices = [Choice.read(word) for word in json.loads(words)]
    left = [item for item in items if any(choice.has(file_of(item), kinds_of(item)) for choice in choices)]
    config.hook.pytest_deselected(items=[item for item in items if item not in set(left)])
    items[:] = left
