"""`tickwork doctor`: is all well, and what to do if it is not."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING

import click
from msgspec.structs import asdict

from tickwork import __version__
from tickwork.cli import output
from tickwork.cli.options import global_options
from tickwork.cli.session import ask, change, schema_versions, settings, sqlite_path, store_of
from tickwork.config.urls import mask_url
from tickwork.model.tasks import CANNOT_READ
from tickwork.store.contract import Finding

if TYPE_CHECKING:
    from tickwork.client.client import Client

LITTLE_SPACE, NO_SPACE = 500_000_000, 20_000_000
COLORS = {"ok": "green", "warning": "yellow", "problem": "red"}


@click.command("doctor")
@click.option("--mend", is_flag=True, help="Repair what the audit of a Redis finds, and print what it was.")
@global_options
def doctor_command(mend: bool) -> None:
    """Check the store, the workers and the schedules; say what to do.

    Exits with 1 if there is a problem; a warning is not one.
    """
    from tickwork.client.checkup import check_patient, examine

    mended = change(_mend, "mended the store", "") if mend else []
    patient = ask(examine)
    findings = [
        *check_installation(),
        *patient.store,
        *(Finding("warning", f"found and put right: {line}") for line in mended if CANNOT_READ not in line),
    ]
    findings += check_patient(patient)
    problems = sum(finding.level == "problem" for finding in findings)
    if output.as_json():
        output.show_json({"healthy": not problems, "findings": [asdict(finding) for finding in findings]})
    else:
        for finding in findings:
            level = click.style(f"{finding.level:<8}", fg=COLORS[finding.level], bold=finding.level != "ok")
            click.echo(f"{level} {output.clean(finding.text)}")
            if finding.advice:
                click.echo(f"         {click.style('→ ' + output.clean(finding.advice), dim=True)}")
    if problems:
        click.get_current_context().exit(1)


async def _mend(client: Client) -> list[str]:
    return await (await store_of(client)).operators.mend()


def check_installation() -> Iterator[Finding]:
    """The store as a place, which answered or we would not be here."""
    config = settings().config
    url = config.store or ""
    version = ".".join(map(str, sys.version_info[:3]))
    yield Finding("ok", f"Tickwork {__version__} on Python {version}, store {mask_url(url)} can be reached")
    path = sqlite_path(url)
    if path is None:
        return
    from tickwork.store.sqlite.schema import VERSION

    found = schema_versions(path).get(config.namespace)
    yield Finding("ok", f"namespace {config.namespace} has schema version {found} (this release writes {VERSION})")
    size = sum(os.path.getsize(file) for file in (path, f"{path}-wal") if os.path.exists(file))
    free = shutil.disk_usage(os.path.dirname(os.path.abspath(path))).free
    text = f"{path} has {_bytes(size)}, its disk {_bytes(free)} free"
    if free < NO_SPACE:
        yield Finding("problem", text, "free some space now: a full disk stops every submit and every worker")
    elif free < max(LITTLE_SPACE, size):
        yield Finding("warning", text, "free some space, or keep ended tasks for a shorter time (retention)")
    else:
        yield Finding("ok", text)


def _bytes(count: int) -> str:
    for unit, size in (("GB", 1_000_000_000), ("MB", 1_000_000)):
        if count >= size:
            return f"{count / size:.1f} {unit}"
    return f"{count / 1000:.0f} kB"
