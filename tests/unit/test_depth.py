"""Depth is counted on bytes: exactly, without recursion, and as a decoder would see it."""

from __future__ import annotations

import json
import math
import random
import sys
from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from tickwork import PayloadError
from tickwork.payload.codec import BUILTIN, JSON, Serializer, encode
from tickwork.payload.depth import DEPTH_MAX, is_deep_json, is_deep_msgpack
from tickwork.payload.types import of_value

Nest = Callable[[int, Any], Any]


def in_lists(depth: int, core: Any = 1) -> Any:
    for _ in range(depth):
        core = [core]
    return core


def in_objects(depth: int, core: Any = 1) -> Any:
    for _ in range(depth):
        core = {"a": core}
    return core


def by_turns(depth: int, core: Any = 1) -> Any:
    for number in range(depth):
        core = {"a": 1, "b": core} if number % 2 else [1, core, 2]
    return core


FORMS: dict[str, tuple[Callable[[Any], bytes], Callable[[bytes], bool]]] = {
    "json": (msgspec.json.encode, is_deep_json),
    "spaced json": (lambda value: json.dumps(value, indent=1).encode(), is_deep_json),
    "msgpack": (msgspec.msgpack.encode, is_deep_msgpack),
}
form = pytest.mark.parametrize(("write", "is_deep"), FORMS.values(), ids=list(FORMS))


@form
@pytest.mark.parametrize("nest", [in_lists, in_objects, by_turns])
def test_the_bound_is_exact(write: Callable[[Any], bytes], is_deep: Callable[[bytes], bool], nest: Nest) -> None:
    assert not is_deep(write(nest(DEPTH_MAX, "x")))
    assert is_deep(write(nest(DEPTH_MAX + 1, "x")))
    assert is_deep(write(nest(200, "x")))


def depth_of(value: Any) -> int:
    if isinstance(value, dict):
        return 1 + max(map(depth_of, value.values()), default=0)
    if isinstance(value, list):
        return 1 + max(map(depth_of, value), default=0)
    return 0


TEXTS = ("", "[", "]]", '"', '\\"', "\\", '\\\\"[', "{}", "ü[", "\x9f\x9f", "[" * 70, "\u2028")
SCALARS = (None, True, False, 0, -1, 127, 128, -33, 70_000, 2**40, -(2**40), 1.5, *TEXTS, "x" * 40, "y" * 300)


def a_value(chance: random.Random, depth: int) -> Any:
    """One path of about that depth, with others beside it."""
    value: Any = chance.choice(SCALARS)
    for _ in range(depth):
        beside = [chance.choice(SCALARS) for _ in range(chance.randint(0, 20))]
        if chance.random() < 0.5:
            value = [*beside, value, *beside[:2]]
        else:
            value = {**{f"{text}{number}": text for number, text in enumerate(beside)}, "[": value}
    return value


@form
@pytest.mark.parametrize("seed", range(60))
def test_what_stands_in_strings_does_not_count(
    write: Callable[[Any], bytes], is_deep: Callable[[bytes], bool], seed: int
) -> None:
    chance = random.Random(seed)
    value = a_value(chance, chance.choice([2, 40, 63, 64, 65, 66, 90]))
    assert is_deep(write(value)) is (depth_of(value) > DEPTH_MAX)


def test_brackets_in_strings_cannot_hide_others() -> None:
    text = "1"
    for _ in range(100):
        text = f'["]",{text},"["]'
    assert is_deep_json(text.encode())


@pytest.mark.parametrize(
    "value",
    [b"x" * 100, bytearray(300), b"\x91" * 70_000, msgspec.msgpack.Ext(5, b"\x91" * 100), msgspec.msgpack.Ext(6, b"")],
)
def test_bytes_inside_of_msgpack_do_not_count(value: Any) -> None:
    assert not is_deep_msgpack(msgspec.msgpack.encode([value] * 100))
    assert is_deep_msgpack(msgspec.msgpack.encode(in_lists(65, value)))


def test_long_containers_are_counted_too() -> None:
    assert not is_deep_msgpack(msgspec.msgpack.encode([[number] for number in range(70_000)]))
    assert is_deep_msgpack(msgspec.msgpack.encode([*range(70_000), in_lists(64)]))
    assert is_deep_msgpack(msgspec.msgpack.encode({**{str(n): n for n in range(70_000)}, "x": in_objects(64)}))
    assert not is_deep_json(msgspec.json.encode([[number] for number in range(70_000)]))


def test_keys_are_values_too() -> None:
    """MessagePack has keys that JSON has not."""
    for key in ((1, (2, 3)), b"x", None, 1.5):
        assert not is_deep_msgpack(msgspec.msgpack.encode([{key: [number]} for number in range(300)]))
        assert is_deep_msgpack(msgspec.msgpack.encode([*({key: [number]} for number in range(300)), in_lists(64)]))
    deep = b"\x91" * 70 + b"\x01"
    assert is_deep_msgpack(msgspec.msgpack.encode([0] * 300)[:-1] + b"\x81" + deep + b"\x01")


def test_garbage_is_left_to_the_decoder() -> None:
    for text in (b"]" * 200, b"\x91\xc1" * 40, b"\xdd\xff\xff\xff\xff" + b"\x90" * 70, b"\xdc" * 66, b"\xff" * 300):
        assert not is_deep_json(text)
        assert not is_deep_msgpack(text)


def test_what_never_ends_is_deep() -> None:
    assert is_deep_json(b"[" * 100_000)
    assert is_deep_msgpack(b"\x91" * 100_000)
    assert is_deep_msgpack(b"\x81\xa1a" * 100)


@pytest.mark.parametrize("serializer", [BUILTIN["json"], BUILTIN["msgpack"]], ids=["json", "msgpack"])
def test_a_serializer_refuses_it_both_ways(serializer: Serializer) -> None:
    written = {"json": msgspec.json.encode, "msgpack": msgspec.msgpack.encode}[serializer.name](in_lists(65))
    for limit in (300, 5000):  # whatever the interpreter would allow
        before = sys.getrecursionlimit()
        sys.setrecursionlimit(limit)
        try:
            for depth in (65, 200, 4000):
                with pytest.raises(PayloadError, match="nested more than 64 levels deep"):
                    encode(serializer, in_lists(depth))
            with pytest.raises(PayloadError, match="nested more than 64 levels deep"):
                of_value(Any, "work").decode(serializer, written)
        finally:
            sys.setrecursionlimit(before)
    assert serializer.decode(encode(serializer, in_lists(64))) == in_lists(64)


def test_a_number_that_json_cannot_carry_is_found_at_any_depth_that_is_allowed() -> None:
    with pytest.raises(PayloadError, match="inf cannot be written as JSON"):
        encode(JSON, in_lists(64, math.inf))
