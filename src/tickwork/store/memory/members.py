"""The parts of the memory store that are not tasks: the log, schedules, members and leadership."""

from __future__ import annotations

import threading
from collections.abc import Callable, Coroutine
from functools import wraps
from itertools import islice
from typing import Any, Concatenate, ParamSpec, TypeVar

from msgspec.structs import replace

from tickwork.clock import Clock, SystemClock
from tickwork.forks import hold_during_forks, tell_of_forks
from tickwork.model.facts import Event, Fact
from tickwork.model.members import Leader, Worker
from tickwork.model.policy import Policy
from tickwork.model.schedules import Schedule
from tickwork.model.tasks import Lease, Record
from tickwork.observe.loggers import Log
from tickwork.store.contact import Contact
from tickwork.store.contract import Heard
from tickwork.store.hints import EVENTS, SCHEDULES, Hint, Hints
from tickwork.store.rules import (
    changed,
    elect,
    first_number,
    joined,
    leads,
    missed,
    pulse,
    rival_of,
    same_definition,
    succeed,
    tells_of,
)

P = ParamSpec("P")
R = TypeVar("R")
S = TypeVar("S", bound="Core")


def atomic(
    method: Callable[Concatenate[S, P], R],
) -> Callable[Concatenate[S, P], Coroutine[Any, Any, R]]:
    """A method that runs whole under the lock, offered as a coroutine that never yields."""

    @wraps(method)
    async def call(self: S, /, *args: P.args, **kwargs: P.kwargs) -> R:
        with self._lock:
            return method(self, *args, **kwargs)

    return call


class Core:
    """What the parts share: a lock, a clock, a policy, hints and the log."""

    url = "memory://"

    def __init__(self, policy: Policy | None = None, clock: Clock | None = None) -> None:
        self.policy = policy or Policy()
        self.hints = Hints()
        self.contact = Contact(Log.of(None, "store"))
        self._clock = clock or SystemClock()
        self._clock.on_change(self.hints.notify_all)
        self._lock = threading.Lock()
        hold_during_forks(self._lock)
        tell_of_forks(self)
        self._log: list[Event] = []
        self._log_seq = 0
        self._log_dropped = 0
        self._pulse_at = self.now()
        self._hold_until = 0

    def after_fork(self) -> None:
        """The child goes on with its own copy of everything."""
        self.hints.forget()
        self.contact.reset()

    def _pulse(self, now: int) -> None:
        self._pulse_at, self._hold_until, back = pulse(self._pulse_at, self._hold_until, now, self.policy)
        if back:
            self._set_back(back)

    def _set_back(self, by: int) -> None:
        """The clock was set back: each part moves the ends that it keeps."""

    def now(self) -> int:
        return self._clock.now()

    def hint(self, topic: str) -> Hint:
        return self.hints.add(topic)

    def _tell(self, event: Event) -> None:
        self._log.append(event)
        # Cut in large pieces, so that a full log costs no more than one that grows.
        if len(self._log) >= 2 * self.policy.events_max:
            excess = len(self._log) - self.policy.events_max
            self._log_dropped = self._log[excess - 1].seq
            del self._log[:excess]
        self.hints.notify(EVENTS)

    def _begin_log(self, now: int) -> int:
        """Behind all that another life of this process has told."""
        self._log_dropped = first_number(now)
        return self._log_dropped

    def _append(self, now: int, fact: Fact, subject: str, detail: str = "", worker_id: str = "") -> None:
        if self.policy.events:
            self._log_seq = (self._log_seq or self._begin_log(now)) + 1
            self._tell(Event(self._log_seq, now, fact, subject, worker_id=worker_id, detail=detail))

    def _append_task(self, now: int, fact: Fact, record: Record, detail: str = "") -> None:
        if self.policy.events:
            self._log_seq = (self._log_seq or self._begin_log(now)) + 1
            spec = record.spec
            self._tell(
                Event(
                    self._log_seq, now, fact, spec.id, spec.type, spec.queue,
                    record.worker_id or "", record.attempt, record.execution_time or 0.0, detail,
                )
            )  # fmt: skip

    @atomic
    def events(self, after: int, limit: int, task_id: str | None = None) -> tuple[list[Event], int]:
        dropped = max(self._log_dropped, self._log_seq - self.policy.events_max, 0)
        first = self._log[0].seq if self._log else 1
        start = max(max(after, dropped) + 1 - first, 0)
        if task_id is None:
            return self._log[start : start + limit], missed(after, dropped)
        told = (event for event in islice(self._log, start, None) if tells_of(task_id, event.kind, event.id))
        return list(islice(told, limit)), missed(after, dropped)

    @atomic
    def last_event(self) -> int:
        return self._log_seq


class Schedules(Core):
    def __init__(self, policy: Policy | None = None, clock: Clock | None = None) -> None:
        super().__init__(policy, clock)
        self._schedules: dict[str, Schedule] = {}

    @atomic
    def put_schedule(self, schedule: Schedule, if_changed: bool = False, create: bool = False) -> Schedule | None:
        now, old = self.now(), self._schedules.get(schedule.id)
        if old is not None and create:
            return None
        if old is not None and if_changed and same_definition(old, schedule):
            return old
        new = succeed(old, schedule, now)
        self._schedules[schedule.id] = new
        self._append(now, Fact.SCHEDULE_PUT, schedule.id, schedule.cron or "")
        self.hints.notify(SCHEDULES)
        return new

    @atomic
    def drop_schedule(self, schedule_id: str) -> bool:
        if self._schedules.pop(schedule_id, None) is None:
            return False
        self._append(self.now(), Fact.SCHEDULE_DROPPED, schedule_id)
        return True

    @atomic
    def get_schedule(self, schedule_id: str) -> Schedule | None:
        return self._schedules.get(schedule_id)

    @atomic
    def all_schedules(self) -> list[Schedule]:
        return sorted(self._schedules.values(), key=lambda schedule: schedule.id)

    @atomic
    def due_schedules(self, limit: int) -> tuple[list[Schedule], int | None]:
        now = self.now()
        waiting = [(s.next_at, s.id, s) for s in self._schedules.values() if s.active and s.next_at is not None]
        waiting.sort()
        due = [schedule for at, _, schedule in waiting if at <= now]
        later = next((at - now for at, _, _ in waiting if at > now), None)
        return due[:limit], 0 if len(due) > limit else later

    @atomic
    def set_schedule(
        self,
        schedule_id: str,
        *,
        paused: bool | None = None,
        next_at: int | None = None,
        stopped: str | None = None,
    ) -> bool:
        schedule = self._schedules.get(schedule_id)
        if schedule is None:
            return False
        now = self.now()
        self._schedules[schedule_id] = changed(schedule, now, paused, next_at, stopped)
        self._append(now, Fact.SCHEDULE_STOPPED if stopped else Fact.SCHEDULE_PUT, schedule_id, stopped or "")
        self.hints.notify(SCHEDULES)
        return True


class Members(Schedules):
    def __init__(self, policy: Policy | None = None, clock: Clock | None = None) -> None:
        super().__init__(policy, clock)
        self._workers: dict[str, Worker] = {}
        self._last_claims: dict[str, dict[int, tuple[str, list[str]]]] = {}  # worker -> turn -> nonce and tasks
        self._last_chances: dict[str, Lease] = {}  # process -> the last it took that one more loss would set aside
        self._leader: Leader | None = None

    def _set_back(self, by: int) -> None:
        super()._set_back(by)
        for worker in self._workers.values():
            if worker.lost_at is None:
                self._workers[worker.id] = replace(worker, expires_at=worker.expires_at - by)

    @atomic
    def beat(self, worker: Worker, ttl: int | None = None) -> Heard:
        now = self.now()
        self._pulse(now)
        leader = leads(self._leader, now)
        old = self._workers.get(worker.id)
        if rival := rival_of(worker, old, now):
            return Heard(leader, rival)
        self._workers[worker.id], new = joined(worker, old, now, ttl or self.policy.lease_ttl)
        if new:
            self._append(now, Fact.WORKER_JOINED, worker.id)
        return Heard(leader)

    @atomic
    def leave(self, worker_id: str, node: str = "") -> None:
        if node and self._node_of(worker_id) != node:
            return
        if self._forget_worker(worker_id):
            self._append(self.now(), Fact.WORKER_LEFT, worker_id)

    def _node_of(self, worker_id: str) -> str | None:
        worker = self._workers.get(worker_id)
        return None if worker is None else worker.node

    def _forget_worker(self, worker_id: str) -> bool:
        worker = self._workers.pop(worker_id, None)
        self._last_claims.pop(worker_id, None)
        self._last_chances.pop(worker_id, None)
        if worker is not None:
            self._last_chances.pop(worker.node, None)
        return worker is not None

    def _lose_workers(self, now: int, gone: tuple[str, ...]) -> list[str]:
        lost = [
            worker.id
            for _, worker in sorted(self._workers.items())
            if worker.lost_at is None and (worker.id in gone or (worker.expires_at <= now and now >= self._hold_until))
        ]
        for worker_id in lost:
            self._workers[worker_id] = replace(self._workers[worker_id], lost_at=now, running=0)
            self._append(now, Fact.WORKER_LOST, worker_id)
            if worker_id in gone:
                self._depose(now, self._workers[worker_id].node)
        return lost

    def _alive(self, worker_id: str | None, now: int) -> bool:
        worker = self._workers.get(worker_id or "")
        return worker is not None and worker.lost_at is None and worker.expires_at > now

    def _depose(self, now: int, node: str) -> None:
        """A node whose process is known to be gone leads no more: nobody need wait for its lease."""
        if self._leader is not None and self._leader.id == node and self._leader.until > now:
            self._leader = replace(self._leader, until=0)
            self._append(now, Fact.LEADER_RESIGNED, node, "its process is gone")

    @atomic
    def workers(self) -> list[Worker]:
        return sorted(self._workers.values(), key=lambda worker: worker.id)

    @atomic
    def campaign(self, node: str, ttl: int) -> Leader:
        now = self.now()
        self._leader, new = elect(self._leader, node, ttl, now)
        if new:
            self._append(now, Fact.LEADER_ELECTED, node, f"term {self._leader.term}")
        return self._leader

    @atomic
    def leader(self) -> Leader | None:
        return leads(self._leader, self.now())

    @atomic
    def resign(self, node: str, term: int) -> bool:
        if self._leader is None or (self._leader.id, self._leader.term) != (node, term):
            return False
        if self._leader.until:
            self._leader = replace(self._leader, until=0)
            self._append(self.now(), Fact.LEADER_RESIGNED, node, f"term {term}")
        return True
