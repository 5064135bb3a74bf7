"""The connections of one event loop, and the only place where errors of Redis are classified.

Every command may be sent again: scripts recognise a repeated call by its ids and nonces. So an error is either final,
or the command is sent again: when the server has moved, restarts or is busy, and when the reply was lost, so that it is
unknown whether the command was executed.
"""

from __future__ import annotations

import asyncio
import functools
import re
import time
from collections.abc import Callable
from typing import Any

import hiredis

from tickwork.errors import StoreError, StoreFull, StoreUnavailable
from tickwork.observe.loggers import Log
from tickwork.store.contact import Contact
from tickwork.store.contract import NotPermitted
from tickwork.store.redis.keys import slot_of
from tickwork.store.redis.net.link import Address, Link, LinkLost, Reply, answers, connect, pack, unread
from tickwork.store.redis.net.sockets import KnownServers
from tickwork.store.redis.net.target import Target
from tickwork.store.redis.net.topology import Cluster, Topology, topology_of
from tickwork.store.redis.scripts import Script

CALL_TIMEOUT = 5.0  # seconds without data on a connection that has replies to deliver
PAUSE_MIN, PAUSE_MAX = 0.02, 0.25
REDIRECTS_MAX = 5  # redirects that a call follows at once; it pauses before each further one
CROWDED = 16  # commands under way on a connection before another one is opened
SWITCH_POLL = 0.5  # seconds between two questions to the sentinels
REPORT_AFTER = 1.0  # seconds without a connection before that is reported
DURABLE = "durable"  # the purpose of connections on which writes wait for their confirmation

# Not executed: the server is about to change its role, or is not the master. Drop the connections and find the master.
_ELSEWHERE = ("READONLY", "NOREPLICAS", "MASTERDOWN", "LOADING", "UNBLOCKED", "NOMASTERLINK")
# Not executed: the right server, but it cannot do it at the moment.
_LATER = ("BUSY", "MISCONF", "TRYAGAIN", "CLUSTERDOWN")
OTHER_LAYOUT = "LAYOUT "  # see `lua/parts/layout.lua`
TOO_MANY = "ERR max number of clients reached"
_DENIED = ("NOPERM", "NOAUTH", "WRONGPASS")

_REDIRECT = re.compile(r"(?P<word>MOVED|ASK) [0-9]{1,5} (?P<host>[^ ]+):(?P<port>[0-9]{1,5})")
_INNER = re.compile(r"@user_script: ?\d+: -([A-Z]+ .*)")


class OtherLayout(StoreError):
    """A script was refused, as it does not know the layout of the keys: `stored` says which there is, or `none`."""

    def __init__(self, stored: str) -> None:
        super().__init__(f"the namespace has layout {stored}")
        self.stored = stored


class Wire:
    def __init__(
        self,
        target: Target,
        pool_size: int,
        patience: float,
        timeout: float = CALL_TIMEOUT,
        contact: Contact | None = None,
        servers: KnownServers | None = None,
    ) -> None:
        self.target = target
        self._servers = servers or KnownServers()
        self.contact = contact or Contact(Log.of(None, "store.redis"))
        self._timeout = timeout
        self._access = target.access._replace(connect_timeout=min(target.access.connect_timeout, timeout))
        self.topology: Topology = topology_of(target, self.contact)
        self._pool_size = pool_size
        self._patience = patience
        self._links: dict[tuple[Address, str], list[Link]] = {}
        self._opening: dict[tuple[Address, str], asyncio.Lock] = {}
        self._best: dict[tuple[str, str], Link] = {}  # by key and purpose: the connection of the last reply
        self._slots: dict[str, int] = {}
        self.on_reconnect: Callable[[], None] = lambda: None
        # The command that comes before the first script on a connection.
        self.greeting: Callable[[str], bytes | None] = lambda key: None
        self._had_links = False
        self._addresses: set[Address] = set()  # to which there were connections
        self._returning = False  # all connections to a server were lost, and no good reply has come since
        self._closed = False
        self._switch_watch: asyncio.Task[None] | None = None

    # --- calls

    async def script(
        self, script: Script, key: str, *args: Any, purpose: str = "ask", wait: tuple[Any, ...] = ()
    ) -> Reply:
        """Run a script on the server of `key`. `wait` is a command that must follow on the same connection; the result
        is then both replies."""
        keys = (2, *script.keys(key))
        command = pack("EVALSHA", script.sha, *keys, *args)
        answer: Reply = None
        link = None if wait else self.ready(key, purpose)
        if link is not None:
            try:
                answer = await link.send(command)
            except LinkLost:
                self.topology.doubt()
            else:
                if not isinstance(answer, hiredis.ReplyError):
                    if self.contact.lost_since is not None:
                        self.contact.made(key)
                    return answer
        reply = await self.run(key, command, purpose, wait, answer, greet=True)
        first = _first(reply, wait)
        if isinstance(first, hiredis.ReplyError) and str(first).startswith("NOSCRIPT"):
            command = pack("EVAL", script.text, *keys, *args)
            reply = await self.run(key, command, purpose, wait, greet=True)
            first = _first(reply, wait)
        if isinstance(first, hiredis.ReplyError):
            if (text := str(first)).startswith(OTHER_LAYOUT):
                raise OtherLayout(text.removeprefix(OTHER_LAYOUT))
            raise StoreError(f"script {script.name} failed: {text}")
        return reply

    def ready(self, key: str, purpose: str = "ask") -> Link | None:
        """The connection of the last reply, if a script may be sent there at once."""
        link = self._best.get((key, purpose))
        if link is None or not link.met or link.lost is not None or link.under_way >= CROWDED or self._returning:
            return None
        return link

    async def call(self, key: str, *command: Any) -> Reply:
        reply = await self.run(key, pack(*command))
        if isinstance(reply, hiredis.ReplyError):
            raise StoreError(f"Redis refused {command[0]}: {reply}")
        return reply

    async def calls(self, key: str, commands: list[tuple[Any, ...]]) -> list[Reply]:
        """Send several commands about one slot at the same time; each is repeated on its own if needed."""
        return list(await asyncio.gather(*(self.call(key, *command) for command in commands)))

    async def run(
        self,
        key: str,
        command: bytes,
        purpose: str = "ask",
        wait: tuple[Any, ...] = (),
        answer: Reply = None,
        *,
        greet: bool = False,
    ) -> Reply:
        """Send a command again until there is a definite answer, at most for `patience`. Errors about the command
        itself are returned as the reply. `answer` is an error reply that was received already; `greet`: the command may
        write, so `greet.lua` must come first on its connection."""
        best, timer = self._best.get((key, purpose)), None
        if best is None or best.lost is not None:
            timer = asyncio.get_running_loop().call_later(REPORT_AFTER, self._report_lost, key, time.monotonic())
        try:
            reply = await self._insist(key, command, purpose, wait, answer, greet)
        finally:
            if timer is not None:
                timer.cancel()
        if self.contact.lost_since is not None:
            self.contact.made(key)
        return reply

    def _report_lost(self, key: str, since: float, problem: str = "no connection yet") -> None:
        self.contact.lost(key, f"Redis at {self.target.url} cannot be reached: {problem}", since)

    async def _insist(
        self, key: str, command: bytes, purpose: str, wait: tuple[Any, ...], answer: Reply, greet: bool
    ) -> Reply:
        slot = self.slot(key)
        began, pause = time.monotonic(), PAUSE_MIN
        asked: Address | None = None
        redirects = 0
        link: Link | None = None
        while True:
            try:
                if answer is None:
                    address = asked or await self.topology.find(slot)
                    link = await self.link(address, purpose)
                    refusal = await self._greet(link, key) if greet and not link.met and asked is None else None
                    reply = refusal or await self._send(link, command, wait, asked is not None)
                else:
                    reply, answer = answer, None
                problem = self._problem(_first(reply, wait))
                if problem is None:
                    self._answered()
                    if asked is None and link is not None:
                        self._best[key, purpose] = link
                        self._servers.answered(key, address, link.peer)
                    return reply
                asked = self._redirect(problem, slot)
                redirects += _is_redirect(problem)
                if _is_redirect(problem) and redirects <= REDIRECTS_MAX:
                    continue
            except LinkLost as error:
                problem = str(error)
                self.topology.doubt()
            waited = time.monotonic() - began
            if waited >= REPORT_AFTER:
                self._report_lost(key, began, problem)
            if self._closed or waited + pause > self._patience:
                raise StoreUnavailable(f"Redis at {self.target.url} cannot be reached: {problem}")
            await asyncio.sleep(pause)
            pause = min(pause * 2, PAUSE_MAX)

    def _answered(self) -> None:
        if self._returning:
            self._returning = False
            self.on_reconnect()

    async def _greet(self, link: Link, key: str) -> hiredis.ReplyError | None:
        """Run `greet.lua` on a connection. Returns the error if the server refuses it."""
        greeting = self.greeting(key)
        reply = None if greeting is None else await link.send(greeting)
        if isinstance(reply, hiredis.ReplyError):
            return reply
        link.met = True
        return None

    async def _send(self, link: Link, command: bytes, wait: tuple[Any, ...], asking: bool) -> Reply:
        if asking:
            link.send(pack("ASKING")).add_done_callback(unread)
        if not wait:
            return await link.send(command)
        return await asyncio.gather(link.send(command), link.send(pack(*wait)))

    def _problem(self, reply: Reply) -> str | None:
        """Why the command is to be sent again; None when the reply is final."""
        if not isinstance(reply, hiredis.ReplyError):
            return None
        text = reason(str(reply))
        word = text.partition(" ")[0]
        if word in ("MOVED", "ASK", *_LATER) or text.startswith(TOO_MANY):
            return text
        if word in _ELSEWHERE:
            self.topology.doubt()
            self.drop(f"the server answered {text}")
            return text
        if word == "OOM":
            raise StoreFull(
                f"Redis at {self.target.url} is full (maxmemory): it takes nothing new until tasks are removed"
            )
        if word == "NOPERM":
            raise NotPermitted(f"Redis at {self.target.url} refused: {text}. `tickwork acl` prints the rights it needs")
        if word in _DENIED:
            raise StoreError(f"Redis at {self.target.url} refused: {text} Give user and password in the URL")
        return None

    def _redirect(self, problem: str, slot: int) -> Address | None:
        """The address that an ASK names. A MOVED is stored in the topology instead."""
        if not _is_redirect(problem):
            return None
        if not isinstance(self.topology, Cluster):
            raise StoreError(f"Redis at {self.target.url} is a node of a cluster: name it by redis+cluster://")
        found = _REDIRECT.fullmatch(problem)
        if found is None or not 0 < int(found["port"]) < 65536:
            raise LinkLost(f"a redirect that cannot be read: {problem}")
        address = Address(found["host"], int(found["port"]))
        if found["word"] == "MOVED":
            self.topology.moved(slot, address)
            self._meet_again()
            return None
        self.topology.asked(address)
        return address

    def slot(self, key: str) -> int:
        slot = self._slots.get(key)
        if slot is None:
            slot = self._slots[key] = slot_of(key)
        return slot

    # --- links

    async def own_link(self, key: str, purpose: str, timeout: float) -> Link:
        """A connection to the server of `key` that nobody else uses, for a command that may take up to `timeout`."""
        try:
            link = await self.link(await self.topology.find(self.slot(key)), purpose, timeout)
            refusal = None if link.met else await self._greet(link, key)
        except LinkLost:
            self.topology.doubt()
            raise
        if refusal is not None:
            raise LinkLost(str(refusal))
        return link

    async def link(self, address: Address, purpose: str, timeout: float | None = None) -> Link:
        """The connection with the least under way. With a `timeout` of its own, a late reply proves nothing before
        that."""
        place = (address, purpose)
        links = self._links.get(place)
        if links:
            best = min(links, key=lambda link: link.under_way) if len(links) > 1 else links[0]
            if best.lost is None and (best.under_way < CROWDED or len(links) >= self._pool_size):
                return best
        async with self._opening.setdefault(place, asyncio.Lock()):
            links = self._links.setdefault(place, [])
            links[:] = [link for link in links if link.lost is None]
            if links and (links[-1].under_way < CROWDED or len(links) >= self._pool_size):
                return links[-1]
            self._check_open()
            self._returning = self._returning or self._may_be_back(address)
            link = await connect(address, self._access, timeout or self._timeout)
            if purpose != DURABLE and timeout is None:  # a confirmation may take long, which proves nothing
                link.probe = functools.partial(answers, address, self.target.access)
            try:
                self._check_open()
            except LinkLost:
                await link.close()
                raise
            links.append(link)
            self._had_links = True
            self._addresses.add(address)
            self._watch_switches()
            return link

    def _may_be_back(self, address: Address) -> bool:
        """Whether a server is about to be met again, after all connections to it, or to all servers, were lost."""
        if not any(map(_alive, self._links.values())):
            return self._had_links
        of_address = (links for (other, _), links in self._links.items() if other == address)
        return address in self._addresses and not any(map(_alive, of_address))

    def _check_open(self) -> None:
        if self._closed:
            raise LinkLost("the store was closed")

    def _meet_again(self) -> None:
        for link in [link for group in self._links.values() for link in group]:
            link.met = False

    def drop(self, why: str) -> None:
        """Cut all connections. Calls under way are repeated on the server that is found then."""
        links = [link for group in self._links.values() for link in group]
        self._links.clear()
        self._best.clear()
        self._servers.forget()
        for link in links:
            link.cut(why)

    def _watch_switches(self) -> None:
        """Ask the sentinels regularly, since a master that was replaced may go on answering for a while."""
        if self.target.kind == "sentinel" and self._switch_watch is None:
            self._switch_watch = asyncio.ensure_future(self._follow_master())

    async def _follow_master(self) -> None:
        while not self._closed:
            await asyncio.sleep(SWITCH_POLL)
            try:
                known = await self.topology.find(0)
                current = (await self.topology.named())[0]  # type: ignore[attr-defined]
            except (LinkLost, StoreError):
                continue
            if current != known:
                self.contact.log.warning("the master moved from %s to %s", known, current)
                self.topology.doubt()
                self.drop(f"the master is {current} now")
            else:
                self._servers.confirm(current)

    def abandon(self) -> None:
        """Called when the event loop was closed without closing these connections."""
        for link in [link for group in self._links.values() for link in group]:
            link.abandon()

    async def close(self) -> None:
        self._closed = True
        if self._switch_watch is not None:
            self._switch_watch.cancel()
            await asyncio.gather(self._switch_watch, return_exceptions=True)
        links = [link for group in self._links.values() for link in group]
        self._links.clear()
        for link in links:
            await link.close()


def _is_redirect(problem: str) -> bool:
    return problem.partition(" ")[0] in ("MOVED", "ASK")


def reason(text: str) -> str:
    """The error of the command. Before 7.0 an error inside a script is wrapped in one of the script."""
    if text.startswith("ERR Error running script") and (inner := _INNER.search(text)):
        return inner[1]
    return text


def _first(reply: Reply, wait: tuple[Any, ...]) -> Reply:
    """The reply to the command itself, where the one to a WAIT came with it."""
    return reply[0] if wait and isinstance(reply, list) else reply


def _alive(links: list[Link]) -> bool:
    return any(link.lost is None for link in links)
