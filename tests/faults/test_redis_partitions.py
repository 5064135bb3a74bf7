"""The fault cases on a namespace of several partitions: the short form of each."""

from __future__ import annotations

import random

import pytest

from tests.faults.cases import PARTITIONED


@pytest.mark.parametrize("case", PARTITIONED)
async def test_several_partitions_stand_it_as_one_does(case: str) -> None:
    seed = random.randrange(10**6)
    print(f"seed {seed}: {await PARTITIONED[case](seed, 'short')}")
