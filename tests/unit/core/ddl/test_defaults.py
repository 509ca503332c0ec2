# SPDX-License-Identifier: Apache-2.0
"""Test each form of a column's DEFAULT."""

from __future__ import annotations

import pytest

from airflow_provider_cdc.core.model.schema import Default
from tests.unit.core.ddl.single_statements import column


@pytest.mark.parametrize(
    ("text", "default"),
    [
        ("INT", None),
        ("INT DEFAULT 7", Default("constant", "7")),
        ("INT DEFAULT -7", Default("constant", "-7")),
        ("INT DEFAULT +7", Default("constant", "7")),
        ("DECIMAL(5,3) DEFAULT 1.500", Default("constant", "1.500")),
        ("DOUBLE DEFAULT 1e-30", Default("constant", "1e-30")),
        ("INT DEFAULT '7'", Default("constant", "7")),
        ("VARCHAR(9) DEFAULT 'it''s'", Default("constant", "it's")),
        ('VARCHAR(9) DEFAULT "say ""hi"""', Default("constant", 'say "hi"')),
        ("VARCHAR(9) DEFAULT 'a' 'b'", Default("constant", "ab")),
        ("VARCHAR(9) DEFAULT _utf8mb4'x'", Default("constant", "x")),
        ("VARCHAR(9) DEFAULT N'x'", Default("constant", "x")),
        ("VARCHAR(9) DEFAULT ''", Default("constant", "")),
        ("INT DEFAULT NULL", Default("constant", None)),
        ("BOOL DEFAULT TRUE", Default("constant", "1")),
        ("BOOL DEFAULT false", Default("constant", "0")),
        ("BIT(3) DEFAULT b'101'", Default("constant", "5")),
        ("INT DEFAULT 0x1F", Default("constant", "31")),
        ("VARCHAR(9) DEFAULT x'4142'", Default("constant", "AB")),
        ("VARCHAR(9) CHARACTER SET utf8mb4 DEFAULT x'c3a4'", Default("constant", "ä")),
        ("VARBINARY(9) DEFAULT x''", Default("constant", "")),
        ("VARBINARY(9) DEFAULT x'ff'", Default("expression", "x'ff'")),
        ("VARCHAR(9) DEFAULT x'e4'", Default("expression", "x'e4'")),
        ("DATE DEFAULT DATE'2020-01-02'", Default("constant", "2020-01-02")),
        ("INT DEFAULT (7)", Default("constant", "7")),
        ("TEXT DEFAULT ('x')", Default("constant", "x")),
        ("TIMESTAMP DEFAULT CURRENT_TIMESTAMP", Default("now")),
        ("TIMESTAMP(3) DEFAULT current_timestamp(3) ON UPDATE CURRENT_TIMESTAMP(3)", Default("now")),
        ("DATETIME DEFAULT NOW()", Default("now")),
        ("DATETIME DEFAULT LOCALTIME", Default("now")),
        ("DATETIME DEFAULT LOCALTIMESTAMP()", Default("now")),
        ("INT DEFAULT (1 + 2)", Default("expression", "1 + 2")),
        ("DATETIME DEFAULT (now() + INTERVAL 1 DAY)", Default("expression", "now() + INTERVAL 1 DAY")),
        ("VARCHAR(36) DEFAULT uuid()", Default("expression", "uuid()")),
        ("BIGINT DEFAULT NEXT VALUE FOR shop.s", Default("expression", "NEXT VALUE FOR shop.s")),
    ],
)
def test_defaults(text: str, default: Default | None) -> None:
    assert column(f"c {text}").default == default
