"""Every relative link in the README, the docs and the examples leads to a file, and to a heading if it names one."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.docs.pages import PAGES, ROOT

LINKED = [*PAGES, *sorted((ROOT / "examples").rglob("*.md"))]
_LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
_FENCE = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)


def anchors(page: Path) -> set[str]:
    """The names that a page's headings are linked by: small letters, blanks as dashes, no punctuation."""
    headings = re.findall(r"^#+ (.+)$", _FENCE.sub("", page.read_text()), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", LINKED, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    broken: list[str] = []
    for link in _LINK.findall(_FENCE.sub("", page.read_text())):
        if re.match(r"[a-z]+:", link):
            continue
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        if not target.exists() or (anchor and (target.suffix != ".md" or anchor not in anchors(target))):
            broken.append(link)
    assert broken == []


def test_every_page_is_in_the_index() -> None:
    index = (ROOT / "docs" / "README.md").read_text()
    missing = [page.name for page in PAGES if page.parent.name == "docs" and f"({page.name}" not in index]
    assert [name for name in missing if name != "README.md"] == []


def test_every_recipe_is_in_the_index_of_recipes() -> None:
    index = (ROOT / "docs" / "recipes" / "README.md").read_text()
    recipes = [page.name for page in PAGES if page.parent.name == "recipes" and page.name != "README.md"]
    assert len(recipes) >= 6
    assert [name for name in recipes if f"({name}" not in index] == []


def test_every_example_is_listed() -> None:
    listed = (ROOT / "examples" / "README.md").read_text()
    assert [file.name for file in sorted((ROOT / "examples").glob("*.py")) if f"({file.name})" not in listed] == []
