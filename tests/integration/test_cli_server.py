"""`tickwork server`, `tokens` and `audit`, and the audit entries of the commands that change something."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.integration.test_cli import data, good, own_folder, run
from tests.support.redis_store import empty_redis

__all__ = ["own_folder"]

TICKWORK = [sys.executable, "-m", "tickwork"]


@pytest.fixture(autouse=True, params=["sqlite", "redis"])
def store_url(request: pytest.FixtureRequest, own_folder: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    url = "sqlite:///tickwork.db" if request.param == "sqlite" else empty_redis()
    monkeypatch.setenv("TICKWORK_STORE", url)
    return url


@contextmanager
def serving(*args: str) -> Iterator[str]:
    """A real server; answers its address, and is stopped by Ctrl-C."""
    command = [*TICKWORK, "--json", "server", "--port", "0", *args]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        lines: list[str] = []
        while not lines or lines[-1] not in ("}\n", ""):
            lines.append(process.stdout.readline())
        assert lines[-1] == "}\n", process.stderr and process.stderr.read()
        try:
            yield json.loads("".join(lines))["url"]
        except BaseException:
            process.kill()
            raise
        process.send_signal(signal.SIGINT)
        assert process.wait(20) == 0


def ask(method: str, url: str, body: Any = None, token: str | None = None) -> tuple[int, Any]:
    headers = {"content-type": "application/json"}
    if token is not None:
        headers["authorization"] = f"Bearer {token}"
    sent = None if body is None else json.dumps(body).encode()
    try:
        with urllib.request.urlopen(urllib.request.Request(url, sent, headers, method=method), timeout=20) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as error:
        return error.code, json.load(error)


def test_a_store_is_served_without_code() -> None:
    with serving() as url:
        assert ask("POST", f"{url}/api/v1/tasks", {"type": "mail", "payload": 1, "id": "m1"})[0] == 201
        status, problem = ask("POST", f"{url}/api/v1/tasks", {"type": "mail", "payload": 1, "id": "m1"})
        assert (status, problem["existing_id"]) == (409, "m1")
        assert ask("GET", f"{url}/api/v1/tasks/m1")[1]["status"] == "ready"
        assert ask("GET", f"{url}/api/v1/tasks/m2")[0] == 404
        assert ask("GET", f"{url}/api/v1/openapi.json")[1]["openapi"].startswith("3.1")
        assert ask("GET", f"{url}/health")[0] == 200
        with urllib.request.urlopen(url) as page:
            assert b'<base href="/">' in page.read()
        with urllib.request.urlopen(f"{url}/metrics") as page:
            assert b'scheduler_queue_size{queue="default"} 1.0' in page.read()
    assert data("task", "m1")["type"] == "mail"


def test_the_store_is_named_as_an_argument(store_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TICKWORK_STORE")
    with serving(store_url) as url:
        assert ask("GET", f"{url}/api/v1/counts")[0] == 200
    assert "name the store once" in run("server", store_url, "--store", store_url).stderr


def test_tokens_are_shown_once_and_can_be_revoked() -> None:
    made = data("tokens", "create", "ines", "--role", "operator", "--expires", "90d")
    token, token_id = made["token"], made["id"]
    (listed,) = data("tokens", "list")["tokens"]
    assert (listed["name"], listed["role"], listed["namespaces"]) == ("ines", "operator", ["*"])
    assert token.rpartition("_")[2] not in json.dumps(listed)
    with serving("--tokens") as url:
        assert ask("GET", f"{url}/api/v1/counts")[1]["code"] == "not_signed_in"
        assert ask("GET", f"{url}/api/v1/counts", token=token)[0] == 200
        assert ask("GET", f"{url}/api/v1/tokens", token=token)[1]["code"] == "not_allowed"
    good("tokens", "revoke", token_id)
    assert data("tokens", "list")["tokens"] == []
    with serving("--tokens") as url:
        assert ask("GET", f"{url}/api/v1/counts", token=token)[1]["code"] == "bad_token"


def test_nobody_listens_for_others_without_a_token() -> None:
    refused = run("server", "--host", "0.0.0.0", "--port", "0")
    assert refused.exit_code == 2
    assert "tickwork tokens create NAME --role admin" in refused.stderr


def test_two_on_one_port() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        refused = run("server", "--port", str(taken.getsockname()[1]))
    assert refused.exit_code == 2
    assert "is taken already" in refused.stderr


@pytest.mark.parametrize(
    ("command", "what", "target"),
    [
        (["queues", "pause", "mails", "--note", "database move"], "paused a queue", "mails"),
        (["queues", "pause", "--type", "mail"], "paused a type", "mail"),
        (["cancel", "later"], "cancelled by id", "later"),
        (["run-now", "later"], "sent to run by id", "later"),
        (["reschedule", "later", "--in", "2h"], "rescheduled a task", "later"),
        (["cancel", "--type", "add", "--yes"], "cancelled by a filter", "tasks"),
        (["schedules", "put", "nightly", "add", "--cron", "0 3 * * *"], "put a schedule", "nightly"),
        (["limits", "set", "type:mail", "--rate", "1/s"], "set a limit", "type:mail"),
        (["breakers", "open", "type:mail"], "opened a breaker", "type:mail"),
        (["switches", "off", "type:mail"], "switched off", "type:mail"),
        (["index", "on"], "switched the index", "on"),
        (["tokens", "create", "ines", "--role", "viewer"], "made a token", "ines"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else None,
)
def test_a_command_that_changes_something_is_in_the_audit_log(command: list[str], what: str, target: str) -> None:
    good("submit", "add", "--delay", "1h", "--id", "later")
    good(*command)
    (entry,) = data("audit")["entries"]
    assert (entry["what"], entry["target"], entry["result"]) == (what, target, "done")
    assert entry["via"] == "command line"
    assert "@" in entry["who"]
    (submitted,) = data("audit", "--journal", "submits")["entries"]
    assert submitted["what"] == "submitted a task"


def test_looking_leaves_no_entry() -> None:
    good("submit", "add", "--delay", "1h")
    for command in (["tasks"], ["queues"], ["schedules"], ["cancel", "--type", "add", "--dry-run"]):
        good(*command)
    assert data("audit")["entries"] == []
    assert good("audit") == "Nothing is in this journal.\n"
