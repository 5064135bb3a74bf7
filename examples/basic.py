"""The smallest program: run an object of this process three seconds from now.

python examples/basic.py                 about five seconds
python examples/basic.py --seconds 0.5   the same, faster
"""

from __future__ import annotations

import argparse
import asyncio

from tickwork import Scheduler, TaskContext


class PrintJob:
    """Anything with an `id` and a `run` is a job."""

    def __init__(self, id: str) -> None:
        self.id = id

    def run(self, ctx: TaskContext) -> None:
        print("hello tickwork", flush=True)


async def main(seconds: float) -> None:
    app = Scheduler("memory://", concurrency=5)
    await app.start()
    await app.schedule_after(PrintJob("print-1"), delay=seconds * 3 / 5)
    await asyncio.sleep(seconds)
    await app.shutdown()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Run a job a little later.")
    parser.add_argument("--seconds", type=float, default=5.0, help="how long to stay up")
    asyncio.run(main(parser.parse_args().seconds))
