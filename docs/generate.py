"""Writes the parts of the docs that the code already says: `python -m docs.generate`.

A part stands between `<!-- generated: NAME -->` and `<!-- end -->`; `PARTS` has the function that writes each. A test
fails when a page is not what this program would write.
"""

from __future__ import annotations

import inspect
import logging
import re
from collections.abc import Callable, Iterable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

from tickwork import errors, logs
from tickwork.backoff import ExponentialBackoff
from tickwork.cli import COMMANDS
from tickwork.config import OPTIONS, AlertRule, Config
from tickwork.config import names as config_names
from tickwork.config.alerts import BUILT_IN, METRICS
from tickwork.cron import Cron, Dst
from tickwork.model.facts import Fact
from tickwork.model.table import TABLE, Op
from tickwork.model.tasks import Status
from tickwork.server.callers import LEAST
from tickwork.server.operations import operations
from tickwork.store.redis.keys import CONTROL_KEYS, NAMESPACE_KEYS, TASK_KEYS

FOLDER = Path(__file__).parent

STATUSES = {
    Status.PENDING: "waits for a time: it was delayed, or [snoozed](failures.md#snooze) itself",
    Status.BLOCKED: "waits for [other tasks](submitting.md#dependencies)",
    Status.READY: "may be taken by a worker",
    Status.ASSIGNED: "given to one worker, which has not taken it yet: see [dispatch](dispatch.md)",
    Status.RUNNING: "a worker holds its [lease](delivery.md#leases-and-fences) and runs it",
    Status.RETRYING: "an attempt failed; waits for the [next one](failures.md#retries)",
    Status.SUCCESS: "ended: the handler returned; `completed` is accepted for it wherever a status is given",
    Status.FAILED: "ended: failed for good, where dead letters are switched off",
    Status.DEAD: "ended: failed for good, and is a [dead letter](failures.md#dead-letters)",
    Status.CANCELLED: "ended: [cancelled](failures.md#cancelling), or a task that it depends on did not succeed",
}

OPERATIONS = {
    Op.SUBMIT: "it is submitted: blocked while it depends on unfinished tasks, else pending while its time is ahead",
    Op.RESOLVE: "a task that it depends on has ended: cancelled if that was no success",
    Op.PROMOTE: "its time has come",
    Op.RUN_NOW: "`run_now(id)` on a task that waits for its time",
    Op.RESCHEDULE: "`reschedule(id, at=...)`: it is due at another time",
    Op.ASSIGN: "the leader gives it to a worker, where a queue is [assigned](dispatch.md)",
    Op.UNASSIGN: "its worker did not take it in time, or takes no more tasks",
    Op.CLAIM: "a worker takes it; `attempt` goes up by one and a new fence is issued",
    Op.SUCCEED: "the handler returned",
    Op.FAIL: "the attempt failed and a retry is left",
    Op.ABORT: "the attempt failed and no retry is left, or the handler raised `Abort`",
    Op.SNOOZE: "the handler raised `Snooze`; the attempt is given back",
    Op.HOLD: "a [limit, breaker or switch](limits.md) did not let it run: the attempt is given back, and it waits",
    Op.RELEASE: "given back unfinished at shutdown; the attempt is given back",
    Op.STOP: "the handler ended because the task was cancelled",
    Op.OVERDUE: "it has not started by its [deadline](submitting.md#deadlines); one that has started never expires",
    Op.EXPIRE: "its worker is gone: the attempt is given back, `losses` goes up, at `max_losses` it is not run again",
    Op.CANCEL: "`cancel(id)`",
    Op.FORCE_CANCEL: "`cancel(id, force=True)`: the handler of a running task is asked to stop",
    Op.RETRY: "`retry(id)` on a task that has ended; its counters start again, its dependencies count again",
    Op.DELETE: "`delete(id)`",
    Op.PRUNE: "its retention is over",
}

FACTS = {
    Fact.TASK_SUBMITTED: "it was submitted",
    Fact.TASK_RESOLVED: "a task that it depends on has ended; `detail` names it",
    Fact.TASK_DUE: "its time has come",
    Fact.TASK_HASTENED: "it was made ready by hand, with `run-now`",
    Fact.TASK_RESCHEDULED: "it was moved by hand to another time",
    Fact.TASK_PARKED: "no worker that asked may start it: they do not know its type, it is paused, they lack labels, "
    "or enough tasks of its type wait at a limit already",
    Fact.TASK_ASSIGNED: "the leader gave it to a worker",
    Fact.TASK_UNASSIGNED: "its worker did not take it in time, or takes no more tasks; it is ready again",
    Fact.TASK_CLAIMED: "a worker took it",
    Fact.TASK_SUCCEEDED: "it ended with success",
    Fact.TASK_RETRYING: "an attempt failed, another follows; `detail` is the error",
    Fact.TASK_FAILED: "it failed for good, with dead letters off",
    Fact.TASK_DIED: "it failed for good and is a dead letter; `detail` is the error",
    Fact.TASK_SNOOZED: "it is to run later: its handler asked for that, or its payload does not fit there",
    Fact.TASK_HELD: "a [limit, breaker or switch](limits.md) did not let it run; `detail` names it",
    Fact.TASK_RELEASED: "it was given back unfinished at a shutdown",
    Fact.TASK_LOST: "its worker vanished; it is ready again",
    Fact.TASK_CANCEL_ASKED: "it runs, and its handler was asked to stop",
    Fact.TASK_CANCELLED: "it was cancelled; `detail` says why",
    Fact.TASK_EXPIRED: "it was cancelled, since it had not started by its deadline",
    Fact.TASK_RETRIED: "it had ended and was told to run again, by hand",
    Fact.TASK_DELETED: "it was deleted by hand",
    Fact.TASK_DROPPED: "it was the oldest dead letter, and there were too many",
    Fact.WORKER_JOINED: "a worker is there",
    Fact.WORKER_LEFT: "a worker left in good order",
    Fact.WORKER_LOST: "a worker has sent no heartbeat for a whole lease, or its process is gone",
    Fact.WORKER_ORDERED: "what a worker is asked to do now, such as `capacity=20 drain`; `none`: nothing any more",
    Fact.LEADER_ELECTED: "a node leads now; `detail` has the term",
    Fact.LEADER_RESIGNED: "it no longer leads",
    Fact.SCHEDULE_PUT: "a schedule was created or changed",
    Fact.SCHEDULE_FIRED: "a tick became a task; `detail` names it",
    Fact.SCHEDULE_SKIPPED: "a tick was left out, as the run before has not ended; `detail` names that",
    Fact.SCHEDULE_MISSED: "ticks came while no node was up; `detail` says how many were left out",
    Fact.SCHEDULE_STOPPED: "it stopped by itself, as a run used up its retries",
    Fact.SCHEDULE_DROPPED: "it was deleted",
    Fact.QUEUE_PAUSED: "a queue was paused; `detail` is the note",
    Fact.QUEUE_RESUMED: "a queue was resumed",
    Fact.TYPE_PAUSED: "a task type was paused",
    Fact.TYPE_RESUMED: "a task type was resumed",
    Fact.LIMIT_SET: "a [limit](limits.md) was set by hand; `id` says of what, `detail` by whom, and how much",
    Fact.LIMIT_REMOVED: "it was removed; what the program says holds again",
    Fact.SWITCH_OFF: "tasks of a type, key or tag were switched off; `detail` says by whom, and why",
    Fact.SWITCH_ON: "they were switched on again",
    Fact.BREAKER_OPENED: "too many runs failed in a row, or somebody opened it: nothing is let through",
    Fact.BREAKER_PROBED: "one task is let through, to try; `detail` names it",
    Fact.BREAKER_CLOSED: "that one succeeded, or somebody closed it: everything is let through again",
    Fact.ALERT_FIRED: "the condition of an [alert](alerts.md) has held for its duration; `id` is the name of the rule",
    Fact.ALERT_RESOLVED: "it has not held for as long; the alert is over",
    Fact.ALERT_FIRED_SILENTLY: "it has fired while its rule is [silenced](alerts.md#silencing)",
    Fact.ALERT_RESOLVED_SILENTLY: "it is over, while its rule is silenced",
    Fact.LOG_MISSED: "told to a subscriber that fell behind: `detail` says how many facts it missed",
    Fact.LOG_UNREADABLE: "told to readers of the log: here are facts that this version cannot read; `detail` says why",
}

MEANINGS = {
    "Store": {
        "store": "the [store's URL](#stores); none is `memory://`",
        "namespace": "separates applications, or environments, in one store",
        "durability": "what an accepted submit stands for: [`memory`, `disk` or `replicated`](durability.md)",
        "partitions": "[partitions](redis.md#partitions) of a Redis namespace; the first to open it decides",
        "pool_size": "connections that one kind of calls to Redis may use at once",
        "store_timeout": "how long a call waits [for a store that is away](submitting.md#when-the-store-is-away)",
        "submit_timeout": "how long a whole submit waits for it, with the opening of the store",
        "retention": "how long ended tasks are kept",
        "retention_max": "how many ended tasks are kept; the oldest go first",
        "cleanup_interval": "the longest pause between two looks for old tasks; looked at least every 5 seconds",
        "events": "whether the [event log](events-and-logs.md) is written",
        "statistics": "whether [statistics for reports](reports.md) are made from it",
    },
    "Workers": {
        "scheduler_id": "the name of this process, and of no other; none makes one from host, process and chance",
        "queues": "the queues that its workers serve",
        "worker_count": "workers in this process; each has an id and leases of its own",
        "concurrency": "handlers that one worker runs at once",
        "task_types": "the only types its workers take; none means all that are registered",
        "max_tasks_per_child": "tasks after which a child process is [replaced](handlers.md#where-a-handler-runs); 0 "
        "means no limit",
        "labels": "what its workers have; tasks may require it",
        "weight": "share of assigned tasks of its workers, beside that of others",
        "address": "where its workers can be found; only shown",
        "lease_ttl": "after this long without a sign of life a task is [taken back](delivery.md#leases-and-fences)",
        "renew_interval": "how often leases are renewed; `lease_ttl` should be 1.5 times as long or more",
        "leader_lease_ttl": "after this long without a sign of life another node leads",
        "leader_renew_interval": "how often leadership is renewed; less than half of `leader_lease_ttl`",
        "scan_interval": "the longest pause between two looks for work; due times and submissions wake it earlier",
        "batch_size": "tasks moved by one call to the store",
        "dispatch": 'how tasks come to workers: [`"pull"` or `"assigned"`](dispatch.md), or one of them for each queue',
        "load_balance_strategy": "the [strategy](dispatch.md#assigned-queues) by which assigned tasks are spread",
        "worker_timeout": "after this long without a sign of life a worker registered from outside counts as lost",
        "shutdown_timeout": "how long a [shutdown](delivery.md#graceful-shutdown) waits for what runs",
    },
    "Tasks": {
        "max_retry": "[retries](failures.md#retries) after the first attempt",
        "retry": "the [strategy](failures.md#strategies) that says when",
        "timeout": "how long one [attempt](failures.md#timeouts) may take; 0 is no limit",
        "version_grace": "how long a task whose payload does not fit the handler of a worker waits for "
        "[another version](handlers.md#when-a-handler-changes) of it; `0` is not at all",
        "max_losses": "lost workers after which a task is [not run again](failures.md#poison-tasks)",
        "when_cut_off": "what a handler does on a node that is [cut off](delivery.md#when-a-node-is-cut-off)",
        "dedup": "whether `dedup_key` is looked at",
        "dedup_ttl": "how long a [dedup key](submitting.md#deduplication) is held",
        "dlq": "whether what failed for good becomes a [dead letter](failures.md#dead-letters)",
        "dlq_max": "dead letters that are kept; the oldest are dropped",
        "payload_limit": "bytes that a payload, with its context, tags, key and dependencies, or a result may have",
        "serializer": "the default [serialiser](handlers.md#serialisers): a name, or as an argument an object",
        "fair_queues": "the queues in which the keys of tasks [take turns](submitting.md#fair-queues); what counts is "
        "the configuration of whoever submits",
        "timezone": "the zone of [schedules](schedules.md) that name none",
    },
    "Calls to other hosts": {
        "endpoints": "the services that the [HTTP executor](http-executor.md) calls, by name",
        "allow_addresses": "the [addresses that may be called](outgoing-calls.md#which-addresses-may-be-called); empty "
        "means none",
        "call_limit": "how many calls of [remote workers](remote-workers.md) a node makes at a time",
        "callback_url": "where remote workers [report](remote-workers.md#reports) the end of a task that goes on after "
        "their answer",
        "grpc_targets": "services that [the executor `grpc`](grpc-executor.md#targets) calls, by name",
        "secret_file": "the file of the secret from which the keys of remote workers and webhooks are derived; 32 "
        "bytes or more",
        "webhooks": "the [webhooks](webhooks.md): endpoints that are told of events",
    },
    "Locks": {
        "lock_prefix": "comes before the name of every [lock](locks.md), in the store",
        "lock_ttl": "how long a lock outlives a holder that died; none is as long as `lease_ttl`",
    },
    "Logs": {
        "logger": "a logger instead of `tickwork`; only as an argument",
        "log_level": "`debug`, `info`, `warning`, `error` or `critical`; none leaves it to the program",
        "debug": "the same as `log_level` `debug`",
    },
    "Pages of a node": {
        "health": "serve [health checks](health.md)",
        "health_port": "their port; 0 takes any that is free, and the one of metrics may be shared",
        "health_check_interval": "how often health is checked, and changes of it logged, if nobody asks",
        "metrics": "serve [metrics](metrics.md) for Prometheus",
        "metrics_port": "their port; 0 takes any that is free, and the line `Listening` in the log tells which",
        "metrics_interval": "the page of metrics reads the numbers of the whole store at most once in this time, and "
        "the leader looks at [alert rules](alerts.md) so often",
        "host": "the address of this machine that `health_port` and `metrics_port` are of; `0.0.0.0` is all of them",
    },
    "Limits": {
        "rate_limit": "[submissions](limits.md) a second of all processes together, and burst",
        "breaker": "failures in a row that open the [breaker](limits.md) of a type, and seconds until it is tried",
    },
    "Alerts": {
        "monitoring": "let the leader look at [alert rules](alerts.md), and tell when one fires",
        "alert_rules": "`AlertRule(name, metric, threshold, operator, duration)`, beside those that are built in",
        "alerts_off": "the names of rules that are not looked at",
    },
    "Server": {
        "server": "serve the [API](api.md) and the [dashboard](dashboard.md)",
        "server_port": "their port; 0 takes any that is free, and that of health or metrics may be shared",
        "server_hosts": "host names by which it may be called, beside those of loopback",
        "server_namespaces": "further namespaces of the store that it serves",
        "server_tokens": "ask for [tokens](access.md) on loopback too",
        "server_tls_cert": "the file of a certificate, to serve HTTPS",
        "server_tls_key": "the file of its key",
        "server_socket": "the path of a Unix socket that only this user may open, instead of host and port",
        "server_mask": "fields of payloads that viewers do not see, such as `password` or `*_token`",
        "server_proxies": "networks of proxies that are believed when they name the user",
        "server_user_header": "the header in which they do",
        "server_roles": "the roles of these users; `*` is for all others",
        "server_grpc_port": "serve the [gRPC API](grpc-api.md) on this port too; 0 takes any that is free",
        "server_quota": "how much of a namespace may be used through the API: `waiting`, `queues`, `types`, "
        "`schedules`, `pauses`, `batch`",
    },
}

CRON_LINES = (
    ("* * * * *", "*/5 * * * *", "0 */2 * * *", "0 */6 * * *", "0 9-17 * * 1-5", "0 0 * * *", "0 0 * * 0", "0 0 1 * *")
    + ("0 0 L * *", "0 0 LW * *", "0 0 15W * *", "0 0 * * 5#3", "0 0 * * 5L", "0 0 13 * 5", "30 8 1,15 jan-mar *")
    + ("*/10 * * * * *", "0 * * * * *", "0 */5 * * * *", "0 0 * * * *", "0 0 2 * * *", "0 30 9 * * mon-fri")
    + ("@yearly", "@monthly", "@weekly", "@daily", "@hourly", "@every5m", "@every10m", "@every15m", "@every30m")
    + ("@every 90s", "@every 1h30m")
)

NEW_YORK = ZoneInfo("America/New_York")
DST_LINES: tuple[tuple[str, Dst], ...] = (
    ("30 2 * * *", "once"),
    ("0,30 2 * * *", "once"),
    ("0 2,3 * * *", "once"),
    ("30 1 * * *", "once"),
    ("*/30 * * * *", "once"),
    ("15 * * * *", "once"),
    ("*/20 2 * * *", "once"),
    ("30 2 * * *", "instant"),
    ("30 1 * * *", "instant"),
)


def statuses() -> Iterable[str]:
    return table("status", "means", rows=((code(status), STATUSES[status]) for status in Status))


def transitions() -> Iterable[str]:
    """One row for each operation and what it leads to; the statuses it may come from are drawn together."""
    merged: dict[tuple[Op, tuple[Status | None, ...]], list[Status | None]] = {}
    for source, op, targets in TABLE:
        merged.setdefault((op, targets), []).append(source)
    rows = (
        (_statuses(sources), code(op.value), _statuses(targets), OPERATIONS[op])
        for (op, targets), sources in merged.items()
    )
    return table("from", "operation", "to", "when", rows=rows)


def _statuses(some: Iterable[Status | None]) -> str:
    return ", ".join("(none)" if status is None else code(status.value) for status in some)


def facts() -> Iterable[str]:
    def line(fact: Fact) -> str:
        level, text, _ = logs.LINES.get(fact, (0, "", ()))
        return f"{logging.getLevelName(level)} {text}" if text else ""

    return table("fact", "means", "log line", rows=((code(fact.value), FACTS[fact], line(fact)) for fact in Fact))


def error_tree() -> Iterable[str]:
    text = inspect.cleandoc(errors.__doc__ or "").partition("\n\n")[2]
    trees = [part for part in re.split(r"\n(?=\S)", text) if part.strip()]
    tree, verdicts = trees[0], trees[1].partition("\n\n")[2]
    yield from ("```text", *_unindented(tree), "```", "", "A handler may raise these to say how its attempt ended:", "")
    yield from ("```text", *_unindented(verdicts), "```")


def _unindented(text: str) -> list[str]:
    return inspect.cleandoc("\n" + text.rstrip()).splitlines()


def options() -> Iterable[str]:
    described = [name for group in MEANINGS.values() for name in group]
    if sorted(described) != sorted(OPTIONS):
        raise SystemExit(f"docs/generate.py must describe each option once: {set(described) ^ set(OPTIONS)}")
    defaults = Config()
    for group, meanings in MEANINGS.items():
        yield from (f"**{group}**", "")
        yield from table(
            "option", "default", "means",
            rows=((code(name), _default(getattr(defaults, name)), meaning) for name, meaning in meanings.items()),
        )  # fmt: skip
        yield ""


def _default(value: Any) -> str:
    match value:
        case None:
            return "none"
        case True | False:
            return code(str(value).lower())
        case ExponentialBackoff():
            return f"[exponential](failures.md#strategies), {value.base:g} to {value.max:g}"
        case float():
            return f"{value:g}" if value < 1e5 else f"{value:.0f}"
        case int():
            return str(value)
        case () | {} | []:
            return "empty"
        case tuple():
            return code(", ".join(map(str, value)))
        case _:
            return "empty" if value == {} else code(str(value))


def aliases() -> Iterable[str]:
    parts = {"redis_pass": "part of `store`"}
    names: dict[str, list[str]] = {}
    for other, name in config_names.OTHER_NAMES.items():
        names.setdefault(name, []).append(other)
    rows = (
        (parts.get(name, code(name)), ", ".join(map(code, others)))
        for name, others in sorted(names.items())
        if name not in parts
    )
    return table("option", "also accepted as", rows=rows)


def sections() -> Iterable[str]:
    def keys(text: str) -> str:
        return ", ".join(
            f"{code(short)} (= {code(long)})" if long else code(short)
            for short, _, long in (entry.partition("=") for entry in text.split())
        )

    twins: dict[str, list[str]] = {}
    for name, text in config_names.SECTIONS.items():
        twins.setdefault(text, []).append(name)
    return table(
        "section", "may hold", rows=((", ".join(map(code, names)), keys(text)) for text, names in twins.items())
    )


def commands() -> Iterable[str]:
    for heading, some in COMMANDS.items():
        yield from (f"**{heading}**", "")
        yield from table("command", "does", rows=((code(name), text) for name, (_, text) in some.items()))
        yield ""


def cron_lines() -> Iterable[str]:
    return table("line", "means", rows=((code(line), Cron(line).describe()) for line in CRON_LINES))


def daylight_saving() -> Iterable[str]:
    """What lines do from 01:00 to 04:00 on the day clocks go forward, and until 03:00 when they go back."""

    def runs(line: str, dst: Dst, start: datetime, end: datetime) -> str:
        at, found = start - timedelta(seconds=1), list[str]()
        cron = Cron(line, "America/New_York", dst)
        while (following := cron.next(at)) is not None and following.astimezone(UTC) < end:
            found.append(f"{following:%H:%M %Z}")
            at = following
        return ", ".join(found) or "no run"

    spring = [datetime(2026, 3, 8, hour, tzinfo=NEW_YORK).astimezone(UTC) for hour in (1, 4)]
    autumn = [datetime(2026, 11, 1, hour, tzinfo=NEW_YORK).astimezone(UTC) for hour in (1, 3)]
    rows = (
        (code(line), "`dst=instant`" if dst == "instant" else kind_of(line), runs(line, dst, *spring),
         runs(line, dst, *autumn))
        for line, dst in DST_LINES
    )  # fmt: skip
    return table("line", "kind", "8 March 2026, 02:00 EST becomes 03:00 EDT",
                 "1 November 2026, 02:00 EDT becomes 01:00 EST", rows=rows)  # fmt: skip


def kind_of(line: str) -> str:
    minute, hour = line.split()[:2]
    return "interval" if minute.startswith("*") or hour.startswith("*") else "fixed"


def alert_rules() -> Iterable[str]:
    def condition(rule: AlertRule) -> str:
        return f"{code(f'{rule.metric} {rule.operator} {rule.threshold:g}')} for {rule.duration:g} s"

    return table("rule", "fires when", rows=((code(rule.name), condition(rule)) for rule in BUILT_IN))


def alert_metrics() -> Iterable[str]:
    return table("metric", "is", rows=((code(name), meaning) for name, meaning in METRICS.items()))


def redis_keys() -> Iterable[str]:
    for heading, keys in (
        ("In every partition", TASK_KEYS),
        ("Once in a namespace", NAMESPACE_KEYS),
        ("Once in a namespace, out of reach for workers, with `control:{shop}:3:` in front", CONTROL_KEYS),
    ):
        yield from (f"**{heading}**", "")
        yield from table("key", "type", "holds", "bound", rows=((code(k.name), k.kind, k.holds, k.bound) for k in keys))
        yield ""


def metrics() -> Iterable[str]:
    from tickwork.monitor.exposition import TABLE  # it needs an extra

    rows = ((code(row.name), row.kind, ", ".join(map(code, row.labels)), row.text) for row in TABLE)
    return table("metric", "kind", "labels", "what it tells", rows=rows)


def api_operations() -> Iterable[str]:
    """Every operation of the API: how it is asked for, and the least role that may."""
    rows = (
        (code(f"{each.method} {each.path}"), code(LEAST[each.right].value), f"{each.summary}.")
        for each in operations().values()
    )
    return table("request", "role", "does", rows=rows)


PARTS: dict[str, Callable[[], Iterable[str]]] = {
    "operations": api_operations,
    "redis_keys": redis_keys,
    "statuses": statuses,
    "transitions": transitions,
    "facts": facts,
    "errors": error_tree,
    "options": options,
    "aliases": aliases,
    "sections": sections,
    "commands": commands,
    "crons": cron_lines,
    "dst": daylight_saving,
    "metrics": metrics,
    "alert_rules": alert_rules,
    "alert_metrics": alert_metrics,
}


def code(text: str) -> str:
    return f"`{text}`"


def table(*head: str, rows: Iterable[tuple[str, ...]]) -> list[str]:
    lines = [head, ("---",) * len(head), *rows]
    return [f"| {' | '.join(cells)} |".replace("|  |", "| |") for cells in lines]


def generated(text: str) -> str:
    """The page with all its parts as they should be."""

    def fill(found: re.Match[str]) -> str:
        body = "\n".join(PARTS[found[1]]()).strip()
        return f"<!-- generated: {found[1]} -->\n{body}\n<!-- end -->"

    return re.sub(r"<!-- generated: (\w+) -->\n.*?<!-- end -->", fill, text, flags=re.DOTALL)


def main() -> None:
    for page in sorted(FOLDER.glob("*.md")):
        old = page.read_text()
        new = generated(old)
        if new != old:
            page.write_text(new)
            print(f"rewrote {page.name}")


if __name__ == "__main__":
    main()
