"""An exception as a text for people: what went wrong, why, and where in their own code. Pure."""

from __future__ import annotations

import os
import traceback
from types import TracebackType

from tickwork.texts import storable

ERROR_MAX = 8000  # characters of one stored error
HEAD_MAX = 1000  # and of its first line

_OWN = os.path.dirname(os.path.dirname(__file__)) + os.sep
_ASYNCIO = os.path.join(os.path.dirname(traceback.__file__), "asyncio") + os.sep


def describe(error: BaseException, first_line: str = "") -> str:
    """The first line says what went wrong, `Type: message` if none is given. The traceback follows."""
    head = storable(first_line or headline(error))
    return f"{head}\n\n{story(error, max(ERROR_MAX - len(head) - 2, HEAD_MAX))}"[:ERROR_MAX]


def story(error: BaseException, longest: int = ERROR_MAX) -> str:
    """The traceback with causes, groups and notes, without the frames of Tickwork itself. One that is too long loses
    its middle, but neither its ends nor the root cause."""
    try:
        text = storable(_formatted(error)).rstrip("\n")
        excess = len(text) - longest
        if excess <= 0:
            return text
        root = storable(_line(_root(error)))[:HEAD_MAX]
    except Exception as broken:  # an exception of the user's own may fail when it is looked at
        return f"(its traceback cannot be shown: {type(broken).__name__})"
    mark = f"\n[... about {excess:,} characters are left out; the root cause: {root} ...]\n"
    half = max((longest - len(mark)) // 2, 0)
    return text[:half] + mark + text[len(text) - half :]


def headline(error: BaseException) -> str:
    """One line; that of a group also says what happened in it first."""
    if isinstance(error, BaseExceptionGroup):
        return f"{_line(error)}: {_line(_first_leaf(error))}"
    return _line(error)


def explained(error: BaseException, reason: str) -> str:
    """What a handler gave as its reason, followed by the error that led to it, if one did."""
    return describe(error, reason) if _reason_of(error) is not None else reason


def traceback_of_users(error: BaseException) -> TracebackType | None:
    """The traceback from the user's code on: how Tickwork came there is no news to them."""
    trace, ours = error.__traceback__, False
    while trace is not None and (ours := _is_ours(trace.tb_frame.f_code.co_filename, ours)):
        trace = trace.tb_next
    return trace or error.__traceback__


def _formatted(error: BaseException) -> str:
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
        ours = _is_ours(frame.filename, ours)
        if not ours:
            kept.append(frame)
    return kept or frames


def is_own(filename: str) -> bool:
    """Whether it is a file of this package."""
    return filename.startswith(_OWN)


def _is_ours(filename: str, called_by_us: bool) -> bool:
    return is_own(filename) or (called_by_us and filename.startswith(_ASYNCIO))


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
