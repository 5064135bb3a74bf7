"""The files of a SQLite store: made for their owner alone, and noticed when they are taken away beneath the store."""

from __future__ import annotations

import os
import shutil
import stat
from urllib.parse import quote

from tickwork.errors import StoreError, StoreUnavailable
from tickwork.store.contract import Finding

# With O_EXCL a link is never followed; O_NOFOLLOW says it once more where there is such a thing.
_CREATE = os.O_CREAT | os.O_EXCL | os.O_RDWR | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)

ENOUGH = 10e9  # bytes: with so much free, a disk is not full at all


class Files:
    """The database file and its write-ahead log, which stand in one folder for as long as the store is open."""

    def __init__(self, path: str) -> None:
        self.path = path  # as the user named it
        self.gone = False  # at the last look
        self.closing = False
        self.checkpointed = False  # the file was written to since this was set to false
        self._written_at = 0
        self._known: tuple[tuple[int, int], tuple[int, int]] | None = None
        self._file = self.log = b""
        self.absolute = ""  # once it was created: the working directory may change

    def fullness(self) -> float:
        """How full its disk is. One with much room left is not, however much is on it."""
        disk = shutil.disk_usage(os.path.dirname(self.absolute))
        return 1.0 - max(disk.free / disk.total, min(disk.free / ENOUGH, 1.0))

    def uri(self, mode: str) -> str:
        return uri_of(self.absolute, mode)

    def create(self) -> None:
        """Make the file if there is none. Its log takes over its mode, which is never changed later."""
        self.absolute = os.path.abspath(self.path)
        folder = os.path.dirname(self.absolute)
        if not os.path.isdir(folder):
            raise StoreError(f"SQLite file {self.path}: folder {folder} does not exist")
        if os.path.isdir(self.absolute):
            raise StoreError(f"SQLite file {self.path}: this is a folder, not a file")
        try:
            os.close(os.open(self.absolute, _CREATE, 0o600))
        except FileExistsError:
            if not os.path.exists(self.absolute):
                raise StoreError(
                    f"SQLite file {self.path}: this is a symbolic link to {os.readlink(self.absolute)}, which does not "
                    "exist. No file is made through a link: make that file, or remove the link."
                ) from None
        except OSError as error:
            raise StoreError(
                f"SQLite file {self.path}: it cannot be made in folder {folder}: {error.strerror}. This user must be "
                "able to write to the folder and to the file."
            ) from None

    def remember(self) -> None:
        """These are the files that the connections have open. SQLite puts the log beside what a link points to."""
        self._file = os.fsencode(self.absolute)
        self.log = os.fsencode(f"{os.path.realpath(self.absolute)}-wal")
        self._known = _identity(self._file), _identity(self.log)
        self._written_at = os.stat(self._file).st_mtime_ns
        self.gone = self.closing = False

    def check(self) -> None:
        """Refuse to go on if another file, or none, is there now: what is written is lost when this process ends."""
        try:
            file = os.stat(self._file)
            found = (file.st_dev, file.st_ino), _identity(self.log)
            self._compare(file.st_mtime_ns)
        except (FileNotFoundError, NotADirectoryError):
            found = None
        except OSError as error:
            raise StoreUnavailable(f"SQLite file {self.path}: {error.strerror}") from None
        self.gone = found != self._known
        if self.gone:
            raise StoreError(self._what_happened())

    def look_for_checkpoint(self) -> bool:
        self._compare(os.stat(self._file).st_mtime_ns)
        return self.checkpointed

    def _compare(self, written_at: int) -> None:
        if written_at != self._written_at:  # commits go to the log, and only a checkpoint to the file itself
            self._written_at, self.checkpointed = written_at, True

    def _what_happened(self) -> str:
        file, name = "the file", self._file
        if self._known is not None and os.path.exists(self._file) and _identity(self._file) == self._known[0]:
            file, name = f"its log {os.fsdecode(self.log)}", self.log
        how = "replaced by another" if os.path.exists(name) else "deleted or moved away"
        return (
            f"SQLite file {self.path}: {file} was {how} while it was in use. Nothing is accepted any more, as it would "
            "be lost, and the last calls may be lost too. Put the same file back, or stop every process that uses it "
            "and start again."
        )

    def sync_log(self) -> None:
        """What was committed is in the write-ahead log; a checkpoint that took it over has synced the file itself."""
        try:
            log = os.open(self.log, os.O_RDONLY)
        except FileNotFoundError:
            if self.closing:  # closing ends with a checkpoint
                return
            raise StoreError(self._what_happened()) from None
        try:
            os.fsync(log)
        finally:
            os.close(log)
        if not self.closing:
            self.check()

    def health(self) -> list[Finding]:
        """Who else may read or write what is in the files."""
        if os.name != "posix":
            return []
        found: list[Finding] = []
        real = os.path.realpath(self.absolute)
        for name in (real, f"{real}-wal"):
            mode = stat.S_IMODE(os.stat(name).st_mode)
            if mode & 0o066:
                rights = " and ".join(word for word, bits in (("read", 0o044), ("write", 0o022)) if mode & bits)
                text = f"{name} has mode {mode:04o}: other users of this host can {rights} payloads and results"
                found.append(Finding("warning", text, f"unless that is meant: chmod 600 {name}"))
                break  # the log is made with the mode of the file
        folder = os.path.dirname(real)
        mode = stat.S_IMODE(os.stat(folder).st_mode)
        if mode & stat.S_IWOTH and not mode & stat.S_ISVTX:
            text = f"folder {folder} has mode {mode:04o}: every user of this host can replace the SQLite file in it"
            found.append(Finding("warning", text, f"chmod o-w {folder}"))
        return found


def uri_of(path: str, mode: str) -> str:
    """For `sqlite3.connect`. Two slashes at the beginning of a path would name a host in a URI."""
    path = os.path.abspath(path)
    return f"file:{quote('/' + path.lstrip('/') if path.startswith('//') else path)}?mode={mode}"


def _identity(name: bytes) -> tuple[int, int]:
    found = os.stat(name)
    return found.st_dev, found.st_ino
