"""What the parts of a client share: the store, the handlers that are known here, and the configuration."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from typing import Any, Protocol

from tickwork import host
from tickwork.client.middleware import Send, SubmitChain, send_plainly
from tickwork.client.rate_limit import RateLimit
from tickwork.client.specs import SpecMaker
from tickwork.config import Config
from tickwork.errors import ConfigError, TaskNotFound
from tickwork.handlers.executor_names import LOCAL
from tickwork.handlers.options import Options, TaskOptions, known_id
from tickwork.handlers.registry import Entry, Registry
from tickwork.model.tasks import Record, Spec
from tickwork.store.contract import Store

NOBODY_RUNS = (
    "this scheduler names no store, so the task would be kept in the memory of this process, where nothing runs it. "
    'Name the store that your workers use: Scheduler("sqlite:///tickwork.db") in the code, or TICKWORK_STORE in the '
    "environment of all processes. To run tasks in this process, start the scheduler before you submit, or name "
    "memory:// as its store."
)

NOBODY_RUNS_CHILDREN = (
    "this handler runs in a child process, where memory:// is another store than that of the worker, so the task would "
    "never run. Use a store that processes share, such as sqlite:///tickwork.db; or return what is to be done, and "
    'submit it in the worker; or leave out run_in="process".'
)


class OpenToSubmit(Protocol):
    """Opens the store for one submit, which has `submit_timeout` as a whole; `began` is when, if not now, by the
    monotonic clock."""

    def __call__(self, began: float | None = None) -> Awaitable[Store]: ...


class Access:
    """A client's access to its store, which is opened on first use."""

    def __init__(self, open_store: Callable[[], Awaitable[Store]], registry: Registry, config: Config) -> None:
        self.open_store = open_store
        self.opened_store: Callable[[], Store | None] = lambda: None  # the same, if it is open already
        self.open_to_submit: OpenToSubmit = lambda began=None: open_store()
        # Seconds for a submit in a thread without an event loop, before the background thread has the rest of
        # `submit_timeout`; None with the default of that, which no submit has to look at.
        self.blocking_limit: float | None = None
        self.registry = registry
        self.types_are_known_here = False  # on memory:// no other process can know a type
        self.runs_here = False  # this scheduler was started
        self.nobody_runs = False  # this process has its own store, which nobody named, and has not started
        self.on_rejected: Callable[[list[Spec], float], None] = lambda specs, seconds: None
        self.configure(config)
        registry.on_change(self.choose_way)

    def _rejected(self, specs: list[Spec], seconds: float) -> None:
        self.on_rejected(specs, seconds)

    def configure(self, config: Config) -> None:
        self.config = config
        self.registry.fair.configured = config.fair_queues
        self._maker = SpecMaker(self.registry, config)
        self.choose_way()

    def choose_way(self) -> None:
        """Decide how specs get to the store: through middleware, or straight while there is none."""
        chain = SubmitChain.of(self.registry, self.config)
        send: Send = send_plainly if chain is None else chain.send
        self.send: Send = RateLimit.around(self.config.rate_limit, self.registry, send, self._rejected)

    def check_that_tasks_can_run(self) -> None:
        if self.types_are_known_here and not self.runs_here and host.is_pool_child:
            raise ConfigError(NOBODY_RUNS_CHILDREN)
        if self.nobody_runs:
            raise ConfigError(NOBODY_RUNS)

    def spec(self, type: str, payload: Any, options: Options | TaskOptions) -> Spec:
        return self._maker.make(type, payload, options, self._known(type))

    def specs(self, type: str, payloads: Iterable[Any], options: Options) -> list[Spec]:
        """One for each payload."""
        return self._maker.make_many(type, payloads, options, self._known(type))

    def _known(self, type: str) -> Entry | None:
        entry = self.registry.find(type)
        if entry is None and self.types_are_known_here and self.registry.executor_of(type) == LOCAL:
            return self.registry.get(type)  # raises HandlerNotFound, naming those that are known
        return entry

    async def record(self, task_id: str) -> Record:
        known_id(task_id)
        store = await self.open_store()
        record = await store.queries.get(task_id)
        if record is None:
            raise TaskNotFound(task_id)
        return record
