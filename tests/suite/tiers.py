"""Which tests are run: `--tier` names one of five sets, `--store` those of one store.

What kind of test one is stands here for whole folders and files, and as a marker at single tests.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.suite.seed import drawn, tree_hash

MARKERS = {
    "slow": "takes long for what it shows, so that only `make test-all` runs it, and CI a part of them",
    "waits": "waits for leases, elections or servers, and takes little of a processor meanwhile",
    "process": "starts processes of its own",
    "browser": "drives a browser",
}
STORES = ("memory", "sqlite", "redis", "redis-partitioned", "redis-6.2", "valkey")
FURTHER = ("redis-6.2", "valkey")  # the same scripts on other servers
_STORE = re.compile(
    rf"(?<![a-z0-9.])(?:{'|'.join(map(re.escape, sorted(STORES, key=len, reverse=True)))})(?![a-z0-9.])"
)
TOOLS = ("tests/unit/test_suite.py", "tests/unit/test_mutants_tool.py")  # of this suite, which needs one Python
SHARE = 5  # CI runs one part in so many of what only `make test-all` runs whole

# Markers of folders and files.
KINDS: dict[str, tuple[str, ...]] = {
    "tests/faults/": ("waits", "process"),
    "tests/topology/": ("waits", "process"),
    "tests/ui/": ("browser",),
    "tests/docs/": ("process",),
}

# The only tests of these tiers, which are collected alone: others need libraries that an old environment does not have.
PLACES = {
    "quick": ("tests/unit/", "tests/contract/", "tests/integration/"),
    # The contract on SQLite, the standard library, Sentinel, Cluster and TLS, every snippet.
    "old": (
        "tests/unit/", "tests/contract/", "tests/topology/", "tests/docs/", "tests/integration/test_handlers.py",
        "tests/integration/test_cli.py",
    ),
}  # fmt: skip


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("tiers")
    group.addoption("--tier", choices=TIERS, help="; ".join(f"{name}: {tier.__doc__}" for name, tier in TIERS.items()))
    group.addoption("--store", choices=STORES, help="only tests of this store")


def pytest_configure(config: pytest.Config) -> None:
    for name, text in MARKERS.items():
        config.addinivalue_line("markers", f"{name}: {text}")


def pytest_report_header(config: pytest.Config) -> str:
    return f"seed {tree_hash()}"


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    places = PLACES.get(config.option.tier or "")
    if places is None or collection_path.suffix != ".py":
        return None
    path = collection_path.relative_to(config.rootpath).as_posix()
    return None if path.startswith(places) or collection_path.name in ("conftest.py", "__init__.py") else True


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    for item in items:
        for name in _markers_of(item):
            item.add_marker(name)
    tier, store = config.option.tier, config.option.store
    wanted = [
        item for item in items if (tier is None or TIERS[tier](item)) and (store is None or store_of(item) == store)
    ]
    if len(wanted) < len(items):
        chosen = {*wanted}
        config.hook.pytest_deselected(items=[item for item in items if item not in chosen])
        items[:] = wanted


def _markers_of(item: pytest.Item) -> Iterator[str]:
    for start, names in KINDS.items():
        if item.nodeid.startswith(start):
            yield from names


def store_of(item: pytest.Item) -> str | None:
    """The store that a test is about, by its parameter or its file; None for one about no store in particular."""
    found = re.search(_STORE, item.nodeid.partition("[")[2])
    if found:
        return found[0]
    named = re.match(r"test_(memory|sqlite|redis)_", item.path.name)
    return named[1] if named else None


# --- the sets


def _quick(item: pytest.Item) -> bool:
    """unit tests, the contract on memory and SQLite, and what of the rest runs in this process"""
    if _has(item, *MARKERS):
        return False
    folder, store = item.nodeid.split("/")[1], store_of(item)
    return folder == "unit" or store == "memory" or (folder == "contract" and store == "sqlite")


def _test(item: pytest.Item) -> bool:
    """all but what takes long"""
    return not _extra(item)


def _ci(item: pytest.Item) -> bool:
    """that, and a part of what takes long, which the tree decides"""
    return _test(item) or drawn(item.nodeid, SHARE) == 0


def _all(item: pytest.Item) -> bool:
    """everything"""
    return True


def _old(item: pytest.Item) -> bool:
    """what the Python, its SQLite, the libraries and the servers of a machine decide"""
    if item.nodeid.startswith("tests/contract/"):
        return store_of(item) == "sqlite" and _test(item)
    return _test(item) and not item.nodeid.startswith(TOOLS)


def _extra(item: pytest.Item) -> bool:
    return _has(item, "slow") or (item.nodeid.startswith("tests/contract/") and store_of(item) in FURTHER)


def _has(item: pytest.Item, *names: str) -> bool:
    return any(item.get_closest_marker(name) is not None for name in names)


TIERS: dict[str, Callable[[pytest.Item], bool]] = {"quick": _quick, "test": _test, "ci": _ci, "all": _all, "old": _old}
