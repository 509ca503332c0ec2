# SPDX-License-Identifier: Apache-2.0
"""Iceberg tables that have what a reader may get wrong: edges of types, deletes by position, changed columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa

from airflow_provider_cdc.core.apply.target_schema import TargetSchema
from airflow_provider_cdc.core.config.partition_rules import PartitionRule, partition_rules
from airflow_provider_cdc.core.config.table_layout import TableLayout
from spark_jobs.sinks.contract import Action
from spark_jobs.sinks.iceberg.sink import open_sink
from spark_jobs.sinks.iceberg.table import IcebergTable
from tests.conformance.edge_tables import GROUPS
from tests.histories.layouts import transforms_of
from tests.sinks.actions import columns_of, commit
from tests.sinks.kinds import options_of

KINDS = ("iceberg", "iceberg copy-on-write")
_TRANSFORMS = {"identity": GROUPS, "bucket[3]": GROUPS, "truncate[2]": ("numbers", "others")}
WAYS = [
    *((way, group) for way, groups in _TRANSFORMS.items() for group in groups),
    *((way, "others") for way in ("year", "month", "day", "hour")),
]
"""Transforms, and groups of types that have some which take them."""

ODD = "a.b `c` \"d\" 'é';"
SPACED = "x `y` é"  # pyiceberg filters no column with a dot (0.12)
_CENT = Decimal("0.01")


def stored(rows: pa.Table, folder: Path) -> IcebergTable:
    """Return a table with each row in a file of its own, half of them merged over others."""
    sink, location = open_sink(options_of("iceberg", folder)), str(folder / "db" / "t")
    columns, none = columns_of(rows.schema, "id"), rows.slice(0, 0).select(["id"])
    half = rows.num_rows // 2
    for seq in range(rows.num_rows):
        one = rows.slice(seq if seq < half else 0, 1).set_column(0, "id", pa.array([seq], pa.int64()))
        action = Action("append" if seq else "create", commit(seq + 1), one, none, ["id"], columns=columns)
        sink.task_writer().commit(sink.open(location), action)
    action = Action("merge", commit(98), rows.slice(half), none, ["id"], columns=columns)
    sink.task_writer().commit(sink.open(location), action)
    return sink.open(location)


def changed(kind: str, folder: Path) -> tuple[IcebergTable, pa.Table]:
    """Return a table whose columns and rows changed between commits, and the rows that it has, by key.

    Columns became wider, moved, went and came; one has the name of one that went, a new one that of one renamed.
    """
    sink, location, model = open_sink(options_of(kind, folder)), str(folder / "db" / "t"), dict[int, Any]()
    first = pa.schema({"id": pa.int32(), "v": pa.string(), "gone": pa.string(), "amount": pa.decimal128(10, 2)})
    amount, texts = ("amount", pa.decimal128(18, 2)), pa.string()
    then = pa.schema([amount, ("id", pa.int64()), ("gone", texts), (ODD, pa.float64()), ("v", pa.list_(pa.float32()))])

    def do(verb: Any, columns: TargetSchema, some: dict[int, tuple[Any, ...]], *gone: int) -> None:
        names = columns.columns.names
        rows = pa.Table.from_pylist([dict(zip(names, row, strict=True)) for row in some.values()], columns.columns)
        deletes = pa.table({"id": pa.array(gone, columns.columns.field("id").type)})
        action = Action(verb, commit(len(done)), rows, deletes, ["id"], columns=columns)
        sink.task_writer().commit(sink.open(location), action)
        done.append(action)

    done: list[Any] = [None]
    before = TargetSchema((1, 2, 3, 4), first, (1,))
    for verb, begin in (("create", 0), ("append", 50)):
        some = {key: (key, f"v{key}", "x", key * _CENT) for key in range(begin, begin + 50)}
        do(verb, before, some)
        model |= some
    some = {key: (key, "", None, -key * _CENT) for key in (0, 3, 49, 50)}
    do("merge", before, some, 4, 51, 999)
    model |= some
    after = TargetSchema((4, 1, 2, 5, 6), then, (1,))
    new = {key: (_CENT * 10**17, key, "new", -0.0, [0.5]) for key in (3, 7, 60, 2**40)}
    do("merge", after, new, 8, 99)
    moved = {key: (amount, key, text, None, None) for key, text, _, amount in model.values()}
    content = {key: row for key, row in {**moved, **new}.items() if key not in (4, 51, 8, 99)}
    rows = [dict(zip(then.names, content[key], strict=True)) for key in sorted(content)]
    return sink.open(location), pa.Table.from_pylist(rows, then)


def plain(value: Any) -> Any:
    """Return a value that equals itself, with the sign of a zero."""
    return repr(value) if isinstance(value, (float, list)) else value


def differing(back: pa.Table, rows: pa.Table) -> dict[str, Any]:
    """Return by column what was read and is not what was stored.

    :param back: rows that were read.
    :param rows: that were stored, by ``id``.
    """
    back, result = back.sort_by("id"), dict[str, Any]()
    if back.column_names != rows.column_names or back.num_rows != rows.num_rows:
        return {"shape": (back.column_names, back.num_rows)}
    for name in rows.column_names:
        pairs = zip(back.column(name).to_pylist(), rows.column(name).to_pylist(), strict=True)
        wrong = [(mine, theirs) for mine, theirs in pairs if plain(mine) != plain(theirs)]
        if wrong:
            result[name] = wrong
    return result


def partitioned(rows: pa.Table, transform: str, folder: Path) -> IcebergTable:
    """Return a table that is partitioned by a transform of every column that takes it, so by all values of a row."""
    names = [field.name for field in rows.schema if transform in transforms_of(field.type)]
    if transform == "identity":  # of which one at most may be a DECIMAL
        decimals = [name for name in names if pa.types.is_decimal(rows.schema.field(name).type)]
        names = [name for name in names if name not in decimals[:-1]]
    layout = TableLayout(partition_by=tuple(PartitionRule(transform, name) for name in names))
    sink, location = open_sink(options_of("iceberg", folder)), str(folder / "db" / "t")
    columns, none = replace(columns_of(rows.schema, "id"), layout=layout), rows.slice(0, 0).select(["id"])
    action = Action("create", commit(1), rows, none, ["id"], columns=columns)
    sink.task_writer().commit(sink.open(location), action)
    return sink.open(location)


def repartitioned(kind: str, folder: Path) -> tuple[IcebergTable, pa.Table]:
    """Return a table of files that are partitioned in several ways, with deletes on them, and its rows, by key.

    Columns of partitions became wider, one has a new name, and one that an older spec has is gone.
    """
    sink, location = open_sink(options_of(kind, folder)), str(folder / "db" / "t")
    model, seq = dict[int, dict[str, Any]](), 0

    def do(verb: Any, columns: TargetSchema, keys: Sequence[int], *rules: str) -> None:
        nonlocal model, seq
        seq += 1
        names, gone = columns.columns.names, [] if verb != "merge" else [key for key in model if key % 10 == seq]
        new = dict(zip(names, ("id", "at", "text", "price", "note"), strict=False))
        before = [dict(zip(names, row.values(), strict=False)) for row in model.values()]
        model = {row[names[0]]: row for row in before if row[names[0]] not in gone}
        put = [{name: _value(what, key, seq) for name, what in new.items()} for key in keys] if keys else before
        model |= {row[names[0]]: row for row in put}
        some = pa.Table.from_pylist(put, columns.columns)
        deletes = pa.table({names[0]: pa.array(gone, columns.columns.field(0).type)})
        layout = TableLayout(partition_by=partition_rules(rules))
        action = Action(verb, commit(seq), some, deletes, names[:1], columns=replace(columns, layout=layout))
        sink.task_writer().commit(sink.open(location), action)

    narrow = {"id": pa.int32(), "at": pa.timestamp("us"), SPACED: pa.string(), "price": pa.decimal128(10, 2)}
    wide = {"id": pa.int64(), "at": pa.timestamp("us"), SPACED: pa.string(), "price": pa.decimal128(18, 2)}
    first = TargetSchema((1, 2, 3, 4, 5), pa.schema({**narrow, "note": pa.string()}), (1,))
    do("create", first, range(40), "month(at)", "note")
    do("merge", first, range(30, 60), "bucket(4, id)", SPACED)
    do("overwrite", TargetSchema((1, 2, 3, 4), pa.schema(narrow), (1,)), (), "bucket(4, id)", SPACED)
    then = TargetSchema((1, 2, 3, 4), pa.schema(wide), (1,))
    do("merge", then, range(50, 80), "price", f"truncate(2, {SPACED})")
    do("merge", then, range(70, 100))
    renamed = TargetSchema(
        (1, 2, 3, 4), pa.schema({name if name != SPACED else "b": wide[name] for name in wide}), (1,)
    )
    do("merge", renamed, range(90, 120), "day(at)", "b")
    do("merge", renamed, range(95, 125), "bucket(4, id)", "truncate(2, b)")
    rows = [model[key] for key in sorted(model)]
    return sink.open(location), pa.Table.from_pylist(rows, renamed.columns)


def _value(what: str, key: int, seq: int) -> Any:
    """Return a value of few that a column has."""
    return {
        "id": key,
        "at": None if key % 7 == 0 else datetime(2024, 1, 30, 23) + timedelta(days=key % 3, hours=seq),
        "text": None if key % 5 == 0 else "é/= \"%'"[key % 5 :],
        "price": (key % 4) * _CENT,
        "note": "x" * (key % 3),
    }[what]
