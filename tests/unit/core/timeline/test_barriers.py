# SPDX-License-Identifier: Apache-2.0
"""Test which schema changes are barriers; ``tests/unit/core/apply`` tests the rows before and after them."""

from __future__ import annotations

import pytest

from airflow_provider_cdc.core.model.schema import ColumnType
from airflow_provider_cdc.core.timeline.barriers import keeps_values


def whole(name: str, unsigned: bool = False) -> ColumnType:
    return ColumnType(name, unsigned=unsigned)


def decimal(length: int, scale: int) -> ColumnType:
    return ColumnType("decimal", length, scale)


@pytest.mark.parametrize(
    ("old", "new", "keeps"),
    [
        (whole("int", unsigned=True), whole("bigint"), True),
        (whole("int", unsigned=True), whole("int"), False),  # 4294967295 is not an INT
        (whole("int"), whole("bigint", unsigned=True), False),  # -1 is not a BIGINT UNSIGNED
        (decimal(10, 2), decimal(12, 4), True),  # eight digits before the point, as before
        (decimal(10, 2), decimal(11, 4), False),  # seven digits before the point
        (decimal(10, 2), decimal(10, 1), False),  # 0.25 is rounded
        (ColumnType("datetime", 0), ColumnType("datetime", 6), True),
        (ColumnType("datetime", 6), ColumnType("datetime", 3), False),
        (ColumnType("float"), ColumnType("double"), True),
        (ColumnType("double"), ColumnType("float"), False),
        (ColumnType("varbinary", 10), ColumnType("varbinary", 9), False),
        (ColumnType("datetime"), ColumnType("timestamp"), False),  # other time zones, another range
    ],
)
def test_a_type_keeps_all_values_only_if_it_holds_each_value_of_the_old_one(
    old: ColumnType, new: ColumnType, keeps: bool
) -> None:
    assert keeps_values(old, new) is keeps
