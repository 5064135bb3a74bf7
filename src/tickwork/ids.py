"""Ids and nonces."""

from __future__ import annotations

import base64
import hashlib
import hmac
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

    def __init__(self, random_bytes: int) -> None:
        self._random_bytes = random_bytes
        self.draw()
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self.draw)

    def draw(self) -> None:
        self._stem = base64.urlsafe_b64encode(os.urandom(self._random_bytes)).decode()
        self._count = itertools.count()

    def next(self) -> str:
        return f"{self._stem}{next(self._count):x}"


new_nonce = _Nonces(6).next
new_claim_nonce = _Nonces(12).next  # a secret: the tokens of all tasks of a claim are made with it


def run_token(task_id: str, fence: int, nonce: str) -> str:
    """Proof of holding one run of one task. It tells nothing of the nonce, so that its holder cannot make another."""
    return hmac.new(nonce.encode(), f"{fence} {task_id}".encode(), hashlib.sha256).hexdigest()[:32]


def is_token_of(token: str, task_id: str, fence: int, nonce: str) -> bool:
    """Compared in constant time. A task that nobody holds has no nonce, and no token fits it."""
    return bool(nonce) and hmac.compare_digest(
        token.encode("utf-8", "replace"), run_token(task_id, fence, nonce).encode()
    )


def partition_of(text: str, count: int) -> int:
    """The partition, of so many, in which a task of this id (or a dedup key) lives."""
    return zlib.crc32(text.encode()) % count if count > 1 else 0


def new_id_beside(text: str, count: int) -> str:
    """A new id in the same partition as a dedup key."""
    while partition_of(candidate := new_id(), count) != partition_of(text, count):
        continue
    return candidate


def identity_of(name: str) -> str:
    """A name that several processes may have been given, made one process's own."""
    return f"{name}#{new_tail()}"


def name_of(identity: str) -> str:
    return identity.partition("#")[0]


LABEL = re.compile(r"[A-Za-z0-9._:/-]{1,64}")


def is_label(text: str) -> bool:
    """Labels of workers and their values, as tasks may require them."""
    return LABEL.fullmatch(text) is not None


def is_name(text: str) -> bool:
    """Names of types, queues, ids and tags travel in keys, logs and URLs: letters, digits and `._:@-`."""
    return NAME.fullmatch(text) is not None
