"""Faults that nobody has planned: a process or a server that the machine gives no time to run."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from tests.faults.history import History

PAUSE = 0.05  # seconds between two looks
STALL = 0.2  # seconds longer than that which are worth a line


def watch_for_stalls(
    history: History, kind: str, victim: int | None, look: Callable[[], None] = lambda: None
) -> Callable[[], None]:
    """Look again and again, in a thread of its own, and write down when that took too long: this process, or what it
    looked at, was kept waiting. Calling the answer ends it; then it writes no more."""
    end = threading.Event()

    def watch() -> None:
        while not end.is_set():
            before = time.time()
            look()
            time.sleep(PAUSE)
            now = time.time()
            if now - before > PAUSE + STALL and not end.is_set():
                history.write("fault", kind=kind, victim=victim, at=before, till=now)

    def stop() -> None:
        end.set()
        thread.join()

    thread = threading.Thread(target=watch, name=f"watch-{kind}", daemon=True)
    thread.start()
    return stop
