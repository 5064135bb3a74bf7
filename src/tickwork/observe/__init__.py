"""Logs, and what happens in this process. What observers hear is exported here."""

from tickwork.observe.observations import (
    AlertChanged,
    LeadershipChanged,
    LeasesRenewed,
    LoopLagged,
    Observation,
    ScheduleTicked,
    ServiceFailed,
    StoreCalled,
    SubmitRejected,
    TaskEnded,
    TasksClaimed,
    TaskStarted,
    TaskSubmitted,
)
from tickwork.observe.observer import Observer

__all__ = [
    "AlertChanged",
    "LeadershipChanged",
    "LeasesRenewed",
    "LoopLagged",
    "Observation",
    "Observer",
    "ScheduleTicked",
    "ServiceFailed",
    "StoreCalled",
    "SubmitRejected",
    "TaskEnded",
    "TaskStarted",
    "TaskSubmitted",
    "TasksClaimed",
]
