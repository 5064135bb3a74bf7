"""How errors show values, which come from outside and may be of any size and kind."""

from __future__ import annotations

import pytest

from tickwork.texts import ECHO_MAX, shown


class Secretive:
    def __repr__(self) -> str:
        raise RuntimeError("not now")


def nested(depth: int) -> dict[str, object]:
    return {} if depth == 0 else {"in": nested(depth - 1)}


@pytest.mark.parametrize(("value", "name"), [(Secretive(), "Secretive"), (10**5000, "int")], ids=["own", "number"])
def test_a_value_that_cannot_be_written_is_shown_by_its_type(value: object, name: str) -> None:
    """Python writes no number of more than some thousand digits."""
    assert shown(value).startswith(f"<{name}")


def test_a_dict_is_shown_in_its_own_order() -> None:
    assert shown({"b": 1, "a": 2}) == "{'b': 1, 'a': 2}"


@pytest.mark.parametrize("value", ["x" * 10_000, [1] * 10_000, {n: n for n in range(10_000)}, nested(500)])
def test_what_is_large_is_cut(value: object) -> None:
    assert len(shown(value)) <= ECHO_MAX
    assert "..." in shown(value) or shown(value).endswith("…")
