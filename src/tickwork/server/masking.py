"""Hiding fields by name from those who may not see them.

A field is hidden wherever it stands: in a payload, a result, a context or the tags. Other values that repeat what it
holds are hidden too, such as a key made of it. Free text, such as an error, a log line or the detail of an event, may
hold anything in any form, so that where fields are hidden only the class of an error is shown.
Nor can a hidden value be searched for: what is not shown is not found.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from datetime import date, time, timedelta
from decimal import Decimal
from fnmatch import fnmatchcase
from types import NoneType
from typing import Any
from uuid import UUID

from tickwork.client.views import payload_of
from tickwork.handlers.registry import Registry
from tickwork.model.tasks import Spec

MASKED = "masked for your role"
_CLASS = re.compile(
    r"(?:[A-Za-z_]\w*\.)*(?:[A-Z]\w*)?(?:Error|Exception|Warning|Timeout|Failed|Failure|NotFound|Refused|Group|Exit|Interrupt)"
)
_PLAIN = (str, int, float, NoneType, date, time, timedelta, Decimal, UUID)
EVERYTHING = ""  # is in every text
SHORTEST = 3  # characters of a value by which it is found again; shorter ones are everywhere
_BUILTIN = Registry()


class Mask:
    """`names` are patterns such as `password` or `*_token`, without regard to case; none hide nothing."""

    def __init__(self, names: Iterable[str] = ()) -> None:
        self._names = tuple(name.lower() for name in names)

    def __bool__(self) -> bool:
        return bool(self._names)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Mask) and other._names == self._names

    def __hash__(self) -> int:
        return hash(self._names)

    def hides(self, name: str) -> bool:
        return any(fnmatchcase(name.lower(), pattern) for pattern in self._names)

    def of(self, *values: Any) -> TaskMask:
        """For one task, with the values in which hidden fields may stand. Where one has no names to go by, such as a
        payload of a serializer that is not known here, whatever else the task has may repeat what is hidden in it."""
        if not self._names:
            return NOTHING
        if not all(isinstance(value, (Mapping, list, tuple, *_PLAIN)) for value in values):
            return TaskMask(self, {EVERYTHING})
        return TaskMask(self, {text for value in values for text in self._hidden(value)})

    def of_task(self, spec: Spec) -> TaskMask:
        """As lists show it. A payload of a serializer that somebody has written may be shown, and counts as hidden."""
        return self.of(payload_of(spec, _BUILTIN), spec.context, spec.tags) if self._names else NOTHING

    def text(self, text: str) -> str:
        """Of a free text nothing is left."""
        return MASKED if text and self._names else text

    def error(self, text: str | None) -> str | None:
        """Of an error the class is left, which comes from code."""
        if not text or not self._names:
            return text
        kind = self.kind(text.partition("\n")[0].partition(":")[0])
        return f"{kind}: {MASKED}" if kind else MASKED

    def kind(self, name: str) -> str:
        """The class of an error. What does not look like one may be the first word of any text, and is left out."""
        return name if not self._names or _CLASS.fullmatch(name) else ""

    def rule(self, of: str) -> str:
        """What a switch is of: a key and a tag are values of tasks, and may repeat what is hidden there."""
        kind, _, name = of.partition(":")
        if not self._names or kind not in ("key", "tag"):
            return of
        return f"key:{MASKED}" if kind == "key" else f"tag:{name.partition('=')[0]}={MASKED}"

    def _hidden(self, value: Any) -> Iterator[str]:
        """The values of all hidden fields, as texts."""
        waiting = [(value, False)]
        while waiting:
            found, inside = waiting.pop()
            if isinstance(found, Mapping):
                waiting += [(each, inside or self.hides(str(name))) for name, each in found.items()]
            elif isinstance(found, list | tuple):
                waiting += [(each, inside) for each in found]
            elif inside and len(str(found)) >= SHORTEST and not isinstance(found, bool):
                yield str(found)


class TaskMask:
    def __init__(self, mask: Mask, secrets: set[str]) -> None:
        self._mask = mask
        self._secrets = secrets

    def value(self, value: Any) -> Any:
        """The same with hidden fields replaced."""
        if not self._mask:
            return value
        if isinstance(value, Mapping):
            return {self._field(name): self._of_field(name, each) for name, each in value.items()}
        if isinstance(value, list | tuple):
            return [self.value(each) for each in value]
        return MASKED if not isinstance(value, _PLAIN) or self._repeats(str(value)) else value

    def _field(self, name: Any) -> Any:
        """The name of a field, which may repeat a hidden value as well."""
        return MASKED if self._repeats(str(name)) else name

    def _of_field(self, name: Any, value: Any) -> Any:
        return MASKED if self._mask.hides(str(name)) else self.value(value)

    def name(self, text: str | None) -> str | None:
        """A key, or whatever else was made of a payload."""
        return MASKED if text and self._repeats(text) else text

    def text(self, text: str) -> str:
        return self._mask.text(text)

    def error(self, text: str | None) -> str | None:
        shown = self._mask.error(text)
        return MASKED if shown and self._repeats(shown) else shown

    def _repeats(self, text: str) -> bool:
        return any(secret in text for secret in self._secrets)


NOTHING = TaskMask(Mask(), set())
