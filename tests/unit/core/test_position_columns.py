# SPDX-License-Identifier: Apache-2.0
"""Parts of positions, a column at once, are those of the positions one by one."""

from __future__ import annotations

import pyarrow as pa

from airflow_provider_cdc.core.formats.common.change_builder import binlog_positions
from airflow_provider_cdc.core.model import clock_position
from airflow_provider_cdc.core.model.position import in_generation
from airflow_provider_cdc.core.model.position_columns import (
    event_of,
    generation_text_of,
    moment_of,
    partition_of,
    tool_time_of,
    without_generation,
)
from tests.locations import binlog_position

# c.<tool time>.<source time>.<topic and partition>.<offset>.<index>.<tool batch>
CLOCK = [
    f"c.{tool:014d}.{1_770_000_000:011d}.{partition:018d}.{offset:019d}.{0:010d}.{9:09d}"
    for tool, partition, offset in ((1_770_000_000_123, 7_000_002, 41), (1_770_000_000_124, 7_000_003, 1))
]


def test_rows_of_one_event_have_one_text() -> None:
    positions = [binlog_position(12, 400, 0), binlog_position(12, 400, 9_999_999_999), binlog_position(12, 401, 0)]
    one, same, other = event_of(pa.array(positions)).to_pylist()
    assert one == same != other
    assert one == "0000.0000000012.00000000000000000400"


def test_the_generation_and_the_rest_of_positions() -> None:
    first = binlog_position(12, 400, 0)
    positions = pa.array([first, in_generation(first, 17)])
    assert generation_text_of(positions).to_pylist() == ["0000", "0017"]
    assert without_generation(positions).to_pylist() == [".0000000012.00000000000000000400.0000000000"] * 2


def test_positions_of_a_column_are_those_of_its_numbers() -> None:
    numbers = [(0, 4, 0), (12, 2**63 - 1, 3), (9_999_999_999, 0, 9_999_999_999)]
    assert binlog_positions(*zip(*numbers, strict=True)).to_pylist() == [binlog_position(*each) for each in numbers]


def test_parts_of_clock_positions() -> None:
    positions = pa.array(CLOCK)
    assert tool_time_of(positions).to_pylist() == [1_770_000_000_123, 1_770_000_000_124]
    assert partition_of(positions).to_pylist() == ["000000000007000002", "000000000007000003"]
    assert moment_of(positions).to_pylist() == ["c.01770000000123", "c.01770000000124"]
    assert all(map(clock_position.is_clock_position, CLOCK))
