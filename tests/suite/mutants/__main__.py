"""`make mutants`: breaks the code by chance, one place at a time, and shows what the tests of it do not notice."""

from __future__ import annotations

import argparse
import os
import random
import re
import shutil
import signal
import sys
import tempfile
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import pytest

from tests.suite import affected
from tests.suite.choices import Choice, file_of, kinds_of
from tests.suite.mutants import forking, places, report, swapping
from tests.suite.mutants.forking import Case, Forker, Result
from tests.suite.mutants.places import ROOT, SOURCE, Mutant
from tests.suite.mutants.report import Judged

TEST_TIMEOUT = 30  # seconds; a mutant may run for ever
LAST = ("tests/contract/test_machine.py", "tests/unit/test_cron_zones.py", "tests/unit/test_typing.py")  # take long
COMMON = {"test", "redi", "sqli", "memo", "task", "that", "with", "from", "when", "what", "each"}  # in most names


def parse(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="make mutants", description=__doc__)
    parser.add_argument("--seed", help="the same seed draws the same mutants of the same code (default: of the code)")
    parser.add_argument("--count", type=int, default=60, help="mutants (default: %(default)s)")
    parser.add_argument("--limit", type=float, default=120, metavar="S", help="seconds a mutant (default: %(default)g)")
    parser.add_argument(
        "--allowed", type=float, default=4, metavar="PERCENT", help="of survivors (default: %(default)g)"
    )
    parser.add_argument("--only", metavar="FILE[:LINE[:COLUMN]]", help="all mutants of a place, instead of a seed's")
    parser.add_argument("--tests", nargs="+", metavar="PATH", help="run these instead of those in the table")
    parser.add_argument("--list", action="store_true", help="print the mutants, run nothing")
    parser.add_argument("--json", action="store_true", help="print the report as JSON; progress goes to stderr")
    return parser.parse_args(argv)


def choices_of(mutant: Mutant, table: Sequence[affected.Row], tests: Sequence[str] | None) -> Sequence[Choice]:
    """The tests that should notice a mutant: those named, or those of its line in the table."""
    if tests:
        return [Choice.read(test.removeprefix("tests/")) for test in tests]
    row = affected.row_of(mutant.file, table)
    return row.choices if row is not None else ()


def chosen(choices: Sequence[Choice], mutant: Mutant, items: Sequence[pytest.Item], seed: str) -> list[pytest.Item]:
    """The tests of these choices: those first that have a word in common with the file or the function that is changed,
    then in the order of the choices, by chance in each. So few are run before the one that notices. What takes long
    comes last."""
    groups: dict[tuple[bool, bool, int], list[pytest.Item]] = {}
    wanted = _words(f"{Path(mutant.file).stem} {mutant.function()}")
    for item in items:
        file, kinds = file_of(item), kinds_of(item)
        at = next((at for at, choice in enumerate(choices) if choice.has(file, kinds)), None)
        if at is not None:
            named = not wanted.isdisjoint(_words(f"{Path(file).stem} {item.name.partition('[')[0]}"))
            groups.setdefault((file in LAST, not named, at), []).append(item)
    luck = random.Random(f"{seed} {mutant.name}")
    for group in groups.values():
        luck.shuffle(group)
    return [item for _, group in sorted(groups.items(), key=lambda one: one[0]) for item in group]


def _words(text: str) -> set[str]:
    """The words of names, by their beginnings, so that "retry" is found in "retries"."""
    words = re.split(r"[^a-z]+", text.lower())
    return {word[:4] for word in words if len(word) >= 4} - COMMON


class Work:
    """Tries the mutants one by one, and keeps what came of each."""

    def __init__(
        self, mutants: Sequence[Mutant], options: argparse.Namespace, seed: str, folder: Path, stopped: Sequence[int]
    ) -> None:
        self.judged: list[Judged] = []
        self.unsound: set[str] = set()
        self._mutants, self._options, self._seed, self._folder = mutants, options, seed, folder
        self._stopped = stopped
        self._table = affected.load_table()
        self._shown = os.dup(2 if options.json else 1)

    def paths(self) -> list[str]:
        """The files of all tests that are needed."""
        choices = {choice for mutant in self._mutants for choice in self._choices(mutant)}
        return sorted({file for choice in choices for file in choice.files(ROOT)})

    def go(self, items: list[pytest.Item]) -> None:
        swapping.load({ROOT / mutant.file for mutant in self._mutants})
        loaded = swapping.functions_by_file(SOURCE)
        forker = Forker(self._folder, self._options.limit)
        self.unsound = forker.unsound
        known = report.load_known()
        for number, mutant in enumerate(self._mutants, 1):
            same = report.known_as(mutant, known)
            if same is not None:
                result = Result(mutant.name, "equivalent", why=same.reason)
            else:
                tests = chosen(self._choices(mutant), mutant, items, self._seed)
                result = forker.run(Case(mutant.name, tests, _change(mutant, loaded), self._shadow(mutant)))
            self.judged.append(Judged(mutant, result))
            self.show(self.judged[-1].line(number, len(self._mutants)))
            if self._stopped:  # what a signal raises in the callback of a collected object is lost
                raise KeyboardInterrupt

    def show(self, text: str) -> None:
        """Print at once, also while pytest keeps what is printed."""
        os.write(self._shown, f"{text}\n".encode())

    def _choices(self, mutant: Mutant) -> Sequence[Choice]:
        return choices_of(mutant, self._table, self._options.tests)

    def _shadow(self, mutant: Mutant) -> tuple[Path, str]:
        return self._folder / "src" / Path(mutant.file).relative_to("src"), mutant.text()


def _change(mutant: Mutant, loaded: swapping.Functions) -> partial[None]:
    path, text = ROOT / mutant.file, mutant.text()
    if path.suffix == ".lua":
        return partial(swapping.swap_script, path, text)
    return partial(swapping.swap_python, path, text, loaded)


def main(argv: Sequence[str] | None = None) -> int:
    options = parse(argv)
    stopped: list[int] = []

    def stop(number: int, _frame: object) -> None:
        stopped.append(number)
        raise KeyboardInterrupt

    for number in (signal.SIGINT, signal.SIGTERM):  # the first is ignored in what a shell starts in the background
        signal.signal(number, stop)
    seed = options.seed or places.tree_seed()
    mutants = places.at(options.only) if options.only else places.draw(seed, options.count)
    if options.list:
        print(*(f"{mutant.name}\n{mutant.diff()}\n" for mutant in mutants), sep="\n")
        return 0
    complete = False
    folder = Path(tempfile.mkdtemp(prefix="tm-"))
    try:
        work = Work(mutants, options, seed, folder, stopped)
        work.show(f"{len(mutants)} mutants of seed {seed}; collecting the tests ...")
        shutil.copytree(SOURCE, folder / "src" / "tickwork")  # for processes that tests start
        os.environ["PYTHONPATH"] = str(folder / "src")
        forking.collect(work.paths(), folder, work.go, TEST_TIMEOUT)
        complete = True
    except KeyboardInterrupt:
        work.show("interrupted")
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    if options.json:
        print(report.as_json(work.judged, seed, work.unsound))
    else:
        print(report.summary(work.judged, seed, work.unsound, options.allowed))
    if not complete:
        return 130
    return int(report.share_of(work.judged) > options.allowed)


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
    except RuntimeError as error:
        sys.exit(f"make mutants: {error}")
