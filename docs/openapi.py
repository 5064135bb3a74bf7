"""Writes the description of the HTTP API that is kept beside the docs: `python -m docs.openapi`."""

from __future__ import annotations

import json
from pathlib import Path

from tickwork.server.http.app import openapi

FILE = Path(__file__).parent / "openapi.json"


def text() -> str:
    return json.dumps(openapi(), indent=1, sort_keys=True, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    FILE.write_text(text())
    print(f"wrote {FILE.name}")
