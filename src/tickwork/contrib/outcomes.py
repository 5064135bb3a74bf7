"""How a run ended, as far as a middleware around it knows that."""

from __future__ import annotations

import asyncio
from typing import Literal, TypeAlias

from tickwork.errors import Abort, Retry, Snooze
from tickwork.executors.base import EndedElsewhere
from tickwork.handlers.middleware import RunCall

RunOutcome: TypeAlias = Literal["success", "failed", "aborted", "retry", "snoozed", "timeout", "stopped", "reported"]

UNFIT = "the payload does not fit the handler"  # instead of the error's own text, which may hold parts of the payload


def outcome_of(call: RunCall, error: BaseException) -> tuple[RunOutcome, bool]:
    """What an exception out of `next(call)` means, and whether it is an error."""
    match error:
        case Snooze():
            return "snoozed", False
        case EndedElsewhere():
            return "reported", False
        case Retry():
            return "retry", call.ctx.is_last_attempt
        case asyncio.CancelledError() if call.ctx._stopped_by == "timeout":
            return "timeout", True
        case asyncio.CancelledError() if call.ctx.cancelled:
            return "stopped", False
        case Abort():
            return "aborted", True
        case _:
            return "failed", True
