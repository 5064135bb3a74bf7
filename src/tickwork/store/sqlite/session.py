"""The writer's side of a connection: what a transaction carries along, and what it lets out with its commit."""

from __future__ import annotations

import operator
import sqlite3
from collections.abc import Callable
from contextlib import closing
from typing import Any

import msgspec

from tickwork.clock import Clock
from tickwork.errors import StoreError
from tickwork.model.facts import Fact
from tickwork.model.policy import Policy
from tickwork.model.tasks import Record
from tickwork.store.contact import Contact
from tickwork.store.hints import CONTROL, EVENTS, OUTBOX, SCHEDULES, WORK, Hints
from tickwork.store.rules import before_newest, first_number
from tickwork.store.sqlite.connecting import check_version, closed_if_refused, switch_to_log
from tickwork.store.sqlite.connection import BUSY_TIMEOUT, Connection
from tickwork.store.sqlite.dead_letters import DeadLetters
from tickwork.store.sqlite.files import Files
from tickwork.store.sqlite.migrations import prepare
from tickwork.store.sqlite.signs import Signs

# A topic's number goes up with every commit that others should hear of. Commits that mean nothing to them (an idle
# claim, a beat) leave it alone, or idle processes would wake each other for ever.
HEARD = {WORK: "heard_work", CONTROL: "heard_control", OUTBOX: "heard_outbox", SCHEDULES: "heard_schedules"}
STATE = ("seq", "position", "fact", "dropped", "ends", "pulse_at", "hold_until", *HEARD.values(), "heard_ends", "aged")
READ_HEARD = f"SELECT {', '.join(HEARD.values())}, heard_ends, fact FROM @state"
READ_STATE = f"SELECT {', '.join(STATE)} FROM @state"
WRITE_STATE = f"UPDATE @state SET {', '.join(f'{name} = ?' for name in STATE)}"

# Seconds between two looks at what other processes have written: where they give no signs, and where they do, in case
# that one is lost.
POLL, WATCHED_POLL = 0.02, 1.0

CHECKPOINT_PAGES = 4000  # a page that changes often is copied back less often
AT_ONCE_MAX = 100  # transactions in a row that do not look whether a checkpoint is due

TRIM_EVERY = 1000  # facts; so a trim finds about as many to drop

# Where numbers were left out, they do not say how many facts there are; there are no more rows than facts.
TRIM_ROWS = "DELETE FROM @events WHERE last <= (SELECT last FROM @events ORDER BY last DESC LIMIT 1 OFFSET ?)"

_encode = msgspec.msgpack.Encoder().encode


class State:
    """The one row of `@state`: read when a transaction first needs it and others have written since it was, and written
    once before the commit."""

    __slots__ = STATE
    seq: int
    position: int
    fact: int
    dropped: int
    ends: int
    pulse_at: int
    hold_until: int
    heard_work: int
    heard_control: int
    heard_outbox: int
    heard_schedules: int
    heard_ends: int
    aged: int

    def __init__(self, values: tuple[int, ...]) -> None:
        for name, value in zip(STATE, values, strict=True):
            setattr(self, name, value)

    def values(self) -> tuple[int, ...]:
        return _state_values(self)

    def heard(self) -> tuple[int, ...]:
        return _heard_values(self)


_state_values = operator.attrgetter(*STATE)
_heard_values = operator.attrgetter(*HEARD.values(), "heard_ends", "fact")


class Writer(Connection):
    """Collects facts, hints and counters while calls run, and lets them out with the commit."""

    def __init__(
        self,
        files: Files,
        namespace: str,
        policy: Policy,
        clock: Clock,
        hints: Hints,
        durability: str,
        contact: Contact,
    ) -> None:
        super().__init__(files, namespace, contact)
        self.policy = policy
        self.clock = clock
        self.hints = hints
        self._synchronous = "FULL" if durability == "disk" else "NORMAL"
        self._may_wait: bool | None = None  # not known
        self._at_once_left = 0
        self._facts: list[tuple[Any, ...]] = []
        self._topics: set[str] = set()
        self._ended: list[str] = []
        self._state: State | None = None
        self._waits: bool | None = None
        self._state_read: tuple[int, ...] = ()
        self._new_here = True  # no facts were told since the file was opened
        self._seen_version = 0
        self.dead_letters = DeadLetters()
        self._heard: tuple[int, ...] = ()
        self._signs = Signs()

    def open(self) -> sqlite3.Connection:
        check_version()
        self.files.create()
        self.dead_letters.forget()
        self._new_here = True
        db = self.connect("rw")
        with closed_if_refused(db, self.path):
            self._prepare(db)
            self.files.remember()
            self._signs.open(self.files.log)
        self.watcher = self._signs.watcher
        self.poll = POLL if self.watcher < 0 else WATCHED_POLL
        return db

    def close(self) -> None:
        self._signs.close()
        super().close()

    def migrate(self, take_over: bool, report: Callable[[int], None]) -> bool:
        """On a connection of its own: the store need not be open."""
        check_version()
        self.files.create()
        db = sqlite3.connect(self.files.uri("rw"), uri=True, timeout=5, isolation_level=None)
        with closed_if_refused(db, self.path), closing(db):
            switch_to_log(db, self.path)
            return prepare(db, self.namespace, self.path, self.clock.now(), take_over=take_over, report=report)

    def _prepare(self, db: sqlite3.Connection) -> None:
        switch_to_log(db, self.path)
        db.execute(f"PRAGMA synchronous = {self._synchronous}")
        db.execute("PRAGMA temp_store = MEMORY")
        db.execute("PRAGMA cache_size = -16000")
        self._may_wait = None  # as the connection may have been opened again
        self._let_wait(True)
        prepare(db, self.namespace, self.path, self.clock.now())
        self._state = None
        self._distrust()  # what another connection has read may have changed since
        self._seen_version = self._version()
        self._heard = self.one(READ_HEARD)

    # --- one transaction

    def begin(self) -> None:
        super().begin()
        self._let_wait(True)
        self._at_once_left = AT_ONCE_MAX if self._synchronous == "NORMAL" else 0
        self.files.checkpointed = False  # the first transaction after one begins the log anew, and syncs its header
        self._begin()

    def begin_at_once(self) -> bool:
        files = self.files
        if self._at_once_left <= 0 or files.gone or files.checkpointed or self.db.in_transaction:
            return False
        self._at_once_left -= 1
        self._let_wait(False)
        before = self._seen_version
        self._begin()
        if self._seen_version != before and files.look_for_checkpoint():  # others have written, so it may be theirs
            self.db.execute("ROLLBACK")
            return False
        return True

    def _begin(self) -> None:
        self._facts, self._topics, self._ended, self._waits = [], set(), [], None
        self.db.execute("BEGIN IMMEDIATE")
        self._notice_others()

    def _let_wait(self, may_wait: bool) -> None:
        """Whether transactions of this connection may wait for those of others, and end with a checkpoint."""
        if may_wait is not self._may_wait:
            self._may_wait = None  # a thread may be interrupted before both are set
            self.db.execute(f"PRAGMA busy_timeout = {BUSY_TIMEOUT if may_wait else 0}")
            self.db.execute(f"PRAGMA wal_autocheckpoint = {CHECKPOINT_PAGES if may_wait else 0}")
            self._may_wait = may_wait

    def _notice_others(self) -> bool:
        """What other processes have committed: wake those whom it concerns, and trust no record read before. Answers
        whether there was anybody."""
        version = self._version()
        if version == self._seen_version:
            return False
        self._seen_version = version
        self._state = None
        self.running.clear()
        self.dead_letters.others_wrote()
        heard, before = self.one(READ_HEARD), self._heard
        self._heard = heard
        if not self.hints or heard == before:
            return False
        *topics, ends, fact = (new != old for new, old in zip(heard, before, strict=True))
        concerned = False
        for topic, changed in zip((*HEARD, EVENTS), (*topics, fact), strict=True):
            if changed:
                concerned |= self.hints.notify(topic)
        if ends:
            concerned |= self.hints.notify_tasks()
        return concerned

    def _version(self) -> int:
        """Changes when another connection has committed; one's own commits do not count."""
        number: int = self.db.execute("PRAGMA data_version").fetchone()[0]
        return number

    def commit(self) -> None:
        if self._facts:
            if self._new_here:
                self._pass_over_forgotten()
            first = self.state.fact + 1
            self.state.fact += len(self._facts)
            self.run("INSERT INTO @events VALUES (?, ?, ?)", (self.state.fact, first, _encode(self._facts)))
            if self.state.fact // TRIM_EVERY != (first - 1) // TRIM_EVERY:
                dropped = before_newest(self.state.fact, self.policy.events_max)
                self.run("DELETE FROM @events WHERE last <= ?", (dropped,))
        for topic in self._topics:
            setattr(self.state, HEARD[topic], getattr(self.state, HEARD[topic]) + 1)
        if self._ended:
            self.state.heard_ends += 1
        if self._state is not None and (values := self._state.values()) != self._state_read:
            self.run(WRITE_STATE, values)
            self._state_read = values
        self.db.execute("COMMIT")
        self._new_here = self._new_here and not self._facts
        self.files.check()  # now: what was committed into a file that is gone must not be acknowledged
        if self._facts or self._topics or self._ended:
            self._signs.give()
        if self._state is not None:
            self._heard = self._state.heard()
        if self.hints:
            for topic in self._topics:
                self.hints.notify(topic)
            self.hints.notify_ended(self._ended)
            if self._facts:
                self.hints.notify(EVENTS)

    def _pass_over_forgotten(self) -> None:
        """The file may have been put back from a copy: the facts that it has forgotten keep their numbers."""
        start = first_number(self.clock.now())
        if start > self.state.fact:
            self.state.fact = start
            self.run(TRIM_ROWS, (self.policy.events_max,))

    def mark(self) -> object:
        return len(self._facts), len(self._ended), None if self._state is None else self._state.values()

    def rewind(self, mark: object) -> None:
        assert isinstance(mark, tuple)
        facts, ended, state = mark
        del self._facts[facts:], self._ended[ended:]
        self._state = None if state is None else State(state)
        self._distrust()

    def roll_back(self) -> None:
        self._state = None
        self._distrust()
        super().roll_back()

    def _distrust(self) -> None:
        self.specs.clear()  # another process may give a number that was rolled back to another task
        self.running.clear()
        self.dead_letters.forget()

    def idle(self) -> bool:
        was_told = self._signs.read()  # before the look, or one that comes during it would go unheard
        concerned = self._notice_others()
        if was_told:
            return concerned
        known = self.files.gone
        try:
            self.files.check()
        except StoreError as error:
            if not known:
                self.contact.log.error("%s", error)
        return concerned

    # --- what transitions use

    @property
    def state(self) -> State:
        if self._state is None:
            self._state_read = self.one(READ_STATE)
            self._state = State(self._state_read)
        return self._state

    @property
    def waits(self) -> bool:
        """Whether any task waits for another: mostly none does, and then no end need ask."""
        if self._waits is None:
            self._waits = self.one("SELECT 1 FROM @waits LIMIT 1") is not None
        return self._waits

    def add_waits(self, dependant: str, upstreams: list[str]) -> None:
        self._waits = True
        self.many("INSERT INTO @waits VALUES (?, ?)", [(dependant, upstream) for upstream in upstreams])

    def notify(self, topic: str) -> None:
        self._topics.add(topic)

    def ended(self, task_id: str) -> None:
        self._ended.append(task_id)

    def tell(self, now: int, fact: Fact, subject: str, detail: str = "") -> None:
        if self.policy.events:
            self._facts.append((now, fact, subject, "", "", "", 0, 0.0, detail))

    def tell_task(self, now: int, fact: Fact, record: Record, detail: str = "") -> None:
        if self.policy.events:
            spec = record.spec
            self._facts.append(
                (now, fact, spec.id, spec.type, spec.queue, record.worker_id or "",
                 record.attempt, record.execution_time or 0.0, detail)
            )  # fmt: skip
