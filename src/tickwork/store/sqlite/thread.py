"""One connection and its thread. Calls that wait together run there as savepoints of one transaction (group commit) and
are answered after it was committed.

A thread that asks may use the connection itself while nobody else does, which saves waking two threads: a blocking
caller at any time, an event loop only for one small call that nothing can hold up (`Session.begin_at_once`). A
checkpoint or an fsync, which may take milliseconds, is never done on an event loop.
"""

from __future__ import annotations

import asyncio
import queue
import sqlite3
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, NamedTuple, TypeVar

from tickwork.errors import StoreError, StoreUnavailable
from tickwork.forks import hold_during_forks
from tickwork.store.contact import Contact
from tickwork.store.sqlite.connecting import code_of
from tickwork.store.sqlite.inbox import Inbox

R = TypeVar("R")
GROUP_MAX = 200  # calls in one transaction
AFTER_COMPANY = 2  # small calls that come alone until the next one is taken for a lone one again

# A process that works hard must not wake all others, and its own thread, with each of its commits. So for some seconds
# no further sign is listened to: after one that concerned somebody here, and longer and longer after many in a row that
# did not.
REST = 0.001
RESTS = (0.0, 0.0, 0.0, 0.001, 0.002, 0.005, 0.01, 0.02)


class _Call(NamedTuple):
    work: Callable[[], Any]
    loop: asyncio.AbstractEventLoop
    future: asyncio.Future[Any]


class _Answer(NamedTuple):
    call: _Call
    value: Any
    error: BaseException | None


class Session:
    """What runs on the thread: opens the connection there and brackets the calls. Subclassed by reader and writer."""

    poll: float | None = None  # how often `idle` wants to be called while nothing happens
    watcher = -1  # a descriptor that can be read when there is something to look at, if not negative

    def open(self) -> sqlite3.Connection:
        raise NotImplementedError

    def begin(self) -> None: ...

    def begin_at_once(self) -> bool:
        """Begin a transaction that waits for nobody and for no disk. False if there may be something to wait for."""
        return False

    def commit(self) -> None: ...

    def mark(self) -> object:
        """The state to go back to when one call of a group fails."""
        return None

    def rewind(self, mark: object) -> None: ...

    def roll_back(self) -> None:
        """Nothing of what was done since `begin` is to stay."""

    def explain(self, error: sqlite3.Error) -> StoreError | None:
        """What an error of SQLite means, where its own words do not say it."""
        return None

    def idle(self) -> bool:
        """Called when nothing has come for `poll` seconds, or the watcher can be read; a group begins by looking for
        itself. Answers whether others have written what concerns somebody here."""
        return False

    def close(self) -> None:
        """Close what was opened. Also called in the child of a fork, by its only thread."""


class SqliteThread:
    def __init__(self, name: str, session: Session, path: str, contact: Contact) -> None:
        self._contact = contact
        self._session = session
        self._path = path
        self._name = name
        self._inbox: Inbox[_Call | None] = Inbox()
        self._in_vain = 0  # signs in a row that concerned nobody here
        self._opened = False
        self._thread: threading.Thread | None = None
        self._lock = threading.Lock()  # no call may slip in behind the last one
        self._inside = threading.Lock()  # held while a thread uses the connection
        self._unanswered = 0  # calls that the thread was given
        self._company = 0  # so many small calls are for the thread, as those before came together with others
        self._small_call = False  # an event loop has just done one by itself, and others may come before it goes on
        hold_during_forks(self._inside)

    def start(self) -> None:
        """Blocks until the file is open, or raises why it is not."""
        opened: Future[None] = Future()
        self._thread = threading.Thread(target=self._run, args=(opened,), name=self._name, daemon=True)
        self._thread.start()
        opened.result()

    async def stop(self) -> None:
        with self._lock:
            thread, self._thread = self._thread, None
            if thread is not None:
                self._inbox.put(None)
        if thread is not None:
            await asyncio.to_thread(thread.join, 10)

    def after_fork(self) -> None:
        """The child must neither use the connection of its parent nor merely forget it. SQLite remembers by process
        which locks it holds on a file, but the kernel gives them to the parent alone: while the old connection is open,
        a new one would believe in locks that it does not have, and go on writing to a log that the parent has removed.
        Closing is safe here, as no transaction was open at the fork and the parent's locks are not the child's."""
        self._lock, self._thread, self._unanswered = threading.Lock(), None, 0
        self._close()
        self._inbox = Inbox()

    async def call(self, work: Callable[[], R]) -> R:
        loop = asyncio.get_running_loop()
        future: asyncio.Future[R] = loop.create_future()
        with self._lock:
            if self._thread is None:
                raise StoreError(f"SQLite file {self._path} is closed")
            self._unanswered += 1
            self._inbox.put(_Call(work, loop, future))
        return await future

    async def call_small(self, work: Callable[[], R]) -> R:
        """For work of some tens of microseconds. If it comes alone it is done here and now; those that come at the same
        time as others are better done together. Other coroutines get their turn in any case."""
        done = None
        if self._small_call or self._unanswered:
            self._company = AFTER_COMPANY
        elif self._company:
            self._company -= 1
        else:
            done = self.call_at_once(work)
        if done is None:
            return await self.call(work)
        self._small_call = True
        try:
            await asyncio.sleep(0)
        finally:
            self._small_call = False
        return done[0]

    def call_at_once(self, work: Callable[[], R]) -> tuple[R] | None:
        """In the thread that asks, if nothing can hold it up. None if it was not done: the connection's own thread does
        it then, or says why it cannot."""
        if not self._inside.acquire(blocking=False):
            return None
        try:
            return self._try(work)
        finally:
            self._inside.release()

    def call_soon(self, work: Callable[[], R]) -> tuple[R] | None:
        """The same from a thread that a signal may interrupt at any line, also between the lines of an acquire and its
        release; a `with` cannot be interrupted there. It waits if somebody has taken the connection since the look."""
        if self._inside.locked():
            return None
        with self._inside:
            return self._try(work)

    def _try(self, work: Callable[[], R]) -> tuple[R] | None:
        try:
            return self._do(work, self._session.begin_at_once) if self._opened else None
        except Exception:  # the connection's own thread finds out what it means
            return None

    def call_blocking(self, work: Callable[[], R]) -> tuple[R] | None:
        """From a thread that may be held up. None if the connection is not open."""
        with self._inside:
            if not self._opened:
                return None
            try:
                return self._do(work, self._session.begin)
            except Exception as error:
                raise self._named(error) from None

    def _do(self, work: Callable[[], R], begin: Callable[[], bool | None]) -> tuple[R] | None:
        """One call in a transaction of its own."""
        try:
            if begin() is False:
                return None
            value = work()
            self._session.commit()
        except BaseException:  # a thread of the program may be interrupted at any line
            self._session.roll_back()
            raise
        return (value,)

    def _run(self, opened: Future[None]) -> None:
        try:
            with self._inside:
                db = self._session.open()
                self._opened = True
                if self._session.watcher >= 0:
                    self._inbox.watch(self._session.watcher)
        except Exception as error:  # raised by start()
            self._thread = None
            self._close()
            opened.set_exception(self._named(error))
            return
        opened.set_result(None)
        try:
            while (group := self._next_group()) is not None:
                with self._inside:
                    answers = self._run_group(db, group) if group else self._idle()
                self._deliver(answers)  # now, or those who ask again at once would find the connection in use
        finally:
            self._close()

    def _close(self) -> None:
        with self._inside:
            with self._lock:  # not while somebody rings its bell: the number could be that of another file by then
                self._inbox.close()
            if self._opened:
                self._opened = False
                self._session.close()

    def _idle(self) -> list[_Answer]:
        try:
            concerned = self._session.idle()
        except sqlite3.Error as error:
            if code_of(error) != sqlite3.SQLITE_BUSY:  # then the next look, or the next call, is soon enough
                self._contact.log.warning("SQLite file %s: %s", self._path, error)
            return []
        self._inbox.ignore_signs(REST if concerned else RESTS[self._in_vain])
        self._in_vain = 0 if concerned else min(self._in_vain + 1, len(RESTS) - 1)
        return []

    def _next_group(self) -> list[_Call] | None:
        try:
            call = self._inbox.get(self._session.poll)
        except queue.Empty:
            return []
        if call is None:
            return None
        group = [call]
        while len(group) < GROUP_MAX:
            try:
                call = self._inbox.get_nowait()
            except queue.Empty:
                break
            if call is None:
                self._inbox.put(None)
                break
            group.append(call)
        return group

    def _run_group(self, db: sqlite3.Connection, group: list[_Call]) -> list[_Answer]:
        try:
            self._session.begin()
            answers = [self._run_call(db, call, alone=len(group) == 1) for call in group]
            self._session.commit()
        except Exception as error:
            self._session.roll_back()
            failure = self._named(error)
            answers = [_Answer(call, None, failure) for call in group]
        return answers

    def _deliver(self, answers: list[_Answer]) -> None:
        by_loop: dict[asyncio.AbstractEventLoop, list[_Answer]] = {}
        for answer in answers:
            by_loop.setdefault(answer.call.loop, []).append(answer)
        with self._lock:
            self._unanswered -= len(answers)
        for loop, of_loop in by_loop.items():
            try:
                loop.call_soon_threadsafe(_answer, of_loop)
            except RuntimeError:  # that loop is closed: nobody waits there any more
                continue

    def _run_call(self, db: sqlite3.Connection, call: _Call, alone: bool) -> _Answer:
        if alone:  # its failure rolls the whole transaction back, so it needs no savepoint of its own
            return _Answer(call, call.work(), None)
        mark = self._session.mark()
        db.execute("SAVEPOINT one_call")
        try:
            value = call.work()
        except Exception as error:
            if not db.in_transaction:  # SQLite gave the whole transaction up (disk full, I/O error)
                raise
            db.execute("ROLLBACK TO one_call")
            db.execute("RELEASE one_call")
            self._session.rewind(mark)
            return _Answer(call, None, self._named(error))
        db.execute("RELEASE one_call")
        return _Answer(call, value, None)

    def _named(self, error: Exception) -> Exception:
        """An SQLite error as one of ours, with the file's name."""
        if isinstance(error, OverflowError | UnicodeError):  # a value that SQLite cannot take
            return StoreError(f"SQLite file {self._path}: {error}")
        if isinstance(error, OSError):
            return StoreUnavailable(f"SQLite file {self._path}: {error.strerror}")
        if not isinstance(error, sqlite3.Error):
            return error
        if (explained := self._session.explain(error)) is not None:
            return explained
        text = f"SQLite file {self._path}: {error}"
        code = code_of(error)
        if code == sqlite3.SQLITE_FULL:
            return StoreUnavailable(f"{text}; nothing was changed, free some space and try again")
        if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_IOERR):
            return StoreUnavailable(text)
        return StoreError(text)


def _answer(answers: list[_Answer]) -> None:
    for (_, _, future), value, error in answers:
        if future.done():  # the caller was cancelled
            continue
        if error is None:
            future.set_result(value)
        else:
            future.set_exception(error)
