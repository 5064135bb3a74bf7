"""A process that has used a scheduler and then forks: the child's next call opens anew, and nobody is disturbed."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import urllib.request

import pytest

from tests.integration.apps import ROOT
from tests.integration.child_forks import CASES
from tickwork import Scheduler

NOT_FOR_FILES = {"connections", "own_copy"}
pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="nothing forks there")


def run(case: str, url: str) -> None:
    warnings = ("-W", "ignore::DeprecationWarning")  # Python 3.12 and later advise against forks with threads
    shown = subprocess.run(
        [sys.executable, *warnings, "-m", "tests.integration.child_forks", case, url],
        capture_output=True, text=True, timeout=100, cwd=ROOT, check=False,
    )  # fmt: skip
    assert shown.returncode == 0, shown.stdout + shown.stderr
    assert "was destroyed" not in shown.stderr
    assert "Traceback" not in shown.stderr


@pytest.mark.parametrize("case", sorted(CASES.keys() - NOT_FOR_FILES))
def test_a_fork_after_use(case: str, file_url: str) -> None:
    run(case, file_url)


def test_a_child_does_not_hold_its_parents_connections(redis_url: str) -> None:
    run("connections", redis_url)


def test_in_memory_each_process_has_its_own_tasks() -> None:
    run("own_copy", "memory://")


def test_a_preforking_web_server(file_url: str) -> None:
    """gunicorn imports the application in its master and forks the workers from it."""
    pytest.importorskip("gunicorn")
    server = subprocess.Popen(
        [
            sys.executable, "-m", "gunicorn", "--preload", "--workers", "2", "--bind", "127.0.0.1:0",
            "--timeout", "20", "--graceful-timeout", "5", "tests.integration.child_web:web",
        ],
        cwd=ROOT, env={**os.environ, "CHILD_WEB_STORE": file_url}, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert server.stderr is not None
    try:
        log = iter(server.stderr.readline, "")
        found = next(match for line in log if (match := re.search(r"Listening at: (http://\S+)", line)))
        answers = [_get(f"{found[1]}/{number}") for number in range(20)]
    finally:
        server.terminate()
        rest = server.stderr.read()
        server.wait(20)
        server.stderr.close()
    assert {answer.split()[1] for answer in answers} == {"ready"}
    assert str(server.pid) not in {answer.split()[0] for answer in answers}
    assert "Traceback" not in rest
    assert "was destroyed" not in rest
    app = Scheduler(file_url, namespace="web")
    assert app.sync.status().tasks == {"ready": 21}
    assert app.sync.audit() == []
    app.sync.close()


def _get(address: str) -> str:
    with urllib.request.urlopen(address, timeout=30) as reply:
        text: str = reply.read().decode()
    return text
