"""A process of whatever version of Tickwork is on its path.

Arguments: `work` or `submit`, the store, a file for what it has done, and for `submit` the first letter of its task
ids. It imports nothing of the tests, which know one version only.
"""

from __future__ import annotations

import logging
import sys
import time
from pathlib import Path

from tickwork import Scheduler, TaskContext
from tickwork.errors import StoreError


def write(path: Path, line: str) -> None:
    with path.open("a") as file:
        file.write(f"{line}\n")


def work(url: str, done: Path) -> None:
    app = Scheduler(url, concurrency=4, lease_ttl=2, renew_interval=0.5, scan_interval=0.2)

    @app.task
    def step(milliseconds: int, ctx: TaskContext) -> int:
        time.sleep(milliseconds / 1000)
        write(done, ctx.task_id)
        return ctx.fence

    app.run()


def submit(url: str, done: Path, letter: str) -> None:
    """Submit until the store refuses, or the file `<done>.stop` is there."""
    app = Scheduler(url)
    number = 0
    while not done.with_suffix(".stop").exists():
        task_id = f"{letter}{number}"
        try:
            app.sync.submit("step", 20, id=task_id)
        except StoreError as error:
            write(done.with_suffix(".refused"), str(error))
            return
        write(done, task_id)
        number += 1
        time.sleep(0.005)


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO)
    if sys.argv[1] == "work":
        work(sys.argv[2], Path(sys.argv[3]))
    else:
        submit(sys.argv[2], Path(sys.argv[3]), sys.argv[4])
