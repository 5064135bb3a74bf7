"""`make affected`: runs the tests that the files changed since a commit need, by the table in `affected.txt`."""

from __future__ import annotations

import argparse
import json
import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import NamedTuple

from tests.suite.choices import VARIABLE, Choice

ROOT = Path(__file__).resolve().parents[2]
TABLE = Path(__file__).with_name("affected.txt")
COMMAND = "make:"
SHOWN = 6  # files of one reason that are named


class Row(NamedTuple):
    """One line of the table: what begins so needs these tests and these commands."""

    prefix: str
    choices: tuple[Choice, ...]
    commands: tuple[str, ...] = ()
    added: bool = False


class Need(NamedTuple):
    """The tests that are needed for one reason, which is a line of the table or a rule."""

    reason: str
    files: list[str]
    row: Row


def read_table(text: str) -> list[Row]:
    """The lines of the table; a line that begins with spaces belongs to the one above."""
    lines: list[list[str]] = []
    for line in text.splitlines():
        if not line.strip() or line.startswith("#"):
            continue
        if line.startswith(" "):
            lines[-1] += line.split()
        else:
            lines.append(line.split())
    return [_row(words) for words in lines]


def _row(words: Sequence[str]) -> Row:
    added = words[0] == "+"
    prefix, *rest = words[1:] if added else words
    if not rest:
        raise ValueError(f"the line of {prefix} names no tests: a `-` says that there are none")
    commands = tuple(word.removeprefix(COMMAND) for word in rest if word.startswith(COMMAND))
    choices = tuple(Choice.read(word) for word in rest if word != "-" and not word.startswith(COMMAND))
    return Row(prefix, choices, commands, added)


def load_table() -> list[Row]:
    return read_table(TABLE.read_text(encoding="utf-8"))


def row_of(file: str, table: Iterable[Row]) -> Row | None:
    """The line with the longest beginning of this path."""
    rows = [row for row in table if not row.added and file.startswith(row.prefix)]
    return max(rows, key=lambda row: len(row.prefix), default=None)


def needs_of(file: str, table: Sequence[Row], root: Path = ROOT) -> list[Need]:
    """What a changed file needs, with the reason of each; empty for a file that no line and no rule knows."""
    row = row_of(file, table)
    if row is not None:
        rows = [row, *(more for more in table if more.added and file.startswith(more.prefix))]
        return [Need(f"{row.prefix} in the table", [file], row) for row in rows]
    if not file.startswith("tests/"):
        return []
    path = Path(file)
    if fnmatchcase(path.name, "test_*.py"):
        itself = (Choice(file.removeprefix("tests/")),) if (root / file).exists() else ()
        return [Need("test files that have changed", [file], Row(file, itself))]
    folder = next(
        folder for folder in path.parents if any((root / folder).glob("test_*.py")) or folder == Path("tests")
    )
    reason = f"what other tests of {folder}/ use"
    return [Need(reason, [file], Row(f"{folder}/", (Choice(f"{folder.relative_to('tests')}/"),)))]


def gather(files: Iterable[str], table: Sequence[Row], root: Path = ROOT) -> tuple[list[Need], list[str]]:
    """What these files need, one entry a reason; and the files that nobody knows."""
    found: dict[str, Need] = {}
    unknown = []
    for file in files:
        needs = needs_of(file, table, root)
        if not needs:
            unknown.append(file)
        for need in needs:
            if need.reason not in found:
                found[need.reason] = need
                continue
            known = found[need.reason]
            choices = tuple(dict.fromkeys(known.row.choices + need.row.choices))
            found[need.reason] = known._replace(files=known.files + [file], row=known.row._replace(choices=choices))
    return list(found.values()), unknown


def git(*args: str) -> list[str]:
    """The paths that a git command prints, each ended by a zero byte."""
    ran = subprocess.run(["git", *args], cwd=ROOT, capture_output=True, text=True, check=False)
    if ran.returncode:
        raise SystemExit(f"git {' '.join(args)} failed: {ran.stderr.strip() or ran.returncode}")
    return [path for path in ran.stdout.split("\0") if path]


def default_base() -> str:
    """The commit at which this branch left origin/main; HEAD where there is no such branch or it was never left."""
    for command in (["git", "merge-base", "HEAD", "origin/main"], ["git", "rev-parse", "HEAD"]):
        ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
        if ran.returncode == 0:
            return ran.stdout.strip()
    raise SystemExit("make affected compares with a commit of git, and this folder is no clone: run make test")


def changed_files(since: str) -> list[str]:
    """Paths that differ from that commit: committed, not committed, new, deleted, and both names of a renamed file."""
    changed = git("diff", "--name-only", "--no-renames", "-z", since, "--")
    return sorted({*changed, *git("ls-files", "--others", "--exclude-standard", "-z")})


def explain(needs: Sequence[Need], since: str) -> str:
    """Which tests are needed, and for which files."""
    if not needs:
        return f"Nothing has changed since {since}."
    lines = [f"Changed since {since}, and the tests needed:"]
    for need in needs:
        tests = [str(choice) for choice in need.row.choices] + [f"make {command}" for command in need.row.commands]
        more = [f"and {len(need.files) - SHOWN} more"] if len(need.files) > SHOWN else []
        lines.append(f"  {need.reason}: {', '.join(need.files[:SHOWN] + more)}")
        lines += [f"      {test}" for test in tests or ["none"]]
    return "\n".join(lines)


def pytest_command(choices: Sequence[Choice], extra: Sequence[str]) -> list[str]:
    """One session over all files that hold such tests; the plugin leaves those of them that were chosen."""
    files = sorted({file for choice in choices for file in choice.files(ROOT)})
    whole = {f"tests/{choice.path}".rstrip("/") for choice in choices if choice.path.endswith("/")}
    paths = sorted(whole | {file for file in files if not any(file.startswith(f"{folder}/") for folder in whole)})
    return [sys.executable, "-m", "pytest", "-p", "tests.suite.choices", *paths, *extra]


def run(needs: Sequence[Need], extra: Sequence[str]) -> int:
    """Run what is needed, commands first; the exit code of the first that fails."""
    choices = list(dict.fromkeys(choice for need in needs for choice in need.row.choices))
    for name in dict.fromkeys(command for need in needs for command in need.row.commands):
        if name.startswith("ui") and shutil.which("npm") is None:
            print(f"make {name} is left out: there is no npm here", flush=True)
            continue
        code = subprocess.run(["make", "--no-print-directory", name], cwd=ROOT, check=False).returncode
        if code:
            return code
    if not choices:
        return 0
    command = pytest_command(choices, extra)
    environment = {**os.environ, VARIABLE: json.dumps([str(choice) for choice in choices])}
    return subprocess.run(command, cwd=ROOT, env=environment, check=False).returncode


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="make affected", description=__doc__)
    parser.add_argument("--since", help="a commit (default: where this branch left origin/main, else HEAD)")
    parser.add_argument("--list", action="store_true", help="print the tests, run none")
    options, extra = parser.parse_known_args(argv)
    since = options.since or default_base()
    needs, unknown = gather(changed_files(since), load_table())
    if unknown:
        names = ", ".join(map(shlex.quote, unknown))
        print(f"No line of {TABLE.relative_to(ROOT)} fits {names}: add one, or run make test", file=sys.stderr)
        return 2
    print(explain(needs, since), flush=True)
    return 0 if options.list else run(needs, extra)


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
