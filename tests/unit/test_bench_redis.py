"""The pieces of the Redis benchmark that need neither Redis nor a peer."""

from __future__ import annotations

import os
import subprocess
import sys
import time
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest
from benchmarks.redis import environments, growth, guard, machine
from benchmarks.redis.charts import Bar, Chart, chart_lines, lengths, number, svg
from benchmarks.redis.environments import Unavailable, command
from benchmarks.redis.peers.common import WARM, Tally, batches, due_times
from benchmarks.redis.report import lines as report_lines
from benchmarks.redis.report import make_report, wins
from benchmarks.redis.rounds import Plan, Round, order, tasks_of
from benchmarks.redis.scenarios import SCENARIOS, TITLES, Sample
from benchmarks.redis.subjects import SUBJECTS, Subject
from benchmarks.redis.svg import draw

NEEDS_PROC = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
PLAN = Plan(("tickwork", "saq"), tuple(SCENARIOS), 2, 1.0, "/nowhere")


# --- the record of what ran


def test_the_tally_is_shared_by_all_who_map_the_file(tmp_path: Path) -> None:
    harness = Tally(tmp_path / "record", 3, create=True)
    worker = Tally(tmp_path / "record", 3)
    before = time.time()
    worker.ran(0)
    worker.ran(2)
    worker.ran(2)
    assert (harness.lost, harness.duplicates, harness.ran_so_far) == (1, 1, 2)
    assert before <= harness.last_start <= time.time()


def test_a_tally_counts_no_further_than_a_byte_holds(tmp_path: Path) -> None:
    tally = Tally(tmp_path / "record", 1, create=True)
    for _ in range(300):
        tally.ran(0)
    assert tally.duplicates == 254


def test_the_first_tasks_warm_up_and_are_not_counted(tmp_path: Path) -> None:
    tally = Tally(tmp_path / "record", 5, create=True)
    seen = [tally.warm]
    for place in range(WARM):
        tally.ran(5 + place)
    seen.append(tally.warm)
    assert seen == [False, True]
    assert (tally.lost, tally.duplicates) == (5, 0)


def test_due_times_are_whole_milliseconds_ahead() -> None:
    due = due_times(4, 1.0)
    assert due == sorted(due)
    assert due[0] > time.time()
    assert due[-1] - due[0] == pytest.approx(0.75, abs=0.002)
    assert all(round(at, 3) == at for at in due)


def test_bulk_submits_come_in_batches() -> None:
    assert list(batches(range(5, 2_505))) == [range(5, 1_005), range(1_005, 2_005), range(2_005, 2_505)]


# --- what processes use


@NEEDS_PROC
def test_cpu_of_a_process_is_that_which_it_sees_itself() -> None:
    assert machine.cpu_seconds(os.getpid()) == pytest.approx(time.process_time(), abs=0.05)


@NEEDS_PROC
def test_a_tree_holds_the_children_and_what_they_used_before_they_ended() -> None:
    code = "import subprocess, sys; subprocess.run([sys.executable, '-c', 'sum(range(3_000_000))']); print(); input()"
    with subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        child.stdout.readline()
        assert child.pid in machine.tree(os.getpid())
        own = machine.cpu_seconds(child.pid)
        assert machine.tree_cpu(child.pid) >= own + machine.Stat(child.pid).ended_children_cpu - 0.001
        assert machine.Stat(child.pid).ended_children_cpu > 0
        assert machine.tree_rss(child.pid) > 2**20
        child.kill()


# --- environments


def test_tickwork_runs_in_this_environment(tmp_path: Path) -> None:
    assert sys.executable in command(SUBJECTS["tickwork"], tmp_path, "worker")
    assert list(tmp_path.iterdir()) == []


def test_an_environment_is_made_once_and_anew_when_its_needs_change(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps: list[list[str]] = []

    def note(step: list[str]) -> None:
        steps.append(step)
        (tmp_path / "demo").mkdir(exist_ok=True)

    monkeypatch.setattr(environments, "_run", note)
    first, second = Subject("demo", "demo", ("demo==1",)), Subject("demo", "demo", ("demo==2",))
    command(first, tmp_path, "worker")
    command(first, tmp_path, "client")
    assert [step[-1] for step in steps] == [str(tmp_path / "demo"), "demo==1"]
    command(second, tmp_path, "worker")
    assert steps[-1][-1] == "demo==2"


def test_a_subject_that_cannot_be_had_says_why(tmp_path: Path) -> None:
    with pytest.raises(Unavailable, match=r"Python 9\.9"):
        command(Subject("demo", "demo", ("demo",), python="9.9"), tmp_path, "worker")


def test_every_subject_has_its_module() -> None:
    for subject in SUBJECTS.values():
        name = f"{subject.module}.js" if subject.node else f"{subject.module}.py"
        assert (environments.PEERS / name).exists()
        assert all(scenario in SCENARIOS for scenario in subject.pace if scenario)


# --- rounds


def test_every_second_round_goes_backwards() -> None:
    assert order(("a", "b"), 1) == ("a", "b")
    assert order(("a", "b"), 2) == ("b", "a")


def test_a_slow_subject_gets_fewer_tasks_but_never_too_few() -> None:
    slow = Subject("slow", "slow", pace={"": 0.5, "drain.10": 0.00001})
    assert tasks_of(PLAN, slow, "submit.one") == 1_500
    assert tasks_of(PLAN, slow, "drain.10") == SCENARIOS["drain.10"].fewest


def test_who_keeps_no_results_can_still_be_asked_when_a_task_started() -> None:
    latency = SCENARIOS["latency"]
    assert latency.offered_by({"latency"})
    assert latency.offered_by({"start"})
    assert not latency.offered_by({"one"})
    assert not SCENARIOS["submit.bulk"].offered_by({"one"})


# --- the report


def _round(subject: str, turn: int, cpu: float, **more: int) -> Round:
    drain = Sample(100, 0.1, cpu, 0.002, queued_bytes=500.0, finished_bytes=900.0, rss=32 * 2**20)
    late = Sample(10, 1.0, 0.1, 0.1, p50=cpu, p99=cpu * 2, **more)
    samples = {"drain.10": drain, "lateness": late}
    return Round(subject, turn, f"{subject} 1.0, default", 0.1, 0.09, samples)


def _rounds() -> list[Round]:
    return [
        _round("tickwork", 1, 0.003),
        _round("saq", 1, 0.006),
        _round("tickwork", 2, 0.005),
        _round("saq", 2, 0.001),
    ]


def test_figures_are_medians_with_ranges() -> None:
    report = make_report(PLAN, _rounds(), "0.1")
    ours = next(row for row in report.rows if row.subject == "tickwork" and row.scenario == "drain.10")
    assert (ours.cpu_us.low, ours.cpu_us.high) == pytest.approx((30, 50))
    assert ours.cpu_us.median == pytest.approx(40)
    assert ours.redis_us.median == pytest.approx(20)
    assert ours.rss_mb is not None
    assert ours.rss_mb.median == pytest.approx(32)


def test_a_peer_that_is_better_is_named() -> None:
    report = make_report(PLAN, _rounds(), "0.1")
    assert ("drain.10", "CPU us", "saq") in {(win.scenario, win.figure, win.peer) for win in report.wins}
    assert ("drain.10", "tasks/s") not in {(win.scenario, win.figure) for win in report.wins}
    said = "\n".join(report_lines(report))
    assert "Where a peer is better than tickwork" in said
    assert "Every task ran exactly once." in said


def test_without_tickwork_nothing_is_said_about_it() -> None:
    rounds = [done for done in _rounds() if done.subject == "saq"]
    assert "better than tickwork" not in "\n".join(report_lines(make_report(PLAN, rounds, "0.1")))


def test_starting_before_the_time_is_no_win() -> None:
    rounds = [_round("tickwork", 1, 0.003), _round("saq", 1, -0.5, early=3)]
    report = make_report(PLAN, rounds, "0.1")
    assert not [win for win in wins(report.rows) if win.scenario == "lateness"]


def test_what_was_lost_and_what_broke_is_said() -> None:
    rounds = _rounds()
    rounds[0].samples["drain.10"] = Sample(100, 0.1, 0.1, 0.1, lost=2, duplicates=1)
    rounds[1].problems.append("left out: no network")
    said = "\n".join(report_lines(make_report(PLAN, rounds, "0.1")))
    assert "3 tasks were lost or ran twice." in said
    assert "PROBLEM  saq: left out: no network" in said


def test_every_scenario_has_a_title() -> None:
    assert {name.removesuffix(".start").removesuffix(".result") for name in TITLES} == set(SCENARIOS)


# --- charts


def test_bars_are_as_long_as_their_values() -> None:
    chart = Chart("cost", "us", ("a", "b"), [Bar("x", (10.0, 10.0)), Bar("y", (40.0, 0.0))])
    assert lengths(chart, 100) == [[25.0, 25.0], [100.0, 0.0]]
    assert any("####" in line for line in chart_lines(chart))


def test_a_bar_that_would_dwarf_the_others_is_cut_off() -> None:
    chart = Chart("cost", "us", ("a",), [Bar("x", (10.0,)), Bar("y", (20.0,)), Bar("z", (900.0,))])
    assert lengths(chart, 100) == [[5.0], [10.0], [100.0]]
    assert [line.split()[-2:] for line in chart_lines(chart)][-1] == ["»", "900"]


def test_logarithmic_bars_keep_their_order_and_their_bounds() -> None:
    chart = Chart("late", "ms", ("",), [Bar("x", (0.0,)), Bar("y", (1.0,)), Bar("z", (1000.0,))], log=True)
    (none,), (short,), (long,) = lengths(chart, 100)
    assert 0 <= none < short < long == pytest.approx(100)


@pytest.mark.parametrize(
    ("value", "text"), [(0, "0"), (0.0123, "0.0123"), (1.5, "1.5"), (42.42, "42.4"), (15_337.2, "15,337")]
)
def test_numbers_show_three_figures(value: float, text: str) -> None:
    assert number(value) == text


def test_the_image_is_well_formed_and_names_date_and_versions() -> None:
    image = draw(make_report(PLAN, _rounds(), "0.1"))
    root = ElementTree.fromstring(image)
    said = " ".join(root.itertext())
    assert root.tag.endswith("svg")
    assert time.strftime("%Y-", time.gmtime()) in said
    assert "saq 1.0" in said
    assert ElementTree.fromstring(svg([], "a < b & c", [])).attrib["aria-label"] == "a < b & c"


# --- growth and guard


def test_small_queues_are_filled_until_they_make_a_window() -> None:
    assert growth.fills(1_000, 3_000) == [(0, 1_000, 1_000), (1_000, 2_000, 1_000), (2_000, 3_000, 1_000)]
    assert growth.fills(100_000, 10_000) == [(0, 100_000, 10_000)]


def test_points_of_the_same_size_become_one_line() -> None:
    points = [growth.Point("workers", 2, 100.0, 10.0, 20.0), growth.Point("workers", 2, 300.0, 30.0, 40.0, lost=1)]
    (line,) = growth.summed(points)
    assert (line.worker_us.median, line.worker_us.low, line.worker_us.high) == (20.0, 10.0, 30.0)
    assert line.lost == 1
    assert any("worker processes" in said for said in growth.text([line]))
    ElementTree.fromstring(growth.draw([line], 1))


def test_the_guard_compares_the_least_of_both() -> None:
    bound = guard.Bound("drain.10", python=3.0, redis=1.5)
    costs = [(guard.Cost(10, 5), guard.Cost(40, 10)), (guard.Cost(20, 6), guard.Cost(25, 11))]
    python, redis = guard.judge(bound, costs)
    assert (python.best, python.good) == (2.5, True)
    assert (redis.best, redis.good) == (2.0, False)
    assert any(line.startswith("SLOW") for line in guard.text([python, redis]))
