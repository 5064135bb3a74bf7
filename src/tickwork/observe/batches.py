"""What those hear who only count: of many tasks at once, as an observation for each takes longer than to count it."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from tickwork.model.tasks import Spec


class TasksCreated(Struct, frozen=True):
    """Tasks that this process has created by one call to the store."""

    specs: Sequence[Spec]
