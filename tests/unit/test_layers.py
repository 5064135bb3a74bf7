"""Imports go down only: what is pure knows no store, what works with a store knows none in particular."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

import tickwork

SRC = Path(tickwork.__file__).parent

# Each folder is a layer and may know those before it; what stands at the root of the package has its place too.
ROOT = frozenset({"backoff", "clock", "errors", "forks", "host", "ids", "texts", "timeouts"})  # small and pure
LAYERS = (
    "root", "payload", "remote", "cron", "model", "observe", "config", "outbound", "store", "handlers", "client",
    "dispatch", "executors", "worker", "node", "monitor", "webhooks", "server", "logs", "scheduler", "testing",
    "contrib", "cli", "__main__",
)  # fmt: skip
PURE = LAYERS[: LAYERS.index("store")]
SEAM = {"store.contract", "store.hints", "store.joining"}  # what everybody may know of stores
FORBIDDEN = {"pickle", "marshal", "shelve", "dill", "cloudpickle", "jsonpickle", "joblib"}


def module_name(path: Path, root: Path = SRC) -> str:
    """Dotted, below the package; empty for the package itself."""
    parts = path.relative_to(root).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imports(tree: ast.AST, *, of_types: bool = True) -> Iterator[str]:
    """Every module that is imported, at the top or inside a function; those for type checkers only if wanted."""
    skipped: set[ast.AST] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test) and not of_types:
            skipped.update(inner for statement in node.body for inner in ast.walk(statement))
        if node in skipped:
            continue
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are absolute"
            yield node.module or ""
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Call) and ast.unparse(node.func) in ("import_module", "__import__"):
            yield from (arg.value for arg in node.args if isinstance(arg, ast.Constant) and isinstance(arg.value, str))


MODULES = {module_name(path): path for path in sorted(SRC.rglob("*.py"))}
TREES = {name: ast.parse(path.read_text()) for name, path in MODULES.items()}


def ours(name: str, *, of_types: bool = True) -> set[str]:
    """The modules of the package that a module imports."""
    found = {target.removeprefix("tickwork.") for target in imports(TREES[name], of_types=of_types)}
    return {target for target in found if target in MODULES and target not in ("", name)}


def layer(name: str) -> str:
    first = name.partition(".")[0]
    return "root" if first in ROOT else first


def test_every_module_has_its_place() -> None:
    """A new folder, or a module at the root, must say where it belongs."""
    assert {layer(name) for name in MODULES if name} == set(LAYERS)
    assert len(MODULES) > 100


@pytest.mark.parametrize("name", sorted(name for name in MODULES if name))
def test_imports_go_down_only(name: str) -> None:
    place = LAYERS.index(layer(name))
    assert {target for target in ours(name, of_types=False) if LAYERS.index(layer(target)) > place} == set()


@pytest.mark.parametrize("name", sorted(name for name in MODULES if name))
def test_who_works_with_a_store_knows_none_in_particular(name: str) -> None:
    if layer(name) in ("store", "scheduler", "testing", "cli"):
        return
    stores = {target for target in ours(name) if layer(target) == "store"}
    assert stores <= (set() if layer(name) in PURE else SEAM | {"store"})


@pytest.mark.parametrize("name", ["logs", "scheduler", "testing"])
def test_even_the_top_opens_stores_by_url_only(name: str) -> None:
    concrete = {target for target in ours(name) if target.startswith(("store.memory", "store.sqlite", "store.redis"))}
    assert concrete == set()


def test_the_two_stores_do_not_know_each_other() -> None:
    for name in MODULES:
        if name.startswith("store.memory"):
            assert not any(target.startswith("store.sqlite") for target in ours(name))
        if name.startswith("store.sqlite"):
            assert not any(target.startswith("store.memory") for target in ours(name))


def test_nobody_needs_the_command_line() -> None:
    others = {name for name in MODULES if layer(name) not in ("cli", "__main__")}
    assert {name for name in others if any(layer(target) == "cli" for target in ours(name))} == set()


def test_there_is_no_circle() -> None:
    graph = {name: ours(name, of_types=False) for name in MODULES if name}
    try:
        list(TopologicalSorter(graph).static_order())
    except CycleError as error:
        raise AssertionError(f"a circle of imports: {' -> '.join(error.args[1])}") from None


@pytest.mark.parametrize("name", sorted(MODULES))
def test_nothing_that_is_stored_can_name_code(name: str) -> None:
    wrong = {target for target in imports(TREES[name]) if target.partition(".")[0] in FORBIDDEN}
    assert wrong == set()
    calls = {ast.unparse(node.func) for node in ast.walk(TREES[name]) if isinstance(node, ast.Call)}
    assert calls & {"eval", "exec", "yaml.unsafe_load", "yaml.full_load"} == set()


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("import pickle", {"pickle"}),
        ("import pickle as p, os", {"pickle", "os"}),
        (
            "from tickwork.store.sqlite import SqliteStore",
            {"tickwork.store.sqlite", "tickwork.store.sqlite.SqliteStore"},
        ),
        ("from tickwork.store import sqlite", {"tickwork.store", "tickwork.store.sqlite"}),
        ("def f():\n    import marshal", {"marshal"}),
        ("if TYPE_CHECKING:\n    import tickwork.node\nimport os", {"os"}),
        ("import_module('shelve')", {"shelve"}),
    ],
)
def test_the_check_itself(code: str, expected: set[str]) -> None:
    assert set(imports(ast.parse(code), of_types=False)) == expected
