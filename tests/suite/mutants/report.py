"""What is printed of mutants, and which of them are known to change nothing for a caller."""

from __future__ import annotations

import json
import tomllib
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from tests.suite.mutants.forking import Result
from tests.suite.mutants.places import ROOT, Mutant

UNNOTICED = ("survived", "undecided")  # an undecided one outlived the tests for which there was time
EQUIVALENT = Path(__file__).with_name("equivalent.toml")


class Known(NamedTuple):
    """A change of which no caller can notice anything, and why."""

    file: str
    old: str
    new: str
    reason: str

    def text(self) -> str:
        """The whole file with this change."""
        text = (ROOT / self.file).read_text(encoding="utf-8")
        if text.count(self.old) != 1:
            raise ValueError(f"{self.file} has {self.old!r} {text.count(self.old)} times, not once: write it anew")
        return text.replace(self.old, self.new)


def load_known() -> list[Known]:
    entries = tomllib.loads(EQUIVALENT.read_text(encoding="utf-8")).get("mutant", [])
    return [Known(**entry) for entry in entries]


def known_as(mutant: Mutant, known: Iterable[Known]) -> Known | None:
    """The entry of the list that changes the same file in the same way."""
    same = [one for one in known if one.file == mutant.file]
    return next((one for one in same if one.text() == mutant.text()), None) if same else None


class Judged(NamedTuple):
    """A mutant, and what became of it."""

    mutant: Mutant
    result: Result

    def line(self, number: int, count: int) -> str:
        """What is printed as soon as it is known."""
        result = self.result
        text = f"[{number:{len(str(count))}}/{count}] {result.verdict:11} {result.seconds:5.1f} s  {self.mutant.name}"
        if result.verdict == "killed":
            return f"{text}  by {result.by} ({len(result.passed) + 1})"
        return f"{text}  {result.why}".rstrip()

    def survivor(self) -> str:
        """What is printed of a survivor at the end."""
        files = Counter(test.partition("::")[0] for test in self.result.passed)
        passed = ", ".join(f"{file} ({count})" for file, count in files.items())
        end = f", then {self.result.why}" if self.result.why else ""
        return f"{self.mutant.name}\n{self.mutant.diff()}\n{len(self.result.passed)} tests passed{end}: {passed}\n"

    def entry(self) -> dict[str, Any]:
        """What `--json` prints of it."""
        mutant = self.mutant
        place = {"file": mutant.file, "line": mutant.line, "column": mutant.column, "kind": mutant.edit.kind}
        return {**place, "diff": mutant.diff(), **self.result._asdict()}


def share_of(judged: Sequence[Judged]) -> float:
    """How many of a hundred mutants no test has noticed, less those that are known to be equivalent."""
    counts = Counter(one.result.verdict for one in judged)
    applied = len(judged) - counts["not applied"]
    return 100 * sum(counts[verdict] for verdict in UNNOTICED) / applied if applied else 0.0


def summary(judged: Sequence[Judged], seed: str, unsound: Iterable[str], allowed: float) -> str:
    """The end of the report: survivors, tests that are red by themselves, figures."""
    survivors = [one.survivor() for one in judged if one.result.verdict in UNNOTICED]
    lines = ["", *(["Survivors:", ""] if survivors else []), *survivors]
    lines += [f"Red without a mutant, and left out: {test}" for test in sorted(unsound)]
    counts = Counter(one.result.verdict for one in judged)
    ran = [one.result for one in judged if one.result.verdict != "equivalent"]
    cpu = sum(result.cpu for result in ran) / len(ran) if ran else 0.0
    told = ", ".join(f"{count} {verdict}" for verdict, count in sorted(counts.items()))
    lines.append(f"{len(judged)} mutants of seed {seed}: {told}; {cpu:.1f} CPU s a mutant")
    lines.append(f"{share_of(judged):.1f} % survive; {allowed:g} % may")
    return "\n".join(lines)


def as_json(judged: Sequence[Judged], seed: str, unsound: Iterable[str]) -> str:
    document = {"seed": seed, "share": share_of(judged), "unsound": sorted(unsound)}
    return json.dumps({**document, "mutants": [one.entry() for one in judged]}, indent=1)
