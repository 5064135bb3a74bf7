"""Tasks that name the worker that is to run them."""

from __future__ import annotations

from collections.abc import Iterable

from tickwork.errors import ConfigError
from tickwork.ids import name_of
from tickwork.model.tasks import Spec
from tickwork.store.contract import Store
from tickwork.texts import shown

SHOWN_MAX = 10  # workers that an error names


async def check_targets(store: Store, specs: Iterable[Spec]) -> None:
    """Raises `ConfigError` if a task names a worker that the store does not know: it would wait for ever. One that is
    offline now may come back."""
    wanted = {spec.target for spec in specs if spec.target is not None and "@" in spec.needs}
    if not wanted:
        return
    workers = await store.members.workers()
    for worker in workers:
        if worker.id in wanted and not (worker.node or worker.address):
            raise ConfigError(
                f"target: worker {worker.id} has no address, so no node can call it; register it with one"
            )
    known = {worker.id for worker in workers}
    known |= {name_of(worker_id) for worker_id in known}
    for target in sorted(wanted - known):
        names = ", ".join(sorted(known)[:SHOWN_MAX]) or "none"
        raise ConfigError(f"target: there is no worker {shown(target)}; known are {names}")
