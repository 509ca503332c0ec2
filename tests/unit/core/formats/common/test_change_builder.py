# SPDX-License-Identifier: Apache-2.0
"""Positions of whole columns are those of single changes."""

from __future__ import annotations

import random

import numpy as np
import pytest

from airflow_provider_cdc.core.formats.common.change_builder import ChangeBuilder, binlog_positions
from airflow_provider_cdc.core.formats.common.sortable_texts import padded_texts
from airflow_provider_cdc.core.formats.contract import Records
from tests.locations import binlog_position


@pytest.mark.parametrize("count", [0, 1, 300])
def test_positions_in_columns_are_those_of_single_places(count: int) -> None:
    chance = random.Random(count)
    coordinates = [
        tuple(chance.choice([0, 9, 10, chance.randrange(most), most - 1]) for most in (10**10, 2**63, 10**10))
        for _ in range(count)
    ]
    columns = [[coordinate[number] for coordinate in coordinates] for number in range(3)]
    expected = [binlog_position(*coordinate) for coordinate in coordinates]
    for parts in (columns, [np.array(column, np.int64) for column in columns]):
        actual = binlog_positions(*parts)
        actual.validate(full=True)
        assert actual.to_pylist() == expected


def test_a_place_without_a_file_is_none() -> None:
    assert binlog_positions([None, 1], [4, 4], [0, 0]).to_pylist() == [None, binlog_position(1, 4, 0)]


def test_places_among_changes_without_one_are_encoded_as_alone() -> None:
    chance = random.Random(2)
    coordinates = [
        (None, chance.choice([None, 5]), -1) if chance.random() < 0.3 else (chance.randrange(10**10), 2**40, 7)
        for _ in range(200)
    ]
    expected = [None if file is None else binlog_position(file, pos or 0, row) for file, pos, row in coordinates]
    actual = binlog_positions(*zip(*coordinates, strict=True))
    actual.validate(full=True)
    assert actual.to_pylist() == expected


def test_a_number_with_more_digits_than_foreseen_is_written_in_full() -> None:
    assert padded_texts("0", [([12345, None, 7], 4), ([1, 1, 1], 2)]).to_pylist() == ["0.12345.01", None, "0.0007.01"]


def test_a_batch_has_the_descriptions_of_its_own_rows_alone() -> None:
    records = Records("t", 0, [0, 1], [0, 0], [None, None], [b"{}", b"{}"], [None, None])
    builder = ChangeBuilder(records, [f"columns {number}" for number in range(10_000)])
    for record, columns in enumerate([9_000, None, 7, 9_000]):
        builder.add(record // 2, "row", columns=columns)
    described = builder.batch().column("columns")
    assert described.to_pylist() == ["columns 9000", None, "columns 7", "columns 9000"]
    assert len(described.dictionary) == 2
