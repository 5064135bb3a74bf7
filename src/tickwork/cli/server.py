"""`tickwork server`: the API and the dashboard of a store, without an application."""

from __future__ import annotations

import asyncio
from shlex import quote
from typing import TYPE_CHECKING, Any

import click

from tickwork import __version__
from tickwork.cli import output
from tickwork.cli.loading import load_app
from tickwork.cli.log_setup import LogSetup
from tickwork.cli.options import global_options
from tickwork.cli.session import DEFAULT_STORE, check_store, meet, said, said_options
from tickwork.errors import TickworkError
from tickwork.node.running import on_signals, run_loop
from tickwork.server.settings import settings_of

if TYPE_CHECKING:
    from tickwork.scheduler import Scheduler
    from tickwork.server.plane import ControlPlane

GRACE = 5.0


@click.command("server")
@click.argument("store_url", metavar="[STORE_URL]", required=False)
@click.option("--host", metavar="ADDRESS", help="Address to listen on.  [127.0.0.1]")
@click.option("--port", type=click.IntRange(0, 65_535), metavar="N", help="Port; 0 takes any that is free.  [8080]")
@click.option("--grpc-port", type=click.IntRange(0, 65_535), metavar="N", help="Serve the gRPC API on this port too.")
@click.option("--socket", metavar="PATH", help="Listen on a Unix socket that only you may open, instead of a port.")
@click.option("--tokens", is_flag=True, default=None, help="Ask for tokens on loopback too.")
@click.option("--hosts", metavar="A,B", help="Host names by which it may be called, beside localhost.")
@click.option("--namespaces", metavar="A,B", help="Further namespaces of the store to serve.")
@click.option("--tls-cert", metavar="FILE", help="Certificate, to serve HTTPS.")
@click.option("--tls-key", metavar="FILE", help="Key of the certificate.")
@global_options
def server_command(store_url: str | None, **flags: Any) -> None:
    """Serve the API and the dashboard of a store.

    It runs no tasks and needs no application. STORE_URL is that of any store that processes share, such as
    redis://localhost:6379/0 or sqlite:///tickwork.db; --store and TICKWORK_STORE do as well.

    \b
      tickwork server redis://localhost:6379/0 --namespace shop
      tickwork server sqlite:///tickwork.db --port 9000
    """
    if store_url is not None:
        if said("store"):
            raise click.UsageError("name the store once: as STORE_URL, or with --store")
        click.get_current_context().meta["tickwork.store"] = store_url
    said_here = {name: value for name, value in flags.items() if value is not None}
    options = {name if name == "host" else f"server_{name}": value for name, value in said_here.items()}
    with LogSetup(output.as_json(), asked_for=False) as log:
        app = asyncio.run(_find(options))
        log.settle("debug" if app.config.debug else app.config.log_level)
        run_loop(_serve(app))


async def _find(options: dict[str, Any]) -> Scheduler:
    """A scheduler without handlers, which is not started. A namespace of Redis knows how many partitions it has."""
    from tickwork.store.opening import kind_of

    app = load_app(None, **options)
    url = app.config.store or DEFAULT_STORE
    check_store(url, app.config.namespace, create=True)
    if kind_of(url) == "redis":
        config = await meet(url, app.config, create=True)
        app.configure(config=said("config"), **said_options(), **options, partitions=config.partitions)
    return app


async def _serve(app: Scheduler) -> None:
    from tickwork.monitor.listener import Listeners
    from tickwork.server.parts import serve

    stop = asyncio.Event()
    on_signals(lambda _: stop.set())
    listeners = Listeners(app.config)
    grpc: list[str] = []
    plane = serve(app, app.config, listeners, app._other_namespace, grpc_at=grpc.append)
    services, started = listeners.services(), False
    try:
        await app._access.open_store()
        for service in services:
            assert service.start is not None
            await service.start()
        started = True
        if not await _can_anybody_sign_in(plane):
            _tell_how_to_make_a_token(app)
        _tell(listeners.url("server_port"), app, grpc)
        await stop.wait()
    finally:
        for service in services if started else []:
            assert service.stop is not None
            await service.stop(GRACE)
        await app.close()


async def _can_anybody_sign_in(plane: ControlPlane) -> bool:
    settings = plane.settings
    if not settings.asks or (settings.user_header and settings.proxies):
        return True
    try:
        return await plane.tokens.any()
    except TickworkError:  # whoever calls is told what is wrong with the store; a hint is no reason not to start
        return True


def _tell_how_to_make_a_token(app: Scheduler) -> None:
    command = f"tickwork tokens create NAME --role admin --store {quote(app.url)} --namespace {app.config.namespace}"
    text = f"nobody can sign in yet, as there is no token: `{command}` makes the first one"
    click.echo(click.style("warning: ", fg="yellow") + text, err=True)


def _tell(url: str, app: Scheduler, grpc: list[str]) -> None:
    """The first line that a program reads, and that people look for. `grpc` has the address of the gRPC API, if any."""
    if output.as_json():
        more = {"grpc": grpc[0]} if grpc else {}
        output.show_json({"url": url, **more, "store": app.url, "namespace": app.config.namespace})
        return
    click.secho(f"Tickwork {__version__}", bold=True, err=True)
    facts = [("store", app.url), ("namespace", app.config.namespace), ("dashboard", url), ("API", f"{url}/api/v1")]
    facts += [("gRPC", address) for address in grpc]
    output.show_facts(facts, err=True)
    if not settings_of(app.config).asks:
        click.secho(
            "Every user of this machine is an administrator here; --tokens asks who they are.", dim=True, err=True
        )
    click.secho("Ctrl-C stops.\n", dim=True, err=True)
