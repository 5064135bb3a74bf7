"""What the control plane holds: `python -m benchmarks.control`.

A Redis is filled with tasks, dead letters, schedules and workers. A real `tickwork server` is started on it, and asked
for what each view of the dashboard asks for. Where there is a Chromium, each page is opened in it. Then tasks are
submitted in batches, and at last one by one while many event streams are open. `--short` does less of each, as the
tests do.
"""

from __future__ import annotations

import asyncio
import http.client
import json
import logging
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from typing import Any

import click
from msgspec import Struct
from tests.support.redis import RedisServer

from tickwork import Scheduler
from tickwork.model.info import RemoteWorker

VIEWS = {
    "overview": ["overview", "counts"],
    "queues": ["queues"],
    "types": ["types"],
    "tasks": ["tasks?limit=100"],
    "tasks, ready": ["tasks?limit=100&q=status:ready"],
    "tasks, dead": ["tasks?limit=100&q=status:dead"],
    "tasks, type and status": ["tasks?limit=100&q=status:success%20type:mail"],
    "task": ["tasks/{task}", "tasks/{task}/explain", "tasks/{task}/events", "tasks/{task}/dependencies"],
    "failures": ["failures"],
    "schedules": ["schedules", "schedules/calendar"],
    "workers": ["workers"],
    "limits": ["limits", "breakers", "switches"],
    "events": ["events?limit=100"],
    "audit": ["audit?limit=100"],
    "alerts": ["alerts"],
    "reports": ["reports"],
    "series": ["stats/series?minutes=1440"],
}
PAGES = (
    "", "queues", "queues/slow", "queues?by=type", "tasks", "tasks?q=status:dead", "tasks/{task}", "failures",
    "schedules", "schedules/schedule-007", "workers", "limits", "events", "events/audit", "alerts", "reports",
    "settings/store",
)  # fmt: skip
ROUNDS, DRAWS = 9, 3
DRAWN = """() => document.querySelector("h1")?.textContent && document.querySelector("main > *")
  && !document.querySelector("[aria-busy=true]") ? performance.now() : 0"""
QUIET = logging.getLogger(__name__)  # the dead letters are wanted, and each would be told
QUIET.setLevel(logging.CRITICAL)


class Size(Struct, frozen=True):
    tasks: int
    dead: int
    schedules: int
    workers: int
    streams: int
    seconds: float
    rate: int


LONG = Size(1_000_000, 5_000, 200, 50, 200, 60.0, 2_000)
SHORT = Size(20_000, 500, 50, 10, 20, 3.0, 200)


async def fill(url: str, size: Size) -> str:
    """Tasks in every status, and all else that a view shows. Answers the id of one of them."""
    app = Scheduler(url, concurrency=200, scheduler_id="bench-node", dlq_max=10_000, worker_timeout=3600, logger=QUIET)

    @app.task(max_retry=0)
    async def mail(number: int) -> None:
        if number < 0:
            raise ValueError(f"no address {-number % 7}")

    ended = size.tasks // 2
    async with app:
        await app.index_tasks()
        left = ended
        while left > 0:
            await app.submit_many("mail", range(min(left, 20_000)))
            left -= 20_000
        await app.submit_many("mail", range(-size.dead, 0))
        while True:
            stats = await app.queue_stats()
            if not stats.normal_count and not stats.running_count:
                break
            await asyncio.sleep(0.2)
        await asyncio.sleep(3)  # statistics are written every two seconds
    for number in range(size.schedules):
        await app.schedules.put(f"schedule-{number:03}", "mail", number, cron=f"{number % 60} {number % 24} * * *")
    for number in range(size.workers):
        await app.register_worker(RemoteWorker(id=f"worker-{number:03}", task_types=("mail",)))
    await app.limits.set("type:other", rate="100/m")
    await app.submit_many("mail", range(size.tasks // 4), delay=36_000)
    handles = await app.submit_many("other", range(size.tasks // 4), queue="slow")
    await app.close()
    return handles[0].id


@contextmanager
def served(url: str, *options: str) -> Iterator[tuple[str, int]]:
    command = [sys.executable, "-m", "tickwork", "--json", "server", url, "--port", "0", *options]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        lines: list[str] = []
        while not lines or lines[-1].rstrip() != "}":
            lines.append(process.stdout.readline())
            if not lines[-1]:
                raise RuntimeError(f"the server did not come up: exit code {process.wait()}")
        address = json.loads("".join(lines))["url"].removeprefix("http://")
        try:
            yield address, process.pid
        finally:
            process.terminate()
            process.communicate(timeout=20)


def timed(connection: http.client.HTTPConnection, path: str) -> tuple[float, int]:
    began = time.perf_counter()
    connection.request("GET", f"/api/v1/{path}")
    answer = connection.getresponse()
    size = len(answer.read())
    assert answer.status == 200, (path, answer.status)
    return time.perf_counter() - began, size


def look(address: str, task: str) -> Iterator[tuple[str, float, float, int]]:
    """For each view: milliseconds at the median and at worst, and bytes, of all its requests together."""
    connection = http.client.HTTPConnection(address, timeout=60)
    for view, paths in VIEWS.items():
        taken: list[float] = []
        size = 0
        for _ in range(ROUNDS):
            found = [timed(connection, path.format(task=task)) for path in paths]
            taken.append(1000 * sum(seconds for seconds, _ in found))
            size = sum(each for _, each in found)
        yield view, statistics.median(taken), max(taken), size
    connection.close()


def draw(address: str, task: str) -> Iterator[tuple[str, float]]:
    """For each page: milliseconds from a cold start of it until it is drawn and no part of it waits for data."""
    from playwright.sync_api import sync_playwright
    from tests.ui.browsing import chromium, desk, launch

    path = chromium()
    if path is None:
        return
    with sync_playwright() as playwright:
        browser = launch(playwright, path)
        for place in PAGES:
            taken = []
            for _ in range(DRAWS):
                with desk(browser, f"http://{address}") as at:  # with nothing in its cache
                    at.page.goto(f"http://{address}/{place.format(task=task)}")
                    taken.append(at.page.wait_for_function(DRAWN, polling="raf").json_value())
            yield place or "overview", statistics.median(taken)


def batches(address: str, seconds: float) -> float:
    """Tasks a second, by two connections that send batches of 1,000."""
    body = json.dumps({"tasks": [{"type": "mail", "payload": {"number": n}, "queue": "batch"} for n in range(1000)]})

    def send(until: float) -> int:
        connection = http.client.HTTPConnection(address, timeout=60)
        done = 0
        while time.perf_counter() < until:
            connection.request("POST", "/api/v1/tasks/batch", body, {"content-type": "application/json"})
            answer = connection.getresponse()
            created = json.loads(answer.read())["created"]
            assert created == 1000, (answer.status, created)
            done += created
        return done

    began = time.perf_counter()
    with ThreadPoolExecutor(2) as pool:
        done = sum(pool.map(send, [began + seconds] * 2))
    return done / (time.perf_counter() - began)


class Load(Struct, frozen=True):
    """What came of it: tasks sent and answered, frames that streams have got, in all and at most in one second."""

    sent: int
    answered: int
    seconds: float
    frames: int
    most: float
    heard: int
    slowest: float


async def load(address: str, size: Size) -> Load:
    """Submits one by one at a rate, while streams are open, in one event loop."""
    host, _, port = address.partition(":")
    frames: list[list[float]] = []
    heard: set[str] = set()

    async def follow() -> None:
        reader, writer = await asyncio.open_connection(host, int(port), limit=2**22)
        with closing(writer):
            writer.write(f"GET /api/v1/events/stream?topics=task HTTP/1.1\r\nHost: {address}\r\n\r\n".encode())
            own: list[float] = []
            frames.append(own)
            first = len(frames) == 1
            while line := await reader.readline():
                if line.startswith(b"event: events"):
                    own.append(time.perf_counter())
                elif first and line.startswith(b"data: ["):
                    heard.update(each["id"] for each in json.loads(line[6:]))

    async def submit(number: int, count: int, begin: float, ids: list[str]) -> float:
        reader, writer = await asyncio.open_connection(host, int(port))
        slowest = 0.0
        with closing(writer):
            for n in range(count):
                await asyncio.sleep(max(begin + n * size.seconds / count - time.perf_counter(), 0))
                name = f"load-{number}-{n}"
                body = json.dumps({"type": "mail", "payload": {"number": n}, "id": name, "queue": "load"}).encode()
                head = f"POST /api/v1/tasks HTTP/1.1\r\nHost: {address}\r\nContent-Type: application/json\r\n"
                asked = time.perf_counter()
                writer.write(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
                status = await reader.readline()
                length = 0
                while (line := await reader.readline()) != b"\r\n":
                    if line.lower().startswith(b"content-length:"):
                        length = int(line.split(b":")[1])
                await reader.readexactly(length)
                if b" 201 " in status:
                    ids.append(name)
                slowest = max(slowest, time.perf_counter() - asked)
        return slowest

    streams = [asyncio.create_task(follow()) for _ in range(size.streams)]
    while len(frames) < size.streams:
        await asyncio.sleep(0.05)
    await asyncio.sleep(1)
    senders = 50
    each = int(size.rate * size.seconds / senders)
    ids: list[str] = []
    began = time.perf_counter()
    slowest = max(await asyncio.gather(*(submit(number, each, began + 0.2, ids) for number in range(senders))))
    seconds = time.perf_counter() - began
    await asyncio.sleep(2)
    for stream in streams:
        stream.cancel()
    most = max((_most_in_a_second(own) for own in frames), default=0)
    return Load(each * senders, len(ids), seconds, sum(map(len, frames)), most, len(heard & set(ids)), slowest)


def _most_in_a_second(times: list[float]) -> int:
    return max((sum(at <= each < at + 1 for each in times) for at in times[::10]), default=0)


async def count_stored(url: str, queue: str) -> int:
    app = Scheduler(url)
    found = (await app.queue_stats(queue)).normal_count
    await app.close()
    return found


@click.command()
@click.option("--short", is_flag=True, help="Fewer tasks, streams and seconds.")
def main(short: bool) -> None:
    size = SHORT if short else LONG
    with RedisServer() as server:
        run(server.url, size, click.echo)


def run(url: str, size: Size, say: Callable[[str], Any]) -> None:
    began = time.perf_counter()
    task = asyncio.run(fill(url, size))
    say(f"{size.tasks:,} tasks, {size.dead:,} dead, {size.schedules} schedules, {size.workers} workers "
        f"in {time.perf_counter() - began:.0f} s")  # fmt: skip
    with served(url) as (address, _):
        for view, median, worst, bytes_ in look(address, task):
            say(f"{view:24} {median:7.1f} ms  worst {worst:7.1f} ms  {bytes_:9,} bytes")
        for place, taken in draw(address, task):
            say(f"drawn: {place.format(task='ID'):24} {taken:7.0f} ms")
        say(f"batch submit: {batches(address, min(size.seconds, 15)):,.0f} tasks/s")
        found = asyncio.run(load(address, size))
        stored = asyncio.run(count_stored(url, "load"))
        say(f"{size.streams} streams: {found.answered:,} of {found.sent:,} submits answered in {found.seconds:.1f} s, "
            f"{stored:,} stored, slowest {found.slowest * 1000:.0f} ms; {found.frames:,} frames, at most "
            f"{found.most:g} a second; the first stream heard of {found.heard:,} of these tasks")  # fmt: skip


if __name__ == "__main__":
    main()
