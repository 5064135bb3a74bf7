"""Heavy computing in child processes: small pictures are resized, and a long list of numbers is summed up in pieces.

    python examples/processes.py

A handler with `run_in="process"` is a function at the top level of a module, since the child finds it by import. The
program starts below `if __name__ == "__main__"`, so that this import starts nothing.
"""

from __future__ import annotations

import asyncio
import os
import tempfile
from pathlib import Path

from tickwork import Scheduler, TaskContext

app = Scheduler("memory://", concurrency=2)


@app.task(run_in="process", timeout=60)
def image_resize(path: Path, width: int, height: int) -> Path:
    """Resize a grey picture (binary PGM) by taking the nearest dots; gives the path of the new one."""
    kind, size, _, dots = path.read_bytes().split(b"\n", 3)
    if kind != b"P5":
        raise ValueError(f"{path} is not a PGM picture")
    old_width, old_height = map(int, size.split())
    resized = bytes(
        dots[row * old_height // height * old_width + column * old_width // width]
        for row in range(height)
        for column in range(width)
    )
    target = path.with_stem(f"{path.stem}-{width}x{height}")
    target.write_bytes(b"P5\n%d %d\n255\n%s" % (width, height, resized))
    return target


@app.task(run_in="process", timeout=60)
def data_processing(ctx: TaskContext, first: int, last: int) -> int:
    """The sum of the prime numbers from `first` to `last`, the slow way."""
    total = 0
    for number in range(max(first, 2), last + 1):
        if all(number % divisor for divisor in range(2, int(number**0.5) + 1)):
            total += number
    ctx.progress(1.0, f"done in process {os.getpid()}")
    return total


def draw(path: Path, width: int, height: int) -> None:
    """A picture that gets lighter from left to right."""
    row = bytes(column * 255 // (width - 1) for column in range(width))
    path.write_bytes(b"P5\n%d %d\n255\n%s" % (width, height, row * height))


async def main(folder: Path) -> None:
    picture = folder / "photo.pgm"
    draw(picture, 64, 48)

    async with app:
        resizing = [await image_resize.submit(picture, width=64 // n, height=48 // n) for n in (2, 4)]
        for handle in resizing:
            small = await handle.result(timeout=60)
            print(small.name, small.stat().st_size, "bytes")

        pieces = [{"first": start, "last": start + 4_999} for start in range(0, 20_000, 5_000)]
        summing = await data_processing.submit_many(pieces)
        print("sum of primes below 20000:", sum([await handle.result(timeout=60) for handle in summing]))
        notes = {(await handle.info()).progress_note for handle in summing}
        print("in child processes only:", f"done in process {os.getpid()}" not in notes)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as name:
        asyncio.run(main(Path(name)))
