"""What an answer means for the attempt."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest

from tickwork.errors import Abort, ExecutorError, Snooze
from tickwork.outbound.answers import PAUSE, PAUSE_MAX, pause_of, verdict_of
from tickwork.outbound.client import Answer


def answer(status: int, body: bytes = b"", **headers: str) -> Answer:
    return Answer(status, {name.replace("_", "-"): value for name, value in headers.items()}, body)


@pytest.mark.parametrize("status", [400, 401, 403, 404, 405, 409, 410, 413, 422, 499, 101])
def test_a_refusal_is_final(status: int) -> None:
    verdict = verdict_of("endpoint 'x'", answer(status, b"no such order"))
    assert isinstance(verdict, Abort)
    assert str(verdict) == f"endpoint 'x' has answered {status}: 'no such order'"


@pytest.mark.parametrize("status", [500, 501, 502, 504, 599])
def test_a_failure_there_is_a_failed_attempt(status: int) -> None:
    assert isinstance(verdict_of("x", answer(status)), ExecutorError)


@pytest.mark.parametrize("status", [300, 301, 302, 303, 304, 307, 308])
def test_a_redirect_is_final(status: int) -> None:
    verdict = verdict_of("x", answer(status, location="http://169.254.169.254/"))
    assert isinstance(verdict, Abort)
    assert str(verdict) == f"x has answered {status}; redirects are not followed"


@pytest.mark.parametrize("status", [408, 425, 429, 503])
def test_not_now_is_nobodys_fault(status: int) -> None:
    verdict = verdict_of("x", answer(status, retry_after="7"))
    assert isinstance(verdict, Snooze)
    assert isinstance(verdict.until, float)
    assert 7 <= verdict.until <= 7 * 1.2


@pytest.mark.parametrize(
    ("asked", "least"),
    [
        ("", PAUSE), ("0", 1), ("1", 1), ("90", 90), ("999999999", PAUSE_MAX), ("99999999999", PAUSE), ("-5", PAUSE),
        ("soon", PAUSE), ("1.5", PAUSE), ("٣", PAUSE), ("x" * 100_000, PAUSE),
        ("Mon, 01 Jan 1990 00:00:00 GMT", 1), ("Fri, 31 Dec 9999 23:59:59 GMT", PAUSE_MAX),
        ("Mon, 99 Jan 1990 00:00:00 GMT", PAUSE), ("Fri, 31 Dec 9999 23:59:59 -2300", PAUSE_MAX),
    ],
)  # fmt: skip
def test_the_pause_is_what_was_asked_for_within_bounds(asked: str, least: float) -> None:
    pause = pause_of(answer(503, retry_after=asked))
    assert least <= pause <= least * 1.2


def test_the_pause_may_be_a_date() -> None:
    date = format_datetime(datetime.now(UTC) + timedelta(minutes=10), usegmt=True)
    assert 590 <= pause_of(answer(503, retry_after=date)) <= 601 * 1.2


def test_words_of_the_other_side_are_one_quoted_line_of_bounded_length() -> None:
    text = str(verdict_of("x", answer(400, b"\x1b[31mone\r\ntwo\x00\xff'" + b"y" * 1_000_000)))
    assert text.isprintable()
    assert "\x1b" not in text
    assert len(text) < 1000
