"""A call of every operation that must succeed, with what has to be there before."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Any, NamedTuple

from tests.server.serving import HOME, MAKER, Client, Server
from tickwork import __version__
from tickwork.model.info import RemoteWorker
from tickwork.model.members import Worker
from tickwork.server.callers import Role
from tickwork.server.operations import operations


class Example(NamedTuple):
    """Names in the path, and what is sent."""

    names: dict[str, str] = {}  # noqa: RUF012 - a named tuple, which nobody changes
    body: Any = None


Make = Callable[[Server], Awaitable[Example]]
MAKERS: dict[str, Make] = {}


def _fixed(operation: str, body: Any = None, **names: str) -> None:
    async def make(_server: Server) -> Example:
        return Example(names, body)

    MAKERS[operation] = make


def _of(*names: str, body: Any = None) -> Callable[[Callable[[Server], Awaitable[str]]], None]:
    """Operations on something that is made for each call; the function answers its id."""

    def add(function: Callable[[Server], Awaitable[str]]) -> None:
        async def make(server: Server) -> Example:
            return Example({"id": await function(server)}, body)

        for name in names:
            MAKERS[name] = make

    return add


for question in (
    "list_tasks", "export_tasks", "list_dead_letters", "list_failures", "list_queues", "list_types", "get_series",
    "get_report", "export_report", "get_status", "get_queue_stats", "get_counts", "get_overview", "list_schedules",
    "get_calendar", "list_workers", "list_limits", "list_breakers", "list_switches", "list_events", "list_audit",
    "export_audit", "list_alerts", "get_config", "get_findings", "list_views", "list_tokens",
):  # fmt: skip
    _fixed(question)
_fixed("submit_task", {"type": "mail", "payload": {"to": "a"}})
_fixed("submit_tasks", {"tasks": [{"type": "mail"}, {"type": "mail", "delay": 60}]})
_fixed("pause_queue", {"note": "why"}, name="resting")
_fixed("resume_queue", name="paused")
_fixed("pause_type", {"note": "why"}, name="mail")
_fixed("resume_type", name="paused")
_fixed("preview_bulk", {"action": "cancel", "filter": "status:pending"})
_fixed("create_schedule", {"id": "made", "type": "mail", "cron": "0 3 * * *"})
_fixed("preview_line", {"cron": "0 3 * * *"})
_fixed("register_worker", {"id": "outside-1"})
_fixed("set_limit", {"of": "type:mail", "concurrency": 3, "note": "why"})
_fixed("open_breaker", {"of": "type:mail", "note": "why"})
_fixed("switch_off", {"of": "type:mail", "note": "why"})
_fixed("save_view", {"filter": "status:dead"}, name="mine")
_fixed("make_token", {"name": "new", "role": "viewer", "namespaces": [HOME]})


async def _pending(server: Server) -> str:
    return (await server.app.submit("mail", {"to": "a"}, delay=3600)).id


async def _cancelled(server: Server) -> str:
    task_id = await _pending(server)
    await server.app.cancel(task_id)
    return task_id


_of("get_task", "get_payload", "get_attempts", "get_logs", "explain_task", "get_task_events", "get_dependencies")(
    _pending
)
_of("cancel_task", body={})(_pending)
_of("run_task_now")(_pending)
_of("reschedule_task", body={"delay": 60.0})(_pending)
_of("retry_task", body={})(_cancelled)
_of("delete_task")(_cancelled)


async def _dead(server: Server) -> str:
    return await server.dead()


_of("retry_dead_letter", body={})(_dead)
_of("remove_dead_letter")(_dead)


async def _schedule(server: Server) -> str:
    await server.app.schedules.put("nightly", "mail", cron="0 3 * * *")
    return "nightly"


_of("get_schedule", "delete_schedule", "trigger_schedule", "get_next_runs", "get_runs")(_schedule)
_of("pause_schedule", body={"note": "why"})(_schedule)
_of("edit_schedule", body={"cron": "0 4 * * *"})(_schedule)


@_of("resume_schedule")
async def _paused_schedule(server: Server) -> str:
    await server.app.schedules.pause(await _schedule(server))
    return "nightly"


async def _worker(server: Server) -> str:
    await server.app.register_worker(RemoteWorker(id="outside"))
    return "outside"


_of("get_worker", "beat_worker", "unregister_worker", "drain_worker", "resume_worker", "reset_worker")(_worker)


async def _worker_of_node(server: Server) -> str:
    store = await server.app._access.open_store()
    await store.members.beat(
        Worker(id="inside", node="node-1", queues=("default",), task_types=("mail",), version=__version__)
    )
    return "inside"


_of("set_worker", body={"capacity": 5})(_worker_of_node)


async def _queue(server: Server) -> Example:
    await server.app.queues.pause("paused", "why")
    await server.app.queues.pause_type("paused", "why")
    return Example({"name": "paused"})


for operation in ("get_queue", "resume_queue", "resume_type"):
    MAKERS[operation] = _queue


async def _limit(server: Server) -> Example:
    await server.app.limits.set("type:other", concurrency=1)
    await server.app.breakers.open("type:other")
    await server.app.switches.off("type:other")
    return Example(body={"of": "type:other"})


for operation in ("remove_limit", "close_breaker", "switch_on"):
    MAKERS[operation] = _limit


async def _view(server: Server) -> Example:
    await (await server.as_role(Role.ADMIN)).do("PUT", "/views/old", {"filter": "status:dead"}, ns=HOME)
    return Example({"name": "old"})


MAKERS["delete_view"] = _view


@_of("revoke_token")
async def _token(server: Server) -> str:
    return (await server.plane.tokens.make("old", Role.VIEWER, MAKER, (HOME,))).info.id


async def _failure(server: Server) -> str:
    await server.count_up()
    await server.dead()
    await server.count_up()
    (group,) = await server.app.failures()
    return group.id


_of("get_failure", "unmute_failure")(_failure)
_of("mute_failure", body={"until": "2099-01-01T00:00:00Z", "note": "why"})(_failure)


async def _alert(server: Server) -> Example:
    await server.judge()
    return Example(body={"name": "old_backlog", "duration": 3600.0, "note": "why"})


async def _silenced(server: Server) -> Example:
    await server.judge()
    await server.app.silence_alert("old_backlog", timedelta(hours=1))
    return Example(body={"name": "old_backlog"})


MAKERS |= {"silence_alert": _alert, "unsilence_alert": _silenced}


async def preview_of(client: Client, action: str = "cancel", filter: str = "type:slow", **more: Any) -> Any:
    return await client.do("POST", "/bulk/preview", {"action": action, "filter": filter, **more})


async def bulk_example(server: Server, client: Client, operation: str) -> Example:
    """These need the handle of a preview of their own."""
    await server.app.submit_many("slow", [{"n": number} for number in range(20)], delay=3600)
    preview = (await preview_of(client, rate=1.0))["preview"]
    if operation == "run_bulk":
        return Example(body={"preview": preview})
    run = (await client.do("POST", "/bulk", {"preview": preview}))["id"]
    await client.do("DELETE", f"/bulk/{run}")  # so that it changes nothing any more
    return Example({"id": run})


async def example(server: Server, client: Client, name: str) -> Example:
    if name in ("run_bulk", "get_bulk", "stop_bulk"):
        return await bulk_example(server, client, name)
    return await MAKERS[name](server)


NAMES = tuple(sorted(operations()))
