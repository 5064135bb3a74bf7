"""`tickwork demo`: a shop that never loses an order, whatever is done to it."""

from __future__ import annotations

import asyncio
import logging
import os
import shlex
import shutil
import sys
import time
from contextlib import suppress
from pathlib import Path

import click
from msgspec.structs import replace

from tickwork.cli import output
from tickwork.cli.demo_app import app, bring_customers
from tickwork.cli.demo_screen import draw
from tickwork.cli.options import Duration, global_options
from tickwork.cli.run import serve_if_possible
from tickwork.cli.schedules import with_last_status
from tickwork.cli.screen import SHOWN, Picture, plain_line
from tickwork.cli.session import said, sqlite_path
from tickwork.client.watching import Snapshot, Watcher
from tickwork.config import Config
from tickwork.errors import TickworkError
from tickwork.host import is_gone
from tickwork.model.facts import Fact
from tickwork.model.members import Worker
from tickwork.model.tasks import Status
from tickwork.node.running import on_signals, run_loop
from tickwork.store.contract import Stats

FRAME = 0.5  # seconds between looks on a terminal
LINE = 1.0  # and between lines where there is none
GRACE = 2.0


@click.command("demo")
@click.option("--seconds", type=Duration(), metavar="TIME", help="Stop after this time.")
@click.option("--fresh", is_flag=True, help="Start over with an empty file.")
@click.option(
    "--rate", type=click.FloatRange(0, 200), default=5.0, show_default=True, help="Orders submitted a second."
)
@global_options
def demo_command(seconds: float | None, fresh: bool, rate: float) -> None:
    """Run a small shop on a SQLite file, live on the screen.

    The file is tickwork-demo.db in the working directory, or that of --store, which may also be a Redis. Stop it in any
    way you like, also with kill -9: the next start goes on where it was. A second one in another terminal shares the
    work.
    """
    if said("store"):
        app.configure(store=said("store"))
    if not app.capabilities.shared:
        raise click.UsageError("the demo shows how work survives a restart: use --store sqlite:///FILE or redis://HOST")
    path = sqlite_path(app.url)
    if said("namespace"):
        app.configure(namespace=said("namespace"))
    elif path is None and app.loaded.origins["namespace"] == "default":
        app.configure(namespace="demo")  # a server may hold somebody's work, a file of the demo does not
    if fresh and path is None:
        raise click.UsageError("--fresh deletes a file; on Redis, start over with another --namespace")
    serve_if_possible(app, any_port=True)
    live = sys.stdout.isatty() and not output.as_json()
    logging.getLogger("tickwork").addHandler(logging.NullHandler())  # the screen tells it all
    run_loop(_Demo(path, live, seconds, rate).run(fresh))


def own_command() -> str:
    """How a shell finds this very program, to be pasted."""
    beside = Path(sys.executable).with_name("tickwork")
    found = shutil.which("tickwork")
    if found is not None and Path(found) == beside:
        return "tickwork"
    words = [_from_here(beside)] if beside.exists() else [_from_here(Path(sys.executable)), "-m", "tickwork"]
    return shlex.join(words)


def _from_here(path: Path) -> str:
    return str(path.relative_to(Path.cwd())) if path.is_relative_to(Path.cwd()) else str(path)


class _Demo:
    def __init__(self, path: str | None, live: bool, seconds: float | None, orders: float) -> None:
        self._path = path
        self._url = app.url
        self._where = path or f"{self._url}, namespace {app.config.namespace},"
        self._live = live
        self._seconds = seconds
        self._orders = orders
        self._stop = asyncio.Event()
        self._color = click.get_current_context().color is not False
        self._picture = Picture()

    async def run(self, fresh: bool) -> None:
        on_signals(lambda _: self._stop.set())
        if fresh and self._path is not None:
            await self._start_over(self._path)
        found = await self._look_back()
        await app.start()
        customers = asyncio.ensure_future(bring_customers(self._orders)) if self._orders else None
        try:
            await self._show_until_stopped(found)
        finally:
            if customers is not None:
                customers.cancel()
            await self._close()

    async def _start_over(self, path: str) -> None:
        if os.path.exists(path):
            others = _alive(await (await app._open()).members.workers())
            await app.close()
            if others:
                raise TickworkError(f"another demo uses {path} (pid {others[0].pid}); stop it first")
        for suffix in ("", "-wal", "-shm"):
            with suppress(FileNotFoundError):
                os.remove(path + suffix)

    async def _look_back(self) -> str:
        """What the last time has left."""
        if self._path is not None and not os.path.exists(self._path):
            return f"{self._path} is a new file"
        stats = await (await app._open()).queries.stats()
        if self._path is None and not any(stats.statuses.values()):
            return f"{self._where} holds no task yet"
        others = _alive(await (await app._open()).members.workers())
        running = stats.statuses.get(Status.RUNNING, 0)
        cut_off = f"{running} cut off while running, taken back now, " if running else ""
        if others:
            return f"joins a demo that runs already (pid {others[0].pid}): both share the work"
        return f"from last time: {cut_off}{_summary(stats)}"

    async def _show_until_stopped(self, found: str) -> None:
        watcher, started = Watcher(app, SHOWN), time.monotonic()
        if not self._live:
            click.echo(f"Tickwork demo, pid {os.getpid()}, {self._url}: {found}")
            if (dashboard := app.server_url) is not None:
                click.echo(f"Dashboard: {dashboard}")
        while not self._stop.is_set():
            snap = await watcher.look()
            snap = replace(snap, schedules=await with_last_status(app, snap.schedules[:1]))
            up = time.monotonic() - started
            if self._live:
                self._redraw(snap, found, up)
            else:
                click.echo(plain_line(snap))
            if self._seconds is not None and up >= self._seconds:
                return
            left = FRAME if self._live else LINE
            if self._seconds is not None:
                left = min(left, self._seconds - up)
            with suppress(TimeoutError):
                await asyncio.wait_for(self._stop.wait(), left)

    def _redraw(self, snap: Snapshot, found: str, up: float) -> None:
        size = shutil.get_terminal_size()
        title = f"{self._url}  pid {os.getpid()}  up {output.duration(int(up))}" if up >= 1 else self._url
        hints = self._hints(snap.paused, roomy=size.lines >= 31)
        self._picture.show(draw(snap, title, found, hints, size.columns - 1, size.lines - 1, self._color), size)

    def _hints(self, paused: list[str], roomy: bool) -> list[str]:
        there = f" --store {shlex.quote(self._url)}"
        if app.config.namespace != Config().namespace:
            there += f" --namespace {app.config.namespace}"
        dashboard = [] if app.server_url is None else [f"Dashboard: {app.server_url}"]
        ends = f"or kill -9 {os.getpid()} and run it again: nothing is lost. Ctrl-C stops."
        command = own_command()
        if paused:
            first = paused[0]
            return [
                *dashboard,
                f"Queue {first} is paused. To go on:",
                f"  {command} queues resume {first}{there}",
                ends,
            ]
        hints = [*dashboard, "Try in another terminal, in this folder:", f"  {command} dlq retry-all{there}", ends]
        if roomy:
            hints.insert(-1, f"  {command} queues pause default{there}")
        return hints

    async def _close(self) -> None:
        seen = await (await app._open()).log.last()
        if self._live:
            sys.stdout.write("\r\x1b[K")  # the ^C of the terminal
        click.echo(f"Stopping, at most {GRACE:g} s for what runs ...")
        await app.shutdown(GRACE)
        store = await app._open()
        facts, _ = await store.log.read(seen, 10_000)
        given_back = sum(event.kind == Fact.TASK_RELEASED for event in facts)
        stats = await store.queries.stats()
        await app.close()
        back = f" ({given_back} of them given back unfinished)" if given_back else ""
        click.echo(f"Stopped. {self._where} holds {_summary(stats, back)}.")
        again = "; --fresh starts over" if self._path is not None else ""
        click.echo(f"Nothing is lost: run it again and it goes on from here{again}.")


def _alive(workers: list[Worker]) -> list[Worker]:
    """Those of other processes that have not provably ended."""
    others = [worker for worker in workers if worker.lost_at is None and worker.pid != os.getpid()]
    return [worker for worker in others if not is_gone(worker.host, worker.pid, worker.pid_started)]


def _summary(stats: Stats, about_waiting: str = "") -> str:
    count = {status: stats.statuses.get(status, 0) for status in Status}
    waiting = sum(count[status] for status in (Status.READY, Status.PENDING, Status.RETRYING, Status.BLOCKED))
    dead = output.many(count[Status.DEAD], "dead letter")
    return f"{waiting:,} waiting{about_waiting}, {count[Status.SUCCESS]:,} done, {dead}"
