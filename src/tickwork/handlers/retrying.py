"""Which errors of a handler are worth another attempt, and when that comes: `retry_on`, `abort_on`, and a function as
retry strategy. A handler declares them; they cannot be stored with a task."""

from __future__ import annotations

import inspect
import traceback
from collections.abc import Iterator
from datetime import timedelta
from typing import Any, NamedTuple, TypeAlias

from msgspec import Struct

from tickwork.backoff import Wait, is_wait
from tickwork.errors import Abort, ConfigError, Retry, Snooze
from tickwork.model.tasks import Spec
from tickwork.observe.tracebacks import headline
from tickwork.texts import shown

Errors: TypeAlias = tuple[type[BaseException], ...]
VERDICTS = (Retry, Abort, Snooze)


class Decision(Struct, frozen=True, array_like=True):
    """What the rules of a handler say of an error that it raised."""

    ends: str = ""  # why there is no retry, if there is none
    after: float | None = None  # seconds until the retry, if a function says so
    trouble: str = ""  # why that function was of no use, if it was not


class RetryRules(NamedTuple):
    """What one handler has declared."""

    retry_on: Errors | None = None  # None: all errors
    abort_on: Errors = ()
    wait: Wait | None = None

    @classmethod
    def taken_from(cls, options: dict[str, Any]) -> RetryRules | None:
        """Removes from the checked options of a handler what is not stored with its tasks; None if that is nothing."""
        wait = options.pop("retry") if callable(options.get("retry")) else None
        rules = cls(options.pop("retry_on", None), options.pop("abort_on", ()), wait)
        return None if rules == cls() else rules

    def decide(self, error: BaseException, retry: int, asks: bool) -> Decision:
        """Never raises. `retry` counts from 0; `asks` says whether the function is to be asked when."""
        try:
            if why := self._ends(error):
                return Decision(ends=why)
        except Exception as broken:  # a class of the user's own may fail when it is compared
            return Decision(trouble=_located(broken))
        return self.ask(error, retry) if asks else Decision()

    def _ends(self, error: BaseException) -> str:
        leaves = list(_leaves(error))
        for each in (error, *leaves):
            if isinstance(each, self.abort_on):
                return f"not retried, as abort_on of its handler names {type(each).__name__}"
        if self.retry_on is None or isinstance(error, self.retry_on):
            return ""
        others = [type(each).__name__ for each in leaves if not isinstance(each, self.retry_on)]
        return f"not retried, as retry_on of its handler does not name {others[0]}" if others else ""

    def ask(self, error: BaseException, retry: int) -> Decision:
        """What the function says. Never raises."""
        if self.wait is None:
            return Decision()
        try:
            answer: Any = self.wait(retry, error)
        except BaseException as broken:  # also SystemExit: a run without an outcome would keep its slot
            return Decision(trouble=_located(broken))
        if answer is None:
            return Decision(ends="not retried, as the retry function of its handler says so")
        wait = answer.total_seconds() if isinstance(answer, timedelta) else answer
        if not is_wait(wait):
            return Decision(trouble=f"it returned {shown(answer)}, not seconds from 0 on, a timedelta or None")
        return Decision(after=float(wait))


def asks_for_wait(spec: Spec, attempt: int) -> bool:
    """Whether a function of the handler is to be asked: a retry is left, and the task has no strategy of its own."""
    return spec.retry is None and isinstance(spec.max_retry, int) and attempt <= spec.max_retry


def _leaves(error: BaseException) -> Iterator[BaseException]:
    """The errors in a group, however deep; of any other error itself."""
    left = [error]
    while left:
        each = left.pop()
        if isinstance(each, BaseExceptionGroup):
            left += reversed(each.exceptions)
        else:
            yield each


def _located(error: BaseException) -> str:
    frames = traceback.extract_tb(error.__traceback__)
    return f"{headline(error)} ({frames[-1].filename}:{frames[-1].lineno})" if frames else headline(error)


def error_classes(what: str, value: Any) -> Errors:
    """One exception class, or several of them."""
    classes = value if isinstance(value, tuple | list | set | frozenset) else (value,)
    for each in classes:
        if not isinstance(each, type) or not issubclass(each, BaseException):
            raise ConfigError(
                f"{what} must be an exception class or a tuple of them, such as {what}=(ConnectionError, "
                f"TimeoutError), not {shown(value)}"
            )
        if issubclass(each, VERDICTS):
            raise ConfigError(f"{what} cannot name {each.__name__}: it says by itself how an attempt ends")
    return tuple(classes)


def retry_function(value: Any) -> Wait:
    """A function of the number of the retry and the error."""
    if inspect.iscoroutinefunction(value) or inspect.iscoroutinefunction(getattr(value, "__call__", None)):  # noqa: B004
        raise ConfigError(f"retry function {shown(value)} must not be async: it is asked when an attempt has failed")
    try:
        inspect.signature(value).bind(0, Exception())
    except TypeError:
        raise ConfigError(
            f"retry function {shown(value)} must take two arguments: the number of the retry, counted from 0, and the "
            "error"
        ) from None
    except ValueError:  # some functions of C have no signature
        pass
    function: Wait = value
    return function
