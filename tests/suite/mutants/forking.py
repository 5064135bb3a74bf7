"""Collects tests once and forks for each case: the fork breaks something and runs tests until one is red."""

from __future__ import annotations

import contextlib
import ctypes
import gc
import json
import os
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

import pytest

from tests.suite.forks import hold_signals, release_signals
from tests.support.redis import server

GRACE = 60.0  # seconds after its time in which a fork may still end by itself: the timeout of its last test, and more
LOOK = 0.02
SUBREAPER = 36  # PR_SET_CHILD_SUBREAPER: orphans of forks become children of this process, which can end them
DIE_WITH_PARENT = 1  # PR_SET_PDEATHSIG


class Case(NamedTuple):
    """Something to be broken, and the tests that should notice, in the order in which they are tried."""

    name: str
    items: Sequence[pytest.Item]
    apply: Callable[[], None]
    shadow: tuple[Path, str] | None = None  # a file for the processes that tests start, and its text meanwhile


class Result(NamedTuple):
    """What became of a case. `verdict`: killed, survived, undecided (its time was over), not applied."""

    name: str
    verdict: str
    by: str = ""
    why: str = ""
    passed: tuple[str, ...] = ()
    seconds: float = 0.0
    cpu: float = 0.0


def nothing() -> None:
    """Break nothing: the case in which the tests should be green."""


class Forker:
    """Runs cases in forks of this process, one after the other. Nothing else may be done in it meanwhile."""

    def __init__(self, folder: Path, limit: float) -> None:
        self._folder = folder
        self._limit = limit
        self._sound: set[str] = set()
        self.unsound: set[str] = set()  # tests that are red without a mutant
        _control(SUBREAPER, 1)
        gc.collect()
        gc.freeze()  # what is loaded by now is not looked at by each fork again

    def run(self, case: Case) -> Result:
        """The verdict of the tests, less those which are red without the case as well."""
        while True:
            items = [item for item in case.items if item.nodeid not in self.unsound]
            with _shadowed(case.shadow):
                result = self.run_once(case._replace(items=items))
            if result.verdict != "killed" or result.by in self._sound:
                return result
            alone = [item for item in items if item.nodeid == result.by]
            if self.run_once(Case("", alone, nothing)).verdict == "survived":
                self._sound.add(result.by)
                return result
            self.unsound.add(result.by)

    def run_once(self, case: Case) -> Result:
        """The verdict of the tests, each trusted."""
        folder = Path(tempfile.mkdtemp(dir=self._folder))
        journal = folder / "journal"
        sys.stdout.flush()
        sys.stderr.flush()
        begin = time.monotonic()
        held = hold_signals()
        pid = os.fork()
        if pid == 0:
            release_signals(held)
            _be_the_fork(case, folder, journal, self._limit)
        try:
            release_signals(held)
            cpu = _wait_for(pid, begin + self._limit + GRACE)
        finally:
            _end_orphans()
        result = _read(case, journal)._replace(seconds=time.monotonic() - begin, cpu=cpu)
        shutil.rmtree(folder, ignore_errors=True)
        return result


def _control(option: int, value: int) -> None:
    """Ask the kernel for something that only Linux has; elsewhere less is cleaned up."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(option, value, 0, 0, 0)


def _be_the_fork(case: Case, folder: Path, journal: Path, limit: float) -> NoReturn:
    try:
        _control(DIE_WITH_PARENT, signal.SIGKILL)
        os.setsid()  # a Ctrl-C is for the process above, which ends this one
        signal.signal(signal.SIGINT, signal.default_int_handler)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        signal.signal(signal.SIGHUP, signal.SIG_DFL)
        tempfile.tempdir = os.environ["TMPDIR"] = str(folder)
        with journal.open("w", buffering=1) as lines:
            _run_tests(case, lambda **entry: print(json.dumps(entry), file=lines), limit)
        with contextlib.suppress(BaseException):
            server._stop_all()
    finally:
        os._exit(0)


def _run_tests(case: Case, note: Callable[..., None], limit: float) -> None:
    deadline = time.monotonic() + limit
    try:
        case.apply()
    except Exception as error:
        note(verdict="not applied", why=repr(error))
        return
    passed, reports = 0, _reports(case.items)
    for item, following in zip(case.items, [*case.items[1:], None], strict=True):
        if time.monotonic() > deadline:
            note(verdict="undecided", why="its time was over")
            return
        note(begun=item.nodeid)
        reports.clear()
        item.ihook.pytest_runtest_protocol(item=item, nextitem=following)  # with the timeout, which is a hook around it
        failed = next((report for report in reports if report.failed), None)
        if failed is not None:
            note(verdict="killed", by=item.nodeid, why=_crash(failed))
            return
        if not any(report.skipped for report in reports):
            note(passed=item.nodeid)
            passed += 1
    if passed:
        note(verdict="survived")
    else:
        note(verdict="undecided", why="all of its tests are skipped here")


def _reports(items: Sequence[pytest.Item]) -> list[pytest.TestReport]:
    """Where the reports of these tests will be found."""

    found: list[pytest.TestReport] = []

    class Keep:
        def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
            found.append(report)

    if items:
        items[0].config.pluginmanager.register(Keep())
    return found


def _crash(report: pytest.TestReport) -> str:
    """The error of a test, and where it was raised."""
    crash = getattr(report.longrepr, "reprcrash", None)
    place = f"{crash.path}:{crash.lineno}" if crash is not None else str(report.when)
    text = report.longreprtext.splitlines()
    errors = [line for line in text if line.startswith("E  ")]
    return "\n".join([place, *(errors or text)[:10]])


def _wait_for(pid: int, deadline: float) -> float:
    """Wait until a fork has ended, or end it; the CPU seconds of it and of its children."""
    try:
        while time.monotonic() < deadline:
            ended, _, usage = os.wait4(pid, os.WNOHANG)
            if ended:
                return usage.ru_utime + usage.ru_stime
            time.sleep(LOOK)
    except BaseException:
        _kill(pid)
        raise
    return _kill(pid)


def _kill(pid: int) -> float:
    with contextlib.suppress(ProcessLookupError, ChildProcessError):  # an interrupt came when it had been waited for
        os.kill(pid, signal.SIGKILL)
        _, _, usage = os.wait4(pid, 0)
        return usage.ru_utime + usage.ru_stime
    return 0.0


def _end_orphans() -> None:
    """End what a fork has left behind. It all became a child of this process, which has no other ones."""
    children = Path(f"/proc/self/task/{os.getpid()}/children")
    while children.exists() and (left := children.read_text().split()):
        for pid in map(int, left):
            _kill(pid)


def _read(case: Case, journal: Path) -> Result:
    """What a fork has written down. One that came to no verdict died in a test, or had to be ended in it."""
    lines = journal.read_text().splitlines() if journal.exists() else []
    entries: list[dict[str, Any]] = [json.loads(line) for line in lines]
    passed = tuple(entry["passed"] for entry in entries if "passed" in entry)
    last = entries[-1] if entries else {}
    if "verdict" in last:
        return Result(case.name, last["verdict"], last.get("by", ""), last.get("why", ""), passed)
    if "begun" in last:
        return Result(case.name, "killed", last["begun"], "the process of the tests died, or hung", passed)
    return Result(case.name, "not applied", why="the process of the tests died before the first test")


@contextlib.contextmanager
def _shadowed(shadow: tuple[Path, str] | None) -> Iterator[None]:
    """A file has another text meanwhile, and a time that it never had: by that Python knows what it has compiled."""
    if shadow is None:
        yield
        return
    path, text = shadow
    old, before = path.read_bytes(), path.stat()
    path.write_text(text, encoding="utf-8")
    os.utime(path, (before.st_atime, _new_time()))
    try:
        yield
    finally:
        path.write_bytes(old)
        os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


_times = [int(time.time())]


def _new_time() -> int:
    _times[0] += 1
    return _times[0]


class _Session:
    """A plugin of pytest: has the tests collected, and then leaves them to `work` instead of running them."""

    def __init__(self, work: Callable[[list[pytest.Item]], None]) -> None:
        self._work = work
        self.reached = False
        self.raised: BaseException | None = None

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        if session.testsfailed:
            return True  # something cannot be collected; pytest shows what
        self.reached = True
        try:
            self._work(session.items)
        except BaseException as error:  # pytest would make it a text in its log
            self.raised = error
        return True


def collect(paths: Sequence[str], folder: Path, work: Callable[[list[pytest.Item]], None], timeout: int) -> None:
    """Have pytest collect these files and folders, then do the work. Meanwhile all that is printed goes to a file in
    the folder. Raises with what pytest shows where the tests cannot be collected."""
    os.environ["HYPOTHESIS_STORAGE_DIRECTORY"] = str(folder / "hypothesis")
    session = _Session(work)
    options = ["-qq", "-p", "no:cacheprovider", "-p", "no:tests.suite.forks", f"--timeout={timeout}"]
    options += ["-W", "ignore::pytest.PytestAssertRewriteWarning"]  # what these tools import themselves
    log = folder / "log"
    with _printing_to(log):
        code = pytest.main([*options, *paths], plugins=[session])
    if code == pytest.ExitCode.INTERRUPTED:
        raise KeyboardInterrupt
    if not session.reached:
        raise RuntimeError(f"the tests cannot be collected:\n{log.read_text(errors='replace')[-4000:]}")
    if session.raised is not None:
        raise session.raised


@contextlib.contextmanager
def _printing_to(log: Path) -> Iterator[None]:
    sys.stdout.flush()
    sys.stderr.flush()
    kept = os.dup(1), os.dup(2)
    try:
        with log.open("wb") as file:
            os.dup2(file.fileno(), 1)
            os.dup2(file.fileno(), 2)
            yield
    finally:
        for number, old in zip((1, 2), kept, strict=True):
            os.dup2(old, number)
            os.close(old)
