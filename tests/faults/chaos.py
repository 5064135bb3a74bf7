"""All fault cases in their long form, one after the other: `python -m tests.faults.chaos --seed 7 --only zombie`."""

from __future__ import annotations

import argparse
import asyncio
import os
import random
import sys
import time

from tests.faults.cases import CASES
from tests.faults.redis_faults import KEEP, Scale


def run(name: str, seed: int, scale: Scale) -> bool:
    started = time.monotonic()
    try:
        figures, good = asyncio.run(run_case(name, seed, scale)), True
    except Exception as error:  # the others still have something to say
        notes = "".join(f"\n  {note}" for note in getattr(error, "__notes__", ()))
        figures, good = f"{type(error).__name__}: {error}{notes}", False
    print(f"{'ok ' if good else 'RED'} {name} ({time.monotonic() - started:.0f} s): {figures}", flush=True)
    return good


async def run_case(name: str, seed: int, scale: Scale) -> str:
    return await CASES[name](seed, scale)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=random.randrange(10**6))
    parser.add_argument("--only", choices=CASES, action="append", metavar="CASE", help=", ".join(CASES))
    parser.add_argument("--scale", choices=("short", "long"), default="long")
    options = parser.parse_args()
    print(f"seed {options.seed}", flush=True)
    os.environ[KEEP] = "1"
    results = [run(name, options.seed, options.scale) for name in options.only or CASES]
    return 0 if all(results) else 1


if __name__ == "__main__":
    sys.exit(main())
