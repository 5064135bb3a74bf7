"""The main function of a child of the process pool: it runs one call after another, on its main thread.

parent -> child     Call; an empty message means: end
child -> parent     Done at its start, or Failed if it cannot serve; then for each Call: Note*, Done | Failed
"""

from __future__ import annotations

import ctypes
import functools
import importlib
import io
import multiprocessing
import os
import signal
import sys
import threading
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import Any, TypeAlias

from msgspec import Struct, msgpack

from tickwork import host
from tickwork.observe.tracebacks import describe
from tickwork.texts import storable

Invoke: TypeAlias = Callable[[object, bytes, Callable[[bytes], None]], bytes]

# Ignored in a child; the parent handles them. A Ctrl-C or SIGTERM for the whole group must leave handlers their grace.
PARENT_SIGNALS = (signal.SIGINT, signal.SIGTERM)
PR_SET_PDEATHSIG = 1  # of Linux, linux/prctl.h


_at_end: list[Callable[[], None]] = []


def at_end(call: Callable[[], None]) -> None:
    """In a child: call this when the child ends because the parent has asked it to, the last added first."""
    _at_end.append(call)


class Call(Struct, frozen=True, array_like=True):
    reference: str  # "module:qualname"
    body: bytes  # argument for `invoke`, beside the object of that reference


class Note(Struct, frozen=True, array_like=True, tag=True):
    body: bytes


class Done(Struct, frozen=True, array_like=True, tag=True):
    body: bytes


class Failed(Struct, frozen=True, array_like=True, tag=True):
    type_name: str
    text: str
    traceback: str  # the text that is stored as the error of the task
    verdict: bytes | None


class Judged(Exception):
    """Raised by `invoke` instead of an error on which it has a verdict for the parent."""

    def __init__(self, error: BaseException, verdict: bytes) -> None:
        super().__init__(error, verdict)
        self.error, self.verdict = error, verdict


def main(pipe: Connection[Any, Any], invoke: str) -> None:
    _die_with_parent()
    host.is_pool_child = True
    if hasattr(os, "setsid"):
        os.setsid()  # so that the parent can kill this process together with all that a handler has started
    for number in PARENT_SIGNALS:
        signal.signal(number, lambda *_: None)  # not SIG_IGN, which programs that a handler starts would inherit
    if hasattr(signal, "pthread_sigmask"):
        signal.pthread_sigmask(signal.SIG_UNBLOCK, PARENT_SIGNALS)  # the parent has blocked them for the start
    if hasattr(os, "register_at_fork"):
        # A process that a handler forks must not keep the pipe open, since the parent notices our death by its end; and
        # it must handle signals again, since multiprocessing ends its workers by SIGTERM.
        os.register_at_fork(after_in_child=functools.partial(_be_an_ordinary_process, pipe))
        os.set_inheritable(pipe.fileno(), False)
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(line_buffering=True)  # or the output of a process that is killed would be lost
    threading.Thread(target=_end_with_parent, name="watchdog", daemon=True).start()
    try:
        function: Invoke = resolve(invoke)
    except ImportError as error:
        pipe.send_bytes(msgpack.encode(_failed(error)))
        return
    sending = threading.Lock()  # handlers may send notes from several threads
    pipe.send_bytes(msgpack.encode(Done(b"")))
    with pipe:
        while message := _receive(pipe):
            _answer(msgpack.decode(message, type=Call), function, pipe, sending)
        while _at_end:
            _at_end.pop()()


def _be_an_ordinary_process(pipe: Connection[Any, Any]) -> None:
    pipe.close()
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)


def _receive(pipe: Connection[Any, Any]) -> bytes:
    try:
        return pipe.recv_bytes()
    except (EOFError, ConnectionError):
        return b""  # the parent has ended


def _answer(call: Call, invoke: Invoke, pipe: Connection[Any, Any], sending: threading.Lock) -> None:
    over = False

    def note(body: bytes) -> None:
        with sending:
            if not over:  # a thread that outlives its call must not send notes during the next one
                pipe.send_bytes(msgpack.encode(Note(body)))

    try:
        body = invoke(resolve(call.reference), call.body, note)
        if not isinstance(body, bytes):
            raise TypeError(f"the invoke function must return bytes, not {type(body).__name__}")
        outcome = msgpack.encode(Done(body))
    except Judged as judged:
        outcome = msgpack.encode(_failed(judged.error, judged.verdict))
    except BaseException as error:  # also SystemExit: a handler that calls sys.exit() fails, and the process stays
        outcome = msgpack.encode(_failed(error))
    with sending:
        over = True
        pipe.send_bytes(outcome)


@functools.cache
def resolve(reference: str) -> Any:
    """The object of a reference "module:qualname". `__main__` is the parent's main module, which multiprocessing has
    loaded here."""
    module, _, qualname = reference.partition(":")
    try:
        return functools.reduce(getattr, qualname.split("."), importlib.import_module(module))
    except BaseException as error:  # also SystemExit: some scripts exit when they are imported
        why = f"{type(error).__name__}: {error}"
        raise ImportError(f"cannot load {reference!r} in a child process: {why}") from error


def _failed(error: BaseException, verdict: bytes | None = None) -> Failed:
    kind = type(error)
    module = kind.__module__.replace("__mp_main__", "__main__")
    type_name = kind.__qualname__ if module == "builtins" else f"{module}.{kind.__qualname__}"
    try:
        text = str(error)
    except Exception as broken:
        text = f"(its str() raised {type(broken).__name__})"
    return Failed(type_name, storable(text), describe(error), verdict)


def _die_with_parent() -> None:
    """Ask the kernel to kill this process when the parent dies, even while a handler holds the interpreter lock. The
    signal comes when the thread that started this process ends; in the parent that thread lives as long as the
    child."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        parent = multiprocessing.parent_process()
        if parent is not None and parent.pid != os.getppid():  # it has died before the call above
            os._exit(1)


def _end_with_parent() -> None:
    # A busy child does not read its pipe, so a thread waits for the end of the parent. This is for systems without a
    # signal at the parent's death, and for handlers that change their user, which disables that signal.
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)
