"""A leader that knows its workers, and shares out tasks among them by six strategies. The workers are called over HTTP.

Run me, in the root of the repository: python -m examples.balanced [--store redis://localhost:6379/0]
"""

from __future__ import annotations

import argparse
import asyncio
import os
import secrets
import sys
import tempfile
from asyncio.subprocess import PIPE, Process
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp

from tickwork import Fact, RemoteWorker, Scheduler

from .status_api import StatusApi

STRATEGIES = ("least_tasks", "round_robin", "random", "weighted_round_robin", "consistent_hash", "capacity_based")
WEIGHTS = {"worker-1": 1, "worker-2": 1, "worker-3": 2}
TYPES = ("data_processing", "image_resize")


async def main(store: str, secret_file: Path) -> None:
    secret_file.write_text(secrets.token_hex(32))
    async with http_workers(secret_file) as addresses:
        for strategy in STRATEGIES:
            app = make_scheduler(store, strategy, secret_file, addresses)
            await register(app, addresses)
            async with app:
                await share_out(app, strategy)
        await show_status(make_scheduler(store, "least_tasks", secret_file, addresses), addresses)


def make_scheduler(store: str, strategy: str, secret_file: Path, addresses: dict[str, str]) -> Scheduler:
    app = Scheduler(
        store,
        dispatch="assigned",
        load_balance_strategy=strategy,
        secret_file=str(secret_file),
        allow_addresses=list(addresses.values()),
        scan_interval=0.1,
    )
    app.executors.register("remote", None, types=TYPES)  # these have no handler here
    return app


async def register(app: Scheduler, addresses: dict[str, str]) -> None:
    for name, address in addresses.items():
        weight = WEIGHTS[name]
        await app.register_worker(
            RemoteWorker(id=name, address=address, task_types=TYPES, weight=weight, capacity=50 * weight)
        )


async def share_out(app: Scheduler, strategy: str) -> None:
    """Forty tasks, for ten customers, and how many of them each worker ran."""
    tasks = [
        await app.submit("data_processing", {"numbers": [number, 1]}, key=f"customer-{number % 10}")
        for number in range(40)
    ]
    results = [await task.result(timeout=60) for task in tasks]
    assert [result["sum"] for result in results] == [number + 1 for number in range(40)]
    ran = [result["by"] for result in results]
    if strategy == "consistent_hash":
        whole = all(ran[number] == ran[number % 10] for number in range(40))
        print(f"{strategy}: each customer has a worker of its own: {whole}")
    elif strategy in ("round_robin", "weighted_round_robin"):
        print(f"{strategy}: {dict(sorted(Counter(ran).items()))}")
    else:
        print(f"{strategy}: {len(ran)} tasks on {len(set(ran))} workers")


async def show_status(app: Scheduler, addresses: dict[str, str]) -> None:
    """What the API tells, and the events: live as they come, and again from the log."""
    api = StatusApi(app)
    app.add_service(api.service())
    await register(app, addresses)
    async with app, aiohttp.ClientSession() as client:
        seen_before = await app.events.last()
        async with app.events.subscribe(types=["image_resize"]) as events:
            async with client.post(
                f"{api.address}/tasks", json={"type": "image_resize", "payload": {"width": 64}}
            ) as said:
                task_id = (await said.json())["id"]
            async for event in events:
                print("event:", event.kind)
                if event.kind is Fact.TASK_SUCCEEDED:
                    break
        logged = await app.events.read(after=seen_before, task_id=task_id)
        print("in the log:", len(logged))
        async with client.get(f"{api.address}/tasks/{task_id}") as said:
            task = await said.json()
            print("task:", task["status"], task["result"]["data"]["width"])
        async with client.get(f"{api.address}/workers") as said:
            remote = [worker["id"] for worker in await said.json() if worker["address"]]
            print("workers:", sorted(remote))
        async with client.get(f"{api.address}/status") as said:
            print("leads:", (await said.json())["is_leader"])


@asynccontextmanager
async def http_workers(secret_file: Path) -> AsyncIterator[dict[str, str]]:
    """Their processes, each with its own secret, and where they are."""
    started: dict[str, Process] = {}
    try:
        for name in WEIGHTS:
            own = secret_file.with_name(f"{name}.secret")
            own.write_text(await output_of("-m", "tickwork", "workers", "secret", name, secret_file=secret_file))
            command = ("-m", f"{__package__}.worker", name, "--secret-file", str(own))
            started[name] = await asyncio.create_subprocess_exec(sys.executable, *command, stdout=PIPE)
        yield {name: await first_line(process) for name, process in started.items()}
    finally:
        for process in started.values():
            process.terminate()
            await process.wait()


async def output_of(*command: str, secret_file: Path) -> str:
    environ = {**os.environ, "TICKWORK_SECRET_FILE": str(secret_file)}
    process = await asyncio.create_subprocess_exec(sys.executable, *command, stdout=PIPE, stderr=PIPE, env=environ)
    output, errors = await process.communicate()
    if process.returncode:
        raise RuntimeError(errors.decode())
    return output.decode().strip()


async def first_line(process: Process) -> str:
    assert process.stdout is not None
    return (await process.stdout.readline()).decode().strip()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--store", default="memory://")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(main(given.store, Path(folder) / "secret"))
