"""Places in the code that can be changed, and the mutants that a seed draws from them."""

from __future__ import annotations

import difflib
import hashlib
import random
import re
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from tests.suite.mutants import of_lua, of_python
from tests.suite.mutants.edits import Edit

ROOT = Path(__file__).resolve().parents[3]
SOURCE = ROOT / "src" / "tickwork"

# The code that matters most: what happens to tasks, and who may do what. All files that begin so, below src/tickwork.
CORE = (
    "backoff.py", "client/bulk.py", "client/holds.py", "client/lock.py", "client/specs.py", "client/steering.py",
    "client/submitting.py", "cron/", "dispatch/", "handlers/retrying.py", "model/", "node/", "outbound/addresses.py",
    "outbound/networks.py", "payload/depth.py", "server/buckets.py", "server/filters.py", "server/masking.py",
    "server/quotas.py", "server/sessions.py", "server/throttle.py", "server/tokens.py", "store/gating.py",
    "store/hints.py", "store/memory/", "store/redis/", "store/rules.py", "store/sqlite/", "store/unreadable.py",
    "webhooks/", "worker/",
)  # fmt: skip
LEFT_OUT = ("store/redis/ops/", "store/sqlite/inotify.py")  # asked by people; and what a machine may lack
_FUNCTION = re.compile(r"\s*(?:(?:async )?def|(?:local )?function) (\w+)")


class Mutant(NamedTuple):
    """One change in one file, whose path is from the root of the repository."""

    file: str
    line: int
    column: int
    edit: Edit

    @property
    def name(self) -> str:
        return f"{self.file}:{self.line}:{self.column} {self.edit.kind}"

    def text(self) -> str:
        """The whole file, changed."""
        return self.edit.apply((ROOT / self.file).read_text(encoding="utf-8"))

    def function(self) -> str:
        """The name of the function that is changed, or nothing."""
        lines = (ROOT / self.file).read_text(encoding="utf-8").splitlines()[: self.line]
        found = (_FUNCTION.match(line) for line in reversed(lines))
        return next((match[1] for match in found if match), "")

    def diff(self) -> str:
        old = (ROOT / self.file).read_text(encoding="utf-8")
        lines = difflib.unified_diff(old.splitlines(), self.text().splitlines(), lineterm="", n=2)
        return "\n".join(list(lines)[2:])


def core_files() -> list[str]:
    """The files that mutants are made in, from the root of the repository."""
    files = [path for path in sorted(SOURCE.rglob("*")) if path.suffix in (".py", ".lua")]
    names = {path.relative_to(SOURCE).as_posix(): path for path in files}
    return [
        path.relative_to(ROOT).as_posix()
        for name, path in names.items()
        if name.startswith(CORE) and not name.startswith(LEFT_OUT)
    ]


def mutants_of(file: str) -> Iterator[Mutant]:
    """Every mutant of a file."""
    text = (ROOT / file).read_text(encoding="utf-8")
    for edit in (of_lua if file.endswith(".lua") else of_python).edits(text):
        before = text[: edit.start]
        yield Mutant(file, before.count("\n") + 1, edit.start - before.rfind("\n"), edit)


def tree_seed() -> str:
    """A seed that is another one for each state of the package, and the same in every clone of it."""
    digest = hashlib.sha256()
    for path in sorted(SOURCE.rglob("*")):
        if path.suffix in (".py", ".lua"):
            digest.update(path.relative_to(SOURCE).as_posix().encode())
            digest.update(path.read_bytes())
    return digest.hexdigest()[:12]


def draw(seed: str, count: int) -> list[Mutant]:
    """So many mutants, each place as likely as any other; always the same ones for a seed and a state of the code."""
    everything = [mutant for file in core_files() for mutant in mutants_of(file)]
    random.Random(seed).shuffle(everything)
    return list(islice(filter(is_code, everything), count))


def at(place: str) -> list[Mutant]:
    """The mutants of a file, of one of its lines, or of one column of it: `src/tickwork/ids.py:12:5`."""
    file, *position = place.split(":")
    if not (ROOT / file).is_file():
        raise SystemExit(f"there is no file {file}: give its path from the root of the repository")
    wanted = tuple(map(int, position))
    found = (mutant for mutant in mutants_of(file) if (mutant.line, mutant.column)[: len(wanted)] == wanted)
    return list(filter(is_code, found))


def is_code(mutant: Mutant) -> bool:
    """Whether the changed file can be read at all."""
    return mutant.file.endswith(".lua") or of_python.is_python(mutant.text())
