"""Rows as CSV that no spreadsheet takes for a formula."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

import msgspec
from msgspec import Struct

_ACTIVE = ("=", "+", "-", "@", "\t", "\r")


def csv_of(kind: type[Struct], rows: Iterable[Struct], parts: Mapping[str, type[Struct]] | None = None) -> str:
    """A line for each, after one with the names of the fields. A field in `parts` has a column for each of its own."""
    parts = parts or {}
    columns = [
        (name, part)
        for name in kind.__struct_fields__
        for part in (parts[name].__struct_fields__ if name in parts else (None,))
    ]
    text = io.StringIO()
    writer = csv.writer(text)
    writer.writerow([name if part is None else f"{name}_{part}" for name, part in columns])
    for row in rows:
        writer.writerow([_cell(_value(row, name, part)) for name, part in columns])
    return text.getvalue()


def _value(row: Struct, name: str, part: str | None) -> Any:
    value = getattr(row, name)
    return value if part is None or value is None else getattr(value, part)


def _cell(value: Any) -> str | int | float:
    """Numbers stay numbers; a text that begins like a formula gets a quote in front."""
    if value is None:
        return ""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return value
    if isinstance(value, datetime):
        return value.isoformat()
    text = value if isinstance(value, str) else msgspec.json.encode(value).decode()
    return f"'{text}" if text.startswith(_ACTIVE) else text
