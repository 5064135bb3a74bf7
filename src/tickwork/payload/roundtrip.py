"""Whether a value arrives as it was given. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any

from tickwork.payload.annotations import field_names

ABSENT = object()


def difference(given: Any, found: Any, kinds: Collection[type]) -> str:
    """Why a value would not arrive as it was given, or nothing.

    Whoever gives plain values wants them made into typed ones, so only what is typed already has to stay as it is: an
    object of one of the `kinds` that the declared type is made of must not become another, nor lose or change a field.
    """
    return next(_differences(given, found, kinds, "$", typed=False), "")


def _differences(given: Any, found: Any, kinds: Collection[type], path: str, *, typed: bool) -> Iterator[str]:
    if isinstance(given, Mapping):
        for key, item in given.items():
            there = found.get(key, ABSENT) if isinstance(found, Mapping) else _attribute(found, key)
            if there is not ABSENT:
                yield from _differences(item, there, kinds, f"{path}.{key}", typed=typed)
    elif isinstance(given, list | tuple):
        if isinstance(found, list | tuple) and len(found) == len(given):
            for index, (item, there) in enumerate(zip(given, found, strict=True)):
                yield from _differences(item, there, kinds, f"{path}[{index}]", typed=typed)
    elif type(given) is not type(found):
        plain = isinstance(given, str | int | float | None) and (not typed or given == found)  # 1 may become 1.0
        if type(given) in kinds and not plain:
            yield f"a {type(given).__name__} would arrive as {type(found).__name__} - at `{path}`"
    elif names := field_names(given):
        for name in names:
            there = _attribute(found, name)
            yield from _differences(_attribute(given, name), there, kinds, f"{path}.{name}", typed=True)
    elif typed and _differ(given, found):
        yield f"it would not arrive as it was given, as its type leaves it out or changes it - at `{path}`"


def _attribute(value: Any, name: Any) -> Any:
    return getattr(value, name, ABSENT) if isinstance(name, str) else ABSENT


def _differ(given: Any, found: Any) -> bool:
    """What has no equality of its own cannot be compared, and NaN differs from itself."""
    if "__eq__" not in {name for kind in type(given).__mro__[:-1] for name in vars(kind)}:
        return False
    return bool(given == given and given != found)
