"""What users import: a registry, a client and, once started, a node."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import AbstractAsyncContextManager
from datetime import datetime, timedelta
from types import TracebackType
from typing import TYPE_CHECKING, Any, Unpack, cast

from msgspec.structs import replace

from tickwork import host, logs
from tickwork.client.client import Client
from tickwork.client.functions import TaskFunction, task_maker
from tickwork.client.handle import Handle
from tickwork.client.health import health_of
from tickwork.client.jobs import Jobs
from tickwork.client.periodic import (
    Declared,
    Periodic,
    check_of_runs,
    handler_of,
    not_retried,
    of_handler,
    of_object,
    of_schedule,
)
from tickwork.client.sync import Sync
from tickwork.client.views import queue_stats
from tickwork.clock import Clock
from tickwork.config import SUBMIT_TIMEOUT, Config
from tickwork.config.loading import Loaded, load_given
from tickwork.config.remarks import unused_store
from tickwork.config.urls import mask_url
from tickwork.dispatch.strategies import Strategies
from tickwork.errors import ConfigError, TickworkError
from tickwork.executors.registry import Executors
from tickwork.forks import keep, tell_of_forks
from tickwork.handlers.lifespan import Hook, Lifespan
from tickwork.handlers.middleware import Middleware
from tickwork.handlers.options import PeriodicOptions, wait_limit
from tickwork.handlers.periodic import PeriodicTask, Runnable
from tickwork.handlers.registry import Registry, RunIn
from tickwork.ids import identity_of, name_of
from tickwork.model.health import Health
from tickwork.model.info import SchedulerStatus
from tickwork.monitor.monitor import Monitor
from tickwork.node import running
from tickwork.node.callbacks import CallbackApp
from tickwork.node.duties import Duty
from tickwork.node.node import Node, new_node_id
from tickwork.node.parts import Parts
from tickwork.node.services import Service
from tickwork.observe.bus import Bus, Subscription
from tickwork.observe.loggers import Log
from tickwork.observe.observations import Observation, SubmitRejected
from tickwork.observe.observer import Observer, Observers
from tickwork.payload.parameters import MISSING
from tickwork.store.bounded import SHARE_OF_BLOCKING, StoreTimeLimit, SubmitLimit, bounded
from tickwork.store.contract import Capabilities, Store
from tickwork.store.observed import observed
from tickwork.store.opening import (
    check_own_store,
    make_store,
    name_of_check,
    own_store,
    redis_client,
    stored_partitions,
)
from tickwork.texts import shown

if TYPE_CHECKING:
    from tickwork.client.task_types import TaskMaker
    from tickwork.config.options import ChangedOptions, SchedulerOptions
    from tickwork.monitor.health import Condition
    from tickwork.monitor.listener import Listeners, Reply
    from tickwork.remote.asgi import Receive, Scope, Send
    from tickwork.server.plane import ControlPlane
    from tickwork.webhooks.admin import Webhooks

NOT_IN_REACH = (
    "this handler runs in a child process, which cannot reach the store in memory that tickwork.testing.run has put in "
    "the place of the real one, and the real one is not for tests. Test what uses the scheduler in a child process on "
    "a store that processes share: Scheduler.configure(store=...) with a SQLite file, and no tickwork.testing.run."
)


PATIENCE = 2.0  # seconds for a Redis to say how many partitions a namespace has


class Scheduler(Client):
    """A task scheduler on one store.

    Not started, it is a client: `submit` and every query open the store on first use. Started (`async with app`,
    `start()` or `run()`), it is a node too: it runs handlers and takes its share of the scheduling.

    `store` is a URL (`memory://`, `sqlite:///file.db`, `redis://host:6379/0`), a redis-py client, whose settings are
    used, or a `Store` object of your own; none means `TICKWORK_STORE`, else `memory://`. Every option of `Config` may
    be given by name; `config` is a file of options, a mapping, or a `Config`.

    `lifespan` is called with the scheduler and gives an async context manager, which is entered before the first task
    and left after the last one; what it yields is at `ctx.state`.
    """

    def __init__(
        self,
        store: Any = None,
        *,
        namespace: str | None = None,
        config: str | os.PathLike[str] | Mapping[str, Any] | Config | None = None,
        clock: Clock | None = None,
        lifespan: Callable[[Scheduler], AbstractAsyncContextManager[Any]] | None = None,
        **options: Unpack[SchedulerOptions],
    ) -> None:
        self._own_store = own_store(store, clock)
        self._redis_client = None if store is self._own_store or isinstance(store, str) else redis_client(store)
        url = store if isinstance(store, str) else None if self._redis_client is None else "redis://"
        given = {key: value for key, value in (("store", url), ("namespace", namespace)) if value is not None}
        self._config_file = config if isinstance(config, str | os.PathLike) else None
        self._clock = clock
        self._bus = Bus()
        self._observers = Observers(self._bus)
        self._logging: list[Subscription] = []
        self._monitor = Monitor(self._bus, lambda: self._node, self.health, self._condition)
        super().__init__(self._open, Registry(), Config())
        self._access.on_rejected = lambda specs, seconds: self._bus.publish(
            SubmitRejected, SubmitRejected(tuple(spec.type for spec in specs), seconds)
        )
        self._lifespan = self.registry.lifespan = Lifespan(self, lifespan)
        self.executors = Executors(self.registry)
        self._apply(load_given({**given, **options}, config))
        self._opened = self._may_be_connected = False
        self._node: Node | None = None
        self._changing: asyncio.Event | None = None  # while a node is started or stopped
        self._stopped: asyncio.Event | None = None
        self.exhausted = False  # it stopped by itself: too many handlers are stuck, or its worker failed
        self._node_loop: asyncio.AbstractEventLoop | None = None
        self.strategies = Strategies()
        self._parts = Parts()
        self._mounted: list[ControlPlane] = []  # of applications that `asgi` has made
        self._server_is_optional = False  # nobody has asked for it: a port that is taken is no error
        self._periodic = Periodic(self.schedules)
        self._jobs = Jobs(self)
        self.task: TaskMaker = task_maker(self)
        self.sync = Sync(self)
        tell_of_forks(self)

    def configure(self, *, config: str | os.PathLike[str] | None = None, **options: Unpack[ChangedOptions]) -> None:
        """Set options, by their own names, over those it was made with; what a command line says of a program.

        Only before it is started or used. Handlers, schedules and `app.task` functions stay as they are.
        """
        if self._node is not None or self._opened:
            raise TickworkError("configure() comes before a scheduler is started or used")
        self._config_file = config or self._config_file
        if "store" in options:
            self._own_store = self._redis_client = None
        loaded = load_given({**self.loaded.set_in_code(), **options}, self._config_file)
        self._apply(loaded, of_command="store" in options)

    def _apply(self, loaded: Loaded, of_command: bool = False) -> None:
        self.loaded = loaded
        config, access = loaded.config, self._access
        self._monitor.stop()
        access.configure(config)
        self.executors.configure(config)
        self._name_node()
        url = config.store or "memory://"
        if self._own_store is not None:
            check_own_store(loaded.set_in_code())
        self._use(self._own_store or make_store(url, config, self._clock, self._redis_client))
        if self._own_store is None and self._redis_client is None:
            self.url = mask_url(url)  # as it was written, but for its password
        self._log = Log.of(config.logger)
        self._bus.log = Log.of(config.logger, "events")
        access.open_store = self._open if config.store_timeout is None else self._open_bounded
        access.opened_store = self._opened_store
        access.open_to_submit = self._open_to_submit
        limit = config.submit_timeout
        access.blocking_limit = None if limit == SUBMIT_TIMEOUT else limit * SHARE_OF_BLOCKING
        access.types_are_known_here = not self._store.capabilities.shared
        access.nobody_runs = config.store is None and self._own_store is None
        if config.serializer != "json":
            self.set_serializer(config.serializer)
        self._warnings = list(loaded.warnings)
        if not of_command and ("store" in loaded.set_in_code() or self._own_store is not None):
            self._warnings += unused_store(config.store, self.url)

    def _use(self, store: Store) -> None:
        self._store, self.url = store, store.url
        if self.config.logger is not None:
            store.contact.log = Log.of(self.config.logger, "store")
        self._observe_store()

    def _observe_store(self) -> None:
        self._observed = observed(self._store, self._bus)
        limit = self.config.store_timeout
        self._of_clients = self._observed if limit is None else bounded(self._observed, limit)

    @property
    def capabilities(self) -> Capabilities:
        """What its store can do: whether other processes see it, which durabilities it has, and so on."""
        return self._store.capabilities

    @property
    def webhooks(self) -> Webhooks:
        """The webhooks of its configuration: how they are, and switching one on again."""
        from tickwork.webhooks.admin import Webhooks  # most programs have none

        return Webhooks(self._access)

    def _name_node(self) -> None:
        given = self.config.scheduler_id
        self.id = given or new_node_id()
        self._identity = identity_of(given) if given else self.id  # by which the store tells two of one name apart

    def _be_one_of_several(self, number: int, parent: int) -> None:
        """In a process that was forked to run this application beside others: a node with its own name and ports."""
        config = self.config
        config = replace(
            config,
            scheduler_id=config.scheduler_id and f"{config.scheduler_id}-{number}",
            labels={"parent": str(parent), "process": str(number), **config.labels},
            health_port=config.health_port and config.health_port + number - 1,
            metrics_port=config.metrics_port and config.metrics_port + number - 1,
            server=config.server and number == 1,
        )
        self.loaded = replace(self.loaded, config=config)
        self._access.configure(config)
        self._name_node()

    @contextlib.contextmanager
    def _on_store(self, store: Store, clock: Clock | None = None) -> Iterator[None]:
        """Use another store for a while, as `tickwork.testing` does; the one before is left as it is, open or not."""
        if self._node is not None or self._changing is not None:
            raise TickworkError(
                "this scheduler is running, so it cannot be put on another store: shut it down first, or use the "
                "`tickwork.testing.run` that it is in"
            )
        access, registry = self._access, self.registry
        before = self._store, self.url, self._clock, self._opened, registry.store_is_swapped
        flags = access.types_are_known_here, access.nobody_runs, access.runs_here
        self._use(store)
        self._clock, self._opened, registry.store_is_swapped = clock, False, True
        access.types_are_known_here = access.nobody_runs = False
        try:
            yield
        finally:
            self._use(before[0])
            _, self.url, self._clock, self._opened, registry.store_is_swapped = before
            access.types_are_known_here, access.nobody_runs, access.runs_here = flags

    # --- registering

    def use(self, middleware: Middleware) -> None:
        """Put a middleware around each submit and each run; the first that is used is the outermost.

        Only before the scheduler is started.
        """
        self._check_not_started("app.use()")
        self.registry.middleware.add(middleware)
        self._access.choose_way()

    def on_startup(self, function: Hook) -> Hook:
        """Call a function, sync or async, before the first task is claimed: on the event loop of the workers, and in
        each child process. A decorator."""
        return self._lifespan.on_startup(function)

    def on_shutdown(self, function: Hook) -> Hook:
        """Call a function, sync or async, after the last task has ended, where `on_startup` is called. A decorator."""
        return self._lifespan.on_shutdown(function)

    def set_serializer(self, serializer: Any) -> None:
        """The default for payloads: a serializer, or the name of one that is known."""
        self.registry.set_serializer(self.registry.chosen(serializer))

    def periodic(
        self,
        cron: str,
        *,
        payload: Any = MISSING,
        id: str | None = None,
        run_in: RunIn | None = None,
        **options: Unpack[PeriodicOptions],
    ) -> TaskMaker:
        """Run a function, or an `app.task`, by a cron line.

            @app.periodic("0 3 * * *", payload={"kind": "daily"})
            @app.task(queue="reports")
            async def report(kind: str) -> None: ...

        The runs of a task take its own options, where nothing else is said here; `app.periodic(...)(report)` with an
        `id` of its own adds another line. A plain function becomes a task with the options that are said here, for
        runs by hand as well; a failed run of it is not retried, unless `max_retry` says so.

        The schedule is written to the store at `start()`, or at once if the scheduler runs already.
        """
        if not isinstance(cron, str):
            raise ConfigError(f'app.periodic needs a cron line, not {shown(cron)}: @app.periodic("0 3 * * *")')

        def decorate(function: Callable[..., Any]) -> TaskFunction[..., Any]:
            task: TaskFunction[..., Any]
            with self.registry.all_or_nothing():
                if isinstance(function, TaskFunction) and function.registry is self.registry:
                    if run_in is not None:
                        raise ConfigError(f"run_in of task {function.type!r} is said with app.task, not here")
                    check_of_runs(function.type, options)
                    task, of_runs = function, {**function._options, **options}
                else:
                    of_runs = not_retried(options)
                    task = self.task(id, run_in=run_in, **of_handler(of_runs))(function)
                self._declare(id or task.type, Declared(task.entry, payload, cron, of_schedule(of_runs)))
            return task

        return cast("TaskMaker", decorate)

    def register(self, task: PeriodicTask) -> None:
        """Add a periodic task object; its schedule is written at `start()`, or at once if it runs already."""
        options = of_object(task)
        with self.registry.all_or_nothing():
            entry = self.registry.register(task.name, handler_of(task), **of_handler(options))
            self._declare(task.name, Declared(entry, MISSING, task.spec, of_schedule(options)))

    def _declare(self, id: str, declared: Declared) -> None:
        self._periodic.add(id, declared, self._log)
        if self._node is not None:
            self._node.rewrite_soon()

    def add_duty(self, duty: Duty) -> None:
        """Repeat a piece of work while this scheduler runs: on the node that leads, or on every node.

        Only before the scheduler is started.
        """
        self._check_not_started("add_duty()")
        self._parts.add_duty(duty)

    def add_service(self, service: Service) -> None:
        """Run something beside the tasks of this node, such as a server; it is watched and started again after errors.

        Only before the scheduler is started.
        """
        self._check_not_started("add_service()")
        self._parts.add_service(service)

    def callback_app(self) -> CallbackApp:
        """An ASGI application that takes what remote workers report: serve it, alone or mounted in another one, at the
        address that `callback_url` names to them."""
        return CallbackApp(self._access)

    def _check_not_started(self, what: str) -> None:
        if self._node is not None or self._changing is not None:
            raise TickworkError(f"{what} comes before a scheduler is started")

    def observe(self, listener: Callable[[Any], None], *kinds: type[Observation]) -> Observer:
        """Call a function with what happens in this process: observations of these kinds, or of all kinds.

        The kinds are the classes of `tickwork.observe`. The listener is called in a thread of its own, with one
        observation at a time. What it raises is logged once and counted; while 10,000 observations wait for it,
        further ones are dropped and counted. Only before the scheduler is started.
        """
        self._check_not_started("observe()")
        observer = self._observers.add(listener, kinds)
        self._observe_store()
        return observer

    def list_registered(self) -> list[str]:
        """The names of all periodic tasks of this program."""
        return self._periodic.names

    # --- life

    async def start(self, *, work: bool = True, lead: bool = True) -> None:
        """Open the store, write the periodic schedules, start working. Raises when the store cannot be opened."""
        if self._node is not None or self._changing is not None:
            raise TickworkError("this scheduler has been started already, or is being started or shut down")
        with self._change():
            try:
                await self._start(work, lead)
            except BaseException:
                await self._end(0)
                raise

    @contextlib.contextmanager
    def _change(self) -> Iterator[None]:
        """Starting and stopping take a while; whoever comes in between waits for the end of it, or is refused."""
        changing = self._changing = asyncio.Event()
        try:
            yield
        finally:
            self._changing = None
            changing.set()

    async def _start(self, work: bool, lead: bool) -> None:
        strategy = self.strategies.of(self.config.load_balance_strategy)
        if work:
            self.registry.check_processes()
        if not self.registry.store_is_swapped:
            self._start_monitor()
        store = await self._open()
        if self.config.log_level or self.config.debug:
            self._log.setLevel("DEBUG" if self.config.debug else str(self.config.log_level).upper())
        for before in self._logging:  # or a second start would log everything twice
            before.cancel()
        self._logging = logs.subscribe(self._bus, self._log)
        self.exhausted = False
        self._stopped = asyncio.Event()
        self._node_loop = asyncio.get_running_loop()
        self._access.nobody_runs = False
        self._access.runs_here = True
        if work:
            log, patience = Log.of(self.config.logger, "lifespan"), self.config.shutdown_timeout
            await self._lifespan.start("this scheduler does not start", log, patience, self._give_up)
        await self._periodic.write()
        self._node = Node(
            self.id, self._identity, store, self.registry, self.executors, self.config, self._bus,
            self._parts_of_node(store, work), work=work, lead=lead, on_exhausted=self._give_up,
            on_reset=self._periodic.write, strategy=strategy, declared=lambda: self._periodic.names,
        )  # fmt: skip
        await self._node.start()
        self._log.line(logging.INFO, "Task scheduler started", tasks=len(self._periodic.names), id=self.id,
                 store=self.url)  # fmt: skip

    def _start_monitor(self) -> None:
        types, schedules = self.registry.list(), self._periodic.names
        if self._monitor.start(self.config, self.id, self.url, types, schedules):
            self._observe_store()

    def _parts_of_node(self, store: Store, work: bool) -> Parts:
        """Most programs have none of these, and import nothing for them."""
        parts, config = self._parts, self.config
        if self.registry.store_is_swapped:  # tests call nobody
            return parts
        parts = self._monitor.join(parts, config, store, self._serve if config.server else None)
        if config.webhooks:
            from tickwork.webhooks.parts import with_webhooks

            parts = with_webhooks(parts, config, store, work)
        if config.allow_addresses and config.secret_file is not None:
            from tickwork.node.calls import with_remote_calls

            parts = with_remote_calls(parts, config, self.registry, store, work)
        return parts

    def _serve(self, listeners: Listeners) -> None:
        from tickwork.server.parts import serve

        serve(
            self, self.config, listeners, self._other_namespace, self._metrics_page,
            later=True, optional=self._server_is_optional,
        )  # fmt: skip

    def _other_namespace(self, namespace: str) -> Client:
        """The client of another namespace of this store."""
        options = {**self.loaded.set_in_code(), "store": self.config.store, "namespace": namespace, "server": False}
        return _OtherNamespace(config=self._config_file, **options)

    def asgi(self) -> Callable[[Scope, Receive, Send], Awaitable[None]]:
        """The API and the dashboard as an ASGI application, to be mounted in another one: `Mount("/ops",
        app.asgi())`. It goes by the options that begin with `server_`; `server_hosts` names the host names by which
        your application is called."""
        from tickwork.server.parts import mounted

        plane, app = mounted(self, self.config, self._other_namespace, self._metrics_page)
        self._mounted.append(plane)
        return app

    async def _metrics_page(self) -> Reply | None:
        """That of this node; None if it does not count."""
        metrics = self._monitor.metrics
        return None if self._node is None or metrics is None else await metrics.reply()

    @property
    def server_url(self) -> str | None:
        """Where this node serves the API and the dashboard; None while it does not."""
        listeners = self._monitor.listeners
        return None if self._node is None or listeners is None else listeners.url_of("server_port")

    async def shutdown(self, timeout: float | timedelta | None = None) -> None:
        """Stop claiming, wait up to `timeout` for what runs, give back the rest without blame, close the store.

        One that was not started has only the store to close. May be called again, from any event loop: a second call
        waits for the end of the first.
        """
        grace = self.config.shutdown_timeout if timeout is None else wait_limit("timeout", timeout)
        home = self._node_loop
        if home is not None and home is not asyncio.get_running_loop() and home.is_running():
            await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(self.shutdown(grace), home))
        elif home is not None and home is not asyncio.get_running_loop() and not home.is_closed():
            raise TickworkError("it was started on another event loop, which does not run now: shut it down there")
        while self._changing is not None:
            await self._changing.wait()
        if self._node is None:
            await self._end(grace)
            return
        with self._change():
            await self._end(grace)

    async def _end(self, grace: float) -> None:
        node, self._node = self._node, None
        try:
            if node is not None:
                await node.stop(grace)
                self._log.line(logging.INFO, "Task scheduler stopped", id=self.id)
        finally:
            try:
                await self._lifespan.stop()
            finally:
                await self._end_rest()

    async def _end_rest(self) -> None:
        self._node_loop = None
        for plane in self._mounted:
            await plane.close()
        await self.sync.end_elsewhere()
        await self._close_store()
        await self._observers.end()
        self.sync.end_thread()
        if self._stopped is not None:
            self._stopped.set()

    # One thing under the names that people look for: a client is closed, a node is shut down or stopped.
    stop = shutdown
    close = shutdown

    def stop_soon(self) -> None:
        """Ask `run()` and `wait_stopped()` to end; safe from callbacks."""
        if self._stopped is not None:
            self._stopped.set()

    def _give_up(self) -> None:
        self.exhausted = True
        self.stop_soon()

    async def wait_stopped(self) -> None:
        """Until someone shuts it down, or too many handlers are stuck."""
        assert self._stopped is not None, "start() comes first"
        await self._stopped.wait()

    async def __aenter__(self) -> Scheduler:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.shutdown()

    def run(self, *, work: bool = True, lead: bool = True) -> None:
        """Start and block until SIGINT, SIGTERM or SIGHUP; a second signal gives unfinished work back at once."""
        running.run(self, work=work, lead=lead)

    async def _open(self) -> Store:
        if not self._opened:
            if self.registry.store_is_swapped and host.is_pool_child:
                raise ConfigError(NOT_IN_REACH)
            self._may_be_connected = True  # also by an open that is refused
            await self._store.open()  # safe to call twice, and from two loops at once
            self._opened = True
            # Now, and not when it was made: a command line may have changed its options since, and set up logging.
            self._tell_warnings()
        return self._observed

    def _tell_warnings(self) -> None:
        while self._warnings:
            self._log.warning("%s", self._warnings.pop(0))

    async def _open_bounded(self) -> Store:
        """For callers who would rather hear of an outage than wait for its end. The node itself is patient."""
        if not self._opened:
            with StoreTimeLimit(self.config.store_timeout or 0.0, self.url):
                await self._open()
        return self._of_clients

    def _opened_store(self) -> Store | None:
        return self._of_clients if self._opened else None

    async def _open_to_submit(self, began: float | None = None) -> Store:
        """The store for one submit. With the default of `submit_timeout`, an open store keeps to that by itself."""
        if self._opened and self._access.blocking_limit is None:
            return self._of_clients
        limit = SubmitLimit(self.config.submit_timeout, self.url, began)
        return limit.around(await limit.run(self._access.open_store))

    async def _close_store(self) -> None:
        if self._opened or self._may_be_connected:
            self._opened = self._may_be_connected = False
            await self._store.close()
            self._store.contact.reset()

    def after_fork(self) -> None:
        """In the child nothing is open or started: the next call opens the store anew, and `start()` may be called."""
        node, self._node = self._node, None
        if node is not None:
            keep(node)
            node.after_fork()
        self._observers.after_fork()
        self._monitor.stop()
        self._opened = self._may_be_connected = False
        self._lifespan.forget()
        self._stopped = self._changing = self._node_loop = None
        self._name_node()

    # --- jobs of this process

    async def schedule(self, job: Runnable, run_at: datetime) -> Handle[Any]:
        """Run a live object of this process at a time. Only with `memory://`."""
        return await self._jobs.submit(job, {"schedule_at": run_at})

    async def schedule_after(self, job: Runnable, delay: float | timedelta) -> Handle[Any]:
        """Run a live object of this process after a delay. Only with `memory://`."""
        return await self._jobs.submit(job, {"delay": delay})

    async def status(self) -> SchedulerStatus:
        """This scheduler, whether it runs and leads, and the numbers of tasks on its store."""
        store = await self._access.open_store()
        stats = await store.queries.stats()
        leader = await store.members.leader()
        leads = self._node is not None and self._node.candidate.leads
        return SchedulerStatus(
            scheduler_id=self.id,
            namespace=self.config.namespace,
            store=self.url,
            running=self._node is not None,
            is_leader=leads,
            leader_id=self.id if leads else (name_of(leader.id) if leader is not None else None),
            worker_count=stats.workers,
            tasks={status.value: count for status, count in stats.statuses.items() if count},
            queues=queue_stats(stats),
            dropped_dead_letters=stats.dropped,
        )

    async def health(self) -> Health:
        """How the store, its workers, queues and dead letters are; also of a store that cannot be reached."""
        return await health_of(self._access.open_store, name_of_check(self.url), self.config)

    def _condition(self) -> Condition:
        if self.exhausted:
            return "failed"
        if self._node is None:
            return "draining"
        if self._changing is not None:
            return "starting"
        return "draining" if self._node.is_drained() else "running"

    def __repr__(self) -> str:
        return f"<Scheduler {self.id} on {self.url}>"


class _OtherNamespace(Scheduler):
    """A client of another namespace of the same store, which says itself how many partitions it has."""

    async def _open(self) -> Store:
        if not self._opened:
            found = await stored_partitions(self.config.store or "", self.config.namespace, PATIENCE)
            if found not in (None, self.config.partitions) and not self._opened:
                self.configure(partitions=found)
        return await super()._open()
