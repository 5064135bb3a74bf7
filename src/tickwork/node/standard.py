"""The duties that every scheduler has."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection
from functools import partial
from typing import Literal

from tickwork.client.middleware import SubmitChain
from tickwork.config import Config
from tickwork.dispatch.assigning import Assigner
from tickwork.dispatch.strategies import Strategy, least_tasks
from tickwork.node import duties, firing, gates
from tickwork.node.declarations import LOOK, Declarations
from tickwork.node.duties import PRUNE_LOOK, Crowd, Duty
from tickwork.observe.bus import Bus
from tickwork.observe.loggers import Log
from tickwork.store.contract import Store
from tickwork.store.hints import ASSIGN, OUTBOX, SCHEDULES

SWEEP_MAX = 5.0  # longest pause in seconds between two looks for expired leases by one node, however many there are
TAKE_BACK_MAX = 60.0  # longest pause between two looks for dead processes of this host


def standard_duties(
    store: Store,
    config: Config,
    bus: Bus,
    log: Log,
    chain: SubmitChain | None,
    declared: Callable[[], Collection[str]] = tuple,
    strategy: Strategy = least_tasks,
) -> list[Duty]:
    """`chain` is the middleware around submits, which ticks go through as well. `declared` are the schedules of this
    program."""
    scan = config.scan_interval
    # So often that a task is taken back within a second of its lease's end, and that the calls themselves keep the
    # store's pulse fresh (see `rules.pulse`): this also if only one of many nodes is left.
    quiet = config.lease_ttl - config.renew_interval
    sweep = min(scan, 1.0, quiet) / 2
    crowd = Crowd()

    def of(duty: Callable[..., Awaitable[float | None]], *extra: object) -> Callable[[], Awaitable[float | None]]:
        return partial(duty, store, config.batch_size, *extra)

    everyone: Literal["all"] = "all"  # or the tasks of a lost leader would wait for an election
    return [
        Duty("take back", of(duties.take_back, scan, log, crowd), TAKE_BACK_MAX, who=everyone),
        Duty("reclaim", of(duties.reclaim, log, crowd, sweep), max(min(SWEEP_MAX, quiet / 2), sweep), who=everyone),
        Duty("promote", of(duties.promote), scan),
        Duty("fire schedules", of(firing.fire_schedules, bus, log, chain), scan, SCHEDULES),
        Duty("assign", Assigner(store, strategy, log).work, min(scan, 1.0), ASSIGN),
        Duty("watch limits", of(gates.watch_gates), min(scan, gates.EVERY)),
        Duty("stop undeclared schedules", Declarations(store, declared, log).look, LOOK),
        Duty("propagate", of(duties.propagate, bus), scan, OUTBOX),
        Duty("prune", of(duties.prune), min(config.cleanup_interval, PRUNE_LOOK)),
    ]
