"""A store whose calls are told to observers. It stands between a scheduler and its store only while somebody wants to
hear of them."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import Any, cast

from tickwork.observe.batches import TasksCreated
from tickwork.observe.bus import Bus
from tickwork.observe.observations import LeasesRenewed, StoreCalled, TasksClaimed, TaskSubmitted
from tickwork.store.contract import Advance, Claim, Claimed, Durability, Extended, Finished, Receipt, Spec, Store
from tickwork.store.wrapped import Blocking, Method, Wrapped

TOLD_BY_STORE = (StoreCalled, TaskSubmitted, TasksCreated, TasksClaimed, LeasesRenewed)


def observed(store: Store, bus: Bus) -> Store:
    """The same store, if nobody wants to hear of its calls."""
    wanted = any(bus.wants(kind) for kind in TOLD_BY_STORE)
    return cast("Store", _Observed(store, bus)) if wanted else store


class _Observed(Wrapped):
    def __init__(self, store: Store, bus: Bus) -> None:
        super().__init__(store, partial(_timed, bus), partial(_timed_blocking, bus))
        self._bus = bus

    def sibling(self) -> Store:
        sibling = self._store.sibling()
        return cast("Store", self) if sibling is self._store else cast("Store", _Observed(sibling, self._bus))


def _timed(bus: Bus, part: str, name: str, method: Method) -> Method:
    if (part, name) == ("tasks", "stand"):
        return _answer_only(bus, method)
    tell = _TELL.get((part, name))

    async def timed(*args: Any, **options: Any) -> Any:
        started = time.perf_counter()
        try:
            answer = await method(*args, **options)
        except BaseException as error:
            bus.publish(StoreCalled, StoreCalled(part, name, time.perf_counter() - started, error))
            raise
        if bus.wants(StoreCalled):
            bus.publish(StoreCalled, StoreCalled(part, name, time.perf_counter() - started))
        if tell is not None:
            tell(bus, answer, *args, **options)
        return answer

    return timed


def _timed_blocking(bus: Bus, method: Blocking) -> Blocking:
    """Told as a `submit`. One that could not be done this way is made again as such, which tells of it."""

    def timed(spec: Spec, durability: Durability | None = None, seconds: float | None = None) -> Receipt | None:
        started = time.perf_counter()
        receipt: Receipt | None = method(spec, durability, seconds)
        if receipt is not None:
            if bus.wants(StoreCalled):
                bus.publish(StoreCalled, StoreCalled("tasks", "submit", time.perf_counter() - started))
            _of_submit(bus, [receipt], [spec])
        return receipt

    return timed


def _answer_only(bus: Bus, method: Method) -> Method:
    """Of a claim that waits for work: how long that takes says nothing of the store."""

    async def told(claim: Claim, seconds: float) -> Claimed | None:
        claimed: Claimed | None = await method(claim, seconds)
        if claimed is not None:
            _of_claim(bus, claimed, claim)
        return claimed

    return told


# --- what the arguments and the answers of some calls tell beside that; the parameters are named as in the contract

Tell = Callable[..., None]


def _of_submit(
    bus: Bus, receipts: list[Receipt], specs: list[Spec], durability: object = None, waiter: object = None
) -> None:
    if bus.wants(TasksCreated):
        pairs = zip(specs, receipts, strict=True)
        bus.publish(TasksCreated, TasksCreated([spec for spec, receipt in pairs if receipt.verdict == "created"]))
    if bus.wants(TaskSubmitted):
        for spec, receipt in zip(specs, receipts, strict=True):
            bus.publish(TaskSubmitted, TaskSubmitted(spec.id, spec.type, spec.queue, receipt.verdict, spec.priority))


def _of_advance(
    bus: Bus, done: Advance | None, schedule_id: str, seen: int | None, step: Advance, ticks: tuple[Spec, ...] = ()
) -> None:
    if done is not None and done.fired is not None:
        _of_submit(bus, [Receipt(spec.id, "created") for spec in ticks], list(ticks))


def _of_claim(bus: Bus, claimed: Claimed, claim: Claim) -> None:
    if bus.wants(TasksClaimed):
        granted = len(claimed.grants) + len(claimed.unreadable)
        bus.publish(TasksClaimed, TasksClaimed(claim.worker_id, claim.limit, granted))


def _of_finish(bus: Bus, finished: Finished, outcomes: object, then_claim: Claim | None = None) -> None:
    if then_claim is not None and finished.claimed is not None:
        _of_claim(bus, finished.claimed, then_claim)


def _of_extend(bus: Bus, answers: list[Extended], leases: object, lease_ttl: object) -> None:
    if bus.wants(LeasesRenewed):
        lost, unknown = answers.count("lost"), answers.count("unknown")
        bus.publish(LeasesRenewed, LeasesRenewed(len(answers) - lost - unknown, lost, unknown))


_TELL: dict[tuple[str, str], Tell] = {
    ("tasks", "submit"): _of_submit,
    ("tasks", "claim"): _of_claim,
    ("tasks", "finish"): _of_finish,
    ("tasks", "extend"): _of_extend,
    ("schedules", "advance"): _of_advance,
}
