"""URLs and headers with placeholders: `https://api.example.com/orders/{payload.order}`.

A placeholder names a value of the task, and nothing else: no attributes, no formats. In a URL each value is encoded so
that it stays one segment, and none can stand before the path. Templates are read once, with the configuration.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any
from urllib.parse import quote

from msgspec import Struct

from tickwork.errors import Abort, ConfigError
from tickwork.outbound.addresses import URL_MAX
from tickwork.texts import shown

PLAIN = ("id", "type", "queue", "attempt", "key")
_PLACEHOLDER = re.compile(r"\{([^{}]*)\}")
_NAMED = re.compile(r"payload(\.[A-Za-z0-9_-]{1,128}){1,16}|tags\.[A-Za-z0-9._:@-]{1,128}|" + "|".join(PLAIN))
_NEVER_IN_HEADER = re.compile(r"[\x00-\x1f\x7f\ud800-\udfff]")
_ORIGIN = re.compile(r"https?://[^/?]*")


class Values(Struct):
    """What placeholders may name. The payload is decoded only if one names it."""

    plain: Mapping[str, Any]
    tags: Mapping[str, str]
    payload: Callable[[], Any]

    def of(self, name: str) -> str:
        """Raises `Abort`: another try would find the same."""
        head, _, rest = name.partition(".")
        if head == "payload":
            value = value_at(self.payload(), rest.split("."))
        else:
            value = self.tags.get(rest) if head == "tags" else self.plain.get(head)
        if isinstance(value, bool):
            return "true" if value else "false"
        if not isinstance(value, str | int | float):
            what = "is missing" if value is None else f"is a {type(value).__name__}, not a text or a number"
            raise Abort(f"the task cannot be sent: {{{name}}} {what}")
        return str(value)


def value_at(value: Any, path: Sequence[str]) -> Any:
    """What lies at a path of names, and of numbers in lists; None if there is nothing."""
    for step in path:
        if isinstance(value, dict):
            value = value.get(step)
        elif isinstance(value, list) and step.isdecimal() and int(step[:9]) < len(value):
            value = value[int(step[:9])]
        else:
            return None
    return value


class Template:
    """A text with placeholders. `names` are those it has."""

    def __init__(self, text: str) -> None:
        self._parts = _PLACEHOLDER.split(text)  # texts and names, in turns
        self.names = self._parts[1::2]
        if any("{" in part or "}" in part for part in self._parts[::2]):
            raise ConfigError(f"{shown(text)} has a brace that belongs to no placeholder")
        for name in self.names:
            if not _NAMED.fullmatch(name):
                known = ", ".join(f"{{{each}}}" for each in (*PLAIN, "tags.name", "payload.name"))
                raise ConfigError(f"{shown(text)} has an unknown placeholder {{{name[:100]}}}; there are {known}")

    def fill(self, value_of: Callable[[str], str]) -> str:
        if not self.names:
            return self._parts[0]
        return "".join(value_of(part) if index % 2 else part for index, part in enumerate(self._parts))


class HeaderTemplate(Template):
    def filled(self, values: Values) -> str:
        text = self.fill(values.of)
        if _NEVER_IN_HEADER.search(text):
            names = ", ".join(f"{{{name}}}" for name in self.names)
            raise Abort(f"the task cannot be sent: {names} would put a line break or the like into a header")
        return text


class UrlTemplate:
    """Scheme, host and port are fixed. `sample` is a URL to check where it leads."""

    def __init__(self, url: str) -> None:
        found = _ORIGIN.match(url)
        self._origin = url if found is None else found[0]
        if "{" in self._origin or "}" in self._origin:
            raise ConfigError(f"url {shown(url)}: scheme, host and port cannot have placeholders")
        path, mark, query = url[len(self._origin) :].partition("?")
        self._segments = [Template(segment) for segment in path.split("/")]
        self._query = Template(mark + query)
        self.names = [name for part in (*self._segments, self._query) for name in part.names]
        self.sample = self._joined(lambda _: "x")

    def filled(self, values: Values) -> str:
        url = self._joined(lambda name: _encoded(name, values.of(name)))
        if len(url) > URL_MAX:
            raise Abort(f"the task cannot be sent: its URL has {len(url):,} characters, {URL_MAX:,} are the most")
        return url

    def _joined(self, value_of: Callable[[str], str]) -> str:
        segments = []
        for template in self._segments:
            segment = template.fill(value_of)
            if template.names and segment in ("", ".", ".."):
                name = "}{".join(template.names)
                raise Abort(f"the task cannot be sent: {{{name}}} is {segment!r}, which is no part of a path")
            segments.append(segment)
        return self._origin + "/".join(segments) + self._query.fill(value_of)


def _encoded(name: str, value: str) -> str:
    try:
        return quote(value, safe="")
    except UnicodeEncodeError:
        raise Abort(f"the task cannot be sent: {{{name}}} is not a text that can be encoded") from None
