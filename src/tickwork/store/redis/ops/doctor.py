"""The checks of `tickwork doctor` on a Redis server."""

from __future__ import annotations

import ipaddress
import time
from typing import Literal

import hiredis

from tickwork.store.contract import Finding
from tickwork.store.redis.core import Part
from tickwork.store.redis.net.link import Address, pack
from tickwork.store.redis.net.topology import ask
from tickwork.store.redis.ops.server import OLDEST, read_info, setting

UNTRIED = (7, 2)  # the tests run on 6.2, 7.0 and Valkey 9, which calls itself 7.2
NEARLY_FULL = 0.9
SKEW = 1.0  # seconds between the clocks of servers


class Doctor(Part):
    async def health(self) -> list[Finding]:
        findings = [self._version(), *self._transport(), self._eviction(), self._persistence(), self._memory()]
        findings += await self._durability()
        findings += [await self._scripts(), await self._clocks(), await self._clients()]
        return findings

    def _version(self) -> Finding:
        version, name = self._core.server.version, self._core.server.name
        if version < OLDEST:
            return Finding("problem", f"{name} is too old", "use 6.2 or later")
        if version >= UNTRIED and "valkey_version" not in self._core.server.info:
            return Finding("warning", f"{name} is newer than what Tickwork was tried on: 6.2, 7.0 and Valkey 9")
        return Finding("ok", f"{name}, {self._core.target.kind}")

    def _transport(self) -> list[Finding]:
        target = self._core.target
        others = [address.host for address in target.addresses if not _is_loopback(address.host)]
        if (
            target.access.tls is not None
            or not others
            or not (target.access.password or target.sentinel_access.password)
        ):
            return []
        text = f"the password and all tasks go unencrypted to {', '.join(others)}"
        return [Finding("warning", text, "use rediss:// (docs/redis.md), or a private network")]

    def _eviction(self) -> Finding:
        policy = self._core.server.info.get("maxmemory_policy", "noeviction")
        if policy != "noeviction":
            return Finding("problem", f"maxmemory-policy is {policy}: tasks may be evicted", "set it to noeviction")
        return Finding("ok", "nothing is evicted (maxmemory-policy noeviction)")

    def _persistence(self) -> Finding:
        info = self._core.server.info
        if info.get("aof_last_write_status", "ok") != "ok":
            return Finding("problem", "the append-only file cannot be written", "look at the server's disk and log")
        if info.get("aof_enabled") == "1":
            return Finding("ok", "the append-only file is on")
        if int(info.get("connected_slaves", 0)) > 0:
            return Finding("warning", "the append-only file is off; only replicas keep tasks over a restart", ADVICE)
        return Finding("warning", "the append-only file is off: a restart of Redis loses tasks", ADVICE)

    def _memory(self) -> Finding:
        used, limit = (int(self._core.server.info.get(name, 0)) for name in ("used_memory", "maxmemory"))
        text = f"{used / 1e6:.0f} MB used"
        if not limit:
            return Finding("ok", f"{text}, no maxmemory")
        if used > NEARLY_FULL * limit:
            return Finding("problem", f"{text} of {limit / 1e6:.0f}: submits are (nearly) refused", "raise maxmemory")
        return Finding("ok", f"{text} of {limit / 1e6:.0f}")

    async def _durability(self) -> list[Finding]:
        if self._core.durability == "memory":
            return []
        if self._core.durability == "replicated":
            count = int(self._core.server.info.get("connected_slaves", 0))
            level: Literal["ok", "problem"] = "ok" if count else "problem"
            return [Finding(level, f"{count} replicas are connected", "" if count else "durability needs one")]
        fsync = await setting(self._core.connections().wire, self._core.layout.root, "appendfsync")
        return [Finding("ok", f"durability is disk (appendfsync {fsync or 'cannot be read'})")]

    async def _scripts(self) -> Finding:
        command = pack("EVAL", "return redis.call('TIME')", 1, self._core.layout.root)
        reply = await self._core.connections().wire.run(self._core.layout.root, command)
        if isinstance(reply, hiredis.ReplyError):
            return Finding(
                "problem", f"scripts do not run: {reply}", "`tickwork acl` prints the rights that are needed"
            )
        return Finding("ok", "scripts run")

    async def _clocks(self) -> Finding:
        masters = await self._core.connections().wire.topology.masters()
        moments = [await self._clock_of(address) for address in masters]
        apart = max(moments) - min(moments)
        if apart > SKEW:
            advice = "use NTP: delays, leases and the order of events follow the server's clock"
            return Finding("warning", f"the clocks of {len(masters)} masters are {apart:.1f} s apart", advice)
        return Finding("ok", "the masters' clocks agree" if len(masters) > 1 else "one master, one clock")

    async def _clock_of(self, address: Address) -> float:
        """The server's time less our own, so that asking one after the other does not matter."""
        before = time.time()
        seconds, micros = await ask(address, self._core.target.access, "TIME")
        return int(seconds) + int(micros) / 1e6 - (before + time.time()) / 2

    async def _clients(self) -> Finding:
        info = read_info(await self._core.ask(self._core.layout.root, "INFO", "clients"))
        blocked = int(info.get("blocked_clients", 0))
        return Finding("ok", f"{info.get('connected_clients', '?')} clients, {blocked} of them wait for work")


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


ADVICE = "set appendonly yes (and appendfsync always for durability=disk): docs/durability.md"
