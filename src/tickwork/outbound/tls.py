"""TLS settings of outgoing connections: certificates are always verified, and 1.2 is the oldest version."""

from __future__ import annotations

import ssl
from functools import cache

from tickwork.config.endpoints import Tls as Tls
from tickwork.errors import ConfigError
from tickwork.texts import shown


def context_of(tls: Tls | None) -> ssl.SSLContext:
    """Raises `ConfigError` that names the file which cannot be used."""
    if tls is None or tls == Tls():
        return _default_context()
    if tls.key and not tls.cert:
        raise ConfigError(f"tls: the key {shown(tls.key)} needs the certificate (cert) that it belongs to")
    context = _context(tls.ca)
    if tls.cert:
        try:
            # With a function for the password, OpenSSL does not ask for one on the terminal.
            context.load_cert_chain(tls.cert, tls.key, password=_no_password)
        except (OSError, ValueError) as error:
            files = f"{shown(tls.cert)} and {shown(tls.key)}" if tls.key else shown(tls.cert)
            raise ConfigError(f"tls: certificate and key in {files} cannot be used: {_reason(error)}") from None
    return context


@cache
def _default_context() -> ssl.SSLContext:
    return _context(None)


def _context(ca: str | None) -> ssl.SSLContext:
    try:
        context = ssl.create_default_context(cafile=ca)
    except (OSError, ValueError) as error:
        raise ConfigError(f"tls: the authorities in {shown(ca)} cannot be read: {_reason(error)}") from None
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    return context


def _no_password() -> str:
    raise ValueError("the key is encrypted; give one without a pass phrase that only this program can read")


def _reason(error: Exception) -> str:
    if isinstance(error, ssl.SSLError):
        return "they are not PEM, or do not belong together"
    return getattr(error, "strerror", None) or str(error)
