"""Signatures in the form of Standard Webhooks (https://www.standardwebhooks.com). Pure."""

from __future__ import annotations

import base64
import binascii
import hmac
from collections.abc import Sequence

PREFIX = "whsec_"  # of a secret as text: what comes after it is Base64
KEY_MIN = 24  # bytes, as Standard Webhooks asks for


def sign(key: bytes, event_id: str, timestamp: int, body: bytes) -> str:
    signed = f"{event_id}.{timestamp}.".encode() + body
    return f"v1,{base64.b64encode(hmac.digest(key, signed, 'sha256')).decode()}"


def headers(keys: Sequence[bytes], event_id: str, timestamp: int, body: bytes) -> dict[str, str]:
    """Those of one request. With two keys, each signs, and a receiver that knows one of them is content."""
    return {
        "content-type": "application/json",
        "webhook-id": event_id,
        "webhook-timestamp": str(timestamp),
        "webhook-signature": " ".join(sign(key, event_id, timestamp, body) for key in keys),
    }


def secret_text(key: bytes) -> str:
    """A key as the libraries of receivers take it."""
    return PREFIX + base64.b64encode(key).decode()


def key_of(secret: bytes) -> bytes:
    """The key that a secret stands for: that of a `whsec_` text, else the bytes themselves. Raises `ValueError`, which
    does not repeat it."""
    if not secret.startswith(PREFIX.encode()):
        key = secret
    else:
        try:
            key = base64.b64decode(secret.removeprefix(PREFIX.encode()), validate=True)
        except (binascii.Error, ValueError):
            raise ValueError(f"what comes after {PREFIX} is not Base64") from None
    if len(key) < KEY_MIN:
        raise ValueError(f"it has {len(key)} bytes; {KEY_MIN} or more are needed")
    return key
