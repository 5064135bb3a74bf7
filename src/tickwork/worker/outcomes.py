"""How a run ends, as data: from a return value or an exception to an `Outcome`. Pure."""

from __future__ import annotations

import random
from datetime import datetime

from msgspec import msgpack

from tickwork.backoff import Backoff, delay
from tickwork.clock import to_millis
from tickwork.errors import Abort, ExecutorError, Retry, Snooze
from tickwork.executors.process import ChildError, StartFailed
from tickwork.handlers.retrying import Decision, RetryRules, asks_for_wait
from tickwork.model.outcomes import Aborted, Failed, Outcome, Snoozed
from tickwork.observe.tracebacks import ERROR_MAX, describe, explained
from tickwork.store.contract import Grant
from tickwork.texts import storable

UNDECIDED = Decision()


def decide(rules: RetryRules, error: BaseException, grant: Grant) -> Decision:
    """What the rules of the handler say of this error. Never raises."""
    asks = asks_for_wait(grant.spec, grant.attempt)
    match error:
        case Snooze() | Abort() | StartFailed():  # of the last one the handler knows nothing
            return UNDECIDED
        case Retry(after=after):
            return rules.ask(error, grant.attempt - 1) if asks and after is None else UNDECIDED
        case ChildError(verdict=verdict):  # the child had the error itself, or failed before it called the handler
            return UNDECIDED if verdict is None else msgpack.decode(verdict, type=Decision)
        case _:
            return rules.decide(error, grant.attempt - 1, asks)


def of_error(
    error: BaseException, grant: Grant, default: Backoff, duration: float, decision: Decision = UNDECIDED
) -> Outcome:
    """The outcome when the handler raised an exception. Never raises itself, whatever that exception does."""
    try:
        return _of_error(error, grant, default, duration, decision)
    except Exception:  # a user's exception class may fail when its text is asked for
        return failed(grant, f"{type(error).__name__}: (cannot be shown)", default, duration, decision=decision)


def _of_error(error: BaseException, grant: Grant, default: Backoff, duration: float, decision: Decision) -> Outcome:
    lease = grant.lease
    match error:
        case Snooze(until=until):
            if isinstance(until, datetime):
                return Snoozed(lease, at=to_millis(until))
            return Snoozed(lease, delay=round(until * 1000))
        case Abort(reason=reason):
            return Aborted(lease, storable(explained(error, str(reason)))[:ERROR_MAX], duration)
        case Retry(after=after):
            return failed(grant, explained(error, str(error)), default, duration, after, decision)
        case ExecutorError(report=report):
            return failed(grant, report, default, duration, decision=decision)
        case _:
            return failed(grant, describe(error), default, duration, decision=decision)


def never_started(error: Exception, grant: Grant) -> Outcome:
    """The outcome when the task could not even be started, because what is stored or declared cannot be used. Another
    attempt would fail in the same way."""
    text = storable(f"the task could not be started: {type(error).__name__}: {error}")
    return Aborted(grant.lease, text[:ERROR_MAX])


def failed(
    grant: Grant,
    text: str,
    default: Backoff,
    duration: float,
    after: float | None = None,
    decision: Decision = UNDECIDED,
) -> Outcome:
    """A retry if there is one left, else the end. Never raises, since a run without an outcome would keep its slot."""
    text = storable(text)[:ERROR_MAX]
    try:
        if grant.attempt > (grant.spec.max_retry or 0):
            return Aborted(grant.lease, text, duration)
        if decision.ends:
            why = storable(decision.ends)
            return Aborted(grant.lease, f"{text[: ERROR_MAX - len(why) - 2]}\n\n{why}", duration)
        if after is None:
            after = decision.after
        if after is None:
            after = delay(grant.spec.retry or default, grant.attempt - 1, random)
        return Failed(grant.lease, text, round(after * 1000), duration)
    except Exception as error:  # a record may hold a number of retries or a strategy that cannot be used
        why = f"no retry could be planned: {type(error).__name__}: {error}"
        return Aborted(grant.lease, f"{text[: ERROR_MAX // 2]}\n\n{storable(why)[: ERROR_MAX // 4]}", duration)
