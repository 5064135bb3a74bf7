"""`tickwork webhooks`, against a real receiver."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from tickwork import Scheduler
from tickwork.cli import commands
from tickwork.webhooks.events import queue_of


class Handler(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["content-length"]))
        status = 204 if self.path == "/good" else 500
        self.send_response(status)
        self.send_header("content-length", "0" if status == 204 else "9")
        self.end_headers()
        if status == 500:
            self.wfile.write(b"\x1b[2Jbroken"[:9])

    def log_message(self, *args: object) -> None:
        pass


@pytest.fixture
def port() -> Iterator[int]:
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server.server_port
        server.shutdown()


@pytest.fixture
def file(tmp_path: Path, port: int) -> Path:
    (tmp_path / "secret").write_bytes(bytes(range(64)))
    path = tmp_path / "hooks.yaml"
    hook = "  - {{name: {0}, url: 'http://127.0.0.1:{1}/{0}', events: [task.died]}}\n"
    hooks = "".join(hook.format(name, port) for name in ("good", "bad"))
    path.write_text(
        f"store: sqlite:///{tmp_path}/tick.db\nallow_addresses: ['http://127.0.0.1:{port}']\n"
        f"secret_file: {tmp_path}/secret\nwebhooks:\n{hooks}"
    )
    app = Scheduler(config=path)
    app.sync.submit("job")
    app.sync.close()
    return path


def run(file: Path, *args: str) -> Result:
    return CliRunner().invoke(commands, ["--config", str(file), *args], catch_exceptions=False)


def test_a_test_event_is_sent_and_its_answer_printed(file: Path) -> None:
    taken = run(file, "webhooks", "test", "good")
    assert (taken.exit_code, taken.output) == (0, "webhook good has taken the test event: 204\n")
    refused = run(file, "webhooks", "test", "bad")
    assert refused.exit_code == 1
    assert "webhook bad has refused the test event: 500" in refused.output
    assert "\x1b" not in refused.output
    assert json.loads(run(file, "webhooks", "test", "good", "--json").output)["status"] == 204


def test_one_that_is_off_is_listed_told_of_by_doctor_and_switched_on(file: Path) -> None:
    app = Scheduler(config=file)
    app.sync.queues.pause(queue_of("bad"), "it was dead")
    app.sync.close()
    rows = json.loads(run(file, "webhooks", "--json").output)["webhooks"]
    assert [(row["name"], row["enabled"], row["note"]) for row in rows] == [
        ("good", True, ""),
        ("bad", False, "it was dead"),
    ]
    listed = run(file, "webhooks").output
    assert "off" in listed
    assert "/bad" not in listed, "the path of a URL is not shown"
    assert "tickwork webhooks enable bad" in run(file, "doctor").output
    assert run(file, "webhooks", "enable", "bad").output == "webhook bad is on again\n"
    assert run(file, "webhooks", "enable", "bad").output == "webhook bad was on\n"


def test_the_secret_for_the_receiver_is_printed(file: Path) -> None:
    printed = run(file, "webhooks", "secret", "good").output.strip()
    assert printed == Scheduler(config=file).webhooks.secret("good")
    assert printed.startswith("whsec_")


def test_an_unknown_name_is_a_mistake_that_names_the_known(file: Path) -> None:
    with pytest.raises(Exception, match="there is no webhook 'god' in the configuration; known are good, bad"):
        CliRunner().invoke(
            commands, ["--config", str(file), "webhooks", "test", "god"], catch_exceptions=False, standalone_mode=False
        )
