"""A real node with a real store and real tasks, for a browser to look at. It lives in a thread of its own, as the
browser has this one."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import threading
from collections.abc import AsyncIterator, Coroutine, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any, Literal, TypeVar

from tests.support.redis import RedisServer
from tests.ui import history, shop
from tickwork import AlertRule, Scheduler
from tickwork.server.callers import EVERY, Caller, Role
from tickwork.server.tokens import Tokens

T = TypeVar("T")
Kind = Literal["redis", "sqlite"]
PATIENCE = 60.0
MAKER = Caller("ada", Role.ADMIN)
QUIET = logging.getLogger("tests.ui.stage")
QUIET.setLevel(logging.CRITICAL + 1)
logging.getLogger("tickwork.task").addHandler(logging.NullHandler())  # lines of tasks are for the dashboard
# One fires at once. Those that would fire while one looks on take too long for that.
RULES = (
    AlertRule("many_dead_letters", "scheduler_dead_letter_queue_size", 10, ">", 0),
    AlertRule("breaker_open", "breakers_open", 0, ">", 3600),
    AlertRule("dead_letters_growing", "dead_letters_added", 10, ">", 3600),
    AlertRule("high_task_failure_rate", "task_failure_rate", 0.1, ">", 3600),
)
# Soon noticed, soon renewed, soon over.
BRISK: dict[str, Any] = {
    "lease_ttl": 4, "renew_interval": 1, "leader_lease_ttl": 4, "leader_renew_interval": 1, "scan_interval": 0.1,
    "shutdown_timeout": 0.2, "logger": QUIET,
}  # fmt: skip


class Stage:
    """What a test has in its hands: the address, the scheduler, and the server of its store."""

    def __init__(self, app: Scheduler, loop: asyncio.AbstractEventLoop, redis: RedisServer | None) -> None:
        self.app = app
        self.redis = redis
        self.url = ""
        self._loop = loop
        self.opened = asyncio.Event()  # what the runs that wait are waiting for
        self.ended = asyncio.Event()

    def do(self, work: Coroutine[Any, Any, T]) -> T:
        """On the event loop of the node; answers when it is done."""
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(PATIENCE)

    def submit(self, kind: str, payload: Any = None, **options: Any) -> str:
        """The id of a new task."""
        return self.do(self.app.submit(kind, {} if payload is None else payload, **options)).id

    def status(self, task_id: str) -> str:
        return self.do(self.app.get_task(task_id)).status.value

    def token(self, role: str, name: str = "") -> str:
        """A token of that role, as the command line makes it."""

        async def make() -> str:
            tokens = Tokens(self.app._access.open_store)
            return (await tokens.make(name or f"the {role}", Role(role), MAKER, (EVERY,), None)).token

        return self.do(make())

    def end(self) -> None:
        """Let the node go, and its store first come back, if a test has left it stopped."""
        if self.redis is not None and not self.redis.running:
            self.redis.resume()
        self._loop.call_soon_threadsafe(self.ended.set)


@asynccontextmanager
async def _node(app: Scheduler, *, lead: bool = True) -> AsyncIterator[None]:
    await app.start(lead=lead)
    try:
        yield
    finally:
        await app.shutdown()


async def _run(url: str, found: list[Stage], ready: threading.Event, redis: RedisServer | None, **options: Any) -> None:
    with_shop, before = options.pop("with_shop"), options.pop("before", None)
    given = {**BRISK, "namespace": "shop", **options}
    app = Scheduler(
        url, scheduler_id="web-1", server=True, server_port=0, monitoring=True, metrics_interval=1, concurrency=10,
        queues=("default", "email", "payments", "reports"), labels={"zone": "eu-1"},
        alert_rules=RULES, **given,
    )  # fmt: skip
    helper = Scheduler(url, scheduler_id="media-1", concurrency=6, queues=("media",), labels={"gpu": "yes"}, **given)
    stage = Stage(app, asyncio.get_running_loop(), redis)
    for each in (app, helper):
        shop.register(each, lambda: stage.opened)
    async with AsyncExitStack() as stack:
        if before is not None:
            await before(await app._access.open_store())
        if with_shop:
            await history.write_weeks(await app._access.open_store())
            await shop.set_rules(app)
        await stack.enter_async_context(_node(app))
        await stack.enter_async_context(_node(helper, lead=False))
        assert app.server_url is not None
        stage.url = app.server_url
        if with_shop:
            await shop.open_shop(app)
            await shop.until(lambda: shop.is_open(app))
            await history.write_runs(await app._access.open_store())
        found.append(stage)
        ready.set()
        await stage.ended.wait()


@contextmanager
def _thread(url: str, redis: RedisServer | None, options: dict[str, Any]) -> Iterator[Stage]:
    found: list[Stage] = []
    errors: list[BaseException] = []
    ready = threading.Event()

    def work() -> None:
        try:
            asyncio.run(_run(url, found, ready, redis, **options))
        except BaseException as error:
            errors.append(error)
        finally:
            ready.set()

    thread = threading.Thread(target=work, name="stage", daemon=True)
    thread.start()
    ready.wait(PATIENCE)
    if not found:
        raise RuntimeError("the stage did not come up") from (errors[0] if errors else None)
    try:
        yield found[0]
    finally:
        found[0].end()
        thread.join(PATIENCE)
        if errors:
            raise errors[0]


@contextmanager
def staged(kind: Kind, folder: Path, *, with_shop: bool = True, **options: Any) -> Iterator[Stage]:
    """A stage on a store of its own; `with_shop`, in the known state that `shop.py` describes. `before` is called with
    the store before the nodes start."""
    with contextlib.ExitStack() as stack:
        redis = stack.enter_context(RedisServer()) if kind == "redis" else None
        url = f"sqlite:///{folder}/stage.db" if redis is None else redis.url
        yield stack.enter_context(_thread(url, redis, {"with_shop": with_shop, **options}))
