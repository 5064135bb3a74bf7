"""The log of `tickwork up`: one stream and one format for Tickwork and the application, unless that has its own."""

from __future__ import annotations

import logging
import sys
from types import TracebackType

import click

from tickwork.errors import TickworkError
from tickwork.logs import formatter, set_up

UNTOUCHED = logging.DEBUG - 1  # a level that nobody else sets: tells whether the application has set one
WARNINGS = "py.warnings"  # where Python logs what `warnings.warn` is given


class LogSetup:
    """From before the application is imported until its end.

    What is logged during the import is kept until it is known how the application logs: it may set up handlers of its
    own, which are left alone, and `logging.basicConfig` would do nothing if there were some already.
    """

    def __init__(self, as_json: bool, asked_for: bool) -> None:
        self._as_json = as_json
        self._asked_for = asked_for
        self._early = _Keep()
        self._settled = False

    def __enter__(self) -> LogSetup:
        logger = logging.getLogger("tickwork")
        if logger.level == logging.NOTSET:
            logger.setLevel(UNTOUCHED)
        logger.addHandler(self._early)
        bare = logging.StreamHandler(sys.stderr)  # for warnings that nobody else handles meanwhile
        bare.setFormatter(formatter(self._as_json))
        bare.setLevel(logging.WARNING)
        self._last_resort, logging.lastResort = logging.lastResort, bare
        if self._as_json:
            logging.captureWarnings(True)
            logging.getLogger(WARNINGS).addHandler(self._early)
        return self

    def settle(self, level: str | None) -> None:
        """The application is loaded: from now on lines go where they belong. `level` is what its options say."""
        self._settled = True
        logging.lastResort = self._last_resort
        root, logger = logging.getLogger(), logging.getLogger("tickwork")
        logger.removeHandler(self._early)
        logging.getLogger(WARNINGS).removeHandler(self._early)
        level_set, root_level, has_handlers = logger.level, root.level, bool(root.handlers)
        if not has_handlers:
            set_up(level or "info", self._as_json)
            if root_level != logging.WARNING:  # the default: otherwise it is the application's choice
                root.setLevel(root_level)
        logger.setLevel(level_set if level is None and level_set != UNTOUCHED else (level or "info").upper())
        if self._asked_for and has_handlers:
            logger.warning("--log-format is not used: the application has set up its own logging")

    def tell_early(self) -> None:
        """What was logged during the import."""
        records, self._early.records = self._early.records, []
        for record in records:
            source = logging.getLogger(record.name)
            if source.isEnabledFor(record.levelno):
                source.handle(record)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if not self._settled:
            self.settle(None)
        self.tell_early()
        if not self._as_json:
            return
        from tickwork.cli import exit_status

        logger, ctx = logging.getLogger("tickwork"), click.get_current_context()
        if isinstance(error, click.ClickException):
            logger.error("%s", error.message)
            ctx.exit(error.exit_code)
        elif isinstance(error, TickworkError):
            logger.error("%s", error)
            ctx.exit(exit_status(error))


class _Keep(logging.Handler):
    def __init__(self) -> None:
        super().__init__()
        self.records: list[logging.LogRecord] = []

    def emit(self, record: logging.LogRecord) -> None:
        if not logging.getLogger().handlers:  # else it has been written by those
            self.records.append(record)
