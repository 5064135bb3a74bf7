"""What commands print: tables that fit the terminal, colours, JSON, and times in words.

Texts from the store were written by strangers. `clean` and `clean_lines` take out what could steer a terminal; every
printer here cleans what it is given, so colour is added by its own arguments only.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime, timedelta
from textwrap import indent
from typing import Any, NamedTuple

import click

from tickwork.texts import duration, in_zone, many, moment

__all__ = [  # those of `texts`, for commands
    "duration",
    "in_zone",
    "many",
    "moment",
]

GAP = "  "
ELLIPSIS = "…"
PROGRESS_PAUSE = 1.0  # seconds between two lines on how far something is
STATUS_COLORS = {
    "pending": "blue", "blocked": "magenta", "ready": "cyan", "assigned": "cyan", "running": "yellow",
    "retrying": "yellow", "success": "green", "failed": "red", "dead": "red", "cancelled": "bright_black",
}  # fmt: skip

# CSI and OSC and the other string sequences, then any other escape of two or three characters.
_ESCAPES = re.compile(
    r"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]|(?:\x1b[\]PX^_]|[\x9d\x90\x98\x9e\x9f])[^\x07\x1b\x9c]*(?:\x07|\x1b\\|\x9c)?"
    r"|\x1b[ -/]*[0-~]?"
)
_NOT_PLAIN = re.compile(r"[^ -~]")
_NOT_PLAIN_JSON = re.compile(r"[^ -~\n]")


def clean(text: object) -> str:
    """One line without escape sequences and control characters."""
    plain = str(text)
    if plain.isascii() and plain.isprintable():
        return plain
    plain = _ESCAPES.sub("", plain)
    return _NOT_PLAIN.sub(lambda found: _printable(found[0]), plain)


def clean_lines(text: str) -> list[str]:
    """The same for a text of several lines, such as a traceback."""
    return [clean(line.expandtabs(4)) for line in re.split(r"\r?\n|\r", text)]


def _printable(char: str) -> str:
    if char.isspace():
        return " "
    return char if char.isprintable() or (width(char) == 0 and char.isalpha()) else ""


def width(text: str) -> int:
    """Columns that a clean text takes on a terminal."""
    if text.isascii():
        return len(text)
    from unicodedata import combining, east_asian_width

    return sum(0 if combining(char) else 2 if east_asian_width(char) in "WF" else 1 for char in text)


def clip(text: str, limit: int) -> str:
    """At most `limit` columns; what was cut off shows as an ellipsis."""
    if width(text) <= limit:
        return text
    if limit < 1:
        return ""
    kept, used = "", 0
    for char in text:
        used += width(char)
        if used > limit - 1:
            break
        kept += char
    return kept + ELLIPSIS


def pad(text: str, columns: int, right: bool = False) -> str:
    blanks = " " * max(columns - width(text), 0)
    return blanks + text if right else text + blanks


class Column(NamedTuple):
    """`least` is how narrow it may get, None for never narrower; the column with the highest `drop` goes first."""

    title: str
    least: int | None = None
    drop: int = 0
    right: bool = False
    color: Callable[[str], str | None] = lambda cell: None


def terminal_width() -> int | None:
    """None where nothing limits a line: a pipe or a file, which may want every character."""
    if os.environ.get("COLUMNS", "").isdecimal():
        return int(os.environ["COLUMNS"])
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else None


def table(columns: Sequence[Column], rows: Iterable[Sequence[object]], limit: int | None = None) -> list[str]:
    """The lines of a table, its head first, none wider than `limit` if that can be."""
    cells = [[clean(cell) for cell in row] for row in rows]
    shown = list(range(len(columns)))
    while True:
        widths = {i: max([width(columns[i].title), *(width(row[i]) for row in cells)]) for i in shown}
        if limit is None or _shrink(widths, columns, limit):
            break
        worst = max(shown, key=lambda i: columns[i].drop)
        if not columns[worst].drop:
            break
        shown.remove(worst)
    head = GAP.join(pad(columns[i].title, widths[i], columns[i].right) for i in shown).rstrip()
    return [click.style(head, bold=True), *(_row(columns, row, shown, widths) for row in cells)]


def _shrink(widths: dict[int, int], columns: Sequence[Column], limit: int) -> bool:
    """Take columns from the widest that may get narrower, until all fit."""
    while (excess := sum(widths.values()) + len(GAP) * (len(widths) - 1) - limit) > 0:
        elastic = [i for i in widths if (least := columns[i].least) is not None and widths[i] > least]
        if not elastic:
            return False
        widest = max(elastic, key=lambda i: widths[i])
        next_to = max([widths[i] for i in elastic if widths[i] < widths[widest]], default=0)
        floor = max(columns[widest].least or 0, next_to, widths[widest] - excess)
        widths[widest] = min(floor, widths[widest] - 1)
    return True


def _row(columns: Sequence[Column], row: Sequence[str], shown: list[int], widths: dict[int, int]) -> str:
    parts = []
    for i in shown:
        text = clip(row[i], widths[i])
        text = text if i == shown[-1] and not columns[i].right else pad(text, widths[i], columns[i].right)
        color = columns[i].color(row[i])
        parts.append(click.style(text, fg=color) if color else text)
    return GAP.join(parts).rstrip()


def show_table(columns: Sequence[Column], rows: Sequence[Sequence[object]], empty: str) -> None:
    """Print it, or a sentence when there is nothing to show."""
    if not rows:
        click.secho(empty, dim=True)
        return
    for line in table(columns, rows, terminal_width()):
        click.echo(line)


def show_facts(
    facts: Iterable[tuple[str, object]], colors: dict[str, str | None] | None = None, *, err: bool = False
) -> None:
    """Names and values below each other; facts without a value are left out."""
    given = [(name, clean(value)) for name, value in facts if value not in (None, "", (), [], {})]
    longest = max((len(name) for name, _ in given), default=0)
    for name, value in given:
        shown = click.style(value, fg=color) if (color := (colors or {}).get(name)) else value
        click.echo(click.style(f"{name:<{longest}}", dim=True) + GAP + shown, err=err)


def show_heading(text: str) -> None:
    click.echo("\n" + click.style(text, bold=True))


def status_color(status: str) -> str | None:
    return STATUS_COLORS.get(status)


# --- JSON


def as_json() -> bool:
    return bool(click.get_current_context().meta.get("tickwork.json"))


def show_json(value: Any, *, one_line: bool = False) -> None:
    click.echo(json_text(value, one_line=one_line))


@contextmanager
def json_list(name: str) -> Iterator[Callable[[Any], None]]:
    """Print a document with one list, whose items come one by one: the same text as `show_json({name: items})`."""
    count = 0

    def show(item: Any) -> None:
        nonlocal count
        before = "," if count else f'{{\n  "{name}": ['
        click.echo(f"{before}\n{indent(json_text(item), '    ')}", nl=False)
        count += 1

    yield show
    if count:
        click.echo("\n  ]\n}")
    else:
        show_json({name: []})


def json_text(value: Any, *, one_line: bool = False) -> str:
    """One document. What a terminal might obey is written as an escape, which means the same in JSON."""
    import msgspec

    text = msgspec.json.encode(value, enc_hook=str)
    if not one_line:
        text = msgspec.json.format(text, indent=2)
    return _NOT_PLAIN_JSON.sub(lambda found: _visible(found[0]), text.decode())


def _visible(char: str) -> str:
    """The character, or an escape for one that shows as nothing or moves what stands beside it."""
    if char.isprintable():
        return char
    pairs = char.encode("utf-16-be").hex()
    return "".join(f"\\u{pairs[at : at + 4]}" for at in range(0, len(pairs), 4))


def done(sentence: str, **facts: object) -> None:
    """What a command has changed: a sentence for people, the facts for programs."""
    if as_json():
        show_json(facts)
    else:
        click.echo(clean(sentence))


# --- times


def progress(what: str) -> Callable[[int], None]:
    """Says on standard error how far something is that takes long, once a second."""
    said_at = time.monotonic()

    def report(count: int) -> None:
        nonlocal said_at
        if time.monotonic() - said_at >= PROGRESS_PAUSE:
            said_at = time.monotonic()
            click.echo(f"{count:,} {what}", err=True)

    return report


def age(at: datetime, now: datetime) -> str:
    """How far a moment is from now, in whole seconds: `12s ago`, `in 5m`."""
    seconds = (now - at) // timedelta(seconds=1)
    if seconds == 0:
        return "now"
    return f"{duration(seconds)} ago" if seconds > 0 else f"in {duration(-seconds)}"


def clock(at: datetime) -> str:
    """Date and time on this host's clock, to the millisecond."""
    return f"{at.astimezone():%Y-%m-%d %H:%M:%S.%f}"[:-3]


def log_line(line: str) -> str:
    """A line that a handler wrote, with its time, which is kept in UTC, on this host's clock."""
    stamp, blank, rest = line.partition(" ")
    try:
        at = datetime.fromisoformat(stamp)
    except ValueError:
        return line
    return f"{clock(at)}{blank}{rest}" if at.tzinfo is not None else line
