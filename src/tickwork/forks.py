"""Forks. The child gets a copy of everything but the threads, and shares the open files: sockets, event loops, SQLite.

Whoever has threads or connections asks to be told (`tell_of_forks`) and lets go of them in the child, so that its next
call opens anew. What other threads may be in the middle of is waited for before the fork (`hold_during_forks`): a lock
that one of them holds would never be released in the child, where that thread does not exist.
"""

from __future__ import annotations

import logging as logging  # its own hooks must come first, so that at a fork its lock is taken after ours
import os
import threading
import weakref
from typing import Protocol


class Forked(Protocol):
    def after_fork(self) -> None:
        """Called in the child, which has one thread: forget the threads, and close or forget the connections."""


_told: weakref.WeakSet[Forked] = weakref.WeakSet()
_locks: weakref.WeakSet[threading.Lock] = weakref.WeakSet()
_held: list[threading.Lock] = []
_kept: list[object] = []


def tell_of_forks(who: Forked) -> None:
    _told.add(who)


def hold_during_forks(lock: threading.Lock) -> None:
    """No fork happens while another thread holds it. Whoever holds it must not wait for another lock of ours."""
    _locks.add(lock)


def keep(what: object) -> None:
    """Never finalize this in the child, not even at its end: it is the parent's, who still uses what lies beneath."""
    if not _kept:
        import ctypes

        ctypes.pythonapi.Py_IncRef(ctypes.py_object(_kept))
    _kept.append(what)


def _hold() -> None:
    _held[:] = list(_locks)
    for lock in _held:
        lock.acquire()


def _let_go() -> None:
    for lock in _held:
        lock.release()
    _held.clear()


def _after_in_child() -> None:
    _let_go()
    for who in list(_told):
        who.after_fork()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_hold, after_in_parent=_let_go, after_in_child=_after_in_child)
