"""Secrets by reference: `file:/path`, said in a configuration, never in a submission.

The file is read when the secret is used, and again when it has changed. Errors name the file, never what it holds.
"""

from __future__ import annotations

import base64
import binascii
import os
import stat

from tickwork.errors import ConfigError
from tickwork.texts import shown

SCHEME = "file:"
SECRET_MAX = 65_536  # bytes
ADMINISTRATOR_MIN = 32


class SecretFile:
    """What a file holds now. It is opened again only when its identity, size or time has changed."""

    def __init__(self, path: str) -> None:
        self.path = path
        self._seen: tuple[int, ...] = ()
        self._data = b""

    def __repr__(self) -> str:
        return f"SecretFile({self.path!r})"

    def read(self) -> bytes:
        """Raises `ConfigError` if the file cannot be read or is empty."""
        try:
            if _marks(os.stat(self.path)) != self._seen:
                self._data, self._seen = _content(self.path)
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or error
            raise ConfigError(f"the secret in file {shown(self.path)} cannot be read: {reason}") from None
        return self._data


class Secret:
    """A secret text, such as a token: the content of a file without the line break at its end."""

    def __init__(self, reference: str) -> None:
        self._file = SecretFile(path_of(reference))

    def __repr__(self) -> str:
        return f"Secret({SCHEME + self._file.path!r})"

    def bytes(self) -> bytes:
        data = self._file.read().rstrip(b"\r\n")
        if not data:
            raise ConfigError(f"the secret in file {shown(self._file.path)} is empty")
        return data

    def text(self) -> str:
        """As text of one line, which may stand in a header."""
        try:
            text = self.bytes().decode()
        except UnicodeDecodeError:
            text = "\0"
        if not text.isprintable():
            raise ConfigError(f"the secret in file {shown(self._file.path)} is not one line of UTF-8 text")
        return text


class AdministratorSecret:
    """The one secret of `secret_file`, from which keys are derived. All nodes have the same."""

    def __init__(self, path: str) -> None:
        self._file = SecretFile(path)

    def bytes(self) -> bytes:
        """Base64 is decoded if it stands for enough bytes; anything else counts as it is."""
        data = self._file.read()
        try:
            decoded = base64.b64decode(data.strip(), validate=True)
        except (binascii.Error, ValueError):
            decoded = b""
        secret = decoded if len(decoded) >= ADMINISTRATOR_MIN else data
        if len(secret) < ADMINISTRATOR_MIN:
            raise ConfigError(
                f"secret_file {shown(self._file.path)} holds {len(secret)} bytes; {ADMINISTRATOR_MIN} or more are "
                f"needed: head -c {ADMINISTRATOR_MIN} /dev/urandom | base64 makes some"
            )
        return secret


def path_of(reference: str) -> str:
    """The path in a reference. Raises `ConfigError` for other forms, and does not repeat them: they may be a secret."""
    if not isinstance(reference, str) or not reference.startswith(SCHEME):
        raise ConfigError(f"a secret is named by reference, {SCHEME}/path/of/a/file; it cannot be given itself")
    path = reference.removeprefix(SCHEME)
    if not os.path.isabs(path) or "\0" in path:
        raise ConfigError(f"the secret {shown(reference)} needs the whole path of its file: {SCHEME}/run/secrets/name")
    return path


def _content(path: str) -> tuple[bytes, tuple[int, ...]]:
    # A named pipe would hold up the process until somebody writes to it.
    descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0))
    with os.fdopen(descriptor, "rb") as file:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise ValueError("it is not a regular file")
        data = file.read(SECRET_MAX + 1)
    if len(data) > SECRET_MAX:
        raise ValueError(f"it has more than {SECRET_MAX} bytes")
    if not data:
        raise ValueError("it is empty")
    return data, _marks(status)


def _marks(status: os.stat_result) -> tuple[int, ...]:
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns
