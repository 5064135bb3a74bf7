"""`--reload`: a parent that runs the application in a child, and starts it anew when one of its files has changed.

The parent never imports the application: the child does, and tells which files it has imported.
"""

from __future__ import annotations

import logging
import os
import signal
import sys
import threading
import time
import traceback
from collections.abc import Iterable, Iterator
from pathlib import Path

from tickwork.logs import formatter
from tickwork.node.forking import HURRY, OVER, STOP, Forked, Signals, Upward
from tickwork.observe.loggers import Log

LOOK = 0.5  # seconds between two looks at the files
GRACE, PATIENCE = 3.0, 10.0  # seconds until what runs is given back, and until the child is killed
FILE = "file "  # what the child tells: this word, when the file was changed last, and its path


class Reloader:
    """`run` returns in the parent with the exit status, and in each child with its link to the parent."""

    def __init__(self, log: Log) -> None:
        self._log = log
        self._files: dict[str, int] = {}  # path -> when it was changed last, in nanoseconds; 0 if it was not there
        self._child: Forked | None = None
        self._forks = 0
        self._wanted = True  # whether a child is to be started
        self._asked_at: float | None = None  # when the child was asked to end, because of a change
        self._hurried = False
        self._heeded = 0  # of the signals to stop
        self._status = 0

    def run(self) -> Upward | int:
        signals = Signals()
        while True:
            if self._child is None:
                if self._heeded:
                    return self._status
                if self._wanted and (child := self._fork(signals)) is not None:
                    return child
            signals.wait([self._child] if self._child is not None else [], LOOK)
            self._hear()
            self._reap()
            self._heed(signals)
            self._look()

    def _fork(self, signals: Signals) -> Upward | None:
        self._forks += 1
        forked = signals.fork(self._forks, [])
        if isinstance(forked, Upward):
            return forked
        self._child, self._wanted, self._asked_at, self._hurried = forked, False, None, False
        return None

    def _hear(self) -> None:
        for word in self._child.words() if self._child is not None else ():
            if word == OVER:
                self._wanted = True
            elif word.startswith(FILE):
                changed_at, path = word.removeprefix(FILE).split(" ", 1)
                self._files[path] = int(changed_at)

    def _reap(self) -> None:
        if self._child is None or (status := self._child.status()) is None:
            return
        self._child, self._status = None, max(status, 0)
        if not (self._wanted or self._heeded):
            self._log.warning("the application has ended; it is started again when one of its files changes")

    def _heed(self, signals: Signals) -> None:
        """As in `node/processes.py`: finish what runs, give it back, be killed."""
        while self._heeded < signals.stops:
            self._heeded += 1
            if self._child is not None and self._heeded < 3:
                self._child.order(STOP if self._heeded == 1 else HURRY)
            elif self._child is not None:
                os.kill(self._child.pid, signal.SIGKILL)

    def _look(self) -> None:
        changed = [path for path, known in self._files.items() if changed_at(path) not in (0, known)]
        if changed and not self._heeded:
            self._log.info("%s has changed: the application is started again", os.path.relpath(changed[0]))
            self._files = {path: changed_at(path) or known for path, known in self._files.items()}
            self._wanted = True
        if self._wanted and self._child is not None:
            self._end(self._child, time.monotonic())

    def _end(self, child: Forked, now: float) -> None:
        if self._asked_at is None:
            self._asked_at = now
            child.order(STOP)
        elif now - self._asked_at >= PATIENCE:
            os.kill(child.pid, signal.SIGKILL)
        elif now - self._asked_at >= GRACE and not self._hurried:
            self._hurried = True
            child.order(HURRY)


def changed_at(path: str) -> int:
    """0 if there is no such file."""
    try:
        return os.stat(path).st_mtime_ns
    except OSError:
        return 0


def own_log(as_json: bool) -> Log:
    """Apart from all others, which are set up in the child."""
    logger = logging.Logger("tickwork.reload", logging.INFO)
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(formatter(as_json))
    logger.addHandler(handler)
    return Log(logger)


# --- in the child


def tell_imports(parent: Upward) -> None:
    """Tell which files of the working directory are imported, now and from now on."""
    tell_files(parent, _imported())
    threading.Thread(target=_tell_for_ever, args=(parent,), name="tickwork-reload", daemon=True).start()


def _tell_for_ever(parent: Upward) -> None:
    told = _imported()
    while True:
        time.sleep(LOOK)
        imported = _imported()
        tell_files(parent, imported - told)
        told |= imported


def _imported() -> set[str]:
    return {str(file) for module in list(sys.modules.values()) if (file := getattr(module, "__file__", None))}


def tell_failure(parent: Upward, module: str, error: BaseException) -> None:
    """Tell which files may be the cause of an import that failed, since that leaves no module behind."""
    path = module.partition(":")[0].replace(".", os.sep)
    tell_files(parent, {f"{path}.py", os.path.join(path, "__init__.py"), *_named_in(error)}, also_missing=True)


def _named_in(error: BaseException | None) -> Iterator[str]:
    while error is not None:
        yield from (frame.filename for frame in traceback.extract_tb(error.__traceback__))
        if isinstance(error, SyntaxError) and error.filename:
            yield error.filename
        if isinstance(error, ImportError) and error.name:
            yield f"{error.name.replace('.', os.sep)}.py"
        error = error.__cause__ or error.__context__


def tell_files(parent: Upward, paths: Iterable[str], also_missing: bool = False) -> None:
    here = Path.cwd()
    for path in paths:
        full = here / path
        if full.is_relative_to(here) and "site-packages" not in full.parts and "\n" not in path:
            moment = changed_at(str(full))
            if moment or also_missing:
                parent.tell(f"{FILE}{moment} {full}")
