from __future__ import annotations

import random
from pathlib import Path

import pytest

from tests.faults.sqlite_kills import run


@pytest.mark.timeout(180)
async def test_killed_processes_lose_nothing_and_end_nothing_twice(tmp_path: Path) -> None:
    seed = random.randrange(10**6)
    found = await run(tmp_path, kills=10, seed=seed)
    assert found.clean, f"seed {seed}: {found}"
    assert found.acked > 50
    assert found.reruns > 0, "no kill hit a running task, so this run has shown nothing"
