"""What cannot work is refused, all of it in one error."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping

from msgspec.structs import fields

from tickwork.config import CHOICES, DISPATCH_MODES, OPTIONS, Config, shown_option, values
from tickwork.config.readers import READERS
from tickwork.config.webhooks import bad_webhooks
from tickwork.errors import LONGEST_WAIT, ConfigError
from tickwork.ids import is_name
from tickwork.texts import shown

MAY_BE_NONE = {option.name for option in fields(Config) if option.default is None}
_SECONDS = [name for name in OPTIONS if READERS[name] is values.read_seconds]
_MAY_BE_ZERO = ("timeout", "retention", "shutdown_timeout", "version_grace")
ADDRESS_MAX = 500
_LEAST = {name: 1 for name in OPTIONS if READERS[name] is values.read_whole}
_LEAST |= {"max_retry": 0, "retention_max": 0, "max_tasks_per_child": 0, "metrics_port": 0, "health_port": 0}
_LEAST |= {"server_port": 0, "server_grpc_port": 0}


def validate(config: Config, origins: Mapping[str, str] | None = None) -> list[str]:
    """Refuse what cannot work, all of it in one error; return what is only unwise."""

    def told(name: str, complaint: str) -> str:
        origin = f" ({origins[name]})" if origins else ""
        return f"{name}: {shown_option(name, getattr(config, name))}{origin} {complaint}"

    problems = [
        told(*problem) for find in (_bad_numbers, _bad_names, _bad_rules, _bad_webhooks) for problem in find(config)
    ]
    if problems:
        raise ConfigError("\n".join(problems))
    if config.lease_ttl < 1.5 * config.renew_interval:
        return [told("lease_ttl", f"should be 1.5 times renew_interval ({config.renew_interval:g}) or more")]
    return []


def _bad_numbers(config: Config) -> Iterator[tuple[str, str]]:
    for name, least in _LEAST.items():
        if getattr(config, name) is None:
            continue
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
    if len(config.address) > ADDRESS_MAX or not config.address.isprintable():
        yield "address", f"must be a text of at most {ADDRESS_MAX} characters in one line"
    if not config.host or len(config.host) > ADDRESS_MAX or not config.host.isprintable():
        yield "host", "must be an address of this machine, such as 127.0.0.1, or 0.0.0.0 for all of them"
    modes = config.dispatch if isinstance(config.dispatch, dict) else {"default": config.dispatch}
    for mode in modes.values():
        if mode not in DISPATCH_MODES:
            yield "dispatch", f"holds the mode {shown(mode)}; known are {', '.join(DISPATCH_MODES)}"
    strategy = config.load_balance_strategy
    if not is_name(strategy):
        yield "load_balance_strategy", "must be the name of a strategy"
    identity = None if config.scheduler_id is None else (config.scheduler_id,)
    lists = {"scheduler_id": identity, "queues": config.queues, "task_types": config.task_types, "dispatch": modes}
    for option, names in lists.items():
        for name in names or ():
            if not is_name(name):
                yield option, f"holds {shown(name)}; a name is 1 to 128 letters, digits and . _ : @ -"
        if names is not None and len(set(names)) != (len(names) or 1):
            yield option, "must hold each name once, and at least one"
    for name in config.fair_queues:
        if not is_name(name):
            yield "fair_queues", f"holds {shown(name)}; a name is 1 to 128 letters, digits and . _ : @ -"
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
    if config.alert_rules or config.alerts_off:
        from tickwork.config.alerts import bad_rules

        yield from bad_rules(config)


def _bad_webhooks(config: Config) -> Iterator[tuple[str, str]]:
    for problem in bad_webhooks(config.webhooks, config.events):
        yield "webhooks", problem
