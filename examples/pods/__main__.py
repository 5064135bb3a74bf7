"""Three pods on one store. Each schedules and works; one of them leads. Then the leader is killed.

Run me, in the root of the repository: python -m examples.pods [--store redis://localhost:6379/0] [--pods 5]
"""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
import tempfile
from asyncio.subprocess import Process
from collections.abc import Awaitable, Callable

from tickwork import Scheduler

from .services import services


async def main(store: str, count: int) -> None:
    async with services() as (stock, mail):
        os.environ.update(TICKWORK_STORE=store, STOCK=stock, MAIL=mail)
        from .app import app  # reads these

        await put_task_configs(app)
        pods = {f"pod-{number}": await start_pod(f"pod-{number}") for number in range(1, count + 1)}
        try:
            await until(lambda: has_workers(app, count))
            await run_task_configs(app)
            await share_out(app, count)
            await lose_the_leader(app, pods)
        finally:
            await stop(list(pods.values()))
        await app.close()


async def put_task_configs(app: Scheduler) -> None:
    from .app import task_configs

    for task in task_configs():
        await app.schedules.put(
            task.id, task.type, task.payload, cron=task.cron, timeout=task.timeout, max_retry=task.max_retry,
            enabled=task.enabled,
        )  # fmt: skip
    print("task configs:", {each.id: "on" if each.enabled else "off" async for each in app.schedules})


async def run_task_configs(app: Scheduler) -> None:
    """Now, and not when their cron lines say so."""
    for name in ("stock-count", "newsletter", "clean-up"):
        task = app.handle(await app.schedules.trigger(name))
        await task.result(timeout=60)
        info = await task.info()
        print(f"{name} ({info.executor}): {info.result and info.result.data}")


async def share_out(app: Scheduler, count: int) -> None:
    """The leader looks for new pods once a second, so the last one may come a little later than the others."""
    used: set[str | None] = set()
    async with asyncio.timeout(60):
        while len(used) < count:
            tasks = await app.submit_many("work", [{"number": number} for number in range(60)])
            for task in tasks:
                await task.result()
            used |= {(await task.info()).worker_id for task in tasks}
    print(f"tasks ran on all {count} pods")


async def lose_the_leader(app: Scheduler, pods: dict[str, Process]) -> None:
    before = (await app.status()).leader_id or "pod-1"
    tasks = await app.submit_many("work", [{"number": number} for number in range(200)])
    killed = pods.pop(before)
    killed.kill()
    await killed.wait()
    print("the leader is killed")
    total = sum([await task.result(timeout=60) for task in tasks])
    print("all 200 tasks are done:", total == sum(number * number for number in range(200)))
    await until(lambda: has_other_leader(app, before))
    print("another pod leads")


async def has_workers(app: Scheduler, count: int) -> bool:
    return len(await app.list_workers(status="online")) == count and (await app.status()).leader_id is not None


async def has_other_leader(app: Scheduler, before: str) -> bool:
    return (await app.status()).leader_id not in (None, before)


async def until(condition: Callable[[], Awaitable[bool]]) -> None:
    async with asyncio.timeout(60):
        while not await condition():
            await asyncio.sleep(0.05)


async def start_pod(name: str) -> Process:
    """A process, as one that Kubernetes starts: its name comes from its environment."""
    return await asyncio.create_subprocess_exec(
        sys.executable, "-m", "tickwork", "up", f"{__package__}.app:app", "--log-level", "warning",
        env={**os.environ, "TICKWORK_WORKER_ID": name}, stdout=asyncio.subprocess.DEVNULL,
    )  # fmt: skip


async def stop(pods: list[Process]) -> None:
    for pod in pods:
        pod.terminate()
    print("pods that ended well:", [await pod.wait() for pod in pods].count(0))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--store", help="a URL that processes share; a new SQLite file if left out")
    parser.add_argument("--pods", type=int, default=3)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(main(given.store or f"sqlite:///{folder}/pods.db", given.pods))
