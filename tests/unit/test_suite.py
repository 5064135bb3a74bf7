"""The suite itself: which tests a set has, what several processes make of them, and what a run may make and skip."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections import Counter
from itertools import chain
from pathlib import Path

import pytest

from tests.suite import parts, seed, tiers
from tests.suite.parts import STAGES, Part

ROOT = Path(__file__).parents[2]


def run_pytest(folder: Path, text: str, *options: str) -> str:
    """The output of a run of one file, with the plugins of the suite and without its tests."""
    (folder / "test_it.py").write_text(text)
    plugins = ("-p", "tests.suite.counts", "-p", "tests.suite.tiers", "-p", "tests.suite.forks")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:tickwork", *plugins, *options]
    environ = {**os.environ, "PYTHONPATH": str(ROOT)}
    ended = subprocess.run(command, cwd=folder, env=environ, capture_output=True, text=True, check=False)
    return f"{ended.stdout}\nexit code {ended.returncode}"


class TestProcesses:
    def test_they_share_the_tests_and_one_that_dies_costs_its_test_alone(self, tmp_path: Path) -> None:
        shown = run_pytest(
            tmp_path,
            "import os, pytest\n"
            "@pytest.mark.parametrize('n', range(150))\n"
            "def test_number(n, tmp_path):\n"
            "    print('this was', n)\n"
            "    assert not list(tmp_path.iterdir())\n"
            "    if n == 70: os._exit(7)\n"
            "    if n == 80: os.kill(os.getpid(), 9)\n"
            "    assert n != 120\n"
            "@pytest.mark.waits\n"
            "def test_of_its_own_kind(): pass\n",
            "-n", "2",
        )  # fmt: skip
        assert "3 failed, 148 passed" in shown
        assert "the process that ran this test ended: 7" in shown
        assert "the process that ran this test ended: -9" in shown
        assert "this was 120" in shown
        assert "this was 119" not in shown

    def test_the_first_failure_ends_the_run_if_so_asked(self, tmp_path: Path) -> None:
        text = "import pytest\n@pytest.mark.parametrize('n', range(600))\ndef test_number(n): assert n != 3\n"
        shown = run_pytest(tmp_path, text, "-n", "2", "-x")
        assert "1 failed" in shown
        passed = re.search(r"(\d+) passed", shown)
        assert passed is not None
        assert int(passed[1]) < 590

    def test_a_process_that_ends_outside_of_a_test_ends_the_run(self, tmp_path: Path) -> None:
        text = (
            "import atexit, os, pytest\n"
            "@pytest.mark.parametrize('n', range(130))\n"
            "def test_number(n):\n"
            "    if n == 70: atexit.register(os._exit, 7)\n"
        )
        shown = run_pytest(tmp_path, text, "-n", "2")
        assert "a process of the suite ended outside of a test: 7" in shown
        assert shown.endswith("exit code 1")

    @pytest.mark.parametrize("hook", ["before", "after_in_parent"])
    def test_a_signal_within_a_fork_is_heard_after_it(self, hook: str, tmp_path: Path) -> None:
        program = (
            "import os, signal, time\n"
            "from tests.suite.forks import hold_signals, release_signals\n"
            f"os.register_at_fork({hook}=lambda: os.kill(os.getpid(), signal.SIGINT) or time.sleep(0.01))\n"
            "held = hold_signals()\n"
            "pid = os.fork()\n"
            "if pid == 0: os._exit(0)\n"
            "os.waitpid(pid, 0)\n"
            "try: release_signals(held)\n"
            "except KeyboardInterrupt: print('heard')\n"
        )
        ended = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=False)
        assert (ended.stdout, ended.stderr) == ("heard\n", "")

    def test_fixtures_of_a_module_end_in_each_process(self, tmp_path: Path) -> None:
        shown = run_pytest(
            tmp_path,
            "import pytest\n"
            "@pytest.fixture(scope='module')\n"
            "def lasting(tmp_path_factory):\n"
            "    yield 1\n"
            "    open('ended', 'a').write('x')\n"
            "@pytest.mark.parametrize('n', range(130))\n"
            "def test_number(n, lasting): pass\n",
            "-n", "2",
        )  # fmt: skip
        assert "130 passed" in shown
        assert 1 <= len((tmp_path / "ended").read_text()) <= 3

    def test_few_tests_run_in_this_process(self, tmp_path: Path) -> None:
        text = f"import os\ndef test_parent(): assert os.getppid() == {os.getpid()}\n"
        assert "1 passed" in run_pytest(tmp_path, text)

    @pytest.mark.parametrize("count", ["0", "2"])
    def test_another_order_of_all_tests_is_that_of_its_seed(self, count: str, tmp_path: Path) -> None:
        text = (
            "import pytest\n@pytest.mark.parametrize('n', range(300))\n"
            "def test_number(n): open('order', 'a').write(f'{n} ')\n"
        )
        orders = []
        for number in ("1", "1", "2"):
            assert "300 passed" in run_pytest(tmp_path, text, "-n", count, "--shuffle", number)
            orders.append([int(word) for word in (tmp_path / "order").read_text().split()])
            (tmp_path / "order").unlink()
        assert all(sorted(order) == [*range(300)] for order in orders)
        assert len({tuple(order) for order in orders} | {tuple(range(300))}) >= 3
        if count == "0":
            assert orders[0] == orders[1]

    def test_a_red_run_names_the_command_that_repeats_it(self, tmp_path: Path) -> None:
        shown = run_pytest(
            tmp_path, "import pytest\n@pytest.mark.parametrize('n', ['a b'])\ndef test_it(n): assert 0\n"
        )
        again = next(line for line in shown.splitlines() if line.startswith("again:"))
        assert "-m pytest 'test_it.py::test_it[a b]'" in again
        assert f"TESTS_SEED={seed.tree_hash()}" in again


class TestCounts:
    @pytest.mark.parametrize("how", ["pytest.skip('no time today')", "pytest.importorskip('nothing_of_that_name')"])
    def test_a_skip_for_a_reason_that_is_not_listed_fails(self, how: str, tmp_path: Path) -> None:
        shown = run_pytest(tmp_path, f"import pytest\ndef test_it(): {how}\n")
        assert ("1 failed" in shown) is ("no time" in how)

    def test_a_module_that_is_skipped_without_a_listed_reason_fails(self, tmp_path: Path) -> None:
        shown = run_pytest(tmp_path, "import pytest\npytest.skip('nobody knows', allow_module_level=True)\n")
        assert "1 error" in shown

    def test_what_was_made_is_counted_over_all_processes(self, tmp_path: Path) -> None:
        text = (
            "import pytest, subprocess\n@pytest.mark.parametrize('n', range(7))\n"
            "def test_it(n): subprocess.run(['true'])\n"
        )
        assert "made: 0 applications, 0 servers, 7 processes, 0 skipped" in run_pytest(tmp_path, text, "-n", "2")

    @pytest.mark.parametrize(("options", "code"), [((), 1), (("--shuffle", "3"), 0)])
    def test_a_bound_on_what_is_made_holds_in_the_usual_order(
        self, options: tuple[str, ...], code: int, tmp_path: Path
    ) -> None:
        text = (
            "import subprocess\nfrom tests.suite import counts\ncounts.BOUNDS['test'] = {'processes': 0}\n"
            "def test_it(): subprocess.run(['true'])\n"
        )
        shown = run_pytest(tmp_path, text, "--tier", "test", *options)
        assert shown.endswith(f"exit code {code}"), shown
        assert ("counts.py allows 0" in shown) is (code == 1)


class TestTiers:
    def test_every_kind_of_test_is_of_tests_that_are_there(self) -> None:
        named = [*tiers.KINDS, *chain(*tiers.PLACES.values())]
        assert [start for start in named if not (ROOT / start).exists()] == []

    def test_another_tree_draws_others(self, monkeypatch: pytest.MonkeyPatch) -> None:
        names = [f"test_{number}" for number in range(1000)]
        drawn = []
        for tree in ("one", "another"):
            monkeypatch.setattr(seed, "tree_hash", lambda tree=tree: tree)
            drawn.append({name for name in names if seed.drawn(name, tiers.SHARE) == 0})
        assert all(150 < len(each) < 250 for each in drawn)
        assert len(drawn[0] & drawn[1]) < 80

    def test_the_tree_has_one_hash_which_the_environment_may_replace(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.delenv("TESTS_SEED", raising=False)
        seed.tree_hash.cache_clear()
        found = seed.tree_hash()
        assert re.fullmatch(r"[0-9a-f]{16}", found)
        monkeypatch.setenv("TESTS_SEED", "0123")
        seed.tree_hash.cache_clear()
        assert seed.tree_hash() == "0123"
        monkeypatch.undo()
        seed.tree_hash.cache_clear()


class TestParts:
    def test_every_command_is_a_target_of_the_makefile(self) -> None:
        targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
        assert {part.command.split()[1] for stage in STAGES for part in stage} <= targets

    def test_ci_runs_one_fifth_of_what_takes_long(self, monkeypatch: pytest.MonkeyPatch) -> None:
        long = [part for stage in STAGES for part in stage if part.fifth is not None]
        for fifth in range(5):
            monkeypatch.setattr(parts, "drawn", lambda what, among, fifth=fifth: fifth)
            chosen = [part for part in long if parts._wanted(part, "ci", "")]
            assert chosen
            assert {part.fifth for part in chosen} == {fifth}
        assert all(parts._wanted(part, "all", "") for part in long)

    def test_a_part_that_fails_is_shown_with_the_command_that_repeats_it(
        self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capfd: pytest.CaptureFixture[str]
    ) -> None:
        good, bad = Part("good", "true", 0), Part("bad", "ls /nowhere-at-all", 1)
        monkeypatch.setattr(parts, "STAGES", ((good, bad), (Part("never", "touch never", 0),)))
        monkeypatch.setattr(parts, "LOGS", tmp_path)
        assert parts.main(["ci"]) == 1
        shown = capfd.readouterr().out
        assert "good: ok" in shown
        assert "bad: FAILED" in shown
        assert "nowhere-at-all" in shown.partition("--- bad")[2]
        assert "--only 'bad'" in shown
        assert "never" not in shown

    def test_a_name_that_is_not_there_is_refused(self, capsys: pytest.CaptureFixture[str]) -> None:
        with pytest.raises(SystemExit) as refused:
            parts.main(["all", "--only", "nothing"])
        assert refused.value.code == 2
        assert "there is no part nothing" in capsys.readouterr().err

    def test_numbers_of_parts_are_in_their_stages(self) -> None:
        assert Counter(part.name for stage in STAGES for part in stage).most_common(1)[0][1] == 1
