"""How a configuration is written: the names that options go by, the forms of their values, and YAML files.

`entries_of_mapping` and `entries_of_environment` find out which option each name means. A reader turns what was
written into the value it stands for; its ValueError goes on from "name: value (origin)", so it begins with a verb.
Environment variables hold only text: a list is `a, b` there and a mapping `a=b, c=d`, or either is JSON.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import timedelta
from functools import cache, partial
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, NamedTuple, TypeAlias, Union, get_args, get_origin

import msgspec
from msgspec import Struct

from tickwork.backoff import Seconds
from tickwork.errors import ConfigError

Reader: TypeAlias = Callable[[Any], Any]

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
    "custom_logger": "logger",
}

_SCHEDULER = (
    "id=scheduler_id namespace timezone leader_lease_ttl leader_lock_ttl leader_renew_interval scan_interval batch_size"
    " cleanup_interval dispatch load_balance_strategy partitions"
)
_DEDUP = "enabled=dedup ttl=dedup_ttl default_ttl=dedup_ttl"
# What a section may hold; in `short=name` both are accepted.
SECTIONS = {
    "schedule": _SCHEDULER,
    "scheduler": _SCHEDULER,
    "worker": "id=scheduler_id count=worker_count worker_count concurrency worker_concurrency capacity"
    " max_concurrent_tasks heartbeat_interval heartbeat_timeout lease_ttl renew_interval queues task_types labels"
    " weight worker_timeout shutdown_timeout",
    "task": "timeout default_timeout max_retry max_retries task_retry_limit retry_limit=max_retry retry retry_strategy"
    " retry_delay backoff_rate max_losses payload_limit retention retention_max serializer",
    "redis": "addr=redis_addr db=redis_db pass=redis_pass password=redis_pass pool_size",
    "leader": "lease_ttl=leader_lease_ttl lock_ttl=leader_lease_ttl renew_interval=leader_renew_interval",
    "dedup": _DEDUP,
    "deduplication": _DEDUP,
    "dlq": "enabled=dlq max=dlq_max max_size=dlq_max",
    "lock": "prefix=lock_prefix ttl=lock_ttl",
    "metrics": "enabled=metrics port=metrics_port interval=metrics_interval",
    "health": "enabled=health port=health_port check_interval=health_check_interval",
    "monitoring": "enabled=monitoring metrics_interval health_check_interval alert_rules",
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

_TRUE, _FALSE = ("true", "1", "yes", "on"), ("false", "0", "no", "off")
_NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")
_UNITS = {"d": 86_400, "h": 3_600, "m": 60, "s": 1, "ms": 0.001}
_DURATION = re.compile(r"\s*".join(rf"(?:([0-9]+(?:\.[0-9]+)?)\s*{unit}(?![a-z]))?" for unit in _UNITS))
_LONG_FIELDS = {"base_delay": "base", "max_delay": "max"}


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


def read_text(value: Any) -> str:
    if isinstance(value, str):
        return value
    raise ValueError("is not text; put it in quotes")


def read_switch(value: Any) -> bool:
    word = str(value).strip().lower() if isinstance(value, str | int) else None
    if word in _TRUE + _FALSE:
        return word in _TRUE
    raise ValueError("is not true or false")


def read_number(value: Any) -> float:
    if isinstance(value, str) and _NUMBER.fullmatch(value.strip()):
        value = float(value)
    if isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 1e300:
        return float(value)
    raise ValueError("is not a number")


def read_whole(value: Any) -> int:
    with suppress(ValueError):
        number = read_number(value)
        if number.is_integer():
            return int(number)
    raise ValueError("is not a whole number")


def read_seconds(value: Any) -> float:
    if isinstance(value, timedelta):
        return value.total_seconds()
    if isinstance(value, str) and value.strip() and (found := _DURATION.fullmatch(value.strip())):
        counts = zip(found.groups(default="0"), _UNITS.values(), strict=True)
        return round(sum(float(count) * size for count, size in counts), 6)
    try:
        return read_number(value)
    except ValueError:
        raise ValueError("is not a duration; give seconds, or text such as 250ms, 10s, 1h30m, 7d") from None


def read_list(item: Reader, value: Any) -> tuple[Any, ...]:
    value = _from_json(value)
    if isinstance(value, str):
        value = [part.strip() for part in value.split(",") if part.strip()]
    if not isinstance(value, Sequence):
        raise ValueError("is not a list, such as a, b")
    return tuple(_within(f"[{index}]", item, each) for index, each in enumerate(value))


def read_mapping(value: Any) -> dict[str, str]:
    value = _from_json(value)
    if isinstance(value, str):
        pairs = [part.partition("=") for part in value.split(",") if part.strip()]
        value = {name.strip(): text.strip() if equals else None for name, equals, text in pairs}
    if isinstance(value, Mapping) and all(isinstance(text, str) for text in (*value, *value.values())):
        return dict(value)
    raise ValueError("is not a mapping of text to text, such as zone=eu, gpu=yes")


def read_text_or_mapping(value: Any) -> str | dict[str, str]:
    value = _from_json(value)
    return read_mapping(value) if isinstance(value, Mapping) or "=" in read_text(value) else value.strip()


def read_couple(value: Any, /, **kinds: Any) -> tuple[Any, ...] | None:
    """A tuple of named fields, or None when it is switched off."""
    value = _from_json(value)
    if value is False or (isinstance(value, str) and value.strip().lower() in _FALSE):
        return None
    if isinstance(value, Mapping):
        _check_fields(value, {*kinds, "enabled"})
        if not _within("enabled", read_switch, value.get("enabled", True)):
            return None
        value = [value.get(name) for name in kinds]
    if isinstance(value, str):
        value = value.split(",")
    if not isinstance(value, Sequence) or len(value) != len(kinds):
        raise ValueError(f"is not {' and '.join(kinds)}, such as [10, 20]; false switches it off")
    return tuple(_within(name, reader_of(kinds[name]), each) for name, each in zip(kinds, value, strict=True))


def read_record(kinds: Sequence[type[Struct]], value: Any) -> Any:
    """A record of one of these kinds; `type` names which, the first if it is left out."""
    value = _from_json(value)
    if isinstance(value, tuple(kinds)):
        return value
    if not isinstance(value, Mapping):
        raise ValueError("is not a mapping of fields to values")
    fields: dict[Any, Any] = {_LONG_FIELDS.get(name, name): each for name, each in value.items()}
    kind = kinds[0]
    if len(kinds) > 1 and "type" in fields:
        by_tag = {str(each.__struct_config__.tag): each for each in kinds}
        tag = str(fields.pop("type"))
        if tag not in by_tag:
            raise ValueError(f"is of unknown type {tag!r}; known are {', '.join(by_tag)}")
        kind = by_tag[tag]
    readers = readers_of(kind)
    _check_fields(fields, readers)
    try:
        return kind(**{name: _within(name, readers[name], each) for name, each in fields.items()})
    except (TypeError, ConfigError) as error:  # a field is missing, or they do not go together
        raise ValueError(f"cannot be used: {error}") from None


def reader_of(kind: Any) -> Reader:
    """The reader of an annotation; `X | None` is read as X."""
    if kind in _READERS:
        return _READERS[kind]
    if isinstance(kind, type) and issubclass(kind, Struct):
        return partial(read_record, [kind])
    arguments = [each for each in get_args(kind) if each not in (NoneType, Ellipsis)]
    if get_origin(kind) not in (Union, UnionType):
        return partial(read_list, reader_of(arguments[0]))
    return partial(read_record, arguments) if len(arguments) > 1 else reader_of(arguments[0])


@cache
def readers_of(kind: type[Struct]) -> dict[str, Reader]:
    return {field.name: reader_of(field.type) for field in msgspec.structs.fields(kind)}


def nearest(name: object, known: Collection[str]) -> str:
    from difflib import get_close_matches  # only a mistake needs it

    near = get_close_matches(str(name), known, 1, 0.5)
    return f"; did you mean {near[0]!r}?" if near else ""


_READERS: dict[Any, Reader] = {
    str: read_text,
    bool: read_switch,
    float: read_number,
    int: read_whole,
    Seconds: read_seconds,
    dict[str, str]: read_mapping,
    str | dict[str, str]: read_text_or_mapping,
    Any: lambda value: value,
}


def read_yaml(path: Path) -> dict[Any, Any]:
    """The mapping in a file; an empty file is an empty mapping."""
    import yaml  # most processes read no file

    try:
        document = yaml.load(path.read_bytes(), Loader=_loader())  # noqa: S506  a safe loader, narrowed further
    except OSError as error:
        raise ConfigError(f"file {path}: {error.strerror or error}") from None
    except yaml.MarkedYAMLError as error:
        line = f", line {error.problem_mark.line + 1}" if error.problem_mark else ""
        raise ConfigError(f"file {path}{line}: {error.problem}") from None
    except (yaml.YAMLError, ValueError, LookupError, AttributeError) as error:  # bytes, or `!!bool maybe`
        raise ConfigError(f"file {path}: cannot be read as YAML: {error}") from None
    if document is None:
        return {}
    if not isinstance(document, dict):
        raise ConfigError(f"file {path}: holds a {type(document).__name__}; expected lines such as `name: value`")
    return document


@cache
def _loader() -> Any:
    """PyYAML reads YAML 1.1, where 22:30 is 1350, `on` is true and 010 is 8, and lets a key be given twice."""
    import yaml

    try:
        from yaml import CSafeLoader as Base
    except ImportError:  # built without libyaml
        from yaml import SafeLoader as Base  # type: ignore[assignment]

    class Loader(Base):
        yaml_implicit_resolvers = {}  # noqa: RUF012  those of the base are the 1.1 rules

        def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
            lines: dict[Any, int] = {}
            for key_node in (key_node for key_node, _ in node.value if isinstance(key_node, yaml.ScalarNode)):
                key, mark = self.construct_object(key_node), key_node.start_mark
                if key in lines:
                    problem = f"{key!r} is given twice, first on line {lines[key]}"
                    raise yaml.constructor.ConstructorError(None, None, problem, mark)
                lines[key] = mark.line + 1
            return super().construct_mapping(node, deep)

        def construct_int(self, node: yaml.ScalarNode) -> int:
            text = self.construct_scalar(node)
            return int(text, 0) if text[:2] in ("0x", "0o") else int(text, 10)

    Loader.add_constructor("tag:yaml.org,2002:int", Loader.construct_int)
    for tag, pattern, first in _CORE_SCHEMA:
        Loader.add_implicit_resolver(f"tag:yaml.org,2002:{tag}", re.compile(rf"(?:{pattern})\Z"), first)
    return Loader


_CORE_SCHEMA = (
    ("null", r"~|null|Null|NULL|", ["~", "n", "N", ""]),
    ("bool", r"true|True|TRUE|false|False|FALSE", list("tTfF")),
    ("int", r"[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+", list("-+0123456789")),
    ("float", r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?", list("-+.0123456789")),
    ("float", r"[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)", list("-+.")),
)


def _within(name: str, reader: Reader, value: Any) -> Any:
    try:
        return reader(value)
    except ValueError as error:
        raise ValueError(f"cannot be used: {name}: {value!r} {error}") from None


def _check_fields(given: Mapping[Any, Any], known: Collection[str]) -> None:
    for name in given:
        if name not in known:
            raise ValueError(f"has an unknown field {name!r}{nearest(name, known)}")


def _from_json(value: Any) -> Any:
    if not isinstance(value, str) or value.lstrip()[:1] not in ("[", "{"):
        return value
    try:
        return msgspec.json.decode(value)
    except msgspec.DecodeError as error:
        raise ValueError(f"is not JSON: {error}") from None
