"""What a checkout is set up from: the locked requirements, and the ways to call the command."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

from tickwork import __version__

ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
DIRECT = [*PROJECT["dependencies"], *(line for extra in PROJECT["optional-dependencies"].values() for line in extra)]


def pins(name: str) -> dict[str, str]:
    """Package and version; every entry has hashes."""
    text = (ROOT / "requirements" / name).read_text()
    found = dict(re.findall(r"^([a-z0-9-]+)==([^ ]+)", text, re.MULTILINE))
    for entry in re.split(r"^(?=[a-z])", text, flags=re.MULTILINE):
        assert not entry.strip() or "--hash=sha256:" in entry, entry
    assert "://" not in text
    return found


def floors() -> dict[str, str]:
    """The oldest release of each direct dependency that pyproject.toml allows."""
    found = (re.match(r"([a-z-]+)>=([0-9.]+)", line) for line in DIRECT)
    return {line[1]: line[2] for line in found if line is not None}


def test_every_lock_has_the_versions_that_the_tests_run_with() -> None:
    tested = pins("dev.txt")
    for name in ("build.txt", "runtime.txt", "runtime-all.txt"):
        assert pins(name).items() <= tested.items()
    assert pins("runtime.txt").items() <= pins("runtime-all.txt").items()


def test_the_site_of_the_docs_is_built_with_the_same_versions() -> None:
    tested, site = pins("dev.txt"), pins("docs.txt")
    assert {name: version for name, version in site.items() if tested.get(name, version) != version} == {}


def test_the_runtime_locks_are_whole() -> None:
    needed = {line.partition(">")[0] for line in PROJECT["dependencies"]}
    assert needed <= set(pins("runtime.txt"))
    (everything,) = PROJECT["optional-dependencies"]["all"]
    extras = re.findall(r"\w+", everything.removeprefix("tickwork"))
    added = [line for extra in extras for line in PROJECT["optional-dependencies"][extra]]
    assert {re.split("[><;]", line)[0] for line in added} | needed <= set(pins("runtime-all.txt"))


def test_every_dependency_has_a_floor_and_it_is_the_one_that_is_tested() -> None:
    assert set(floors()) == {re.split("[><;]", line)[0] for line in DIRECT if not line.startswith("tickwork[")}
    tested = pins("floors.txt")
    for name, floor in floors().items():
        assert release(tested[name]) == release(floor), name


def release(version: str) -> list[int]:
    numbers = [int(part) for part in version.split(".")]
    return numbers + [0] * (3 - len(numbers))


def test_the_module_is_the_command(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "tickwork"]
    shown = subprocess.run([*command, "--version"], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert shown.stdout == f"tickwork {__version__}\n"
    environ = {name: value for name, value in os.environ.items() if not name.startswith("TICKWORK_")}
    wrong = subprocess.run([*command, "tasks"], cwd=tmp_path, env=environ, capture_output=True, text=True, check=False)
    assert (wrong.returncode, wrong.stdout) == (3, "")
    assert wrong.stderr.startswith("error: there is no SQLite file tickwork.db")
