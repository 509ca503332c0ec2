# SPDX-License-Identifier: Apache-2.0
"""Tables with partitions: rows of few values, and what has to hold of the table's files and of a reader."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from operator import eq, lt
from typing import Any

import pyarrow as pa
from pyiceberg.expressions import EqualTo, IsNull, LessThan
from pyiceberg.manifest import ManifestContent

from airflow_provider_cdc.core.apply.target_schema import TargetSchema
from airflow_provider_cdc.core.config.partition_rules import partition_rules
from airflow_provider_cdc.core.config.table_layout import TableLayout
from tests.sinks.actions import columns_of
from tests.sinks.laid_out import LaidOutTable

KINDS = ("iceberg", "iceberg copy-on-write", "iceberg rest")
BEGIN = datetime(2024, 1, 30)
COLUMNS = pa.schema(
    [
        ("id", pa.int64()),
        ("n", pa.int32()),
        ("name", pa.string()),
        ("at", pa.timestamp("us")),
        ("zoned", pa.timestamp("us", "UTC")),
        ("day", pa.date32()),
        ("price", pa.decimal128(12, 2)),
        ("paid", pa.bool_()),
        ("raw", pa.binary()),
    ]
)


def by(*entries: str) -> TableLayout:
    return TableLayout(partition_by=partition_rules(entries))


def _row(key: int, rnd: random.Random) -> dict[str, Any]:
    """Return a row with few different values, so that partitions have several rows, and some NULLs."""
    at = BEGIN + timedelta(days=rnd.choice((-30_000, 0, 1, 2)), microseconds=rnd.choice((-1, 0, 1)))
    values = {
        "n": rnd.choice((-11, -1, 0, 9, 10)),
        "name": rnd.choice(("", "a", "ab", "é/=%", "\U0001f600x", "a" * 40)),
        "at": at,
        "zoned": at.replace(tzinfo=UTC),
        "day": date(1969, 12, 31) + timedelta(days=rnd.choice((0, 1, 40))),
        "price": Decimal(rnd.choice(("-0.01", "0.00", "1.99", "2.00", "9999999999.99"))),
        "paid": rnd.choice((True, False)),
        "raw": rnd.choice((b"", b"\0", b"abc", b"\xff\xfe\xfd")),
    }
    return {"id": key, **{name: None if rnd.random() < 0.1 else value for name, value in values.items()}}


def some_rows(keys: list[int], rnd: random.Random) -> pa.Table:
    return pa.Table.from_pylist([_row(key, rnd) for key in keys], COLUMNS)


def columns_with(**ids: int) -> TargetSchema:
    """Return columns by name with ids: those of the key, of ``old`` and of others."""
    kinds = {"id": pa.int64(), "n": pa.int64()}
    schema = pa.schema([(name, kinds.get(name, pa.string())) for name in ids])
    return replace(columns_of(schema, "id"), ids=tuple(ids.values()), key=(1,))


def demand_sound(table: LaidOutTable, rows: Mapping[int, dict[str, Any]]) -> None:
    """Demand that pyiceberg sees the rows, with filters that leave partitions out too, and that manifests are right."""
    expected = [rows[key] for key in sorted(rows)]
    assert table.rows() == expected
    stored = table.iceberg()
    known = stored.catalog.load_table(stored.identifier)
    spec_of, by_path = {spec.spec_id: spec for spec in known.metadata.partition_specs}, {}
    snapshot = known.current_snapshot()
    assert snapshot is not None
    for manifest in snapshot.manifests(known.io):
        for entry in manifest.fetch_manifest_entry(known.io):
            file = entry.data_file
            assert len(file.partition) == len(spec_of[manifest.partition_spec_id].fields)
            if manifest.content == ManifestContent.DATA:
                by_path[file.file_path] = (manifest.partition_spec_id, file.partition)
    for file in stored.files():
        for deletes in file.deletes:
            assert (deletes.spec_id, deletes.partition) == by_path[file.path]
    sources = {field.source_id for spec in spec_of.values() for field in spec.fields}
    for name in (field.name for field in known.schema().fields if field.field_id in sources):
        some = [row[name] for row in expected if row.get(name) is not None and not isinstance(row[name], bytes)]
        for value in [*dict.fromkeys(some)][:1]:
            for predicate, holds in ((EqualTo, eq), (LessThan, lt)):
                literal = value.isoformat() if isinstance(value, (date, datetime)) else value
                matching = known.scan(row_filter=predicate(name, literal), selected_fields=("id",)).to_arrow()
                keys = {row["id"] for row in expected if row[name] is not None and holds(row[name], value)}
                assert set(matching.column("id").to_pylist()) == keys, (name, value, predicate)
        matching = known.scan(row_filter=IsNull(name), selected_fields=("id",)).to_arrow()
        assert set(matching.column("id").to_pylist()) == {row["id"] for row in expected if row[name] is None}
