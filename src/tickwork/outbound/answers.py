"""What an answer that is no success means for the attempt, the same for all who call by HTTP."""

from __future__ import annotations

import math
import random
import re
from datetime import UTC, datetime

from tickwork.errors import Abort, ExecutorError, Snooze
from tickwork.outbound.client import Answer
from tickwork.texts import said

NOT_NOW = frozenset((408, 425, 429, 503))
PAUSE = 5.0  # seconds until another try where the other side does not say when
PAUSE_MAX = 3600.0
_SECONDS = re.compile(r"[0-9]{1,9}")


def verdict_of(place: str, answer: Answer) -> Exception:
    """What to raise: `Snooze` for "not now", `ExecutorError` for a failure there, `Abort` for what stays as it is."""
    text = f"{place} has answered {answer.status}"
    if answer.status in NOT_NOW:
        return Snooze(pause_of(answer))
    if 300 <= answer.status < 400:
        return Abort(f"{text}; redirects are not followed")
    if words := said(answer.body[:4000].decode("utf-8", "replace")):
        text += f": {words!r}"
    return ExecutorError(text) if answer.status >= 500 else Abort(text)


def pause_of(answer: Answer) -> float:
    """The seconds that the other side asks for, within bounds."""
    asked = answer.headers.get("retry-after", "").strip()
    if _SECONDS.fullmatch(asked):
        return pause(float(asked))
    return pause(_until(asked) if asked else PAUSE)


def pause(asked: float) -> float:
    """From a second to an hour, and up to a fifth more, so that not all tasks come back at once."""
    return min(max(asked, 1.0), PAUSE_MAX) * random.uniform(1.0, 1.2)  # noqa: S311  no secret


def _until(date: str) -> float:
    from email.utils import parsedate_to_datetime  # few answers have a date

    try:
        moment = parsedate_to_datetime(date[:64])
    except (ValueError, TypeError, OverflowError):
        return PAUSE
    aware = moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
    return math.ceil((aware - datetime.now(UTC)).total_seconds())
