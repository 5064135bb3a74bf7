"""How a node takes its names in the store: one name, one living process."""

from __future__ import annotations

import asyncio
import os

from tickwork.errors import TickworkError
from tickwork.host import host_id, lives
from tickwork.model.members import Leader, Worker
from tickwork.observe.loggers import Log
from tickwork.store.contract import Store

LOOK_MAX = 1.0  # seconds between two looks at a member that may be dead
LOOK_MIN = 0.05


async def join(store: Store, member: Worker, log: Log) -> Leader | None:
    """Become a member; answers who leads. Raises when another process that lives has the name.

    One of this host is looked at. One of another host may have died: if it gives no sign of life until its lease is
    over, the name is free.
    """
    first: Worker | None = None
    while True:
        heard = await store.members.beat(member)
        rival = heard.rival
        if rival is None:
            return heard.leader
        if first is None:
            first = rival
            log.warning("%s Waiting for a sign of life from it, or the end of its lease", describe(rival, store.now()))
        seen_to_live = lives(rival.host, rival.pid, rival.pid_started) and rival.pid != os.getpid()
        if seen_to_live or (rival.node, rival.beat_at) != (first.node, first.beat_at):
            raise TickworkError(taken(rival, store.now()))
        await asyncio.sleep(min(max((rival.expires_at - store.now()) / 1000, LOOK_MIN), LOOK_MAX))


def describe(rival: Worker, now: int) -> str:
    host = rival.host.partition("/")[0] or "a host that it does not name"
    where = "this host" if rival.host == host_id() else f"host {host}"
    ago = max(now - rival.beat_at, 0) / 1000
    return f"the name {rival.id!r} is in use by process {rival.pid} on {where}, last heartbeat {ago:.1f} s ago."


def taken(rival: Worker, now: int) -> str:
    return (
        f"{describe(rival, now)} Two processes cannot share a scheduler_id: leave that option out, so that each gets a "
        "name of its own, or give each process another one"
    )
