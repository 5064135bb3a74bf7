"""An exception as a text for people: what went wrong, why, and where in their own code. Pure."""

from __future__ import annotations

import asyncio
import os
import traceback

from tickwork.context import storable

ERROR_MAX = 8000  # characters of one stored error
HEAD_MAX = 1000  # and of its first line

_OWN = os.path.dirname(__file__) + os.sep
_ASYNCIO = os.path.dirname(asyncio.__file__) + os.sep


def describe(error: BaseException, first_line: str = "") -> str:
    """The first line says what went wrong, `Type: message` if none is given. The traceback follows, with causes,
    groups and notes. A text that is too long loses its middle, but neither its ends nor the root cause."""
    head = first_line or headline(error)
    try:
        text = storable(f"{head}\n\n{story(error)}").rstrip("\n")
        excess = len(text) - ERROR_MAX
        return text if excess <= 0 else _without_middle(text, excess, _line(_root(error)))
    except Exception as broken:  # an exception of the user's own may fail when it is looked at
        return storable(f"{head}\n\n(its traceback cannot be shown: {type(broken).__name__})")


def _without_middle(text: str, excess: int, root: str) -> str:
    mark = f"\n[... about {excess:,} characters are left out; the root cause: {storable(root)} ...]\n"
    half = (ERROR_MAX - len(mark)) // 2
    return text[:half] + mark + text[len(text) - half :]


def headline(error: BaseException) -> str:
    """One line; that of a group also says what happened in it first."""
    if isinstance(error, BaseExceptionGroup):
        return f"{_line(error)}: {_line(_first_leaf(error))}"
    return _line(error)


def explained(error: BaseException, reason: str) -> str:
    """What a handler gave as its reason, followed by the error that led to it, if one did."""
    return describe(error, reason) if _reason_of(error) is not None else reason


def story(error: BaseException) -> str:
    """The traceback with all that led to it, without the frames of Tickwork itself."""
    told = traceback.TracebackException.from_exception(error, compact=True)
    parts = [told]
    while parts:
        part = parts.pop()
        part.stack[:] = _frames_of_users(part.stack)
        parts += [other for other in (part.__cause__, part.__context__, *(part.exceptions or ())) if other is not None]
    return "".join(told.format()).replace("__mp_main__.", "")  # so the main module is called in a child process


def _frames_of_users(frames: list[traceback.FrameSummary]) -> list[traceback.FrameSummary]:
    """Those of Tickwork, and of asyncio where Tickwork called it, are of no use to the reader."""
    kept, ours = [], False
    for frame in frames:
        ours = frame.filename.startswith(_OWN) or (ours and frame.filename.startswith(_ASYNCIO))
        if not ours:
            kept.append(frame)
    return kept or frames


def _line(error: BaseException) -> str:
    try:
        text = str(error)
    except Exception:  # an exception whose __str__ raises must not cost the task its story
        text = "(its text cannot be shown)"
    name = type(error).__name__
    first = text.strip().partition("\n")[0]
    return (f"{name}: {first}" if first else name)[:HEAD_MAX]


def _first_leaf(error: BaseException) -> BaseException:
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


def _reason_of(error: BaseException) -> BaseException | None:
    return error.__cause__ or (None if error.__suppress_context__ else error.__context__)


def _root(error: BaseException) -> BaseException:
    seen: set[int] = set()
    while id(error) not in seen:
        seen.add(id(error))
        error = _reason_of(error) or _first_leaf(error)
    return error
