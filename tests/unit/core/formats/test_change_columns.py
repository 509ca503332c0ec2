"""Positions of whole columns are those of single changes."""

from __future__ import annotations

import random

import numpy as np
import pytest

from airflow_provider_cdc.core.formats.change_columns import binlog_positions
from airflow_provider_cdc.core.model.position import binlog_position


@pytest.mark.parametrize("count", [0, 1, 300])
def test_positions_in_columns_are_those_of_single_places(count: int) -> None:
    chance = random.Random(count)
    places = [
        tuple(chance.choice([0, 9, 10, chance.randrange(most), most - 1]) for most in (10**10, 2**63, 10**10))
        for _ in range(count)
    ]
    columns = [[place[number] for place in places] for number in range(3)]
    expected = [binlog_position(*place) for place in places]
    for given in (columns, [np.array(column, np.int64) for column in columns]):
        found = binlog_positions(*given)
        found.validate(full=True)
        assert found.to_pylist() == expected


def test_a_place_without_a_file_is_none() -> None:
    assert binlog_positions([None, 1], [4, 4], [0, 0]).to_pylist() == [None, binlog_position(1, 4, 0)]
