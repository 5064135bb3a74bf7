"""The options as arguments in code, for type checkers: `Scheduler(concurency=5)` is a mistake, as is `timeout="5s"`.

A file and the environment hold text, so more is read at run time than is allowed here. What is allowed beside the types
of `Config`: a timedelta where a duration goes, and any sequence or mapping.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypedDict

from tickwork.backoff import Backoff, Duration
from tickwork.config.endpoints import Endpoint
from tickwork.config.grpc import GrpcTarget
from tickwork.config.webhooks import WebhookLike
from tickwork.model.policy import Durability, WhenCutOff
from tickwork.payload.codec import Serializer

if TYPE_CHECKING:
    from tickwork.config import AlertRule


class _Options(TypedDict, total=False):
    """Those of `Config` that are no parameters of `Scheduler` in their own right."""

    scheduler_id: str | None
    queues: Sequence[str]
    worker_count: int
    concurrency: int
    task_types: Sequence[str] | None
    max_tasks_per_child: int
    labels: Mapping[str, str]
    weight: int
    address: str
    lease_ttl: Duration
    renew_interval: Duration
    leader_lease_ttl: Duration
    leader_renew_interval: Duration
    scan_interval: Duration
    batch_size: int
    max_retry: int
    retry: Backoff
    timeout: Duration
    max_losses: int
    when_cut_off: WhenCutOff
    dedup: bool
    dedup_ttl: Duration
    dlq: bool
    dlq_max: int
    rate_limit: tuple[float, int] | None
    breaker: tuple[int, Duration] | None
    dispatch: str | Mapping[str, str]
    load_balance_strategy: str
    fair_queues: Sequence[str]
    partitions: int
    durability: Durability
    payload_limit: int
    version_grace: Duration
    retention: Duration
    retention_max: int
    cleanup_interval: Duration
    shutdown_timeout: Duration
    timezone: str
    serializer: str | Serializer
    host: str
    metrics: bool
    metrics_port: int
    health: bool
    health_port: int
    server: bool
    server_port: int
    server_hosts: Sequence[str]
    server_namespaces: Sequence[str]
    server_tokens: bool
    server_tls_cert: str | None
    server_tls_key: str | None
    server_socket: str | None
    server_mask: Sequence[str]
    server_proxies: Sequence[str]
    server_user_header: str | None
    server_roles: Mapping[str, str]
    server_grpc_port: int | None
    server_quota: Mapping[str, int]
    monitoring: bool
    metrics_interval: Duration
    health_check_interval: Duration
    alert_rules: Sequence[AlertRule]
    alerts_off: Sequence[str]
    worker_timeout: Duration
    allow_addresses: Sequence[str]
    secret_file: str | None
    webhooks: Sequence[WebhookLike]
    callback_url: str | None
    call_limit: int
    endpoints: Mapping[str, Endpoint | Mapping[str, Any]]
    grpc_targets: Mapping[str, GrpcTarget | Mapping[str, Any]]
    lock_prefix: str
    lock_ttl: Duration | None
    pool_size: int
    store_timeout: Duration | None
    submit_timeout: Duration
    events: bool
    statistics: bool
    logger: Any
    log_level: str | None
    debug: bool


class ConfigOptions(_Options, total=False):
    """What `Config(...)` takes: each of its fields."""

    store: str | None
    namespace: str


class _OtherNames(TypedDict, total=False):
    """Names that mean the same as another, and parts of `store` and `retry`."""

    redis_addr: str | None
    redis_db: int | None
    redis_pass: str | None
    redis_pass_file: str | None
    retry_delay: Duration | None
    backoff_rate: float | None
    worker_id: str | None
    worker_concurrency: int
    capacity: int
    max_concurrent_tasks: int
    heartbeat_timeout: Duration
    heartbeat_interval: Duration
    leader_lock_ttl: Duration
    max_retries: int
    task_retry_limit: int
    retry_strategy: Backoff
    default_timeout: Duration
    task_timeout: Duration
    deduplication: bool
    deduplication_ttl: Duration
    dlq_max_size: int
    circuit_breaker: tuple[int, Duration] | None
    enable_metrics: bool
    enable_health: bool
    enable_monitoring: bool
    redis_password: str | None
    redis_password_file: str | None
    custom_logger: Any


class SchedulerOptions(_Options, _OtherNames, total=False):
    """What `Scheduler(...)` takes beside its own parameters."""


class ChangedOptions(ConfigOptions, _OtherNames, total=False):
    """What `app.configure(...)` takes."""
