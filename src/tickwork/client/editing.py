"""Changes of a schedule that is stored already: what is named is read as `put` reads it, all else stays. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from msgspec.structs import replace

from tickwork.client.access import Access
from tickwork.client.specs import check_size
from tickwork.client.views import payload_of
from tickwork.cron.zones import find_zone
from tickwork.errors import ConfigError
from tickwork.handlers.executor_names import LOCAL
from tickwork.handlers.options import (
    READERS,
    ScheduleOptions,
    check_together,
    choice,
    dedup_ttl,
    known_only,
    seconds,
    text,
    without_policy,
)
from tickwork.model import ticks
from tickwork.model.schedules import Misfire, Overlap, Schedule
from tickwork.model.tasks import Spec
from tickwork.payload.parameters import MISSING
from tickwork.texts import shown

_DEFAULTS = Spec(id="", type="", nonce="")
_OF_DEDUP = ("dedup_key", "dedup_ttl", "unique")
_OF_PAYLOAD = ("type", "payload", "serializer")


class ScheduleChanges(ScheduleOptions, total=False):
    """What may be changed of a schedule; None takes an option of its runs back to its default."""

    type: str
    payload: Any
    cron: str | None


def _flag(what: str, value: Any) -> bool:
    if not isinstance(value, bool):
        raise ConfigError(f"{what} must be true or false, not {shown(value)}")
    return value


def _count(what: str, value: Any) -> int:
    if type(value) is not int or value < 1:
        raise ConfigError(f"{what} must be a whole number from 1 on, not {shown(value)}")
    return value


# Options that become fields of a schedule under their own names.
OF_SCHEDULE: dict[str, Callable[[Any], Any]] = {
    "name": lambda value: text("name", value, 256) if value else "",
    "dst": partial(choice, "dst", ("once", "instant")),
    "enabled": partial(_flag, "enabled"),
    "overlap": lambda value: Overlap(choice("overlap", tuple(Overlap), value)),
    "misfire": lambda value: Misfire(choice("misfire", tuple(Misfire), value)),
    "misfire_grace": lambda value: round(seconds("misfire_grace", value) * 1000),
    "misfire_cap": partial(_count, "misfire_cap"),
    "on_exhausted": partial(choice, "on_exhausted", ("stop", "continue")),
}


def check_dedup(access: Access, task: Spec) -> None:
    if task.dedup_key is not None and access.config.partitions > 1:
        raise ConfigError("a schedule's runs have ids of their own, so a dedup_key is not for several partitions")


def edited(access: Access, old: Schedule, changes: Mapping[str, Any], now: int) -> Schedule:
    """The schedule with these changes. Its next tick counts only where cron line, zone or `dst` are changed."""
    known_only(changes, ScheduleChanges)
    changes = without_policy(changes)
    fields = {name: OF_SCHEDULE[name](value) for name, value in changes.items() if name in OF_SCHEDULE}
    if "cron" in changes:
        fields["cron"] = changes["cron"]
    if "timezone" in changes:
        fields["timezone"] = find_zone(changes["timezone"] or access.config.timezone).name
    new = replace(old, **fields, task=_edited_task(access, old.task, changes))
    return replace(new, next_at=None if new.cron is None else ticks.cron_of(new).next_ms(now))


def _edited_task(access: Access, task: Spec, changes: Mapping[str, Any]) -> Spec:
    fields: dict[str, Any] = {}
    if any(name in changes for name in _OF_PAYLOAD):
        fields |= _payload(access, task, changes)
    for name, value in changes.items():
        if name in READERS and name not in _OF_DEDUP:
            fields[name] = getattr(_DEFAULTS, name, None) if value is None else READERS[name](value)
    if changes.get("retention") is not None:
        fields["retention"] = round(fields["retention"] * 1000)
    if "key" in changes:
        fields["key"] = None if changes["key"] is None else text("key", changes["key"], 512)
    if any(name in changes for name in _OF_DEDUP):
        fields |= _dedup(access, task, changes)
    new = replace(task, **fields)
    new = replace(new, fair=access.registry.fair.cost(new.queue, new.key))
    if "executor" in changes or "target" in changes:
        access.registry.executors.check(new.executor or LOCAL, new.target, new.type)
    check_dedup(access, new)
    check_size(new, access.config.payload_limit)
    return new


def _payload(access: Access, task: Spec, changes: Mapping[str, Any]) -> dict[str, Any]:
    """A payload must fit the handler, also the one that is there already, if the handler is another one now."""
    kind = changes.get("type", task.type)
    payload = changes.get("payload", payload_of(task, access.registry) if task.payload else MISSING)
    serializer = changes.get("serializer", None if "type" in changes else task.serializer)
    executor, target = changes.get("executor", task.executor), changes.get("target", task.target)
    made = access.spec(kind, payload, {"serializer": serializer, "executor": executor, "target": target})
    fields: dict[str, Any] = {"type": made.type, "payload": made.payload, "serializer": made.serializer}
    entry = access.registry.find(kind)
    if entry is not None and "key" in entry.options:  # a path into the payload
        fields["key"] = made.key
    return fields


def _dedup(access: Access, task: Spec, changes: Mapping[str, Any]) -> dict[str, Any]:
    """How long the key is held is said by `dedup_ttl` or by `unique`; whichever is named takes the other's place."""
    said = {name: changes[name] for name in _OF_DEDUP if changes.get(name) is not None}
    key = changes.get("dedup_key", task.dedup_key)
    if key is None:
        check_together(said)
        return {"dedup_key": None, "dedup_ttl": 0, "unique": None}
    if "unique" not in said and "dedup_ttl" not in said and task.dedup_key is not None:
        keeps_unique = task.unique is not None and "unique" not in changes
        keeps_ttl = task.unique is None and "dedup_ttl" not in changes
        said |= {"unique": task.unique} if keeps_unique else {"dedup_ttl": task.dedup_ttl / 1000} if keeps_ttl else {}
    return _held(access, key, said)


def _held(access: Access, key: Any, said: Mapping[str, Any]) -> dict[str, Any]:
    check_together({"dedup_key": key, **said})
    ttl = dedup_ttl(said.get("dedup_ttl", access.config.dedup_ttl))
    unique = READERS["unique"](said["unique"]) if "unique" in said else None
    return {
        "dedup_key": READERS["dedup_key"](key),
        "unique": unique,
        "dedup_ttl": ttl if unique is None else 0,
    }
