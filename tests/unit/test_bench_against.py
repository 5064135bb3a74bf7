"""`make bench-against`: the statistics on made-up samples, the trees, and what it does about bad input."""

from __future__ import annotations

import math
import os
import random
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest
from benchmarks import against, turns
from benchmarks.against import JUDGED, Interval, Pair, Report, answer, chosen, interval, level, make_rows
from benchmarks.environments import command
from benchmarks.subjects import Subject
from benchmarks.trees import Refused, Tree, both, imported
from benchmarks.turns import SCENES, Broken, Played, Spent, environ, order
from click.testing import CliRunner, Result

needs_git = pytest.mark.skipif(shutil.which("git") is None, reason="needs git")


# --- the statistics


def test_an_interval_is_that_of_student_over_logarithms() -> None:
    found = interval([0.0, 0.02, 0.04])
    half = 4.303 * 0.02 / math.sqrt(3)
    assert found.ratio == pytest.approx(math.exp(0.02))
    assert (found.low, found.high) == pytest.approx((math.exp(0.02 - half), math.exp(0.02 + half)))


def test_more_pairs_never_widen_an_interval() -> None:
    degrees = [interval([0.0, 1.0] * pairs) for pairs in range(1, 40)]
    assert [found.high for found in degrees] == sorted((found.high for found in degrees), reverse=True)
    assert list(against.STUDENT) == sorted(against.STUDENT, reverse=True)


@pytest.mark.parametrize("pairs", [2, 8, 31, 32])
def test_an_interval_holds_the_truth_nineteen_times_of_twenty(pairs: int) -> None:
    draw = random.Random(pairs)
    intervals = [interval([draw.gauss(0.03, 0.05) for _ in range(pairs)]) for _ in range(1_000)]
    held = sum(found.low <= math.exp(0.03) <= found.high for found in intervals)
    assert 0.93 < held / len(intervals) < 0.97


@pytest.mark.parametrize(
    ("low", "high", "said"),
    [
        (1.021, 1.2, "SLOWER"),
        (1.02, 1.2, "unclear"),
        (0.99, 1.021, "unclear"),
        (0.9, 1.02, "within"),
        (0.5, 0.6, "within"),
    ],
)
def test_only_an_interval_that_lies_wholly_above_the_bound_fails(low: float, high: float, said: str) -> None:
    assert answer(Interval((low + high) / 2, low, high), 1.02) == said


def test_the_dearest_third_of_the_turns_does_not_count() -> None:
    usual = [10.0, 10.2, 9.8, 10.1, 9.9, 10.0]
    assert level([*usual, 30.0, 90.0, 500.0]) == pytest.approx(level([*usual, 11.0, 12.0, 13.0]))
    assert level([7.0]) == pytest.approx(math.log(7))
    assert level([0.0, 0.0, 0.0]) < 0  # nothing was used: a small number, not an error


def test_a_pair_compares_the_tree_with_both_runs_of_the_commit() -> None:
    pair = Pair(before=1.0, again=1.1, now=1.25)
    assert (pair.change, pair.noise) == pytest.approx((0.2, 0.1))


def made_up(slower: float, unrest: float = 0.01, pairs: int = 8) -> list[Played]:
    """Drains whose worker costs so many times more in the working tree; the server costs the same."""
    draw = random.Random(7)

    def side(times: float) -> list[Spent]:
        costs = [(50 * times * draw.gauss(1, unrest), 40 * draw.gauss(1, unrest)) for _ in range(9)]
        return [Spent(worker=worker, server=server, clock=80 * draw.gauss(1, 0.3)) for worker, server in costs]

    return [{"drain.10": [side(1), side(1), side(slower)]} for _ in range(pairs)]


def report_of(found: list[Played], most: float = 1.02) -> Report:
    return Report({}, "abc1234", "the working tree", most, 1.0, make_rows(found, ["drain.10"], most))


@pytest.mark.parametrize(
    ("slower", "unrest", "said"),
    [
        (1.0, 0.01, "within"),
        (1.05, 0.01, "SLOWER"),
        (0.9, 0.01, "within"),
        (1.05, 0.3, "unclear"),
        (1.02, 0.01, "unclear"),
    ],
)
def test_a_side_that_costs_more_is_seen_when_the_noise_is_smaller(slower: float, unrest: float, said: str) -> None:
    worker, server, clock = report_of(made_up(slower, unrest)).rows
    assert (worker.name, worker.answer, clock.answer) == ("drain.10 worker", said, "")
    if unrest < 0.1:
        assert worker.change.ratio == pytest.approx(slower, abs=0.01)
        assert worker.noise.low < 1.005
        assert worker.noise.high > 0.995
        assert server.answer == "within"


def test_the_table_has_all_rows_and_the_conclusion_the_next_step() -> None:
    lines = list(against.text(report_of(made_up(1.05))))
    assert [line[:26].split() for line in lines[2:]] == [["drain.10", "worker"], ["server"], ["clock"]]
    assert lines[2].endswith("SLOWER")
    assert lines[4].endswith("(shown only)")
    assert list(against.conclusion(report_of(made_up(1.05)), 8, "main")) == [
        "1 of 2 intervals lie below 1.02, so those are proved.",
        "FAILED: the interval lies above 1.02 for drain.10 worker.",
    ]
    unclear = list(against.conclusion(report_of(made_up(1.0, unrest=0.3)), 8, "main"))
    assert 'make bench-against REF=main ARGS="--pairs 32 --only drain.10"' in unclear[2]
    assert unclear[-1] == "Passed: no interval lies above 1.02."


# --- who plays what


def test_in_each_turn_all_sides_are_at_the_same_mean_place_and_in_three_turns_at_every_one() -> None:
    for turn in range(4):
        placed = order(3, turn)
        assert placed == placed[::-1]
        assert {placed.count(side) for side in range(3)} == {2}
    assert {order(3, turn)[0] for turn in range(3)} == {0, 1, 2}
    assert {order(3, turn)[2] for turn in range(3)} == {0, 1, 2}


def test_every_figure_is_played_once_and_judged_by_what_is_measured() -> None:
    played = [figure for scene in SCENES for figure in scene.figures]
    assert sorted(played) == sorted(JUDGED)
    assert {of for judged in JUDGED.values() for of in judged} < set(Spent.__struct_fields__)


def test_figures_are_chosen_by_how_they_begin() -> None:
    assert chosen(()) == list(JUDGED)
    assert chosen(("drain.10,sqlite", "memory")) == [
        "drain.10", "drain.100", "memory.roundtrip", "sqlite.submit", "sqlite.drain",
    ]  # fmt: skip


def test_a_tree_that_breaks_is_named_with_the_last_line_that_was_said() -> None:
    tree = Tree("abc1234", Path("/nowhere"))
    with pytest.raises(Broken, match=r"^AttributeError: no call$") as raised, turns._blamed(tree):
        raise RuntimeError("the client ended; it said:\nTraceback:\n  line 1\nAttributeError: no call\n\n")
    assert raised.value.tree is tree


# --- the trees


def commit(root: Path, text: str) -> None:
    git = ["git", "-C", str(root), "-c", "user.name=a", "-c", "user.email=a@b.example"]
    product = root / "src" / "tickwork"
    if not root.exists():
        product.mkdir(parents=True)
        subprocess.run(["git", "init", "--quiet", str(root)], check=True)
    (product / "__init__.py").write_text(text)
    for step in (["add", "--all"], ["commit", "--quiet", "--no-gpg-sign", "--message=one"]):
        subprocess.run([*git, *step], check=True)


@needs_git
def test_a_commit_and_the_changed_working_tree_are_each_imported_from_their_copy(tmp_path: Path) -> None:
    root, folder = tmp_path / "a clone", tmp_path / "copies"
    commit(root, "number = 1\n")
    commit(root, "number = 2\n")
    (root / "src/tickwork/__init__.py").write_text("number = 3\n")
    before, now = both(root, "HEAD~1", folder)
    for tree, number in ((before, 1), (now, 3)):
        assert imported(tree, environ(tree, 0)) == tree.product / "__init__.py"
        assert (tree.product / "__init__.py").read_text() == f"number = {number}\n"
        assert folder in tree.product.parents
    assert before.name.endswith("(HEAD~1)")
    assert now.name.endswith("with changes in src/tickwork)")
    assert before.digest != now.digest


@needs_git
def test_an_unchanged_tree_is_the_same_code_as_its_commit(tmp_path: Path) -> None:
    commit(tmp_path / "clone", "number = 1\n")
    before, now = both(tmp_path / "clone", "HEAD", tmp_path / "copies")
    imported(now, environ(now, 0))  # leaves what Python compiled, which is not code of the tree
    assert before.digest == now.digest
    assert "changes" not in now.name


@needs_git
def test_a_commit_that_does_not_start_here_is_refused_with_the_reason(tmp_path: Path) -> None:
    commit(tmp_path / "clone", "import a_library_of_then\n")
    before, now = both(tmp_path / "clone", "HEAD", tmp_path / "copies")
    with pytest.raises(Refused, match=r"\(HEAD\) does not start .*a_library_of_then.*: name a later commit"):
        imported(before, environ(before, 0))
    with pytest.raises(Refused, match=r"^the working tree .*a_library_of_then.*: make it run first"):
        imported(now, environ(now, 0))


def test_a_package_from_elsewhere_is_not_measured_in_place_of_a_tree(tmp_path: Path) -> None:
    tree = Tree("abc1234", tmp_path)
    with pytest.raises(Refused, match="is imported in place of"):
        imported(tree, environ(tree, 0))  # the folder is empty, so it is that of this environment


@needs_git
def test_a_package_in_the_folder_of_the_caller_is_not_measured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    commit(tmp_path / "clone", "")
    _, now = both(tmp_path / "clone", "HEAD", tmp_path / "copies")
    monkeypatch.chdir(tmp_path / "clone" / "src")
    assert imported(now, environ(now, 0)) == now.product / "__init__.py"


def test_the_processes_of_a_subject_get_its_environment_after_that_of_all(tmp_path: Path) -> None:
    started = command(Subject("demo", "tickwork", environ=("PYTHONPATH=other", "A=b")), tmp_path, "client")
    paths = [place for place, word in enumerate(started) if word.startswith("PYTHONPATH=")]
    assert [started[paths[-1]], started[paths[-1] + 1]] == ["PYTHONPATH=other", "A=b"]


# --- the command line


def run(*args: str) -> Result:
    return CliRunner().invoke(against.main, args)


def refusal(*args: str) -> str:
    """What it says about bad input, in one line."""
    done = run(*args)
    assert done.exit_code == 2, done.output
    assert done.output.startswith("Error: ")
    assert len(done.output.splitlines()) == 1
    return done.output


@needs_git
@pytest.mark.parametrize(
    ("ref", "said"),
    [
        ("", "make bench-against REF=main"),
        ("no-such-branch", "git fetch --all --tags"),
        ("HEAD:src", "git log --oneline"),
    ],
)
def test_a_commit_that_is_not_named_or_not_there_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ref: str, said: str
) -> None:
    commit(tmp_path / "clone", "")
    monkeypatch.setattr(against, "ROOT", tmp_path / "clone")
    assert said in refusal("--only", "memory", "--", ref)


@needs_git
def test_a_folder_that_is_no_checkout_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    commit(tmp_path / "clone", "")
    for folder in (tmp_path, tmp_path / "clone" / "src"):  # not inside one, and not the top of it
        monkeypatch.setattr(against, "ROOT", folder)
        assert "is not a git checkout" in refusal("--only", "memory", "HEAD")


def test_a_machine_without_git_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(os, "environ", {**os.environ, "PATH": str(tmp_path)})
    assert "install git" in refusal("--only", "memory", "HEAD")


@needs_git
def test_a_commit_without_the_product_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    commit(tmp_path / "clone", "")
    subprocess.run(["git", "-C", str(tmp_path / "clone"), "mv", "src", "old"], check=True)
    commit_again = ["-c", "user.name=a", "-c", "user.email=a@b.example", "commit", "--quiet", "--message=two"]
    subprocess.run(["git", "-C", str(tmp_path / "clone"), *commit_again], check=True)
    monkeypatch.setattr(against, "ROOT", tmp_path / "clone")
    assert "has no src/tickwork: name a later commit" in refusal("--only", "memory", "HEAD")


def test_a_machine_without_redis_is_told_what_it_can_measure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(against, "server_binary", lambda: None)
    assert "--only memory,sqlite" in refusal("HEAD")
    monkeypatch.setattr(against, "both", refuse)
    assert "as far as the trees" in refusal("--only", "memory,sqlite", "HEAD")


def refuse(*args: object) -> None:
    raise Refused("as far as the trees")


def test_unknown_figures_and_files_that_cannot_be_written_are_refused_at_once(tmp_path: Path) -> None:
    assert "idle.start" in refusal("--only", "drains", "HEAD")
    assert "cannot be written" in refusal("--json", str(tmp_path / "none" / "file.json"), "HEAD")


@pytest.mark.parametrize(("slower", "code"), [(1.0, 0), (1.05, 1)])
def test_the_exit_code_answers_and_all_figures_are_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, slower: float, code: int
) -> None:
    monkeypatch.setattr(against, "_run", lambda *told: report_of(made_up(slower)))
    done = run("--json", str(tmp_path / "all.json"), "HEAD")
    assert done.exit_code == code
    assert ("FAILED" in done.output) is bool(code)
    assert '"figure": "drain.10"' in (tmp_path / "all.json").read_text()


def test_what_was_measured_wrongly_and_what_was_stopped_have_exit_codes_of_their_own(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def broken(*told: object) -> Report:
        raise Broken(Tree("abc1234", Path("/nowhere")), "AttributeError: no call")

    def stopped(*told: object) -> Report:
        raise KeyboardInterrupt

    monkeypatch.setattr(against, "_run", broken)
    assert "abc1234 cannot be measured (AttributeError: no call): name a later commit" in refusal("HEAD")
    monkeypatch.setattr(against, "_run", stopped)
    done = run("HEAD")
    assert (done.exit_code, done.output[:8]) == (130, "Stopped:")


def test_a_pair_is_played_scene_by_scene_with_a_seed_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    before, now = Tree("before", Path("/before")), Tree("now", Path("/now"))
    played: list[tuple[str, int]] = []
    notes: list[str] = []

    def note_play(scene: turns.Scene, sides: Sequence[Tree], seed: int) -> Played:
        assert [tree.name for tree in sides] == ["before", "before", "now"]
        played.append((scene.figures[0], seed))
        return {figure: [[Spent(1.0)]] * 3 for figure in scene.figures}

    monkeypatch.setattr(against, "play", note_play)
    found = against.measure(list(SCENES[:2]), before, now, 2, notes.append)
    assert played == [("submit.one", 1), ("submit.100", 1), ("submit.one", 2), ("submit.100", 2)]
    assert [sorted(pair) for pair in found] == [sorted(SCENES[0].figures + SCENES[1].figures)] * 2
    assert len(notes) == 4
