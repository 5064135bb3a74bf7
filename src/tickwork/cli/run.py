"""`tickwork up` and `tickwork worker`."""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING, Any

import click

from tickwork import __version__
from tickwork.cli import output
from tickwork.cli.flags import ConfiguredCommand, config_flags
from tickwork.cli.loading import load_app
from tickwork.cli.options import global_options
from tickwork.errors import ConfigError
from tickwork.server.settings import is_loopback

if TYPE_CHECKING:
    from tickwork.node.forking import Upward
    from tickwork.scheduler import Scheduler

ROLES = {"all": (True, True), "worker": (True, False), "scheduler": (False, True)}
_ROLE_WORDS = {"all": "worker and scheduler", "worker": "worker", "scheduler": "scheduler, runs no handlers"}

_log_format = click.option(
    "--log-format",
    type=click.Choice(["text", "json"]),
    help="Format of the log on standard error; json with --json.  [text]",
)
_processes = click.option(
    "--processes", type=click.IntRange(1), metavar="N", help="Run so many processes, and replace those that end."
)
_reload = click.option(
    "--reload", is_flag=True, help="For development: start the application anew when one of its files changes."
)


@click.command("up", cls=ConfiguredCommand)
@click.argument("app", metavar="MODULE:APP", required=False)
@click.option(
    "--role",
    type=click.Choice(list(ROLES)),
    default="all",
    show_default=True,
    help="Run handlers and lead, or one of them only.",
)
@_processes
@_reload
@_log_format
@global_options
@config_flags
def up_command(
    app: str | None, role: str, processes: int | None, reload: bool, log_format: str | None, **flags: Any
) -> None:
    """Run an application: its handlers and its share of the scheduling.

    MODULE:APP names a Scheduler, such as `shop.jobs:app`; the working directory is looked in first. A store must be
    named: in the application, with --store, or in TICKWORK_STORE. `--role scheduler` needs no application: it fires
    schedules, makes delayed tasks ready and takes back the tasks of lost workers.
    """
    if app is None and role != "scheduler":
        raise click.UsageError("which application? Name it as MODULE:APP; only --role scheduler can do without")
    _run(app, role, processes, reload, log_format, flags)


@click.command("worker", cls=ConfiguredCommand)
@click.argument("app", metavar="MODULE:APP")
@_processes
@_reload
@_log_format
@global_options
@config_flags
def worker_command(app: str, processes: int | None, reload: bool, log_format: str | None, **flags: Any) -> None:
    """Run an application's handlers only; leave the scheduling to others."""
    _run(app, "worker", processes, reload, log_format, flags)


def _run(
    name: str | None, role: str, processes: int | None, reload: bool, log_format: str | None, flags: dict[str, Any]
) -> None:
    from tickwork.cli.log_setup import LogSetup
    from tickwork.node import running

    if reload and processes is not None:
        raise click.UsageError("--reload runs one process: leave out --processes")
    as_json = log_format == "json" or (log_format is None and output.as_json())
    with LogSetup(as_json, asked_for=log_format is not None) as log:
        options = {option: value for option, value in flags.items() if value is not None}
        parent = _fork_to_reload(as_json) if reload else None
        app = load_app(name, **options) if parent is None else _load_in_child(parent, name, options)
        log.settle("debug" if app.config.debug else app.config.log_level)
        if processes is not None:
            check_processes(app, processes)
        if role != "worker":
            serve_if_possible(app)
        if not as_json and (parent is None or parent.number == 1):
            show_banner(app, role, processes)
        log.tell_early()
        work, lead = ROLES[role]
        if processes is not None:
            parent = _fork(app, processes)
        running.run(app, work=work, lead=lead, parent=parent)
    if app.exhausted:
        click.get_current_context().exit(1)


def _fork_to_reload(as_json: bool) -> Upward:
    """Returns in each child; the parent ends here when it is told to stop."""
    from tickwork.cli.reload import Reloader, own_log
    from tickwork.node.processes import check_forkable

    check_forkable("--reload")
    parent = Reloader(own_log(as_json)).run()
    if isinstance(parent, int):
        click.get_current_context().exit(parent)
    return parent


def _load_in_child(parent: Upward, name: str | None, options: dict[str, Any]) -> Scheduler:
    from tickwork.cli.reload import tell_failure, tell_imports

    try:
        app = load_app(name, **options)
    except BaseException as error:
        tell_failure(parent, name or "", error)
        raise
    tell_imports(parent)
    return app


def check_processes(app: Scheduler, processes: int) -> None:
    """Raises if the application cannot be run in several processes that are forked from this one."""
    from tickwork.node.processes import check_forkable

    if processes > 1 and not app.capabilities.shared:
        raise ConfigError(
            f"--processes {processes}: each process would have a {app.url} store of its own and see no task of the "
            "others; use one that processes share, such as --store sqlite:///tickwork.db"
        )
    check_forkable("--processes")


def _fork(app: Scheduler, count: int) -> Upward:
    """Returns in each child; the parent ends here when all of them have ended."""
    import multiprocessing

    from tickwork.node.forking import PROCESS
    from tickwork.node.processes import Processes

    app._tell_warnings()
    parent = Processes(count, app._log).run()
    if isinstance(parent, int):
        click.get_current_context().exit(parent)
    multiprocessing.current_process().name = f"{PROCESS}{parent.number}"  # which log records carry
    app._be_one_of_several(parent.number, parent.parent)
    return parent


def serve_if_possible(app: Scheduler, any_port: bool = False) -> None:
    """Serve the dashboard, unless the options say otherwise or the extra is not there. If its port is taken, the log
    says so; or with `any_port` another one is taken."""
    from importlib.util import find_spec

    wanted = app.loaded.origins["server"] == "default" and is_loopback(app.config.host)
    if wanted and all(map(find_spec, ("litestar", "uvicorn", "httptools"))):
        taken = any_port and not _is_free(app.config.host, app.config.server_port)
        app.configure(server=True, server_port=0 if taken else app.config.server_port)
        app._server_is_optional = True


def _is_free(host: str, port: int) -> bool:
    try:
        with socket.create_server((host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET):
            return True
    except OSError:
        return False


def show_banner(app: Scheduler, role: str, processes: int | None = None) -> None:
    """Everything that a glance should tell, on the stream of the log that follows."""
    config = app.config
    works = ROLES[role][0]
    store = app.url + ("  (kept nowhere, seen by this process only)" if not app.capabilities.shared else "")
    workers = f"{config.concurrency} tasks at a time"
    if config.worker_count > 1:
        workers += f" in each of {config.worker_count} workers"
    if processes is not None and processes > 1:
        workers += f" in each of {processes} processes"
    facts = [
        ("store", store),
        ("namespace", config.namespace),
        ("role", _ROLE_WORDS[role]),
        ("queues", ", ".join(config.queues) if works else None),
        ("concurrency", workers if works else None),
        ("task types", ", ".join(config.task_types or app.registry.list()) or "none" if works else None),
        ("schedules", ", ".join(app.list_registered()) or None),
        ("dashboard", f"http://{config.host}:{config.server_port}" if config.server and config.server_port else None),
    ]
    grace = f"waits up to {output.duration(config.shutdown_timeout)} for what runs"
    click.secho(f"Tickwork {__version__}", bold=True, err=True)
    output.show_facts(facts, err=True)
    click.secho(f"Ctrl-C stops: it {grace}; a second Ctrl-C gives it back at once.\n", dim=True, err=True)
