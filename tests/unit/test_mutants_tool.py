"""`make mutants`: what it changes, that it changes nothing for good, and what it makes of the tests' answers."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.suite.affected import load_table
from tests.suite.choices import Choice
from tests.suite.mutants import of_lua, of_python, places, report
from tests.suite.mutants.__main__ import choices_of
from tests.suite.mutants.edits import Edit
from tests.suite.mutants.forking import Result, _shadowed
from tests.suite.mutants.places import ROOT, SOURCE, Mutant
from tests.suite.mutants.report import Judged
from tests.support.redis_store import shared_server


def python_of(line: str) -> set[str]:
    """What becomes of the one line of a function."""
    text = f"def f(a, b):\n    {line}\n"
    return {edit.apply(text).splitlines()[1].strip() for edit in of_python.edits(text)}


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("if a == b: pass", {"if a != b: pass", "if (a == b) or True: pass", "if (a == b) and False: pass"}),
        ("x = a < b <= 3", {"x = a <= b <= 3", "x = a < b < 3", "x = a < b <= 4"}),
        ("x = a is not b", {"x = a is b"}),
        ("x = a not  in b", {"x = a in b"}),
        ("x = a and (b or a)", {"x = a or (b or a)", "x = a and (b and a)"}),
        ("x = not (a or b)", {"x = (a or b)", "x = not (a and b)"}),
        ("x = a + b * a", {"x = a - b * a", "x = a + b // a"}),
        ("x = a ** b", set()),
        ("x = 'a' + b", set()),
        ("x = True", {"x = False"}),
        ("x = a if b else a", {"x = a if (not (b)) else a"}),
        ("x = [y for y in a if y]", {"x = [y for y in a if ((y) or True)]"}),
        ("return a", {"return None if True else (a)"}),
        ("return None", set()),
        ("a.b = b", {"if False: a.b = b"}),
        ("a += b", {"if False: a += b"}),
        ("a(b)", {"if False: a(b)"}),
        ("raise a(b == 1)", {"if False: raise a(b == 1)"}),
        ("while a: pass", {"while (a) and False: pass"}),
        ("x = 'ä' in a and 'ö' in b", {"x = 'ä' not in a and 'ö' in b", "x = 'ä' in a and 'ö' not in b",
                                       "x = 'ä' in a or 'ö' in b"}),
        ("x = f'{a == b}'", set()),
        ("assert a == b", set()),
        ("x: list[int]", set()),
        ("'a text == b'", set()),
    ],
)  # fmt: skip
def test_what_is_changed_in_python(line: str, expected: set[str]) -> None:
    assert python_of(line) == expected


def test_operators_are_found_behind_comments_and_brackets() -> None:
    text = "def f(a, b):\n    return (\n        (a)  # == is meant\n        == b\n    )\n"
    changed = [edit.apply(text) for edit in of_python.edits(text) if edit.kind == "comparison"]
    assert changed == [text.replace("        == b", "        != b")]


def test_only_functions_are_changed() -> None:
    text = "LIMIT = 3 + 4\nclass A:\n    b = 1 == 2\n    def f(self, n=5):\n        def g(m=n):\n            return 6\n"
    assert [text[edit.start : edit.end] for edit in of_python.edits(text)] == ["6"]


def lua_of(*lines: str) -> set[str]:
    text = "\n".join(lines)
    return {edit.apply(text) for edit in of_lua.edits(text)}


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("local x = a == b", {"local x = a ~= b"}),
        ("local x = a - 1 -- 2 == 3", {"local x = a + 1 -- 2 == 3", "local x = a - 2 -- 2 == 3"}),
        ("local x = -1", {"local x = -2"}),
        ("local x = '1 == 2 -- and' .. a", set()),
        ("local x = not a and b or c", {"local x = a and b or c", "local x = not a or b or c",
                                        "local x = not a and b and c"}),
        ("local x = math.max(a, b)", {"local x = math.min(a, b)"}),
        ("local x = ARGV[2]", set()),
        ("if a then b() end", {"if (a) or true then b() end", "if (a) and false then b() end"}),
        ("call('DEL', a)", {"if false then call('DEL', a) end"}),
        ("a.b, c[d] = e, f", {"if false then a.b, c[d] = e, f end"}),
        ("redis.replicate_commands()", set()),
        ("return true", {"return false"}),
    ],
)  # fmt: skip
def test_what_is_changed_in_lua(line: str, expected: set[str]) -> None:
    assert lua_of(line) == expected


@pytest.mark.parametrize("lines", [("local t = {", "  a = b,", "}"), ("x(a,", "  b(c))"), ("local x = a", "  .. b(c)")])
def test_parts_of_longer_statements_are_not_left_out(lines: tuple[str, ...]) -> None:
    assert not any("if false" in text for text in lua_of(*lines))


def test_every_line_stays_where_it_is() -> None:
    """Or a function whose code is replaced would not be found by its place."""
    for file in places.core_files():
        text = (ROOT / file).read_text()
        for mutant in places.mutants_of(file):
            start, end, new, _ = mutant.edit
            assert text[start:end].count("\n") == new.count("\n"), mutant.name


def test_scripts_that_were_changed_are_scripts_still() -> None:
    """Else each of them would be noticed for its syntax. One of twenty."""
    scripts = [mutant for file in places.core_files() if file.endswith(".lua") for mutant in places.mutants_of(file)]
    assert len(scripts) > 4000
    with shared_server().connect() as client:
        for mutant in scripts[::20]:
            assert len(client.call("SCRIPT", "LOAD", mutant.text())) == 40, mutant.name


def test_every_part_of_the_core_is_there_and_has_tests() -> None:
    files = [Path(file).relative_to("src/tickwork").as_posix() for file in places.core_files()]
    assert [start for start in places.CORE if not any(file.startswith(start) for file in files)] == []
    assert [start for start in places.LEFT_OUT if not any((SOURCE / start).parent.glob("*"))] == []
    table = load_table()
    assert all(choices_of(Mutant(file, 1, 1, Edit(0, 0, "", "")), table, None) for file in places.core_files())


def test_a_seed_draws_the_same_mutants_again() -> None:
    drawn = [mutant.name for mutant in places.draw("7", 20)]
    assert len(set(drawn)) == 20
    assert drawn[:5] == [mutant.name for mutant in places.draw("7", 5)]
    assert drawn != [mutant.name for mutant in places.draw("8", 20)]


def test_a_file_that_processes_read_is_put_back(tmp_path: Path) -> None:
    """It has a time that it never had, by which Python knows that it has to compile it anew."""
    file = tmp_path / "a.py"
    file.write_text("old")
    before = file.stat().st_mtime_ns
    times = set()
    for text in ("one", "two"):
        with _shadowed((file, text)):
            assert file.read_text() == text
            times.add(int(file.stat().st_mtime))
        assert file.read_text() == "old"
        assert file.stat().st_mtime_ns == before
    assert len(times) == 2


def test_equivalent_mutants_are_mutants_still_and_have_reasons() -> None:
    for known in report.load_known():
        assert known.text()  # raises where the code has changed
        assert len(known.reason) > 20
        assert any(mutant.text() == known.text() for mutant in places.mutants_of(known.file)), known


def judged(*verdicts: str) -> list[Judged]:
    mutant = places.draw("1", 1)[0]
    return [Judged(mutant, Result("", verdict, passed=("tests/unit/test_a.py::test_b",))) for verdict in verdicts]


def test_the_share_of_survivors() -> None:
    """An undecided one outlived all tests for which there was time. What cannot be tried says nothing."""
    assert report.share_of([]) == 0
    assert report.share_of(judged("killed", "killed", "survived", "undecided")) == 50
    assert report.share_of(judged("killed", "equivalent", "equivalent", "survived", "not applied")) == 25


def test_the_report_names_place_change_and_tests() -> None:
    (one,) = judged("survived")
    text = report.summary([one, *judged("killed")], "7", ["tests/unit/test_c.py::test_d"], 4)
    assert one.mutant.name in text
    assert one.mutant.diff() in text
    assert "1 tests passed: tests/unit/test_a.py (1)" in text
    assert "Red without a mutant, and left out: tests/unit/test_c.py::test_d" in text
    assert "2 mutants of seed 7: 1 killed, 1 survived" in text
    assert "50.0 % survive; 4 % may" in text


def mutants(folder: Path, *args: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "tests.suite.mutants", *args]
    env = {**os.environ, "TMPDIR": str(folder), "PYTHONPATH": str(ROOT / "src")}  # not the published files
    pipe = subprocess.PIPE
    return subprocess.Popen(command, cwd=ROOT, env=env, stdout=pipe, stderr=pipe, text=True, start_new_session=True)


PACE = "src/tickwork/worker/pace.py"


@pytest.mark.parametrize(("test", "verdict", "code"), [("test_pace.py", "killed", 0), ("test_rates.py", "survived", 1)])
def test_from_end_to_end(test: str, verdict: str, code: int, tmp_path: Path) -> None:
    text = (ROOT / PACE).read_text()
    line = next(number for number, line in enumerate(text.splitlines(), 1) if "self._use(median(two) > " in line)
    process = mutants(tmp_path, "--only", f"{PACE}:{line}:13", "--tests", f"unit/{test}", "--json")
    printed, progress = process.communicate(timeout=100)
    assert process.returncode == code, progress
    (entry,) = json.loads(printed)["mutants"]
    assert (entry["file"], entry["line"], entry["verdict"]) == (PACE, line, verdict)
    assert "+            if False: self._use(median(two) > GAIN * median(one))" in entry["diff"]
    assert all(name.startswith(f"tests/unit/{test}::") for name in entry["passed"])
    assert f"[1/1] {verdict}" in progress
    assert (ROOT / PACE).read_text() == text
    assert list(tmp_path.iterdir()) == []


def test_an_interrupt_leaves_nothing_behind(tmp_path: Path) -> None:
    process = mutants(tmp_path, "--only", PACE, "--tests", "unit/test_pace.py")
    assert process.stdout is not None
    shown = ""
    while "[ 1/" not in shown:
        shown = process.stdout.readline()
        assert shown, "it has ended by itself"
    process.send_signal(signal.SIGINT)
    printed, errors = process.communicate(timeout=30)
    assert process.returncode == 130, f"{printed}\n{errors}"
    assert "interrupted" in printed
    assert "killed" in printed, "what is known so far"
    assert list(tmp_path.iterdir()) == []


TESTS = """
import os, subprocess, sys, time
import pytest

BROKEN = lambda: os.environ.get("BROKEN")

def test_calm(): pass
def test_red(): assert BROKEN() != "red"
def test_dies(): BROKEN() == "death" and os._exit(3)
def test_hangs():
    while BROKEN() == "loop": pass
def test_leaves_a_process(tmp_path):
    if BROKEN() == "orphan":
        child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(1000)"], start_new_session=True)
        open(os.environ["PIDS"], "w").write(str(child.pid))
def test_always_red(): assert False
@pytest.mark.skip
def test_skipped(): pass
"""
PROGRAM = """
import json, os, sys
from functools import partial
from pathlib import Path
from tests.suite.mutants.forking import Case, Forker, collect, nothing

def fail(): raise ValueError("no such function")

def work(items):
    forker = Forker(folder, 60)
    green = [item for item in items if item.name not in ("test_always_red", "test_skipped")]
    skipped = [item for item in items if item.name == "test_skipped"]
    for what in ("nothing", "red", "death", "loop", "orphan"):
        results[what] = forker.run(Case(what, green, partial(os.environ.__setitem__, "BROKEN", what)))
    results["unsound"] = forker.run(Case("", items, nothing))
    results["skipped"] = forker.run(Case("", skipped, nothing))
    results["not applied"] = forker.run(Case("", green, fail))
    results["late"] = Forker(folder, -1).run(Case("", green, nothing))
    results["left out"] = sorted(forker.unsound)

folder, results = Path(sys.argv[1]), {}
collect([sys.argv[2]], folder, work, 1)
print(json.dumps(results))
"""


def test_what_forks_come_to(tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text(TESTS)
    (tmp_path / "work").mkdir()
    (tmp_path / "program.py").write_text(PROGRAM)
    env = {**os.environ, "PIDS": str(tmp_path / "pids"), "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "program.py", "work", "test_it.py"]
    ran = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True, timeout=100, check=False)
    assert ran.returncode == 0, ran.stderr
    found = json.loads(ran.stdout)
    left_out = found.pop("left out")
    results = {name: Result(*fields) for name, fields in found.items()}
    assert {name: (result.verdict, result.by.partition("::")[2]) for name, result in results.items()} == {
        "nothing": ("survived", ""),
        "red": ("killed", "test_red"),
        "death": ("killed", "test_dies"),
        "loop": ("killed", "test_hangs"),
        "orphan": ("survived", ""),
        "unsound": ("survived", ""),
        "skipped": ("undecided", ""),
        "not applied": ("not applied", ""),
        "late": ("undecided", ""),
    }
    assert left_out == ["test_it.py::test_always_red"]
    assert "assert 'red' != 'red'" in results["red"].why
    assert "ValueError('no such function')" in results["not applied"].why
    assert len(results["nothing"].passed) == 5
    assert results["loop"].cpu > 0
    pid = int((tmp_path / "pids").read_text())
    if sys.platform == "linux":
        assert not Path(f"/proc/{pid}").exists()


def test_a_choice_of_tests_is_read_as_in_the_table() -> None:
    mutant = places.draw("1", 1)[0]
    assert choices_of(mutant, [], ["tests/unit/test_pace.py", "contract[memory]"]) == [
        Choice("unit/test_pace.py"),
        Choice("contract/", ("memory",)),
    ]
