"""Every example runs to its end and prints what it should. `...` stands for anything."""

from __future__ import annotations

import doctest
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.docs.pages import ROOT

EXAMPLES = {
    "basic.py --seconds 2": """\
hello tickwork
""",
    "handlers.py": """\
handlers: daily_report, send_email, send_sms
sent to ada@example.org
19 characters to +44 20 7946 0000
daily report with 2 settings
refused: payload for task type 'send_email': Expected `str`, got `int` - at `$.payload.subject`
the server has: ['Welcome -> ada@example.org']
""",
    "periodic_tasks.py --seconds 1": """\
INFO Task registered name=example_task spec="0 * * * * *"
INFO Task registered name=cleanup_task spec="0 0 2 * * *"
INFO Task registered name=stats_task spec="0 0 * * * *"
registered: ['cleanup_task', 'example_task', 'stats_task']
INFO Task scheduler started tasks=3 ...
INFO Task started task=cleanup_task ...
INFO Task scheduler stopped ...
""",
    "custom_tasks.py --seconds 1": """\
INFO Task registered name=my_task spec="0 */5 * * * *"
INFO Task registered name=simple_task spec="0 */10 * * * *"
INFO Task registered name=dependent_task spec="0 */15 * * * *"
INFO Task registered name=dynamic_task spec="0 0 * * * *"
INFO Task registered name=conditional_task spec="0 */10 * * * *"
INFO Task registered name=long_task spec="0 0 3 * * *"
INFO Task scheduler started tasks=6 ...
INFO Task scheduler stopped ...
""",
    "retries.py --seconds 0.05": """\
...own_loop: an answer
...stored_retries: an answer on attempt 3
...own_loop_fails: RuntimeError: task failed after 3 retries
""",
    "processes.py": """\
photo-32x24.pgm 781 bytes
photo-16x12.pgm 205 bytes
sum of primes below 20000: 21171191
in child processes only: True
""",
    "programs.py": """\
words: 4
failed: no such order
failed: timed out after 0.5 s
""",
    "health_service.py --port 0 --seconds 1": """\
{"status": "healthy", "waiting": 0}
""",
    "dependencies.py": """\
report is blocked
extracted 3
total 48
sales: {'eu': 12, 'us': 12, 'asia': 24}
report is cancelled because its step failed
""",
    "measured_store.py": """\
9900
tasks.submit was called once
tasks.finish was called several times
""",
    "web_app.py --seconds 0.1 --port 0": """\
202 {"task": "order-7"}
200 {"task": "order-7", "note": "ordered before"}
400 {"error": "payload for task type 'confirm_order': Expected `int`, got `str` - at `$.order`"}
200 {"task": "order-7", "status": "success", "result": "order 7 confirmed to ada@example.org"}
404 {"error": "no task 'order-8' (never submitted, deleted, or past its retention)"}
""",
}

# Lines whose order among the others is not given, as tasks run side by side.
ALSO = {
    "periodic_tasks.py": [
        "INFO example task is running",
        "INFO cleaned up: 1 keys, 1 files",
        "INFO statistics: 3 users, 120 calls",
    ],
    "custom_tasks.py": [
        "INFO my task ran",
        "INFO simple task ran",
        "INFO the dearest is pear",
        "INFO dynamic task ran, it is set to 0 0 * * * *",
        "INFO Task skipped: condition not met",
        "INFO long task did 1000 items",
    ],
    "retries.py": [
        "WARNING Task retry attempt=1 error='no answer'",
        "WARNING Task retry attempt=3 error='no answer'",
    ],
}


def test_all_examples_are_run() -> None:
    assert sorted(name.split()[0] for name in EXAMPLES) == sorted(
        file.name for file in (ROOT / "examples").glob("*.py")
    )


@pytest.mark.parametrize("command", EXAMPLES, ids=lambda command: command.split()[0])
def test_an_example_runs(command: str, tmp_path: Path) -> None:
    name, *arguments = command.split()
    environ = {key: value for key, value in os.environ.items() if not key.startswith("TICKWORK_")}
    ended = subprocess.run(
        [sys.executable, "-W", "error", str(ROOT / "examples" / name), *arguments],
        cwd=tmp_path,
        env=environ,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    fits = doctest.OutputChecker().check_output(EXAMPLES[command], ended.stdout, doctest.ELLIPSIS)
    assert fits, f"{ended.stdout}\n{ended.stderr}"
    printed = ended.stdout.splitlines()
    assert [line for line in ALSO.get(name, []) if line not in printed] == []
