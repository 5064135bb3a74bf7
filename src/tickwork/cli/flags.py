"""A flag for every option of `Config`, made from its fields so that none is ever missing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click
from msgspec.structs import fields

from tickwork.backoff import Seconds
from tickwork.config import CHOICES, Config

F = TypeVar("F", bound=Callable[..., Any])

# Those that are said in another way on a command line, or that cannot be said there.
ELSEWHERE = {"store", "namespace", "logger", "webhooks"}
HELP = {
    "scheduler_id": "Name of this node; no other process may have it. Generated if left out.",
    "queues": "Queues to take tasks from.",
    "worker_count": "Workers in this process.",
    "concurrency": "Tasks that one worker runs at a time.",
    "task_types": "Task types to run; all that are registered if left out.",
    "max_tasks_per_child": "Tasks after which a child process is replaced; 0 means no limit.",
    "labels": "What this worker has; tasks may require it.",
    "weight": "Its share of assigned tasks, beside that of others.",
    "address": "Where this worker can be found; only shown.",
    "lease_ttl": "Time without a renewal after which a task is run elsewhere.",
    "renew_interval": "Time between two renewals of leases.",
    "leader_lease_ttl": "Time without a renewal after which another node leads.",
    "leader_renew_interval": "Time between two renewals of the leadership.",
    "scan_interval": "Longest time between two looks for work.",
    "batch_size": "Largest number of tasks in one call to the store.",
    "max_retry": "Retries after the first attempt.",
    "retry": 'Strategy between attempts, as JSON: {"type": "fixed", ...}.',
    "timeout": "Time limit of one attempt; 0 means no limit.",
    "max_losses": "Lost workers after which a task is not run again.",
    "when_cut_off": "What handlers do when the store was unreachable for a lease.",
    "dedup": "Refuse a task whose dedup key another task holds.",
    "dedup_ttl": "How long a task holds its dedup key.",
    "dlq": "Keep tasks that failed for good as dead letters.",
    "dlq_max": "Largest number of dead letters; the oldest are dropped first.",
    "rate_limit": "Submissions a second, and burst.",
    "breaker": "Failures in a row that stop a type, and for how long.",
    "dispatch": "pull or assigned, or one for each queue.",
    "load_balance_strategy": "How assigned work is spread.",
    "fair_queues": "Queues in which the keys of tasks take turns.",
    "partitions": "Number of partitions of the namespace (Redis).",
    "durability": "How safely a task is stored before its submit returns.",
    "payload_limit": "Largest size of a payload in bytes.",
    "version_grace": "How long a task whose payload does not fit here waits for a worker of another version.",
    "retention": "How long ended tasks are kept.",
    "retention_max": "How many ended tasks are kept.",
    "cleanup_interval": "Time between two removals of old tasks.",
    "shutdown_timeout": "How long a shutdown waits for running tasks.",
    "timezone": "Time zone of cron lines that name none.",
    "serializer": "How payloads are written.",
    "host": "Address of this machine that metrics and health checks are served at.",
    "metrics": "Serve metrics.",
    "metrics_port": "The port for them; 0 takes any that is free, which the log tells.",
    "health": "Serve health checks.",
    "health_port": "The port for them; 0 takes any that is free, which the log tells.",
    "server": "Serve the API and the dashboard.",
    "server_port": "The port for them; 0 takes any that is free, which the log tells.",
    "server_hosts": "Host names by which the server may be called, beside localhost.",
    "server_namespaces": "Further namespaces of the store that it serves.",
    "server_tokens": "Ask for tokens on loopback too.",
    "server_tls_cert": "File of the certificate, to serve HTTPS.",
    "server_tls_key": "File of the key of the certificate.",
    "server_socket": "Path of a Unix socket to listen on, instead of a port.",
    "server_mask": "Names of fields in payloads that viewers do not see, such as password,*_token.",
    "server_proxies": "Networks of proxies whose user header is believed.",
    "server_user_header": "Header in which such a proxy names the user.",
    "server_roles": "Roles of those users; * is for all others.",
    "server_grpc_port": "Serve the gRPC API on this port too; 0 takes any that is free.",
    "server_quota": "How much of the namespace may be used through the API, as JSON.",
    "monitoring": "Watch over alert rules.",
    "metrics_interval": "Time between two reads of the store's numbers for metrics, and two looks at alert rules.",
    "health_check_interval": "Time between two health checks that nobody asked for.",
    "alert_rules": "Rules, as a JSON list.",
    "alerts_off": "Names of rules that are not looked at, with commas between.",
    "worker_timeout": "Time without a heartbeat after which a remote worker is offline.",
    "allow_addresses": "Addresses that may be called, such as https://api.example.com.",
    "secret_file": "File of the secret from which the keys for calls are derived.",
    "callback_url": "Where remote workers report the end of a task that goes on after their answer.",
    "call_limit": "Remote workers that this node calls at a time.",
    "endpoints": "Services that the executor http calls, as JSON.",
    "grpc_targets": "Services that the executor grpc calls, as JSON.",
    "lock_prefix": "Prefix of lock names.",
    "lock_ttl": "How long a lock outlives its holder; lease_ttl if left out.",
    "pool_size": "Connections to the store.",
    "store_timeout": "How long a call waits for a store that cannot be reached.",
    "submit_timeout": "How long a whole submit waits for it, with the opening of the store.",
    "events": "Keep the log of events.",
    "statistics": "Keep statistics for reports, made from that log.",
    "log_level": "Lowest level that is logged.",
    "debug": "Log everything.",
}

METAVARS: dict[Any, str] = {
    int: "N",
    Seconds: "TIME",
    Seconds | None: "TIME",
    tuple[str, ...]: "A,B",
    tuple[str, ...] | None: "A,B",
    dict[str, str]: "NAME=VALUE,..",
    tuple[float, int] | None: "RATE,BURST",
    tuple[int, Seconds] | None: "N,TIME",
}


def config_flags(function: F) -> F:
    for field in reversed(fields(Config)):
        if field.name not in ELSEWHERE:
            function = _flag(field.name, field.type)(function)
    return function


def _flag(name: str, kind: Any) -> Callable[[F], F]:
    flag = f"--{name.replace('_', '-')}"
    text = HELP.get(name, "")
    default = getattr(Config(), name)
    if kind is bool:
        return ConfigFlag.make(f"{flag}/--no-{flag[2:]}", name, default=None, help=f"{text}  [{_word(default)}]")
    if default is not None and not isinstance(default, str | int | float | tuple):
        default = None
    shown = _printed(default, kind)
    if name in CHOICES:
        return ConfigFlag.make(flag, name, type=click.Choice(CHOICES[name]), help=text + shown)
    return ConfigFlag.make(flag, name, metavar=METAVARS.get(kind, "TEXT"), help=text + shown)


def _word(switch: bool) -> str:
    return "on" if switch else "off"


def _printed(default: Any, kind: Any) -> str:
    if default in (None, ()):
        return ""
    if kind is Seconds:
        from tickwork.cli.output import duration

        return f"  [{duration(default)}]"
    return f"  [{','.join(default) if isinstance(default, tuple) else default}]"


class ConfigFlag(click.Option):
    """Tells these from a command's own options, so that its help can show them apart."""

    @classmethod
    def make(cls, *names: str, **attributes: Any) -> Callable[[F], F]:
        return click.option(*names, cls=cls, **attributes)


class ConfiguredCommand(click.Command):
    """A command whose help shows its own options first, then those of the configuration."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        for heading, wanted in (("Options", False), ("Configuration (also TICKWORK_<NAME>, and in the file)", True)):
            records = [
                record
                for param in self.get_params(ctx)
                if isinstance(param, click.Option) and isinstance(param, ConfigFlag) is wanted
                if (record := param.get_help_record(ctx)) is not None
            ]
            with formatter.section(heading):
                formatter.write_dl(records)
