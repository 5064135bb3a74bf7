"""Which server to connect to: the only one, the master that the sentinels name, or the cluster node of a slot."""

from __future__ import annotations

import asyncio
import ipaddress
import logging
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any, Protocol

import hiredis

from tickwork.errors import StoreError
from tickwork.store.contact import Contact
from tickwork.store.redis.net.link import Access, Address, Link, LinkLost, connect
from tickwork.store.redis.net.target import Target

ASK_TIMEOUT = 1.0


class Topology(Protocol):
    async def find(self, slot: int) -> Address:
        """The address of the server for a slot. Raises `LinkLost` when it cannot be found now."""

    def doubt(self) -> None:
        """Look the address up again at the next `find`, since it may be wrong."""

    async def masters(self) -> list[Address]:
        """All servers that take writes."""


def topology_of(target: Target, contact: Contact) -> Topology:
    match target.kind:
        case "sentinel":
            return Sentinels(target, contact)
        case "cluster":
            return Cluster(target, contact)
        case _:
            return Standalone(target.addresses[0])


class Standalone:
    def __init__(self, address: Address) -> None:
        self._address = address

    async def find(self, slot: int) -> Address:
        return self._address

    def doubt(self) -> None:
        """Nothing to do, as there is only one server."""

    async def masters(self) -> list[Address]:
        return [self._address]


class Hosts:
    """The hosts that sentinels and cluster nodes name. Since the password is sent to them, each is logged once, and
    must be one of `allow_hosts` if the URL has that option."""

    def __init__(self, target: Target, contact: Contact) -> None:
        self._url = target.url
        self._contact = contact
        self._allowed = target.allow_hosts
        self._known = {address.host for address in target.addresses}
        self._begun = False

    def meet(self, addresses: Iterable[Address]) -> None:
        for host in sorted({address.host for address in addresses} - self._known):
            if self._allowed and not any(_covers(allowed, host) for allowed in self._allowed):
                raise StoreError(f"Redis at {self._url} names the host {host}, which allow_hosts does not list")
            level = logging.WARNING if self._begun else logging.INFO
            self._contact.log.log(level, "%s names the host %s", self._url, host)
            self._known.add(host)
        self._begun = True


def _covers(allowed: str, host: str) -> bool:
    if "/" not in allowed:
        return host == allowed or (allowed.startswith(".") and host.endswith(allowed))
    try:
        return ipaddress.ip_address(host) in ipaddress.ip_network(allowed, strict=False)
    except ValueError:  # a host name, which is not resolved
        return False


@contextmanager
def _reading(address: Address, command: str) -> Iterator[None]:
    """Treat a reply that cannot be read like no reply, as a server may answer anything."""
    try:
        yield
    except (ValueError, TypeError, LookupError, AttributeError) as error:
        raise LinkLost(f"{address}: its answer to {command} cannot be read ({error})") from error


async def ask(address: Address, access: Access, *command: Any) -> Any:
    """Send one command on a new connection, and close it."""
    link = await connect(address, access._replace(connect_timeout=ASK_TIMEOUT), ASK_TIMEOUT)
    try:
        reply = await link.call(*command)
    finally:
        await link.close()
    if isinstance(reply, hiredis.ReplyError):
        raise LinkLost(f"{address}: {reply}")
    return reply


class Sentinels:
    def __init__(self, target: Target, contact: Contact) -> None:
        self._service = target.service
        self._addresses = list(target.addresses)
        self._access = target.sentinel_access
        self._master_access = target.access
        self._master: Address | None = None
        self._hosts = Hosts(target, contact)
        self._asking = asyncio.Lock()

    async def find(self, slot: int) -> Address:
        if self._master is None:
            async with self._asking:
                if self._master is None:
                    self._master = await self.discover()
        return self._master

    async def masters(self) -> list[Address]:
        return [await self.find(0)]

    def doubt(self) -> None:
        self._master = None

    async def named(self) -> list[Address]:
        """The masters that the sentinels name, that of the newest failover first: a sentinel that was cut off may still
        name an old one."""
        answers = await asyncio.gather(*map(self._master_by, self._addresses), return_exceptions=True)
        named = sorted((answer for answer in answers if isinstance(answer, tuple)), reverse=True)
        if not named:
            problems = "; ".join(map(str, answers))
            raise LinkLost(f"no sentinel could name the master of {self._service!r}: {problems}")
        return list(dict.fromkeys(master for _, master in named))

    async def _master_by(self, sentinel: Address) -> tuple[int, Address]:
        """The master that this sentinel names, and the number of the failover that made it the master."""
        link = await connect(sentinel, self._access._replace(connect_timeout=ASK_TIMEOUT), ASK_TIMEOUT)
        try:
            place, state = await asyncio.gather(
                link.call("SENTINEL", "get-master-addr-by-name", self._service),
                link.call("SENTINEL", "MASTER", self._service),
            )
        finally:
            await link.close()
        if not isinstance(place, list) or not isinstance(state, list):
            raise LinkLost(f"{sentinel} knows no service {self._service!r}")
        with _reading(sentinel, "SENTINEL MASTER"):
            fields = dict(zip(state[::2], state[1::2], strict=True))
            return int(fields[b"config-epoch"]), Address(place[0].decode(), int(place[1]))

    async def discover(self) -> Address:
        """The first of the named masters that confirms that it is one."""
        problems: list[str] = []
        for master in await self.named():
            self._hosts.meet([master])
            try:
                reply = await ask(master, self._master_access, "ROLE")
                with _reading(master, "ROLE"):
                    role = reply[0].decode()
            except LinkLost as error:
                problems.append(str(error))
                continue
            if role == "master":
                return master
            problems.append(f"{master} is called the master, but is a {role}")
        raise LinkLost(f"{self._service!r} has no master now: {'; '.join(problems)}")


class Cluster:
    def __init__(self, target: Target, contact: Contact) -> None:
        self._seeds = target.addresses
        self._access = target.access
        self._slots: list[Address | None] = [None] * 16384
        self._known: tuple[Address, ...] = ()
        self._stale = True
        self._hosts = Hosts(target, contact)
        self._asking = asyncio.Lock()

    async def find(self, slot: int) -> Address:
        if self._stale or self._slots[slot] is None:
            async with self._asking:
                if self._stale or self._slots[slot] is None:
                    await self._refresh()
        address = self._slots[slot]
        if address is None:
            self._stale = True
            raise LinkLost(f"no node of the cluster has slot {slot}")
        return address

    async def masters(self) -> list[Address]:
        await self.find(0)
        return sorted({address for address in self._slots if address is not None})

    def doubt(self) -> None:
        self._stale = True

    def asked(self, address: Address) -> None:
        """A node has answered ASK: one command is to be sent to this address while a slot is moved."""
        self._hosts.meet([address])

    def moved(self, slot: int, address: Address) -> None:
        self._hosts.meet([address])
        self._slots[slot] = address
        self._known = (address, *self._known)  # the others may not have heard of it yet
        self._stale = True  # other slots have probably moved too

    async def _refresh(self) -> None:
        problems: list[str] = []
        for address in dict.fromkeys((*self._known, *self._seeds)):
            try:
                reply = await ask(address, self._access, "CLUSTER", "SLOTS")
                with _reading(address, "CLUSTER SLOTS"):
                    self._read(reply, address)
            except LinkLost as error:
                problems.append(str(error))
                continue
            return
        raise LinkLost(f"no node of the cluster answers: {'; '.join(problems)}")

    def _read(self, reply: list[Any], asked: Address) -> None:
        slots: list[Address | None] = [None] * 16384
        nodes: list[Address] = []
        for first, last, *owners in reply:
            found = [Address((owner[0] or b"").decode() or asked.host, int(owner[1])) for owner in owners]
            nodes += found
            if not 0 <= first <= last < len(slots):
                raise ValueError(f"there are no slots {first} to {last}")
            slots[first : last + 1] = [found[0]] * (last + 1 - first)
        self._hosts.meet(nodes)
        # The node that has answered comes first next time, as another one may hang.
        self._slots, self._known, self._stale = slots, (asked, *nodes), False


__all__ = ["Cluster", "Link", "Sentinels", "Standalone", "Topology", "ask", "topology_of"]
