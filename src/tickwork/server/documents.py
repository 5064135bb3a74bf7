"""Documents that the control plane keeps in the store, such as views and mutes."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import msgspec

from tickwork.observe.loggers import Log
from tickwork.store.contract import Document

T = TypeVar("T")

_log = Log.of(None, "server")
_told: set[tuple[str, str]] = set()  # documents that cannot be read, each of which is told once


def read_document(kind: str, document: Document, decode: Callable[[str], T]) -> T | None:
    """None of one that cannot be read, as of a later version: it harms only itself."""
    try:
        return decode(document.text)
    except (ValueError, msgspec.MsgspecError) as error:
        if (kind, document.name) not in _told:
            _told.add((kind, document.name))
            _log.warning("%s %s cannot be read and is left out: %s", kind, document.name, error)
        return None
