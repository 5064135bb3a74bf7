"""The names that options go by: in a file, in the environment and as arguments.

`entries_of_mapping` and `entries_of_environment` find out which option each name means.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from typing import Any, NamedTuple

from tickwork.config.values import nearest
from tickwork.errors import ConfigError

PREFIX = "TICKWORK_"
FILE_VARIABLE = "TICKWORK_CONFIG"

OTHER_NAMES = {
    "worker_id": "scheduler_id",
    "worker_concurrency": "concurrency",
    "capacity": "concurrency",
    "max_concurrent_tasks": "concurrency",
    "heartbeat_timeout": "lease_ttl",
    "heartbeat_interval": "renew_interval",
    "leader_lock_ttl": "leader_lease_ttl",
    "max_retries": "max_retry",
    "task_retry_limit": "max_retry",
    "retry_strategy": "retry",
    "default_timeout": "timeout",
    "task_timeout": "timeout",
    "deduplication": "dedup",
    "deduplication_ttl": "dedup_ttl",
    "dlq_max_size": "dlq_max",
    "circuit_breaker": "breaker",
    "enable_metrics": "metrics",
    "enable_health": "health",
    "enable_monitoring": "monitoring",
    "redis_password": "redis_pass",
    "redis_password_file": "redis_pass_file",
    "custom_logger": "logger",
}

_SCHEDULER = (
    "id=scheduler_id namespace timezone leader_lease_ttl leader_lock_ttl leader_renew_interval scan_interval batch_size"
    " cleanup_interval dispatch load_balance_strategy fair_queues partitions"
)
_DEDUP = "enabled=dedup ttl=dedup_ttl default_ttl=dedup_ttl"
# What a section may hold; in `short=name` both are accepted.
SECTIONS = {
    "schedule": _SCHEDULER,
    "scheduler": _SCHEDULER,
    "worker": "id=scheduler_id count=worker_count worker_count concurrency worker_concurrency capacity"
    " max_concurrent_tasks heartbeat_interval heartbeat_timeout lease_ttl renew_interval queues task_types labels"
    " weight address worker_timeout shutdown_timeout max_tasks_per_child",
    "task": "timeout default_timeout max_retry max_retries task_retry_limit retry_limit=max_retry retry retry_strategy"
    " retry_delay backoff_rate max_losses payload_limit version_grace retention retention_max serializer",
    "redis": "addr=redis_addr db=redis_db pass=redis_pass password=redis_pass pass_file=redis_pass_file"
    " password_file=redis_pass_file pool_size",
    "leader": "lease_ttl=leader_lease_ttl lock_ttl=leader_lease_ttl renew_interval=leader_renew_interval",
    "dedup": _DEDUP,
    "deduplication": _DEDUP,
    "dlq": "enabled=dlq max=dlq_max max_size=dlq_max",
    "lock": "prefix=lock_prefix ttl=lock_ttl",
    "metrics": "enabled=metrics port=metrics_port interval=metrics_interval",
    "health": "enabled=health port=health_port check_interval=health_check_interval",
    "server": "enabled=server port=server_port hosts=server_hosts namespaces=server_namespaces tokens=server_tokens"
    " tls_cert=server_tls_cert tls_key=server_tls_key socket=server_socket mask=server_mask proxies=server_proxies"
    " user_header=server_user_header roles=server_roles grpc_port=server_grpc_port quota=server_quota",
    "monitoring": "enabled=monitoring metrics_interval health_check_interval alert_rules alerts_off",
    "log": "level=log_level debug",
}


def _section(text: str) -> dict[str, str]:
    names: dict[str, str] = {}
    for short, _, long in (entry.partition("=") for entry in text.split()):
        names[short] = names[long or short] = OTHER_NAMES.get(long or short, long or short)
    return names


_IN_SECTION = {section: _section(text) for section, text in SECTIONS.items()}

# Kubernetes puts these into every pod when a service is called tickwork or, say, tickwork-metrics.
_OF_KUBERNETES = re.compile(r"_(SERVICE_HOST|SERVICE_PORT\w*|PORT_\d+_(TCP|UDP|SCTP)\w*)=|_PORT=\w+://")


class Entry(NamedTuple):
    key: str  # as it was written
    name: str  # the option that it means
    value: Any
    origin: str
    layer: int = 0


def entries_of_mapping(given: Mapping[Any, Any], origin: str, options: Collection[str]) -> Iterator[Entry]:
    top_level = OTHER_NAMES | {name: name for name in options}
    for key, value in given.items():
        if key in SECTIONS and isinstance(value, Mapping):
            for inner, each in value.items():
                path = f"{key}.{inner}"
                yield Entry(path, _meant(inner, _IN_SECTION[key], path, origin), each, origin)
        elif key in top_level or key not in SECTIONS:
            yield Entry(str(key), _meant(key, top_level, str(key), origin), value, origin)
        elif value is not None:
            example = next(iter(_IN_SECTION[key]))
            raise ConfigError(f"{key}: is a section ({origin}); write options such as {example} below it")


def entries_of_environment(environ: Mapping[str, str], options: Collection[str]) -> Iterator[Entry]:
    known = OTHER_NAMES | {name: name for name in options}
    for variable, value in environ.items():
        ours = variable.startswith(PREFIX) and variable != FILE_VARIABLE
        if ours and value and not _OF_KUBERNETES.search(f"{variable}={value}"):
            key, origin = variable.removeprefix(PREFIX).lower(), f"environment {variable}"
            yield Entry(key, _meant(key, known, key, origin), value, origin)


def _meant(name: Any, known: Mapping[str, str], path: str, origin: str) -> str:
    if name in known:
        return known[name]
    raise ConfigError(f"{path}: unknown option ({origin}){nearest(name, known)}")
