"""Every option of a scheduler: one frozen `Config`, and how its layers are put together.

A file is overruled by the environment, the environment by a `config` object, and that by arguments. A layer holds only
what was set in it, so a default never overrules anything; only a `Config` is whole, and its defaults count as set.
`names.py` and `values.py` know how options may be written.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack
from urllib.parse import parse_qsl, quote

import msgspec
from msgspec import Struct, field
from msgspec.structs import fields, force_setattr

from tickwork.backoff import Backoff, Duration, ExponentialBackoff, RetryPolicy, Seconds
from tickwork.config import names as config_names
from tickwork.config import values as values
from tickwork.config.urls import mask_url
from tickwork.config.yaml import read_yaml
from tickwork.errors import LONGEST_WAIT, ConfigError
from tickwork.ids import is_name
from tickwork.model.policy import DURABILITIES, WHEN_CUT_OFF
from tickwork.observe.loggers import METHODS, as_logger, is_logger
from tickwork.texts import shown

if TYPE_CHECKING:
    from tickwork.config.options import ConfigOptions

FILE, ENVIRONMENT, OBJECT, ARGUMENT = range(4)
OF_OBJECT, OF_ARGUMENT = "config argument", "argument"  # origins
DEFAULT_FILE = "tickwork.yaml"
DISPATCH_MODES = ("pull", "assigned")
OPERATORS = (">", "<", ">=", "<=", "==")
STRATEGIES = ("least_tasks", "round_robin", "random", "weighted_round_robin", "consistent_hash", "capacity_based")
CHOICES = {
    "durability": DURABILITIES,
    "when_cut_off": WHEN_CUT_OFF,
    "load_balance_strategy": STRATEGIES,
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
    labels: dict[str, str] = field(default_factory=dict)
    weight: int = 1
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
    metrics: bool = False
    metrics_port: int = 9090
    health: bool = False
    health_port: int = 8080
    server: bool = False
    monitoring: bool = False
    metrics_interval: Seconds = 30.0
    health_check_interval: Seconds = 60.0
    alert_rules: tuple[AlertRule, ...] = ()
    worker_timeout: Seconds = 120.0  # remote workers
    lock_prefix: str = "task:lock:"
    lock_ttl: Seconds | None = None  # as long as the lease
    pool_size: int = 10
    store_timeout: Seconds | None = None  # as patient as the store: 15 seconds on Redis
    events: bool = True
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

    def __repr__(self) -> str:
        return f"Config({', '.join(f'{name}={_shown(name, getattr(self, name))}' for name in OPTIONS)})"


OPTIONS = Config.__struct_fields__
WITHOUT_EFFECT = (
    "alert_rules", "breaker", "dispatch", "health", "health_check_interval", "health_port", "load_balance_strategy",
    "metrics", "metrics_interval", "metrics_port", "monitoring", "rate_limit", "server",
)  # fmt: skip
"""Read and checked already, but nothing goes by them yet."""


def _plain(value: Any) -> Any:
    if isinstance(value, timedelta):
        return value.total_seconds()
    return tuple(map(_plain, value)) if isinstance(value, list | tuple) else value


class Loaded(Struct, frozen=True):
    config: Config
    origins: dict[str, str]
    warnings: list[str]

    def set_in_code(self) -> dict[str, Any]:
        """What arguments have set, in whole or in part."""
        said = {OF_OBJECT, OF_ARGUMENT}
        names = [name for name, origin in self.origins.items() if said & set(origin.split(", "))]
        return {name: getattr(self.config, name) for name in names}


def _read_address(value: Any) -> str:
    if re.fullmatch(r"(\[[0-9a-fA-F:.]+\]|[^\s:/?#@,\[\]]+)(:[0-9]{1,5})?", values.read_text(value)):
        return str(value)
    raise ValueError("is not host:port; a whole URL goes into store")


def _read_serializer(value: Any) -> Any:
    if isinstance(value, str) or (hasattr(value, "encode") and hasattr(value, "decode")):
        return value
    raise ValueError(f"is not a serializer, nor the name of one ({', '.join(CHOICES['serializer'])})")


def _read_logger(value: Any) -> Any:
    if is_logger(value):
        return as_logger(value)
    raise ValueError(
        f"is not a logger, which has the methods {', '.join(METHODS)}; it can only be given as an argument"
    )


_READERS: dict[str, values.Reader] = {
    **values.readers_of(Config),
    "rate_limit": partial(values.read_couple, rate=float, burst=int),
    "breaker": partial(values.read_couple, max_failures=int, timeout=Seconds),
    "serializer": _read_serializer,
    "logger": _read_logger,
    # Parts of other options, see `load`.
    "redis_addr": _read_address,
    "redis_db": values.read_whole,
    "redis_pass": values.read_text,
    "redis_pass_file": values.read_text,
    "retry_delay": values.read_seconds,
    "backoff_rate": values.read_number,
}


def load(
    arguments: Mapping[str, Any] | None = None,
    *,
    config: Mapping[str, Any] | Config | None = None,
    file: str | os.PathLike[str] | None = None,
    environ: Mapping[str, str] | None = None,
    default_file: bool = False,
) -> Loaded:
    """Put the layers together and check the whole.

    `config` is a mapping, or a `Config`, whose every field counts as set but a `store` that is None. The file is
    `file`, else the one that `TICKWORK_CONFIG` names, else, if `default_file` is true and it exists, `tickwork.yaml` in
    the working directory.
    """
    environ = os.environ if environ is None else environ
    file = file or environ.get(config_names.FILE_VARIABLE)
    found = not file and default_file and Path(DEFAULT_FILE).exists()
    if found:
        file = DEFAULT_FILE
    from_file = read_yaml(Path(file)) if file else {}
    settings = _layer(FILE, config_names.entries_of_mapping(from_file, f"file {file}", _READERS))
    settings |= _layer(ENVIRONMENT, config_names.entries_of_environment(environ, _READERS))
    given = _options_of(config) if isinstance(config, Config) else config or {}
    settings |= _layer(OBJECT, config_names.entries_of_mapping(given, OF_OBJECT, _READERS))
    settings |= _layer(ARGUMENT, config_names.entries_of_mapping(arguments or {}, OF_ARGUMENT, _READERS))
    if found:
        _guard_passwords(settings)
    _unite(settings, "store", ("redis_addr", "redis_db", "redis_pass", "redis_pass_file"), _redis_url)
    _unite(settings, "retry", ("retry_delay", "backoff_rate"), lambda **parts: RetryPolicy(**parts).backoff)
    _split_policy(settings)
    loaded = Config(**{name: setting.value for name, setting in settings.items()})
    origins = {name: settings[name].origin if name in settings else "default" for name in OPTIONS}
    return Loaded(loaded, origins, validate(loaded, origins))


def _layer(layer: int, entries: Iterable[config_names.Entry]) -> dict[str, config_names.Entry]:
    settings: dict[str, config_names.Entry] = {}
    for entry in entries:
        key, name, value, origin, _ = entry
        if value is None and (layer == FILE or name == "store" or name not in OPTIONS):
            continue
        if name in settings:
            raise ConfigError(f"{settings[name].key} and {key} are one option ({origin}); set only one of them")
        try:
            read = value if value is None and name in _MAY_BE_NONE else _READERS[name](value)
        except ValueError as error:
            raise ConfigError(f"{key}: {_shown(name, value)} ({origin}) {error}") from None
        settings[name] = entry._replace(value=read, layer=layer)
    return settings


def _unite(
    settings: dict[str, config_names.Entry], whole: str, parts: tuple[str, ...], build: Callable[..., Any]
) -> None:
    """Make an option of its parts. The first part, and the whole, each replace what lower layers say."""
    given = {part: settings.pop(part) for part in parts if part in settings}
    if not given:
        return
    rival, first, last = settings.get(whole), given.get(parts[0]), max(given.values(), key=lambda part: part.layer)
    if rival and rival.layer > last.layer:
        return
    if rival and (not first or first.layer <= rival.layer):
        raise ConfigError(f"{rival.key} ({rival.origin}) and {last.key} ({last.origin}) exclude each other")
    origin = ", ".join(dict.fromkeys(part.origin for part in given.values()))
    try:
        value = build(**{name: part.value for name, part in given.items()})
    except ConfigError as error:
        raise ConfigError(f"{' and '.join(given)} ({origin}): {error}") from None
    settings[whole] = config_names.Entry(last.key, whole, value, origin, last.layer)


def _options_of(config: Config) -> dict[str, Any]:
    given = {name: getattr(config, name) for name in OPTIONS}
    if isinstance(config.retry, RetryPolicy) and config.max_retry == Config().max_retry:
        del given["max_retry"]  # nobody has said it: the policy does
    return given


def _split_policy(settings: dict[str, config_names.Entry]) -> None:
    """A policy stands for two options: how many retries, and how long to wait for each."""
    retry, max_retry = settings.get("retry"), settings.get("max_retry")
    if retry is None or not isinstance(retry.value, RetryPolicy):
        return
    if max_retry is not None and max_retry.layer == retry.layer:
        raise ConfigError(
            f"{max_retry.key} ({max_retry.origin}) and {retry.key} ({retry.origin}), a policy that says the number of "
            "retries too, exclude each other"
        )
    settings["retry"] = retry._replace(value=retry.value.backoff)
    if max_retry is None or max_retry.layer < retry.layer:
        settings["max_retry"] = retry._replace(value=retry.value.max_retries)


def _redis_url(
    redis_addr: str = "localhost:6379", redis_db: int = 0, redis_pass: str = "", redis_pass_file: str = ""
) -> str:
    if redis_db < 0:
        raise ConfigError(f"redis_db {redis_db} is negative")
    if redis_pass and redis_pass_file:
        raise ConfigError("there is a password and a file for it; give one of them")
    login = f":{quote(redis_pass, safe='')}@" if redis_pass else ""
    return f"redis://{login}{redis_addr}/{redis_db}" + (
        f"?password_file={quote(redis_pass_file, safe='/')}" if redis_pass_file else ""
    )


def _guard_passwords(settings: Mapping[str, config_names.Entry]) -> None:
    """A file that merely lies in the working directory may be anybody's: it must not say where a password goes that
    others have given, nor name a file whose text is sent as one."""
    named = f"; name the file with --config or {config_names.FILE_VARIABLE} if it is to be trusted"
    address = settings.get("redis_addr")
    for secret in (settings[name] for name in ("redis_pass", "redis_pass_file") if name in settings):
        if address is not None and address.layer == FILE < secret.layer:
            raise ConfigError(
                f"{secret.key} ({secret.origin}) is not sent to {address.key} of a {address.origin} that was only "
                f"found{named}"
            )
    for name in ("redis_pass_file", "store"):
        entry = settings.get(name)
        if entry is not None and entry.layer == FILE and (name != "store" or _names_password_file(entry.value)):
            raise ConfigError(f"{entry.key}: a {entry.origin} that was only found cannot name a password file{named}")


def _names_password_file(url: str) -> bool:
    return any(name.endswith("password_file") for name, _ in parse_qsl(url.partition("?")[2], keep_blank_values=True))


_MAY_BE_NONE = {option.name for option in fields(Config) if option.default is None}
_SECONDS = [name for name in OPTIONS if _READERS[name] is values.read_seconds]
_MAY_BE_ZERO = ("timeout", "retention", "shutdown_timeout", "version_grace")
_LEAST = {name: 1 for name in OPTIONS if _READERS[name] is values.read_whole}
_LEAST |= {"max_retry": 0, "retention_max": 0, "metrics_port": 0, "health_port": 0}


def validate(config: Config, origins: Mapping[str, str] | None = None) -> list[str]:
    """Refuse what cannot work, all of it in one error; return what is only unwise."""

    def told(name: str, complaint: str) -> str:
        origin = f" ({origins[name]})" if origins else ""
        return f"{name}: {_shown(name, getattr(config, name))}{origin} {complaint}"

    problems = [told(*problem) for find in (_bad_numbers, _bad_names, _bad_rules) for problem in find(config)]
    if problems:
        raise ConfigError("\n".join(problems))
    if config.lease_ttl < 1.5 * config.renew_interval:
        return [told("lease_ttl", f"should be 1.5 times renew_interval ({config.renew_interval:g}) or more")]
    return []


def _bad_numbers(config: Config) -> Iterator[tuple[str, str]]:
    for name, least in _LEAST.items():
        if getattr(config, name) < least:
            yield name, f"must be {least} or more"
        if name.endswith("_port") and getattr(config, name) > 65_535:
            yield name, "must be 65535 or less"
    for name in _SECONDS:
        value = getattr(config, name)
        if value is not None and not 0 <= value <= LONGEST_WAIT:
            yield name, f"must be from 0 to {LONGEST_WAIT} seconds"
        elif value == 0 and name not in _MAY_BE_ZERO:
            yield name, "must be above 0"
    if config.lease_ttl <= config.renew_interval:
        yield "lease_ttl", f"must be longer than renew_interval ({config.renew_interval:g})"
    if config.leader_renew_interval >= config.leader_lease_ttl / 2:
        yield "leader_renew_interval", f"must be less than half of leader_lease_ttl ({config.leader_lease_ttl:g})"
    if config.rate_limit and not (0 < config.rate_limit[0] < math.inf and config.rate_limit[1] >= 1):
        yield "rate_limit", "must be a rate above 0 and a burst of 1 or more"
    if config.breaker and not (config.breaker[0] >= 1 and 0 < config.breaker[1] <= LONGEST_WAIT):
        yield "breaker", "must be 1 failure or more and a timeout above 0"


def _bad_names(config: Config) -> Iterator[tuple[str, str]]:
    if config.store == "":
        yield "store", "must be a URL"
    if not re.fullmatch(r"[A-Za-z0-9._:-]{1,64}", config.namespace):
        yield "namespace", "must be 1 to 64 letters, digits and . _ : -"
    modes = config.dispatch if isinstance(config.dispatch, dict) else {"default": config.dispatch}
    for mode in modes.values():
        if mode not in DISPATCH_MODES:
            yield "dispatch", f"holds the mode {shown(mode)}; known are {', '.join(DISPATCH_MODES)}"
    identity = None if config.scheduler_id is None else (config.scheduler_id,)
    lists = {"scheduler_id": identity, "queues": config.queues, "task_types": config.task_types, "dispatch": modes}
    for option, names in lists.items():
        for name in names or ():
            if not is_name(name):
                yield option, f"holds {shown(name)}; a name is 1 to 128 letters, digits and . _ : @ -"
        if names is not None and len(set(names)) != (len(names) or 1):
            yield option, "must hold each name once, and at least one"
    for option, known in CHOICES.items():
        value = getattr(config, option)
        if isinstance(value, str) and value not in known:
            yield option, f"is not one of {', '.join(known)}"
    if config.timezone != "UTC":
        from tickwork.cron.zones import find_zone

        try:
            find_zone(config.timezone)
        except ConfigError as error:
            yield "timezone", f"cannot be used: {error}"


def _bad_rules(config: Config) -> Iterator[tuple[str, str]]:
    for rule in config.alert_rules:
        if rule.operator not in OPERATORS:
            yield "alert_rules", f"hold the operator {shown(rule.operator)}; known are {' '.join(OPERATORS)}"
        if not abs(rule.threshold) < math.inf:
            yield "alert_rules", f"hold the threshold {shown(rule.threshold)}, which is never met"
        if not 0 <= rule.duration <= LONGEST_WAIT:
            yield (
                "alert_rules",
                f"hold the duration {shown(rule.duration)}; it must be from 0 to {LONGEST_WAIT} seconds",
            )
    names = [rule.name for rule in config.alert_rules]
    if len(set(names)) < len(names) or "" in names:
        yield "alert_rules", "must each have a name of its own"


def describe(loaded: Loaded) -> list[tuple[str, Any, str]]:
    """Name, value and origin of every option, fit to be shown: without passwords, and with names for live objects."""
    return [(name, _showable(name, getattr(loaded.config, name)), loaded.origins[name]) for name in OPTIONS]


def _showable(name: str, value: Any) -> Any:
    if name == "store" and value is not None:
        return mask_url(value)
    live = name in ("serializer", "logger") and value is not None and not isinstance(value, str)
    return type(value).__qualname__ if live else value


def in_words(value: Any) -> str:
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()


def _shown(name: str, value: Any) -> str:
    if name == "redis_pass":
        return "***"
    if name in ("store", "redis_addr") and value is not None:
        return repr(mask_url(value)) if isinstance(value, str) else f"a {type(value).__name__}"
    return shown(value)
