# SPDX-License-Identifier: Apache-2.0
"""Test names and attributes of column definitions, and which comments count (types and defaults: other files)."""

from __future__ import annotations

from typing import Any

import pytest

from airflow_provider_cdc.core.ddl.table_parts import ColumnDefinition
from airflow_provider_cdc.core.model.schema import ColumnType, Default
from tests.unit.core.ddl.single_statements import INT, column, create


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("c INT NOT NULL", {"nullable": False}),
        ("c INT NULL", {"nullable": True}),
        ("c INT AUTO_INCREMENT PRIMARY KEY", {"auto_increment": True, "primary_key": True}),
        ("c INT KEY", {"primary_key": True}),
        ("c INT UNIQUE", {"unique": True}),
        ("c INT NOT NULL UNIQUE KEY COMMENT 'x'", {"nullable": False, "unique": True, "comment": "x"}),
        (
            "c INT GENERATED ALWAYS AS (a * (b + 1)) STORED NOT NULL",
            {"generated": True, "expression": "a * (b + 1)", "nullable": False},
        ),
        ("c INT AS (a) PERSISTENT", {"generated": True, "expression": "a"}),
        ("c INT AS (a) VIRTUAL INVISIBLE", {"generated": True, "expression": "a"}),
        ("c INT GENERATED ALWAYS AS ROW START", {"generated": True}),
        ("c INT COMMENT 'a, b) DEFAULT 7' COLUMN_FORMAT DYNAMIC STORAGE DISK", {"comment": "a, b) DEFAULT 7"}),
        ("c INT CHECK (c > 0) NOT ENFORCED", {}),
        ("c INT CONSTRAINT ck CHECK (c in (1, 2))", {}),
        ("c INT INVISIBLE ENGINE_ATTRIBUTE = '{}'", {}),
        ("c INT COMPRESSED", {}),
    ],
)
def test_column_attributes(text: str, expected: dict[str, Any]) -> None:
    assert column(text) == ColumnDefinition("c", INT, **expected)


def test_serial_is_an_unsigned_bigint_that_counts() -> None:
    serial = ColumnDefinition(
        "c", ColumnType("bigint", unsigned=True), nullable=False, auto_increment=True, unique=True
    )
    assert column("c SERIAL") == serial
    assert column("c BIGINT UNSIGNED SERIAL DEFAULT VALUE") == serial


def test_names_may_be_quoted_odd_or_almost_keywords() -> None:
    names = [
        c.name for c in create('CREATE TABLE t (`a``b` INT, "c d" INT, timestamp INT, 1st INT, größe INT)').columns
    ]
    assert names == ["a`b", "c d", "timestamp", "1st", "größe"]


def test_executable_comments_count_and_others_do_not() -> None:
    definition = column("c /* DEFAULT 1 */ INT /*!50000 DEFAULT 2 */ -- DEFAULT 3\n")
    assert definition.default == Default("constant", "2")
