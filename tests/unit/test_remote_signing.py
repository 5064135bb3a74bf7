"""Signatures of calls, answers and reports."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tickwork.remote.signing import (
    SIGNATURE,
    TOLERANCE,
    BadSignature,
    Keys,
    answer_headers,
    check_request,
    is_signed_answer,
    request_headers,
)

SECRET = bytes(range(32)).hex()
KEYS = Keys.of(SECRET)
OTHER = Keys.of("ff" * 32)
BODY = b'{"id":"1"}'
NOW = 1_800_000_000


def headers(**changed: str) -> dict[str, str]:
    given = request_headers(KEYS, "POST", "/execute", BODY, worker_id="w1", request_id="r1", time=NOW)
    return {**given, **changed}


def check(given: dict[str, str], *, keys: tuple[Keys, ...] = (KEYS,), **changed: Any) -> None:
    wanted: dict[str, Any] = {"method": "POST", "target": "/execute", "body": BODY, "now": float(NOW), **changed}
    check_request(keys, headers=given, **wanted)


def test_the_published_examples() -> None:
    """Workers in other languages are tested with these; they never change within a version."""
    assert KEYS.id == "2d0cbdc6efb1275c"
    assert KEYS.call.hex() == "20bacae238646e393aa314feb827ed6d4da2ab1251724a2f5dd841886f574cee"
    assert KEYS.answer.hex() == "170ac5c48f695e88dd559f58dadf6b250a8d54d0c2b5e86a38017d7daf7bf278"
    assert KEYS.report.hex() == "0e2d61b1c7c7eb1a2e4ce3f7eb1744919ce2a1102b28ed42067a214c62d2300e"
    assert headers()[SIGNATURE] == "v1=f695a9443a55a5d4a1564d11e28e169babf3155d9342c9a01e30f6bf59b788f1"
    answer = answer_headers(KEYS, 200, b'{"status":"completed"}', worker_id="w1", request_id="r1")
    assert answer[SIGNATURE] == "v1=89e48b18a12c7b52cbc9921cffdf6585a49aaf3c3f9f80293ce680c438e5a9f5"
    beat = request_headers(
        KEYS, "POST", "/workers/w1/heartbeat", b"{}", worker_id="w1", request_id="r2", time=NOW, purpose="report"
    )
    assert beat[SIGNATURE] == "v1=b87cf69d4bdc123836757c371e7852579f655d58d8618b58c649df83a267dc40"


def test_a_request_that_is_signed_is_taken_with_either_secret() -> None:
    check(headers())
    check(headers(), keys=(OTHER, KEYS))
    with pytest.raises(BadSignature, match="wrong"):
        check(headers(), keys=(OTHER,))


@pytest.mark.parametrize(
    "changed",
    [
        {"method": "PUT"},
        {"target": "/cancel"},
        {"target": "/execute?x=1"},
        {"body": BODY + b" "},
        {"body": b""},
    ],
)
def test_a_signature_covers_method_path_and_body(changed: dict[str, Any]) -> None:
    with pytest.raises(BadSignature, match="wrong"):
        check(headers(), **changed)


@pytest.mark.parametrize(
    "changed",
    [
        {"tickwork-worker": "w2"},
        {"tickwork-key": OTHER.id},
        {"tickwork-key": ""},
        {"tickwork-time": str(NOW + 1)},
        {"idempotency-key": "r2"},
        {SIGNATURE: "v1=" + "0" * 64},
        {SIGNATURE: "v2=" + headers()[SIGNATURE][3:]},
        {SIGNATURE: ""},
        {SIGNATURE: "v1=\udcff"},
    ],
)
def test_a_signature_covers_every_header_of_it(changed: dict[str, str]) -> None:
    with pytest.raises(BadSignature, match="wrong"):
        check(headers(**changed), keys=(KEYS, OTHER))


@pytest.mark.parametrize(
    "changed",
    [
        {"tickwork-worker": "w1\n"},
        {"tickwork-worker": ""},
        {"tickwork-time": "now"},
        {"tickwork-time": "-1"},
        {"tickwork-time": "9" * 5000},
        {"idempotency-key": ""},
        {"idempotency-key": "r" * 200},
    ],
)
def test_headers_that_cannot_be_of_a_signature(changed: dict[str, str]) -> None:
    with pytest.raises(BadSignature, match="not signed"):
        check(headers(**changed))


@pytest.mark.parametrize("now", [NOW - TOLERANCE - 1, NOW + TOLERANCE + 1])
def test_a_request_of_another_time_is_refused(now: int) -> None:
    check(headers(), now=float(NOW + TOLERANCE))
    check(headers(), now=float(NOW - TOLERANCE))
    with pytest.raises(BadSignature, match="another time"):
        check(headers(), now=float(now))


def test_a_key_serves_one_purpose_only() -> None:
    assert len({KEYS.call, KEYS.answer, KEYS.report, KEYS.reply}) == 4
    of_report = request_headers(
        KEYS, "POST", "/execute", BODY, worker_id="w1", request_id="r1", time=NOW, purpose="report"
    )
    with pytest.raises(BadSignature):
        check(of_report)


def test_an_answer_fits_its_own_request_only() -> None:
    given = answer_headers(KEYS, 200, BODY, worker_id="w1", request_id="r1")
    assert is_signed_answer(KEYS, 200, given, BODY, worker_id="w1", request_id="r1")
    assert not is_signed_answer(KEYS, 200, given, BODY, worker_id="w1", request_id="r2")
    assert not is_signed_answer(KEYS, 200, given, BODY, worker_id="w2", request_id="r1")
    assert not is_signed_answer(KEYS, 202, given, BODY, worker_id="w1", request_id="r1")
    assert not is_signed_answer(KEYS, 200, given, b"{}", worker_id="w1", request_id="r1")
    assert not is_signed_answer(OTHER, 200, given, BODY, worker_id="w1", request_id="r1")
    assert not is_signed_answer(KEYS, 200, {}, BODY, worker_id="w1", request_id="r1")


@pytest.mark.parametrize("secret", ["", "00" * 31, "zz" * 32, b"short", "00" * 33])
def test_what_is_no_secret_is_refused_and_not_repeated(secret: str | bytes) -> None:
    with pytest.raises(ValueError, match="the secret of a worker is 32 bytes") as caught:
        Keys.of(secret)
    assert not secret or str(secret) not in str(caught.value)


def test_keys_do_not_show_themselves() -> None:
    assert Keys.of(SECRET.upper() + "\n") == KEYS == Keys.of(bytes(range(32)))
    assert KEYS.call.hex() not in repr(KEYS)
    assert repr(KEYS) == f"Keys(id={KEYS.id!r})"


def test_the_page_of_the_protocol_has_these_examples() -> None:
    page = (Path(__file__).parents[2] / "docs" / "remote-workers.md").read_text()
    call = headers()[SIGNATURE]
    answer = answer_headers(KEYS, 200, b'{"status":"completed"}', worker_id="w1", request_id="r1")[SIGNATURE]
    for value in (SECRET, KEYS.id, KEYS.call.hex(), KEYS.answer.hex(), KEYS.report.hex(), call, answer):
        assert f"`{value}`" in page
