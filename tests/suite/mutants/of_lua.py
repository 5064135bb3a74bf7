"""What can be changed in a script of Lua, by its words: strings and comments stay as they are."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from tests.suite.mutants.edits import Edit

SWAPPED = {
    "==": ("~=", "comparison"), "~=": ("==", "comparison"), "<": ("<=", "comparison"), "<=": ("<", "comparison"),
    ">": (">=", "comparison"), ">=": (">", "comparison"), "and": ("or", "and, or"), "or": ("and", "and, or"),
    "true": ("false", "constant"), "false": ("true", "constant"), "+": ("-", "arithmetic"),
}  # fmt: skip
_WORD = re.compile(
    r"(?P<comment>--[^\n]*)|(?P<text>'(?:\\.|[^'\\\n])*'|\"(?:\\.|[^\"\\\n])*\")|(?P<number>\d[\w.]*)"
    r"|(?P<name>[A-Za-z_]\w*)|(?P<sign>[=~<>]=|\.\.\.?|\S)"
)
_STATEMENT = re.compile(r"(?:[a-z_][\w.]*\(.*\)|[a-z_][\w.]*(?:\[[^\]]*\])*(?:, [^=]*)? = .*)")
_LASTING = re.compile(r"(?:local|return|if|elseif|for|while|until|repeat|function|else|end|do|break)\b")
_GOES_ON = re.compile(
    r"(?:and|or|\.\.|[-+*/,)}\]]|==|~=|<|>)(?:\W|$)"
)  # a line that begins so is part of the one above
_OPEN = re.compile(r".*(?:\b(?:and|or|not)|[-+*/,(={\[<>]|\.\.)$")  # and one after a line that ends so


class Word(NamedTuple):
    kind: str
    text: str
    start: int
    end: int


def words_of(text: str) -> list[Word]:
    """The words of a script without its comments."""
    found = (Word(str(match.lastgroup), match[0], *match.span()) for match in _WORD.finditer(text))
    return [word for word in found if word.kind != "comment"]


def edits(text: str) -> list[Edit]:
    """Every change of this script that is still Lua."""
    words = words_of(text)
    return [*_of_words(words), *_of_conditions(text, words), *_of_lines(text, words)]


def _of_words(words: list[Word]) -> Iterator[Edit]:
    nothing = Word("", "", 0, 0)
    for at, word in enumerate(words):
        before = words[at - 1] if at else nothing
        earlier = words[at - 2] if at > 1 else nothing
        if word.kind in ("name", "sign") and word.text in SWAPPED:
            yield Edit(word.start, word.end, *SWAPPED[word.text])
        elif word.text == "-" and (before.kind in ("name", "number") or before.text in (")", "]")):
            if before.text not in ("return", "and", "or", "not"):
                yield Edit(word.start, word.end, "+", "arithmetic")
        elif word.text == "not" and word.kind == "name":
            yield Edit(word.start, words[at + 1].start, "", "not")
        elif word.kind == "number" and word.text.isdigit() and earlier.text not in ("KEYS", "ARGV"):
            yield Edit(word.start, word.end, str(int(word.text) + 1), "number")
        elif word.text in ("max", "min") and earlier.text == "math":
            yield Edit(word.start, word.end, "min" if word.text == "max" else "max", "max, min")


def _of_conditions(text: str, words: list[Word]) -> Iterator[Edit]:
    for at, word in enumerate(words):
        if word.kind == "name" and word.text in ("if", "elseif"):
            then = next(end for end in range(at, len(words)) if words[end].text == "then")
            start, end = words[at + 1].start, words[then - 1].end
            condition = text[start:end]
            if "--" not in condition and "function" not in condition:
                yield Edit(start, end, f"({condition}) or true", "always")
                yield Edit(start, end, f"({condition}) and false", "never")


def _of_lines(text: str, words: list[Word]) -> Iterator[Edit]:
    """Statements that take one whole line, left out."""
    lines: dict[int, list[Word]] = {}
    for word in words:
        lines.setdefault(text.count("\n", 0, word.start), []).append(word)
    codes = [(text[line[0].start : line[-1].end], line) for line in lines.values()]
    for at, (code, line) in enumerate(codes):
        before = codes[at - 1][0] if at else ""
        after = codes[at + 1][0] if at + 1 < len(codes) else ""
        whole = _STATEMENT.fullmatch(code) and not _LASTING.match(code) and not _OPEN.match(code)
        alone = _is_closed(line) and not _OPEN.match(before) and not _GOES_ON.match(after)
        if whole and alone and not code.startswith("redis.replicate"):
            yield Edit(line[0].start, line[-1].end, f"if false then {code} end", "left out")


def _is_closed(line: list[Word]) -> bool:
    """Whether every bracket of a line is closed in it, and every block."""
    signs = [word.text for word in line if word.kind in ("sign", "name")]
    pairs = (("(", ")"), ("{", "}"), ("[", "]"))
    opened = sum(signs.count(word) for word in ("function", "then", "do"))
    return opened == signs.count("end") and all(signs.count(left) == signs.count(right) for left, right in pairs)
