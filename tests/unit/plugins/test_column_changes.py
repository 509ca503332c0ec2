# SPDX-License-Identifier: Apache-2.0
"""Compare columns as the page shows it."""

from __future__ import annotations

from airflow_provider_cdc.core.model.schema import Column, ColumnType, Default, TableSchema
from airflow_provider_cdc.plugins.column_changes import column_changes

INT = ColumnType("int")


def test_each_kind_of_change() -> None:
    before = TableSchema(
        (Column(1, "id", INT, nullable=False), Column(2, "a", ColumnType("varchar", 10)), Column(3, "b", INT)), (1,)
    )
    after = TableSchema(
        (
            Column(1, "id", ColumnType("bigint", unsigned=True), nullable=False),
            Column(2, "a\u202e", ColumnType("varchar", 10)),
            Column(4, "b", ColumnType("decimal", 8, 2)),
            Column(5, "c", ColumnType("enum", labels=("secret", "x")), default=Default("constant", "secret")),
        ),
        (1, 4),
    )
    changes = column_changes(before.document(), after.document())
    assert [tuple(change.values()) for change in changes] == [
        ("changed", "id", "int not null", "bigint unsigned not null"),
        ("renamed", "a\\u202e", "a", "a\\u202e"),
        ("added", "b", "", "decimal(8,2)"),
        ("added", "c", "", "enum(2 labels)"),
        ("dropped", "b", "int", ""),
        ("key", "", "id", "id, b"),
    ]


def test_without_a_schema_there_is_nothing_to_compare_with() -> None:
    one = TableSchema((Column(1, "id", INT),)).document()
    assert column_changes(one, one) == [] and column_changes(None, None) == []
    assert [change["change"] for change in column_changes(None, one)] == ["added"]
