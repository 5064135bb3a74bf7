"""What the process pool's tests run in its children. A body starts with a path or is the input, as each says."""

from __future__ import annotations

import ctypes
import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

from tickwork.executors.child import Judged

Note = Callable[[bytes], None]


def invoke(target: object, body: bytes, note: Note) -> bytes:
    assert callable(target)
    result: Any = target(body, note)
    return result  # type: ignore[no-any-return]  # some tests hand back what is not bytes


class Verdict(Exception):
    pass


class BadText(Exception):
    def __str__(self) -> str:
        raise ValueError("no text")


class Namespace:
    @staticmethod
    def inner(body: bytes, note: Note) -> bytes:
        return b"inner " + body


def echo(body: bytes, note: Note) -> bytes:
    return body


def pid(body: bytes, note: Note) -> bytes:
    return str(os.getpid()).encode()


def notes(body: bytes, note: Note) -> bytes:
    for number in range(int(body)):
        note(str(number).encode())
    return b"end"


def fail(body: bytes, note: Note) -> NoReturn:
    raise ValueError(body.decode())


def fail_with_verdict(body: bytes, note: Note) -> NoReturn:
    raise Judged(Verdict("judged"), b"structured")


def fail_without_text(body: bytes, note: Note) -> NoReturn:
    raise BadText


def fail_with_surrogate(body: bytes, note: Note) -> NoReturn:
    raise FileNotFoundError("name \udcff")


def leave(body: bytes, note: Note) -> NoReturn:
    sys.exit(7)


def not_bytes(body: bytes, note: Note) -> Any:
    return "text"


def exit_at_once(body: bytes, note: Note) -> NoReturn:
    os._exit(int(body))


def die_by_signal(body: bytes, note: Note) -> bytes:
    os.kill(os.getpid(), int(body))
    return b"survived"


def spin(body: bytes, note: Note) -> NoReturn:
    """Say who we are, then keep the processor busy for ever."""
    note(str(os.getpid()).encode())
    while True:
        pass


def hold(body: bytes, note: Note) -> bytes:
    """Say who we are, then wait for the file that `body` names."""
    note(str(os.getpid()).encode())
    while not Path(body.decode()).exists():
        time.sleep(0.005)
    return str(os.getpid()).encode()


def speak_after_the_end(body: bytes, note: Note) -> bytes:
    """A thread of this call goes on sending notes when the call is over."""

    def go_on() -> None:
        while True:
            note(b"stray")
            time.sleep(0.001)

    threading.Thread(target=go_on, daemon=True).start()
    return b"left"


def _sleep_long() -> None:
    time.sleep(600)


def fork_and_die(body: bytes, note: Note) -> NoReturn:
    """Leave a forked process behind that outlives us."""
    process = multiprocessing.get_context("fork").Process(target=_sleep_long)
    process.start()
    note(str(process.pid).encode())
    os.kill(os.getpid(), signal.SIGSEGV)
    raise AssertionError("unreachable")


def use_multiprocessing(body: bytes, note: Note) -> bytes:
    """Handlers may have child processes of their own."""
    with multiprocessing.get_context("fork").Pool(1) as pool:
        return b"%d" % pool.apply(abs, (-5,))


def ignore_term(body: bytes, note: Note) -> NoReturn:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    spin(body, note)


def start_and_spin(body: bytes, note: Note) -> NoReturn:
    """Start a program and a forked process, say who they are, then keep the processor busy for ever."""
    program = subprocess.Popen(["sleep", "600"])
    forked = multiprocessing.get_context("fork").Process(target=_sleep_long)
    forked.start()
    note(b"%d %d" % (program.pid, forked.pid or 0))
    while True:
        pass


def hold_the_interpreter(body: bytes, note: Note) -> bytes:
    """Say who we are, then sleep in C without letting any other thread of ours run."""
    note(str(os.getpid()).encode())
    ctypes.PyDLL(None).sleep(600)
    return b"woke up"
