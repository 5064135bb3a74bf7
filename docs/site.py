"""Builds the documentation as a site: `make docs`, or `python -m docs.site`.

The pages keep the paths that they have in the repository, so that links between them stay as they are. The navigation
is the list of all pages in docs/README.md. A file that is no page becomes one if a page links to it. When all is built,
every link of every page is followed, and every address that a browser would load is looked at: the site needs no other
host.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

ROOT = Path(__file__).resolve().parents[1]
BUILD = ROOT / "build" / "docs"
PAGES, SITE = BUILD / "pages", BUILD / "site"
WITH_PAGES = (
    "README.md",
    "CONTRIBUTING.md",
    "CHANGELOG.md",
    "requirements/README.md",
    "examples/**/*.md",
    "docs/**/*.md",
)
LANGUAGES = {
    ".json": "json",
    ".py": "python",
    ".yaml": "yaml",
    ".service": "ini",
    ".env": "ini",
    "": "sh",
    ".mjs": "javascript",
    ".go": "go",
    ".proto": "protobuf",
}
SETTINGS = {
    "site_name": "Tickwork",
    "docs_dir": PAGES.name,
    "site_dir": SITE.name,
    "copyright": "MIT licence",
    "theme": {
        "name": "material",
        "font": False,  # those of the reader's system: none is loaded
        "features": ["navigation.indexes", "navigation.top", "content.code.copy", "search.highlight"],
        "palette": [
            {"media": f"(prefers-color-scheme: {scheme})", "scheme": name, "toggle": {"icon": icon, "name": text}}
            for scheme, name, icon, text in (
                ("light", "default", "lucide/sun", "Switch to dark colours"),
                ("dark", "slate", "lucide/moon", "Switch to light colours"),
            )
        ],
    },
}
# Where the theme's scripts would fetch libraries that these pages do not use.
FETCHED = re.compile(r"https://(?:unpkg\.com|cdn\.jsdelivr\.net|api\.github\.com)/")
# Names of formats and licences: nothing is fetched from there.
NEVER_FETCHED = re.compile(r"https?://(?:www\.w3\.org/|fontawesome\.com|zensical\.org)")

_FENCE = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"(?<=\]\()([^)\s#:]+)(#[^)\s]*)?(?=\))")
_ENTRY = re.compile(r"^- \[([^\]]+)\]\(([^)#]+)\)", re.MULTILINE)


class SiteError(Exception):
    """What is wrong with the pages or with the site, one problem a line."""


def main() -> None:
    shutil.rmtree(BUILD, ignore_errors=True)
    pages = [path for pattern in WITH_PAGES for path in sorted(ROOT.glob(pattern))]
    for page in pages:
        write_page(page)
    (BUILD / "mkdocs.yml").write_text(json.dumps(SETTINGS | {"nav": navigation(pages)}, indent=2))
    command = [sys.executable, "-m", "zensical", "build", "--strict", "--config-file", str(BUILD / "mkdocs.yml")]
    if subprocess.run(command, cwd=BUILD, check=False).returncode != 0:
        raise SiteError("the site was not built")
    for script in SITE.rglob("*.js"):
        script.write_text(FETCHED.sub("/not-loaded/", script.read_text()))
    problems = [*broken_links(SITE), *other_hosts(SITE)]
    if problems:
        raise SiteError("\n".join(problems))
    print(f"{len(list(SITE.rglob('*.html')))} pages: {os.path.relpath(SITE)}/index.html")


def write_page(page: Path) -> None:
    """Copy a page; what it links to that is no page becomes one beside it."""
    target = PAGES / page.relative_to(ROOT)
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(_outside_code(page.read_text(), lambda text: _for_site(text, page)))


def _outside_code(text: str, change: Callable[[str], str]) -> str:
    fences = _FENCE.findall(text)
    parts = [change(part) for part in _FENCE.split(text)]
    return "".join(part + fence for part, fence in zip(parts, [*fences, ""], strict=True))


def _for_site(text: str, page: Path) -> str:
    def follow(link: re.Match[str]) -> str:
        path, anchor = link[1], link[2] or ""
        target = (page.parent / path).resolve()
        if target.suffix in (".md", ".svg", ".png"):
            if target.suffix != ".md":
                _copy(target)
            return path + anchor
        if not target.is_file():
            raise SiteError(f"{page.relative_to(ROOT)}: {path} is no file, so it cannot be a page")
        show_file(target)
        return f"{path}.md{anchor}"

    return re.sub(r"^  - ", "    - ", _LINK.sub(follow, text), flags=re.MULTILINE)


def _copy(file: Path) -> None:
    target = PAGES / file.relative_to(ROOT)
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(file, target)


def show_file(file: Path) -> None:
    """Make a page of a program or a configuration file."""
    name = file.relative_to(ROOT)
    target = PAGES / f"{name}.md"
    target.parent.mkdir(parents=True, exist_ok=True)
    language = "dockerfile" if file.name == "Dockerfile" else LANGUAGES[file.suffix]
    target.write_text(f"# {name}\n\n````{language}\n{file.read_text()}````\n")


def navigation(pages: list[Path]) -> list[object]:
    """The list of all pages in docs/README.md: its headings are sections, a README stands for its folder."""
    text = (ROOT / "docs" / "README.md").read_text().partition("\n## All pages\n")[2].partition("\n## ")[0]
    sections: list[object] = [{"Tickwork": ["README.md", {"All pages": "docs/README.md"}]}]
    seen = {ROOT / "README.md", ROOT / "docs" / "README.md"}
    for part in text.split("\n### ")[1:]:
        heading, _, entries = part.partition("\n")
        listed: list[object] = []
        for title, link in _ENTRY.findall(entries):
            page = (ROOT / "docs" / link).resolve()
            children = sorted(each for each in page.parent.glob("*.md") if each != page) if _is_index(page) else []
            path = str(page.relative_to(ROOT))
            listed.append({title: [path, *(str(each.relative_to(ROOT)) for each in children)] if children else path})
            seen |= {page, *children}
        sections.append({heading: listed})
    missing = [str(page.relative_to(ROOT)) for page in pages if page not in seen]
    if missing:
        raise SiteError(f"not in the list of all pages in docs/README.md: {', '.join(missing)}")
    return sections


def _is_index(page: Path) -> bool:
    return page.name == "README.md" and page.parent.parent == ROOT / "docs"


class Page(HTMLParser):
    """What a page of the site links to, what it loads, and the names of its parts."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self.loaded: list[str] = []
        self.ids: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        found = {name: value for name, value in attributes if value}
        if "id" in found:
            self.ids.add(found["id"])
        if tag == "a" and "href" in found:
            self.links.append(found["href"])
        else:
            self.loaded += [found[name] for name in ("src", "href") if name in found]


def broken_links(site: Path) -> Iterator[str]:
    """Every link to, and everything that is loaded from, a file or a heading that is not there."""
    pages = {file: Page(file.read_text()) for file in site.rglob("*.html")}
    for file, page in pages.items():
        if file.name == "404.html":  # its links begin at the root of a server
            continue
        for link in (*page.links, *page.loaded):
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            target = (file.parent / unquote(parts.path)).resolve() if parts.path else file
            if target.is_dir():
                target /= "index.html"
            anchor = unquote(parts.fragment)
            if not target.is_file():
                yield f"{file.relative_to(site)}: {link} leads nowhere"
            elif anchor and target in pages and anchor not in pages[target].ids | {"__comments"}:
                yield f"{file.relative_to(site)}: {link} has no such heading"


def other_hosts(site: Path) -> Iterator[str]:
    """Every address of another host that a browser might load something from. Links that a reader follows are none."""
    for file in site.rglob("*"):
        if file.suffix == ".html":
            page = Page(file.read_text())
            named = [link for link in page.loaded if urlsplit(link).netloc]
            if 'class="mermaid"' in file.read_text():
                yield f"{file.relative_to(site)}: a mermaid diagram is drawn by a script of another host"
        elif file.suffix in (".js", ".css"):
            named = re.findall(r"https?://[\w.-]+[\w/.-]*|(?<=url\([\"'])//[\w.-]+[\w/.-]*", file.read_text())
        else:
            continue
        yield from (f"{file.relative_to(site)}: names {each}" for each in named if not NEVER_FETCHED.match(each))


if __name__ == "__main__":
    try:
        main()
    except SiteError as error:
        sys.exit(f"error: {error}")
