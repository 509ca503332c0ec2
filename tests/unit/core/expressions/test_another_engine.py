# SPDX-License-Identifier: Apache-2.0
"""Expressions that SQL means equally everywhere, against DuckDB on the same rows."""

from __future__ import annotations

from random import Random
from typing import Any

import pyarrow as pa
import pytest

from airflow_provider_cdc.core.expressions.expression import parse
from tests.unit.core.expressions.random_parts import rows, table

duckdb = pytest.importorskip("duckdb")

COUNT = 400
TEXTS = [
    "tiny = small", "tiny <> 0 OR flag", "NOT flag AND tiny < 5", "NOT (flag OR tiny IS NULL)", "flag AND NULL",
    "flag OR tiny > 0 AND small < 0", "NOT flag = (tiny > 0)", "tiny BETWEEN -1 AND small",
    "tiny NOT BETWEEN 0 AND 2", "tiny IN (1, small, NULL)", "name NOT IN ('DE', 'a')", "name NOT IN ('DE', NULL)",
    "(tiny IS NULL) = (flag IS NULL)", "name LIKE 'A%'", "name LIKE '%n'", "name LIKE '%o%'", "name LIKE '_'",
    "name LIKE 'a!_b' ESCAPE '!'", "name LIKE '%!%%' ESCAPE '!'", "name < 'a'", "name >= stamp", "name = ''",
    "CASE WHEN tiny > 0 THEN 'plus' WHEN tiny < 0 THEN 'minus' ELSE name END",
    "CASE tiny WHEN 1 THEN name WHEN 0 THEN 'x' END", "COALESCE(name, stamp, '?')", "NULLIF(name, 'DE')",
    "NULLIF(tiny, small)", "tiny + CAST(small AS BIGINT) * 2 - 1", "-CAST(tiny AS BIGINT) - -CAST(small AS INT)",
    "CAST(tiny AS BIGINT) * small % 7", "MOD(CAST(small AS BIGINT), -3)", "price + 0.01", "price * tiny",
    "price * 0.05 - 0.5", "price % 0.7", "ABS(price)", "ABS(CAST(small AS BIGINT))", "ROUND(price, 1)",
    "ROUND(price)", "price BETWEEN -0.05 AND 2.5", "price > tiny", "price IN (2.5, 0)", "LENGTH(name)", "LOWER(name)",
    "TRIM(name)", "SUBSTRING(name, 2, 3)", "SUBSTRING(name, -2)", "LEFT(name, 2)", "RIGHT(name, 2)",
    "REPLACE(name, 'a', 'ob')", "LPAD(name, 6, 'xy')", "CAST(tiny AS STRING)", "CAST(price AS STRING)",
    "CAST(born AS STRING)", "CAST(flag AS STRING)", "CAST(made AS DATE)", "CAST(born AS TIMESTAMP)",
    "CAST(price AS DECIMAL(12, 1))", "CAST(price AS DOUBLE)", "CAST(small AS DECIMAL(9, 3))", "CAST(flag AS INT)",
    "CAST(tiny AS BOOLEAN)", "YEAR(made)", "MONTH(born)", "DAY(made)", "HOUR(made)", "DATE_TRUNC('week', made)",
    "DATE_TRUNC('quarter', made)", "DATE_TRUNC('minute', made)", "born = DATE '2024-02-29'",
    "made >= TIMESTAMP '2024-02-29 00:00:00'", "made > born", "born >= '1970-01-01'", "real = real", "real > 1.5e0",
    "real <= 0e0", "FLOOR(price)", "CEIL(price)",
]  # fmt: skip


def plain(value: Any) -> Any:
    return repr(value) if isinstance(value, float) else value


@pytest.fixture(scope="module")
def engine() -> Any:
    with duckdb.connect() as connection:
        connection.execute("SET TimeZone = 'UTC'")
        connection.register("drawn", pa.table(_columns()))
        yield connection


def _columns() -> dict[str, pa.Array]:
    return table(rows(Random(7), COUNT))


@pytest.mark.parametrize("text", TEXTS)
def test_both_engines_agree(engine: Any, text: str) -> None:
    values, failed = parse(text).evaluate(_columns(), COUNT)
    answer = engine.execute(f"SELECT {text} FROM drawn").fetchall()
    assert failed is None
    assert [plain(value) for value in values.to_pylist()] == [plain(value) for (value,) in answer]
