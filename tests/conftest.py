"""Imports the whole package before the first test.

pytest compiles each module of the package anew when it is imported first. On CPython 3.11 that fails with a SystemError
("AST constructor recursion depth mismatch") if the garbage collector runs meanwhile and something that it removes, such
as a coroutine that was never ended, formats a traceback. Before the first test there is no such garbage.
"""

from __future__ import annotations

import contextlib
import importlib
import pkgutil

import tickwork

for module in pkgutil.walk_packages(tickwork.__path__, "tickwork."):
    if not module.name.startswith(("tickwork.__main__", "tickwork.contrib.", "tickwork.testing.contract")):
        with contextlib.suppress(ImportError):  # of an extra that is not installed
            importlib.import_module(module.name)
