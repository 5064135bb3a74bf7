"""The workloads, the same for every peer: no-op tasks with a payload of 100 bytes, results kept, one worker process."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Collection, Mapping

from msgspec import Struct
from msgspec.structs import replace

from benchmarks.redis.crew import Crew, Usage
from benchmarks.redis.peers.common import NAP
from benchmarks.subject import percentile

SETTLE = 0.5  # seconds after the last start for what is still being finished
HEAD = 100  # submits that come first and are not counted
FIRST = 5  # tasks likewise, where latency is taken
SPREAD = 1.0  # seconds over which delayed tasks are due


class Sample(Struct, frozen=True):
    """One scenario of one round, in seconds. `cpu` is that of the workers, or of the client where it submits."""

    tasks: int
    wall: float
    cpu: float
    redis_cpu: float
    lost: int = 0
    duplicates: int = 0
    p50: float | None = None
    p99: float | None = None
    queued_bytes: float | None = None  # a task
    finished_bytes: float | None = None
    rss: int | None = None  # of the idle worker
    early: int = 0  # delayed tasks that started more than a millisecond before their time

    @property
    def rate(self) -> float:
        return self.tasks / self.wall if self.wall else 0.0

    @property
    def cpu_us(self) -> float:
        return self.cpu / self.tasks * 1e6

    @property
    def redis_us(self) -> float:
        return self.redis_cpu / self.tasks * 1e6


class Scenario(Struct, frozen=True):
    title: str
    tasks: int  # in a round of the default run, for a subject of pace 1
    needs: str  # what the peer must offer
    concurrency: int
    play: Callable[[Crew], Mapping[str, Sample]]
    side: str = "worker"  # whose CPU is counted
    fewest: int = 25  # however slow the subject and quick the run

    def offered_by(self, offers: Collection[str]) -> bool:
        """One that keeps no results can still be asked when a handler started."""
        return self.needs in offers or (self.needs == "latency" and "start" in offers)


def _submit(how: str) -> Callable[[Crew], Mapping[str, Sample]]:
    def play(crew: Crew) -> Mapping[str, Sample]:
        crew.client.ask(how, 0, max(HEAD, crew.warm))  # opens connections and loads scripts; nobody runs these
        before = crew.usage()
        answer = crew.client.ask(how, 0, crew.tasks)
        after = crew.usage()
        return {"": Sample(crew.tasks, answer["wall"], answer["cpu"], after.redis - before.redis)}

    return play


def _drain(how: str) -> Callable[[Crew], Mapping[str, Sample]]:
    """The worker is warm, is stopped (SIGSTOP) while the queue is filled, and goes on: its start is not counted."""

    def play(crew: Crew) -> Mapping[str, Sample]:
        with crew.workers():
            return {"": drain(crew, how)}

    return play


def drain(crew: Crew, how: str = "fill") -> Sample:
    rss, empty = crew.rss(), crew.redis_bytes()
    crew.signal(signal.SIGSTOP)
    crew.client.ask(how, 0, crew.tasks)
    full, before = crew.redis_bytes(), crew.usage()
    crew.signal(signal.SIGCONT)
    crew.wait_all_ran()
    time.sleep(SETTLE)
    after, left = crew.usage(), crew.redis_bytes()
    return Sample(
        crew.tasks,
        crew.tally.last_start - before.at + (NAP if how == "naps" else 0.0),
        after.workers - before.workers,
        after.redis - before.redis,
        crew.tally.lost,
        crew.tally.duplicates,
        queued_bytes=(full - empty) / crew.tasks if full > empty else None,
        finished_bytes=(left - empty) / crew.tasks if full > empty else None,
        rss=rss,
    )


def _latency(crew: Crew) -> Mapping[str, Sample]:
    with crew.workers():
        crew.client.ask("latency", 0, FIRST)  # the first of all opens what waits for results
        before = crew.usage()
        answer = crew.client.ask("latency", FIRST, crew.tasks)
        after = crew.usage()
    starts, results = answer["starts"], answer["results"]
    timed = {".start": _timed(crew, starts, before, after, len(starts))}
    if "latency" in crew.client.offers:
        timed[".result"] = _timed(crew, results, before, after, len(results))
    return timed


def _lateness(crew: Crew) -> Mapping[str, Sample]:
    with crew.workers():
        before = crew.usage()
        due = crew.client.ask("delayed", 0, crew.tasks, spread=SPREAD)["due"]
        crew.wait_all_ran()
        time.sleep(SETTLE)
        after = crew.usage()
    late = [crew.tally.starts[number] - at for number, at in enumerate(due) if crew.tally.counts[number]]
    early = sum(seconds < -0.001 for seconds in late)
    return {"": replace(_timed(crew, late, before, after, crew.tasks), early=early)}


def _timed(crew: Crew, seconds: list[float], before: Usage, after: Usage, tasks: int) -> Sample:
    return Sample(
        tasks,
        after.at - before.at,
        after.workers - before.workers,
        after.redis - before.redis,
        crew.tally.lost,
        crew.tally.duplicates,
        percentile(seconds, 50),
        percentile(seconds, 99),
    )


SCENARIOS: dict[str, Scenario] = {
    "submit.one": Scenario("submit, one by one, each awaited", 3_000, "one", 10, _submit("one"), "client", 300),
    "submit.100": Scenario("submit, 100 callers at once", 5_000, "many", 10, _submit("many"), "client", 300),
    "submit.bulk": Scenario("submit, in bulk", 20_000, "bulk", 10, _submit("bulk"), "client", 1_000),
    "drain.10": Scenario("drain of a full queue, 10 at once", 10_000, "drain.10", 10, _drain("fill"), fewest=100),
    "drain.100": Scenario("drain of a full queue, 100 at once", 10_000, "drain.100", 100, _drain("fill"), fewest=500),
    # Twice as many as run at once, or there would be nothing to wait for.
    "io.2000": Scenario("tasks that wait 0.1 s, 2,000 at once", 10_000, "io.2000", 2_000, _drain("naps"), fewest=4_000),
    "latency": Scenario("idle worker, one task after the other", 200, "latency", 10, _latency),
    "lateness": Scenario("lateness of delayed tasks, spread over a second", 200, "delayed", 10, _lateness),
}
TITLES = {name: scenario.title for name, scenario in SCENARIOS.items() if name != "latency"} | {
    "latency.start": "idle worker: from submit to the start of the handler",
    "latency.result": "idle worker: from submit to the result, as the library waits for it by default",
}
