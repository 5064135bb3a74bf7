"""What `against.py` plays: the same work on several trees of Tickwork, a short piece on each in turn.

A cast is a client, a worker and a server for each tree, all new; every pair gets new ones. In a cast the trees take
turns of well under a second, in an order and then in its reverse, so a machine that gets slower or busier meanwhile
does so for all of them alike. What is submitted in a turn is run in the same turn.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager

from msgspec import Struct
from msgspec.structs import replace

from benchmarks.crew import Crew
from benchmarks.environments import ROOT
from benchmarks.machine import tree_cpu
from benchmarks.scenarios import percentile
from benchmarks.subjects import SUBJECTS
from benchmarks.trees import Tree

TURNS = 4  # in a cast, each there and back
QUIET = 0.05  # seconds in which a worker that has written all results uses next to nothing
NOTHING = 0.002  # seconds of CPU
WARM = 200  # tasks that a worker runs before the first that counts


class Broken(Exception):
    """A tree that could not be measured, and why."""

    def __init__(self, tree: Tree, reason: str) -> None:
        super().__init__(reason)
        self.tree = tree


class Spent(Struct, frozen=True):
    """Microseconds of a task: of CPU, by the clock, and from a submit to the start of the handler at the median."""

    worker: float = 0.0
    client: float = 0.0
    server: float = 0.0
    clock: float = 0.0
    start: float = 0.0


class Meter:
    """What the processes of a crew have used since it was made. One process that is all is the worker."""

    def __init__(self, crew: Crew) -> None:
        self._crew = crew
        self._before = self._read()

    def _read(self) -> tuple[float, float, float, float]:
        usage = self._crew.usage()
        client = 0.0 if self._crew.together else tree_cpu(self._crew.client.pid)
        return usage.workers, client, usage.redis, usage.at

    def spent(self, tasks: int, clock: float = 0.0, start: float = 0.0) -> Spent:
        worker, client, server, wall = (
            (after - before) * 1e6 / tasks for after, before in zip(self._read(), self._before, strict=True)
        )
        return Spent(worker, client, server, clock * 1e6 / tasks if clock else wall, start * 1e6)


Turn = Callable[[Crew, range], dict[str, Spent]]


def _submit_and_drain(submit: str, how: str, drain: str) -> Turn:
    """The worker is stopped (SIGSTOP) while the queue is filled: what either costs is seen alone."""

    def turn(crew: Crew, numbers: range) -> dict[str, Spent]:
        crew.signal(signal.SIGSTOP)
        meter = Meter(crew)
        submitted = meter.spent(len(numbers), crew.client.ask(how, numbers.start, numbers.stop)["wall"])
        meter, began = Meter(crew), time.time()
        crew.signal(signal.SIGCONT)
        _wait_ran(crew, numbers)
        return {submit: submitted, drain: meter.spent(len(numbers), max(crew.tally.starts[_part(numbers)]) - began)}

    return turn


def _wait_ran(crew: Crew, numbers: range) -> None:
    """Until all have run and their results are written."""
    counts = crew.tally.counts[_part(numbers)]
    crew.wait(lambda: 0 not in bytes(counts), f"{len(numbers):,} tasks to run")
    before = crew.usage().workers
    while True:
        time.sleep(QUIET)
        now = crew.usage().workers
        if now - before < NOTHING:
            return
        before = now


def _part(numbers: range) -> slice:
    return slice(numbers.start, numbers.stop)


def _idle_start(name: str) -> Turn:
    """One task after the other, with pauses in which the worker falls idle."""

    def turn(crew: Crew, numbers: range) -> dict[str, Spent]:
        meter = Meter(crew)
        starts = crew.client.ask("latency", numbers.start, numbers.stop)["starts"]
        return {name: meter.spent(len(numbers), start=percentile(starts, 50))}

    return turn


def _round_trips(name: str) -> Turn:
    def turn(crew: Crew, numbers: range) -> dict[str, Spent]:
        meter = Meter(crew)
        return {name: meter.spent(len(numbers), crew.client.ask("roundtrip", numbers.start, numbers.stop)["wall"])}

    return turn


class Scene(Struct, frozen=True):
    """What one cast can play: turns with their numbers of tasks, which together give the figures."""

    subject: str
    concurrency: int
    figures: tuple[str, ...]
    turns: tuple[tuple[int, Turn], ...]

    @property
    def tasks(self) -> int:
        return sum(tasks for tasks, _ in self.turns)

    @property
    def on_redis(self) -> bool:
        return SUBJECTS[self.subject].store == "redis"


# As many tasks as take a tenth of a second of the worker.
SCENES = (
    Scene(
        "tickwork", 1, ("submit.one", "drain.1"),
        ((800, _submit_and_drain("submit.one", "one", "drain.1")),),
    ),
    Scene(
        "tickwork", 10, ("submit.100", "drain.10", "idle.start"),
        ((3_000, _submit_and_drain("submit.100", "many", "drain.10")), (20, _idle_start("idle.start"))),
    ),
    Scene(
        "tickwork", 100, ("submit.bulk", "drain.100"),
        ((6_000, _submit_and_drain("submit.bulk", "bulk", "drain.100")),),
    ),
    Scene("tickwork memory", 10, ("memory.roundtrip",), ((800, _round_trips("memory.roundtrip")),)),
    Scene(
        "tickwork sqlite apart", 10, ("sqlite.submit", "sqlite.drain"),
        ((500, _submit_and_drain("sqlite.submit", "one", "sqlite.drain")),),
    ),
)  # fmt: skip


def order(sides: int, turn: int) -> list[int]:
    """Each side twice, the second time in reverse; who is first, and who is last, changes with the turn."""
    there = [(turn + place) % sides for place in range(sides)]
    return there + there[::-1]


def environ(tree: Tree, seed: int) -> tuple[str, ...]:
    """Of all processes that run the tree. The order of sets, which chance would make another in each, is that of the
    seed; and the folder in which a process is started is not searched for modules."""
    return (f"PYTHONPATH={ROOT}{os.pathsep}{tree.source}", f"PYTHONHASHSEED={seed}", "PYTHONSAFEPATH=1")


Played = dict[str, list[list[Spent]]]  # by figure, a list for each side


def play(scene: Scene, trees: Sequence[Tree], seed: int, turns: int = TURNS) -> Played:
    found: Played = {figure: [[] for _ in trees] for figure in scene.figures}
    with _cast(scene, trees, scene.tasks * 2 * turns, seed) as crews:
        next_number = [0] * len(trees)
        for turn in range(turns):
            for side in order(len(trees), turn):
                for tasks, act in scene.turns:
                    numbers = range(next_number[side], next_number[side] + tasks)
                    next_number[side] += tasks
                    with _blamed(trees[side]):
                        spent = act(crews[side], numbers)
                    for figure in spent:
                        found[figure][side].append(spent[figure])
    return found


@contextmanager
def _cast(scene: Scene, trees: Sequence[Tree], tasks: int, seed: int) -> Iterator[list[Crew]]:
    with ExitStack() as stack:
        crews = []
        for tree in trees:
            subject = replace(SUBJECTS[scene.subject], environ=environ(tree, seed), warm=WARM)
            with _blamed(tree):
                crews.append(stack.enter_context(Crew(subject, tasks, scene.concurrency)))
        for tree, crew in zip(trees, crews, strict=True):
            with _blamed(tree):
                stack.enter_context(crew.workers(warm=False))
                crew.client.ask("fill", tasks, tasks + WARM)
        for tree, crew in zip(trees, crews, strict=True):
            with _blamed(tree):
                _wait_ran(crew, range(tasks, tasks + WARM))
        yield crews


@contextmanager
def _blamed(tree: Tree) -> Iterator[None]:
    try:
        yield
    except (
        RuntimeError,
        OSError,
        KeyError,
    ) as error:  # a client or a worker that ended, was silent, or knows no such call
        said = [line.strip() for line in str(error).splitlines() if line.strip()]
        raise Broken(tree, said[-1] if said else type(error).__name__) from error
