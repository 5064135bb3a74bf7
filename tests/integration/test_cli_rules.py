"""`tickwork limits`, `breakers` and `switches`: what they change, show and refuse."""

from __future__ import annotations

import asyncio
import getpass
import re
import socket
from pathlib import Path

import pytest

from tests.integration.test_cli import data, good, own_folder, run
from tests.support.redis_store import empty_redis
from tickwork import Scheduler
from tickwork.model.gates import MARK, breaker_gate, limit_gate
from tickwork.model.members import Worker
from tickwork.store.contract import Ask, Gate, Left, Store

__all__ = ["own_folder"]

ME = f"{getpass.getuser()}@{socket.gethostname()}"


@pytest.fixture(autouse=True, params=["sqlite", "redis"])
def store_url(request: pytest.FixtureRequest, own_folder: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    url = "sqlite:///tickwork.db" if request.param == "sqlite" else empty_redis()
    monkeypatch.setenv("TICKWORK_STORE", url)
    good("submit", "add", "--delay", "1h")  # so that the namespace is there
    return url


async def opened(url: str) -> tuple[Scheduler, Store]:
    app = Scheduler(url)
    return app, await app._open()


def wait_at(url: str, gate: Gate, *ids: str, failed: str = "") -> None:
    """Let tasks ask at a gate, as workers do; `failed` is let through and fails."""

    async def work() -> None:
        app, store = await opened(url)
        if failed:
            await store.gates.enter([Ask(failed, (gate,))])
            await store.gates.leave([Left(failed, (gate.name,), "failed")])
        await store.gates.enter([Ask(each, (gate,)) for each in ids])
        await app.shutdown()

    asyncio.run(work())


def test_limits(store_url: str) -> None:
    assert good("limits") == "no limits\n"
    assert good("limits", "set", "type:mail", "--rate", "100/m", "--burst", "7", "--note", "their bill") == (
        "type:mail  100/m, burst 7\n"
    )
    assert good("limits", "set", "queue:orders", "--concurrency", "1", "--by", "sam") == "queue:orders  1 at a time\n"
    replaced = good("limits", "set", "type:mail", "--concurrency", "2")
    assert replaced == "type:mail  2 at a time instead of 100/m, burst 7\n"
    good("limits", "set", "type:mail", "--rate", "100/m", "--burst", "7", "--note", "their bill")
    wait_at(store_url, Gate(limit_gate("queue:orders"), slots=1), "a", "b", "c")
    lines = good("limits", "list").splitlines()
    assert lines[0].split() == ["OF", "LIMIT", "LEFT", "RUNNING", "WAITING", "SET", "BY"]
    assert lines[1].split() == ["queue:orders", "1", "at", "a", "time", "1", "2", "by", "hand", "sam"]
    assert lines[2].split()[:4] == ["type:mail", "100/m,", "burst", "7"]
    assert lines[2].endswith(f"{ME}: their bill")
    orders, mail = data("limits")["limits"]
    assert (orders["of"], orders["concurrency"], orders["running"], orders["waiting"]) == ("queue:orders", 1, 1, 2)
    assert (mail["rate"], mail["burst"], mail["origin"], mail["by"]) == (100 / 60, 7, "hand", ME)
    assert good("limits", "set", "type:mail", "--none") == "type:mail  no limit instead of 100/m, burst 7\n"
    assert "no limit" in good("limits")
    assert data("limits", "remove", "type:mail") == {"of": "type:mail", "done": "removed"}
    assert good("limits", "remove", "type:mail") == "type:mail  was not set by hand\n"
    told = [each["kind"] for each in data("events")["events"] if each["kind"].startswith("limit")]
    assert told == ["limit.set"] * 5 + ["limit.removed"]


def test_keys_that_wait_are_listed(store_url: str) -> None:
    shown = data("limits", "set", "type:mail", "--concurrency", "1", "--per-key")
    assert (shown["done"], shown["per"], shown["concurrency"], shown["by"]) == ("set", "key", 1, ME)
    for key, ids in {"acme": "abc", "zoe": "xy", "": "pq"}.items():
        wait_at(store_url, Gate(limit_gate("type:mail", key), slots=1), *ids)
    assert good("limits").splitlines()[-1] == "type:mail: most wait for key acme 2, (none) 1, zoe 1"
    assert data("limits")["limits"][0]["keys"] == {"acme": 2, "": 1, "zoe": 1}


def test_breakers(store_url: str) -> None:
    assert good("breakers") == "all breakers are closed\n"
    assert good("breakers", "open", "type:charge", "--note", "bank down", "--for", "2h") == "type:charge  opened\n"
    gate = Gate(breaker_gate("target:http/billing"), failures=1, timeout=3_600_000)
    wait_at(store_url, gate, "b", failed="a")
    billing, charge = [line.split() for line in good("breakers", "list").splitlines()[1:]]
    assert billing[:3] == ["target:http/billing", "open", "1"]
    assert charge[:4] == ["type:charge", "open", "0", "in"]
    assert charge[-3:] == [f"{ME}:", "bank", "down"]
    of_failures, by_hand = data("breakers")["breakers"]
    assert (of_failures["state"], of_failures["waiting"], of_failures["by_hand"]) == ("open", 1, False)
    assert (by_hand["of"], by_hand["by_hand"], by_hand["note"]) == ("type:charge", True, "bank down")
    assert good("breakers", "close", "type:charge") == "type:charge  closed\n"
    assert good("breakers", "close", "target:http/billing") == "target:http/billing  closed\n"
    assert data("breakers", "close", "type:charge") == {"of": "type:charge", "done": "was not open"}
    assert data("breakers") == {"breakers": []}


def test_switches() -> None:
    assert good("switches") == "nothing is switched off\n"
    assert good("switches", "off", "tag:customer=acme", "--note", "wrong prices", "--by", "sam") == (
        "tag:customer=acme  switched off\n"
    )
    assert data("switches", "off", "key:7", "--until", "2100-01-01T00:00", "--timezone", "UTC")["by"] == ME
    key, tag = data("switches")["switches"]
    assert (key["of"], key["until"], key["by"]) == ("key:7", "2100-01-01T00:00:00Z", ME)
    assert (tag["of"], tag["until"], tag["by"], tag["note"]) == ("tag:customer=acme", None, "sam", "wrong prices")
    lines = good("switches", "list").splitlines()
    assert lines[0].split() == ["OFF", "SINCE", "UNTIL", "WAITING", "BY", "NOTE"]
    assert lines[2].split()[-3:] == ["sam", "wrong", "prices"]
    assert good("switches", "on", "tag:customer=acme") == "tag:customer=acme  switched on\n"
    assert good("switches", "on", "tag:customer=acme") == "tag:customer=acme  was not off\n"


@pytest.mark.parametrize(
    ("line", "text"),
    [
        ("limits set type:mail", "give --rate, --concurrency or both; or --none"),
        ("limits set type:mail --none --rate 1", "--none cannot be given together with --rate or --concurrency"),
        ("limits set type:mail --rate fast", "a rate must be"),
        ("limits set mail --rate 1", "a limit must be type:NAME or queue:NAME"),
        ("limits set type:mail --concurrency 1 --burst 2", "burst belongs to a rate"),
        ("limits remove mail", "a limit must be"),
        ("breakers open mail", "a breaker must be"),
        ("breakers open type:mail --for 1h --until 2100-01-01T00:00Z", "say the end with --until or with --for"),
        ("switches off mail", "a switch must be"),
        ("switches off type:mail --until noon", "--until"),
        ("switches off type:mail --until 2001-01-01T00:00Z", "--until: 2001-01-01T00:00Z is over already"),
        ("switches off type:mail --for 0s", "--for must be longer than 0"),
        ("breakers open type:mail --for 99999999999999d", "--for must be longer than 0, and no longer than 10 years"),
        ("switches on mail", "a switch must be"),
    ],
)
def test_mistakes_have_status_2(line: str, text: str) -> None:
    refused = run(*line.split())
    assert (refused.exit_code, text in refused.stderr) == (2, True), refused.stderr
    assert (data("limits"), data("switches")) == ({"limits": []}, {"switches": []})


def test_rules_of_another_version_have_status_3(store_url: str) -> None:
    async def write() -> None:
        app, store = await opened(store_url)
        await store.marks.swap(MARK, None, "[]")
        await app.shutdown()

    asyncio.run(write())
    for line in ("limits", "breakers", "switches", "switches off type:mail"):
        refused = run(*line.split())
        assert (refused.exit_code, "another version of Tickwork" in refused.stderr) == (3, True), refused.output


def test_somebody_without_a_name(monkeypatch: pytest.MonkeyPatch) -> None:
    def nobody() -> str:
        raise KeyError("uid not found: 1234")

    monkeypatch.setattr(getpass, "getuser", nobody)
    assert data("switches", "off", "type:mail")["by"] == f"unknown@{socket.gethostname()}"


def test_a_type_that_no_worker_knows_is_told(store_url: str) -> None:
    async def work() -> None:
        app, store = await opened(store_url)
        worker = Worker(id="w1", node="n", host="h", queues=("default",), task_types=("mail",), capacity=1)
        await store.members.beat(worker, 30_000)
        await app.shutdown()

    asyncio.run(work())
    asked = run("switches", "off", "type:mial")
    assert (asked.exit_code, asked.stderr) == (0, "note: no worker that is up knows type mial; did you mean 'mail'?\n")
    assert run("switches", "off", "type:mail").stderr == run("limits", "set", "queue:x", "--rate", "1").stderr == ""


def test_the_doctor_tells_what_was_set_by_hand(store_url: str) -> None:
    good("switches", "off", "key:acme", "--note", "wrong prices", "--by", "sam")
    good("breakers", "open", "type:mail", "--by", "sam")
    good("limits", "set", "queue:orders", "--concurrency", "1", "--by", "sam")
    told = run("doctor").stdout
    assert re.search(r"key:acme has been switched off for \S+ by sam: wrong prices\n", told)
    assert re.search(r"breaker type:mail was opened by hand and has been open for \S+ by sam\n", told)
    assert re.search(r"queue:orders has been limited by hand for \S+ \(1 at a time\) by sam\n", told)
