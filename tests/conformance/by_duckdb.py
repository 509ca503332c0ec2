# SPDX-License-Identifier: Apache-2.0
"""Read tables by DuckDB, whose extensions come as packages: it looks for them on a host of its own otherwise."""

from __future__ import annotations

import importlib.resources
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

import duckdb
import pyarrow as pa


@cache
def _connection() -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect(config={"autoinstall_known_extensions": "false"})
    for name in ("avro", "iceberg", "delta"):
        folder = importlib.resources.files(f"duckdb_extension_{name}") / "extensions" / f"v{duckdb.__version__}"
        connection.execute(f"LOAD '{folder / name}.duckdb_extension'")
    connection.execute("SET TimeZone = 'UTC'")
    return connection


def iceberg(table: Any) -> str:
    """Return a table of pyiceberg's for a query."""
    return f"iceberg_scan('{table.metadata_location}')"


def delta(location: str) -> str:
    """Return a table by path for a query."""
    return f"delta_scan('{location}')"


def query(sql: str, values: Sequence[Any] = ()) -> pa.Table:
    """Return what a query answers."""
    return _connection().execute(sql, list(values)).to_arrow_table()


def ids_of(table: str, row: Mapping[str, Any], columns: pa.Schema) -> list[int]:
    """Return the ids of the rows that have all values of a row, by conditions that may leave files out."""
    conditions, values = [], []
    for field in columns:
        value = row[field.name]
        if pa.types.is_list(field.type):
            continue
        if value is None:
            conditions.append(f"{quoted(field.name)} IS NULL")
            continue
        decimal = pa.types.is_decimal(field.type)  # of which a parameter would be a DOUBLE if it has many digits
        typed = f"CAST(? AS DECIMAL({field.type.precision}, {field.type.scale}))" if decimal else "?"
        conditions.append(f"{quoted(field.name)} = {typed}")
        values.append(f"{value:f}" if decimal else value)
    answer = query(f"SELECT id FROM {table} WHERE {' AND '.join(conditions)}", values)
    ids: list[int] = answer.column("id").to_pylist()
    return ids


def quoted(name: str) -> str:
    """Return the name of a column for a query."""
    return '"' + name.replace('"', '""') + '"'
