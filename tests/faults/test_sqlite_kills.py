from __future__ import annotations

import random
from collections import Counter
from pathlib import Path

import pytest

from tests.faults.history import judge
from tests.faults.sqlite_kills import run
from tickwork.model import Record, Spec, Status


@pytest.mark.timeout(180)
async def test_killed_processes_lose_nothing_and_end_nothing_twice(tmp_path: Path) -> None:
    seed = random.randrange(10**6)
    found = await run(tmp_path, kills=10, seed=seed)
    assert found.clean, f"seed {seed}: {found}"
    assert found.acked > 50
    assert found.reruns > 0, "no kill hit a running task, so this run has shown nothing"


def record(status: Status, losses: int = 0) -> Record:
    return Record(spec=Spec(id="a", type="t", nonce="n"), seq=1, status=status, losses=losses)


ACK = {"what": "ack", "id": "a"}
START = {"what": "start", "id": "a"}


def test_the_judge_sees_a_lost_task() -> None:
    assert judge([ACK], {}, Counter()).lost == ["a"]


def test_the_judge_sees_an_unfinished_task() -> None:
    assert not judge([ACK], {"a": record(Status.RUNNING)}, Counter()).clean


def test_the_judge_sees_a_second_end() -> None:
    assert judge([ACK], {"a": record(Status.SUCCESS)}, Counter({"a": 2})).ended_twice


def test_the_judge_sees_a_rerun_without_a_lost_worker() -> None:
    assert judge([ACK, START, START], {"a": record(Status.SUCCESS)}, Counter()).unexplained_reruns
    assert judge([ACK, START, START], {"a": record(Status.SUCCESS, losses=1)}, Counter()).clean
