"""What the status of a gRPC call means for an attempt."""

from __future__ import annotations

import pytest

from tickwork import Abort, ExecutorError, Snooze
from tickwork.executors.grpc_answers import of_status


@pytest.mark.parametrize(
    ("trailers", "least", "most"),
    [
        ([], 5, 6),
        ([("retry-after", "30")], 30, 36),
        ([("retry-after", "2.5")], 2.5, 3),
        ([("retry-after", "0")], 1, 1.2),
        ([("retry-after", "999999999")], 3600, 4320),
        ([("retry-after", "9" * 400)], 5, 6),
        ([("retry-after", "soon"), ("grpc-retry-pushback-ms", "4000")], 4, 4.8),
        ([("retry-after", b"30")], 5, 6),
    ],
)
def test_how_long_a_task_is_put_off(trailers: list[tuple[str, str | bytes]], least: float, most: float) -> None:
    verdict = of_status("there", "RESOURCE_EXHAUSTED", "full", trailers)
    assert isinstance(verdict, Snooze)
    assert isinstance(verdict.until, float)
    assert least <= verdict.until <= most


def test_unavailable_is_a_failure_unless_it_says_when() -> None:
    assert isinstance(of_status("there", "UNAVAILABLE", "", []), ExecutorError)
    assert isinstance(of_status("there", "UNAVAILABLE", "", [("retry-after", "1")]), Snooze)


@pytest.mark.parametrize(
    "details", ["CLIENT: Received message larger than max (9 vs. 8)", "Decompressed message larger than max"]
)
def test_a_message_over_the_bound_is_not_put_off(details: str) -> None:
    assert isinstance(of_status("there", "RESOURCE_EXHAUSTED", details, []), Abort)


def test_what_a_service_says_is_one_clean_line() -> None:
    verdict = of_status("there", "NOT_FOUND", "no\r\n\x1b[31morder\u202e " + "x" * 10_000, [])
    text = str(verdict)
    assert text.startswith("there: NOT_FOUND: no [31morder xxx")
    assert text.isprintable()
    assert len(text) < 600
