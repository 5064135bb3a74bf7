"""A node of its own process that calls other hosts. Argument: the options of its scheduler, as JSON."""

from __future__ import annotations

import json
import logging
import sys

from tickwork import Scheduler


def main() -> None:
    options = json.loads(sys.argv[1])
    app = Scheduler(
        lease_ttl=3, renew_interval=0.5, leader_lease_ttl=1, leader_renew_interval=0.2, scan_interval=0.2,
        concurrency=8, **options,
    )  # fmt: skip

    @app.task
    async def step(number: int) -> int:
        return number

    app.run()


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO)
    main()
