"""The table of questions: what grows, on which stores and to which sizes, and which costs must not grow with it."""

from __future__ import annotations

from benchmarks.growth import claims, drains, flows, waiting
from benchmarks.growth.claims import CLAIM, CLAIM_HERE
from benchmarks.growth.points import Judged, Question

STORES = ("redis", "sqlite")
A_TASK = (Judged("worker us"), Judged("Redis us"))
A_TASK_AND_CLAIM = (*A_TASK, Judged(CLAIM, enough=1000, aim=1000), Judged(CLAIM_HERE, enough=1000, aim=1000))


def _on_both(*sizes: int) -> dict[str, tuple[int, ...]]:
    return dict.fromkeys(STORES, sizes)


def _on_redis(*sizes: int) -> dict[str, tuple[int, ...]]:
    return {"redis": sizes}


_ALL = (
    Question(
        "queued",
        "tasks queued when a worker takes from them",
        drains.by_queued,
        _on_redis(1_000, 100_000, 1_000_000),
        (*A_TASK, Judged("submit us"), Judged("its Redis us")),
    ),
    Question("workers", "worker processes", drains.by_workers, _on_redis(1, 2, 4), A_TASK),
    Question(
        "partitions",
        f"partitions on a cluster of {drains.NODES} nodes",
        drains.by_partitions,
        _on_redis(1, 4, 16),
        A_TASK,
    ),
    Question("queues", "queues that a worker takes from", claims.by_queues, _on_both(1, 100, 1_000), A_TASK_AND_CLAIM),
    Question("types", "types that a worker runs", claims.by_types, _on_both(1, 100, 1_000), A_TASK_AND_CLAIM),
    Question(
        "aside",
        "queues times types, one task being aside",
        claims.by_lanes_with_one_aside,
        _on_both(100, 10_000, 300_000),
        A_TASK_AND_CLAIM,
    ),
    Question("parked", "parked tasks", claims.by_parked, _on_both(10, 1_000, 10_000), A_TASK_AND_CLAIM),
    Question(
        "delayed",
        "delayed tasks",
        claims.by_delayed,
        {"redis": (10_000, 100_000, 1_000_000), "sqlite": (1_000, 10_000, 100_000)},
        (*A_TASK_AND_CLAIM, Judged("submit: worker us"), Judged("submit: Redis us"), Judged("bytes each")),
    ),
    Question(
        "dead",
        "dead letters, as many as there is room for",
        claims.by_dead_letters,
        _on_both(10, 1_000, 10_000),
        (*A_TASK_AND_CLAIM, Judged("death: worker us"), Judged("death: Redis us")),
    ),
    Question(
        "retention",
        "ended tasks that are kept, at a steady rate: a task is submitted, run and later pruned",
        claims.by_retention,
        _on_both(1_000, 10_000, 100_000),
        A_TASK,
    ),
    Question(
        "schedules",
        "schedules, of which 1,000 are due and fired, and all are listed",
        flows.by_schedules,
        {"redis": (1_000, 10_000, 100_000), "sqlite": (1_000, 10_000, 50_000)},
        (
            *(Judged(f"{step}: {name} us") for step in ("fire", "list") for name in ("worker", "Redis")),
            Judged(flows.PAUSE, enough=50, aim=50),
        ),
    ),
    Question("fan-out", "tasks that wait for one", flows.by_dependants, _on_both(50, 500, 5_000), A_TASK),
    Question("fan-in", "tasks for which one waits", flows.by_dependencies, _on_both(10, 100, 1_000), A_TASK),
    Question("notes", "lines that a run has logged", flows.by_notes, _on_both(10, 1_000, 10_000), A_TASK),
    Question(
        "payloads",
        "bytes of a payload",
        drains.by_payload,
        _on_redis(10_000, 100_000, 250_000),
        (Judged(drains.MULTIPLE, enough=2, aim=2),),
    ),
    Question(
        "idle",
        "idle nodes",
        waiting.by_idle_nodes,
        _on_redis(1, 50, 200),
        # 150 us/s a node are 3 % of a core for 200 of them.
        (Judged(waiting.A_NODE, enough=150, aim=150), Judged(waiting.CALLS), Judged("worker us/s a node")),
    ),
    Question(
        "sleeping",
        "handlers that sleep, their leases renewed every two seconds",
        waiting.by_sleeping_handlers,
        _on_redis(100, 1_000, 10_000),
        (Judged("worker us/s each"), Judged("Redis us/s each"), Judged(flows.PAUSE, enough=50, aim=50)),
    ),
    Question(
        "waiters",
        "callers of one process that wait for a result",
        waiting.by_waiters,
        _on_both(1, 100, 500),
        (Judged(waiting.COMMANDS, enough=50, aim=50), Judged("caller us/s each")),
    ),
)
QUESTIONS: dict[str, Question] = {question.name: question for question in _ALL}
