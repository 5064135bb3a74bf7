"""Remote workers as an administrator registers them, and the secrets by which they are known."""

from __future__ import annotations

import msgspec
from msgspec.structs import asdict

from tickwork.client.access import Access
from tickwork.config import Config
from tickwork.errors import ConfigError, TickworkError
from tickwork.handlers.options import count, name
from tickwork.model.info import RemoteWorker
from tickwork.model.members import Worker
from tickwork.outbound.addresses import Allowed
from tickwork.outbound.keys import derive
from tickwork.outbound.secrets import AdministratorSecret
from tickwork.remote.signing import Keys
from tickwork.store.joining import taken
from tickwork.texts import shown

LABEL = "tickwork worker"
KEPT_MAX = 10_000  # keys of so many workers
CAPACITY_MAX = 1_000_000


def is_called(member: Worker) -> bool:
    """Whether nodes call this member: it is not a node itself, and has an address."""
    return bool(member.address) and not member.node


async def register(access: Access, worker: RemoteWorker) -> None:
    member = _member(worker)
    if member.address:
        check_address(access.config, member.id, member.address)
    store = await access.open_store()
    for other in await store.members.workers():
        if other.id == member.id and other.lost_at is None and not other.node and other.address != member.address:
            where = f"at {shown(other.address)}" if other.address else "without an address"
            raise TickworkError(
                f"worker {member.id} is online {where}: unregister it first, or give the new one another id"
            )
    heard = await store.members.beat(member, round(access.config.worker_timeout * 1000))
    if heard.rival is not None:
        raise TickworkError(taken(heard.rival, store.now()))


def _member(worker: RemoteWorker) -> Worker:
    try:
        member = msgspec.convert({**asdict(worker), "declares": ()}, Worker)
    except msgspec.ValidationError as error:  # stored as it is, it would be unreadable to everybody
        raise ConfigError(f"worker {shown(worker.id)} cannot be registered: {error}") from None
    name("a worker's id", member.id)
    for kind in ("queue", "task type"):
        for each in member.queues if kind == "queue" else member.task_types:
            name(kind, each)
    count("capacity", member.capacity, 1, CAPACITY_MAX)
    count("weight", member.weight, 1, CAPACITY_MAX)
    # What the leader assigns to it is what nodes call it with.
    return msgspec.structs.replace(member, assigned=member.queues) if member.address else member


def check_address(config: Config, worker_id: str, address: str) -> None:
    """Raises `ConfigError` when nodes may not call this address."""
    try:
        checked = Allowed(config.allow_addresses).check(address)
    except ConfigError as error:
        raise ConfigError(f"worker {worker_id} cannot be registered: {error}") from None
    if "?" in checked.path:
        raise ConfigError(f"worker {worker_id} cannot be registered: its address {shown(address)} has a query (?)")


class WorkerKeys:
    """The secrets and keys of all remote workers of a namespace, made of the administrator's secret."""

    def __init__(self, config: Config) -> None:
        self._namespace = config.namespace
        self._administrator = None if config.secret_file is None else AdministratorSecret(config.secret_file)
        self._made: dict[tuple[bytes, str], Keys] = {}

    def secret(self, worker_id: str) -> bytes:
        """Raises `ConfigError` when there is no administrator's secret, or it cannot be read."""
        return self._derive(self._secret(), worker_id)

    def of(self, worker_id: str) -> Keys:
        secret = self._secret()
        keys = self._made.get((secret, worker_id))
        if keys is None:
            if len(self._made) >= KEPT_MAX:
                self._made.clear()
            keys = self._made[secret, worker_id] = Keys.of(self._derive(secret, worker_id))
        return keys

    def _secret(self) -> bytes:
        if self._administrator is None:
            raise ConfigError(
                "remote workers need secret_file, the path of a file with the administrator's secret: "
                "head -c 32 /dev/urandom | base64 makes one"
            )
        return self._administrator.bytes()

    def _derive(self, secret: bytes, worker_id: str) -> bytes:
        return derive(secret, LABEL, f"{self._namespace}/{worker_id}")
