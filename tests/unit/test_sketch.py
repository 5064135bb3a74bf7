"""The sketch of durations: how exact it is, that it adds up in any order, and how large it may get."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tickwork.model.sketch import CLASSES_MAX, LONGEST, SHORTEST, Sketch

durations = st.lists(st.floats(1e-3, 1e5), min_size=1, max_size=300)
wide = st.lists(st.floats(0, 1e9), max_size=50)
SHARES = (0.0, 0.5, 0.95, 0.99, 1.0)


def sketch_of(values: list[float]) -> Sketch:
    sketch = Sketch()
    for value in values:
        sketch.add(value)
    return sketch


def sum_of(*parts: Sketch) -> Sketch:
    whole = Sketch()
    for part in parts:
        whole.merge(part)
    return whole


@given(st.lists(st.floats(0, 1e9) | st.sampled_from([SHORTEST, LONGEST]), max_size=60))
def test_many_at_once_are_as_each_alone(values: list[float]) -> None:
    together = Sketch()
    together.add_all(values)
    together.add_all(values)
    assert together.classes == sum_of(sketch_of(values), sketch_of(values)).classes


@given(durations)
def test_percentiles_are_within_two_per_cent(values: list[float]) -> None:
    found = sketch_of(values).percentiles(SHARES)
    ordered = sorted(values)
    for share, value in zip(SHARES, found, strict=True):
        true = ordered[int(share * (len(ordered) - 1))]
        assert abs(value - true) <= 0.02 * true


@given(durations, durations, durations)
def test_sums_are_the_same_in_any_order(first: list[float], second: list[float], third: list[float]) -> None:
    a, b, c = sketch_of(first), sketch_of(second), sketch_of(third)
    whole = sketch_of(first + second + third)
    assert sum_of(sum_of(a, b), c) == sum_of(a, sum_of(b, c)) == sum_of(c, b, a) == whole
    assert sum_of(a, b, c).count == len(first) + len(second) + len(third)


def test_sums_are_the_same_in_any_order_past_the_bound() -> None:
    parts = [sketch_of([1.03**power for power in range(start, 900, 3)]) for start in range(3)]
    whole = sketch_of([1.03**power for start in range(3) for power in range(start, 900, 3)])
    assert len(whole.encode()) == 2 * CLASSES_MAX
    assert whole.count == 900
    assert sum_of(sum_of(parts[0], parts[1]), parts[2]) == sum_of(parts[0], sum_of(parts[2], parts[1])) == whole


def test_joining_the_lowest_leaves_the_high_percentiles_exact() -> None:
    values = [1.03**power / 1000 for power in range(800)]
    found = sketch_of(values).percentile(0.95)
    assert found is not None
    assert found == pytest.approx(values[int(0.95 * 799)], rel=0.02)


@given(wide)
def test_a_sketch_is_read_back_as_it_was_written(values: list[float]) -> None:
    sketch = sketch_of(values)
    read = Sketch.decode(sketch.encode())
    assert read == sketch
    assert read.count == len(values)


def test_its_bytes_are_bounded() -> None:
    sketch = sketch_of([1.02**power * SHORTEST for power in range(1500)] * 300)
    assert len(msgspec.msgpack.encode(sketch.encode())) <= 4 * CLASSES_MAX + 64


def test_what_is_out_of_range_counts_as_the_border() -> None:
    assert sketch_of([0.0, -1.0]).percentile(0.5) == pytest.approx(SHORTEST, rel=0.02)
    assert sketch_of([float("inf")]).percentile(0.5) == pytest.approx(LONGEST, rel=0.02)


def test_an_empty_sketch_has_no_percentiles() -> None:
    assert Sketch().percentile(0.5) is None
