"""The tables of `docs/performance.md` and the line of figures in the README, from the figures of a run: `--docs`."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from msgspec import Struct

from benchmarks.charts import number
from benchmarks.environments import ROOT
from benchmarks.report import (
    BYTES,
    CPU,
    ENDED,
    IDLE,
    IDLE_CPU,
    IDLE_REDIS,
    MORE_IS_BETTER,
    P50,
    P99,
    QUEUED,
    RATE,
    REDIS,
    Report,
    Row,
    ours_of,
)
from benchmarks.subjects import SUBJECTS

PERFORMANCE, README = ROOT / "docs" / "performance.md", ROOT / "README.md"
BEGIN, END = "<!-- bench -->", "<!-- end -->"


class Column(Struct, frozen=True):
    """Figures of one scenario in one cell, each with `between` before the next."""

    title: str
    scenario: str
    figures: tuple[str, ...]
    unit: str = ""
    between: str = " / "


def _rate(title: str, scenario: str) -> Column:
    return Column(title, scenario, (RATE,), "/s")


def _cpu(scenario: str, title: str = "CPU worker + Redis") -> Column:
    return Column(title, scenario, (CPU, REDIS), " µs", " + ")


def _times(title: str, scenario: str) -> Column:
    return Column(title, scenario, (P50, P99), " ms")


LARGE = Column("100 KB payloads, drain", "payload", (BYTES,), " MB/s")
QUIET = Column("an idle worker, CPU with Redis", "idle", (IDLE_CPU, IDLE_REDIS), " ms/s", " + ")
SUBMITS = (
    _rate("submit one by one, awaited", "submit.one"),
    _rate("submit one by one, blocking", "submit.sync"),
    _rate("100 callers", "submit.100"),
    _rate("in bulk", "submit.bulk"),
)
WAITS = (
    _times("idle: submit to start, p50 / p99", "latency.start"),
    _times("submit to result, p50 / p99", "latency.result"),
    _times("delayed tasks late by, p50 / p99", "lateness"),
)
APART = {
    "Drains and submits": (
        _rate("drain, 100 at once", "drain.100"),
        _cpu("drain.100"),
        _rate("drain, 10 at once", "drain.10"),
        _cpu("drain.10"),
        LARGE,
        _rate("0.1 s waits, 2,000 at once", "io.2000"),
        *SUBMITS,
    ),
    "Waiting": (
        *WAITS,
        Column("Redis bytes a queued / finished task", "drain.10", (QUEUED, ENDED)),
        Column("idle worker", "drain.10", (IDLE,), " MB"),
        QUIET,
    ),
}
TOGETHER = {
    "In one process": (
        _rate("end to end, in bulk", "through.bulk"),
        _cpu("through.bulk", "CPU"),
        _cpu("roundtrip", "round trip, CPU"),
        _rate("submit one by one, awaited", "submit.one"),
        _rate("submit one by one, blocking", "submit.sync"),
        *WAITS,
    ),
}
# What is held against the best peer, figure by figure.
GOALS = (
    ("drain.100", RATE),
    ("drain.10", RATE),
    ("submit.one", RATE),
    ("submit.sync", RATE),
    ("submit.100", RATE),
    ("submit.bulk", RATE),
    ("latency.start", P50),
    ("latency.start", P99),
    ("latency.result", P50),
    ("lateness", P50),
    ("lateness", P99),
    ("payload", BYTES),
    ("roundtrip", CPU),
    ("idle", IDLE_CPU),
)


def write_docs(report: Report) -> None:
    """Puts the tables and the line of figures where the documentation has those of the last run."""
    put(PERFORMANCE, "\n".join(pages(report)))
    if line := headline(report):
        put(README, line)


def put(file: Path, text: str) -> None:
    """Replaces what stands between the two marks of a file; all else in it is written by people."""
    whole = file.read_text(encoding="utf-8")
    if whole.count(BEGIN) != 1:
        raise ValueError(f"{file.name} must have one {BEGIN}, with {END} below it")
    between = re.compile(rf"(?<={re.escape(BEGIN)}\n).*?(?={re.escape(END)})", re.DOTALL)
    file.write_text(between.sub(lambda _: text.strip() + "\n", whole, count=1), encoding="utf-8")


def headline(report: Report) -> str:
    """One line for the README; empty if the run did not measure what it holds."""
    rows = {(row.scenario, row.subject): row for row in report.rows}
    drain, wait = rows.get(("drain.100", "tickwork")), rows.get(("latency.start", "tickwork"))
    file = rows.get(("submit.one", "tickwork sqlite"))
    if drain is None or wait is None or file is None:
        return ""
    peers = [row for row in report.rows if row.scenario == "drain.100" and SUBJECTS[row.subject].module != "tickwork"]
    best = _best([row for row in peers if ours_of(row.subject) == "tickwork"], RATE)
    beside = "" if best is None else f" ({_shown(best.subject, report)}: {number(best.figures[RATE].median)})"
    return (
        f"One worker on Redis runs **{number(drain.figures[RATE].median)} tasks a second**{beside} and starts a task "
        f"**{number(wait.figures[P50].median)} ms** after its submit; a SQLite file takes "
        f"**{number(file.figures[RATE].median)} submits a second**, one by one."
    )


def pages(report: Report) -> Iterator[str]:
    rows = {(row.scenario, row.subject): row for row in report.rows}
    for together, tables in ((False, APART), (True, TOGETHER)):
        subjects = [name for name in report.subjects if SUBJECTS[name].together is together]
        for title, columns in tables.items():
            if subjects:
                yield from _table(title, columns, {name: _shown(name, report) for name in subjects}, rows)
    yield from _beside_the_best(report)


def _table(
    title: str, columns: tuple[Column, ...], subjects: dict[str, str], rows: dict[tuple[str, str], Row]
) -> Iterator[str]:
    yield f"### {title}\n"
    yield "| | " + " | ".join(column.title for column in columns) + " |"
    yield "|---" * (len(columns) + 1) + "|"
    for subject, shown in subjects.items():
        cells = [_cell(column, rows.get((column.scenario, subject))) for column in columns]
        if any(cells):
            yield f"| {shown} | " + " | ".join(cells) + " |"
    yield ""


def _shown(subject: str, report: Report) -> str:
    """As the library writes its name, with what is not its default."""
    name = " ".join([report.subjects[subject].split()[0], *subject.split()[1:]])
    return f"**{name}**" if SUBJECTS[subject].module == "tickwork" else name


def _cell(column: Column, row: Row | None) -> str:
    """Empty where the library does not offer it."""
    if row is None:
        return ""
    if row.early and P50 in column.figures:
        return "some before their time"
    known = [number(row.figures[name].median) for name in column.figures if name in row.figures]
    return column.between.join(known) + column.unit if known else ""


def _beside_the_best(report: Report) -> Iterator[str]:
    yield "### Beside the best peer\n"
    yield "| | store | Tickwork | best peer | Tickwork in multiples of it |"
    yield "|---|---|---|---|---|"
    for scenario, figure in GOALS:
        here = [row for row in report.rows if row.scenario == scenario and figure in row.figures and not row.early]
        for ours in (row for row in here if row.subject == ours_of(row.subject)):
            value = ours.figures[figure].median
            peers = [row for row in here if ours_of(row.subject) == ours.subject]
            best = _best([row for row in peers if SUBJECTS[row.subject].module != "tickwork"], figure)
            theirs = "" if best is None else f"{_shown(best.subject, report)} {number(best.figures[figure].median)}"
            ratio = "" if best is None or not best.figures[figure].median else _times_of(value, best, figure)
            place = SUBJECTS[ours.subject].store + ", one process" * SUBJECTS[ours.subject].together
            yield f"| {scenario}, {figure} | {place} | {number(value)} | {theirs} | {ratio} |"
    yield ""


def _times_of(value: float, best: Row, figure: str) -> str:
    return f"{value / best.figures[figure].median:.2f}"


def _best(rows: list[Row], figure: str) -> Row | None:
    sign = -1 if figure in MORE_IS_BETTER else 1
    return min(rows, key=lambda row: sign * row.figures[figure].median, default=None)
