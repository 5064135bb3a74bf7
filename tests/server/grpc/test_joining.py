"""The gRPC API as part of a node, and of `tickwork server`."""

from __future__ import annotations

import asyncio
import json
import logging
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import grpc
import grpc.aio
import pytest

from tests.server.grpc.calling import Grpc
from tests.server.grpc.test_streams import ending, follow
from tests.server.serving import HOME
from tickwork import Scheduler
from tickwork.errors import ConfigError

PATIENCE = 60.0


@asynccontextmanager
async def calls_to(address: str, token: str | None = None) -> AsyncIterator[Grpc]:
    async with grpc.aio.insecure_channel(address) as channel:
        yield Grpc(channel, token)


async def test_a_node_serves_it_and_ends_its_streams(url: str, caplog: pytest.LogCaptureFixture) -> None:
    app = Scheduler(url, namespace=HOME, server=True, server_port=0, server_grpc_port=0)

    @app.task("add")
    async def add(a: int, b: int) -> int:
        return a + b

    with caplog.at_level(logging.INFO):
        await app.start()
    (line,) = [each.getMessage() for each in caplog.records if "grpc://" in each.getMessage()]
    address = next(part for part in line.split() if "grpc://" in part).partition("grpc://")[2].strip("'\"")
    async with calls_to(address) as caller:
        task = await caller.call("submit_task", type="add", payload={"a": 2, "b": 3})
        while task.status != "success":
            task = await caller.call("get_task", id=task.id)
        assert task.result == "5"
        frames = follow(caller)
        assert (await frames.read()).kind == "open"
        await app.shutdown()
        assert await ending(frames) == "UNAVAILABLE"


async def test_the_server_command_tells_where_it_is(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "tickwork", "--json", "server", f"sqlite:///{tmp_path}/tick.db"]
    with subprocess.Popen(  # noqa: ASYNC220 - it is waited for in a thread
        [*command, "--port", "0", "--grpc-port", "0"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as process:
        try:
            assert process.stdout is not None
            readline = process.stdout.readline
            told = json.loads(await asyncio.to_thread(lambda: "".join(iter(readline, "}\n")) + "}"))
            async with calls_to(told["grpc"]) as caller:
                assert (await caller.call("get_status")).namespace == told["namespace"]
                frames = follow(caller)
                assert (await frames.read()).kind == "open"
                process.send_signal(signal.SIGINT)
                assert await ending(frames) == "UNAVAILABLE"
            assert await asyncio.to_thread(process.wait, PATIENCE) == 0
        finally:
            process.kill()


async def test_without_a_port_it_is_not_served(url: str, caplog: pytest.LogCaptureFixture) -> None:
    app = Scheduler(url, namespace=HOME, server=True, server_port=0)
    with caplog.at_level(logging.INFO):
        async with app:
            pass
    assert not [each for each in caplog.records if "grpc" in each.getMessage()]


async def test_without_grpcio_it_says_what_to_install(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str, *given: Any, **more: Any) -> Any:
        if name == "tickwork.server.grpc.server":
            raise ModuleNotFoundError("No module named 'grpc'", name="grpc")
        return original(name, *given, **more)

    original = __import__
    monkeypatch.setattr("builtins.__import__", missing)
    app = Scheduler(url, namespace=HOME, server=True, server_port=0, server_grpc_port=0)
    with pytest.raises(ConfigError, match=r'server_grpc_port needs grpc, .*pip install "tickwork\[server,grpc\]"'):
        await app.start()
    await app.close()


def test_the_parts_that_write_the_proto_need_no_grpcio() -> None:
    """`make proto` runs with what the product itself needs."""
    code = (
        "import sys; sys.modules['grpc'] = sys.modules['google.protobuf'] = sys.modules['litestar'] = None\n"
        "from tickwork.server.grpc.schema import PROTO, proto_text, read_protocol\n"
        "text = PROTO.read_text(); assert proto_text(read_protocol(), text) == text"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
