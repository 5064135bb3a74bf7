"""The filter language: `status:dead,failed type:mail -key:acme submitted>2h`.

A filter is a list of qualifiers. Status, type, queue and key are answered by indexes of the store; the others narrow
down what these find, within the bounded number of tasks that one request looks at. Nothing looks into payloads.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Collection
from datetime import datetime

from msgspec import Struct

from tickwork.clock import to_millis
from tickwork.config.values import read_seconds
from tickwork.errors import ConfigError
from tickwork.ids import is_name
from tickwork.model.fingerprint import fingerprint
from tickwork.model.tasks import ParkReason, Record, Spec, Status
from tickwork.server.masking import MASKED, Mask
from tickwork.server.problems import Refused
from tickwork.server.stops import Stops
from tickwork.texts import ECHO_MAX, cut, shown

INDEXED = ("status", "type", "queue", "key")
NARROWING = ("worker", "schedule", "priority", "error", "waits", "id", "group")
COMPARED = ("submitted", "run", "wait", "attempt")
QUALIFIERS = (*INDEXED, *NARROWING, *COMPARED, "tag.NAME")
_HELD = (Status.READY, Status.PENDING)
WAITS = {  # with the statuses of tasks that wait for it
    "time": (Status.PENDING, Status.RETRYING), "tasks": (Status.BLOCKED,), "paused": (Status.READY,), "limit": _HELD,
    "breaker": _HELD, "switch": _HELD, "worker": (Status.READY,),
    "slot": (Status.READY, Status.ASSIGNED, Status.PENDING, Status.RETRYING),
}  # fmt: skip
NOTHING_HIDDEN, NOTHING_STOPPED = Mask(), Stops()
LONGEST = 2000  # characters
TOKENS_MAX = 30
VALUES_MAX = 20

_TOKEN = re.compile(r'\s*(-?)([A-Za-z][\w.@-]*)(:|>=|<=|>|<)("(?:[^"\\]|\\.)*"|[^\s"]*)|\s*("(?:[^"\\]|\\.)*"|[^\s"]+)')
_PARKED = {
    ParkReason.LIMITED: "limit", ParkReason.BREAKER_OPEN: "breaker", ParkReason.SWITCHED_OFF: "switch",
    ParkReason.TYPE_PAUSED: "paused",
}  # fmt: skip


class Token(Struct, frozen=True):
    name: str
    sign: str  # `:` or a comparison
    values: tuple[str, ...]
    negated: bool
    position: int


class Filter(Struct, frozen=True):
    """What a filter means: values of the indexes, empty for all, and a test for each task that these find."""

    text: str
    status: tuple[Status, ...] = ()
    type: tuple[str, ...] = ()
    queue: tuple[str, ...] = ()
    key: tuple[str, ...] = ()
    ids: tuple[str, ...] = ()
    tests: tuple[Callable[[Record], bool], ...] = ()

    def fits(self, record: Record) -> bool:
        return all(test(record) for test in self.tests)

    @property
    def only_status(self) -> bool:
        """Whether counters of statuses know how many tasks fit."""
        return not (self.type or self.queue or self.key or self.ids or self.tests)


def wrong(position: int, detail: str) -> Refused:
    return Refused(400, "bad_filter", detail, position=position)


def parse(text: str, now: int, mask: Mask = NOTHING_HIDDEN, stops: Stops = NOTHING_STOPPED) -> Filter:
    """Raises `Refused` that names the part that is wrong. `now` is by the store's clock, in milliseconds. Whoever may
    not see a value may not find it out by asking for it: a key is not looked up for them, since how many tasks were
    looked at would tell that it is there."""
    if len(text) > LONGEST:
        raise wrong(LONGEST, f"a filter has at most {LONGEST:,} characters")
    tokens = _tokens(text)
    if len(tokens) > TOKENS_MAX:
        raise wrong(tokens[TOKENS_MAX].position, f"a filter has at most {TOKENS_MAX} parts")
    indexed: dict[str, tuple[str, ...]] = {}
    tests: list[Callable[[Record], bool]] = []
    ids: tuple[str, ...] = ()
    for token in tokens:
        _check_mask(token, mask)
        is_looked_up = token.name in INDEXED and not (mask and token.name == "key")
        if is_looked_up and not token.negated and token.name not in indexed:
            indexed[token.name] = _statuses(token) if token.name == "status" else token.values
        elif token.name == "id" and not token.negated:
            ids = (*ids, *token.values)
        elif token.name == "group":
            indexed.setdefault("status", (Status.DEAD, Status.FAILED))  # whose last error is that of the group
            tests.append(_test(token, now, mask, stops))
        else:
            tests.append(_test(token, now, mask, stops))
    if "status" not in indexed:
        indexed["status"] = _waiting_statuses(tokens)
    return Filter(
        text=text.strip(),
        status=tuple(Status(each) for each in indexed.get("status", ())),
        type=indexed.get("type", ()),
        queue=indexed.get("queue", ()),
        key=indexed.get("key", ()),
        ids=ids,
        tests=tuple(tests),
    )


def _check_mask(token: Token, mask: Mask) -> None:
    tag = token.name.removeprefix("tag.") if token.name.startswith("tag.") else None
    if mask and (token.name == "error" or (tag is not None and mask.hides(tag))):
        raise wrong(token.position, f"{cut(token.name, ECHO_MAX)} cannot be searched for: it is {MASKED}")


def names_values(text: str) -> bool:
    """Whether a filter has values of tasks in it, each of which may be one that is hidden from somebody. A filter that
    cannot be read may have anything."""
    try:
        return any(each.name in ("key", "error") or each.name.startswith("tag.") for each in _tokens(text))
    except Refused:
        return True


def _tokens(text: str) -> list[Token]:
    found: list[Token] = []
    at = 0
    while at < len(text.rstrip()):
        match = _TOKEN.match(text, at)
        if match is None:
            raise wrong(at, f"the filter cannot be read from {shown(text[at : at + 20])} on; a quote has no end")
        minus, name, sign, value, bare = match.groups()
        start = match.end() - len(match.group().lstrip())
        found.append(_bare(bare, start) if bare is not None else _token(minus, name, sign, value, start))
        at = match.end()
    return found


def _bare(word: str, position: int) -> Token:
    """A word by itself is a whole id, or a type."""
    plain = _unquoted(word)
    if not is_name(plain):
        raise wrong(
            position,
            f"{shown(plain)} is no id and no type. Tickwork does not search payloads. Give tasks a key or a tag.",
        )
    return Token("id" if len(plain) >= 32 or "@" in plain else "type", ":", (plain,), False, position)


def _token(minus: str, name: str, sign: str, value: str, position: int) -> Token:
    if not name.startswith("tag."):
        _check_name(name, position)
    told = cut(name, ECHO_MAX)
    if (name in COMPARED) is (sign == ":"):
        example = f"{name}>2h" if name in ("submitted", "run", "wait") else f"{name}>1"
        raise wrong(position, f"{name} is compared: {example}" if name in COMPARED else f"write {told}:VALUE")
    parts = (_unquoted(value),) if value.startswith('"') else tuple(part for part in value.split(",") if part)
    values = tuple(dict.fromkeys(parts))  # each is a list of its own to go through
    if not values or len(values) > VALUES_MAX:
        raise wrong(position, f"{told}{sign} needs a value" if not values else f"at most {VALUES_MAX} values at once")
    return Token(name, sign, values, bool(minus), position)


def _check_name(name: str, position: int) -> None:
    known = (*INDEXED, *NARROWING, *COMPARED)
    if name in known:
        return
    if name in ("payload", "args", "result"):
        raise wrong(position, "Tickwork does not search payloads. Give tasks a key or a tag.")
    near = difflib.get_close_matches(name, (*known, "tag"), 1)
    meant = f" Did you mean {'tag.NAME' if near[0] == 'tag' else near[0]}?" if near else ""
    raise wrong(position, f"{cut(name, ECHO_MAX)} is not a qualifier.{meant} Known are {', '.join(QUALIFIERS)}.")


def _unquoted(value: str) -> str:
    return re.sub(r"\\(.)", r"\1", value[1:-1]) if value.startswith('"') else value


def _statuses(token: Token) -> tuple[str, ...]:
    try:
        return tuple(dict.fromkeys(Status.parse(each) for each in token.values))
    except ConfigError as error:
        raise wrong(token.position, str(error)) from None


def _waiting_statuses(tokens: list[Token]) -> tuple[Status, ...]:
    """Those that a task may have while it waits for what is named; none, which means all, if nothing is."""
    waits = [WAITS[value] for each in tokens if each.name == "waits" and not each.negated for value in each.values]
    return tuple(status for status in Status if any(status in each for each in waits))


def _test(token: Token, now: int, mask: Mask, stops: Stops) -> Callable[[Record], bool]:
    test = _compare(token, now) if token.sign != ":" else _match(token, now, mask, stops)
    return (lambda record: not test(record)) if token.negated else test


def _match(token: Token, now: int, mask: Mask, stops: Stops) -> Callable[[Record], bool]:
    values = frozenset(token.values)
    match token.name:
        case "status":
            statuses = frozenset(_statuses(token))
            return lambda record: record.status in statuses
        case "worker":
            return lambda record: record.worker_id in values
        case "schedule":
            return lambda record: record.spec.schedule_id in values
        case "priority":
            return lambda record: str(record.spec.priority) in values
        case "error":
            return lambda record: any(value in (record.last_error or "") for value in values)
        case "waits":
            return _waits(token, now, stops)
        case "id":
            return lambda record: record.id in values
        case "group":
            return lambda record: fingerprint(record.last_error or "").id in values
        case name if name.startswith("tag."):
            tag = name.removeprefix("tag.")
            return lambda record: _has_tag(record.spec, tag, values, mask)
        case "key":
            return lambda record: _has_key(record.spec, values, mask)
        case name:
            return lambda record: getattr(record.spec, name) in values


def _has_key(spec: Spec, values: Collection[str], mask: Mask) -> bool:
    """Whether its key is one of these, and is shown to whoever asks."""
    return spec.key in values and mask.of_task(spec).name(spec.key) == spec.key


def _has_tag(spec: Spec, tag: str, values: Collection[str], mask: Mask) -> bool:
    """As a key; the name of a tag may be hidden too."""
    value = spec.tags.get(tag)
    return value in values and mask.of_task(spec).value(spec.tags).get(tag) == value


def _waits(token: Token, now: int, stops: Stops) -> Callable[[Record], bool]:
    for value in token.values:
        if value not in WAITS:
            raise wrong(token.position, f"waits: takes {', '.join(WAITS)}, not {shown(value)}")
    values = frozenset(token.values)

    def test(record: Record) -> bool:
        return _what_for(record, now, stops) in values

    return test


def _what_for(record: Record, now: int, stops: Stops) -> str | None:
    """What a task waits for, as far as its record and what is stopped by hand say it."""
    if record.parked in _PARKED:
        return _PARKED[record.parked]
    if record.status is Status.READY and (stopped := stops.by(record.spec)) is not None:
        return stopped
    if record.parked is not None:
        return "worker"
    match record.status:
        case Status.BLOCKED:
            return "tasks"
        case Status.PENDING | Status.RETRYING:
            return "time" if record.due_at > now else "slot"
        case Status.READY | Status.ASSIGNED:
            return "slot"
        case _:
            return None


def _compare(token: Token, now: int) -> Callable[[Record], bool]:
    value = token.values[0]
    if token.name == "attempt":
        if not value.isdecimal() or len(value) > 9:
            raise wrong(token.position, f"attempt is compared with a whole number, not {shown(value)}")
        return _ordered(token.sign, int(value), lambda record: record.attempt)
    if token.name == "submitted":
        return _submitted(token, value, now)
    bound = _milliseconds(token, value)
    if token.name == "run":
        return _ordered(token.sign, bound, lambda record: _run(record, now))
    return _ordered(token.sign, bound, lambda record: _wait(record, now))


def _submitted(token: Token, value: str, now: int) -> Callable[[Record], bool]:
    """`submitted>2h` are those of more than two hours ago; `submitted>2026-10-25T02:00Z` are later than that."""
    try:
        at = datetime.fromisoformat(value)
    except ValueError:
        age = _milliseconds(token, value)
        return _ordered(token.sign, age, lambda record: now - record.submitted_at)
    if at.utcoffset() is None:
        raise wrong(token.position, "a time in a filter needs its zone, such as 2026-10-25T02:00Z")
    return _ordered(token.sign, to_millis(at), lambda record: record.submitted_at)


def _milliseconds(token: Token, value: str) -> int:
    try:
        return round(read_seconds(value) * 1000)
    except ValueError:
        raise wrong(
            token.position, f"{token.name} is compared with a duration such as 90s or 2h, not {shown(value)}"
        ) from None


def _run(record: Record, now: int) -> int | None:
    if record.execution_time is not None:
        return round(record.execution_time * 1000)
    return now - record.started_at if record.status is Status.RUNNING and record.started_at is not None else None


def _wait(record: Record, now: int) -> int | None:
    since = max(record.due_at, record.submitted_at)
    if record.started_at is not None:
        return max(record.started_at - since, 0)
    return now - since if not record.status.ended and since <= now else None


def _ordered(sign: str, bound: int, value_of: Callable[[Record], int | None]) -> Callable[[Record], bool]:
    def test(record: Record) -> bool:
        value = value_of(record)
        if value is None:
            return False
        if sign == ">":
            return value > bound
        if sign == "<":
            return value < bound
        return value >= bound if sign == ">=" else value <= bound

    return test
