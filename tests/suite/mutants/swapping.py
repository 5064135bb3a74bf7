"""Puts a mutant in the place of what this process has loaded. It is meant for forks: there is no way back."""

from __future__ import annotations

import gc
import importlib
import types
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import tickwork
from tests.suite.mutants.places import SOURCE
from tickwork.store.redis import scripts

SCRIPTS = Path(scripts.__file__).parent / "lua"
Functions = dict[str, list[types.FunctionType]]


class NotApplied(Exception):
    """Nothing in this process would run the changed code."""


def load(files: Iterable[Path]) -> None:
    """Import the modules of these files: one that a test would import later could not be changed before."""
    if SOURCE not in Path(tickwork.__file__).parents:
        raise RuntimeError(f"{tickwork.__file__} is imported, which is not the tree that is changed: run make ready")
    for path in files:
        if path.suffix == ".py":
            module = path.parent if path.stem == "__init__" else path.with_suffix("")
            importlib.import_module(".".join(module.relative_to(SOURCE.parent).parts))


def functions_by_file(folder: Path) -> Functions:
    """Every function that this process has of the files of a folder."""
    found: Functions = {}
    start = str(folder)
    for one in gc.get_objects():
        if type(one) is types.FunctionType and one.__code__.co_filename.startswith(start):
            found.setdefault(one.__code__.co_filename, []).append(one)
    return found


def swap_python(path: Path, text: str, loaded: Functions) -> None:
    """Give the functions of a file the code that they have in a changed text of it, of the same lines."""
    name = str(path)
    old = {_place(code): code for code in _codes(compile(path.read_text(), name, "exec", dont_inherit=True))}
    new = {_place(code): code for code in _codes(compile(text, name, "exec", dont_inherit=True))}
    changed = {place: code for place, code in new.items() if old.get(place) != code}
    swapped = 0
    for function in loaded.get(name, ()):
        code = changed.get(_place(function.__code__))
        if code is not None and code.co_freevars == function.__code__.co_freevars:
            function.__code__ = code
            swapped += 1
    if not swapped:
        raise NotApplied(f"no function of {name} has another code by it")


def swap_script(path: Path, text: str) -> None:
    """Let the scripts of Redis be put together with a changed text of one file."""
    name = path.relative_to(SCRIPTS).with_suffix("").as_posix()
    replace_script(name, lambda original: text)


def replace_script(name: str, change: Callable[[str], str]) -> None:
    """Let scripts be put together with what `change` makes of the text of one of them, or of a part."""
    original = scripts.read.__wrapped__

    def read(script: str) -> str:
        return change(original(script)) if script == name else original(script)

    scripts.compose.cache_clear()
    setattr(scripts, "read", read)  # noqa: B010


def _codes(code: types.CodeType) -> Iterator[types.CodeType]:
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield constant
            yield from _codes(constant)


def _place(code: types.CodeType) -> tuple[str, int]:
    return code.co_qualname, code.co_firstlineno
