"""What holds for all tests: modules that are imported before the first one, files in memory, signals as usual.

pytest compiles each module of the package anew when it is imported first. On CPython 3.11 that fails with a SystemError
("AST constructor recursion depth mismatch") if the garbage collector runs meanwhile and something that it removes, such
as a coroutine that was never ended, formats a traceback. Before the first test there is no such garbage.

A suite that runs in the background (`nohup`, `&` in a script, many CI runners) inherits SIGINT and SIGHUP as ignored,
and so would every program that a test starts, to which it sends them.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import pkgutil
import shutil
import signal
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

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
if hasattr(signal, "SIGHUP") and signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
    # By a handler, which what is started does not inherit: the suite outlives its terminal, as nohup means it to.
    signal.signal(signal.SIGHUP, lambda *_: None)
