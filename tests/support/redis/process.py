"""What a server process needs from the machine: a port that stays its own, and a death no later than the test's."""

from __future__ import annotations

import atexit
import os
import random
import signal
import socket
import sys
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from subprocess import DEVNULL, STDOUT, Popen
from typing import Self

HOST = "127.0.0.1"
BUS = 10_000  # a cluster node also listens this far above its port
_PORTS = range(11_000, 21_000)
_RANDOM = random.SystemRandom()

# The kernel sends the signal when the thread that started the process ends, so one lasting thread starts them all.
_SPAWNER = ThreadPoolExecutor(1, "redis-spawner")
# Not a preexec_fn: forking Python under threads is deprecated. PR_SET_PDEATHSIG is 1 and survives the exec.
_LAUNCH = """
import ctypes, os, sys
if sys.platform == "linux":
    ctypes.CDLL(None).prctl(1, 9)
    if os.getppid() != int(sys.argv[1]):
        sys.exit("the test process is gone")
os.execv(sys.argv[2], sys.argv[2:])
"""


class Started(ABC):
    """`with` starts it and stops it, also where it could not be started whole."""

    @abstractmethod
    def start(self) -> None: ...

    @abstractmethod
    def stop(self) -> None: ...

    def __enter__(self) -> Self:
        try:
            self.start()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(self, *exc: object) -> None:
        self.stop()


class Port:
    """A loopback port for the whole life of a server, also while that server is down.

    It lies below the ephemeral range, so that no outgoing connection takes it, and a UDP socket of the same number
    keeps it from the other test processes.
    """

    def __init__(self) -> None:
        for _ in range(200):
            self.number = _RANDOM.choice(_PORTS)
            self._guard = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
            try:
                self._guard.bind((HOST, self.number))
                _probe(self.number)
                _probe(self.number + BUS)
                return
            except OSError:
                self._guard.close()
        raise RuntimeError(f"no free port in {_PORTS}")

    def release(self) -> None:
        self._guard.close()


def _probe(port: int) -> None:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        probe.bind((HOST, port))


def spawn(command: Sequence[str], folder: Path, log: Path) -> Popen[bytes]:
    """Start a process that dies with this one (on Linux) and that a Ctrl-C for the tests does not reach."""
    launch = [sys.executable, "-I", "-S", "-c", _LAUNCH, str(os.getpid()), *command]
    with log.open("ab") as out:

        def start() -> Popen[bytes]:
            return Popen(launch, cwd=folder, stdin=DEVNULL, stdout=out, stderr=STDOUT, start_new_session=True)

        return _SPAWNER.submit(start).result()


def end(process: Popen[bytes], sig: int = signal.SIGKILL) -> None:
    """Signal the process and wait until it is gone."""
    process.send_signal(sig)
    if sig != signal.SIGKILL:
        process.send_signal(signal.SIGCONT)  # a paused process notices nothing but SIGKILL
    process.wait(20)  # a primary told to shut down gives its replicas 10 s to catch up


def at_exit(clean: Callable[[], None]) -> None:
    """Run `clean` when this process ends, but not in its forks, whose servers these are not."""
    owner = os.getpid()
    atexit.register(lambda: clean() if os.getpid() == owner else None)


def wait_for(condition: Callable[[], object], timeout: float, what: Callable[[], str]) -> None:
    deadline = time.monotonic() + timeout
    while not condition():
        if time.monotonic() > deadline:
            raise TimeoutError(f"not within {timeout:g} s: {what()}")
        time.sleep(0.01)
