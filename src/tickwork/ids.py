"""Ids and nonces."""

from __future__ import annotations

import base64
import itertools
import os
import re
import zlib

import uuid_utils

NAME = re.compile(r"[A-Za-z0-9._:@-]{1,128}")


def new_id() -> str:
    """A time-ordered id that nobody can guess."""
    return str(uuid_utils.uuid7())


def new_tail() -> str:
    """A random part for names that people read."""
    return os.urandom(4).hex()


class _Nonces:
    """Unique by a random part that is drawn once a process, and a count."""

    def __init__(self) -> None:
        self.draw()

    def draw(self) -> None:
        self._stem = base64.urlsafe_b64encode(os.urandom(6)).decode()
        self._count = itertools.count()

    def next(self) -> str:
        return f"{self._stem}{next(self._count):x}"


_nonces = _Nonces()
new_nonce = _nonces.next
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_nonces.draw)


def partition_of(text: str, count: int) -> int:
    """The partition, of so many, in which a task of this id (or a dedup key) lives."""
    return zlib.crc32(text.encode()) % count if count > 1 else 0


def new_id_beside(text: str, count: int) -> str:
    """A new id in the same partition as a dedup key."""
    while partition_of(candidate := new_id(), count) != partition_of(text, count):
        continue
    return candidate


def is_name(text: str) -> bool:
    """Names of types, queues, ids and tags travel in keys, logs and URLs: letters, digits and `._:@-`."""
    return NAME.fullmatch(text) is not None
