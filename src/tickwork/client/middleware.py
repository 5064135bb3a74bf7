"""Submits through the middleware of a program."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial
from typing import Protocol, TypeAlias

from msgspec.structs import replace

from tickwork.client.specs import check_size
from tickwork.client.targets import check_targets
from tickwork.client.views import payload_of
from tickwork.config import Config
from tickwork.errors import ConfigError
from tickwork.handlers.middleware import Middleware, NewTask, SubmitCall, SubmitNext, new_task, spec_of
from tickwork.handlers.registry import Registry
from tickwork.model.policy import Durability
from tickwork.model.tasks import Spec
from tickwork.store.contract import Receipt, Store
from tickwork.store.hints import Hint
from tickwork.texts import shown

Create: TypeAlias = Callable[[list[Spec]], Awaitable[list[Receipt]]]


class Send(Protocol):
    """Hands specs to a store; `waiter` is told of the end of the one task (see `Tasks.submit` of the contract)."""

    def __call__(
        self, store: Store, specs: list[Spec], durability: Durability | None, waiter: Hint | None = None, /
    ) -> Awaitable[list[Receipt]]: ...


def send_plainly(
    store: Store, specs: list[Spec], durability: Durability | None = None, waiter: Hint | None = None, /
) -> Awaitable[list[Receipt]]:
    """The way of a submit while no middleware is used."""
    if any(spec.target is not None for spec in specs):
        return _send_to_targets(store, specs, durability, waiter)
    return store.tasks.submit(specs, durability, waiter)


async def _send_to_targets(
    store: Store, specs: list[Spec], durability: Durability | None, waiter: Hint | None
) -> list[Receipt]:
    await check_targets(store, specs)
    return await store.tasks.submit(specs, durability, waiter)


class SubmitChain:
    """The middleware of one scheduler around its submits."""

    def __init__(self, registry: Registry, config: Config) -> None:
        self._registry = registry
        self._limit = config.payload_limit

    @classmethod
    def of(cls, registry: Registry, config: Config) -> SubmitChain | None:
        """None if no middleware is around submits."""
        return cls(registry, config) if registry.middleware.around_submit else None

    async def send(
        self, store: Store, specs: list[Spec], durability: Durability | None = None, waiter: Hint | None = None, /
    ) -> list[Receipt]:
        """Instead of `send_plainly`."""
        return await self.submit(specs, lambda changed: send_plainly(store, changed, durability, waiter))

    async def submit(self, specs: list[Spec], create: Create) -> list[Receipt]:
        """`create` is called with what the middleware made of the specs."""

        async def create_changed(call: SubmitCall) -> list[Receipt]:
            return await create([self._changed(task) for task in call.tasks])

        following: SubmitNext = create_changed
        for middleware in reversed(self._registry.middleware.around_submit):
            following = partial(_submit, middleware, following)
        return await following(
            SubmitCall([new_task(spec, partial(payload_of, spec, self._registry)) for spec in specs])
        )

    def _changed(self, task: NewTask) -> Spec:
        spec = spec_of(task)
        if spec is not task._spec:
            check_size(spec, self._limit)
            if (spec.queue, spec.key) != (task._spec.queue, task._spec.key):
                spec = replace(spec, fair=self._registry.fair.cost(spec.queue, spec.key))
        return spec


async def _submit(middleware: Middleware, following: SubmitNext, call: SubmitCall, /) -> list[Receipt]:
    asked = len(call.tasks)
    receipts = await middleware.submit(call, following)
    if isinstance(receipts, list) and len(receipts) == asked and all(isinstance(each, Receipt) for each in receipts):
        return receipts
    raise ConfigError(
        f"{type(middleware).__qualname__}.submit must return a receipt for each task of the call, as `return await "
        f"next(call)` does, not {shown(receipts)}"
    )
