"""The chart for the README. `python -m benchmarks.redis.svg report.json` draws it from the figures of a run."""

from __future__ import annotations

import sys
from pathlib import Path

import msgspec

from benchmarks.redis.charts import svg
from benchmarks.redis.report import Report, charts

IMAGE = Path(__file__).parents[2] / "docs" / "images" / "bench-redis.svg"


def draw(report: Report) -> str:
    machine = report.machine
    versions = [about.split(",")[0].split(" (")[0] for about in report.subjects.values()]
    named = list(dict.fromkeys(versions))
    half = (len(named) + 1) // 2
    notes = [
        f"{machine['date']}, {machine['python']}, Redis {machine['redis']}, {machine['system']}, medians of "
        f"{report.plan.rounds} interleaved rounds.",
        ", ".join(named[:half]) + ",",
        ", ".join(named[half:]) + ".",
        "Results are kept, except by Repid, which has none. A bar with » is cut off.",
    ]
    return svg(charts(report.rows), "Tickwork on Redis and its peers: shorter is better", notes)


def write(report: Report, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(draw(report), encoding="utf-8")


if __name__ == "__main__":
    write(
        msgspec.json.decode(Path(sys.argv[1]).read_bytes(), type=Report), Path(sys.argv[2]) if sys.argv[2:] else IMAGE
    )
