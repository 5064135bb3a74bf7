"""The environments of the peers: made once, on demand, outside the repository."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

from benchmarks.subjects import Subject

CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "tickwork-bench"
ROOT = Path(__file__).parents[1]
PEERS = Path(__file__).parent / "peers"
STAMP = "made-of.txt"
LIMIT = 600.0  # seconds for one step


class Unavailable(Exception):
    """The subject cannot be measured here; the message says why."""


def command(subject: Subject, cache: Path, role: str) -> list[str]:
    """What starts one side of a subject, its environment being made first where it is missing."""
    if subject.node:
        modules = _node_modules(subject, cache)
        return ["/usr/bin/env", f"NODE_PATH={modules}", _program("node"), str(PEERS / f"{subject.module}.js"), role]
    if subject.variant == "uvloop" and find_spec("uvloop") is None:
        raise Unavailable("uvloop is not installed")
    python = _venv(subject, cache) if subject.needs else Path(sys.executable)
    path = f"PYTHONPATH={ROOT}"
    return ["/usr/bin/env", path, *subject.environ, str(python), "-m", "benchmarks.peers", subject.module, role]


def _venv(subject: Subject, cache: Path) -> Path:
    folder = cache / subject.module
    python = folder / "bin" / "python"
    if _is_made(folder, subject):
        return python
    _run([str(_interpreter(subject)), "-m", "venv", "--clear", str(folder)])
    _run([str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *subject.needs])
    _mark(folder, subject)
    return python


def _node_modules(subject: Subject, cache: Path) -> Path:
    folder = cache / subject.module
    if not _is_made(folder, subject):
        folder.mkdir(parents=True, exist_ok=True)
        _run([_program("npm"), "install", "--silent", "--no-save", "--prefix", str(folder), *subject.needs])
        _mark(folder, subject)
    return folder / "node_modules"


def _interpreter(subject: Subject) -> Path:
    """Ours, or the one it asks for: on the path, or where pyenv keeps them."""
    if not subject.python or sys.version_info >= tuple(map(int, subject.python.split("."))):
        return Path(sys.executable)
    found = shutil.which(f"python{subject.python}")
    kept = sorted(Path.home().glob(f".pyenv/versions/{subject.python}.*/bin/python"))
    if found is None and not kept:
        raise Unavailable(f"it needs Python {subject.python}, which is not here")
    return kept[-1] if kept else Path(str(found))


def _program(name: str) -> str:
    found = shutil.which(name)
    if found is None:
        raise Unavailable(f"{name} is not installed")
    return found


def _is_made(folder: Path, subject: Subject) -> bool:
    stamp = folder / STAMP
    return stamp.exists() and stamp.read_text() == _made_of(subject)


def _mark(folder: Path, subject: Subject) -> None:
    (folder / STAMP).write_text(_made_of(subject))


def _made_of(subject: Subject) -> str:
    return "\n".join((subject.python, *subject.needs))


def _run(step: list[str]) -> None:
    try:
        done = subprocess.run(step, capture_output=True, text=True, timeout=LIMIT, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise Unavailable(f"its environment cannot be made: {error}") from error
    if done.returncode:
        last = (done.stderr or done.stdout).strip().splitlines()[-1:] or ["no message"]
        raise Unavailable(f"its environment cannot be made: {last[0]}")
