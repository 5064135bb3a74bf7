"""`tickwork workers`."""

from __future__ import annotations

import asyncio
import time
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

import click

from tickwork.cli import output
from tickwork.cli.options import Duration, global_options
from tickwork.cli.output import Column
from tickwork.cli.session import ask, change, now_of, settings
from tickwork.errors import TickworkError
from tickwork.model.members import Worker, WorkerStatus

if TYPE_CHECKING:
    from tickwork.client.client import Client
    from tickwork.model.info import WorkerInfo

SECOND = timedelta(seconds=1)
COLORS = {"idle": "green", "working": "green", "busy": "yellow", "draining": "magenta", "offline": "red"}
WORKER_COLUMNS = (
    Column("ID", least=16),
    Column("STATUS", color=COLORS.get),
    Column("BUSY", right=True),
    Column("QUEUES", least=7, drop=2),
    Column("TYPES", least=8, drop=4),
    Column("LABELS", least=8, drop=5),
    Column("ADDRESS", least=8, drop=6),
    Column("CPU", right=True, drop=7),
    Column("MEMORY", right=True, drop=8),
    Column("LAG", right=True, drop=9),
    Column("PID", right=True, drop=3),
    Column("UP", drop=1, right=True),
    Column("SEEN"),
)
LOOK = 0.2  # seconds between two looks at workers that drain

_status_option = click.option(
    "--status",
    type=click.Choice([status.value for status in WorkerStatus]),
    help="Only workers in this status.  [all]",
)
_ids_argument = click.argument("ids", metavar="[ID]...", nargs=-1)


@click.group("workers", invoke_without_command=True)
@_status_option
@global_options
@click.pass_context
def workers_command(ctx: click.Context, status: str | None) -> None:
    """Look after workers: what they do, and whether they take tasks.

    Without a command it lists them.
    """
    if ctx.invoked_subcommand is None:
        ctx.invoke(list_command, status=status)


@workers_command.command("list")
@_status_option
@global_options
def list_command(status: str | None) -> None:
    """List workers."""

    async def look(client: Client) -> tuple[list[WorkerInfo], datetime]:
        return await client.list_workers(status), await now_of(client)

    workers, now = ask(look)
    if output.as_json():
        output.show_json({"workers": workers})
        return
    rows = [
        (
            worker.id,
            status_of(worker),
            f"{worker.running}/{worker.capacity}",
            ", ".join(worker.queues),
            ", ".join(worker.task_types),
            ", ".join(f"{label}={text}" for label, text in sorted(worker.labels.items())),
            worker.address,
            *_vitals(worker),
            worker.pid or "",
            output.duration(max((now - worker.started_at) // SECOND, 0)) if worker.lost_at is None else "",
            output.age(worker.beat_at, now),
        )
        for worker in workers
    ]
    none = f"no worker is {status}" if status in ("busy", "offline") else "no worker is up"
    output.show_table(WORKER_COLUMNS, rows, f"{none}; start one with `tickwork up MODULE:APP`")


def _vitals(worker: WorkerInfo) -> tuple[str, str, str]:
    """CPU, memory and lag of its process; empty where they are not known, as of one that is gone."""
    if worker.lost_at is not None or not worker.memory:
        return "", "", ""
    return f"{worker.cpu:.0%}", f"{worker.memory / 1e6:.0f} MB", f"{worker.loop_lag * 1000:.0f} ms"


def status_of(worker: WorkerInfo) -> str:
    return "working" if worker.status == "idle" and worker.running else worker.status


# --- remote workers


@workers_command.command("register")
@click.argument("worker_id", metavar="ID")
@click.option("--address", default="", metavar="URL", help="Where nodes call it; it must be in allow_addresses.")
@click.option("--type", "types", multiple=True, metavar="TYPE", help="A task type that it runs; may be repeated.")
@click.option("--queue", "queues", multiple=True, metavar="QUEUE", help="A queue that it serves.  [default]")
@click.option("--label", "labels", multiple=True, metavar="KEY=VALUE", help="A label; may be repeated.")
@click.option("--capacity", type=int, default=10, show_default=True, metavar="N", help="Tasks that it runs at a time.")
@click.option("--weight", type=int, default=1, show_default=True, metavar="N", help="Its share of the tasks.")
@global_options
def register_command(
    worker_id: str,
    address: str,
    types: tuple[str, ...],
    queues: tuple[str, ...],
    labels: tuple[str, ...],
    capacity: int,
    weight: int,
) -> None:
    """Make a remote worker known: one that nodes call over HTTP.

    What it may run is what is said here. It stays online while it answers the probes of the leader, or sends
    heartbeats.
    """
    from tickwork.model.info import RemoteWorker

    worker = RemoteWorker(
        id=worker_id,
        address=address,
        queues=queues or ("default",),
        task_types=types,
        labels=dict(_label(each) for each in labels),
        capacity=capacity,
        weight=weight,
    )

    async def register(client: Client) -> None:
        await client.register_worker(worker)

    change(register, "registered a worker", worker_id)
    output.done(f"registered worker {worker_id}", id=worker_id)


def _label(text: str) -> tuple[str, str]:
    key, mark, value = text.partition("=")
    if not mark or not key:
        raise click.BadParameter(f"{text!r} is not KEY=VALUE", param_hint="--label")
    return key, value


@workers_command.command("unregister")
@click.argument("worker_id", metavar="ID")
@global_options
def unregister_command(worker_id: str) -> None:
    """Forget a remote worker. Tasks that it runs are not stopped."""

    async def unregister(client: Client) -> None:
        if (await client.get_worker(worker_id)).node:
            raise TickworkError(f"worker {worker_id} is a process of Tickwork, which leaves by itself when it ends")
        await client.unregister_worker(worker_id)

    change(unregister, "unregistered a worker", worker_id)
    output.done(f"unregistered worker {worker_id}", id=worker_id)


@workers_command.command("secret")
@click.argument("worker_id", metavar="ID")
@global_options
def secret_command(worker_id: str) -> None:
    """Print the secret of a remote worker, which signs what is said between it and the nodes.

    It is made of secret_file, the namespace and the ID, and is the same on every host.
    """
    from tickwork.client.remote_workers import WorkerKeys
    from tickwork.handlers.options import name

    secret = WorkerKeys(settings().config).secret(name("a worker's id", worker_id)).hex()
    if output.as_json():
        output.show_json({"id": worker_id, "secret": secret})
        return
    click.echo(secret)
    warning = "Put it into a file that only this worker can read: whoever has it can read its tasks, and answer for it."
    click.echo(warning, err=True)


# --- orders


@workers_command.command("drain")
@_ids_argument
@click.option("--timeout", type=Duration(), metavar="TIME", help="How long to wait for running tasks.  [no limit]")
@click.option("--no-wait", is_flag=True, help="Do not wait for running tasks.")
@global_options
def drain_command(ids: tuple[str, ...], timeout: float | None, no_wait: bool) -> None:
    """Let workers take no more tasks, and wait until they run none.

    Without an ID these are all workers of this host. It lasts until they are resumed, or end: a process that is
    started again takes tasks. Exits with 1 if tasks still run after --timeout.
    """

    async def drain(client: Client) -> tuple[list[str], list[Worker]]:
        chosen = await _chosen(client, ids)
        for worker_id in chosen:
            await client.drain_worker(worker_id)
        return chosen, [] if no_wait else await _wait(client, chosen, timeout)

    chosen, left = change(drain, "drained workers", ", ".join(ids) or "those of this host")
    busy = {worker.id: worker.running for worker in left}
    words = {worker_id: _word(busy.get(worker_id), no_wait) for worker_id in chosen}
    if output.as_json():
        rows = [{"id": worker_id, "done": words[worker_id], "running": busy.get(worker_id, 0)} for worker_id in chosen]
        output.show_json({"workers": rows})
    else:
        for worker_id, word in words.items():
            click.echo(output.clean(f"{worker_id}  {word}"))
    if left:
        click.get_current_context().exit(1)


def _word(running: int | None, no_wait: bool) -> str:
    if running is None:
        return "draining" if no_wait else "drained"
    return f"still runs {output.many(running, 'task')}" if running else "has not answered"


@workers_command.command("resume")
@_ids_argument
@global_options
def resume_command(ids: tuple[str, ...]) -> None:
    """Let workers take tasks again; without an ID those of this host."""

    async def resume(client: Client) -> list[str]:
        chosen = await _chosen(client, ids)
        for worker_id in chosen:
            await client.resume_worker(worker_id)
        return chosen

    chosen = change(resume, "resumed workers", ", ".join(ids) or "those of this host")
    if output.as_json():
        output.show_json({"workers": [{"id": worker_id, "done": "resumed"} for worker_id in chosen]})
    else:
        for worker_id in chosen:
            click.echo(output.clean(f"{worker_id}  resumed"))


@workers_command.command("set")
@click.argument("ids", metavar="ID...", nargs=-1, required=True)
@click.option("--concurrency", type=int, metavar="N", help="Tasks that it runs at a time.")
@click.option("--queues", metavar="A,B", help="Queues that it takes tasks from.")
@click.option("--reset", is_flag=True, help="Go by its own options again, but for what is said here.")
@global_options
def set_command(ids: tuple[str, ...], concurrency: int | None, queues: str | None, reset: bool) -> None:
    """Change the concurrency and the queues of workers while they run.

    They follow at once, or with their next heartbeat, and what they run goes on. It lasts until it is reset, or they
    end: a process that is started again goes by its options.
    """
    if not reset and concurrency is None and queues is None:
        raise click.UsageError("say what to change: --concurrency, --queues or --reset")
    names = None if queues is None else [name.strip() for name in queues.split(",")]
    chosen = list(dict.fromkeys(ids))

    async def order(client: Client) -> None:
        for worker_id in chosen:
            if reset:
                await client.reset_worker(worker_id)
            if concurrency is not None or names is not None:
                await client.set_worker(worker_id, concurrency=concurrency, queues=names)

    change(order, "changed workers", ", ".join(chosen), f"concurrency {concurrency}, queues {queues}, reset {reset}")
    facts = {"concurrency": concurrency, "queues": names}
    told = ", ".join(f"{what} {text}" for what, text in (("concurrency", concurrency), ("queues", queues)) if text)
    if output.as_json():
        output.show_json({"workers": [{"id": worker_id, "reset": reset, **facts} for worker_id in chosen]})
    else:
        for worker_id in chosen:
            click.echo(output.clean(f"{worker_id}  {told or 'as it was started'}"))


async def _chosen(client: Client, ids: tuple[str, ...]) -> list[str]:
    from tickwork.client import orders

    chosen = list(dict.fromkeys(ids)) or await orders.of_this_host(client._access)
    if not chosen:
        raise TickworkError("no worker of this host is up; name others by their IDs, which `tickwork workers` lists")
    return chosen


async def _wait(client: Client, ids: list[str], timeout: float | None) -> list[Worker]:
    """Those that still work when the time is over."""
    from tickwork.client import orders

    report = output.progress("running tasks left")
    until = None if timeout is None else time.monotonic() + timeout
    while left := await orders.still_working(client._access, ids):
        if until is not None and time.monotonic() >= until:
            break
        report(sum(worker.running for worker in left))
        await asyncio.sleep(LOOK)
    return left
