"""Waiting for a condition instead of sleeping for a guess."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable


async def wait_until(condition: Callable[[], object], timeout: float = 30, what: str = "") -> None:
    """Return once `condition()` is true; fail the test if it is not within `timeout` seconds."""
    deadline = time.monotonic() + timeout
    while not condition():
        if time.monotonic() > deadline:
            raise AssertionError(f"not within {timeout:g} s: {what or 'the condition'}")
        await asyncio.sleep(0.005)
