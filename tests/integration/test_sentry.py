"""Reports to Sentry: what its SDK sends, by its own transport, to an endpoint on this host."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any

import pytest

from tests.support.sentry_endpoint import Endpoint, sentry_endpoint
from tickwork import ConfigError, Scheduler
from tickwork.contrib import sentry

PAYLOAD = "a confidential text"
FINAL = {"charge", "ship", "slow", "render", "told_itself", "refuse", "asks", "wants_number"}


class Sent:
    """What one run of the program has sent."""

    def __init__(self, endpoint: Endpoint, capture: str, payload: bool) -> None:
        environ = {**os.environ, "SENTRY_DSN": endpoint.dsn, "CAPTURE": capture, "PAYLOAD": "yes" if payload else ""}
        command = [sys.executable, "-m", "tests.integration.program_sentry"]
        ended = subprocess.run(command, env=environ, capture_output=True, text=True, timeout=110)
        assert ended.returncode == 0, ended.stderr
        self.told = json.loads(ended.stdout.splitlines()[-1])
        self.events, self.transactions = endpoint.events, endpoint.transactions

    def of(self, type: str) -> list[dict[str, Any]]:
        return [event for event in self.events if event["tags"]["task.type"] == type]

    def one(self, type: str) -> dict[str, Any]:
        (event,) = self.of(type)
        return event


@pytest.fixture(scope="module")
def final() -> Sent:
    with sentry_endpoint() as endpoint:
        return Sent(endpoint, "final", payload=False)


def test_each_task_that_failed_for_good_is_reported_once(final: Sent) -> None:
    assert sorted(event["tags"]["task.type"] for event in final.events) == sorted(FINAL)
    assert final.one("charge")["tags"]["task.attempt"] in ("3", 3)
    assert final.one("asks")["tags"]["task.attempt"] in ("2", 2)


def test_a_report_says_which_task_it_was(final: Sent) -> None:
    event = final.one("charge")
    assert event["tags"]["task.id"] == final.told["ids"]["charge"]
    assert event["tags"]["task.queue"] == "default"
    assert event["transaction"] == "charge"
    assert event["contexts"]["task"]["max_retry"] == 2
    (error,) = event["exception"]["values"]
    assert (error["type"], error["value"]) == ("ConnectionError", "no answer")
    assert error["mechanism"] == {"type": "tickwork", "handled": False}
    assert error["stacktrace"]["frames"][-1]["function"] == "charge"


def test_what_the_handler_has_set_is_in_the_report(final: Sent) -> None:
    charged, shipped = final.one("charge"), final.one("ship")
    assert (charged["tags"]["shop"], shipped["tags"]["thread"]) == ("eu", "yes")
    assert "thread" not in charged["tags"]
    crumbs = [crumb["message"] for crumb in charged["breadcrumbs"]["values"]]
    assert crumbs.count("asked for 19 letters") == 1


def test_errors_of_other_kinds_are_told_too(final: Sent) -> None:
    timed_out = final.one("slow")
    assert (timed_out["message"], timed_out["level"]) == ("timed out after 0.05 s", "error")
    assert timed_out["fingerprint"] == ["tickwork", "slow", "timed out after 0.05 s"]
    assert final.one("render")["exception"]["values"][-1]["value"].startswith("RuntimeError: no such template")
    assert final.one("refuse")["exception"]["values"][-1]["value"] == "refused"
    assert final.one("wants_number")["message"] == "the payload does not fit the handler"


def test_no_payload_is_sent(final: Sent) -> None:
    sent = json.dumps([final.events, final.transactions])
    assert "refused" in sent
    assert PAYLOAD not in sent


def test_runs_are_transactions_of_the_trace_of_their_submit(final: Sent) -> None:
    runs = [each for each in final.transactions if each["contexts"]["trace"]["op"] == "queue.process"]
    by_type: dict[str, list[dict[str, Any]]] = {}
    for each in runs:
        by_type.setdefault(each["transaction"], []).append(each["contexts"]["trace"])
    assert {kind: len(found) for kind, found in by_type.items()} == {
        **dict.fromkeys(FINAL, 1),
        "charge": 3,
        "asks": 2,
        "later": 1,
        "good": 1,
    }
    assert {each["trace_id"] for kind in ("charge", "ship", "good") for each in by_type[kind]} == {final.told["trace"]}
    assert by_type["asks"][0]["trace_id"] != final.told["trace"]
    statuses = {kind: found[0]["status"] for kind, found in by_type.items()}
    assert statuses["good"] == statuses["later"] == statuses["asks"] == "ok"
    assert (statuses["charge"], statuses["slow"]) == ("internal_error", "deadline_exceeded")
    (request,) = [each for each in final.transactions if each["transaction"] == "POST /orders"]
    published = {span["span_id"]: span["description"] for span in request["spans"] if span["op"] == "queue.publish"}
    assert published[by_type["charge"][0]["parent_span_id"]] == "charge"
    assert final.one("charge")["contexts"]["trace"]["trace_id"] == final.told["trace"]
    good = by_type["good"][0]["data"]
    assert good["messaging.message.id"] == final.told["ids"]["good"]
    assert (good["messaging.destination.name"], good["messaging.message.retry.count"]) == ("default", 0)


def test_each_attempt_may_be_reported_and_the_payload_too() -> None:
    with sentry_endpoint() as endpoint:
        sent = Sent(endpoint, "every", payload=True)
    assert sorted(event["tags"]["task.type"] for event in sent.events) == sorted([*FINAL, "charge", "charge"])
    assert [event["contexts"]["task"]["attempt"] for event in sent.of("charge")] == [1, 2, 3]
    assert sent.one("ship")["exception"]["values"][-1]["stacktrace"]["frames"][-1]["vars"] == {"order": repr(PAYLOAD)}
    assert sent.one("ship")["contexts"]["task"]["payload"] == {"order": PAYLOAD}


def test_a_wrong_word_is_refused() -> None:
    with pytest.raises(ConfigError, match="capture must be final or every, not 'all'"):
        sentry.report_to_sentry(Scheduler("memory://"), capture="all")  # type: ignore[arg-type]


def test_a_missing_package_is_named() -> None:
    code = "import sys; sys.modules['sentry_sdk'] = None; import tickwork.contrib.sentry"
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=100)
    assert 'pip install "tickwork[sentry]"' in shown.stderr
