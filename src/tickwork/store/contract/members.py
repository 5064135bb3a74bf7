"""Members: the workers that are alive, and which node leads."""

from __future__ import annotations

from typing import Protocol

from msgspec import Struct

from tickwork.model.members import Leader, Order, OrderKind, Worker


class Heard(Struct, frozen=True):
    """The answer to a heartbeat: who leads, and the orders that are kept for the worker. `rival` is a living member of
    the same name that belongs to another node; then the heartbeat has changed nothing."""

    leader: Leader | None
    rival: Worker | None = None
    order: Order = ""


class Members(Protocol):
    async def beat(self, worker: Worker, ttl: int | None = None, *, join: bool = True) -> Heard:
        """Become a member or stay one, for `ttl` or the length of a lease. Refused while a member of that name that
        belongs to another node lives: one that is not lost and whose time has not run out. Without `join` only
        one that is listed already, at the same address, stays a member or is one again, as it was described when it
        joined; else nothing is changed."""

    async def order(self, worker_id: str, kind: OrderKind, value: str | None) -> bool:
        """Keep an order for a member, in place of the one of that kind before; None takes it back. Orders of other
        kinds stay (`ordered`). Every answer to a heartbeat of the member has them all, and so has `workers`. They end
        with the process: when the member leaves or is forgotten, or when a member of another node takes its name. A
        change raises `CONTROL` and is logged. False when there is no such member, or it is lost."""

    async def leave(self, worker_id: str, node: str = "") -> None:
        """Be a member no more; with `node` only if the member belongs to that node."""

    async def workers(self, counted: bool = False) -> list[Worker]:
        """All members, by their ids, also those that are lost for a while. `running` is what each said with its last
        heartbeat; with `counted` it is the number of its leases now, which costs a look at the leases."""

    async def campaign(self, node: str, ttl: int) -> Leader:
        """Take the leadership if it is free, or renew one's own; answers who leads. A new leader gets a new term."""

    async def leader(self) -> Leader | None:
        """Who leads now."""

    async def resign(self, node: str, term: int) -> bool:
        """Give the leadership up at once. True also when sent again, while nobody else leads; the fact is logged
        once."""
