"""A duty of the leader: to ask remote workers whether they are well."""

from __future__ import annotations

import asyncio

from msgspec.structs import replace

from tickwork.client.remote_workers import is_called
from tickwork.config import Config
from tickwork.errors import ConfigError, ExecutorError
from tickwork.executors.remote_calls import Called, Caller
from tickwork.model.members import Worker
from tickwork.observe.loggers import Log
from tickwork.store.contract import Store

PROBES_MAX = 50  # at a time
PROBE_TIME = 5.0  # seconds for an answer


class Probes:
    """Asks remote workers whether they are well; those that say so, signed, stay online."""

    def __init__(self, store: Store, caller: Caller, config: Config, log: Log) -> None:
        self._store = store
        self._caller = caller
        self._ttl = round(config.worker_timeout * 1000)
        self._timeout = min(PROBE_TIME, config.worker_timeout / 2)
        self._log = log
        self._silent: set[str] = set()

    async def work(self) -> float | None:
        members = [each for each in await self._store.members.workers() if is_called(each)]
        self._silent &= {each.id for each in members}
        for start in range(0, len(members), PROBES_MAX):
            await asyncio.gather(*map(self._probe, members[start : start + PROBES_MAX]))
        return None

    async def _probe(self, member: Worker) -> None:
        try:
            await self._caller.probe(Called(member.id, member.address), self._timeout)
        except (ExecutorError, ConfigError) as error:
            if member.id not in self._silent:
                self._silent.add(member.id)
                self._log.warning("remote worker %s does not answer as it should: %s", member.id, error)
            return
        await self._store.members.beat(replace(member, running=0), self._ttl, join=False)
        if member.id in self._silent:
            self._silent.discard(member.id)
            self._log.info("remote worker %s answers again", member.id)
