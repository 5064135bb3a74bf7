"""`tickwork report` and `tickwork failures` on a file with counted statistics."""

from __future__ import annotations

import asyncio
import csv
import io
import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from tickwork import Abort, Scheduler
from tickwork.cli import commands
from tickwork.cli.report import inert
from tickwork.monitor.statistics import Statistics
from tickwork.observe.loggers import Log
from tickwork.testing import drain

FORMULA = "@SUM"  # a type that a spreadsheet would run


async def make(url: str) -> None:
    app = Scheduler(url, statistics=False)  # this test counts by itself, when all has happened

    @app.task
    async def greet(name: str) -> str:
        return name

    @app.task(max_retry=0)
    async def charge(order: int) -> None:
        raise Abort(f"order {order} has no address")

    @app.task(FORMULA)
    async def formula() -> None: ...

    for number in range(3):
        await greet.submit("Ada")
        await charge.submit(number)
    await formula.submit()
    await app.start()
    await drain(app, 60)
    duty = Statistics(await app._access.open_store(), Log.of(None, "statistics"), save_every=0.0)
    while await duty.work() == 0:
        pass
    await app.shutdown()


@pytest.fixture
def url(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    url = f"sqlite:///{tmp_path}/shop.db"
    monkeypatch.setenv("TICKWORK_STORE", url)
    monkeypatch.setenv("COLUMNS", "200")
    return url


@pytest.fixture
def counted(url: str) -> None:
    asyncio.run(make(url))


def run(*args: str) -> Result:
    return CliRunner().invoke(commands, args)


def good(*args: str) -> str:
    result = run(*args)
    assert result.exit_code == 0, result.output
    return result.output


@pytest.mark.usefixtures("counted")
def test_a_report_has_a_chart_and_rows() -> None:
    lines = good("report", "--since", "1h").splitlines()
    assert lines[0].split()[:2] == ["submitted", "7"]
    assert "█" in lines[0]
    found = {line.split()[0]: line.split() for line in lines if line}
    assert found["greet"][1:4] == ["3", "3", "0"]
    assert found["charge"][1:4] == ["3", "0", "3"]
    assert found["charge"][6:8] == ["100.00", "%"]
    assert found["total"][1:4] == ["7", "4", "3"]


@pytest.mark.usefixtures("counted")
@pytest.mark.parametrize("by", ["queue", "day", "hour", "minute"])
def test_a_report_may_be_by_queue_or_time(by: str) -> None:
    report = json.loads(good("report", "--since", "1h", "--by", by, "--json"))
    assert report["by"] == by
    assert report["total"]["submitted"] == sum(row["submitted"] for row in report["rows"]) == 7
    assert by.upper() in good("report", "--since", "1h", "--by", by)


@pytest.mark.usefixtures("counted")
def test_csv_has_every_number_and_runs_nothing() -> None:
    rows = {row["name"]: row for row in csv.DictReader(io.StringIO(good("report", "--csv")))}
    assert rows.keys() == {"greet", "charge", f"'{FORMULA}"}
    assert (rows["charge"]["submitted"], rows["charge"]["dead"], rows["charge"]["failure_rate"]) == ("3", "3", "1")
    assert 0 < float(rows["greet"]["run_p50"]) <= float(rows["greet"]["run_p99"]) < 60


@pytest.mark.parametrize("cell", ["=1+1", "+1", "-1", "@x"])
def test_a_cell_that_looks_like_a_formula_is_inert(cell: str) -> None:
    assert inert(cell) == f"'{cell}"


def test_other_cells_are_as_they_are() -> None:
    assert (inert("plain"), inert(7)) == ("plain", "7")


@pytest.mark.usefixtures("counted")
def test_failures_are_shown_by_group() -> None:
    (group,) = json.loads(good("failures", "--json"))["failures"]
    assert (group["message"], group["dead"], group["types"]) == ("order # has no address", 3, ["charge"])
    assert "order # has no address" in good("failures")
    assert "no failures" in good("failures", "--type", "greet")


def test_a_store_without_statistics_says_so(url: str) -> None:
    async def open_once() -> None:
        app = Scheduler(url)
        await app.list_tasks()
        await app.shutdown()

    asyncio.run(open_once())
    assert "no statistics" in good("report")
    assert "no failures" in good("failures")


@pytest.mark.usefixtures("counted")
@pytest.mark.parametrize(
    ("args", "words"),
    [
        (["--csv", "--json"], "--csv and --json cannot be given together"),
        (["--since", "2030-01-31T09:00"], "names no zone"),
        (["--since", "2030-99-99"], "is not a time such as"),
        (["--since", "soon"], "'soon'"),
        (["--since", "1h", "--until", "2h"], "since must be before until"),
        (["--by", "minute", "--since", "2d"], "by='minute' goes back to"),
    ],
)
def test_a_mistake_is_told(args: list[str], words: str) -> None:
    result = run("report", *args)
    assert result.exit_code == 2
    assert words in result.output
