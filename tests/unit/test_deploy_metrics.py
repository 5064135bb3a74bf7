"""The rules for Prometheus and the dashboard for Grafana use only metrics that exist, with labels that they have."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.support.scrapes import Scrape
from tests.unit.test_metrics import metrics_of
from tickwork.monitor.exposition import TABLE

DEPLOY = Path(__file__).resolve().parents[2] / "deploy"
RULES = DEPLOY / "prometheus" / "rules.yaml"
DASHBOARD = DEPLOY / "grafana" / "tickwork.json"
OF_PROMETHEUS = {"job", "instance", "le"}  # labels that it adds, or that every histogram has
WORDS = {"by", "without", "on", "ignoring", "and", "or", "unless", "bool"}
NAME = r"[a-zA-Z_:][a-zA-Z0-9_:]*"


def rules() -> list[dict[str, Any]]:
    return [rule for group in yaml.safe_load(RULES.read_text())["groups"] for rule in group["rules"]]


def panels() -> list[dict[str, Any]]:
    return [panel for panel in json.loads(DASHBOARD.read_text())["panels"] if panel["type"] != "row"]


def expressions() -> Iterator[tuple[str, str]]:
    """Where each one stands, and the expression itself."""
    for rule in rules():
        yield rule.get("alert") or rule["record"], rule["expr"]
    for panel in panels():
        for target in panel["targets"]:
            yield panel["title"], target["expr"]


def known() -> dict[str, set[str]]:
    """The labels of every sample that a page has, and of what the rules record."""
    samples = {name: {label for label, _ in labels} for name, labels in Scrape(metrics_of().render()).samples}
    recorded = {rule["record"]: grouped(rule["expr"]) for rule in rules() if "record" in rule}
    return samples | recorded


def grouped(expression: str) -> set[str]:
    found = re.findall(r"\bby \(([^)]*)\)", expression)
    return {label.strip() for labels in found for label in labels.split(",")}


def used(expression: str) -> dict[str, set[str]]:
    """The metrics that an expression names, and the labels that it selects them by."""
    plain = re.sub(r"\b(?:by|without|on|ignoring) \([^)]*\)|\[[^\]]*\]", "", expression)
    selected = re.findall(rf"({NAME})\{{([^}}]*)\}}", plain)
    bare = re.findall(rf"(?<![\w:]){NAME}(?![\w:]*\s*\()", re.sub(r"\{[^}]*\}", "", plain))
    found: dict[str, set[str]] = {name: set() for name in bare if name not in WORDS}
    for name, labels in selected:
        found[name] |= set(re.findall(rf"({NAME})\s*[=!]", labels))
    return found


@pytest.mark.parametrize(("where", "expression"), list(expressions()))
def test_only_metrics_and_labels_that_exist_are_used(where: str, expression: str) -> None:
    samples = known()
    metrics = used(expression)
    assert metrics, "an expression names a metric"
    assert [name for name in metrics if name not in samples] == []
    for name, labels in metrics.items():
        assert labels <= samples[name] | OF_PROMETHEUS
    assert grouped(expression) <= OF_PROMETHEUS.union(*(samples[name] for name in metrics))


@pytest.mark.parametrize(
    ("expression", "found"),
    [
        ("sum by (job) (rate(a_total{b=\"c\", d=~'e'}[5m])) / f:g > 1", {"a_total": {"b", "d"}, "f:g": set()}),
        ("histogram_quantile(0.9, x_bucket) unless y", {"x_bucket": set(), "y": set()}),
    ],
)
def test_the_reading_of_expressions(expression: str, found: dict[str, set[str]]) -> None:
    assert used(expression) == found


def test_every_metric_of_tickwork_is_on_the_dashboard_or_is_the_same_as_one_that_is() -> None:
    shown = {name for panel in panels() for target in panel["targets"] for name in used(target["expr"])}
    shown |= {re.sub("_(bucket|sum|count)$", "", name) for name in shown}
    twins = {"scheduler_info", "task_failure_rate", "scheduler_worker_count"}
    assert {row.name for row in TABLE} - shown == twins


def test_the_panels_have_ids_and_places_of_their_own() -> None:
    every = json.loads(DASHBOARD.read_text())["panels"]
    assert len({panel["id"] for panel in every}) == len(every)
    cells = [
        (x, y)
        for panel in every
        for x in range(panel["gridPos"]["x"], panel["gridPos"]["x"] + panel["gridPos"]["w"])
        for y in range(panel["gridPos"]["y"], panel["gridPos"]["y"] + panel["gridPos"]["h"])
    ]
    assert len(set(cells)) == len(cells)


def test_every_alert_says_what_is_wrong_and_how_bad_that_is() -> None:
    for rule in (rule for rule in rules() if "alert" in rule):
        assert rule["annotations"]["summary"]
        assert rule["labels"]["severity"] in ("info", "warning", "critical")


@pytest.mark.skipif(shutil.which("promtool") is None, reason="promtool is not here")
def test_prometheus_accepts_the_rules() -> None:
    ended = subprocess.run(["promtool", "check", "rules", str(RULES)], capture_output=True, text=True, timeout=60)
    assert ended.returncode == 0, ended.stdout + ended.stderr


@pytest.mark.skipif(shutil.which("promtool") is None, reason="promtool is not here")
def test_prometheus_accepts_the_page() -> None:
    page = metrics_of().render()
    ended = subprocess.run(["promtool", "check", "metrics"], input=page, capture_output=True, timeout=60)
    complaints = ended.stderr.decode()
    assert "error while linting" not in complaints
    assert ended.returncode in (0, 3), complaints  # 3 is a remark on style, such as a label with the name `type`
