"""What the page on the architecture and the map for contributors say of files and functions is there in the code."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.docs.pages import ROOT
from tickwork.store.contract import PARTS

SOURCE = ROOT / "src" / "tickwork"
ARCHITECTURE = (ROOT / "docs" / "architecture.md").read_text()
FLOWS = ARCHITECTURE.partition("## Five ways through the code")[2].partition("\n## ")[0]
MAP = (ROOT / "CONTRIBUTING.md").read_text().partition("## Where things are")[2].partition("\n## ")[0]
_TICKED = re.compile(r"`([^`]+)`")


def hops() -> list[str]:
    """The numbered lines of all flows, each in one piece."""
    return re.findall(r"^\d+\. (.+(?:\n   .+)*)", FLOWS, re.MULTILINE)


def is_file(text: str) -> bool:
    return text.endswith((".py", ".lua", "/"))


def find_file(name: str) -> Path:
    """By its path in the package; files of the Redis store may be named by their path in it."""
    found = [folder / name for folder in (SOURCE, SOURCE / "store" / "redis") if (folder / name).exists()]
    assert found, f"there is no file {name}"
    return found[0]


def undefined(text: str) -> list[str]:
    """The functions that are named behind a file, and that it does not define."""
    missing, file = [], None
    for name in _TICKED.findall(text):
        if is_file(name):
            file = find_file(name)
        elif file is not None:
            word = re.escape(name.rpartition(".")[2])
            if not re.search(rf"(def|class|local function) {word}\b", file.read_text()):
                missing.append(f"{name} in {file.relative_to(SOURCE)}")
    return missing


@pytest.mark.parametrize("hop", hops(), ids=lambda hop: _TICKED.findall(hop)[0] if "`" in hop else "prose")
def test_every_hop_is_a_function_of_the_file_it_names(hop: str) -> None:
    head, _, rest = " ".join(hop.split()).partition(": ")
    pairs = re.findall(r"`[^`]+\.(?:py|lua)` `[^`]+`", rest)
    assert [problem for text in (head, *pairs) for problem in undefined(text)] == []


def test_there_are_five_flows_of_several_hops() -> None:
    flows = FLOWS.split("\n### ")[1:]
    assert len(flows) == 5
    assert all(len(re.findall(r"^\d+\. ", flow, re.MULTILINE)) >= 8 for flow in flows)


def test_the_map_names_files_and_functions_that_are_there() -> None:
    rows = [row.split("|")[2] for row in MAP.splitlines() if row.startswith("| ") and "`" in row]
    assert len(rows) > 10
    assert [problem for row in rows for problem in undefined(row)] == []


def test_every_layer_is_on_the_page() -> None:
    folders = sorted(folder.name for folder in SOURCE.iterdir() if (folder / "__init__.py").exists())
    layers = ARCHITECTURE.partition("## The layers")[2].partition("\n## ")[0]
    assert [name for name in folders if not re.search(rf"\b{name}\b", layers)] == []


def test_every_part_of_a_store_is_on_the_page() -> None:
    assert [name for name in PARTS if f"\n| `{name}` |" not in ARCHITECTURE] == []
