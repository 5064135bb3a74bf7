"""An executor of your own: tasks are run by programs of this machine, each in a process of its own.

Retries, timeouts, cancelling and leases are the same as for handlers: a task that takes too long is killed and tried
again. docs/executors.md explains it.

Run me: python examples/programs.py
"""

from __future__ import annotations

import asyncio
import sys

import msgspec

from tickwork import ExecutorError, Grant, Scheduler, TaskContext, TaskFailed, TaskResult

COUNT_WORDS = "import json; print(len(json.loads(input())['text'].split()))"
HANG = "import time; print('far from done', flush=True); time.sleep(60)"


class Program:
    """Runs a command without a shell. It reads the payload from standard input and prints its result, both as JSON."""

    def __init__(self, *command: str) -> None:
        self._command = command

    async def run(self, task: Grant, entry: object, context: TaskContext) -> TaskResult:
        pipe = asyncio.subprocess.PIPE
        process = await asyncio.create_subprocess_exec(*self._command, stdin=pipe, stdout=pipe, stderr=pipe)
        try:
            output, errors = await process.communicate(task.spec.payload)
        except asyncio.CancelledError:  # a timeout, a cancel, a lost lease, or a shutdown
            process.kill()
            await process.wait()
            raise
        if process.returncode:
            raise ExecutorError(f"exit status {process.returncode}", report=errors.decode().strip())
        return TaskResult(data=msgspec.json.decode(output))


app = Scheduler("memory://", max_retry=0)
app.executors.register("words", Program(sys.executable, "-c", COUNT_WORDS))
app.executors.register("refusing", Program(sys.executable, "-c", "raise SystemExit('no such order')"), types=["ship"])
app.executors.register("hanging", Program(sys.executable, "-c", HANG), types=["hang"])


@app.task(executor="words")  # its signature checks the payload; its body is not run
async def count_words(text: str) -> int:
    raise NotImplementedError


async def main() -> None:
    async with app:
        counted = await count_words.submit("the quick brown fox")
        print("words:", await counted.result())
        for task in (await app.submit("ship"), await app.submit("hang", timeout=0.5)):
            try:
                await task.result()
            except TaskFailed:
                print("failed:", (await task.info()).last_error)


if __name__ == "__main__":
    asyncio.run(main())
