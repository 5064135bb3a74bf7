"""The table of `make affected`: complete, without dead lines, and read as it says."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.suite.affected import (
    ROOT,
    Row,
    changed_files,
    explain,
    gather,
    load_table,
    needs_of,
    pytest_command,
    read_table,
    row_of,
)
from tests.suite.choices import KINDS, Choice
from tests.support import stores

TABLE = load_table()
CODE = sorted(
    path.relative_to(ROOT).as_posix()
    for path in (ROOT / "src" / "tickwork").rglob("*")
    if path.is_file() and "__pycache__" not in path.parts
)


def files_of_the_repository() -> list[str]:
    """What belongs to it: what git knows, or everything in a folder that is no clone."""
    ran = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=False)
    known = [name for name in ran.stdout.split("\0") if (ROOT / name).is_file()]
    return known if ran.returncode == 0 and known else CODE


def test_every_file_of_the_package_has_a_line_with_tests() -> None:
    rows = {file: row_of(file, TABLE) for file in CODE}
    assert [file for file, row in rows.items() if row is None or not row.choices] == []
    assert len(rows) > 500


def test_every_file_of_the_repository_has_a_line_or_a_rule() -> None:
    assert gather(files_of_the_repository(), TABLE)[1] == []


def test_every_line_is_of_some_file() -> None:
    assert [row.prefix for row in TABLE if not next(ROOT.glob(f"{row.prefix}*"), None)] == []


def test_no_line_is_of_files_that_all_have_longer_ones() -> None:
    used = {row_of(file, TABLE) for file in CODE}
    assert [row.prefix for row in TABLE if row.prefix.startswith("src/") and not row.added and row not in used] == []


def test_every_test_that_a_line_names_is_there() -> None:
    missing = {row.prefix: [str(choice) for choice in row.choices if not choice.files(ROOT)] for row in TABLE}
    assert {prefix: tests for prefix, tests in missing.items() if tests} == {}


def test_every_command_that_a_line_names_is_there() -> None:
    makefile = (ROOT / "Makefile").read_text()
    assert [name for row in TABLE for name in row.commands if f"\n{name}:" not in makefile] == []


def test_no_beginning_has_two_lines() -> None:
    prefixes = [(row.prefix, row.added) for row in TABLE]
    assert len(prefixes) == len(set(prefixes))


def test_the_kinds_of_stores_are_those_of_the_tests() -> None:
    assert stores.KINDS == KINDS


SMALL = read_table("""
# a remark
src/a/        unit/test_a.py
src/a/b       unit/test_b.py contract[memory]
              integration/
+ src/        unit/test_all.py
ui/           make:ui-check -
none          -
""")


def test_how_lines_are_read() -> None:
    assert SMALL[0] == Row("src/a/", (Choice("unit/test_a.py"),))
    assert SMALL[1].choices == (Choice("unit/test_b.py"), Choice("contract/", ("memory",)), Choice("integration/"))
    assert SMALL[2] == Row("src/", (Choice("unit/test_all.py"),), added=True)
    assert SMALL[3] == Row("ui/", (), ("ui-check",))
    assert SMALL[4] == Row("none", ())


@pytest.mark.parametrize(
    ("file", "prefix"),
    [("src/a/x.py", "src/a/"), ("src/a/b.py", "src/a/b"), ("src/a/b/c.py", "src/a/b"), ("src/c.py", None)],
)
def test_the_longest_beginning_wins(file: str, prefix: str | None) -> None:
    row = row_of(file, SMALL)
    assert (row and row.prefix) == prefix


def test_added_lines_come_beside_the_one_that_wins() -> None:
    assert [need.row.prefix for need in needs_of("src/a/x.py", SMALL)] == ["src/a/", "src/"]


def test_a_test_file_needs_itself_and_a_deleted_one_nothing(tmp_path: Path) -> None:
    (tmp_path / "tests" / "unit").mkdir(parents=True)
    (tmp_path / "tests" / "unit" / "test_a.py").touch()
    (need,) = needs_of("tests/unit/test_a.py", SMALL, tmp_path)
    assert need.row.choices == (Choice("unit/test_a.py"),)
    (need,) = needs_of("tests/unit/test_gone.py", SMALL, tmp_path)
    assert need.row.choices == ()


@pytest.mark.parametrize("file", ["tests/unit/helper.py", "tests/unit/data/deep/x.json", "tests/unit/conftest.py"])
def test_what_tests_use_needs_the_tests_of_its_folder(file: str, tmp_path: Path) -> None:
    (tmp_path / "tests" / "unit").mkdir(parents=True)
    (tmp_path / "tests" / "unit" / "test_a.py").touch()
    (need,) = needs_of(file, SMALL, tmp_path)
    assert need.row.choices == (Choice("unit/"),)


def test_what_is_needed_is_gathered_by_its_reason() -> None:
    needs, unknown = gather(["src/a/x.py", "src/a/b.py", "src/a/y.py", "elsewhere.txt"], SMALL)
    files = {need.row.prefix: need.files for need in needs}
    assert files == {
        "src/a/": ["src/a/x.py", "src/a/y.py"],
        "src/": ["src/a/x.py", "src/a/b.py", "src/a/y.py"],
        "src/a/b": ["src/a/b.py"],
    }
    assert unknown == ["elsewhere.txt"]
    shown = explain(needs, "HEAD")
    assert "src/a/ in the table: src/a/x.py, src/a/y.py\n      unit/test_a.py" in shown
    assert "contract[memory]" in shown


def test_a_line_without_tests_is_refused() -> None:
    with pytest.raises(ValueError, match="src/a/ names no tests"):
        read_table("src/a/\nsrc/b/  unit/")


@pytest.mark.parametrize("word", ["contract[mysql]", "a b", "unit/test_a.py]", ""])
def test_what_is_no_choice_is_refused(word: str) -> None:
    with pytest.raises(ValueError, match=r"neither a path|no kind"):
        Choice.read(word)


@pytest.mark.parametrize(
    ("word", "file", "kinds", "belongs"),
    [
        ("contract[memory]", "tests/contract/test_x.py", ["memory"], True),
        ("contract[memory]", "tests/contract/test_x.py", ["sqlite"], False),
        ("contract[memory]", "tests/contract/test_x.py", [], False),
        ("contract[redis]", "tests/contract/test_x.py", ["redis-6.2"], False),
        ("contract[redis,valkey]", "tests/contract/test_x.py", ["valkey"], True),
        ("contract/", "tests/contract/test_x.py", ["sqlite"], True),
        ("server/", "tests/server/grpc/test_x.py", [], True),
        ("unit/test_r*.py", "tests/unit/test_rates.py", [], True),
        ("unit/test_r*.py", "tests/unit/test_pace.py", [], False),
        ("unit/test_pace.py", "tests/unit/test_pace.py", [], True),
    ],
)
def test_which_tests_belong_to_a_choice(word: str, file: str, kinds: list[str], belongs: bool) -> None:
    assert Choice.read(word).has(file, kinds) is belongs


def test_folders_and_files_are_run_in_one_session() -> None:
    choices = [Choice("unit/"), Choice("unit/test_pace.py"), Choice("docs/test_links.py")]
    assert pytest_command(choices, ["-x"])[5:] == ["tests/docs/test_links.py", "tests/unit", "-x"]


def test_files_that_have_changed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Committed since, not committed, new, deleted; not what git ignores."""

    def git(*args: str) -> None:
        identity = ["-c", "user.name=a", "-c", "user.email=a@b.c", "-c", "commit.gpgsign=false"]
        subprocess.run(["git", *identity, *args], cwd=tmp_path, check=True, capture_output=True)

    for name in ("kept", "committed", "edited", "deleted", "with a space"):
        (tmp_path / name).write_text("old")
    (tmp_path / ".gitignore").write_text("ignored\n")
    git("init", "-q")
    git("add", "-A")
    git("commit", "-qm", "first")
    (tmp_path / "committed").write_text("new")
    git("commit", "-qam", "second")
    for name in ("edited", "with a space", "ignored", "added"):
        (tmp_path / name).write_text("new")
    (tmp_path / "deleted").unlink()
    monkeypatch.setattr("tests.suite.affected.ROOT", tmp_path)
    assert changed_files("HEAD~1") == ["added", "committed", "deleted", "edited", "with a space"]
    with pytest.raises(SystemExit, match="no-such-commit"):
        changed_files("no-such-commit")
