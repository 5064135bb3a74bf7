"""`tickwork submit`."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from tickwork.cli import output
from tickwork.cli.options import (
    Duration,
    Json,
    PayloadCommand,
    given,
    global_options,
    payload_or_none_given,
    read_time,
    task_options,
)
from tickwork.cli.session import change, check_store, settings, sqlite_path
from tickwork.cli.tasks import explanation
from tickwork.errors import ResultError, ResultTimeout
from tickwork.model.info import Explanation, Reason

if TYPE_CHECKING:
    from tickwork.client.handle import Handle
    from tickwork.model.info import TaskInfo

QUIET = 2.0  # seconds until somebody who waits is told why


@click.command("submit", cls=PayloadCommand)
@click.argument("type_", metavar="TYPE")
@click.argument("payload", metavar="[PAYLOAD_JSON]", type=Json(), required=False)
@click.option("--delay", type=Duration(), help="Run it after this time.")
@click.option("--at", metavar="TIME", help="Run it at this time, such as 2030-01-31T09:00+01:00.")
@click.option("--cron", metavar="LINE", help="Create a schedule that runs it by this cron line.")
@click.option("--timezone", metavar="ZONE", help="Time zone of --cron, and of --at without an offset.")
@task_options
@click.option("--id", "id_", metavar="ID", help="The id of the task; generated if left out.")
@click.option("--dedup-key", metavar="TEXT", help="Refuse the task while another one holds this key.")
@click.option("--dedup-ttl", type=Duration(), help="How long the task holds the key.")
@click.option(
    "--unique", type=click.Choice(["queued", "unfinished"]), help="Hold the key until the task starts, or ends."
)
@click.option(
    "--if-exists",
    type=click.Choice(["raise", "return"]),
    help="If there is a task of this --id, or one that holds the --dedup-key: refuse, or print its id.  [raise]",
)
@click.option("--expires", type=Duration(), help="Do not run it if it has not started within this time.")
@click.option("--depends-on", metavar="ID", multiple=True, help="Run after this task; may be given several times.")
@click.option("--app", metavar="MODULE:APP", help="Check the payload with the application's handler.")
@click.option("--wait", is_flag=True, help="Wait for the end and print the result; exit status 1 if it failed.")
@click.option("--wait-timeout", type=Duration(), help="How long to wait at most.")
@global_options
def submit_command(
    type_: str,
    payload: Any,
    at: str | None,
    id_: str | None,
    app: str | None,
    wait: bool,
    wait_timeout: float | None,
    **said: Any,
) -> None:
    """Submit a task, or a schedule with --cron.

    PAYLOAD_JSON is what the handler gets: a value for one parameter, an object for several; `-` reads it from
    standard input. Prints the task's id, or with --wait its result.
    """
    wait = wait or wait_timeout is not None
    if wait and said["cron"] is not None:
        raise click.UsageError("a schedule has no result to --wait for")
    moment = None if at is None else read_time(at, said["timezone"])
    if said["cron"] is None:
        del said["timezone"]
    options = given(id=id_, schedule_at=moment, **said)
    payload = payload_or_none_given(payload)
    patience = Patience(wait, wait_timeout)
    if app is not None:
        info = asyncio.run(_submit_by_app(app, type_, payload, options, patience))
    else:
        path = sqlite_path(settings().config.store or "")
        if path is not None and not os.path.exists(path):
            click.echo(f"note: {output.clean(path)} is a new file", err=True)
        info = change(
            lambda client: _follow(client.submit(type_, payload, **options), partial(explanation, client), patience),
            "submitted a task", type_, create=True,
        )  # fmt: skip
    _show(info)


class Patience(NamedTuple):
    wait: bool
    timeout: float | None


async def _submit_by_app(
    name: str, type_: str, payload: Any, options: dict[str, Any], patience: Patience
) -> TaskInfo | str:
    from tickwork.cli.loading import load_app

    app = load_app(name)
    app.registry.get(type_)  # says which types it knows
    check_store(app.url, app.config.namespace, create=True)
    try:
        return await _follow(app.submit(type_, payload, **options), partial(explanation, app), patience)
    finally:
        await app.close()


async def _follow(
    submitting: Awaitable[Handle[Any]], explain: Callable[[str], Awaitable[Explanation]], patience: Patience
) -> TaskInfo | str:
    """The task once it has ended, or only its id when nobody waits."""
    handle = await submitting
    from tickwork.client.handle import ScheduleHandle

    if not patience.wait and not isinstance(handle, ScheduleHandle):
        why = await explain(handle.id)
        if why.reason is Reason.TYPE_UNKNOWN:  # a typing mistake, or a worker that is still to come
            click.echo(f"note: {output.clean(why)}", err=True)
    if not patience.wait:
        return handle.id
    telling = asyncio.ensure_future(_tell_why(handle.id, explain))
    try:
        await handle.result(patience.timeout)
    except ResultTimeout:
        raise
    except ResultError:
        pass  # told from its record
    finally:
        telling.cancel()
    return await handle.info()


async def _tell_why(task_id: str, explain: Callable[[str], Awaitable[Explanation]]) -> None:
    await asyncio.sleep(QUIET)
    click.echo(output.clean(f"{task_id}: {await explain(task_id)}"), err=True)


def _show(info: TaskInfo | str) -> None:
    if isinstance(info, str):
        output.done(info, id=info)
        return
    failed = info.status != "success"
    if output.as_json():
        output.show_json(info)
    else:
        took = "" if info.execution_time is None else f" in {output.duration(info.execution_time)}"
        status = click.style(info.status, fg=output.status_color(info.status))
        click.echo(f"{output.clean(info.id)}  {status}{took}", err=True)
        if info.result is not None and not failed:
            output.show_json(info.result.data)
    if failed:
        for line in output.clean_lines((info.last_error or (info.result and info.result.message) or "").rstrip()):
            click.echo(line, err=True)
        click.get_current_context().exit(1)
