"""Imported before the tasks: sets Django up, with another store for each test."""

from __future__ import annotations

import os
from typing import Any

import django
from django.test import override_settings

from tests.integration.apps import FAST, ROOT
from tests.integration.django_site import settings
from tests.support.waiting import wait_until

MANAGE = ROOT / "tests" / "integration" / "django_site" / "manage.py"

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "tests.integration.django_site.settings")
django.setup()


def tasks_on(url: str) -> Any:
    """The settings with this store, for a `with` statement."""
    quick = {name: value for name, value in FAST.items() if name not in ("timeout", "retry")}
    backend = {**settings.TASKS["default"], "OPTIONS": {**settings.OPTIONS, "store": url, **quick}}
    return override_settings(TASKS={**settings.TASKS, "default": backend})


async def finished(result: Any) -> Any:
    await wait_until(lambda: result.refresh() or result.is_finished, 90, f"the end of {result.task.name}")
    return result
