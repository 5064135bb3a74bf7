"""What two errors have in common that are the same mistake: their type, their place, and their message without what
differs from task to task. Pure."""

from __future__ import annotations

import hashlib
import re
from functools import lru_cache
from typing import NamedTuple

MESSAGE_MAX = 200
HEAD_MAX = 1000  # characters of the first line that are looked at
PLACE_MAX = 200

_HEAD = re.compile(r"([A-Za-z_][\w.]*)(?:: (.*)|)")
_QUOTED = re.compile(r"""(?<!\w)(?:'[^']*'|"[^"]*"|`[^`]*`)(?!\w)""")
_WORD = re.compile(r"[^\s()\[\]{}<>,;='\"]+")
_DIGIT = re.compile(r"\d")
_FRAME = re.compile(r'^[ |+-]*File "([^"\n]*)", line \d+, in (.*)$', re.MULTILINE)
_LIBRARY = re.compile(r"[/\\](?:site-packages|dist-packages|lib[/\\]python\d)|^<frozen ")


class Fingerprint(NamedTuple):
    id: str
    error: str  # the type of the exception; empty for what is no exception, such as a worker that was lost
    message: str  # without quoted parts, and without words that have digits
    place: str  # the innermost frame of the program itself


@lru_cache(maxsize=1024)  # most errors are the same text again and again
def fingerprint(text: str) -> Fingerprint:
    """Of an error as stores keep it: a line that says what went wrong, then the traceback."""
    head, _, story = text.partition("\n")
    head = head[:HEAD_MAX]
    found = _HEAD.fullmatch(head)
    error, said = (found[1], found[2] or "") if found else ("", head)
    message, place = normalised(said), _place(story)
    digest = hashlib.blake2b("\n".join((error, message, place)).encode(), digest_size=8)
    return Fingerprint(digest.hexdigest(), error, message, place)


def normalised(message: str) -> str:
    plain = _WORD.sub(lambda word: "#" if _DIGIT.search(word[0]) else word[0], _QUOTED.sub("'…'", message))
    return " ".join(plain.split())[:MESSAGE_MAX]


def _place(story: str) -> str:
    """Without the number of the line, which changes with every edit of the file."""
    frames = _FRAME.findall(story)
    if not frames:
        return ""
    file, function = next((frame for frame in reversed(frames) if not _LIBRARY.search(frame[0])), frames[-1])
    path = "/".join(file.replace("\\", "/").split("/")[-2:])
    return f"{path} in {function}"[:PLACE_MAX]
