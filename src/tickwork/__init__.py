"""Tickwork: a distributed task scheduler. `docs/` and the README show how; `Scheduler` is where it starts."""

from tickwork.admin import QueueInfo, ScheduleInfo
from tickwork.backoff import CustomRetry, ExponentialBackoff, FixedDelay, LinearBackoff, RetryPolicy
from tickwork.codec import JSONSerializer, MsgPackSerializer, ProtobufSerializer, Serializer
from tickwork.config import AlertRule, Config
from tickwork.context import TaskContext
from tickwork.cron import Cron
from tickwork.errors import (
    Abort,
    ConfigError,
    CronError,
    DuplicateTask,
    HandlerNotFound,
    LeaseLost,
    NotCancellable,
    PayloadError,
    RateLimited,
    ResultError,
    ResultTimeout,
    Retry,
    ScheduleNotFound,
    Snooze,
    StoreError,
    StoreUnavailable,
    TaskCancelled,
    TaskExists,
    TaskFailed,
    TaskNotFound,
    TickworkError,
)
from tickwork.events import Event, Fact
from tickwork.handle import Handle, ScheduleHandle
from tickwork.handlers import Handler
from tickwork.model import (
    Misfire,
    Overlap,
    Page,
    Priority,
    QueueStats,
    SchedulerStatus,
    Status,
    Task,
    TaskInfo,
    TaskResult,
    Worker,
)
from tickwork.periodic import Job, PeriodicTask
from tickwork.scheduler import Scheduler
from tickwork.task import TaskFunction

__version__ = "0.1.0"

__all__ = [
    "Abort",
    "AlertRule",
    "Config",
    "ConfigError",
    "Cron",
    "CronError",
    "CustomRetry",
    "DuplicateTask",
    "Event",
    "ExponentialBackoff",
    "Fact",
    "FixedDelay",
    "Handle",
    "Handler",
    "HandlerNotFound",
    "JSONSerializer",
    "Job",
    "LeaseLost",
    "LinearBackoff",
    "Misfire",
    "MsgPackSerializer",
    "NotCancellable",
    "Overlap",
    "Page",
    "PayloadError",
    "PeriodicTask",
    "Priority",
    "ProtobufSerializer",
    "QueueInfo",
    "QueueStats",
    "RateLimited",
    "ResultError",
    "ResultTimeout",
    "Retry",
    "RetryPolicy",
    "ScheduleHandle",
    "ScheduleInfo",
    "ScheduleNotFound",
    "Scheduler",
    "SchedulerStatus",
    "Serializer",
    "Snooze",
    "Status",
    "StoreError",
    "StoreUnavailable",
    "Task",
    "TaskCancelled",
    "TaskContext",
    "TaskExists",
    "TaskFailed",
    "TaskFunction",
    "TaskInfo",
    "TaskNotFound",
    "TaskResult",
    "TickworkError",
    "Worker",
]
