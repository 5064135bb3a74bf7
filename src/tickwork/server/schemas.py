"""The JSON Schema of what a handler takes, for forms and for those who write clients."""

from __future__ import annotations

from typing import Any

import msgspec

from tickwork.handlers.registry import Entry


def schema_of(entry: Entry) -> dict[str, Any] | None:
    """Of the payload as an object with the names of the parameters; None where a type has no schema."""
    try:
        return msgspec.json.schema(entry.parameters.wire)
    except (TypeError, AttributeError):  # a type that only pydantic, or a serializer of the program's own, knows
        return None
