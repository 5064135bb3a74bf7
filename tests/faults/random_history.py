"""Random histories: tasks of all sorts and all that can be done to them, while workers, servers and links fail.

    python -m tests.faults.random_history --kind redis --seed 7 --seconds 3600

goes on for that long, in rounds of a minute or so. Each round is a store and a plan of its own, checked at its end by
`checker`; the seed of the first is the one given, and that of each later one is greater by one. So a round that was red
comes again with its own seed and `--seconds 60`. What was violated is told with the history of the task concerned.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import logging
import os
import random
import sys
import time
from typing import Any

from tests.faults import mutate
from tests.faults.checker import check, report
from tests.faults.checker_counts import metrics_agree_with_the_log
from tests.faults.history import History
from tests.faults.observed import Observed
from tests.faults.random_crew import Slots
from tests.faults.random_plan import QUEUES, SCHEDULES, Step, make_plan
from tests.faults.random_steps import Steps
from tests.faults.random_stores import KINDS, Place
from tests.faults.redis_faults import EVENTS_PAGE, KEEP, Scale, evidence, until
from tests.faults.server_faults import lenient
from tests.faults.stalls import watch_for_stalls
from tickwork import Scheduler
from tickwork.clock import to_datetime
from tickwork.errors import StoreUnavailable
from tickwork.model.facts import Event
from tickwork.model.reports import Report
from tickwork.model.tasks import Record
from tickwork.store.contract import Query, Store

ROUND = 60.0  # seconds of faults, so that the log still has all facts at the end
SHORT = 6.0  # in the suite
STEP_MAX = 90.0  # seconds from the last step until all steps have had an answer
QUIET = 20.0  # seconds after the last fault in which every task must end
COUNTED_WITHIN = 15.0  # seconds in which the leader keeps statistics of the last fact
LEASE = 2.0
OPTIONS: dict[str, Any] = {
    "namespace": "faults",
    "queues": list(QUEUES),
    "concurrency": 5,
    "lease_ttl": LEASE,
    "renew_interval": 0.5,
    "leader_lease_ttl": 1.5,
    "leader_renew_interval": 0.4,
    "scan_interval": 0.25,
    "shutdown_timeout": 1.0,
    "timeout": 60.0,
    "max_losses": 1000,
    "retry_delay": 0.3,
    "backoff_rate": 1.0,
    "metrics": True,
    "metrics_port": 0,
}


class Follower:
    """Reads the log as it comes. One that pauses leaves now and then, and goes on after the last fact it was told."""

    def __init__(self, app: Scheduler, pause: float | None = None) -> None:
        self._app = app
        self._pause = pause
        self.begin = 0
        self.seen: list[int] = []
        self.missed: list[str] = []

    async def follow(self) -> None:
        self.begin = await self._app.events.last()
        while True:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(self._pause):
                    await self._read()
            await asyncio.sleep(0.2)

    async def _read(self) -> None:
        after = self.seen[-1] if self.seen else self.begin
        async with self._app.events.subscribe(after=after) as events:
            async for event in events:
                if event.kind == "log.missed":
                    self.missed.append(event.detail)
                else:
                    self.seen.append(event.seq)


class Round:
    """One history on one store."""

    def __init__(self, place: Place, plan: list[Step]) -> None:
        self.place = place
        self.plan = plan
        self.history = History(place.folder / "history.jsonl")
        options = {**OPTIONS, **place.options}
        self.slots = Slots(place, self.history, options)
        self.app = Scheduler(place.url, **{**options, "store_timeout": 4})
        self.clients = [Scheduler(place.url, **options) for _ in range(2)]
        self.followers = [Follower(self.clients[0]), Follower(self.clients[1], pause=1.5)]
        self.steps = Steps(place, self.slots, self.app, self.history)

    async def run(self) -> Observed:
        stop_watching = watch_for_stalls(self.history, "slow", None, self.place.look)
        background = [asyncio.create_task(follower.follow()) for follower in self.followers]
        try:
            await self.slots.start()
            background.append(asyncio.create_task(self.slots.watch()))
            await self.steps.put_schedules()
            await self._disturb()
            await self._quieten()
            observed = await self._observe()
            for ended in (task for task in background if task.done()):
                ended.result()  # a follower or the watch over the workers has failed: say why
            return observed
        finally:
            await asyncio.to_thread(stop_watching)
            for task in background:
                task.cancel()
            await asyncio.gather(*background, return_exceptions=True)
            self.slots.close()
            await asyncio.gather(*(each.shutdown(0.2) for each in (self.app, *self.clients)), return_exceptions=True)
            self.history.close()

    async def _disturb(self) -> None:
        """Begin each step at its time, also while those before it still wait for the store."""
        began = time.monotonic()
        under_way: list[asyncio.Task[None]] = []
        for step in self.plan:
            await asyncio.sleep(max(began + step.at - time.monotonic(), 0))
            under_way.append(asyncio.create_task(self.steps.take(step)))
        async with asyncio.timeout(STEP_MAX):
            await asyncio.gather(*under_way)
        await self.place.heal()

    async def _quieten(self) -> None:
        """Everything is let go and nothing new comes; what has been asked for must end by itself."""
        await self.steps.calm_down()
        await self.slots.all_up()
        deadline = time.monotonic() + lenient(QUIET)
        store = await self.store()
        while time.monotonic() < deadline:
            with contextlib.suppress(StoreUnavailable):
                statuses = (await store.queries.stats()).statuses
                if not any(count for status, count in statuses.items() if not status.ended):
                    return
            await asyncio.sleep(0.1)

    async def store(self) -> Store:
        return await self.app._open()

    async def _observe(self) -> Observed:
        store = await self.store()
        records = await records_of(store)
        await asyncio.sleep(0.3)  # facts of several partitions are shown once no earlier one can come
        events = await events_of(store)
        last = events[-1].seq
        with contextlib.suppress(AssertionError):  # the checker says what a follower has missed
            await until(lambda: all(follower.seen[-1:] >= [last] for follower in self.followers), 10)
        observed = Observed(
            lines=self.history.lines(),
            events=events,
            records=records,
            followed={f"follower {number}": (follower.begin, list(follower.seen), follower.missed)
                      for number, follower in enumerate(self.followers)},
            audit=await store.queries.audit(),
            schedules={name: schedule for name in SCHEDULES if (schedule := await store.schedules.get(name))},
            reports=await self._reports(events[-1]),
            lease=LEASE,
            partitions=self.place.partitions,
            forgets=self.place.forgets,
        )  # fmt: skip

        async def is_counted() -> bool:
            observed.pages = await self.slots.pages()
            return not [*metrics_agree_with_the_log(observed)]

        # A node counts an end when it has heard the store's answer, which it may have to ask for again.
        with contextlib.suppress(AssertionError):  # the checker says what is not counted
            await until(is_counted, 10, lambda: "the nodes to count what has ended")
        return observed

    async def _reports(self, last: Event) -> dict[str, Report]:
        """Reports of the whole history, once the leader has counted it to its end."""

        async def is_counted() -> bool:
            through = (await self.app.report()).through
            return through is not None and through > to_datetime(last.at)

        await until(
            is_counted, COUNTED_WITHIN, lambda: f"the leader to count the log; workers say:\n{self.slots.said()}"
        )
        return {"type": await self.app.report(by="type"), "queue": await self.app.report(by="queue")}


async def records_of(store: Store) -> dict[str, Record]:
    found: dict[str, Record] = {}
    cursor: str | None = None
    while True:
        page, cursor = await store.queries.page(Query(limit=1000, cursor=cursor))
        found.update((record.id, record) for record in page)
        if cursor is None:
            return found


async def events_of(store: Store) -> list[Event]:
    found: list[Event] = []
    while True:
        page, dropped = await store.log.read(found[-1].seq if found else 0, EVENTS_PAGE)
        assert dropped == 0, "the log is too short to judge by: choose shorter rounds"
        found += page
        if len(page) < EVENTS_PAGE:
            return found


async def random_history(kind: str, seed: int, seconds: float) -> str:
    """One round; answers its figures, and raises when something was violated."""
    with evidence() as folder:
        place = KINDS[kind](folder)
        plan = make_plan(seed, kind, seconds, place.faults)
        (folder / "plan.txt").write_text("".join(f"{step.at:8.3f} {step.do} {step.args}\n" for step in plan))
        try:
            await asyncio.to_thread(place.start)
            observed = await Round(place, plan).run()
        finally:
            await asyncio.to_thread(place.stop)
        violations = check(observed)
        assert not violations, f"{kind}, seed {seed}, {seconds:g} s:\n{report(observed, violations)}"
        return str(observed)


async def case(kind: str, seed: int, scale: Scale) -> str:
    """As one of the fault cases."""
    return await random_history(kind, seed, ROUND if scale == "long" else SHORT)


def repeat(kind: str, seed: int, seconds: float, length: float) -> bool:
    """Rounds until the time is over; whether all were good."""
    good, ends_at = True, time.monotonic() + seconds
    while time.monotonic() < ends_at:
        started = time.monotonic()
        try:
            told, fine = asyncio.run(random_history(kind, seed, min(seconds, length))), True
        except Exception as error:  # the rounds to come still have something to say
            notes = "".join(f"\n  {note}" for note in getattr(error, "__notes__", ()))
            told, fine = f"{type(error).__name__}: {error}{notes}", False
        good &= fine
        took = time.monotonic() - started
        print(f"{'ok ' if fine else 'RED'} {kind} seed {seed} ({took:.0f} s): {told}", flush=True)
        seed += 1
    return good


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kind", choices=KINDS, action="append", help="of store; may be given again; all by default")
    parser.add_argument("--seed", type=int, default=random.randrange(10**6))
    parser.add_argument("--seconds", type=float, default=3600.0, help="for each kind (default: an hour)")
    parser.add_argument("--round", type=float, default=ROUND, help=f"seconds of faults in one round ({ROUND:g})")
    options = parser.parse_args()
    mutate.apply()
    os.environ[KEEP] = "1"
    logging.getLogger("tickwork").setLevel(logging.ERROR)  # that the store is away now and then is no news
    results = [repeat(kind, options.seed, options.seconds, options.round) for kind in options.kind or KINDS]
    return 0 if all(results) else 1


if __name__ == "__main__":
    sys.exit(main())
