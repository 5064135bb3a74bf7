"""What a configuration says in vain, so that nobody believes in it."""

from __future__ import annotations

import os

from tickwork.config.urls import mask_url


def unused_store(store: str | None, url: str) -> list[str]:
    """Other commands go by the environment, so they would look at another store."""
    named = os.environ.get("TICKWORK_STORE")
    if not named or named == store:
        return []
    return [f"TICKWORK_STORE={mask_url(named)} is not used: the application names {url}"]
