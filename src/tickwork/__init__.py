"""Tickwork: a distributed task scheduler. `docs/` and the README show how; `Scheduler` is where it starts."""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tickwork.backoff import CustomRetry, ExponentialBackoff, FixedDelay, LinearBackoff, RetryPolicy
    from tickwork.client.breakers import BreakerInfo
    from tickwork.client.functions import TaskFunction
    from tickwork.client.handle import Handle, ScheduleHandle
    from tickwork.client.limits import LimitInfo
    from tickwork.client.lock import Lock
    from tickwork.client.queues import QueueInfo
    from tickwork.client.schedules import ScheduleInfo
    from tickwork.client.switches import SwitchInfo
    from tickwork.client.sync import SyncHandle
    from tickwork.config import AlertRule, Config
    from tickwork.cron import Cron
    from tickwork.dispatch.strategies import Candidate, Load
    from tickwork.errors import (
        Abort,
        ConfigError,
        CronError,
        DuplicateTask,
        ExecutorError,
        HandlerNotFound,
        LeaseLost,
        NotCancellable,
        NotReschedulable,
        NotRetryable,
        PayloadError,
        RateLimited,
        ResultError,
        ResultTimeout,
        Retry,
        ScheduleNotFound,
        Snooze,
        StoreError,
        StoreFull,
        StoreUnavailable,
        TaskCancelled,
        TaskExists,
        TaskFailed,
        TaskNotFound,
        TickworkError,
        WorkerNotFound,
    )
    from tickwork.executors.base import Executor
    from tickwork.handlers.context import TaskContext
    from tickwork.handlers.depends import Depends
    from tickwork.handlers.middleware import Middleware, NewTask, RunCall, RunNext, SubmitCall, SubmitNext
    from tickwork.handlers.periodic import Job, PeriodicTask
    from tickwork.handlers.registry import Handler
    from tickwork.model.alerts import Alert, AlertSilence
    from tickwork.model.bulk import BulkResult, Refused, TaskFilter
    from tickwork.model.facts import Fact
    from tickwork.model.health import Check, Health
    from tickwork.model.info import (
        AttemptInfo,
        Event,
        Explanation,
        Page,
        QueueStats,
        Reason,
        RemoteWorker,
        SchedulerStatus,
        Steered,
        Task,
        TaskInfo,
        TaskResult,
        TaskUpdate,
        WorkerInfo,
    )
    from tickwork.model.members import WorkerStatus
    from tickwork.model.reports import FailureGroup, Percentiles, Report, ReportRow, ScheduleRun
    from tickwork.model.schedules import Misfire, Overlap
    from tickwork.model.tasks import Priority, Status
    from tickwork.node.duties import Duty
    from tickwork.node.services import Service
    from tickwork.payload.codec import JSONSerializer, MsgPackSerializer, ProtobufSerializer, Serializer
    from tickwork.scheduler import Scheduler
    from tickwork.store.contract import Capabilities, Grant, Receipt, Store
    from tickwork.store.opening import make_store

__version__ = "0.1.0"

__all__ = [
    "Abort",
    "Alert",
    "AlertRule",
    "AlertSilence",
    "AttemptInfo",
    "BreakerInfo",
    "BulkResult",
    "Candidate",
    "Capabilities",
    "Check",
    "Config",
    "ConfigError",
    "Cron",
    "CronError",
    "CustomRetry",
    "Depends",
    "DuplicateTask",
    "Duty",
    "Event",
    "Executor",
    "ExecutorError",
    "Explanation",
    "ExponentialBackoff",
    "Fact",
    "FailureGroup",
    "FixedDelay",
    "Grant",
    "Handle",
    "Handler",
    "HandlerNotFound",
    "Health",
    "JSONSerializer",
    "Job",
    "LeaseLost",
    "LimitInfo",
    "LinearBackoff",
    "Load",
    "Lock",
    "Middleware",
    "Misfire",
    "MsgPackSerializer",
    "NewTask",
    "NotCancellable",
    "NotReschedulable",
    "NotRetryable",
    "Overlap",
    "Page",
    "PayloadError",
    "Percentiles",
    "PeriodicTask",
    "Priority",
    "ProtobufSerializer",
    "QueueInfo",
    "QueueStats",
    "RateLimited",
    "Reason",
    "Receipt",
    "Refused",
    "RemoteWorker",
    "Report",
    "ReportRow",
    "ResultError",
    "ResultTimeout",
    "Retry",
    "RetryPolicy",
    "RunCall",
    "RunNext",
    "ScheduleHandle",
    "ScheduleInfo",
    "ScheduleNotFound",
    "ScheduleRun",
    "Scheduler",
    "SchedulerStatus",
    "Serializer",
    "Service",
    "Snooze",
    "Status",
    "Steered",
    "Store",
    "StoreError",
    "StoreFull",
    "StoreUnavailable",
    "SubmitCall",
    "SubmitNext",
    "SwitchInfo",
    "SyncHandle",
    "Task",
    "TaskCancelled",
    "TaskContext",
    "TaskExists",
    "TaskFailed",
    "TaskFilter",
    "TaskFunction",
    "TaskInfo",
    "TaskNotFound",
    "TaskResult",
    "TaskUpdate",
    "TickworkError",
    "WorkerInfo",
    "WorkerNotFound",
    "WorkerStatus",
    "make_store",
]

_HOMES = (
    "errors", "backoff", "config", "model.tasks", "model.info", "model.members", "model.bulk", "model.schedules",
    "model.reports", "model.facts", "cron", "payload.codec", "handlers.context", "client.handle", "handlers.registry",
    "handlers.middleware", "handlers.depends", "handlers.periodic", "client.queues", "client.schedules",
    "client.functions", "client.lock", "client.sync", "scheduler", "store.contract", "store.opening", "model.health",
    "executors.base", "node.duties", "node.services", "dispatch.strategies", "model.alerts",
    "client.limits", "client.breakers", "client.switches",
)  # fmt: skip

if not TYPE_CHECKING:  # to a type checker it would mean that every name exists

    def __getattr__(name):
        """A public name is imported when it is first used, so that `tickwork --help` need not wait for all of them."""
        if name in __all__:
            for home in _HOMES:
                found = vars(import_module(f"tickwork.{home}"))
                if name in found:
                    return globals().setdefault(name, found[name])
        raise AttributeError(f"module 'tickwork' has no attribute {name!r}")


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
