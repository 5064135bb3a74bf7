"""How processes on one SQLite file wake each other: after a commit that others should hear of, a process sets the times
of the write-ahead log, and the kernel tells all who watch them. The commit can be read by then; of a write to the log
they would hear too early. No file is made for it, and none is left behind.
"""

from __future__ import annotations

import os

from tickwork.store.sqlite.inotify import ATTRIB, is_local, read, watch


class Signs:
    """Given and heard on one file. Losing one costs no more than the wait until the next look at the file."""

    def __init__(self) -> None:
        self.watcher = -1  # can be read when there was a sign; below zero where there are no signs to hear
        self._log = -1

    def open(self, log: bytes) -> None:
        """Where others could write unseen by this kernel, or inotify cannot be used, the file must be looked at."""
        try:
            if not is_local(log):
                return
            self._log = os.open(log, os.O_RDONLY | os.O_CLOEXEC)
            self.watcher = watch(log, ATTRIB)
        except OSError:  # no such call here, or too many watchers on this host; this process may still tell others
            return
        self.give()
        if not read(self.watcher):
            os.close(self.watcher)
            self.watcher = -1

    def give(self) -> None:
        if self._log < 0:
            return
        try:
            os.utime(self._log)
        except OSError:  # the user has changed since it was opened; others look at the file all the same, only later
            os.close(self._log)
            self._log = -1

    def read(self) -> bool:
        """Whether there were any since the last look."""
        return self.watcher >= 0 and read(self.watcher)

    def close(self) -> None:
        """Also in the child of a fork, where these are its copies."""
        for descriptor in (self.watcher, self._log):
            if descriptor >= 0:
                os.close(descriptor)
        self.watcher = self._log = -1
