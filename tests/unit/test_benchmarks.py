"""The pieces of the benchmarks on which their figures depend, and which need neither a server nor a peer."""

from __future__ import annotations

import re
import subprocess
import sys
import time
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest
from benchmarks import environments, guard, machine, markdown
from benchmarks.charts import Bar, Chart, lengths
from benchmarks.environments import Unavailable, command
from benchmarks.growth import report as growth
from benchmarks.growth.points import Line, Point, judge, summed
from benchmarks.growth.questions import QUESTIONS
from benchmarks.markdown import BEGIN, END, PERFORMANCE, README, headline, pages, put, write_docs
from benchmarks.peers.common import WARM, Tally
from benchmarks.references import Cost
from benchmarks.report import draw, lines, make_report, ours_of
from benchmarks.rounds import Plan, Round, joined, play_all, tasks_of
from benchmarks.scenarios import SCENARIOS, Sample
from benchmarks.subjects import CLOSEST, SUBJECTS, Subject

PLAN = Plan(("tickwork", "saq"), tuple(SCENARIOS), 2, 1.0, "/nowhere")


def test_the_tally_counts_what_others_who_map_the_file_ran(tmp_path: Path) -> None:
    harness, worker = Tally(tmp_path / "record", 3, create=True), Tally(tmp_path / "record", 3)
    before = time.time()
    for number in (0, 2, 2):
        worker.ran(number)
    assert (harness.lost, harness.duplicates, harness.ran_so_far) == (1, 1, 2)
    assert before <= harness.last_start <= time.time()
    seen = [harness.warm]
    for place in range(WARM):  # the first tasks, which are not counted
        worker.ran(3 + place)
    assert [*seen, harness.warm] == [False, True]
    assert (harness.lost, harness.duplicates) == (1, 1)


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_the_cpu_of_a_tree_is_also_that_of_children_which_have_ended() -> None:
    code = "import subprocess, sys; subprocess.run([sys.executable, '-c', 'sum(range(3_000_000))']); print(); input()"
    with subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        child.stdout.readline()
        assert machine.tree_cpu(child.pid) > machine.cpu_seconds(child.pid)
        assert machine.tree_rss(child.pid) > 2**20
        child.kill()


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
    with pytest.raises(Unavailable, match=r"Python 9\.9"):
        command(Subject("demo", "demo", ("demo",), python="9.9"), tmp_path, "worker")


def test_every_subject_has_its_module_and_knows_its_scenarios() -> None:
    for subject in SUBJECTS.values():
        name = f"{subject.module}.js" if subject.node else f"{subject.module}.py"
        assert (environments.PEERS / name).exists()
        assert all(scenario in SCENARIOS for scenario in subject.pace if scenario)


def test_a_run_of_the_closest_has_tickwork_and_a_peer_in_every_scenario() -> None:
    for scenario, names in CLOSEST.items():
        assert scenario in SCENARIOS
        assert {SUBJECTS[name].module == "tickwork" for name in names} == {True, False}
        assert {ours_of(name) for name in names} <= set(names)


def test_a_subject_is_asked_for_what_it_offers_scenario_by_scenario(monkeypatch: pytest.MonkeyPatch) -> None:
    offers = {"tickwork": ["one", "drain.10"], "saq": ["one"], "huey": list[str]()}
    played: list[tuple[int, str, str]] = []

    def play(plan: Plan, subject: Subject, number: int) -> Round:
        played.append((number, plan.scenarios[0], subject.name))
        return Round(subject.name, number, offers=offers[subject.name])

    monkeypatch.setattr("benchmarks.rounds.play_round", play)
    play_all(Plan(("tickwork", "saq", "huey"), ("submit.one", "drain.10"), 2, 1.0, "/nowhere"))
    one, drain = "submit.one", "drain.10"
    assert played[:4] == [(1, one, "tickwork"), (1, one, "saq"), (1, one, "huey"), (1, drain, "tickwork")]
    assert played[4:] == [(2, one, "saq"), (2, one, "tickwork"), (2, drain, "tickwork")]


def test_a_slow_subject_gets_fewer_tasks_but_never_too_few() -> None:
    slow = Subject("slow", "slow", pace={"": 0.5, "drain.10": 0.00001})
    assert tasks_of(PLAN, slow, "submit.one") == 1_500
    assert tasks_of(PLAN, slow, "drain.10") == SCENARIOS["drain.10"].fewest
    assert tasks_of(PLAN, slow, "idle") == SCENARIOS["idle"].tasks  # a second is as long for everybody


# --- the report


def a_round(subject: str, turn: int, cpu: float, early: int = 0) -> Round:
    drain = Sample(100, 0.1, cpu, 0.002, queued_bytes=500.0, finished_bytes=900.0, rss=32 * 2**20)
    late = Sample(10, 1.0, 0.1, 0.1, p50=cpu, p99=cpu * 2, early=early)
    return Round(subject, turn, f"{subject} 1.0, default", 0.1, 0.09, {"drain.10": drain, "lateness": late})


def rounds() -> list[Round]:
    costs = [("tickwork", 1, 0.003), ("saq", 1, 0.006), ("tickwork", 2, 0.005), ("saq", 2, 0.001)]
    return [a_round(*cost) for cost in costs]


def test_figures_are_medians_with_ranges_and_a_better_peer_is_named() -> None:
    report = make_report(PLAN, rounds(), "0.1")
    ours = next(row for row in report.rows if row.subject == "tickwork" and row.scenario == "drain.10").figures
    assert (ours["CPU us"].low, ours["CPU us"].median, ours["CPU us"].high) == pytest.approx((30, 40, 50))
    assert (ours["Redis us"].median, ours["idle MB"].median) == pytest.approx((20, 32))
    wins = {(win.scenario, win.figure): win.value for win in report.wins if win.peer == "saq"}
    assert wins["drain.10", "CPU us"] == pytest.approx(35)
    assert ("drain.10", "tasks/s") not in wins
    assert "  drain.10, CPU us           tickwork 40: saq 35" in list(lines(report))


def test_a_subject_is_compared_with_tickwork_on_its_own_store() -> None:
    names = ("tickwork memory", "apscheduler memory", "tickwork")
    plan = Plan(names, tuple(SCENARIOS), 1, 1.0, "/nowhere")
    costs = (0.004, 0.003, 0.001)
    report = make_report(plan, [a_round(name, 1, cpu) for name, cpu in zip(names, costs, strict=True)], "")
    assert {(win.ours, win.peer) for win in report.wins} == {("tickwork memory", "apscheduler memory")}


def test_starting_before_the_time_is_no_win() -> None:
    report = make_report(PLAN, [a_round("tickwork", 1, 0.003), a_round("saq", 1, -0.5, early=3)], "")
    assert not [win for win in report.wins if win.scenario == "lateness"]


def test_what_was_lost_and_what_broke_is_said() -> None:
    played = rounds()
    played[0].samples["drain.10"] = Sample(100, 0.1, 0.1, 0.1, lost=2, duplicates=1)
    played[1].problems.append("left out: no network")
    said = list(lines(make_report(PLAN, played, "0.1")))
    assert "3 tasks were lost or ran twice." in said
    assert "PROBLEM  saq: left out: no network" in said


def test_runs_of_several_invocations_become_one_report() -> None:
    other = Plan(("tickwork", "huey"), ("drain.10",), 1, 0.5, "/nowhere")
    plan, played = joined([(PLAN, rounds()), (other, [a_round("tickwork", 1, 0.007), a_round("huey", 1, 0.009)])])
    assert plan.subjects == ("tickwork", "saq", "huey")
    assert (plan.rounds, plan.size) == (3, 0.5)
    assert [(done.subject, done.number) for done in played][-2:] == [("tickwork", 3), ("huey", 3)]
    row = next(row for row in make_report(plan, played, "").rows if row.subject == "tickwork")
    assert (row.figures["CPU us"].median, row.figures["CPU us"].high) == pytest.approx((50, 70))


def test_the_tables_for_the_documentation_hold_every_subject_and_the_best_peer() -> None:
    plan = Plan(("tickwork", "saq", "huey", "tickwork memory"), tuple(SCENARIOS), 1, 1.0, "/nowhere")
    missing = Round("huey", 1, "huey 1.0", 0.1, 0.09)
    said = list(pages(make_report(plan, [*rounds(), a_round("tickwork memory", 1, 0.002), missing], "")))
    assert not any("huey" in line for line in said)  # it has no figures
    assert any(line.startswith("| **tickwork** |") and "40 + 20 µs" in line for line in said)
    assert any(line.startswith("| **tickwork memory** |") for line in said)
    assert "| drain.10, tasks/s | redis | 1,000 | saq 1,000 | 1.00 |" in said


def test_the_line_of_figures_is_made_of_those_that_the_tables_have() -> None:
    submits = Sample(100, 0.05, 0.001)
    parts = {
        "tickwork": {"drain.100": Sample(100, 0.1, 0.001, 0.001), "latency.start": Sample(10, 1.0, 0.1, p50=0.0012)},
        "saq": {"drain.100": Sample(100, 0.2, 0.001, 0.001)},
        "tickwork sqlite": {"submit.one": submits},
    }
    plan = Plan(tuple(parts), tuple(SCENARIOS), 1, 1.0, "/nowhere")
    played = [Round(name, 1, f"{name} 1.0", 0.1, 0.09, samples) for name, samples in parts.items()]
    said = headline(make_report(plan, played, ""))
    assert "**1,000 tasks a second** (saq: 500)" in said
    assert "**1.2 ms**" in said
    assert "**2,000 submits a second**" in said
    assert headline(make_report(plan, played[:2], "")) == ""  # not all of it was measured


def test_only_what_is_between_the_marks_is_replaced(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(f"above\n{BEGIN}\nold\n{END}\n\n<!-- other -->\nbelow\n{END}\n")
    put(page, "new \\1\n\n")
    put(page, "new \\1\n\n")
    assert page.read_text() == f"above\n{BEGIN}\nnew \\1\n{END}\n\n<!-- other -->\nbelow\n{END}\n"
    page.write_text("no marks\n")
    with pytest.raises(ValueError, match=f"must have one {BEGIN}"):
        put(page, "new")


def test_tables_and_line_are_written_into_the_docs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = {name: tmp_path / name for name in ("PERFORMANCE", "README")}
    for name, file in files.items():
        file.write_text(f"{BEGIN}\nold\n{END}\n")
        monkeypatch.setattr(markdown, name, file)
    write_docs(make_report(PLAN, rounds(), ""))
    assert "| drain.10, tasks/s | redis | 1,000 | saq 1,000 | 1.00 |" in files["PERFORMANCE"].read_text()
    assert "old" in files["README"].read_text()  # what its line holds was not measured
    monkeypatch.setattr(markdown, "headline", lambda report: "new")
    write_docs(make_report(PLAN, rounds(), ""))
    assert files["README"].read_text() == f"{BEGIN}\nnew\n{END}\n"


def test_the_figures_of_the_readme_are_those_of_the_tables() -> None:
    """Both are written by one run: see `make bench ARGS=--docs`."""
    line, tables = (
        file.read_text(encoding="utf-8").partition(f"{BEGIN}\n")[2].partition(END)[0] for file in (README, PERFORMANCE)
    )
    figures, known = (set(re.findall(r"\d[\d,.]*\d", text)) for text in (line, tables))
    assert len(figures) == 4
    assert figures <= known


def test_what_is_idle_and_what_is_large_have_figures_of_their_own() -> None:
    quiet = Sample(1, 2.0, 0.004, 0.001, is_idle=True)
    large = Sample(100, 0.5, 0.1, 0.05, payload=100_000)
    played = [Round("tickwork", 1, "tickwork 1.0", 0.1, 0.09, {"idle": quiet, "payload": large})]
    idle, payload = sorted(make_report(PLAN, played, "").rows, key=lambda row: row.scenario)
    assert {name: figure.median for name, figure in idle.figures.items()} == {"CPU ms/s": 2.0, "Redis ms/s": 0.5}
    assert payload.figures["MB/s"].median == pytest.approx(20)


def test_the_image_is_well_formed_and_names_its_versions() -> None:
    said = " ".join(ElementTree.fromstring(draw(make_report(PLAN, rounds(), "0.1"))).itertext())
    assert time.strftime("%Y-", time.gmtime()) in said
    assert "saq 1.0" in said


def test_a_bar_that_would_dwarf_the_others_is_cut_off() -> None:
    chart = Chart("cost", "us", ("a",), [Bar("x", (10.0,)), Bar("y", (20.0,)), Bar("z", (900.0,))])
    assert lengths(chart, 100) == [[5.0], [10.0], [100.0]]


# --- growth and guard


def grown(*costs: float, question: str = "workers") -> list[Line]:
    named = [{"worker us": 10.0, "Redis us": cost} for cost in costs]
    return summed([Point(question, "redis", 10**place, cost) for place, cost in enumerate(named)])


def test_points_of_the_same_size_become_one_line() -> None:
    first, second = ({"tasks/s": 9.0 * n, "worker us": 10.0 * n, "Redis us": 20.0 * n} for n in (1, 3))
    (line,) = summed([Point("workers", "redis", 2, first), Point("workers", "redis", 2, second, lost=1)])
    worker = line.costs["worker us"]
    assert (worker.median, worker.low, worker.high, line.lost) == (20.0, 10.0, 30.0, 1)
    assert any("worker processes" in said for said in growth.text([line]))
    ElementTree.fromstring(growth.draw([line], 1))


@pytest.mark.parametrize(
    ("costs", "flat", "times"), [((20, 21, 29), True, 1.45), ((20, 21, 31), False, 1.55), ((90, 20, 31), False, 1.55)]
)
def test_a_cost_is_flat_that_has_grown_by_no_more_than_half(costs: tuple[float, ...], flat: bool, times: float) -> None:
    """Beside the least of the smaller sizes: what is paid once makes the smallest look dear."""
    worker, redis = judge(QUESTIONS["workers"], "redis", grown(*costs))
    assert worker.flat
    assert redis.flat is flat
    assert redis.times == pytest.approx(times)


def test_a_cost_that_is_small_enough_may_grow() -> None:
    claims = [{"worker us": 1.0, "Redis us a claim": cost} for cost in (50.0, 900.0)]
    lines = summed([Point("queues", "redis", place, cost) for place, cost in enumerate(claims)])
    assert all(verdict.flat for verdict in judge(QUESTIONS["queues"], "redis", lines))


def test_the_last_line_of_a_question_says_what_has_grown_and_by_how_much() -> None:
    said = [line.strip() for line in growth.text(grown(20, 21, 60))]
    assert "not flat: x 3 (Redis us 20 -> 60)" in said
    said = [line.strip() for line in growth.text(summed([Point("payloads", "redis", 1, {"x GET+SET": 2.5})]))]
    assert "flat: x GET+SET 2.5 -> 2.5 (enough: 2); above the aim: x GET+SET 2.5, aim 2" in said
    said = [line.strip() for line in growth.text(grown(20, 21, 22))]
    assert "flat: worker us 10 -> 10, Redis us 20 -> 22" in said


def test_every_question_has_three_sizes_wherever_it_is_asked() -> None:
    for question in QUESTIONS.values():
        assert question.judged
        assert all(len(sizes) == 3 and list(sizes) == sorted(sizes) for sizes in question.sizes.values())


COSTS = [(Cost(10, 5), Cost(40, 10)), (Cost(20, 6), Cost(25, 11))]


def test_the_guard_compares_the_least_of_both() -> None:
    python = guard.judge(guard.Bound("tickwork", "drain.10", "pipelines", "python", 3.0), COSTS)
    redis = guard.judge(guard.Bound("tickwork", "drain.10", "pipelines", "redis", 1.5), COSTS)
    assert (python.best, python.good) == (2.5, True)
    assert (redis.best, redis.good) == (2.0, False)
    assert [line.split()[0] for line in guard.text([python, redis])][1:] == ["ok", "SLOW"]


def test_the_guard_suggests_bounds_that_leave_room_above_what_was_measured() -> None:
    bound = guard.Bound("tickwork", "latency.start", "over Redis", "p50", 3.0)
    verdict = guard.judge(bound, [(Cost(p50=0.1), Cost(p50=1.0))])
    expected = '    Bound("tickwork", "latency.start", "over Redis", "p50", 16),'
    assert list(guard.suggestions([verdict])) == ["BOUNDS = (", expected, ")"]


def test_every_bound_names_a_subject_a_scenario_and_a_reference() -> None:
    for bound in guard.BOUNDS:
        assert bound.subject in SUBJECTS
        assert bound.play in SCENARIOS
        assert bound.reference in guard.REFERENCES
