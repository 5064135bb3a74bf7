"""A node with a handler that kills its own process."""

from __future__ import annotations

import os
import signal
import sys

from tests.integration.apps import SOON_LED
from tests.integration.child_node import make


def main() -> None:
    app = make(sys.argv[1], **SOON_LED)

    @app.task
    async def kill(payload: None) -> None:
        os.kill(os.getpid(), signal.SIGKILL)

    app.run()


if __name__ == "__main__":
    main()
