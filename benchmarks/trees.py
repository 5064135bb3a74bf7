"""The two trees that `against.py` compares: a commit as git keeps it, and the working tree as it is at the start.

Both are copies in one folder, so that a file may be edited while the run goes on. Only the product is copied. The code
of the benchmarks and the environment are those of the working tree for both, so nothing else differs.
"""

from __future__ import annotations

import hashlib
import io
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

from msgspec import Struct

PRODUCT = "src/tickwork"


class Refused(Exception):
    """What cannot be compared, and what to do about it, in a sentence."""


class Tree(Struct, frozen=True):
    name: str
    source: Path  # the folder that holds the package

    @property
    def product(self) -> Path:
        return self.source / "tickwork"

    @property
    def digest(self) -> str:
        """The same for trees that hold the same files."""
        found = hashlib.sha256()
        for path in sorted(
            path for path in self.product.rglob("*") if path.is_file() and "__pycache__" not in path.parts
        ):
            content = path.read_bytes()
            found.update(f"{path.relative_to(self.source)}\0{len(content)}\0".encode() + content)
        return found.hexdigest()


def both(root: Path, ref: str, folder: Path) -> tuple[Tree, Tree]:
    """Copies of the commit `ref` and of the working tree at `root`, inside the folder."""
    _require_checkout(root)
    commit = _commit(root, ref)
    return _archived(root, ref, commit, folder / "before"), _copied(root, folder / "now")


def _require_checkout(root: Path) -> None:
    try:
        top = _git(root, "rev-parse", "--show-toplevel").decode().strip()
    except FileNotFoundError:
        raise Refused("git is not installed, and it keeps the commit to compare with: install git") from None
    except subprocess.CalledProcessError as error:
        if b"not a git repository" not in error.stderr:
            raise Refused(f"git cannot read {root}: {_last_line(error.stderr)}") from None
        top = ""
    if not top or Path(top).resolve() != root.resolve():
        raise Refused(f"{root} is not a git checkout, so it has no other commit: run this in a clone of the repository")


def _commit(root: Path, ref: str) -> str:
    if not ref.strip():
        raise Refused(
            "no commit is named to compare with: make bench-against REF=main, or a hash out of git log --oneline"
        )
    try:
        found = _git(root, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{ref}^{{commit}}")
    except subprocess.CalledProcessError:
        raise Refused(
            f"git knows no commit {ref!r} here: name a branch, a tag or a hash out of git log --oneline, "
            "or fetch it first (git fetch --all --tags; --unshallow where the clone is shallow)"
        ) from None
    return found.decode().strip()


def _archived(root: Path, ref: str, commit: str, folder: Path) -> Tree:
    short = _git(root, "rev-parse", "--short", commit).decode().strip()
    name = short if commit.startswith(ref) else f"{short} ({ref})"
    try:
        packed = _git(root, "archive", "--format=zip", commit, PRODUCT)
    except subprocess.CalledProcessError:
        raise Refused(f"{name} has no {PRODUCT}: name a later commit") from None
    with zipfile.ZipFile(io.BytesIO(packed)) as files:
        files.extractall(folder)
    return Tree(name, folder / "src")


def _copied(root: Path, folder: Path) -> Tree:
    short = _git(root, "rev-parse", "--short", "HEAD").decode().strip()
    changed = _git(root, "status", "--porcelain", "--", PRODUCT)
    shutil.copytree(root / PRODUCT, folder / PRODUCT, ignore=shutil.ignore_patterns("__pycache__"))
    name = f"the working tree ({short} with changes in {PRODUCT})" if changed else f"the working tree ({short})"
    return Tree(name, folder / "src")


def imported(tree: Tree, environ: tuple[str, ...]) -> Path:
    """Which package a process gets that runs in this environment: that of the tree, or the tree is refused."""
    start = ["/usr/bin/env", *environ, sys.executable, "-c", "import tickwork; print(tickwork.__file__)"]
    done = subprocess.run(start, capture_output=True, text=True, check=False)
    if done.returncode:
        raise Refused(f"{tree.name} does not start in this environment ({_last_line(done.stderr)}): {instead(tree)}")
    found = Path(done.stdout.strip())
    if tree.product.resolve() not in found.resolve().parents:
        raise Refused(
            f"{found} is imported in place of {tree.product}: {os.pathsep.join(environ)} does not reach Python"
        )
    return found


def instead(tree: Tree) -> str:
    """The next step where a tree cannot be run by the benchmarks of the working tree."""
    if tree.name.startswith("the working tree"):
        return "make it run first (make test)"
    return "name a later commit, or check that one out and measure each with its own `make bench`"


def _git(root: Path, *args: str) -> bytes:
    environ = {**os.environ, "LC_ALL": "C"}  # what git says is read here
    return subprocess.run(["git", "-C", str(root), *args], env=environ, capture_output=True, check=True).stdout


def _last_line(said: str | bytes) -> str:
    text = said.decode(errors="replace") if isinstance(said, bytes) else said
    return next((line.strip() for line in reversed(text.splitlines()) if line.strip()), "without a message")
