"""An HTTP worker: it runs tasks when a node calls it. It needs no store, only its secret.

Run me: python -m examples.balanced.worker worker-1 --secret-file worker-1.secret --port 8001
"""

from __future__ import annotations

import argparse
import socket
from pathlib import Path
from typing import Any

import uvicorn

from tickwork.remote import CallFailed, RemoteWorkerApp


def make_worker(name: str, secret: str) -> RemoteWorkerApp:
    worker = RemoteWorkerApp(name, secret=secret, capacity=100)

    @worker.task("data_processing")
    async def process(payload: dict[str, Any]) -> dict[str, Any]:
        return {"sum": sum(payload["numbers"]), "by": name}

    @worker.task("image_resize")
    async def resize(payload: dict[str, Any]) -> dict[str, Any]:
        if payload["width"] < 1:
            raise CallFailed("an image is at least one pixel wide", retry=False)
        return {"width": payload["width"], "by": name}

    return worker


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("name")
    parser.add_argument("--secret-file", type=Path, required=True, help="what `tickwork workers secret` prints")
    parser.add_argument("--port", type=int, default=0, help="0 is any that is free")
    given = parser.parse_args()
    with socket.create_server(("127.0.0.1", given.port)) as listening:
        print(f"http://127.0.0.1:{listening.getsockname()[1]}", flush=True)
        worker = make_worker(given.name, given.secret_file.read_text().strip())
        uvicorn.Server(uvicorn.Config(worker, log_level="warning", lifespan="off")).run(sockets=[listening])
