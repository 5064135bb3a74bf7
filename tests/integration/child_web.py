"""A web application that uses its scheduler when it is imported, as a check at the start does, and then in requests."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from typing import Any

from tickwork import Scheduler

app = Scheduler(os.environ["CHILD_WEB_STORE"], namespace="web")
app.sync.submit("mail", id="imported")


def web(environ: dict[str, Any], respond: Callable[[str, list[tuple[str, str]]], object]) -> Iterable[bytes]:
    handle = app.sync.submit("mail", environ["PATH_INFO"])
    respond("200 OK", [("Content-Type", "text/plain")])
    return [f"{os.getpid()} {handle.info().status}".encode()]
