"""A webhook: where events are sent, which, and how patiently. Said in the configuration only."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from msgspec import Struct
from msgspec.structs import force_setattr

from tickwork.backoff import Backoff, Duration, ExponentialBackoff, Seconds
from tickwork.errors import LONGEST_WAIT
from tickwork.model.facts import Fact
from tickwork.texts import shown

NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
KINDS = tuple(fact.value for fact in Fact if not fact.startswith("log."))
INCLUDE = ("payload", "error", "result")
SECRET = "file:"  # begins a reference to one
DAY = 86_400.0


class Webhook(Struct, frozen=True, kw_only=True):
    """An endpoint that is told of events.

    `types` and `queues` bound the events of tasks; None is all. `quota` is how many deliveries may wait at a time. It
    is switched off when `disable_after` deliveries in a row have failed, and the first of them `disable_time` ago.
    """

    name: str
    url: str
    events: tuple[str, ...]
    types: tuple[str, ...] | None = None
    queues: tuple[str, ...] | None = None
    include: tuple[str, ...] = ()
    secret: str | None = None  # where it is, as file:/path; None: derived from `secret_file`
    old_secret: str | None = None  # signs as well, while receivers change to the new one
    max_retry: int = 10
    retry: Backoff = ExponentialBackoff(base=10.0, max=21_600.0, multiplier=3.0)
    timeout: Seconds = 15.0
    concurrency: int = 4
    quota: int = 1000
    disable_after: int = 50
    disable_time: Seconds = DAY

    if TYPE_CHECKING:  # it takes more than it has: a timedelta becomes seconds, a list a tuple

        def __init__(
            self, *, name: str, url: str, events: Sequence[str], types: Sequence[str] | None = None,
            queues: Sequence[str] | None = None, include: Sequence[str] = (), secret: str | None = None,
            old_secret: str | None = None, max_retry: int = 10, retry: Backoff = ..., timeout: Duration = 15.0,
            concurrency: int = 4, quota: int = 1000, disable_after: int = 50, disable_time: Duration = DAY,
        ) -> None: ...  # fmt: skip

    def __post_init__(self) -> None:
        for name in ("timeout", "disable_time"):
            value: Any = getattr(self, name)
            force_setattr(self, name, value if isinstance(value, int | float) else value.total_seconds())
        for name in ("events", "types", "queues", "include"):
            value = getattr(self, name)
            if isinstance(value, list):
                force_setattr(self, name, tuple(value))

    @property
    def origin(self) -> str:
        """The URL without its path, which is a secret of some receivers."""
        try:
            found = urlsplit(self.url)
        except ValueError:
            return "?"
        return f"{found.scheme}://{found.netloc.rpartition('@')[2]}"

    def __repr__(self) -> str:
        return f"Webhook(name={self.name!r}, url={self.origin!r}, events={self.events!r})"


WebhookLike = Webhook | Mapping[str, Any]


def bad_webhooks(hooks: Sequence[Webhook], events_are_kept: bool) -> Iterator[str]:
    """What is wrong with them; each text goes on from the value of the option."""
    names = [hook.name for hook in hooks]
    if len(set(names)) < len(names):
        yield "must each have a name of its own"
    if hooks and not events_are_kept:
        yield "need the log of events, which is off (events)"
    for hook in hooks:
        yield from (f"hold {shown(hook.name)}, whose {problem}" for problem in _problems(hook))


def _problems(hook: Webhook) -> Iterator[str]:
    if not NAME.fullmatch(hook.name):
        yield "name must be 1 to 64 letters, digits and _ -"
    if not hook.origin.startswith(("http://", "https://")):
        yield "url must begin with https:// or http://"
    if not hook.events:
        yield "events are none; name those that it is told of"
    for kind in hook.events:
        if kind not in KINDS:
            yield f"events hold {shown(kind)}; known are {', '.join(KINDS)}"
    for what in hook.include:
        if what not in INCLUDE:
            yield f"include holds {shown(what)}; known are {', '.join(INCLUDE)}"
    for field in ("secret", "old_secret"):
        if not (getattr(hook, field) or SECRET).startswith(SECRET):
            yield f"{field} must be a reference, {SECRET}/path/of/a/file"
    if hook.old_secret and not hook.secret:
        yield "old_secret is there without a secret"
    for field, least in (("max_retry", 0), ("concurrency", 1), ("quota", 1), ("disable_after", 1)):
        if getattr(hook, field) < least:
            yield f"{field} must be {least} or more"
    if not 0 < hook.timeout <= LONGEST_WAIT:
        yield f"timeout must be above 0, and {LONGEST_WAIT} seconds at most"
    if not 0 <= hook.disable_time <= LONGEST_WAIT:
        yield f"disable_time must be from 0 to {LONGEST_WAIT} seconds"
