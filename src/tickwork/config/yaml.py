"""YAML files, read by the rules of YAML 1.2."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import Any

from tickwork.errors import ConfigError
from tickwork.payload.depth import DEPTH_MAX, TOO_DEEP


def read_yaml(path: Path) -> dict[Any, Any]:
    """The mapping in a file; an empty file is an empty mapping."""
    import yaml  # most processes read no file

    try:
        data = path.read_bytes()
        _check_depth(data)
        document = yaml.load(data, Loader=_loader())  # noqa: S506  a safe loader, narrowed further
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


def _check_depth(data: bytes) -> None:
    """Before it is put together, which is done by recursion, and ends the process when that goes too far."""
    import yaml

    depth = 0
    for event in yaml.parse(data, Loader=_loader()):
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
        if depth > DEPTH_MAX:
            raise yaml.MarkedYAMLError(problem=TOO_DEEP, problem_mark=event.start_mark)


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
