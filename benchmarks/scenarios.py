"""The workloads, the same for every peer: no-op tasks with a payload of 100 bytes, results kept, one worker."""

from __future__ import annotations

import math
import signal
import time
from collections.abc import Callable, Collection, Mapping

from msgspec import Struct
from msgspec.structs import replace

from benchmarks.crew import Crew, Usage
from benchmarks.peers.common import NAP, SMALL

SETTLE = 0.5  # seconds after the last start for what is still being finished
HEAD = 100  # submits that come first and are not counted
FIRST = 5  # tasks likewise, where latency is taken
SPREAD = 1.0  # seconds over which delayed tasks are due
LARGE = 100_000  # bytes of a large payload


class Sample(Struct, frozen=True):
    """One scenario of one round, in seconds. `cpu` is that of the workers, or of the client where it submits; of the
    one process where both are one."""

    tasks: int
    wall: float
    cpu: float
    redis_cpu: float = 0.0
    lost: int = 0
    duplicates: int = 0
    p50: float | None = None
    p99: float | None = None
    queued_bytes: float | None = None  # a task
    finished_bytes: float | None = None
    rss: int | None = None  # of the idle worker
    early: int = 0  # delayed tasks that started more than a millisecond before their time
    payload: int = 0  # bytes of each task, where they are what is counted
    is_idle: bool = False  # nothing ran: `cpu` and `redis_cpu` are those of `wall` seconds

    @property
    def is_of_tasks(self) -> bool:
        """Where latency is taken, tasks a second are only those that were asked for."""
        return self.p50 is None and not self.is_idle

    @property
    def rate(self) -> float:
        return self.tasks / self.wall if self.wall else 0.0

    @property
    def cpu_us(self) -> float:
        return self.cpu / self.tasks * 1e6

    @property
    def redis_us(self) -> float:
        return self.redis_cpu / self.tasks * 1e6


Play = Callable[[Crew], Mapping[str, Sample]]


class Scenario(Struct, frozen=True):
    title: str
    tasks: int  # in a round of the default run, for a subject of pace 1
    needs: str  # what the peer must offer
    concurrency: int
    play: Play
    side: str = "worker"  # whose CPU is counted
    fewest: int = 25  # however slow the subject and quick the run
    only_together: bool = False  # for subjects of one process
    filler: int = SMALL
    paced: bool = True  # a slow subject gets fewer tasks

    def offered_by(self, offers: Collection[str]) -> bool:
        """One that keeps no results can still be asked when a handler started."""
        return self.needs in offers or (self.needs == "latency" and "start" in offers)


def _submit(how: str) -> Play:
    def play(crew: Crew) -> Mapping[str, Sample]:
        crew.client.ask(how, 0, max(HEAD, crew.subject.warm))  # opens connections, loads scripts; nobody runs these
        before = crew.usage()
        answer = crew.client.ask(how, 0, crew.tasks)
        return {"": Sample(crew.tasks, answer["wall"], answer["cpu"], crew.usage().redis - before.redis)}

    return play


def _drain(how: str) -> Play:
    def play(crew: Crew) -> Mapping[str, Sample]:
        if crew.together:
            crew.client.ask(how, 0, crew.tasks)
            before = crew.usage()
            with crew.workers(warm=False):
                return {"": _ran(crew, before, how)}
        with crew.workers():
            return {"": drain(crew, how)}

    return play


def drain(crew: Crew, how: str = "fill") -> Sample:
    """The worker is warm, is stopped (SIGSTOP) while the queue is filled, and goes on: its start is not counted."""
    rss, empty = crew.rss(), crew.redis_bytes()
    crew.signal(signal.SIGSTOP)
    crew.client.ask(how, 0, crew.tasks)
    full, before = crew.redis_bytes(), crew.usage()
    crew.signal(signal.SIGCONT)
    sample = replace(_ran(crew, before, how), rss=rss)
    if full == empty:
        return sample
    left = crew.redis_bytes()
    return replace(sample, queued_bytes=(full - empty) / crew.tasks, finished_bytes=(left - empty) / crew.tasks)


def _ran(crew: Crew, before: Usage, how: str = "") -> Sample:
    """What was used until every task has run."""
    crew.wait_all_ran()
    time.sleep(SETTLE)
    end = crew.tally.last_start + (NAP if how == "naps" else 0.0)
    return _sample(crew, before, crew.tasks, end - before.at)


def _sample(crew: Crew, before: Usage, tasks: int, wall: float = 0.0) -> Sample:
    after, tally = crew.usage(), crew.tally
    cpu, redis = after.workers - before.workers, after.redis - before.redis
    return Sample(tasks, wall or after.at - before.at, cpu, redis, tally.lost, tally.duplicates)


def _large(crew: Crew) -> Mapping[str, Sample]:
    return {"": replace(_drain("fill")(crew)[""], payload=LARGE, queued_bytes=None, finished_bytes=None, rss=None)}


def _round_trips(crew: Crew) -> Mapping[str, Sample]:
    """One after the other without a pause: a process that never falls idle."""
    with crew.workers():
        crew.client.ask("roundtrip", 0, FIRST)
        before = crew.usage()
        answer = crew.client.ask("roundtrip", FIRST, crew.tasks)
        return {"": _sample(crew, before, crew.tasks - FIRST, answer["wall"])}


def _idle(crew: Crew) -> Mapping[str, Sample]:
    """A worker that has run some tasks and waits; a task here is a hundredth of a second."""
    with crew.workers():
        time.sleep(SETTLE)
        before = crew.usage()
        time.sleep(crew.tasks / 100)
        return {"": replace(_sample(crew, before, 1), is_idle=True, lost=0)}


def _through_bulk(crew: Crew) -> Mapping[str, Sample]:
    before = crew.usage()
    crew.client.ask("fill", 0, crew.tasks)
    with crew.workers(warm=False):
        return {"": _ran(crew, before)}


def _through_live(crew: Crew) -> Mapping[str, Sample]:
    with crew.workers():
        before = crew.usage()
        crew.client.ask("many" if "many" in crew.client.offers else "one", 0, crew.tasks)
        return {"": _ran(crew, before)}


def _latency(crew: Crew) -> Mapping[str, Sample]:
    with crew.workers():
        crew.client.ask("latency", 0, FIRST)  # the first of all opens what waits for results
        before = crew.usage()
        answer = crew.client.ask("latency", FIRST, crew.tasks)
        sample = _sample(crew, before, crew.tasks - FIRST)
    timed = {".start": _timed(sample, answer["starts"])}
    if "latency" in crew.client.offers:
        timed[".result"] = _timed(sample, answer["results"])
    return timed


def _lateness(crew: Crew) -> Mapping[str, Sample]:
    with crew.workers():
        before = crew.usage()
        due = crew.client.ask("delayed", 0, crew.tasks, spread=SPREAD)["due"]
        sample = _ran(crew, before)
    late = [crew.tally.starts[number] - at for number, at in enumerate(due) if crew.tally.counts[number]]
    return {"": replace(_timed(sample, late), early=sum(seconds < -0.001 for seconds in late))}


def _timed(sample: Sample, seconds: list[float]) -> Sample:
    return replace(sample, p50=percentile(seconds, 50), p99=percentile(seconds, 99))


def percentile(values: list[float], percent: float) -> float:
    """The nearest rank: a value that was measured, never one in between."""
    ordered = sorted(values)
    return ordered[max(math.ceil(len(ordered) * percent / 100) - 1, 0)]


SCENARIOS: dict[str, Scenario] = {
    "submit.one": Scenario("submit, one by one, each awaited", 3_000, "one", 10, _submit("one"), "client", 300),
    "submit.sync": Scenario(
        "submit, one by one, by a blocking call from a thread", 3_000, "sync", 10, _submit("sync"), "client", 300
    ),
    "submit.100": Scenario("submit, 100 callers at once", 5_000, "many", 10, _submit("many"), "client", 300),
    "submit.bulk": Scenario("submit, in bulk", 20_000, "bulk", 10, _submit("bulk"), "client", 1_000),
    "drain.10": Scenario("drain of a full queue, 10 at once", 10_000, "drain.10", 10, _drain("fill"), fewest=100),
    "drain.100": Scenario("drain of a full queue, 100 at once", 10_000, "drain.100", 100, _drain("fill"), fewest=500),
    # Twice as many as run at once, or there would be nothing to wait for.
    "io.2000": Scenario("tasks that wait 0.1 s, 2,000 at once", 10_000, "io.2000", 2_000, _drain("naps"), fewest=4_000),
    "payload": Scenario(
        "drain of payloads of 100 KB, 10 at once", 1_000, "drain.10", 10, _large, fewest=50, filler=LARGE
    ),
    "through.bulk": Scenario(
        "end to end: submitted by the cheapest way, then run", 10_000, "drain.10", 10, _through_bulk, only_together=True
    ),
    "through.live": Scenario(
        "end to end: single submits while the worker runs", 10_000, "drain.10", 10, _through_live, only_together=True
    ),
    "roundtrip": Scenario(
        "submit and wait for the end, one after the other", 3_000, "roundtrip", 10, _round_trips, only_together=True
    ),
    "latency": Scenario("idle worker, one task after the other", 200, "latency", 10, _latency),
    "lateness": Scenario("lateness of delayed tasks, spread over a second", 200, "delayed", 10, _lateness),
    "idle": Scenario("an idle worker, CPU by the second", 300, "drain.10", 10, _idle, fewest=100, paced=False),
}
TITLES = {name: scenario.title for name, scenario in SCENARIOS.items() if name != "latency"} | {
    "latency.start": "idle worker: from submit to the start of the handler",
    "latency.result": "idle worker: from submit to the result, in the way that the library offers",
}
