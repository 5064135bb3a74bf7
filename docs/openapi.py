"""Writes the description of the HTTP API that is kept beside the docs: `python -m docs.openapi`."""

from __future__ import annotations

import json
from pathlib import Path

from tickwork import Scheduler
from tickwork.server.http.app import openapi_of

FILE = Path(__file__).parent / "openapi.json"


def text() -> str:
    app = Scheduler("memory://")
    return json.dumps(openapi_of(app, app.config), indent=1, sort_keys=True, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    FILE.write_text(text())
    print(f"wrote {FILE.name}")
