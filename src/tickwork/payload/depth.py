"""How deep an encoded value is nested, counted on its bytes and without recursion.

Decoders recurse, and how far they may go differs between versions of Python: a value that one process can write may end
another that reads it. So the bound is our own, and it is checked before anything is decoded.
"""

from __future__ import annotations

import struct

import msgspec

DEPTH_MAX = 64
SHORT_JSON = 2 * DEPTH_MAX  # a text of so many bytes has no room for more brackets, each with its end
TOO_DEEP = f"it is nested more than {DEPTH_MAX} levels deep"
STORED_MAX = DEPTH_MAX + 2  # a schedule holds a task, which holds a context

_BRACKETS = bytes.maketrans(b"{}", b"[]")
_NEITHER_BRACKET_NOR_QUOTE = bytes(byte for byte in range(256) if byte not in b'[]{}"')


def is_deep_json(data: bytes, bound: int = DEPTH_MAX) -> bool:
    """Whether a JSON text is nested deeper than the bound. Most texts are short, or have few brackets at all."""
    if len(data) <= 2 * bound or data.count(b"[") + data.count(b"{") <= bound:
        return False
    if b"\\" in data:
        data = data.replace(b"\\\\", b"").replace(b'\\"', b"")
    marks = data.translate(_BRACKETS, _NEITHER_BRACKET_NOR_QUOTE)
    # Two quotes that have become neighbours say nothing any more; what is left are strings that hold brackets.
    brackets = b"".join(marks.replace(b'""', b"").split(b'"')[::2])
    for _ in range(bound):
        if not brackets:
            return False
        brackets = brackets.replace(b"[]", b"")  # the innermost level of each branch
    return b"[" in brackets


_CONTAINERS = bytes((*range(0x80, 0xA0), 0xDC, 0xDD, 0xDE, 0xDF))
# By the first byte of a value: how many bytes it takes, where that byte alone says so, else 0.
_SIZES = [0] * 256
_SIZES[:0x80] = [1] * 0x80
_SIZES[0xA0:0xC0] = range(1, 33)
_SIZES[0xC0:0xC4] = [1] * 4
_SIZES[0xCA:0xD9] = [5, 9, 2, 3, 5, 9, 2, 3, 5, 9, 3, 4, 6, 10, 18]
_SIZES[0xE0:] = [1] * 0x20
# Where a length follows it: how that is written, and what else there is.
_LENGTHS = {
    **dict(zip(range(0xC4, 0xCA), ((">B", 2), (">H", 3), (">I", 5), (">B", 3), (">H", 4), (">I", 6)), strict=True)),
    **dict(zip(range(0xD9, 0xDC), ((">B", 2), (">H", 3), (">I", 5)), strict=True)),
}
_COUNTS = {0xDC: (">H", 3, 1), 0xDD: (">I", 5, 1), 0xDE: (">H", 3, 2), 0xDF: (">I", 5, 2)}
_FEW = 100  # values that are soon walked over; with more, it is faster to let msgspec write them as JSON

_decode = msgspec.msgpack.Decoder(ext_hook=lambda _code, _data: None).decode


def is_deep_msgpack(data: bytes, bound: int = DEPTH_MAX) -> bool:
    """Whether a MessagePack value is nested deeper than the bound. Bytes that are no MessagePack are not: they are for
    the decoder to refuse."""
    if len(data) <= bound or len(data) - len(data.translate(None, _CONTAINERS)) <= bound:
        return False
    try:
        deep = _walk(data, bound, _FEW)
        return _is_deep_as_json(data, bound) if deep is None else deep
    except (IndexError, struct.error):  # it is cut short
        return False


def _is_deep_as_json(data: bytes, bound: int) -> bool:
    try:
        return is_deep_json(msgspec.json.encode(_decode(data)), bound)
    except RecursionError:
        return True
    except (msgspec.MsgspecError, TypeError, ValueError):  # keys that JSON has not, say
        return _walk(data, bound, len(data)) is True


def _walk(data: bytes, bound: int, most: int) -> bool | None:
    """None when there are more than so many values to look at."""
    at, left = 0, 1  # how many values are still to come in the innermost container
    outer: list[int] = []
    for _ in range(most):
        while left == 0:
            if not outer:
                return False
            left = outer.pop()
        left -= 1
        first = data[at]
        if size := _SIZES[first]:
            at += size
        elif first in _LENGTHS:
            form, width = _LENGTHS[first]
            at += width + struct.unpack_from(form, data, at + 1)[0]
        else:
            outer.append(left)
            if len(outer) > bound:
                return True
            left, at = _contents(data, first, at)
    return None


def _contents(data: bytes, first: int, at: int) -> tuple[int, int]:
    """How many values a container holds, and where they begin."""
    if first < 0x90:
        return 2 * (first & 0x0F), at + 1
    if first < 0xA0:
        return first & 0x0F, at + 1
    form, width, values = _COUNTS[first]
    return values * struct.unpack_from(form, data, at + 1)[0], at + width
