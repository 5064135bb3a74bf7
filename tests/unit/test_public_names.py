"""The names that programs build on: all there, sorted, and nothing besides."""

from __future__ import annotations

import ast
import inspect
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import tickwork
from tickwork import Scheduler, errors
from tickwork.client.client import Client

SOURCE = Path(tickwork.__file__)


def test_all_is_sorted_and_complete() -> None:
    names = tickwork.__all__
    assert names == sorted(names)
    assert len(names) == len(set(names))
    tree = ast.parse(SOURCE.read_text())
    imported = {alias.asname or alias.name for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)
                and (node.module or "").startswith("tickwork.") for alias in node.names}  # fmt: skip
    assert imported == set(names), "what a type checker sees is what __all__ says"
    assert set(dir(tickwork)) >= set(names)


@pytest.mark.parametrize("name", tickwork.__all__)
def test_a_name_leads_to_one_of_ours(name: str) -> None:
    found = getattr(tickwork, name)
    assert inspect.isclass(found) or callable(found)
    assert found.__module__.startswith("tickwork."), f"{name} comes from {found.__module__}"
    assert found.__name__ == name
    assert (found.__doc__ or "").strip() or name in {"TaskResult", "QueueStats", "SchedulerStatus", "QueueInfo"}


def test_star_import_gives_just_these() -> None:
    namespace: dict[str, Any] = {}
    exec("from tickwork import *", namespace)
    assert namespace.keys() - {"__builtins__"} == set(tickwork.__all__)


def test_other_names_are_not_there() -> None:
    with pytest.raises(AttributeError, match="module 'tickwork' has no attribute 'Schedular'"):
        tickwork.Schedular  # type: ignore[attr-defined] # noqa: B018
    assert not hasattr(tickwork, "Manager")


def test_the_package_itself_is_light() -> None:
    """A command such as `tickwork --help` must not wait for what it does not need."""
    code = "import sys, tickwork; print(*sorted(m for m in sys.modules if m.startswith('tickwork') or m == 'msgspec'))"
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert shown.stdout.split() == ["tickwork"]


def test_every_public_error_is_exported() -> None:
    ours = {
        name for name, found in vars(errors).items()
        if inspect.isclass(found) and found.__module__ == "tickwork.errors" and not name.startswith("_")
    }  # fmt: skip
    assert ours <= set(tickwork.__all__)
    for name in ours:
        found = getattr(tickwork, name)
        assert issubclass(found, tickwork.TickworkError) or name in {"Retry", "Abort", "Snooze"}
        assert name in (errors.__doc__ or ""), f"{name} is missing in the drawing of the tree"


# --- what the design promises


@pytest.mark.parametrize(
    ("child", "parent"),
    [
        ("PayloadError", "TickworkError"), ("ConfigError", "TickworkError"), ("DuplicateTask", "TickworkError"),
        ("TaskExists", "TickworkError"), ("TaskNotFound", "TickworkError"), ("HandlerNotFound", "TickworkError"),
        ("NotCancellable", "TickworkError"), ("NotRetryable", "TickworkError"),
        ("NotReschedulable", "TickworkError"),
        ("RateLimited", "TickworkError"), ("LeaseLost", "TickworkError"),
        ("StoreError", "TickworkError"), ("StoreUnavailable", "StoreError"), ("StoreFull", "StoreUnavailable"),
        ("ResultError", "TickworkError"),
        ("TaskFailed", "ResultError"), ("TaskCancelled", "ResultError"), ("ResultTimeout", "ResultError"),
    ],
)  # fmt: skip
def test_the_tree_of_errors(child: str, parent: str) -> None:
    assert issubclass(getattr(tickwork, child), getattr(tickwork, parent))


METHODS = {
    "": "submit call submit_many submit_task submit_tasks task periodic observe add_duty add_service "
    "start shutdown stop close run register "
    "list_registered schedule schedule_after get_task list_tasks index_tasks queue_stats status cancel retry run_now "
    "update_task_status register_worker unregister_worker get_worker list_workers drain_worker resume_worker "
    "set_worker reset_worker set_serializer explain lock use queue "
    "on_startup on_shutdown reschedule callback_app health report failures alerts silence_alert unsilence_alert asgi "
    "server_url",
    "registry": "register unregister has list clear set_serializer",
    "executors": "register list",
    "strategies": "register list of",
    "tasks": "cancel retry run_now delete",
    "dlq": "list get retry retry_all remove clear",
    "schedules": "put list get pause resume trigger next_runs runs delete",
    "queues": "list pause resume",
    "limits": "list set remove",
    "breakers": "list get open close",
    "switches": "list off on",
    "events": "subscribe read last",
    "sync": "submit call submit_many submit_tasks get_task lock tasks dlq schedules queues limits breakers switches",
}


@pytest.mark.parametrize("part", METHODS)
def test_what_a_scheduler_can_do(part: str) -> None:
    app = Scheduler("memory://")
    owner = getattr(app, part) if part else app
    missing = [name for name in METHODS[part].split() if not hasattr(owner, name)]
    assert missing == []


def test_a_scheduler_is_a_client_and_nothing_is_said_twice() -> None:
    """What a client can do is written once; a scheduler adds what needs handlers or a running node."""
    assert issubclass(Scheduler, Client)
    of_client = {name for name in vars(Client) if not name.startswith("_")}
    of_scheduler = {name for name in vars(Scheduler) if not name.startswith("_")}
    assert of_client & of_scheduler == set()
    for owner, name in [*((Client, name) for name in of_client), *((Scheduler, name) for name in of_scheduler)]:
        assert vars(owner)[name].__doc__, f"{owner.__name__}.{name} does not say what it does"


ATTRIBUTES = (
    # what it has
    "breakers capabilities config dlq events executors exhausted id limits loaded queues registry schedules strategies "
    "switches sync tasks url "
    "audit webhooks dependants delete handle configure stop_soon wait_stopped after_fork"  # beside those above
)


def test_nothing_else_is_offered() -> None:
    """A name that is public by accident would have to be kept."""
    offered = {name for name in dir(Scheduler("memory://")) if not name.startswith("_")}
    assert offered == {*METHODS[""].split(), *ATTRIBUTES.split()}


FIELDS = {
    "TaskInfo": "id type queue priority payload status attempt retry_count losses worker_id schedule_id submitted_at "
    "scheduled_at started_at finished_at last_error execution_time result tags context",
    "TaskResult": "code message data",
    "QueueStats": "delayed_count high_count normal_count low_count running_count worker_count dlq_count",
    "Page": "items cursor",
    "Steered": "id status error brought_back",
    "ExponentialBackoff": "base max multiplier jitter",
    "FixedDelay": "seconds",
    "LinearBackoff": "base increment max",
    "RetryPolicy": "max_retries retry_delay backoff_rate",
    "WorkerInfo": "id status address task_types capacity started_at beat_at",
    "RemoteWorker": "id address task_types capacity",
    "Explanation": "reason text until ahead blockers",
    "LimitInfo": "of rate burst concurrency per origin by note since tokens running waiting keys",
    "BreakerInfo": "of state failures open_until waiting by_hand by note since",
    "SwitchInfo": "of by note since until waiting",
    "Event": "seq at kind id type queue worker_id attempt duration detail",
}


@pytest.mark.parametrize("record", FIELDS)
def test_what_a_record_holds(record: str) -> None:
    fields = getattr(tickwork, record).__struct_fields__
    assert [name for name in FIELDS[record].split() if name not in fields] == []


def test_the_rest_of_the_promise() -> None:
    context = tickwork.TaskContext(task_id="i", type="t", attempt=1, fence=1, timeout=1, tags={}, context={})
    promised = "task_id type attempt fence deadline tags context logger cancelled progress"
    for name in promised.split():
        assert hasattr(context, name)
    for name in ("next", "upcoming", "describe"):
        assert hasattr(tickwork.Cron, name)
    for name in ("id", "result", "info", "cancel"):
        assert hasattr(tickwork.Handle, name)
    for name in ("submit", "call", "submit_many", "options"):
        assert hasattr(tickwork.TaskFunction, name)
    for name in ("acquire", "release", "held", "fence", "check"):
        assert hasattr(tickwork.Lock, name)
    for name in ("of", "run"):
        assert hasattr(tickwork.PeriodicTask, name)
    assert {p.name: int(p) for p in tickwork.Priority} == {"LOW": 1, "NORMAL": 5, "HIGH": 10}
    assert {str(status) for status in tickwork.Status} == {
        "pending", "blocked", "ready", "assigned", "running", "retrying", "success", "failed", "dead", "cancelled",
    }  # fmt: skip
    assert tickwork.Status.parse("completed") is tickwork.Status.SUCCESS


def test_submit_takes_the_promised_options() -> None:
    from tickwork.handlers.options import Options

    promised = (
        "id queue priority schedule_at delay cron timezone max_retry timeout retry dedup_key dedup_ttl key tags "
        "context serializer executor target requires depends_on durability if_exists expires unique retention"
    )
    assert set(Options.__annotations__) == set(promised.split())
    assert set(tickwork.Task.__struct_fields__) == {*promised.split(), "type", "payload"}
