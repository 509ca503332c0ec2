# SPDX-License-Identifier: Apache-2.0
"""Rows of the lake compared with the same rows in a real source database."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psycopg
import pyarrow as pa
import pytest
from airflow.providers.common.sql.hooks.sql import DbApiHook
from deltalake import write_deltalake

from airflow_provider_cdc.core.config import CdcPipeline, TableRule, TableRules
from airflow_provider_cdc.core.documents import TableState
from airflow_provider_cdc.core.errors import ConfigurationError, UnavailableError
from airflow_provider_cdc.core.model.schema import Column, ColumnType, TableSchema
from airflow_provider_cdc.surface.checks import CheckedTables, RowCount, SourceEquals
from airflow_provider_cdc.surface.source_sample import is_same

if TYPE_CHECKING:
    from tests.services.postgres import Postgres

pytestmark = pytest.mark.airflow

ROWS = 600
NOON = datetime(2026, 11, 1, 12, tzinfo=UTC)
TYPES = {"id": "bigint", "name": "varchar", "price": "decimal", "weight": "float", "born": "date", "at": "timestamp"}
TYPES |= {"spent": "time", "photo": "blob", "extra": "json"}


def row(number: int) -> dict[str, Any]:
    """Return a row as the lake holds it."""
    return {
        "id": number,
        "name": f"name {number}",
        "price": Decimal(number) / 100,
        "weight": number + 0.1,
        "born": date(2000, 1, 1) + timedelta(number),
        "at": NOON + timedelta(seconds=number),
        "spent": f"{number // 3600:02d}:{number // 60 % 60:02d}:{number % 60:02d}",
        "photo": number.to_bytes(4, "big"),
        "extra": f'{{"number":{number}}}' if number % 2 else None,
    }


SCHEMA = pa.schema(
    [
        ("id", pa.int64()), ("name", pa.string()), ("price", pa.decimal128(10, 2)), ("weight", pa.float32()),
        ("born", pa.date32()), ("at", pa.timestamp("us", "UTC")), ("spent", pa.string()), ("photo", pa.binary()),
        ("extra", pa.string()),
    ]
)  # fmt: skip


class Source(DbApiHook):
    """A hook of common.sql over a connection."""

    conn_name_attr = "conn_id"
    placeholder = "%s"  # the property looks into the connection, which Airflow does not have here

    def __init__(self, conninfo: str) -> None:
        super().__init__()
        self._conninfo = conninfo

    def get_conn(self) -> Any:
        return psycopg.connect(self._conninfo, options="-c timezone=UTC")


@pytest.fixture
def connection(postgres: Postgres) -> Iterator[psycopg.Connection[Any]]:
    with psycopg.connect(postgres.new_database(), autocommit=True) as connection:
        connection.execute("CREATE SCHEMA shop")
        connection.execute(
            "CREATE TABLE shop.things (id bigint PRIMARY KEY, name text, price numeric(10,2), weight real, born date,"
            " at timestamp, spent interval, photo bytea, extra jsonb)"
        )
        with connection.cursor().copy("COPY shop.things FROM STDIN") as copy:
            for number in range(ROWS):
                values = row(number)
                copy.write_row([*values.values()])
        yield connection


@pytest.fixture
def tables(tmp_path: Path, postgres: Postgres, connection: psycopg.Connection[Any]) -> CheckedTables:
    location = str(tmp_path / "lake" / "shop" / "things")
    for start in range(0, ROWS, 100):  # several files
        part = pa.Table.from_pylist([row(number) for number in range(start, start + 100)], schema=SCHEMA)
        write_deltalake(location, part, mode="append")
    columns = tuple(Column(id, name, ColumnType(kind)) for id, (name, kind) in enumerate(TYPES.items()))
    schema = TableSchema(columns, (0,)).document()
    state = TableState("t1", "shop", "things", "shop/things", version=5, applied_seq=3, schema=schema)
    pipeline = CdcPipeline.from_dict(
        {
            "name": "shop",
            "source": {"connection": "k", "topics": "src", "format": "debezium-json"},
            "sink": {"type": "delta", "root": str(tmp_path / "lake")},
            "ledger": f"sqlite:///{tmp_path}/ledger.db",
        }
    )
    return CheckedTables(pipeline, [state], Source(f"{postgres.conninfo.rpartition('/')[0]}/{connection.info.dbname}"))


def test_equal_rows_pass_whatever_types_the_driver_has(
    tables: CheckedTables, capfd: pytest.CaptureFixture[str]
) -> None:
    result = SourceEquals(sample=ROWS).run(tables)
    assert (result.passed, result.seen) == (True, f"{ROWS} rows of 1 tables agree, 0 changed since")
    assert SourceEquals(sample=100).run(tables).seen == "100 rows of 1 tables agree, 0 changed since"
    assert "parameters" not in "".join(capfd.readouterr()), "hooks of common.sql log the parameters of their statements"


@pytest.mark.parametrize("column", [name for name in TYPES if name != "id"])
def test_a_differing_value_is_named_by_its_column_only(
    tables: CheckedTables, connection: psycopg.Connection[Any], column: str
) -> None:
    other = "'{}'" if column == "extra" else f"(SELECT {column} FROM shop.things WHERE id = {ROWS - 1})"
    connection.execute(f"UPDATE shop.things SET {column} = {other} WHERE id = 7")  # type: ignore[arg-type]
    result = SourceEquals(sample=ROWS).run(tables)
    assert not result.passed
    assert result.seen == f"shop.things: 1 of {ROWS} rows differ (in {column})"
    assert result.tables == ["shop.things"]
    assert SourceEquals(sample=ROWS, tolerance=1).run(tables).passed
    assert SourceEquals(sample=ROWS, columns=[name for name in TYPES if name != column]).run(tables).passed


def test_rows_that_the_source_does_not_have_are_counted(
    tables: CheckedTables, connection: psycopg.Connection[Any]
) -> None:
    connection.execute("DELETE FROM shop.things WHERE id < 10")
    assert SourceEquals(sample=ROWS).run(tables).seen == "shop.things: 10 rows are not at the source"
    assert RowCount().run(tables).seen == f"shop.things: {ROWS} rows, {ROWS - 10} at the source"


def test_rows_that_changed_after_the_batch_are_left_out(
    tables: CheckedTables, connection: psycopg.Connection[Any]
) -> None:
    connection.execute("UPDATE shop.things SET name = 'new', at = '2026-11-02Z' WHERE id < 5")
    assert SourceEquals(sample=ROWS, changed_column="at", tolerance=1).run(tables).passed
    connection.execute("UPDATE shop.things SET name = 'lost' WHERE id = 50")
    result = SourceEquals(sample=ROWS, changed_column="at").run(tables)
    # The newest row of the table is as new as what came after it, and is left out, too.
    assert result.seen == f"shop.things: 1 of {ROWS - 6} rows differ (in name)"


def test_a_source_that_cannot_be_read_is_an_error_without_its_text(
    tables: CheckedTables, connection: psycopg.Connection[Any]
) -> None:
    connection.execute("ALTER TABLE shop.things DROP COLUMN name")
    with pytest.raises(UnavailableError, match="the source cannot be read: UndefinedColumn"):
        SourceEquals().run(tables)
    with pytest.raises(ConfigurationError, match=r"SourceEquals: shop\.things has no column nothing"):
        SourceEquals(columns=["nothing"]).run(tables)
    tables.source = None
    with pytest.raises(ConfigurationError, match="SourceEquals compares with the source"):
        SourceEquals().run(tables)


@pytest.mark.parametrize(
    ("mine", "theirs"),
    [
        (True, b"\x01"), (5, b"\x05"), (Decimal(2**63), (2**63).to_bytes(8, "big")), ("-838:59:59", -timedelta(
            hours=838, minutes=59, seconds=59)), ("00:00:01.500000", timedelta(seconds=1.5)), ("a,b", {"b", "a"}),
        ("", set()), (Decimal("1.50"), 1.5), (0.1, Decimal("0.1")), (NOON, NOON.replace(tzinfo=None)), (2024, 2024),
        (b"x", memoryview(b"x")), (None, None), (float("inf"), float("inf")),
    ],
)  # fmt: skip
def test_values_of_drivers_are_the_same(mine: Any, theirs: Any) -> None:
    assert is_same(mine, theirs)


@pytest.mark.parametrize(
    ("mine", "theirs"), [(1, 2), (None, 0), ("", None), ("1", "1.0"), (1.0, 1.001), (b"1", "1"), ("a", {"b"})]
)
def test_values_of_drivers_differ(mine: Any, theirs: Any) -> None:
    assert not is_same(mine, theirs)


def test_rows_that_the_source_deleted_and_the_table_keeps_are_not_compared(
    tables: CheckedTables, tmp_path: Path
) -> None:
    location = str(tmp_path / "lake" / "flagged")
    every = pa.Table.from_pylist([row(number) for number in range(ROWS + 20)], schema=SCHEMA)
    went = pa.array([number >= ROWS for number in range(ROWS + 20)])
    write_deltalake(location, every.append_column("_cdc_deleted", went))
    state = replace(tables.states[0], location="flagged", version=0)
    rules = TableRules(tables={"shop.things": TableRule(mode="soft_delete")})
    flagged = CheckedTables(replace(tables.pipeline, tables=rules), [state], tables.source)
    assert RowCount().run(flagged).passed
    assert SourceEquals(sample=ROWS).run(flagged).seen == f"{ROWS} rows of 1 tables agree, 0 changed since"
    assert not RowCount().run(replace(flagged, pipeline=tables.pipeline)).passed
