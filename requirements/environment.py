"""The environments of this repository: `python3 requirements/environment.py FOLDER SET` makes one, or brings it up to
date.

The Makefile calls this with whatever Python there is, so it must start on one that is too old, to refuse it in a
sentence. A set is a list of steps. The folder keeps which of them are done, so a second call goes on where the first
stopped. uv installs (its own wheel comes from `uv.txt`), pip where uv cannot be had, or with TESTS_INSTALLER=pip.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import shutil
import subprocess
import sys
import threading
import time
from typing import IO, Any

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
OLDEST = (3, 11)
EDITABLE, BUILT = "the tree", "the published files"  # two ways to install Tickwork itself
SETS = {
    "run": ("build.txt", "server.txt", EDITABLE),
    "dev": ("dev.txt", "docs.txt", EDITABLE),
    "old": ("dev.txt", "floors.txt", BUILT),  # the oldest libraries, on top of newer ones for tests and linters
    "proto": ("proto.txt",),
}
STAMP = ".made-of.json"
UV = ".venv-uv"
SHOWN_EVERY = 3.0 if sys.stdout.isatty() else 15.0  # seconds
VERSION = "{}.{}.{}".format(*sys.version_info)
AGAIN = "The same command goes on where this one stopped."


class Stop(Exception):
    """The environment cannot be made; the message names the next step."""


class Failed(Exception):
    """A command that failed, with the lines that it printed."""

    def __init__(self, lines: list[str]) -> None:
        super().__init__("\n".join(lines))
        if "No space left" in str(self) or "os error 28" in str(self):
            raise Stop(f"the disk is full: an environment takes 0.9 GB. {AGAIN}")
        for line in lines[-12:]:
            print(f"    {line}", flush=True)


def main(folder: str, name: str) -> None:
    if sys.version_info < OLDEST:
        raise Stop(f"{sys.executable} is Python {VERSION}, which is not Python 3.11 or newer: install one, or name it: "
                   "make PYTHON=python3.12 ...")  # fmt: skip
    steps = {step: digest_of(step) for step in SETS[name]}
    done = read_stamp(folder)
    if done.get("place") == place(folder) and not missing(done["steps"], steps):
        return
    began = time.monotonic()
    print(f"Setting up {folder} (once, under a minute):", flush=True)
    uv = find_uv()
    if not can_be_added_to(folder, done, steps):
        make(folder, uv)
        done = {}
    done = done or {"place": place(folder), "steps": {}}
    write_stamp(folder, done)
    for step in missing(done["steps"], steps):
        install(folder, uv, step)
        done["steps"][step] = steps[step]
        write_stamp(folder, done)
    print(f"{folder} is ready after {time.monotonic() - began:.0f} s", flush=True)


# --- what an environment holds


def place(folder: str) -> list[str]:
    """What an environment is bound to: where it lies, and the Python that it was made with."""
    return [os.path.abspath(folder), os.path.realpath(sys.base_prefix), VERSION]


def digest_of(step: str) -> str:
    """A digest of what the step installs. An editable tree is only pointed to, so that its metadata are enough."""
    digest = hashlib.sha256()
    for name in ["pyproject.toml"] if step == EDITABLE else tree() if step == BUILT else [f"requirements/{step}"]:
        with open(os.path.join(ROOT, name), "rb") as file:
            digest.update(name.encode() + b"\0" + file.read())
    return digest.hexdigest()


def tree() -> list[str]:
    """The files from which the package is built."""
    found = ["pyproject.toml"]
    for at, _, names in os.walk(os.path.join(ROOT, "src")):
        found += [os.path.relpath(os.path.join(at, name), ROOT) for name in names if not name.endswith(".pyc")]
    return sorted(found)


def missing(done: dict[str, str], steps: dict[str, str]) -> list[str]:
    return [step for step, digest in steps.items() if done.get(step) != digest]


def read_stamp(folder: str) -> dict[str, Any]:
    try:
        with open(os.path.join(folder, STAMP)) as stamp:
            return dict(json.load(stamp))
    except (OSError, ValueError):
        return {}


def write_stamp(folder: str, done: dict[str, Any]) -> None:
    with open(os.path.join(folder, STAMP), "w") as stamp:
        json.dump(done, stamp)


def can_be_added_to(folder: str, done: dict[str, Any], steps: dict[str, str]) -> bool:
    """Whether the folder is an environment that only lacks steps. One of another place, Python or commit is made anew:
    what an older list installed and this one does not would stay."""
    if not os.path.isdir(folder) or not os.listdir(folder):
        return False
    if not os.path.exists(os.path.join(folder, "pyvenv.cfg")):
        raise Stop(f"{folder} is not an environment of Python: move it away, or name another: make VENV=.venv-2 ...")
    known = done.get("steps", {})
    changed = [each for each in steps if each.endswith(".txt") and known.get(each, steps[each]) != steps[each]]
    if not done:
        reason = "was made in another way, or not finished"
    elif not runs(folder) or done["place"] != place(folder):
        reason = "was made at another place or with another Python"
    elif changed:
        reason = f"holds what another commit needs ({', '.join(changed)})"
    else:
        return True
    print(f"  {folder} {reason}: it is made anew", flush=True)
    return False


def runs(folder: str) -> bool:
    """Whether the interpreter of the folder is of the version that runs this."""
    command = [python_of(folder), "-c", "import sys; print('{}.{}.{}'.format(*sys.version_info))"]
    try:
        return subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip() == VERSION
    except OSError:
        return False


# --- how it is made


def python_of(folder: str) -> str:
    return os.path.join(folder, "bin", "python")


def find_uv() -> str | None:
    """The command of uv: the one on the path, or that of a wheel that is installed here once. None if only pip is."""
    if os.environ.get("TESTS_INSTALLER") == "pip":
        return None
    found = shutil.which("uv")
    own, digest = os.path.join(UV, "bin", "uv"), {"uv": digest_of("uv.txt")}
    if found is not None or read_stamp(UV) == digest:
        return found or own
    try:
        make(UV, None)
        run("uv", [*pip(UV), "--only-binary", ":all:", "--require-hashes", "-r", "requirements/uv.txt"])
    except Failed:
        print("  uv cannot be installed here: pip is used, which takes a minute longer", flush=True)
        return None
    write_stamp(UV, digest)
    return own


def make(folder: str, uv: str | None) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    if uv is not None:
        run("environment", [uv, "venv", "--quiet", "--python", sys.executable, folder])
        return
    try:
        run("environment", [sys.executable, "-m", "venv", folder])
    except Failed:
        shutil.rmtree(folder, ignore_errors=True)
        raise Stop(f"{sys.executable} cannot make an environment: on Debian and Ubuntu, apt install python3-venv; "
                   "elsewhere, install uv") from None  # fmt: skip


def pip(folder: str) -> list[str]:
    return [python_of(folder), "-m", "pip", "install", "--disable-pip-version-check", "--no-input"]


def install(folder: str, uv: str | None, step: str) -> None:
    if step == EDITABLE:
        what = ["--no-build-isolation", "--no-deps", "--editable", "."]
    elif step == BUILT:
        what = ["--no-build-isolation", "--no-deps", "--force-reinstall", source_archive(folder)]
    else:
        what = ["--require-hashes", "-r", f"requirements/{step}"] + ["--no-deps"] * (step == "floors.txt")
    if uv is not None:
        try:
            run(step, [uv, "pip", "install", "--python", python_of(folder), *what])
            return
        except Failed:
            print(f"  uv could not install {step}: pip is tried", flush=True)
    try:
        if uv is not None:
            run("pip", [python_of(folder), "-m", "ensurepip"])
        run(step, pip(folder) + what)
    except Failed:
        raise Stop(f"{step} cannot be installed, see above. Where there is no way to the package index, name one: "
                   f"PIP_INDEX_URL and UV_INDEX_URL, or HTTPS_PROXY. {AGAIN}") from None  # fmt: skip


def source_archive(folder: str) -> str:
    """The path of a new source archive. A wheel is built from it and installed, so that both are tried."""
    out = os.path.join("build", "dist")
    shutil.rmtree(out, ignore_errors=True)
    run("source archive", [python_of(folder), "-m", "hatchling", "build", "-t", "sdist", "-d", out])
    return os.path.join(out, os.listdir(out)[0])


def run(title: str, command: list[str]) -> None:
    """Run a command of seconds to minutes. A line every few seconds shows how far it is."""
    began = shown = time.monotonic()
    lines: list[str] = []
    with subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    ) as process:
        reader = threading.Thread(target=read, args=(process.stdout, lines), daemon=True)
        reader.start()
        try:
            while reader.is_alive():
                reader.join(0.1)
                if time.monotonic() - shown > SHOWN_EVERY:
                    shown = time.monotonic()
                    print(f"  {shown - began:3.0f} s  {title}: {lines[-1][:90] if lines else '...'}", flush=True)
        except BaseException:
            process.kill()
            raise
    if process.returncode != 0:
        raise Failed(lines)


def read(stream: IO[bytes], lines: list[str]) -> None:
    for raw in stream:
        line = raw.decode("utf-8", "replace").strip()
        if line:
            lines.append(line)


if __name__ == "__main__":
    os.chdir(ROOT)
    try:
        main(*sys.argv[1:])
    except Stop as reason:
        sys.exit(f"error: {reason}")
    except OSError as problem:
        if problem.errno != errno.ENOSPC:
            raise
        sys.exit(f"error: the disk is full: an environment takes 0.9 GB. {AGAIN}")
    except KeyboardInterrupt:
        sys.exit(f"stopped. {AGAIN}")
