"""A planned change of the master under Sentinel, without losing what was acknowledged.

With `SENTINEL FAILOVER` alone, the old master acknowledges writes for some seconds that are then lost. So writes are
paused first, until the replicas have all that was acknowledged and the sentinels have elected a new master.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable
from typing import Any

import hiredis

from tickwork.errors import ConfigError, StoreError
from tickwork.observe.loggers import Log
from tickwork.store.contact import Contact
from tickwork.store.redis.net.link import Access, Address, Link, LinkLost, connect
from tickwork.store.redis.net.target import Target
from tickwork.store.redis.net.topology import Sentinels, ask
from tickwork.store.redis.ops.server import read_info

HOLD = 15_000  # milliseconds for which the old master pauses writes; the pause ends by itself if this process dies
CATCH_UP = 5.0
ELECTION = 12.0
DEMOTION = 10.0
STEP = 0.05


async def switchover(target: Target, say: Callable[[str], None]) -> tuple[Address, Address]:
    """The old master and the new one. Raises `StoreError` when nothing was changed, or it is unclear, and
    `ConfigError` where there are no sentinels."""
    if target.kind != "sentinel":
        raise ConfigError("a switchover needs redis+sentinel://: without sentinels nobody can elect a new master")
    try:
        return await _switch(target, Sentinels(target, Contact(Log.of(None, "store.redis"))), say)
    except LinkLost as error:
        raise StoreError(f"the switchover stopped: {error}") from error


async def _switch(target: Target, sentinels: Sentinels, say: Callable[[str], None]) -> tuple[Address, Address]:
    old = await sentinels.discover()
    say(f"the master of {target.service} is {old}")
    link = await connect(old, target.access, HOLD / 1000)
    try:
        await _hold(link)
        say("it pauses writes; callers wait")
        try:
            await _catch_up(link)
            say("the replicas have all that it acknowledged")
            await _failover(target)
            new = await _elected(sentinels, old, link)
        except BaseException:
            with contextlib.suppress(LinkLost):  # the pause ends by itself
                await link.call("CLIENT", "UNPAUSE")
            raise
    finally:
        await link.close()
    say(f"the master is {new} now")
    await _demote(target.access, old, new)
    return old, new


async def _hold(link: Link) -> None:
    """Pause writes for `HOLD` from now on."""
    await _answer(link, "CLIENT", "PAUSE", HOLD, "WRITE")


async def _answer(link: Link, *command: Any) -> Any:
    reply = await link.call(*command)
    if isinstance(reply, hiredis.ReplyError):
        raise StoreError(f"Redis refused {' '.join(map(str, command))}: {reply}")
    return reply


async def _catch_up(link: Link) -> None:
    deadline = time.monotonic() + CATCH_UP
    while True:
        info = read_info(await _answer(link, "INFO", "replication"))
        offset = int(info.get("master_repl_offset", 0))
        replicas = [value for name, value in info.items() if name.startswith("slave") and name[5:].isdigit()]
        behind = [text for text in replicas if _offset(text) < offset]
        if replicas and not behind:
            return
        if time.monotonic() > deadline:
            what = "no replica is connected" if not replicas else f"{len(behind)} replicas stay behind"
            raise StoreError(f"{what}: nothing was changed")
        await asyncio.sleep(STEP)


def _offset(replica: str) -> int:
    fields = dict(part.partition("=")[::2] for part in replica.split(","))
    return int(fields.get("offset", 0)) if fields.get("state") == "online" else -1


async def _failover(target: Target) -> None:
    problems = []
    for sentinel in target.addresses:
        try:
            await ask(sentinel, target.sentinel_access, "SENTINEL", "FAILOVER", target.service)
        except LinkLost as error:
            if "INPROG" in str(error):  # a failover is under way already
                return
            problems.append(str(error))
            continue
        return
    raise StoreError(f"no sentinel has started a failover: {'; '.join(problems)}; nothing was changed")


async def _elected(sentinels: Sentinels, old: Address, link: Link) -> Address:
    deadline = time.monotonic() + ELECTION
    while time.monotonic() < deadline:
        await _hold(link)
        try:
            current = await sentinels.discover()
        except LinkLost:
            current = old
        if current != old:
            return current
        await asyncio.sleep(STEP)
    raise StoreError(f"no new master within {ELECTION:g} s; {old} takes writes again. Look at the sentinels' logs")


async def _demote(access: Access, old: Address, new: Address) -> None:
    """Make the old master a replica of the new one, then end the pause of writes. In the other order it would accept
    writes that are lost when it becomes a replica. The sentinels cannot do the first during the pause, since their
    hello messages count as writes."""
    problem, deadline = "", time.monotonic() + DEMOTION
    while time.monotonic() < deadline:
        try:
            await ask(old, access, "REPLICAOF", new.host, new.port)
            await ask(old, access, "CLIENT", "UNPAUSE")
        except LinkLost as error:
            problem = str(error)
            await asyncio.sleep(STEP)
            continue
        # So that it starts as a replica next time; the server may have no configuration file.
        with contextlib.suppress(LinkLost):
            await ask(old, access, "CONFIG", "REWRITE")
        return
    raise StoreError(f"the master is {new} now, but {old} does not follow it: {problem}")
