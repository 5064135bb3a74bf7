"""How a run ends, as data: from a return value or an exception to an `Outcome`. Pure."""

from __future__ import annotations

import random
import traceback
from datetime import datetime

from tickwork.backoff import Backoff, delay
from tickwork.context import storable
from tickwork.errors import Abort, Retry, Snooze
from tickwork.executors.local import UnfitPayload
from tickwork.executors.process import ChildDied, ChildError
from tickwork.model import Aborted, Failed, Outcome, Snoozed, to_millis
from tickwork.store.base import Grant

ERROR_MAX = 8000


def of_error(error: BaseException, grant: Grant, default: Backoff, duration: float) -> Outcome:
    """What the store is told when the handler raised. Never raises itself, whatever strange exception came."""
    try:
        return _of_error(error, grant, default, duration)
    except Exception:  # an exception of the user's own may fail when it is looked at
        return failed(grant, f"{type(error).__name__}: (cannot be shown)", default, duration)


def _of_error(error: BaseException, grant: Grant, default: Backoff, duration: float) -> Outcome:
    lease = grant.lease
    match error:
        case Snooze(until=until):
            if isinstance(until, datetime):
                return Snoozed(lease, at=to_millis(until))
            return Snoozed(lease, delay=round(until * 1000))
        case Abort(reason=reason):
            return Aborted(lease, storable(str(reason))[:ERROR_MAX], duration)
        case UnfitPayload():
            text = storable(f"the payload does not fit the handler: {error}")
            return Aborted(lease, text[:ERROR_MAX], duration)
        case Retry(after=after):
            return failed(grant, str(error), default, duration, after)
        case _:
            return failed(grant, describe(error), default, duration)


def never_started(error: Exception, grant: Grant) -> Outcome:
    """What is stored of the task, or said of its handler, cannot be used: another try would find the same."""
    text = storable(f"the task could not be started: {type(error).__name__}: {error}")
    return Aborted(grant.lease, text[:ERROR_MAX])


def failed(grant: Grant, text: str, default: Backoff, duration: float, after: float | None = None) -> Outcome:
    """A retry if there is one left, else the end. Never raises: without an outcome it would run for ever."""
    text = storable(text)[:ERROR_MAX]
    try:
        if grant.attempt > (grant.spec.max_retry or 0):
            return Aborted(grant.lease, text, duration)
        if after is None:
            after = delay(grant.spec.retry or default, grant.attempt - 1, random)
        return Failed(grant.lease, text, round(after * 1000), duration)
    except Exception as error:  # a record may hold a number of retries or a strategy that cannot be used
        why = f"no retry could be planned: {type(error).__name__}: {error}"
        return Aborted(grant.lease, f"{text[: ERROR_MAX // 2]}\n\n{storable(why)[: ERROR_MAX // 4]}", duration)


def describe(error: BaseException) -> str:
    """The first line says what went wrong; the traceback follows, without Tickwork's own frames."""
    if isinstance(error, ChildDied):
        return str(error)
    if isinstance(error, ChildError):
        return f"{error.type_name}: {error.text}\n\n{error.traceback}"
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if "/tickwork/" not in frame.filename.replace("\\", "/")] or frames
    try:
        text = str(error)
    except Exception:  # an exception whose __str__ raises must not cost the task its story
        text = "(its text cannot be shown)"
    head = f"{type(error).__name__}: {text}" if text else type(error).__name__
    return f"{head}\n\n{''.join(traceback.format_list(own))}" if own else head
