"""How the value of each option is read, whatever layer it comes from."""

from __future__ import annotations

import re
from functools import partial
from typing import Any

from tickwork.backoff import Seconds
from tickwork.config import CHOICES, Config, values
from tickwork.observe.loggers import METHODS, as_logger, is_logger


def _read_address(value: Any) -> str:
    if re.fullmatch(r"(\[[0-9a-fA-F:.]+\]|[^\s:/?#@,\[\]]+)(:[0-9]{1,5})?", values.read_text(value)):
        return str(value)
    raise ValueError("is not host:port; a whole URL goes into store")


def _read_serializer(value: Any) -> Any:
    if isinstance(value, str) or (hasattr(value, "encode") and hasattr(value, "decode")):
        return value
    raise ValueError(f"is not a serializer, nor the name of one ({', '.join(CHOICES['serializer'])})")


def _read_logger(value: Any) -> Any:
    if is_logger(value):
        return as_logger(value)
    raise ValueError(
        f"is not a logger, which has the methods {', '.join(METHODS)}; it can only be given as an argument"
    )


READERS: dict[str, values.Reader] = {
    **values.readers_of(Config),
    "rate_limit": partial(values.read_couple, rate=float, burst=int),
    "breaker": partial(values.read_couple, max_failures=int, timeout=Seconds),
    "serializer": _read_serializer,
    "logger": _read_logger,
    # Parts of other options, see `load`.
    "redis_addr": _read_address,
    "redis_db": values.read_whole,
    "redis_pass": values.read_text,
    "redis_pass_file": values.read_text,
    "retry_delay": values.read_seconds,
    "backoff_rate": values.read_number,
}
