"""The executors of a scheduler, by name."""

from __future__ import annotations

import asyncio
import builtins
import inspect
import time
from collections.abc import Iterable, Mapping

from tickwork.config import Config
from tickwork.errors import ConfigError
from tickwork.executors.base import Executor
from tickwork.executors.grpc import GRPC, GrpcExecutor
from tickwork.executors.local import LocalExecutor
from tickwork.handlers.executor_names import LOCAL
from tickwork.handlers.options import name as checked_name
from tickwork.handlers.registry import Registry
from tickwork.observe.loggers import Log
from tickwork.outbound.addresses import Allowed
from tickwork.texts import shown

STOP_MIN = 0.1  # seconds that each executor has to stop, also if others took all of the time


class Executors:
    """Where tasks may run. `local` is always there; programs add others before they are started."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self._known: dict[str, Executor] = {}
        self._configured: builtins.list[str] = []
        self._started: builtins.list[Executor] | None = None  # None while no node of this scheduler runs

    def register(self, name: str, executor: Executor | None, *, types: Iterable[str] = ()) -> None:
        """Make an executor known by its name, for `executor=` of tasks and handlers.

        `types` are task types that have no handler in this program and are run by this executor. None instead of an
        executor is for programs that submit tasks for it and do not run them.
        """
        checked_name("an executor's name", name)
        if self._started is not None:
            raise ConfigError(f"executor {name!r} must be registered before the scheduler is started")
        if executor is not None and not inspect.iscoroutinefunction(getattr(executor, "run", None)):
            raise ConfigError(
                f"executor {name!r} needs a method `async def run(self, task, entry, context)`; {shown(executor)} has "
                "none"
            )
        self._registry.add_executor(name, types)
        if executor is not None:
            self._known[name] = executor

    def configure(self, config: Config) -> None:
        """Register those that the configuration names, in the place of those that an earlier one named."""
        for name in self._configured:
            self._registry.executors.remove(name)
            del self._known[name]
        self._configured.clear()
        allowed = Allowed(config.allow_addresses)  # read also if nobody is called yet
        if config.grpc_targets:
            grpc = GrpcExecutor(config.grpc_targets, allowed, config.namespace)
            self._add_configured(GRPC, grpc, grpc.types, grpc.targets)
        if config.endpoints:
            from tickwork.executors.http import HTTP, HttpExecutor  # most programs call nobody

            http = HttpExecutor(config.endpoints, allowed, self._registry)
            self._add_configured(HTTP, http, http.types, http.targets)

    def _add_configured(self, name: str, executor: Executor, types: Iterable[str], targets: Iterable[str]) -> None:
        self._registry.add_executor(name, types, targets)
        self._known[name] = executor
        self._configured.append(name)

    def list(self) -> builtins.list[str]:
        """The names of all that are known here, also of those that cannot run tasks here."""
        return self._registry.executors.list()

    def of_worker(self, worker_id: str, config: Config) -> tuple[LocalExecutor, Mapping[str, Executor]]:
        """Those that run tasks for one worker. The local one, with its threads and processes, is the worker's own."""
        local = LocalExecutor(self._registry, config.concurrency, worker_id, config.max_tasks_per_child)
        return local, {LOCAL: local, **self._known}

    async def start(self) -> None:
        """Start those that have something to start, in the order in which they were registered."""
        self._started = []
        for executor in self._known.values():
            if (start := getattr(executor, "start", None)) is not None:
                await start()
            self._started.append(executor)

    async def stop(self, grace: float, log: Log) -> None:
        """Stop those that were started, the last one first. One that fails or takes too long holds up no other."""
        started, self._started = self._started or [], None
        end = time.monotonic() + grace
        for executor in reversed(started):
            if (stop := getattr(executor, "stop", None)) is None:
                continue
            try:
                left = max(end - time.monotonic(), STOP_MIN)
                async with asyncio.timeout(left):
                    await stop(left)
            except Exception as error:
                log.error("executor %s could not be stopped", self._name_of(executor), exc_info=error)

    def forget_started(self) -> None:
        """In the child of a fork, and when their event loop is closed, there is nothing to stop."""
        self._started = None

    def _name_of(self, executor: Executor) -> str:
        return next(name for name, known in self._known.items() if known is executor)
