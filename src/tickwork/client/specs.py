"""From what a caller asks to a `Spec`: defaults filled in, every option checked, the payload encoded and checked."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec
from msgspec.structs import replace

from tickwork.backoff import Backoff, RetryPolicy
from tickwork.config import Config
from tickwork.errors import PayloadError
from tickwork.handlers.executor_names import LOCAL
from tickwork.handlers.options import (
    READERS,
    Options,
    TaskOptions,
    check_together,
    deadline,
    dedup_ttl,
    is_text,
    known_only,
    moment,
    name,
    text,
    without_policy,
)
from tickwork.handlers.registry import Entry, Registry
from tickwork.ids import new_id, new_id_beside, new_nonce
from tickwork.model.tasks import Spec
from tickwork.payload.codec import JSON, BuiltinSerializer, Serializer, encode
from tickwork.payload.parameters import MISSING
from tickwork.texts import shown

UNLIKE = frozenset({"id", "key", "dedup_key"})  # options by which tasks of a kind differ in more than their payload


class SpecMaker:
    """Makes specs for one scheduler."""

    def __init__(self, registry: Registry, config: Config) -> None:
        self._registry = registry
        self._config = config
        # What all plain tasks of a handler have in common, and how many bytes that leaves to their payloads.
        self._patterns: dict[Entry, tuple[Spec, int]] = {}
        registry.on_change(self._patterns.clear)

    def make(self, type: str, payload: Any, given: Options | TaskOptions, entry: Entry | None) -> Spec:
        pattern = None if given or entry is None else self._patterns.get(entry)
        if pattern is not None:
            return self._like(*pattern, payload, self._serializer(None, entry, payload), entry)
        options: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
        if "retry" in options:
            options = {**without_policy(options)}
        if entry is not None and entry.options:
            options = {**entry.options, **options}
        at, delay, fields = None, 0, {}
        if options:  # mostly there are none, and submitting is hot
            known_only(options, Options)
            check_together(options)
            at, delay = moment(options)
            fields = {name: READERS[name](value) for name, value in options.items() if name in READERS}
            fields |= deadline(options)
            if "retention" in fields:
                fields["retention"] = round(fields["retention"] * 1000)
        serializer = self._serializer(options.get("serializer"), entry, payload)
        if "id" not in fields:
            fields["id"] = self._new_id(fields.get("dedup_key"))
        if entry is not None:  # else the worker, who knows the handler, fills them in
            fields.setdefault("timeout", self._config.timeout)
            fields.setdefault("max_retry", self._config.max_retry)
        elif (executor := self._registry.executor_of(type)) != LOCAL:
            fields.setdefault("executor", executor)
        if "executor" in fields or "target" in fields:
            self._registry.executors.check(fields.get("executor", LOCAL), fields.get("target"), type)
        data = self._encode(type, payload, serializer, entry, self._config.payload_limit)
        key = self._key(options.get("key"), data, serializer, entry)
        spec = Spec(
            type=name("type", type) if entry is None else type,
            nonce=new_nonce(),
            payload=data,
            serializer=serializer.name,
            at=at,
            delay=delay,
            dedup_ttl=dedup_ttl(options.get("dedup_ttl", self._config.dedup_ttl))
            if "dedup_key" in fields and "unique" not in fields
            else 0,
            key=key,
            fair=self._registry.fair.cost(fields.get("queue", "default"), key),
            **fields,
        )
        room = check_size(spec, self._config.payload_limit)
        if entry is not None and not given and not entry.options.keys() & UNLIKE:
            self._patterns[entry] = spec, room
        return spec

    def _like(self, pattern: Spec, room: int, payload: Any, serializer: Serializer, entry: Entry | None) -> Spec:
        data = self._encode(pattern.type, payload, serializer, entry, room)
        return replace(pattern, id=new_id(), nonce=new_nonce(), payload=data, serializer=serializer.name)

    def make_many(self, type: str, payloads: Iterable[Any], given: TaskOptions, entry: Entry | None) -> list[Spec]:
        """One spec for each payload; what they have in common is read once."""
        options = {**(entry.options if entry is not None else {}), **given}
        alike = not {name for name in UNLIKE if options.get(name) is not None}
        specs: list[Spec] = []
        room = 0
        for payload in payloads:
            if specs and alike:
                serializer = self._serializer(options.get("serializer"), entry, payload)
                specs.append(self._like(specs[0], room, payload, serializer, entry))
            else:
                specs.append(self.make(type, payload, given, entry))
                room = room_beside(specs[0], self._config.payload_limit)
        return specs

    def _new_id(self, dedup_key: str | None) -> str:
        return new_id() if dedup_key is None else new_id_beside(dedup_key, self._config.partitions)

    def _serializer(self, asked: str | Serializer | None, entry: Entry | None, payload: Any) -> Serializer:
        if isinstance(asked, str):
            chosen = self._registry.serializer(asked)
        elif asked is not None:
            self._registry.add_serializer(asked)
            chosen = asked
        elif entry is not None and entry.serializer is not None:
            chosen = entry.serializer
        else:
            chosen = self._registry.default_serializer
        # No payload is no bytes, which are a value to some serializers: to protobuf a message of which nothing is set.
        return JSON if payload is MISSING and not isinstance(chosen, BuiltinSerializer) else chosen

    def _encode(self, type: str, payload: Any, serializer: Serializer, entry: Entry | None, room: int) -> bytes:
        try:
            if entry is not None:
                data = entry.parameters.encode(serializer, payload)
            else:
                data = b"" if payload is MISSING else encode(serializer, payload)
        except PayloadError as error:
            raise PayloadError(f"payload for task type {shown(type)}: {error}") from None
        if len(data) > room:
            raise too_large(type, len(data), room, self._config.payload_limit)
        return data

    def _key(self, asked: str | None, data: bytes, serializer: Serializer, entry: Entry | None) -> str | None:
        """A key given with the submission is taken as it is; one of the handler is a path into the payload."""
        if asked is None:
            return None
        if entry is None or entry.options.get("key") != asked:
            return text("key", asked, 512)
        value = entry.value_at(asked, data, serializer)
        if value is None:
            raise PayloadError(f"payload for task type {entry.type!r} has nothing at {asked!r}, which is its key")
        if not is_text(key := str(value), 512) or not key:
            raise PayloadError(
                f"payload for task type {entry.type!r}: what stands at {asked!r} is its key, and must be a text of 1 "
                "to 512 characters"
            )
        return key


def room_beside(spec: Spec, limit: int) -> int:
    """How many bytes are left for the payload: what else a task carries counts as well."""
    if not (spec.context or spec.tags or spec.key or spec.depends_on):
        return limit
    return limit - len(msgspec.json.encode((spec.context, spec.tags, spec.key, spec.depends_on)))


def check_size(spec: Spec, limit: int) -> int:
    """The bytes that are left for the payload, if it is no larger."""
    room = room_beside(spec, limit)
    if len(spec.payload) > room:
        raise too_large(spec.type, len(spec.payload), room, limit)
    return room


def too_large(type: str, size: int, room: int, limit: int) -> PayloadError:
    beside = f", and its context, tags, key and dependencies {limit - room:,}" if room < limit else ""
    return PayloadError(
        f"payload for task type {shown(type)} is {size:,} bytes{beside}, the limit is {limit:,}; "
        "store it elsewhere and submit a reference, or raise payload_limit"
    )


def max_retry_of(retry: Backoff | None, config: Config) -> int:
    """Tasks that an earlier version stored may have a policy, which says the number too."""
    return retry.max_retries if isinstance(retry, RetryPolicy) else config.max_retry


def completed(spec: Spec, entry: Entry | None, config: Config) -> Spec:
    """A task of someone who did not know the handler, with what the handler says of it."""
    if spec.max_retry is not None and spec.timeout is not None:
        return spec
    said = {} if entry is None else entry.options
    retry = spec.retry or said.get("retry")
    max_retry = said.get("max_retry") if spec.max_retry is None else spec.max_retry
    timeout = said.get("timeout") if spec.timeout is None else spec.timeout
    return replace(
        spec,
        retry=retry,
        max_retry=max_retry_of(retry, config) if max_retry is None else max_retry,
        timeout=config.timeout if timeout is None else timeout,
    )
