"""The options of a task: which there are, and what each may be. Checked where they are said."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from functools import partial
from typing import Any, Literal, TypedDict, TypeGuard, get_args

import msgspec

from tickwork.backoff import Backoff, RetryPolicy, Wait
from tickwork.clock import to_millis
from tickwork.config.values import nearest
from tickwork.errors import LONGEST_WAIT, TOO_LATE, ConfigError, PayloadError, ScheduleNotFound, TaskNotFound
from tickwork.handlers import limits
from tickwork.handlers.retrying import Errors, error_classes, retry_function
from tickwork.ids import is_label, is_name
from tickwork.model.policy import DURABILITIES, Durability
from tickwork.model.rates import parse_rate
from tickwork.model.schedules import Misfire, Overlap
from tickwork.payload.codec import JSON, Serializer, encode
from tickwork.texts import cut, shown, storable

DEPENDENCIES_MAX = 1000
TAGS_MAX = 64
RESERVED = "tickwork."  # begins the names of queues that Tickwork itself submits to
UNIQUE = ("queued", "unfinished")
HANDLER_ONLY = ("retry_on", "abort_on", *limits.NAMES)
STRATEGIES = get_args(Backoff)  # exactly these: a worker knows no class of somebody else's


class _OfAll(TypedDict, total=False):
    queue: str | None
    priority: int | None
    max_retry: int | None
    key: str | None
    tags: Mapping[str, str] | None
    context: Mapping[str, Any] | None
    serializer: str | Serializer | None
    executor: str | None
    target: str | None
    requires: Mapping[str, str] | None
    retention: float | timedelta | None


class _OfKind(_OfAll, total=False):
    retry: Backoff | None


class _OfOne(TypedDict, total=False):
    id: str | None
    schedule_at: datetime | None
    delay: float | timedelta | None
    expires: float | timedelta | datetime | None
    dedup_key: str | None
    dedup_ttl: float | timedelta | None
    unique: Literal["queued", "unfinished"] | None
    depends_on: Sequence[Any] | None
    durability: Durability | None
    if_exists: Literal["raise", "return"] | None


class TaskOptions(_OfKind, total=False):
    """What may be said of every task of a kind: for a schedule, or with one submission."""

    timeout: float | timedelta | None


class HandlerOptions(_OfAll, total=False):
    """What may be said with `@app.task`, of the handler and of every task of its type."""

    timeout: float | timedelta | None
    retry: Backoff | Wait | None
    retry_on: type[BaseException] | Errors | None
    abort_on: type[BaseException] | Errors | None
    rate: str | float | None
    burst: int | None
    per: Literal["type", "key"] | None
    concurrency: int | None
    breaker: tuple[int, float] | None
    submit_rate: str | float | None


class Options(TaskOptions, _OfOne, total=False):
    """What may be said with one submission."""

    cron: str | None
    timezone: str | None


class CallOptions(_OfKind, _OfOne, total=False):
    """What may be said with a submission whose result is waited for; there `timeout` is that of the wait."""


class _OfSchedule(TypedDict, total=False):
    name: str
    timezone: str | None
    dst: Literal["once", "instant"]
    overlap: Overlap | Literal["skip", "queue", "allow"]
    misfire: Misfire | Literal["latest", "skip", "all"]
    misfire_grace: float | timedelta
    misfire_cap: int
    on_exhausted: Literal["stop", "continue"]
    enabled: bool
    dedup_key: str | None
    dedup_ttl: float | timedelta | None
    unique: Literal["queued", "unfinished"] | None


class ScheduleOptions(TaskOptions, _OfSchedule, total=False):
    """What may be said of a schedule, beside its cron line."""


class PeriodicOptions(HandlerOptions, _OfSchedule, total=False):
    """What may be said with `@app.periodic`, beside the cron line."""


def wanted_durability(options: Options) -> Durability | None:
    """What this submission asks for, None for what the scheduler is set to."""
    asked = options.get("durability")
    if asked is not None and asked not in DURABILITIES:
        raise ConfigError(f"durability must be one of {', '.join(DURABILITIES)}, not {shown(asked)}")
    return asked


def check_together(options: Mapping[str, Any]) -> None:
    """An option that only says more of another one must not be left out without a word either."""
    if "timezone" in options:
        raise ConfigError("timezone is that of a cron line; give cron with it")
    if "dedup_ttl" in options and "dedup_key" not in options:
        raise ConfigError("dedup_ttl says how long a dedup_key is held; give dedup_key with it")
    if "unique" in options and "dedup_key" not in options:
        raise ConfigError("unique says how long a dedup_key is held; give dedup_key with it")
    if "unique" in options and "dedup_ttl" in options:
        raise ConfigError("unique and dedup_ttl both say how long a dedup_key is held; give only one of them")
    returns_existing(options)


def returns_existing(options: Mapping[str, Any]) -> bool:
    """Whether a task that exists already is as good as a new one."""
    asked = options.get("if_exists")
    if asked not in (None, "raise", "return"):
        raise ConfigError(f"if_exists must be one of raise, return, not {asked!r}")
    return bool(asked == "return")


def known_only(given: Mapping[str, Any], options: type) -> None:
    """A misspelt option must not be left out without a word."""
    known = options.__annotations__.keys()
    if not given.keys() <= known:
        wrong = min(given.keys() - known)
        if wrong in HANDLER_ONLY:
            raise ConfigError(
                f"{wrong} is an option of the handler, not of one submission or schedule: @app.task({wrong}=...)"
            )
        raise ConfigError(f"unknown option {shown(wrong)}{nearest(wrong, known) or '; known are ' + ', '.join(known)}")


def without_policy(given: Mapping[str, Any]) -> Mapping[str, Any]:
    """A `RetryPolicy` stands for two options: how many retries, and how long to wait for each."""
    policy = given.get("retry")
    if not isinstance(policy, RetryPolicy):
        return given
    if given.get("max_retry") is not None:
        raise ConfigError(
            f"a RetryPolicy says how many retries there are ({policy.max_retries}), so max_retry={given['max_retry']} "
            "cannot be given beside it; give max_retry and retry=ExponentialBackoff(...) instead"
        )
    return {**given, "max_retry": policy.max_retries, "retry": policy.backoff}


def of_handler(given: Mapping[str, Any]) -> dict[str, Any]:
    """What may be said of every task of a type, read: refused where it is said, not with the first submission."""
    known_only(given, HandlerOptions)
    given = without_policy(given)
    readers: dict[str, Callable[[Any], Any]] = {**READERS, **HANDLER_READERS}
    return {name: readers[name](value) for name, value in given.items() if value is not None}


def name(what: str, value: Any) -> str:
    if not isinstance(value, str) or not is_name(value):
        raise ConfigError(f"{what} must be 1 to 128 letters, digits or ._:@-, not {shown(value)}")
    return value


def queue(value: Any) -> str:
    """Of a task; the queues of Tickwork's own tasks are for those alone."""
    if name("queue", value).startswith(RESERVED):
        raise ConfigError(f"queue {shown(value)}: names that begin with {RESERVED} are reserved")
    return str(value)


def known_id(value: Any) -> str:
    """The id of a task that there may be; none has an id that is no name."""
    if not isinstance(value, str):
        raise ConfigError(f"the id of a task is a text, not {shown(value)}")
    if not is_name(value):
        raise TaskNotFound(value)
    return value


def known_schedule(value: Any) -> str:
    if not isinstance(value, str):
        raise ConfigError(f"the id of a schedule is a text, not {shown(value)}")
    if not is_name(value):
        raise ScheduleNotFound(value)
    return value


def count(what: str, value: Any, least: int, most: int) -> int:
    if type(value) is not int or not least <= value <= most:
        raise ConfigError(f"{what} must be a whole number from {least} to {most:,}, not {shown(value)}")
    return value


def text(what: str, value: Any, longest: int) -> str:
    if not is_text(value, longest) or not value:
        raise ConfigError(f"{what} must be a text of 1 to {longest} characters, not {shown(value)}")
    return value


def note(what: str, value: Any) -> str:
    """A note, message or reason that somebody gives: any text, cut to what a store should keep of it."""
    if not isinstance(value, str):
        raise ConfigError(f"{what} must be a text, not {shown(value)}")
    return cut(value)


def json_data(value: Any, limit: int) -> bytes:
    """The data of a result as JSON, within the bounds of a payload."""
    try:
        data = encode(JSON, value)
    except PayloadError as error:
        raise PayloadError(f"data: {error}") from None
    if len(data) > limit:
        raise PayloadError(f"data has {len(data):,} bytes, payload_limit is {limit:,}: hand in a reference instead")
    return data


def is_text(value: Any, longest: int) -> TypeGuard[str]:
    """A text that every store can take: no lone surrogates, as file names may have."""
    return isinstance(value, str) and len(value) <= longest and storable(value) == value


def priority(value: Any) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value <= 10:
        raise ConfigError(f"priority must be a whole number from 1 (low) to 10 (high), not {shown(value)}")
    return int(value)


def seconds(what: str, value: Any) -> float:
    number = value.total_seconds() if isinstance(value, timedelta) else value
    if not isinstance(number, int | float) or isinstance(number, bool) or number != number or abs(number) == math.inf:
        raise ConfigError(f"{what} must be a number of seconds or a timedelta, not {shown(value)}")
    if not 0 <= number <= LONGEST_WAIT:
        raise ConfigError(f"{what} must not be negative, nor longer than a century: {shown(value)}")
    return float(number)


def wait_limit(what: str, value: Any) -> float:
    """How long to wait, in seconds; None is for ever."""
    if value is None:
        return math.inf
    number = value.total_seconds() if isinstance(value, timedelta) else value
    if not isinstance(number, int | float) or isinstance(number, bool) or math.isnan(number):
        raise ConfigError(f"{what} must be a number of seconds or a timedelta, not {value!r}")
    return float(number)


def moment(options: Mapping[str, Any]) -> tuple[int | None, int]:
    """When it is to run: (absolute, delay), both in milliseconds."""
    said = [option for option in ("delay", "schedule_at", "cron") if option in options]
    if len(said) > 1:
        raise ConfigError(f"give only one of {' and '.join(said)}")
    if "delay" in options:
        return None, round(seconds("delay", options["delay"]) * 1000)
    if "schedule_at" in options:
        return max(to_millis(aware("schedule_at", options["schedule_at"])), 0), 0  # the past, however far, means now
    return None, 0


def deadline(options: Mapping[str, Any]) -> dict[str, int]:
    """By when it must have started, as fields of a spec: a time after its due time, or a moment."""
    value = options.get("expires")
    if value is None:
        return {}
    if isinstance(value, datetime):
        return {"expires_at": max(to_millis(aware("expires", value)), 0)}
    return {"expires": round(seconds("expires", value) * 1000)}


def choice(what: str, allowed: tuple[str, ...], value: Any) -> str:
    if value not in allowed:
        raise ConfigError(f"{what} must be one of {', '.join(allowed)}, not {shown(value)}")
    return str(value)


def dedup_ttl(value: Any) -> int:
    """In milliseconds."""
    ttl = seconds("dedup_ttl", value)
    if ttl <= 0:
        raise ConfigError("dedup_ttl must be longer than 0 seconds")
    return round(ttl * 1000)


def aware(what: str, value: Any) -> datetime:
    if not isinstance(value, datetime):
        raise ConfigError(f"{what} must be a datetime, not {shown(value)}")
    if value.utcoffset() is None:
        raise ConfigError(f"{what} must know its zone, such as datetime(2030, 1, 1, tzinfo=UTC), not {shown(value)}")
    if value >= TOO_LATE:
        raise ConfigError(f"{what} must be before the year {TOO_LATE.year}, not {shown(value)}")
    return value


def tags(value: Any) -> dict[str, str]:
    if not isinstance(value, Mapping):
        raise ConfigError(f"tags must be a mapping of names to texts, not {shown(value)}")
    if len(value) > TAGS_MAX:
        raise ConfigError(f"a task may have {TAGS_MAX} tags, not {len(value):,}; what is more belongs into its payload")
    for key, item in value.items():
        name("a tag's name", key)
        if not is_text(item, 256):
            raise ConfigError(f"tag {shown(key)} must be a text of at most 256 characters, not {shown(item)}")
    return dict(value)


def context(value: Any) -> dict[str, Any]:
    if not isinstance(value, Mapping):
        raise ConfigError(f"context must be a mapping, not {shown(value)}")
    try:
        plain = msgspec.json.decode(encode(JSON, dict(value)))
    except PayloadError as error:
        raise ConfigError(f"context must be plain values: {error}") from None
    assert isinstance(plain, dict)
    return plain


def dependencies(value: Any) -> tuple[str, ...]:
    if isinstance(value, str) or not isinstance(value, Sequence):
        raise ConfigError(f"depends_on must be a list of tasks or task ids, not {shown(value)}")
    if len(value) > DEPENDENCIES_MAX:
        raise ConfigError(
            f"depends_on has {len(value):,} tasks; {DEPENDENCIES_MAX:,} are the most that one may wait for"
        )
    return tuple(name("a dependency", getattr(item, "id", item)) for item in value)


def retry_strategy(value: Any) -> Backoff:
    if _is_function(value):
        raise ConfigError(
            f"retry function {shown(value)} cannot be stored with a task: give it to the handler, "
            "@app.task(retry=...), or give one of the retry strategies here"
        )
    if type(value) not in STRATEGIES:
        known = ", ".join(strategy.__name__ for strategy in STRATEGIES)
        raise ConfigError(f"retry must be one of the retry strategies ({known}), not {shown(value)}")
    strategy: Backoff = value
    return strategy


def _is_function(value: Any) -> bool:
    return callable(value) and not isinstance(value, type)  # a strategy's class was meant to be called first


def retry_of_handler(value: Any) -> Backoff | Wait:
    return retry_function(value) if _is_function(value) else retry_strategy(value)


def max_retry(value: Any) -> int:
    if type(value) is not int or value < 0:
        raise ConfigError(f"max_retry must be a whole number from 0 on, not {shown(value)}")
    return value


def task_id(value: Any) -> str:
    """Tickwork's own tasks have ids that can be foreseen, so nobody else may take them."""
    given = name("id", value)
    if given.startswith(RESERVED):
        raise ConfigError(f"id {shown(given)}: ids that begin with {RESERVED} are for Tickwork's own tasks")
    return given


REQUIRES_MAX = 8


def requires(value: Any) -> dict[str, str]:
    """Labels that a worker must have. They become part of a key in Redis, so their text is restricted."""
    if not isinstance(value, Mapping):
        raise ConfigError(f'requires must be a mapping such as {{"gpu": "a100"}}, not {shown(value)}')
    if len(value) > REQUIRES_MAX:
        raise ConfigError(f"requires holds {len(value)} labels; a task may require at most {REQUIRES_MAX}")
    for label, wanted in value.items():
        for part in (label, wanted):
            if not isinstance(part, str) or not is_label(part):
                raise ConfigError(
                    f"requires: {shown(label)} must be required with {shown(wanted)} as 1 to 64 letters, digits or "
                    "._:/- each"
                )
    return dict(value)


# Options that become fields of a spec under their own names.
READERS: dict[str, Callable[[Any], Any]] = {
    "id": task_id,
    "queue": queue,
    "priority": priority,
    "max_retry": max_retry,
    "timeout": partial(seconds, "timeout"),
    "retry": retry_strategy,
    "dedup_key": partial(text, "dedup_key", longest=512),
    "tags": tags,
    "context": context,
    "executor": partial(name, "executor"),
    "target": partial(name, "target"),
    "requires": requires,
    "retention": partial(seconds, "retention"),
    "unique": partial(choice, "unique", UNIQUE),
    "depends_on": dependencies,
}

# Options of handlers that are read in another way, or that only handlers have.
HANDLER_READERS: dict[str, Callable[[Any], Any]] = {
    "key": partial(text, "key", longest=512),
    "retry": retry_of_handler,
    "retry_on": partial(error_classes, "retry_on"),
    "abort_on": partial(error_classes, "abort_on"),
    "rate": parse_rate,
    "burst": partial(count, "burst", least=1, most=1_000_000),
    "per": partial(choice, "per", ("type", "key")),
    "concurrency": partial(count, "concurrency", least=1, most=1_000_000),
    "breaker": limits.breaker,
    "submit_rate": parse_rate,
}
