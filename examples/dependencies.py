"""Tasks that wait for other tasks: a chain, a fan-in, and what happens when a step fails.

    python examples/dependencies.py

                    /-> transform eu -\\
    extract (once) ---> transform us ---> load -> report
                    \\-> transform asia -/

Results are not handed from task to task; the steps share a warehouse, as real ones would share a database.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

from tickwork import Abort, Scheduler, TaskCancelled

REGIONS = ("eu", "us", "asia")

app = Scheduler("memory://")


@dataclass
class Warehouse:
    raw: dict[str, list[int]] = field(default_factory=dict)
    totals: dict[str, int] = field(default_factory=dict)


warehouse = Warehouse()


@app.task
async def extract() -> int:
    warehouse.raw = {region: [number * len(region) for number in range(1, 4)] for region in REGIONS}
    return len(warehouse.raw)


@app.task
async def transform(region: str) -> int:
    if region not in warehouse.raw:
        raise Abort(f"no data for {region!r}")
    warehouse.totals[region] = sum(warehouse.raw[region])
    return warehouse.totals[region]


@app.task
async def load() -> int:
    return sum(warehouse.totals.values())


@app.task
async def report(title: str) -> str:
    return f"{title}: {warehouse.totals}"


async def main() -> None:
    async with app:
        source = await extract.submit()
        parts = [await transform.options(depends_on=[source]).submit(region) for region in REGIONS]
        total = await load.options(depends_on=parts).submit()
        final = await report.options(depends_on=[total]).submit("sales")
        print("report is", (await final.info()).status)

        print("extracted", await source.result(timeout=10))
        print("total", await total.result(timeout=10))
        print(await final.result(timeout=10))

        broken = await transform.submit("atlantis")
        orphan = await report.options(depends_on=[broken]).submit("never")
        try:
            await orphan.result(timeout=10)
        except TaskCancelled as error:
            print("report is", error.info.status, "because its step failed")


if __name__ == "__main__":
    asyncio.run(main())
