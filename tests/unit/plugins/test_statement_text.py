# SPDX-License-Identifier: Apache-2.0
"""DDL texts as the page shows them: without values, in one line."""

from __future__ import annotations

import pytest

from airflow_provider_cdc.plugins.statement_text import statement_text


@pytest.mark.parametrize(
    ("statement", "dialect", "shown"),
    [
        ("ALTER TABLE `a``b` ADD c INT", None, "ALTER TABLE `a``b` ADD c INT"),
        ("ADD c ENUM('x','it''s') DEFAULT 'a\\'b'", None, "ADD c ENUM('…','…') DEFAULT '…'"),
        ('COMMENT "the \\" secret"', None, "COMMENT '…'"),
        ("""ADD "A" CHAR(9) DEFAULT 'x\\', "B" INT""", "oracle", """ADD "A" CHAR(9) DEFAULT '…', "B" INT"""),
        ("a /* secret */ b -- more\nc # and\n d", None, "a b c d"),
        ("a -- more\nb # c", "oracle", "a b # c"),
        ("ADD c INT DEFAULT 4711, ADD d INT default -0.5 NULL", None, "ADD c INT DEFAULT …, ADD d INT default … NULL"),
        ("x 'never closed secret", None, "x '…'"),
        ("x 'ends with \\", None, "x '…'"),
        ("x /* never closed secret", None, "x"),
        ("`never closed 'x'", None, "`never closed 'x'"),
        ("a\tb\r\n  c\u202ed", None, "a b c\\u202ed"),
        ("", None, ""),
    ],
)  # fmt: skip
def test_literals_and_comments_are_left_out(statement: str, dialect: str | None, shown: str) -> None:
    assert statement_text(statement, dialect) == shown


def test_a_long_text_is_cut() -> None:
    assert statement_text("x" * 501) == "x" * 500 + "…"
    assert statement_text("'" + "x" * 2_000_000) == "'…'"
