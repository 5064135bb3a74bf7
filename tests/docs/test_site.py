"""The site of the docs: its navigation has every page, and what is wrong with a built site is found."""

from __future__ import annotations

from pathlib import Path

import pytest

from docs import site
from tests.docs.pages import ROOT


def test_the_navigation_has_every_page_and_each_is_there() -> None:
    pages = [path for pattern in site.WITH_PAGES for path in ROOT.glob(pattern)]
    listed = str(site.navigation(pages))  # which refuses a page that is not listed
    assert [page.name for page in pages if f"'{page.relative_to(ROOT)}'" not in listed] == []


def test_a_page_that_is_not_listed_is_refused() -> None:
    with pytest.raises(site.SiteError, match=r"not in the list .*: docs/new\.md"):
        site.navigation([ROOT / "docs" / "new.md"])


def test_links_that_lead_nowhere_are_found(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "index.html").write_text('<h1 id="top">A</h1><a href="../">up</a><img src="../gone.svg">')
    (tmp_path / "index.html").write_text(
        '<a href="a/#top">good</a><a href="a/#down">bad</a><a href="b/">bad</a><a href="https://example.org/">other</a>'
    )
    assert sorted(site.broken_links(tmp_path)) == [
        "a/index.html: ../gone.svg leads nowhere",
        "index.html: a/#down has no such heading",
        "index.html: b/ leads nowhere",
    ]


def test_what_would_be_loaded_from_another_host_is_found(tmp_path: Path) -> None:
    (tmp_path / "index.html").write_text(
        '<script src="https://cdn.example/x.js"></script><a href="https://example.org/">'
    )
    (tmp_path / "style.css").write_text(
        '@import url("//fonts.example/a.css"); p { background: url(https://img.example/b) }'
    )
    (tmp_path / "main.js").write_text('var ns = "http://www.w3.org/2000/svg", lib = "https://unpkg.com/mermaid"')
    assert sorted(site.other_hosts(tmp_path)) == [
        "index.html: names https://cdn.example/x.js",
        "main.js: names https://unpkg.com/mermaid",
        "style.css: names //fonts.example/a.css",
        "style.css: names https://img.example/b",
    ]


def test_a_file_that_a_page_links_to_becomes_a_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(site, "PAGES", tmp_path)
    site.write_page(ROOT / "docs" / "deploying.md")
    assert "(../deploy/Dockerfile.md)" in (tmp_path / "docs" / "deploying.md").read_text()
    shown = (tmp_path / "deploy" / "Dockerfile.md").read_text()
    assert "````dockerfile\n" in shown
    assert (ROOT / "deploy" / "Dockerfile").read_text() in shown
