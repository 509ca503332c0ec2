# SPDX-License-Identifier: Apache-2.0
"""Name the columns in which stored rows may differ from the log while all is well."""

from __future__ import annotations

import pytest

from airflow_provider_cdc.core.apply.compared_values import unproven_columns
from tests.unit.core.apply.changes import timeline_of


@pytest.mark.parametrize(
    ("statement", "unproven"),
    [
        ("ALTER TABLE t ADD COLUMN v INT", False),
        ("ALTER TABLE t ADD COLUMN v INT NOT NULL DEFAULT 7", False),
        ("ALTER TABLE t ADD COLUMN v DATETIME(3) NOT NULL DEFAULT CURRENT_TIMESTAMP(3)", True),
        ("ALTER TABLE t ADD COLUMN v GEOMETRY NOT NULL", True),
    ],
)
def test_what_a_server_computed_for_older_rows_is_not_compared(statement: str, unproven: bool) -> None:
    timeline = timeline_of("CREATE TABLE t (id INT PRIMARY KEY)", statement)
    column = timeline.schema.columns[1]
    assert unproven_columns(timeline) == ({column.id} if unproven else set())


def test_a_column_whose_default_changed_is_not_compared_if_it_may_be_null() -> None:
    nullable = timeline_of(
        "CREATE TABLE t (id INT PRIMARY KEY, v INT DEFAULT 3)", "ALTER TABLE t MODIFY v INT DEFAULT 4"
    )
    assert unproven_columns(nullable) == {nullable.schema.columns[1].id}
    filled = timeline_of(
        "CREATE TABLE t (id INT PRIMARY KEY, v INT NOT NULL DEFAULT 3)", "ALTER TABLE t MODIFY v INT NOT NULL DEFAULT 4"
    )
    assert unproven_columns(filled) == set()
