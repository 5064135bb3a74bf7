"""How a scheduler and its store are, at one moment."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Literal

from msgspec import Struct


class Check(Struct, frozen=True):
    """One thing that was looked at."""

    status: Literal["ok", "warning", "error"]
    message: str


class Health(Struct, frozen=True):
    """All that was looked at, and how it is as a whole: `unhealthy` if something does not work, `degraded` if something
    wants to be looked at by somebody."""

    status: Literal["healthy", "degraded", "unhealthy"]
    timestamp: datetime
    checks: dict[str, Check]

    @classmethod
    def of(cls, timestamp: datetime, checks: Mapping[str, Check]) -> Health:
        found = {check.status for check in checks.values()}
        status: Literal["healthy", "degraded", "unhealthy"]
        status = "unhealthy" if "error" in found else "degraded" if "warning" in found else "healthy"
        return cls(status, timestamp, dict(checks))

    @property
    def works(self) -> bool:
        return self.status != "unhealthy"
