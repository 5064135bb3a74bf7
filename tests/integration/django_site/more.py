"""Tasks outside of a module named `tasks`."""

from __future__ import annotations

from tests.integration.django_site import tasks


@tasks.task
def hidden() -> str:
    return "found"
