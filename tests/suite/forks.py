"""Tests in several processes, which are forked once everything is collected: collecting 23,000 tests takes 20 CPU
seconds, which each process of its own would pay for again.

Tests go to the processes by *units*, parts of one module. Two kinds of processes run at once: as many as there are
cores for tests that compute, and some more for tests that wait for leases, elections and servers (marker `waits`), so
that waiting fills the time in which others compute. A process that dies fails its test, and another one goes on.
"""

from __future__ import annotations

import atexit
import gc
import mmap
import os
import random
import signal
import sys
import threading
import warnings
from collections import deque
from collections.abc import Generator, Iterator
from itertools import groupby
from multiprocessing.connection import Connection, Pipe, wait
from pathlib import Path
from typing import Any

import pytest

from tests.suite import counts

FEW = 300  # tests that are not worth further processes
UNIT = 60  # tests that one process takes at a time
WAITING = 4  # processes for tests that wait


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("processes")
    group._addoption(  # lower-case letters are for pytest's own options, and this one is what people know
        "-n", dest="processes", type=int, default=None, metavar="N",
        help=f"processes for tests that compute, beside {WAITING} for tests that wait; 0: all in this process. "
        f"The default is one a core, and 0 below {FEW} tests",
    )  # fmt: skip
    group.addoption("--shuffle", metavar="SEED", help="run the tests in another order, which this decides")


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if config.option.shuffle is not None:
        random.Random(config.option.shuffle).shuffle(items)
        items.sort(key=lambda item: (str(item.path) if _is_whole(item) else "", _waits(item)))


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_collection() -> Generator[None, object, object]:
    """What is collected stays, so that looking for garbage among it takes time and finds none, now and later."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()
        gc.freeze()


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop(session: pytest.Session) -> bool | None:
    count = _computing(session)
    if count == 0 or session.testsfailed or session.config.option.collectonly:
        return None
    if sys.platform == "win32":
        raise pytest.UsageError("nothing forks on Windows: -n 0")
    _Crew(session, count).run()
    return True


def _computing(session: pytest.Session) -> int:
    asked: int | None = session.config.option.processes
    if asked is not None:
        return asked
    alone = session.config.option.usepdb or session.config.option.capture == "no" or not hasattr(os, "fork")
    return 0 if alone or len(session.items) < FEW else len(os.sched_getaffinity(0))


def hold_signals() -> set[int]:
    """Let signals that end a run wait until `release_signals`. A fork calls hooks, and what a signal raises in one of
    them is lost."""
    return signal.pthread_sigmask(signal.SIG_BLOCK, (signal.SIGINT, signal.SIGTERM))


def release_signals(held: set[int]) -> None:
    signal.pthread_sigmask(signal.SIG_SETMASK, held)


# --- the process that hands out units and reports


class _Unit:
    """Tests of one module, by their numbers."""

    def __init__(self, numbers: list[int], waits: bool) -> None:
        self.numbers = numbers
        self.waits = waits


class _Process:
    """One that runs tests, as the handing process sees it."""

    def __init__(self, number: int, waits: bool, pid: int, link: Connection) -> None:
        self.number = number
        self.waits = waits
        self.pid = pid
        self.link = link
        self.current: int | None = None  # the test that it runs
        self.left: deque[int] = deque()  # what it is to run besides


class _Crew:
    def __init__(self, session: pytest.Session, computing: int) -> None:
        self._session = session
        self._config = session.config
        self._stop = mmap.mmap(-1, 1)  # shared with the others: 1 when no further test is to begin
        units = [*_units(session.items, shuffled=self._config.option.shuffle is not None)]
        self._units = {waits: deque(unit for unit in units if unit.waits is waits) for waits in (True, False)}
        self._kinds = [False] * computing + [True] * min(WAITING, len(self._units[True]))
        self._processes: dict[Connection, _Process] = {}
        self._base = session.config._tmp_path_factory.getbasetemp()  # type: ignore[attr-defined]

    def run(self) -> None:
        try:
            for number, waits in enumerate(self._kinds):
                self._fork(number, waits)
            while self._processes:
                for link in wait(list(self._processes)):
                    assert isinstance(link, Connection)
                    self._hear(self._processes[link])
                if self._session.shouldfail or self._session.shouldstop:
                    self._stop[0] = 1
        except BaseException:
            self._stop[0] = 1
            for process in self._processes.values():
                os.kill(process.pid, signal.SIGTERM)
            raise
        if self._session.shouldfail:
            raise self._session.Failed(self._session.shouldfail)
        if self._session.shouldstop:
            raise self._session.Interrupted(self._session.shouldstop)

    def _fork(self, number: int, waits: bool) -> None:
        here, there = Pipe()
        sys.stdout.flush()
        sys.stderr.flush()
        held = hold_signals()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # of forks beside threads, which no test has begun yet
            pid = os.fork()
        if pid == 0:
            release_signals(held)
            here.close()
            for link in self._processes:
                link.close()
            _Runner(self._session, there, self._stop, self._base / f"p{number}").live()
        there.close()
        self._processes[here] = _Process(number, waits, pid, here)
        release_signals(held)

    def _hear(self, process: _Process) -> None:
        word, given = _received(process.link)
        if word == "gone":
            self._ended(process)
        elif word == "more":
            unit = None if self._stop[0] else self._next_unit(process.waits)
            process.left.extend(unit.numbers if unit else [])
            process.link.send(unit.numbers if unit else [])
        elif word == "starts":
            process.current = process.left.popleft()
        elif word == "report":
            report = self._config.hook.pytest_report_from_serializable(config=self._config, data=given)
            self._config.hook.pytest_runtest_logreport(report=report)
        elif word == "ended":
            process.current = None
        elif word == "made":
            counts.made.update(given)

    def _next_unit(self, waits: bool) -> _Unit | None:
        """The next of its kind. Once nothing of it is left, the other kind."""
        for kind in (waits, not waits):
            if self._units[kind]:
                return self._units[kind].popleft()
        return None

    def _ended(self, process: _Process) -> None:
        """A process that ended within a test has been killed, or the test has ended it."""
        del self._processes[process.link]
        process.link.close()
        _, status = os.waitpid(process.pid, 0)
        code = os.waitstatus_to_exitcode(status)
        if process.current is None and (code or process.left) and not self._stop[0]:
            self._session.shouldfail = f"a process of the suite ended outside of a test: {code}"
            return
        if process.current is None and not process.left:
            return
        if process.current is not None:
            item = self._session.items[process.current]
            why = f"the process that ran this test ended: {code}"
            failed = pytest.TestReport(item.nodeid, item.location, {}, "failed", why, "call")
            self._config.hook.pytest_runtest_logreport(report=failed)
        if not self._stop[0]:
            self._units[process.waits].appendleft(_Unit([*process.left], process.waits))
            self._fork(process.number, process.waits)


def _received(link: Connection) -> tuple[str, Any]:
    try:
        word, given = link.recv()
    except (EOFError, ConnectionResetError):
        return "gone", None
    return word, given


def _units(items: list[pytest.Item], shuffled: bool) -> Iterator[_Unit]:
    """Modules with fixtures of their own whole, as those are made once; what takes long first."""

    def together(pair: tuple[int, pytest.Item]) -> tuple[Path | None, bool]:
        item = pair[1]
        return None if shuffled and not _is_whole(item) else item.path, _waits(item)

    found: list[tuple[int, _Unit]] = []
    for (path, waits), group in groupby(enumerate(items), together):
        numbered = list(group)
        numbers = [number for number, _ in numbered]
        whole = _is_whole(numbered[0][1])
        size = len(numbers) if whole else UNIT
        rank = 0 if whole else 2 if path is not None and "contract" in path.parts else 1
        found += [(rank, _Unit(numbers[at : at + size], waits)) for at in range(0, len(numbers), size)]
    return (unit for _, unit in sorted(found, key=lambda pair: pair[0]))


def _is_whole(item: pytest.Item) -> bool:
    """Whether all tests of its module run in one process."""
    return item.get_closest_marker("browser") is not None


def _waits(item: pytest.Item) -> bool:
    return item.get_closest_marker("waits") is not None


# --- a process that runs tests


class _Runner:
    def __init__(self, session: pytest.Session, link: Connection, stop: mmap.mmap, folder: Path) -> None:
        self._session = session
        self._config = session.config
        self._link = link
        self._stop = stop
        self._folder = folder

    def live(self) -> None:
        """Run what is handed out, and never come back to what was forked."""
        code = 0
        try:
            self._begin()
            self._run()
        except BaseException:  # nothing above this frame belongs to this process
            code = 3
            if not self._stop[0]:
                sys.excepthook(*sys.exc_info())
        finally:
            _join_threads()
            atexit._run_exitfuncs()  # servers of the tests are stopped there
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(code)

    def _begin(self) -> None:
        random.seed()
        counts.made.clear()
        signal.signal(signal.SIGTERM, _interrupt)
        plugins = self._config.pluginmanager
        capture = plugins.getplugin("capturemanager")
        if capture is not None:  # its files are shared with the other processes
            capture.stop_global_capturing()
            capture.start_global_capturing()
        plugins.unregister(name="terminalreporter")
        plugins.register(self)
        factory = self._config._tmp_path_factory  # type: ignore[attr-defined]
        self._folder.mkdir(mode=0o700, exist_ok=True)
        factory._basetemp = self._folder

    def _run(self) -> None:
        left: deque[int] = deque()
        while left or (left := self._more()):
            number = left.popleft()
            if not left:
                left = self._more()  # now, so that it is known which fixtures the next test needs
            if self._stop[0]:
                break
            item, following = self._session.items[number], self._session.items[left[0]] if left else None
            self._link.send(("starts", None))
            self._config.hook.pytest_runtest_protocol(item=item, nextitem=following)
            self._link.send(("ended", None))
        self._session._setupstate.teardown_exact(None)
        self._link.send(("made", counts.made_here()))

    def _more(self) -> deque[int]:
        self._link.send(("more", None))
        return deque(self._link.recv())

    @pytest.hookimpl(trylast=True)
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        data = self._config.hook.pytest_report_to_serializable(config=self._config, report=report)
        self._link.send(("report", data))


def _interrupt(*_: object) -> None:
    raise KeyboardInterrupt


def _join_threads() -> None:
    for thread in threading.enumerate():
        if not thread.daemon and thread is not threading.current_thread():
            thread.join(5)
