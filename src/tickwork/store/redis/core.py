"""What the parts of the Redis store share: connections for each event loop, scripts, the clock, wake-ups."""

from __future__ import annotations

import asyncio
import contextlib
import os
import time
from collections.abc import Callable
from typing import Any, TypeVar

import hiredis
import msgspec

from tickwork.clock import SystemClock
from tickwork.errors import StoreError, StoreUnavailable
from tickwork.forks import keep, tell_of_forks
from tickwork.ids import new_nonce
from tickwork.model.policy import Durability, Policy
from tickwork.model.tasks import HELD, Record
from tickwork.observe.loggers import Log
from tickwork.store.contact import Contact
from tickwork.store.hints import RESET, Hint, Hints
from tickwork.store.redis.confirm import NO_REPLICA, Confirmations, enough
from tickwork.store.redis.keys import BEFORE, VERSION, Layout
from tickwork.store.redis.net.by_loop import ConnectionsByLoop, LoopConnections
from tickwork.store.redis.net.link import Link, LinkLost, pack
from tickwork.store.redis.net.listen import Listener
from tickwork.store.redis.net.sockets import CannotSay, KnownServers, SocketPool
from tickwork.store.redis.net.target import Target
from tickwork.store.redis.net.wire import CALL_TIMEOUT, DURABLE, OtherLayout, Wire
from tickwork.store.redis.ops.server import Server, check_server
from tickwork.store.redis.reach import ANSWER_TIME, Reach
from tickwork.store.redis.records import HELD_IN
from tickwork.store.redis.scripts import Script, compose
from tickwork.store.rules import Overflow

PATIENCE = 15.0  # seconds for which a call is repeated while Redis fails over or restarts
SHORTEST_TIMEOUT = 0.5  # seconds, for a sibling
WAKE_KEPT = 3600  # seconds after which a wake list of a queue without new tasks is removed
SLACK = 3_600_000  # milliseconds: locks and dedup keys, whose end scripts decide, expire in Redis this much later

T = TypeVar("T")

_encode = msgspec.msgpack.Encoder().encode


class Core:
    def __init__(
        self,
        target: Target,
        namespace: str = "scheduler",
        policy: Policy | None = None,
        *,
        partitions: int = 1,
        pool_size: int = 10,
        patience: float = PATIENCE,
        timeout: float = CALL_TIMEOUT,
        answer_time: float = ANSWER_TIME,
        durability: Durability = "memory",
    ) -> None:
        self.target = target
        self.url = target.url
        self.policy = policy or Policy()
        self.layout = Layout(namespace, partitions)
        self.hints = Hints()
        self.contact = Contact(Log.of(None, "store.redis"))
        self.hints.on_idle = self._listen_for
        self.own_workers: set[str] = set()  # workers whose heartbeats were sent by this object
        self.server = Server()
        self.on_wake_up: Callable[[bytes], None] = lambda token: None  # called with the content of a wake-up token
        self.durability = durability
        self._pool_size = pool_size
        self._patience = patience
        self._timeout = timeout
        self._answer_time = answer_time
        self.prefixes = self.layout.prefixes
        self._policies = {
            (prefix, quiet): self._pack_policy(number, self.policy.events and not quiet)
            for number, prefix in enumerate(self.prefixes)
            for quiet in (False, True)
        }
        self._confirmations = Confirmations()
        self._overflow = Overflow()
        self.set_clock(SystemClock().now())
        self._epochs: dict[str, bytes] = {}  # of each prefix: another one means that its data was lost
        self.queues: dict[str, None] = {}
        self.looked_at: set[str] = set()  # queues whose tasks this process assigns
        # With several partitions, by process: id and fence of the last suspect that it took (see `rules.is_suspect`).
        self.suspects: dict[str, tuple[str, int]] = {}
        self._begin()
        tell_of_forks(self)

    def _begin(self) -> None:
        """Set up what belongs to this process and its event loops; again in the child of a fork."""
        self.channel = f"{self.layout.root}ended:{os.getpid()}.{new_nonce()}"
        self._by_loop = ConnectionsByLoop(self._connect, self.url)
        self._servers = KnownServers(by_sentinels=self.target.kind == "sentinel")
        self.sockets = SocketPool(self._servers, self.target.access, self._pool_size, self._greeting)
        self.connections = self._by_loop.here
        self._reopening: asyncio.Future[None] | None = None
        self._hints_under_way: set[asyncio.Future[None]] = set()
        self.reach = Reach(self._knock, self.hints.notify_all, self._answer_time)
        self._open = False

    async def _knock(self, prefix: str) -> None:
        """A partition that could not be reached is tried again. It may come back without its data."""
        if await self._enter_prefix(prefix):
            await self._came_back_empty([prefix])

    async def _enter_reached(self, prefix: str) -> bool:
        if self.alone:
            return await self._enter_prefix(prefix)
        return await self.reach.call(prefix, lambda: self._enter_prefix(prefix))

    def after_fork(self) -> None:
        """In the child of a fork. Links close themselves. The parent's event loops, and the tasks on them, are kept
        referenced, since they must not be finalized here."""
        keep((self._by_loop.all(), self._reopening, self._hints_under_way))
        self.hints.forget()
        self.contact.reset()
        self._begin()

    def _pack_policy(self, log: int, events: bool) -> bytes:
        """The values of the policy as MessagePack, in the order in which `prelude.lua` reads them."""
        policy = self.policy
        values = (
            events, policy.events_max, self.alone, len(self.prefixes), log, policy.lease_ttl, policy.renew_interval,
            policy.max_losses, policy.dlq, policy.dlq_max, policy.dedup, SLACK, policy.retention, policy.retention_max,
            policy.log_lines_max, policy.attempts_max,
        )  # fmt: skip
        return b"".join(map(_encode, values))

    # --- life

    async def open(self) -> None:
        self._by_loop.allow()
        if self._open:
            return
        self.server = await self._check_servers()
        await self._enter()
        self._open = True

    async def connect(self) -> None:
        """Only check the servers: for a migration, which needs no namespace of this layout."""
        self._by_loop.allow()
        self.server = await self._check_servers()

    async def stored_layout(self) -> str | None:
        """The layout of the namespace, and of how far a migration has come: `2>3`. None if there is no namespace."""
        root = self.layout.root
        for prefix in (root, self.layout.before(root)):
            found = await self.ask(root, "HGET", f"{prefix}meta", "version")
            if found is not None:
                return str(found.decode())
        return None

    async def _check_servers(self) -> Server:
        """Check every server that holds a part of the namespace. The oldest version decides which features are used."""
        keys = self.prefixes if self.target.kind == "cluster" else self.prefixes[:1]
        keys = [key for key in keys if self.reach.has(key)] or keys
        servers = [await check_server(self.connections().wire, key, self.durability) for key in keys]
        return min(servers, key=lambda server: server.version)

    async def _enter(self) -> None:
        """Create the namespace if it does not exist, and notice if it was lost since it was opened before."""
        await self._came_back_empty([prefix for prefix in self.prefixes if await self._enter_prefix(prefix)])

    async def _enter_again(self, prefix: str) -> None:
        """A script was refused, as it does not know the layout of this prefix: it is gone, or was migrated."""
        await self._came_back_empty([prefix] if await self._enter_prefix(prefix) else [])

    async def _enter_prefix(self, prefix: str) -> bool:
        """Whether what is under this prefix was lost since it was opened before."""
        before = self.layout.before(prefix)
        reply = await self._run_once("open", prefix, VERSION, len(self.layout.parts), new_nonce(), before)
        now, version, partitions, epoch = reply
        if prefix == self.layout.root:
            self.set_clock(now)
        self._check_layout(version.decode(), int(partitions))
        known, self._epochs[prefix] = self._epochs.get(prefix, epoch), epoch
        return bool(known != epoch)

    def _check_layout(self, version: str, partitions: int) -> None:
        where = f"namespace {self.layout.namespace!r} at {self.url}"
        if version.endswith(f">{VERSION}"):
            raise StoreUnavailable(
                f"{where} is being migrated to layout {VERSION}. If the migration was interrupted, run "
                "`tickwork migrate` again"
            )
        if version == BEFORE:
            raise StoreError(
                f"{where} was written by an older version of Tickwork (layout {version}, this one uses {VERSION}). "
                "Stop the nodes of the older version, then run `tickwork migrate`"
            )
        if version != VERSION:
            raise StoreError(
                f"{where} was written by a newer version of Tickwork (layout {version}, this one uses {VERSION}): "
                "upgrade this process"
            )
        if partitions != len(self.layout.parts):
            raise StoreError(f"{where} has partitions={partitions}, not {len(self.layout.parts)}: give that number")

    async def _came_back_empty(self, lost: list[str]) -> None:
        if not lost:
            return
        what = f"all tasks of {self.layout.namespace} are lost"
        if len(lost) < len(self.prefixes):
            what = f"what was under {', '.join(lost)} is lost"
        self.contact.log.error("Redis at %s came back without its data: %s", self.url, what)
        if self.layout.root in lost:
            self.hints.notify(RESET)
        await self._pause_again([part for part in self.layout.parts if part in lost])
        self.hints.notify_all()

    async def _pause_again(self, lost: list[str]) -> None:
        """What is paused in any other partition is paused in these too. One of the others may have been lost with them,
        and have nothing paused until its own loss is noticed."""
        kept = [part for part in self.layout.parts if part not in lost and self.reach.has(part)]
        if not lost:
            return
        pauses: dict[bytes, bytes] = {}
        for part in kept:
            try:
                found = await self.ask(part, "HGETALL", f"{part}pauses")
            except StoreUnavailable:  # the others have the same pauses
                continue
            pauses.update(zip(found[::2], found[1::2], strict=True))
        for name, what in pauses.items():
            kind, _, subject = name.decode().partition(":")
            note = what.partition(b" ")[2]
            for part in lost:
                await self.run("pause", part, kind, subject, "pause", note, quiet=True)

    async def close(self) -> None:
        found = self._by_loop.give_up()
        self._open = len(self._by_loop) > 0
        for hint in list(self._hints_under_way):
            hint.cancel()
        self.reach.close()
        self.sockets.close()
        if found is not None:
            await found.listener.close()
            await found.wire.close()

    def sibling(self) -> Core:
        twin = Core(
            self.target,
            self.layout.namespace,
            self.policy,
            partitions=len(self.layout.parts),
            pool_size=1,
            patience=0.0,
            timeout=max(min(self._timeout, self.policy.lease_ttl / 3000), SHORTEST_TIMEOUT),
            # Short, since one heartbeat calls the members, then the partitions, and must be over before a lease is.
            answer_time=min(ANSWER_TIME, self.policy.lease_ttl / 8000),
            durability=self.durability,
        )
        twin.contact = self.contact
        twin.server = self.server  # a sibling is never opened, so it does not look up the version itself
        return twin

    def set_clock(self, now: int) -> None:
        """Set the clock by the server's time, which a script has just answered."""
        self._skew = now - time.monotonic_ns() // 1_000_000

    def now(self) -> int:
        return time.monotonic_ns() // 1_000_000 + self._skew

    # --- wake-ups

    def hint(self, topic: str) -> Hint:
        hint = self.hints.add(topic)
        self.connections().listener.add(topic)
        return hint

    def _listen_for(self, topic: str) -> None:
        self.connections().listener.idle(topic)

    def wake(self, queues: set[str], part: str) -> None:
        """Wake an idle worker of these queues, if there are several partitions: scripts of one partition cannot write
        to the wake lists of the namespace. The token names the partition; nobody waits for this call."""
        if self.alone or not self.reach.has(self.layout.root):
            return
        hint = asyncio.ensure_future(self._push_hints(sorted(queues), self.layout.parts.index(part)))
        self._hints_under_way.add(hint)
        hint.add_done_callback(self._hints_under_way.discard)

    def wake_blocking(self, queue: str, part: str) -> None:
        """The same in a thread without an event loop."""
        root = self.layout.root
        if not self.reach.is_in_doubt(root):
            with contextlib.suppress(CannotSay):
                self.sockets.call(root, self._wake_up(queue, self.layout.parts.index(part)))

    def _wake_up(self, queue: str, place: int) -> list[bytes]:
        """Commands that leave a token with the number of a partition."""
        key = f"{self.layout.root}wake:{queue}"
        trim = pack("LTRIM", key, -len(self.layout.parts), -1)
        return [pack("RPUSH", key, place), trim, pack("EXPIRE", key, WAKE_KEPT)]  # no script sees all lanes of a queue

    async def _push_hints(self, queues: list[str], place: int) -> None:
        async def push() -> None:
            for queue in queues:
                for command in self._wake_up(queue, place):
                    await self.connections().wire.run(self.layout.root, command)

        try:
            await self.reach.call(self.layout.root, push)
        except (StoreError, LinkLost):  # workers look by themselves after `scan_interval`
            return

    # --- calls

    def _connect(self) -> LoopConnections:
        wire = Wire(self.target, self._pool_size, self._patience, self._timeout, self.contact, self._servers)
        wire.on_reconnect = self._reconnected
        wire.greeting = self._greeting
        listener = Listener(
            wire, self.hints, self.layout.root, self.channel, self.queues, self.looked_at, self.on_wake_up,
            self.own_workers,
        )  # fmt: skip
        return LoopConnections(wire, listener)

    def _reconnected(self) -> None:
        """Called after all connections to a server were lost: it may have restarted, perhaps without its data."""
        if self._open and (self._reopening is None or self._reopening.done()):
            self._reopening = asyncio.ensure_future(self._reopen())

    async def _reopen(self) -> None:
        try:
            found = await self.reach.each(self.prefixes, self._enter_reached, needed=self.alone)
            await self._came_back_empty([prefix for prefix in self.prefixes if found.get(prefix)])
            self.server = await self._check_servers()
        except StoreError as error:
            if not self._by_loop.closed_here:
                self.contact.log.error("%s", error)

    def _greeting(self, prefix: str) -> bytes | None:
        """The command that comes first on each connection (`greet.lua`). Not needed with several partitions, where the
        numbers of facts follow the time."""
        if not self.alone:
            return None
        policy = self._policies[prefix, False]
        return pack("EVAL", self.script("greet").text, 2, prefix, f"{prefix}-", self.layout.root, policy)

    def policy_of(self, prefix: str) -> bytes:
        """The second argument of every script on the keys of this prefix."""
        return self._policies[prefix, False]

    async def run(self, name: str, prefix: str, *args: Any, purpose: str = "ask", quiet: bool = False) -> Any:
        """Run a script on the keys of one prefix. If they are gone, or a newer version has migrated them, the namespace
        is entered again, which creates it or says what is wrong."""
        try:
            return await self._run_once(name, prefix, *args, purpose=purpose, quiet=quiet)
        except OtherLayout:
            await self._enter_again(prefix)
            return await self._run_once(name, prefix, *args, purpose=purpose, quiet=quiet)

    async def _run_once(self, name: str, prefix: str, *args: Any, purpose: str = "ask", quiet: bool = False) -> Any:
        policy = self._policies[prefix, quiet]
        return await self.connections().wire.script(
            self.script(name), prefix, self.layout.root, policy, *args, purpose=purpose
        )

    def ready_link(self, prefix: str) -> Link | None:
        """A connection on which a script may be sent at once; None if there is none, or the server is in doubt."""
        return None if self.contact.lost_since is not None else self.connections().wire.ready(prefix)

    def can_block(self, prefix: str) -> bool:
        """Whether a thread without an event loop may call a script through `sockets`."""
        return self._open and self.contact.lost_since is None

    async def reached(self, name: str, prefix: str, *args: Any, purpose: str = "ask") -> Any:
        """Run a script. With several partitions it fails soon if this one cannot be reached."""
        if self.alone:
            return await self.run(name, prefix, *args, purpose=purpose)
        return await self.reach.call(prefix, lambda: self.run(name, prefix, *args, purpose=purpose))

    async def run_durably(self, durability: Durability, name: str, prefix: str, *args: Any) -> Any:
        """Run a script and wait until its writes are as safe as `durability` says. If too few confirm, it is unknown
        whether the writes are safe; the call, which changes nothing the second time, is then repeated for
        `patience`."""
        if durability == "memory":
            return await self.run(name, prefix, *args)
        try:
            return await self._run_durably(durability, name, prefix, *args)
        except OtherLayout:
            await self._enter_again(prefix)
            return await self._run_durably(durability, name, prefix, *args)

    async def _run_durably(self, durability: Durability, name: str, prefix: str, *args: Any) -> Any:
        sent, give_up_at = False, time.monotonic() + self._patience
        while True:
            wait = await self._confirmations.command(durability, prefix, self.connections().wire, self.server)
            if wait == ():
                return await self.run(name, prefix, *args)
            if wait is not None:
                reply, acks = await self.connections().wire.script(
                    self.script(name),
                    prefix,
                    self.layout.root,
                    self._policies[prefix, False],
                    *args,
                    purpose=DURABLE,
                    wait=wait,
                )
                if isinstance(acks, hiredis.ReplyError):
                    raise StoreError(f"Redis at {self.url} took it, but cannot confirm {durability!r}: {acks}")
                if enough(acks, wait):
                    return reply
                sent = True
            if time.monotonic() > give_up_at:
                raise StoreUnavailable(self._unconfirmed(durability, sent))
            if wait is None:
                await asyncio.sleep(NO_REPLICA)

    def _unconfirmed(self, durability: Durability, sent: bool) -> str:
        if not sent:
            return f"durability={durability!r}, but no replica is connected to Redis at {self.url}: nothing was sent"
        return (
            f"Redis at {self.url} took it, but {durability!r} was not confirmed in {self._patience:g} s. "
            "Whether it is kept is unknown; submitting it again with the same id is safe"
        )

    def script(self, name: str) -> Script:
        return compose(name, self.server.modern)

    async def ask(self, key: str, *command: Any) -> Any:
        """A plain command that only reads."""
        return await self.connections().wire.call(key, *command)

    async def ask_all(self, key: str, commands: list[tuple[Any, ...]]) -> list[Any]:
        return await self.connections().wire.calls(key, commands)

    async def read_leases(self, prefix: str, records: list[Record]) -> None:
        """Fill in until when those of these tasks that run or are assigned are held: the scores in the lists of their
        workers."""
        held = [record for record in records if record.status in HELD]
        if held:
            scores = [("ZSCORE", f"{prefix}{HELD_IN[record.status]}{record.worker_id}", record.id) for record in held]
            for record, end in zip(held, await self.ask_all(prefix, scores), strict=True):
                record.lease_until = int(float(end or 0))

    def warn_of_dropped(self, dropped: list[bytes]) -> None:
        """Warn of dead letters that a script has dropped; each line has the id and the type."""
        for line in dropped:
            task_id, _, kind = line.decode().partition("\n")
            self._overflow.add(self.contact.log, task_id, kind)

    def look_at(self, queues: tuple[str, ...]) -> None:
        if self.looked_at != set(queues):
            self.looked_at.clear()
            self.looked_at.update(queues)

    @property
    def alone(self) -> bool:
        """The namespace has only one partition."""
        return len(self.layout.parts) == 1

    def part(self, task_id: str) -> str:
        parts = self.layout.parts
        return parts[0] if len(parts) == 1 else parts[self.layout.part_of(task_id)]

    async def by_part(self, items: list[Any], ids: list[str], act: Any) -> list[Any]:
        """Call `act` once for each partition, with its items; the results are in the order of all items."""
        if len(self.layout.parts) == 1:
            return list(await act(self.layout.root, items))
        groups: dict[str, list[int]] = {}
        for index, task_id in enumerate(ids):
            groups.setdefault(self.part(task_id), []).append(index)
        answers: list[Any] = [None] * len(items)
        for (_, places), replies in zip(
            groups.items(),
            await asyncio.gather(*(act(part, [items[i] for i in places]) for part, places in groups.items())),
            strict=True,
        ):
            for place, reply in zip(places, replies, strict=True):
                answers[place] = reply
        return answers

    async def by_slices(self, items: list[Any], ids: list[str], size: int, act: Any) -> list[Any]:
        """The same for many items: `act` gets at most `size` at a time, and those of one partition in their order."""

        async def act_in_slices(part: str, group: list[Any]) -> list[Any]:
            answers: list[Any] = []
            for start in range(0, len(group), size):
                answers += await act(part, group[start : start + size])
            return answers

        return await self.by_part(items, ids, act_in_slices) if items else []


class Part:
    def __init__(self, core: Core) -> None:
        self._core = core
