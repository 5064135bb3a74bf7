"""`tickwork top`."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import sys
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from tickwork.cli import output
from tickwork.cli.options import Duration, global_options
from tickwork.cli.session import ask, store_of
from tickwork.errors import StoreUnavailable
from tickwork.node.running import on_signals

if TYPE_CHECKING:
    from tickwork.client.client import Client
    from tickwork.client.watching import Snapshot, Watcher

LEAST_INTERVAL = 0.1
FRAME = 0.5  # longest time without a new picture, so that an outage is seen soon
NO_TERMINAL = os.terminal_size((100, 50))


@click.command("top")
@click.option("--interval", type=Duration(), default="2s", show_default=True, metavar="TIME",
              help="Time between two looks at the store.")  # fmt: skip
@click.option("--once", is_flag=True, help="Print one screen and end.")
@click.option("--follow", "-f", is_flag=True, help="With --json: print a snapshot a line, until Ctrl-C.")
@global_options
def top_command(interval: float, once: bool, follow: bool) -> None:
    """Show what happens on a store, live on the screen.

    Queues, workers, running tasks, schedules, dead letters and the latest events; q or Ctrl-C ends it. Where there is
    no terminal it prints a line for each look. --json prints one snapshot.
    """
    if interval < LEAST_INTERVAL:
        raise click.BadParameter(f"{interval:g} s is less than {LEAST_INTERVAL:g} s", param_hint="--interval")
    if follow and (once or not output.as_json()):
        raise click.UsageError("--follow goes with --json, and not with --once; the screen follows by itself")
    once = once or (output.as_json() and not follow)
    with contextlib.suppress(KeyboardInterrupt):
        ask(lambda client: _Top(client, interval).run(once))


class _Top:
    def __init__(self, client: Client, interval: float) -> None:
        from tickwork.cli.screen import SHOWN, Picture
        from tickwork.client.watching import Watcher

        self._client = client
        self._interval = interval
        self._watcher: Watcher = Watcher(client, SHOWN)
        self._picture = Picture()
        self._live = sys.stdout.isatty() and not output.as_json()
        self._color = click.get_current_context().color is not False
        self._stop = asyncio.Event()
        self._title = ""
        self._seen: Snapshot | None = None
        self._away: str = ""  # why the store could not be looked at
        self._away_since = 0.0

    async def run(self, once: bool) -> None:
        config = self._client.config
        self._title = f"{(await store_of(self._client)).url}  namespace {config.namespace}"
        if once:
            self._print_once(await self._watcher.look())
            return
        loop = asyncio.get_running_loop()
        on_signals(lambda _: self._stop.set())
        with self._keys(loop):
            await self._go_on()

    def _print_once(self, snap: Snapshot) -> None:
        if output.as_json():
            output.show_json(_as_json(snap))
            return
        size = shutil.get_terminal_size(NO_TERMINAL)
        click.echo("\n".join(self._lines(snap, "", size.columns - 1, size.lines - 1)).rstrip())

    async def _go_on(self) -> None:
        """A look takes as long as the store makes it wait; meanwhile the screen and the keys go on."""
        stopped = asyncio.ensure_future(self._stop.wait())
        try:
            while not self._stop.is_set():
                began = time.monotonic()
                look = asyncio.ensure_future(self._watcher.look())
                while not look.done() and not self._stop.is_set():
                    await asyncio.wait((look, stopped), timeout=FRAME, return_when=asyncio.FIRST_COMPLETED)
                    if not look.done() and not self._stop.is_set():
                        self._redraw()
                if not look.done():
                    look.cancel()
                    await asyncio.gather(look, return_exceptions=True)
                    return
                self._take(look)
                rest = max(self._interval - (time.monotonic() - began), 0.0)
                await asyncio.wait((stopped,), timeout=rest)
        finally:
            stopped.cancel()

    def _take(self, look: asyncio.Task[Snapshot]) -> None:
        try:
            self._seen = look.result()
        except StoreUnavailable as error:
            self._away_since = self._away_since if self._away else time.monotonic()
            self._away = str(error)
        else:
            self._away = ""
        if self._live:
            self._redraw()
        elif self._away:
            click.echo(f"the store cannot be reached: {output.clean(self._away)}", err=True)
        elif self._seen is not None:
            self._print_line(self._seen)

    def _print_line(self, snap: Snapshot) -> None:
        from tickwork.cli.screen import plain_line

        if output.as_json():
            output.show_json(_as_json(snap), one_line=True)
        else:
            click.echo(plain_line(snap))
        sys.stdout.flush()

    def _redraw(self) -> None:
        if not self._live or (self._seen is None and not self._away):
            return
        size = shutil.get_terminal_size()
        notice = "q quits"
        if self._away:
            gone = output.duration(int(time.monotonic() - self._away_since))
            notice = f"THE STORE CANNOT BE REACHED for {gone}, trying again: {self._away}"
        if self._seen is None:
            self._picture.show([output.clip(output.clean(notice), size.columns - 1)], size)
        else:
            self._picture.show(self._lines(self._seen, notice, size.columns - 1, size.lines - 1), size)

    def _lines(self, snap: Snapshot, notice: str, columns: int, rows: int) -> list[str]:
        from tickwork.cli.top_screen import draw

        return draw(snap, self._title, notice, columns, rows, self._color)

    @contextlib.contextmanager
    def _keys(self, loop: asyncio.AbstractEventLoop) -> Iterator[None]:
        """Keys are read as they are pressed, where there is a terminal; it is given back as it was."""
        if not self._live or not sys.stdin.isatty():
            yield
            return
        try:
            import termios
            import tty
        except ImportError:  # Windows: Ctrl-C is the way to end it
            yield
            return
        keyboard = sys.stdin.fileno()
        before = termios.tcgetattr(keyboard)
        tty.setcbreak(keyboard)
        loop.add_reader(keyboard, self._read_key, keyboard)
        try:
            yield
        finally:
            loop.remove_reader(keyboard)
            termios.tcsetattr(keyboard, termios.TCSADRAIN, before)

    def _read_key(self, keyboard: int) -> None:
        pressed = os.read(keyboard, 64)
        if not pressed or b"q" in pressed.lower():
            self._stop.set()


def _as_json(snap: Snapshot) -> dict[str, object]:
    from tickwork.cli.screen import rate

    return {
        "at": snap.now,
        "leader": snap.leader,
        "tasks": {status.value: count for status, count in snap.stats.statuses.items()},
        "rates": {name: rate(getattr(snap, name)) for name in ("submitted", "done", "failed")},
        "queues": snap.queues,
        "workers": snap.workers,
        "running": snap.running,
        "schedules": snap.schedules,
        "dead_letters": snap.dead,
        "events": snap.latest[-20:],
    }
