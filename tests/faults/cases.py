"""Every fault case by name. A case makes its own servers and processes, answers its figures and raises when it is red;
the seed decides all that is left to chance, and the scale how long it goes on."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial

from tests.faults import (
    leader_cases,
    limit_cases,
    mutate,
    test_redis_failover,
    test_redis_scale,
    test_redis_server,
    test_redis_standing,
    worker_cases,
)
from tests.faults.random_history import case as random_case
from tests.faults.random_stores import KINDS
from tests.faults.redis_faults import Case, Scale
from tests.faults.server_faults import Figures


def _told(case: Callable[[int, Scale], Awaitable[Figures]]) -> Case:
    """A case that answers figures, as one that answers a line."""

    async def tell(seed: int, scale: Scale) -> str:
        return ", ".join(f"{name} {figure:g}" for name, figure in (await case(seed, scale)).items())

    return tell


PARTITIONED: dict[str, Case] = {
    "workers_killed": partial(worker_cases.workers_killed, partitions=4),
    "workers_killed_strangers": partial(worker_cases.workers_killed_strangers, partitions=4),
    "assigned_killed": partial(worker_cases.assigned_killed, partitions=4),
    "zombie": partial(worker_cases.zombie, partitions=4),
    "one_cut_off": _told(partial(test_redis_server.one_cut_off, partitions=4)),
    "connections_killed": _told(partial(test_redis_server.connections_killed, partitions=4)),
    "restarted": _told(partial(test_redis_server.redis_restarted, partitions=4)),
}
CASES: dict[str, Case] = {
    "workers_killed": worker_cases.workers_killed,
    "workers_killed_strangers": worker_cases.workers_killed_strangers,
    "assigned_killed": worker_cases.assigned_killed,
    "assigned_killed_strangers": worker_cases.assigned_killed_strangers,
    "zombie": worker_cases.zombie,
    "short_stop": worker_cases.short_stop,
    "poison": worker_cases.poison,
    "poison_in_company": worker_cases.poison_in_company,
    "leader_killed": leader_cases.leader_killed,
    "leader_killed_same_host": leader_cases.leader_killed_same_host,
    "leader_killed_at_work": leader_cases.leader_killed_at_work,
    "leader_killed_alerting": leader_cases.leader_killed_alerting,
    "leader_stopped": leader_cases.leader_stopped,
    "redis_restarted": _told(test_redis_server.redis_restarted),
    "redis_empty": _told(test_redis_server.redis_empty),
    "redis_silent": _told(test_redis_server.redis_unreachable),
    "redis_down": _told(partial(test_redis_server.redis_unreachable, how="down")),
    "redis_stopped": _told(partial(test_redis_server.redis_unreachable, how="stopped")),
    "redis_down_run_on": _told(partial(test_redis_server.redis_unreachable, how="down", when_cut_off="run_on")),
    "one_cut_off": _told(test_redis_server.one_cut_off),
    "one_refused": _told(partial(test_redis_server.one_cut_off, how="refused")),
    "replies_cut": _told(test_redis_server.replies_cut),
    "connections_killed": _told(test_redis_server.connections_killed),
    "black_hole": _told(test_redis_server.black_hole),
    "cancelled_callers": _told(test_redis_server.cancelled_callers),
    "maxmemory": _told(test_redis_server.maxmemory),
    "standing_killed": test_redis_standing.standing_killed,
    "standing_killed_same_host": partial(test_redis_standing.standing_killed, stranger=False),
    "standing_stopped": test_redis_standing.standing_stopped,
    "standing_cut": _told(test_redis_standing.standing_cut),
    "standing_replies_lost": _told(test_redis_standing.standing_replies_lost),
    "standing_silent": _told(test_redis_standing.standing_silent),
    "standing_restarted": _told(test_redis_standing.standing_restarted),
    "standing_switched_over": _told(test_redis_standing.standing_switched_over),
    "standing_shut_down": _told(test_redis_standing.standing_shut_down),
    "sentinel_killed": _told(test_redis_failover.sentinel),
    "sentinel_stopped": _told(partial(test_redis_failover.sentinel, blow="stopped")),
    "sentinel_replicated": _told(partial(test_redis_failover.sentinel, durability="replicated")),
    "cluster_killed": _told(test_redis_failover.cluster_master_killed),
    "cluster_resharded": _told(test_redis_failover.cluster_resharded),
    "deep_queue": _told(test_redis_scale.deep_queue),
    "due_at_once": _told(test_redis_scale.due_at_once),
    "schedules_at_once": _told(test_redis_scale.schedules_at_once),
    **{f"partitions_{name}": case for name, case in PARTITIONED.items()},
    **{f"random_{kind}": partial(random_case, kind) for kind in KINDS},
    **limit_cases.CASES,
    "mutants": mutate.slow_mutants,
}
