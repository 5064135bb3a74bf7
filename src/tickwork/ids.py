"""Ids and nonces."""

from __future__ import annotations

import os
import re

import uuid_utils

NAME = re.compile(r"[A-Za-z0-9._:@-]{1,128}")


def new_id() -> str:
    """A time-ordered id that nobody can guess."""
    return str(uuid_utils.uuid7())


def new_nonce() -> str:
    return os.urandom(8).hex()


def is_name(text: str) -> bool:
    """Names of types, queues, ids and tags travel in keys, logs and URLs: letters, digits and `._:@-`."""
    return NAME.fullmatch(text) is not None
