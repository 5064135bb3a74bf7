"""Remote workers over real connections."""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fastapi import FastAPI

from tests.support.serving import SECRET, served
from tickwork.remote import RemoteWorkerApp, conformance


def a_worker() -> RemoteWorkerApp:
    worker = RemoteWorkerApp("w1", secret=SECRET)

    @worker.task("echo")
    async def echo(payload: Any) -> Any:
        return payload

    return worker


@pytest.mark.parametrize("path", ["", "/jobs/tickwork"])
async def test_the_worker_conforms_alone_and_mounted(path: str) -> None:
    app: Any = a_worker()
    if path:
        outer = FastAPI()
        outer.mount(path, app)
        app = outer
    async with served(app) as address:
        worker = conformance.Worker(address + path, "w1", SECRET)
        found = await asyncio.to_thread(conformance.run, worker, "echo", b'{"a":1}')
    assert {name: wrong for name, wrong in found.items() if wrong} == {}
    assert len(found) > 20


async def test_conformance_finds_what_is_wrong(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A worker that believes everybody and signs nothing."""

    async def gullible(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "http":
            while (await receive()).get("more_body"):
                continue
            await send({"type": "http.response.start", "status": 200, "headers": []})
            await send({"type": "http.response.body", "body": b'{"status":"completed"}'})

    (tmp_path / "secret").write_text(SECRET)
    async with served(gullible) as address:
        arguments = [address, "--id", "w1", "--secret-file", str(tmp_path / "secret"), "--type", "echo"]
        code = await asyncio.to_thread(conformance.main, arguments)
    said = capsys.readouterr().out
    assert code == 1
    assert "WRONG: answered 200, not 401" in said
    assert "is not signed for this request" in said
    assert "  ok\n" not in said


def test_conformance_needs_a_secret(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "secret").write_text("guess")
    with pytest.raises(SystemExit) as caught:
        conformance.main(["http://127.0.0.1:1", "--id", "w1", "--secret-file", str(tmp_path / "secret")])
    assert caught.value.code == 2
    assert "guess" not in capsys.readouterr().err


WORKER_IN_NODE = Path(__file__).parents[2] / "examples" / "remote" / "worker.mjs"


@contextlib.contextmanager
def node_worker(folder: Path) -> Iterator[str]:
    """The address of the example in Node, which runs in a process of its own."""
    program = shutil.which("node")
    if program is None:
        pytest.skip("Node is not installed")
    (folder / "secret").write_text(SECRET + "\n")
    environment = {**os.environ, "WORKER_ID": "w1", "WORKER_SECRET_FILE": str(folder / "secret"), "PORT": "0"}
    with subprocess.Popen([program, WORKER_IN_NODE], env=environment, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            line = process.stdout.readline()
            found = re.search(r"listens on port (\d+)", line)
            assert found is not None, line
            yield f"http://127.0.0.1:{found[1]}"
        finally:
            process.kill()


def test_the_worker_in_node_conforms(tmp_path: Path) -> None:
    with node_worker(tmp_path) as address:
        found = conformance.run(conformance.Worker(address, "w1", SECRET), "upper", b'"abc"')
    assert {name: wrong for name, wrong in found.items() if wrong} == {}
