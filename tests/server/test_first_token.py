"""A server that asks for tokens while there is none says how to make the first one."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import sys
from pathlib import Path

import pytest

from tests.server.serving import MAKER
from tickwork import Scheduler
from tickwork.server.callers import Role
from tickwork.server.tokens import Tokens

HINT = "nobody can sign in yet"


async def told_at_the_start(*args: str) -> str:
    """What `tickwork server` says on standard error until it serves and is stopped."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "tickwork", "server", "--port", "0", *args,
        stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
    )  # fmt: skip
    assert process.stderr is not None
    lines: list[str] = []
    try:
        async with asyncio.timeout(60):
            while "Ctrl-C stops" not in "".join(lines[-1:]):
                line = (await process.stderr.readline()).decode()
                assert line, "".join(lines)
                lines.append(line)
    finally:
        with contextlib.suppress(ProcessLookupError):
            process.send_signal(signal.SIGINT)
        await process.communicate()
    return "".join(lines)


async def test_it_is_said_how_to_make_one(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/t.db"
    told = await told_at_the_start(url, "--tokens", "--namespace", "shop")
    (line,) = [each for each in told.splitlines() if HINT in each.lower()]
    assert f"tickwork tokens create NAME --role admin --store {url} --namespace shop" in line


@pytest.mark.parametrize("asks", [True, False])
async def test_but_not_if_there_is_one_or_nobody_is_asked(asks: bool, tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/t.db"
    if asks:
        app = Scheduler(url)
        await Tokens(app._access.open_store).make("x", Role.ADMIN, MAKER)
        await app.close()
    assert HINT not in (await told_at_the_start(url, *(["--tokens"] if asks else []))).lower()


async def test_the_command_that_it_names_makes_one(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/t.db"
    told = await told_at_the_start(url, "--tokens", "--namespace", "shop")
    command = told.partition("`tickwork ")[2].partition("`")[0].split()
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "tickwork", *command, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE
    )
    out, err = await asyncio.wait_for(process.communicate(), 60)
    assert out.startswith(b"tw_"), err
    assert HINT not in (await told_at_the_start(url, "--tokens", "--namespace", "shop")).lower()
