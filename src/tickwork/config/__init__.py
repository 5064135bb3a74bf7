"""Every option of a scheduler: one frozen `Config`.

`loading.py` puts it together, `checks.py` refuses what cannot work, `names.py`, `values.py` and `readers.py` know how
options may be written.
"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any, Unpack

from msgspec import Struct, field
from msgspec.structs import force_setattr

from tickwork.backoff import Backoff, Duration, ExponentialBackoff, Seconds
from tickwork.config.endpoints import Endpoint
from tickwork.config.grpc import GrpcTarget
from tickwork.config.urls import mask_url
from tickwork.config.webhooks import Webhook
from tickwork.model.policy import DURABILITIES, WHEN_CUT_OFF
from tickwork.texts import shown

if TYPE_CHECKING:
    from tickwork.config.options import ConfigOptions

SUBMIT_TIMEOUT = 15.0  # seconds, as patient as Redis connections are by themselves
DISPATCH_MODES = ("pull", "assigned")
OPERATORS = (">", "<", ">=", "<=", "==")
CHOICES = {
    "durability": DURABILITIES,
    "when_cut_off": WHEN_CUT_OFF,
    "serializer": ("json", "msgpack", "protobuf"),
    "log_level": ("debug", "info", "warning", "error", "critical"),
}


class AlertRule(Struct, frozen=True):
    """Alert when `metric operator threshold` has held for `duration` seconds."""

    name: str
    metric: str
    threshold: float
    operator: str
    duration: Seconds = 0.0

    if TYPE_CHECKING:  # it takes more than it has: a timedelta becomes seconds

        def __init__(
            self, name: str, metric: str, threshold: float, operator: str, duration: Duration = 0.0
        ) -> None: ...

    def __post_init__(self) -> None:
        force_setattr(self, "duration", _plain(self.duration))


class Config(Struct, frozen=True, kw_only=True):
    """All options with their defaults; durations are seconds, and may be given as timedeltas."""

    store: str | None = None
    namespace: str = "scheduler"
    scheduler_id: str | None = None
    queues: tuple[str, ...] = ("default",)
    worker_count: int = 1
    concurrency: int = 10
    task_types: tuple[str, ...] | None = None  # all that are registered
    max_tasks_per_child: int = 0  # 0 is no limit
    labels: dict[str, str] = field(default_factory=dict)
    weight: int = 1
    address: str = ""  # shown with its workers
    lease_ttl: Seconds = 30.0
    renew_interval: Seconds = 10.0
    leader_lease_ttl: Seconds = 10.0
    leader_renew_interval: Seconds = 3.0
    scan_interval: Seconds = 1.0
    batch_size: int = 100
    max_retry: int = 3
    retry: Backoff = ExponentialBackoff()
    timeout: Seconds = 300.0  # 0 is none
    max_losses: int = 3
    when_cut_off: str = "stop"
    dedup: bool = True
    dedup_ttl: Seconds = 3600.0
    dlq: bool = True
    dlq_max: int = 10_000
    rate_limit: tuple[float, int] | None = None  # submissions a second, burst
    breaker: tuple[int, Seconds] | None = None  # failures in a row that open it, time until it is tried again
    dispatch: str | dict[str, str] = "pull"  # a mode, or one for each queue
    load_balance_strategy: str = "least_tasks"
    fair_queues: tuple[str, ...] = ()  # those whose keys take turns
    partitions: int = 1
    durability: str = "memory"
    payload_limit: int = 262_144  # bytes
    version_grace: Seconds = 3600.0  # 0 is none
    retention: Seconds = 604_800.0
    retention_max: int = 1_000_000  # ended tasks kept, the oldest go first
    cleanup_interval: Seconds = 300.0
    shutdown_timeout: Seconds = 30.0
    timezone: str = "UTC"
    serializer: Any = "json"
    host: str = "127.0.0.1"  # that the ports below are of
    metrics: bool = False
    metrics_port: int = 9090
    health: bool = False
    health_port: int = 8080
    server: bool = False
    server_port: int = 8080
    server_hosts: tuple[str, ...] = ()  # by which it may be called, beside those of loopback
    server_namespaces: tuple[str, ...] = ()  # that it serves, beside its own
    server_tokens: bool = False  # ask for tokens on loopback too
    server_tls_cert: str | None = None
    server_tls_key: str | None = None
    server_socket: str | None = None  # a Unix socket instead of host and port
    server_mask: tuple[str, ...] = ()  # fields of payloads that viewers do not see
    server_proxies: tuple[str, ...] = ()  # networks whose user header is believed
    server_user_header: str | None = None
    server_roles: dict[str, str] = field(default_factory=dict)  # of users that a proxy names; `*` for all others
    server_grpc_port: int | None = None
    server_quota: dict[str, int] = field(default_factory=dict)
    monitoring: bool = False
    metrics_interval: Seconds = 30.0
    health_check_interval: Seconds = 60.0
    alert_rules: tuple[AlertRule, ...] = ()
    alerts_off: tuple[str, ...] = ()  # rules that are not looked at
    worker_timeout: Seconds = 120.0  # remote workers
    allow_addresses: tuple[str, ...] = ()  # what may be called
    secret_file: str | None = None
    webhooks: tuple[Webhook, ...] = ()
    callback_url: str | None = None  # where remote workers report
    call_limit: int = 1000  # calls of remote workers at a time
    endpoints: dict[str, Endpoint] = field(default_factory=dict)
    grpc_targets: dict[str, GrpcTarget] = field(default_factory=dict)
    lock_prefix: str = "task:lock:"
    lock_ttl: Seconds | None = None  # as long as the lease
    pool_size: int = 10
    store_timeout: Seconds | None = None  # as patient as the store: 15 seconds on Redis
    submit_timeout: Seconds = SUBMIT_TIMEOUT
    events: bool = True
    statistics: bool = True
    logger: Any = None
    log_level: str | None = None  # what the program has set
    debug: bool = False

    if TYPE_CHECKING:  # it takes more than it has: see `config/options.py`

        def __init__(self, **options: Unpack[ConfigOptions]) -> None: ...

    def __post_init__(self) -> None:
        for name in self.__struct_fields__:
            force_setattr(self, name, _plain(getattr(self, name)))
        if self.load_balance_strategy == "least_task":
            force_setattr(self, "load_balance_strategy", "least_tasks")
        if self.log_level:
            force_setattr(self, "log_level", self.log_level.lower())

    def is_assigned(self, queue: str) -> bool:
        """Whether the leader assigns the tasks of this queue to workers."""
        mode = self.dispatch if isinstance(self.dispatch, str) else self.dispatch.get(queue, "pull")
        return mode == "assigned"

    def __repr__(self) -> str:
        return f"Config({', '.join(f'{name}={shown_option(name, getattr(self, name))}' for name in OPTIONS)})"


OPTIONS = Config.__struct_fields__


def _plain(value: Any) -> Any:
    if isinstance(value, timedelta):
        return value.total_seconds()
    return tuple(map(_plain, value)) if isinstance(value, list | tuple) else value


def shown_option(name: str, value: Any) -> str:
    if name == "redis_pass":
        return "***"
    if name in ("endpoints", "grpc_targets") and isinstance(value, dict):  # headers and metadata may be confidential
        return f"targets {', '.join(map(shown, value)) or 'none'}"
    if name == "webhooks" and value and not all(isinstance(each, Webhook) for each in value):
        return "a list of webhooks"  # their addresses may be confidential
    if name in ("store", "redis_addr") and value is not None:
        return repr(mask_url(value)) if isinstance(value, str) else f"a {type(value).__name__}"
    return shown(value)
