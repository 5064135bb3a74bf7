"""The examples of several processes, `examples/pods` and `examples/balanced`, run to their end on two stores each."""

from __future__ import annotations

import doctest
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.docs.pages import ROOT
from tests.support.redis_store import empty_redis

pytestmark = pytest.mark.timeout(300)

PODS = """\
task configs: {'clean-up': 'on', 'newsletter': 'on', 'stock-count': 'on', 'year-end': 'off'}
stock-count (http): {'warehouse': 'north', 'pieces': 1204}
newsletter (grpc): News to readers@example.org
clean-up (local): removed what was older than 7 days
tasks ran on all 3 pods
the leader is killed
all 200 tasks are done: True
another pod leads
pods that ended well: 2
"""

BALANCED = """\
least_tasks: 40 tasks on 3 workers
round_robin: {'worker-1': 14, 'worker-2': 13, 'worker-3': 13}
random: 40 tasks on 3 workers
weighted_round_robin: {'worker-1': 10, 'worker-2': 10, 'worker-3': 20}
consistent_hash: each customer has a worker of its own: True
capacity_based: 40 tasks on 3 workers
event: task.submitted
...
event: task.succeeded
in the log: ...
task: success 64
workers: ['worker-1', 'worker-2', 'worker-3']
leads: True
"""


def run(module: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    environ = {key: value for key, value in os.environ.items() if not key.startswith("TICKWORK_")}
    return subprocess.run(
        [sys.executable, "-W", "error", "-m", module, *arguments],
        cwd=ROOT, env=environ, capture_output=True, text=True, timeout=240, check=False,
    )  # fmt: skip


def check(ended: subprocess.CompletedProcess[str], expected: str) -> None:
    assert ended.returncode == 0, f"{ended.stdout}\n{ended.stderr}"
    fits = doctest.OutputChecker().check_output(expected, ended.stdout, doctest.ELLIPSIS)
    assert fits, f"{ended.stdout}\n{ended.stderr}"


@pytest.mark.parametrize("kind", ["sqlite", "redis"])
def test_pods(kind: str, tmp_path: Path) -> None:
    store = f"sqlite:///{tmp_path}/pods.db" if kind == "sqlite" else empty_redis()
    check(run("examples.pods", "--store", store), PODS)


@pytest.mark.parametrize("kind", ["memory", "redis"])
def test_balanced(kind: str) -> None:
    store = "memory://" if kind == "memory" else empty_redis()
    check(run("examples.balanced", "--store", store), BALANCED)
