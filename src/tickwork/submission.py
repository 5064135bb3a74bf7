"""From what a caller asks to a `Spec`: defaults filled in, every option checked, the payload encoded and checked."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from functools import partial
from typing import Any, Literal, TypedDict, TypeGuard

import msgspec
from msgspec.structs import replace

from tickwork.backoff import Backoff, RetryPolicy
from tickwork.codec import JSON, Serializer, encode
from tickwork.config import Config
from tickwork.config_values import nearest
from tickwork.context import storable
from tickwork.errors import ConfigError, PayloadError
from tickwork.handlers import Entry, Registry
from tickwork.ids import is_name, new_id, new_id_beside, new_nonce
from tickwork.model import DURABILITIES, Durability, Spec, to_millis

MAX_DELAY = 100 * 365 * 86_400
EXECUTORS = ("local",)
DEPENDENCIES_MAX = 1000
UNLIKE = frozenset({"id", "key", "dedup_key"})  # options by which tasks of a kind differ in more than their payload


class TaskOptions(TypedDict, total=False):
    """What may be said of every task of a kind: with `@app.task`, for a schedule, or with one submission."""

    queue: str | None
    priority: int | None
    max_retry: int | None
    timeout: float | timedelta | None
    retry: Backoff | None
    key: str | None
    tags: Mapping[str, str] | None
    context: Mapping[str, Any] | None
    serializer: str | Serializer | None
    executor: str | None
    target: str | None


class Options(TaskOptions, total=False):
    """What may be said with one submission."""

    id: str | None
    schedule_at: datetime | None
    delay: float | timedelta | None
    cron: str | None
    timezone: str | None
    dedup_key: str | None
    dedup_ttl: float | timedelta | None
    depends_on: Sequence[Any] | None
    durability: Durability | None


class ScheduleOptions(TaskOptions, total=False):
    """What may be said of a schedule, beside its cron line."""

    name: str
    timezone: str | None
    dst: Literal["once", "instant"]
    overlap: Literal["skip", "queue", "allow"]
    misfire: Literal["latest", "skip", "all"]
    misfire_grace: float | timedelta
    misfire_cap: int
    on_exhausted: Literal["stop", "continue"]
    enabled: bool


def wanted_durability(options: Options) -> Durability | None:
    """What this submission asks for, None for what the scheduler is set to."""
    asked = options.get("durability")
    if asked is not None and asked not in DURABILITIES:
        raise ConfigError(f"durability must be one of {', '.join(DURABILITIES)}, not {asked!r}")
    return asked


class SpecMaker:
    """Makes specs for one scheduler."""

    def __init__(self, registry: Registry, config: Config) -> None:
        self._registry = registry
        self._config = config
        self._patterns: dict[Entry, Spec] = {}  # what all plain tasks of a handler have in common
        registry.on_change(self._patterns.clear)

    def make(self, type: str, payload: Any, given: TaskOptions, entry: Entry | None) -> Spec:
        pattern = None if given or entry is None else self._patterns.get(entry)
        if pattern is not None:
            return self._like(pattern, payload, self._serializer(None, entry), entry)
        options: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
        if entry is not None and entry.options:
            options = {**entry.options, **options}
        at, delay, fields = None, 0, {}
        if options:  # mostly there are none, and submitting is hot
            known_only(options, Options)
            at, delay = moment(options)
            fields = {name: READERS[name](value) for name, value in options.items() if name in READERS}
        serializer = self._serializer(options.get("serializer"), entry)
        if "id" not in fields:
            fields["id"] = self._new_id(fields.get("dedup_key"))
        if entry is not None:  # else the worker, who knows the handler, fills them in
            fields.setdefault("timeout", self._config.timeout)
            fields.setdefault("max_retry", max_retry_of(fields.get("retry"), self._config))
        spec = Spec(
            type=name("type", type) if entry is None else type,
            nonce=new_nonce(),
            payload=self._encode(type, payload, serializer, entry),
            serializer=serializer.name,
            at=at,
            delay=delay,
            dedup_ttl=self._dedup_ttl(options) if "dedup_key" in fields else 0,
            key=self._key(options.get("key"), payload, entry),
            **fields,
        )
        if entry is not None and not given and not entry.options.keys() & UNLIKE:
            self._patterns[entry] = spec
        return spec

    def _like(self, pattern: Spec, payload: Any, serializer: Serializer, entry: Entry | None) -> Spec:
        data = self._encode(pattern.type, payload, serializer, entry)
        return replace(pattern, id=new_id(), nonce=new_nonce(), payload=data, serializer=serializer.name)

    def make_many(self, type: str, payloads: Iterable[Any], given: TaskOptions, entry: Entry | None) -> list[Spec]:
        """One spec for each payload; what they have in common is read once."""
        options = {**(entry.options if entry is not None else {}), **given}
        alike = not {name for name in UNLIKE if options.get(name) is not None}
        specs: list[Spec] = []
        for payload in payloads:
            if specs and alike:
                specs.append(self._like(specs[0], payload, self._serializer(options.get("serializer"), entry), entry))
            else:
                specs.append(self.make(type, payload, given, entry))
        return specs

    def _new_id(self, dedup_key: str | None) -> str:
        return new_id() if dedup_key is None else new_id_beside(dedup_key, self._config.partitions)

    def _serializer(self, asked: str | Serializer | None, entry: Entry | None) -> Serializer:
        if isinstance(asked, str):
            return self._registry.serializer(asked)
        if asked is not None:
            self._registry.add_serializer(asked)
            return asked
        if entry is not None and entry.serializer is not None:
            return entry.serializer
        return self._registry.default_serializer

    def _encode(self, type: str, payload: Any, serializer: Serializer, entry: Entry | None) -> bytes:
        try:
            data = encode(serializer, payload) if entry is None else entry.payload_type.encode(serializer, payload)
        except PayloadError as error:
            raise PayloadError(f"payload for task type {type!r}: {error}") from None
        if len(data) > self._config.payload_limit:
            raise PayloadError(
                f"payload for task type {type!r} is {len(data):,} bytes, the limit is {self._config.payload_limit:,}; "
                "store it elsewhere and submit a reference, or raise payload_limit"
            )
        return data

    def _dedup_ttl(self, options: Mapping[str, Any]) -> int:
        ttl = seconds("dedup_ttl", options.get("dedup_ttl", self._config.dedup_ttl))
        if ttl <= 0:
            raise ConfigError("dedup_ttl must be longer than 0 seconds")
        return round(ttl * 1000)

    def _key(self, asked: str | None, payload: Any, entry: Entry | None) -> str | None:
        """A key given with the submission is taken as it is; one of the handler is a path into the payload."""
        if asked is None:
            return None
        if entry is None or entry.options.get("key") != asked:
            return text("key", asked, 512)
        value = payload
        for part in asked.removeprefix("payload.").split("."):
            value = value.get(part) if isinstance(value, Mapping) else getattr(value, part, None)
        if value is None:
            raise PayloadError(f"payload for task type {entry.type!r} has nothing at {asked!r}, which is its key")
        return text("key", str(value), 512)


def known_only(given: Mapping[str, Any], options: type) -> None:
    """A misspelt option must not be left out without a word."""
    known = options.__annotations__.keys()
    if not given.keys() <= known:
        wrong = min(given.keys() - known)
        raise ConfigError(f"unknown option {wrong!r}{nearest(wrong, known) or '; known are ' + ', '.join(known)}")


def check(given: Mapping[str, Any]) -> None:
    """Refuse options where they are said, rather than with the first submission."""
    known_only(given, Options)
    for option, value in given.items():
        if value is not None and option in READERS:
            READERS[option](value)


def name(what: str, value: Any) -> str:
    if not isinstance(value, str) or not is_name(value):
        raise ConfigError(f"{what} must be 1 to 128 letters, digits or ._:@-, not {value!r}")
    return value


def text(what: str, value: Any, longest: int) -> str:
    if not is_text(value, longest) or not value:
        raise ConfigError(f"{what} must be a text of 1 to {longest} characters, not {value!r}")
    return value


def is_text(value: Any, longest: int) -> TypeGuard[str]:
    """A text that every store can take: no lone surrogates, as file names may have."""
    return isinstance(value, str) and len(value) <= longest and storable(value) == value


def priority(value: Any) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value <= 10:
        raise ConfigError(f"priority must be a whole number from 1 (low) to 10 (high), not {value!r}")
    return int(value)


def seconds(what: str, value: Any) -> float:
    number = value.total_seconds() if isinstance(value, timedelta) else value
    if not isinstance(number, int | float) or isinstance(number, bool) or not math.isfinite(number):
        raise ConfigError(f"{what} must be a number of seconds or a timedelta, not {value!r}")
    if not 0 <= number <= MAX_DELAY:
        raise ConfigError(f"{what} must not be negative, nor longer than a century: {value!r}")
    return float(number)


def moment(options: Mapping[str, Any]) -> tuple[int | None, int]:
    """When it is to run: (absolute, delay), both in milliseconds."""
    said = [option for option in ("delay", "schedule_at", "cron") if option in options]
    if len(said) > 1:
        raise ConfigError(f"give only one of {' and '.join(said)}")
    if "delay" in options:
        return None, round(seconds("delay", options["delay"]) * 1000)
    if "schedule_at" in options:
        return to_millis(aware("schedule_at", options["schedule_at"])), 0
    return None, 0


def aware(what: str, value: Any) -> datetime:
    if not isinstance(value, datetime):
        raise ConfigError(f"{what} must be a datetime, not {value!r}")
    if value.tzinfo is None:
        raise ConfigError(f"{what} must know its zone, such as datetime(2030, 1, 1, tzinfo=UTC), not {value!r}")
    return value


def tags(value: Any) -> dict[str, str]:
    if not isinstance(value, Mapping):
        raise ConfigError(f"tags must be a mapping of names to texts, not {value!r}")
    for key, item in value.items():
        name("a tag's name", key)
        if not is_text(item, 256):
            raise ConfigError(f"tag {key!r} must be a text of at most 256 characters, not {item!r}")
    return dict(value)


def context(value: Any) -> dict[str, Any]:
    if not isinstance(value, Mapping):
        raise ConfigError(f"context must be a mapping, not {value!r}")
    plain = msgspec.json.decode(encode(JSON, dict(value)))
    assert isinstance(plain, dict)
    return plain


def executor(value: Any) -> str:
    if value not in EXECUTORS:
        raise ConfigError(f"unknown executor {value!r}; known are {', '.join(EXECUTORS)}")
    return str(value)


def dependencies(value: Any) -> tuple[str, ...]:
    if isinstance(value, str) or not isinstance(value, Sequence):
        raise ConfigError(f"depends_on must be a list of tasks or task ids, not {value!r}")
    if len(value) > DEPENDENCIES_MAX:
        raise ConfigError(
            f"depends_on has {len(value):,} tasks; {DEPENDENCIES_MAX:,} are the most that one may wait for"
        )
    return tuple(name("a dependency", getattr(item, "id", item)) for item in value)


def max_retry_of(retry: Backoff | None, config: Config) -> int:
    return retry.max_retries if isinstance(retry, RetryPolicy) else config.max_retry


def completed(spec: Spec, entry: Entry, config: Config) -> Spec:
    """A task of someone who did not know the handler, with what the handler says of it."""
    if spec.max_retry is not None and spec.timeout is not None:
        return spec
    said = entry.options
    retry = spec.retry or said.get("retry")
    max_retry = said.get("max_retry") if spec.max_retry is None else spec.max_retry
    timeout = said.get("timeout") if spec.timeout is None else spec.timeout
    return replace(
        spec,
        retry=retry,
        max_retry=max_retry_of(retry, config) if max_retry is None else max_retry,
        timeout=config.timeout if timeout is None else seconds("timeout", timeout),
    )


def retry_strategy(value: Any) -> Backoff:
    if not isinstance(value, Backoff):
        raise ConfigError(f"retry must be one of the retry strategies, not {value!r}")
    return value


def max_retry(value: Any) -> int:
    if type(value) is not int or value < 0:
        raise ConfigError(f"max_retry must be a whole number from 0 on, not {value!r}")
    return value


# Options that become fields of a spec under their own names.
READERS: dict[str, Callable[[Any], Any]] = {
    "id": partial(name, "id"),
    "queue": partial(name, "queue"),
    "priority": priority,
    "max_retry": max_retry,
    "timeout": partial(seconds, "timeout"),
    "retry": retry_strategy,
    "dedup_key": partial(text, "dedup_key", longest=512),
    "tags": tags,
    "context": context,
    "executor": executor,
    "target": partial(name, "target"),
    "depends_on": dependencies,
}
