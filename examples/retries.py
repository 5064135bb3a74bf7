"""Two ways to try again: Tickwork's retries, and a loop of the handler's own.

    python examples/retries.py                  about nine seconds
    python examples/retries.py --seconds 0.1    the first pause is a tenth of a second

Tickwork's retries are better nearly always: the task waits in the store and not in a slot, a restart does not forget
it, and everyone can see it. A loop of your own suits a short hiccup in the middle of longer work.
"""

from __future__ import annotations

import argparse
import asyncio
import logging
import sys

from tickwork import LinearBackoff, Retry, Scheduler, TaskContext, TaskFailed

TRIES = 3

app = Scheduler("memory://")


class Service:
    """Fails a number of times, then answers."""

    def __init__(self, failures: int) -> None:
        self.left = failures

    async def call(self) -> str:
        if self.left > 0:
            self.left -= 1
            raise ConnectionError("no answer")
        return "an answer"


class OwnLoop:
    """Three tries with growing pauses inside one attempt; then it has failed for good."""

    def __init__(self, service: Service, pause: float) -> None:
        self.service = service
        self.pause = pause

    async def handle(self, ctx: TaskContext, payload: None) -> str:
        for attempt in range(1, TRIES + 1):
            try:
                return await self.service.call()
            except ConnectionError as error:
                ctx.logger.warning("Task retry attempt=%d error=%r", attempt, str(error))
                await asyncio.sleep(self.pause * attempt)
        raise RuntimeError(f"task failed after {TRIES} retries")


class StoredRetries:
    """Lets the error out; the strategy of the task does the rest."""

    def __init__(self, service: Service) -> None:
        self.service = service

    async def handle(self, ctx: TaskContext, payload: None) -> str:
        answer = await self.service.call()
        if ctx.attempt < TRIES:
            raise Retry(reason="the answer is not final yet")
        return f"{answer} on attempt {ctx.attempt}"


async def main(pause: float) -> None:
    backoff = LinearBackoff(base=pause, increment=pause)
    app.registry.register("own_loop", OwnLoop(Service(2), pause), max_retry=0)
    app.registry.register("own_loop_fails", OwnLoop(Service(99), pause), max_retry=0)
    app.registry.register("stored_retries", StoredRetries(Service(1)), max_retry=3, retry=backoff)

    async with app:
        handles = [await app.submit(name) for name in ("own_loop", "stored_retries", "own_loop_fails")]
        for handle in handles:
            info = await handle.info()
            try:
                print(f"{info.type}: {await handle.result(timeout=60)}", flush=True)
            except TaskFailed as error:
                print(f"{info.type}: {(error.info.last_error or '').splitlines()[0]}", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Two ways to try again.")
    parser.add_argument("--seconds", type=float, default=1.0, help="the first pause between two tries")
    logging.basicConfig(level=logging.WARNING, format="%(levelname)s %(message)s", stream=sys.stdout)
    asyncio.run(main(parser.parse_args().seconds))
