"""Keys from the administrator's one secret: HKDF with SHA-256 (RFC 5869).

Each purpose has a label of its own, so that a key for one can never serve for another.
"""

from __future__ import annotations

import hashlib
import hmac

KEY_BYTES = 32


def derive(secret: bytes, label: str, name: str) -> bytes:
    """The key of `name` for the purpose that `label` says: 32 bytes, the same on every node."""
    if not label or "\0" in label:
        raise ValueError("a label is a text without NUL, which ends it")
    return hkdf(secret, info=label.encode() + b"\0" + name.encode())


def hkdf(secret: bytes, *, salt: bytes = b"", info: bytes = b"", length: int = KEY_BYTES) -> bytes:
    mixed = hmac.digest(salt or bytes(hashlib.sha256().digest_size), secret, "sha256")
    out = block = b""
    for number in range(1, -(-length // len(mixed)) + 1):
        block = hmac.digest(mixed, block + info + bytes((number,)), "sha256")
        out += block
    return out[:length]
