"""`python -m benchmarks.calls`: what many HTTP calls at a time cost the node that makes them, in memory and CPU.

The service is a process of its own, which answers after a while. The node is this process: one worker with a slot for
each call, on a store in memory. Its memory is looked at while all calls are open.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import time
from pathlib import Path

import click

from tickwork import Scheduler

PAGE = os.sysconf("SC_PAGE_SIZE")
BOUND = 150  # MB that a thousand calls of one second may take


@click.command()
@click.option("--calls", default=1000, show_default=True, type=click.IntRange(min=1), help="Calls at a time.")
@click.option("--seconds", default=1.0, show_default=True, type=click.FloatRange(0), help="How long each takes.")
@click.option("--rounds", default=5, show_default=True, type=click.IntRange(min=1), help="Batches, one after another.")
@click.option("--answer", default=1024, show_default=True, type=click.IntRange(min=2), help="Bytes of each answer.")
@click.option("--serve", is_flag=True, hidden=True)
def main(calls: int, seconds: float, rounds: int, answer: int, serve: bool) -> None:
    """What many HTTP calls at a time cost the node that makes them."""
    if sys.platform != "linux":
        raise click.UsageError("this reads /proc, so it needs Linux")
    if serve:
        asyncio.run(_serve(seconds, answer))
        return
    command = [sys.executable, "-m", "benchmarks.calls", "--serve", f"--seconds={seconds}", f"--answer={answer}"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as service:
        try:
            assert service.stdout is not None
            growth = asyncio.run(_call(int(service.stdout.readline()), calls, rounds))
        finally:
            service.terminate()
    if calls <= 1000 and growth > BOUND:
        raise SystemExit(f"more than {BOUND} MB")


async def _call(port: int, calls: int, rounds: int) -> float:
    """Returns by how many MB this process has grown at most."""
    address = f"http://127.0.0.1:{port}"
    app = Scheduler(
        "memory://", concurrency=calls, allow_addresses=[address],
        endpoints={"service": {"url": f"{address}/", "types": ["call"]}},
    )  # fmt: skip
    async with app:
        await (await app.submit("call")).result()  # all modules are imported now
        before, most = _memory(), 0.0
        click.echo(f"before: {before:.1f} MB")
        for number in range(rounds):
            began, cpu = time.perf_counter(), time.process_time()
            tasks = await app.submit_many("call", [{"number": each} for each in range(calls)])
            waiting = asyncio.ensure_future(asyncio.gather(*(task.result() for task in tasks)))
            peak = before
            while not waiting.done():
                peak = max(peak, _memory())
                await asyncio.wait([waiting], timeout=0.02)
            at_a_time = max(result["most"] for result in await waiting)
            most = max(most, peak - before)
            click.echo(
                f"round {number + 1}: {calls} calls, {at_a_time} at a time, in {time.perf_counter() - began:.2f} s, "
                f"{(time.process_time() - cpu) / calls * 1e6:.0f} us of CPU a call, "
                f"at most {peak - before:+.1f} MB, now {_memory() - before:+.1f} MB"
            )
    click.echo(f"{calls} calls at a time: {most:.1f} MB, {most * 1000 / calls:.0f} kB a call")
    return most


async def _serve(seconds: float, answer: int) -> None:
    """Answers how many calls were open at a time, so that nobody measures calls that waited for each other."""
    from aiohttp import web

    open_calls = most = 0

    async def respond(request: web.Request) -> web.Response:
        nonlocal open_calls, most
        open_calls += 1
        most = max(most, open_calls)
        await request.read()
        await asyncio.sleep(seconds)
        open_calls -= 1
        return web.json_response({"most": most, "filling": "x" * answer})

    service = web.Application()
    service.router.add_post("/", respond)
    runner = web.AppRunner(service, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0, backlog=4096).start()
    print(runner.addresses[0][1], flush=True)
    await asyncio.Event().wait()


def _memory() -> float:
    """MB that this process has in RAM."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * PAGE / 1e6


if __name__ == "__main__":
    main()
