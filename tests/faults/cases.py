"""Every fault case by name. A case makes its own servers and processes, answers its figures and raises when it is red;
the seed decides all that is left to chance, and the scale how long it goes on."""

from __future__ import annotations

from tests.faults import leader_cases, mutate, worker_cases
from tests.faults.redis_faults import Case

CASES: dict[str, Case] = {
    "workers_killed": worker_cases.workers_killed,
    "workers_killed_strangers": worker_cases.workers_killed_strangers,
    "zombie": worker_cases.zombie,
    "short_stop": worker_cases.short_stop,
    "poison": worker_cases.poison,
    "poison_in_company": worker_cases.poison_in_company,
    "leader_killed": leader_cases.leader_killed,
    "leader_killed_same_host": leader_cases.leader_killed_same_host,
    "leader_killed_at_work": leader_cases.leader_killed_at_work,
    "leader_stopped": leader_cases.leader_stopped,
    "mutants": mutate.slow_mutants,
}
