"""The judge itself: every kind of bad history must be seen, and a good one must not."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.faults.history import History, Judgement, Line, judge
from tickwork.model.tasks import Record, Spec, Status

ACK: Line = {"what": "ack", "id": "a", "at": 0.0}
KILL: Line = {"what": "kill", "victim": 1, "at": 10.0}


def record(status: Status = Status.SUCCESS, losses: int = 0, fence: int = 0) -> Record:
    return Record(spec=Spec(id="a", type="t", nonce="n"), seq=1, status=status, losses=losses, fence=fence)


def start(pid: int, at: float, fence: int = 0) -> Line:
    return {"what": "start", "id": "a", "pid": pid, "at": at, "fence": fence}


def verdict(kind: str, fence: int) -> Line:
    return {"what": "verdict", "id": "a", "kind": kind, "fence": fence, "at": 20.0}


def judged(*lines: Line, known: Record | None = None, ends: int = 1, recovery: float | None = None) -> Judgement:
    records = {} if known is None else {"a": known}
    return judge([ACK, *lines], records, Counter({"a": ends}), recovery)


def kinds(found: Judgement) -> set[str]:
    return {problem.partition(":")[0] for problem in found.problems}


def test_a_good_history_is_clean() -> None:
    lines: tuple[Line, ...] = (start(1, 9.0, 5), KILL, start(2, 12.0, 6), verdict("done", 6))
    found = judged(*lines, known=record(losses=1, fence=6), recovery=4)
    assert found.clean, found
    assert (found.acked, found.starts, found.reruns, found.recoveries) == (1, 2, 1, [2.0])


def test_a_lost_task() -> None:
    assert kinds(judged()) == {"lost"}


def test_an_unfinished_task() -> None:
    assert kinds(judged(known=record(Status.RUNNING))) == {"unfinished"}
    assert kinds(judged(known=record(Status.DEAD))) == {"unfinished"}


def test_a_second_end() -> None:
    assert kinds(judged(known=record(), ends=2)) == {"ended_twice"}


def test_a_rerun_that_the_store_cannot_explain() -> None:
    assert kinds(judged(start(1, 1.0), start(2, 2.0), known=record())) == {"unexplained_reruns"}
    assert judged(start(1, 1.0), start(2, 2.0), known=record(losses=1)).clean


def test_a_rerun_of_what_ran_in_a_process_that_nothing_had_happened_to() -> None:
    runs = (start(1, 9.0), start(2, 12.0))
    other: Line = {**KILL, "victim": 3}
    for faults in ((), (other,), ({**KILL, "at": 13.0},), ({**KILL, "at": 8.0},)):
        assert kinds(judged(*runs, *faults, known=record(losses=1), recovery=4)) == {"unexplained_reruns"}


def test_a_rerun_of_what_started_while_the_signal_was_on_its_way() -> None:
    kill: Line = {**KILL, "till": 10.5}
    found = judged(start(1, 10.4), kill, start(2, 12.0), known=record(losses=1), recovery=4)
    assert found.clean, found
    assert found.recoveries == [pytest.approx(1.6)]
    late = judged(start(1, 10.6), kill, start(2, 12.0), known=record(losses=1), recovery=4)
    assert kinds(late) == {"unexplained_reruns"}


def test_a_late_rerun() -> None:
    found = judged(start(1, 9.0), KILL, start(2, 14.5), known=record(losses=1), recovery=4)
    assert kinds(found) == {"late_reruns"}
    assert found.recoveries == [4.5]


def test_each_rerun_is_measured_from_its_own_fault() -> None:
    again: Line = {"what": "stop", "victim": 2, "at": 20.0}
    found = judged(start(1, 9.0), KILL, start(2, 12.0), again, start(3, 23.0), known=record(losses=2), recovery=4)
    assert found.clean, found
    assert found.recoveries == [2.0, 3.0]


def test_a_process_may_be_stopped_more_than_once() -> None:
    stops: list[Line] = [{"what": "stop", "victim": 1, "at": at} for at in (5.0, 10.0, 15.0)]
    found = judged(*stops, start(1, 9.0), start(2, 12.0), known=record(losses=1), recovery=4)
    assert found.clean, found
    assert found.recoveries == [2.0]


def test_an_end_by_a_run_that_was_not_the_last() -> None:
    runs = (start(1, 9.0, 5), KILL, start(2, 12.0, 6))
    assert kinds(judged(*runs, known=record(losses=1, fence=5), recovery=4)) == {"stale_ends"}
    assert kinds(judged(*runs, verdict("done", 5), known=record(losses=1, fence=6), recovery=4)) == {"stale_ends"}
    refused = judged(*runs, verdict("lost", 5), verdict("done", 6), known=record(losses=1, fence=6), recovery=4)
    assert refused.clean, refused
    assert refused.refused == 1


def test_a_history_is_read_on_from_where_it_was(tmp_path: Path) -> None:
    history = History(tmp_path / "history.jsonl")
    seen: list[Any] = []
    for number in range(3):
        history.write("ack", id=str(number))
        seen.append([line["id"] for line in history.lines()])
    with history.path.open("ab") as file:
        file.write(b'{"what": "torn')  # a line that another process is about to finish
    assert [line["id"] for line in history.lines()] == ["0", "1", "2"]
    assert seen == [["0"], ["0", "1"], ["0", "1", "2"]]
    history.close()
