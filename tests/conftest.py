"""What holds for all tests. On CPython 3.11 the whole package is imported before the first one.

pytest compiles each module of the package anew when it is imported first. On CPython 3.11 that fails with a SystemError
("AST constructor recursion depth mismatch") if the garbage collector runs meanwhile and something that it removes, such
as a coroutine that was never ended, formats a traceback. Before the first test there is no such garbage.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import pkgutil
import shutil
import sys

import tickwork

pytest_plugins = ["tests.suite.counts", "tests.suite.tiers", "tests.suite.forks"]

if sys.version_info < (3, 12):
    for module in pkgutil.walk_packages(tickwork.__path__, "tickwork."):
        if not module.name.startswith(("tickwork.__main__", "tickwork.contrib.", "tickwork.testing.contract")):
            with contextlib.suppress(ImportError):  # of an extra that is not installed
                importlib.import_module(module.name)

# Files of tests on a file system in memory, where there is one with room: stores of SQLite are made by the thousand.
# Tests of kills and of full disks have folders of their own on a disk.
MEMORY = "/dev/shm"
ROOM = 4 << 30
if os.access(MEMORY, os.W_OK) and shutil.disk_usage(MEMORY).free > ROOM:
    os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", MEMORY)
