"""What observers hear: facts of this process, as they happen."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Literal

from msgspec import Struct

from tickwork.model.facts import Fact


class Observation(Struct, frozen=True):
    """Something that has just happened in this process. Times are in seconds."""


class TaskSubmitted(Observation, frozen=True):
    """This process has sent a task to the store, or one tick of a schedule. `verdict` is the store's answer: all but
    `created` led to no new task."""

    id: str
    type: str
    queue: str
    verdict: Literal["created", "exists", "duplicate", "orphan"]
    priority: int = 5


class SubmitRejected(Observation, frozen=True):
    """Tasks were not submitted, as a rate limit on submits was reached: they may be after `retry_after` seconds."""

    types: tuple[str, ...]  # one for each task
    retry_after: float


class TasksClaimed(Observation, frozen=True):
    """A worker asked the store for tasks: for how many, and how many it got."""

    worker_id: str
    asked: int
    granted: int


class TaskStarted(Observation, frozen=True):
    """A worker of this process has started a run. `waited` is the time since the task could have run, counted anew
    after a snooze; None where that is not known: of retries, of a task that was given back or lost, or that depends
    on others."""

    id: str
    type: str
    queue: str
    worker_id: str
    attempt: int
    waited: float | None


class TaskEnded(Observation, frozen=True):
    """The store has accepted how a run ended: `fact` says how (`Fact.TASK_SUCCEEDED`, `TASK_RETRYING`, `TASK_DIED`,
    `TASK_FAILED`, `TASK_SNOOZED`, `TASK_RELEASED` or `TASK_CANCELLED`). `detail` is the error as it is stored, `error`
    the exception that was raised in this process, if one was, and `retry_in` the time until the next attempt."""

    fact: Fact
    id: str
    type: str
    queue: str
    worker_id: str
    attempt: int
    duration: float
    detail: str = ""
    error: BaseException | None = None
    retry_in: float | None = None


class LeasesRenewed(Observation, frozen=True):
    """This node has renewed the leases of tasks that it runs: how many it still holds, how many it has lost, and of how
    many that is not known, because a partition of the store did not answer."""

    held: int
    lost: int
    unknown: int


class ScheduleTicked(Observation, frozen=True):
    """This node, as the leader, has fired a schedule or not: `fact` is `Fact.SCHEDULE_FIRED`, `SCHEDULE_SKIPPED`,
    `SCHEDULE_MISSED` or `SCHEDULE_STOPPED`; `detail` says more. `type` and `queue` are those of its tasks, `late` is
    the time since the tick."""

    fact: Fact
    id: str
    type: str
    queue: str
    detail: str
    late: float = 0.0


class StoreCalled(Observation, frozen=True):
    """A call to the store has ended. `error` is what it raised; a call that was cancelled raised `CancelledError`."""

    part: str
    method: str
    seconds: float
    error: BaseException | None = None


class LoopLagged(Observation, frozen=True):
    """How late the event loop of this node was with a timer; told once a second."""

    seconds: float


class LeadershipChanged(Observation, frozen=True):
    """This node leads from now on, or no longer."""

    node: str
    term: int
    leads: bool


class AlertChanged(Observation, frozen=True):
    """This node leads, and has seen that an alert fires or is over: `fact` says which, `id` is the name of its rule."""

    fact: Fact
    id: str
    detail: str


class ServiceFailed(Observation, frozen=True):
    """A part of this node ended by an error. It is started again (`restarts` says how many times it was by then),
    except if it is vital: then the node is drained."""

    name: str
    error: Exception
    vital: bool
    restarts: int


_ENDS = (
    Fact.TASK_SUCCEEDED, Fact.TASK_RETRYING, Fact.TASK_DIED, Fact.TASK_FAILED, Fact.TASK_SNOOZED, Fact.TASK_RELEASED,
    Fact.TASK_CANCELLED,
)  # fmt: skip
_TICKS = (Fact.SCHEDULE_FIRED, Fact.SCHEDULE_SKIPPED, Fact.SCHEDULE_MISSED, Fact.SCHEDULE_STOPPED)

# Under what the bus publishes each of them. Some have several topics, since logging wants only a part of them.
TOPICS: dict[type[Observation], tuple[Hashable, ...]] = {
    TaskSubmitted: (TaskSubmitted,),
    SubmitRejected: (SubmitRejected,),
    TasksClaimed: (TasksClaimed,),
    TaskStarted: (Fact.TASK_CLAIMED,),
    TaskEnded: _ENDS,
    LeasesRenewed: (LeasesRenewed,),
    ScheduleTicked: _TICKS,
    StoreCalled: (StoreCalled,),
    LoopLagged: (LoopLagged,),
    LeadershipChanged: (LeadershipChanged,),
    AlertChanged: (Fact.ALERT_FIRED, Fact.ALERT_RESOLVED),
    ServiceFailed: (ServiceFailed,),
}
