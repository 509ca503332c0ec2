# SPDX-License-Identifier: Apache-2.0
"""Random expressions, with as few parentheses as SQL needs, against plain Python: values and failures of each row."""

from __future__ import annotations

from decimal import localcontext
from random import Random
from typing import Any

import pytest

from airflow_provider_cdc.core.expressions.errors import ExpressionError
from airflow_provider_cdc.core.expressions.expression import parse
from tests.sample import amount
from tests.unit.core.expressions.oracle import Part
from tests.unit.core.expressions.oracle_values import EXACT, Fails, Row
from tests.unit.core.expressions.random_parts import COLUMNS, Drawn, rows, table

_ROWS = 24
_EXPRESSIONS = 60


def expected(part: Part, row: Row) -> tuple[bool, Any]:
    """Return whether a part fails on a row, and its value."""
    try:
        with localcontext(EXACT):
            return False, part.value(row)
    except Fails:
        return True, None


def shown(value: Any) -> Any:
    """Return a value such that NaN is equal to itself, and 0.0 differs from -0.0 and 1."""
    return type(value).__name__, repr(value) if isinstance(value, float) else value


@pytest.mark.parametrize("seed", range(amount(4, 10)))
def test_random_expressions_are_what_plain_python_computes(seed: int) -> None:
    random = Random(seed)
    content = rows(random, _ROWS)
    columns = table(content)
    refused = 0
    for _ in range(_EXPRESSIONS):
        part = Drawn(random).any(random.randint(1, 3))
        try:
            expression = parse(part.sql)
            values, failed = expression.evaluate(columns, _ROWS)
        except ExpressionError as error:
            # parts without columns are computed once, and those that fail are refused
            assert "fails on every row" in error.message or "does not become" in error.message, (part.sql, str(error))
            refused += 1
            continue
        assert values.type == part.type == expression.type(COLUMNS), part.sql
        marks = [False] * _ROWS if failed is None else failed.tolist()
        for row, mark, value in zip(content, marks, values.to_pylist(), strict=True):
            fails, value_expected = expected(part, row)
            assert (mark, shown(value)) == (fails, shown(value_expected)), (
                part.sql,
                {n: row[n] for n in expression.columns},
            )
    assert refused < _EXPRESSIONS // 4
