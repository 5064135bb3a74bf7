"""How a child process finds a handler: by import, as "module:qualname". Pure."""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Callable
from typing import Any

from tickwork.errors import ConfigError


def reference_of(owner: str, target: Any) -> str:
    """For a handler that is being registered; what it is decorated with may not have its name yet."""
    module, name = getattr(target, "__module__", None), getattr(target, "__qualname__", None)
    if not callable(target) or not module or not name or "<" in name:
        raise _refusal(
            owner, "a child process finds it by import, so it must be a function at the top level of a module"
        )
    if inspect.ismethod(target) and not inspect.isclass(target.__self__):
        raise _refusal(
            owner,
            f"it is a method of an object of class {type(target.__self__).__name__}, which a child process does not "
            "have; register a function at the top level of a module, and make the object there",
        )
    if module == "__main__" and (main := _hidden_main()):
        raise _refusal(owner, f"a child process finds it by import, and cannot import {main}; put it into a module")
    return f"{module}:{name}"


def find(owner: str, reference: str, function: Callable[..., Any]) -> Any:
    """What a child process will find, when all modules are loaded; refused if that is not this handler."""
    module, _, name = reference.partition(":")
    try:
        found: Any = functools.reduce(getattr, name.split("."), sys.modules[module])
    except (KeyError, AttributeError):
        raise _refusal(owner, f"a child process looks for {name} in module {module}, which does not have it") from None
    if inspect.unwrap(found) != inspect.unwrap(function):
        raise _refusal(
            owner,
            f"a child process would find another object, as {name} in module {module} is not this function; give each "
            "handler a name of its own",
        )
    return found


def _hidden_main() -> str:
    """What the main module is, if a child process does not load it."""
    main = sys.modules["__main__"]
    spec = getattr(main, "__spec__", None)
    if spec is not None:
        return f"{spec.name} (python -m)" if spec.name.rpartition(".")[2] == "__main__" else ""
    return "" if getattr(main, "__file__", None) else "a program that is no file"


def _refusal(owner: str, why: str) -> ConfigError:
    return ConfigError(f'handler {owner!r} cannot run_in="process": {why}')
