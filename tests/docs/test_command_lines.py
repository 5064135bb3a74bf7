"""Every command line of `tickwork` in the README and the docs that is shown, not run, exists with its options."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from tests.docs.pages import PAGES, ROOT, blocks_of
from tests.support.command_lines import parse


def command_lines(page: Path) -> list[list[str]]:
    text = "".join(block.text for block in blocks_of(page) if block.language == "sh").replace("\\\n", " ")
    lines = re.findall(r"^(?:.*&& )?tickwork (.*)$", text, re.MULTILINE)
    return [shlex.split(re.split(r" [|>;&] ?", line)[0], comments=True) for line in lines]


SHOWN = {str(page.relative_to(ROOT)): page for page in PAGES if command_lines(page)}


@pytest.mark.parametrize("page", SHOWN)
def test_command_lines_exist(page: str) -> None:
    for words in command_lines(SHOWN[page]):
        parse(words)


def test_there_are_some() -> None:
    assert {"README.md", "docs/redis.md", "docs/deploying.md"} <= set(SHOWN)
