"""The seed of everything random: new for each commit, the same in a clean clone of it and in CI."""

from __future__ import annotations

import hashlib
import os
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
FOLDERS = ("src", "tests")
BUILT = ("__pycache__", ".egg-info")


@cache
def tree_hash() -> str:
    """Of the files of the product and of its tests; TESTS_SEED names another, to repeat what was drawn from it."""
    given = os.environ.get("TESTS_SEED")
    if given:
        return given
    digest = hashlib.sha256()
    for path in sorted(path for folder in FOLDERS for path in (ROOT / folder).rglob("*") if path.is_file()):
        name = path.relative_to(ROOT).as_posix()
        if not any(part in name for part in BUILT):
            digest.update(f"{name}\0".encode() + hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()[:16]


def drawn(what: str, among: int) -> int:
    """One of `among` numbers, which `what` and the tree decide."""
    return int.from_bytes(hashlib.sha256(f"{tree_hash()} {what}".encode()).digest()[:8], "big") % among


if __name__ == "__main__":
    print(tree_hash())
