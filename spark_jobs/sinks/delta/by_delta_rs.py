# SPDX-License-Identifier: Apache-2.0
"""Let delta-rs write: tables with features of Delta that ask for more than files."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import pyarrow as pa
from deltalake import ColumnProperties, WriterProperties, write_deltalake

from spark_jobs.sinks.commits import Commit
from spark_jobs.sinks.delta.column_types import demand_names
from spark_jobs.sinks.delta.commit_marks import properties

if TYPE_CHECKING:
    from spark_jobs.sinks.delta.table import DeltaLocation

_DOUBLE_DIGITS = 15  # of decimals: delta-rs states the bounds of more as less


def quoted(name: str) -> str:
    """Return an identifier from outside for use in a DataFusion expression: the one place that quotes."""
    return '"' + name.replace('"', '""') + '"'


def merge(target: DeltaLocation, upserts: pa.Table, deletes: pa.Table, key: Sequence[str], commit: Commit) -> None:
    """Replace or add one row per key, remove the rows of deleted keys, one commit of delta-rs."""
    target.demand_types(upserts.schema)
    flag = "_cdc_delete"
    while flag in upserts.column_names:
        flag += "_"
    demand_names(upserts.column_names, target.location)
    source = pa.concat_tables(
        [
            upserts.append_column(flag, pa.repeat(pa.scalar(False), upserts.num_rows)),
            deletes.append_column(flag, pa.repeat(pa.scalar(True), deletes.num_rows)),
        ],
        promote_options="default",
    )
    same = " AND ".join(f"t.{quoted(name)} = s.{quoted(name)}" for name in key)
    every = {quoted(name): f"s.{quoted(name)}" for name in upserts.column_names}
    merger = target.table.merge(
        source,
        same,
        source_alias="s",
        target_alias="t",
        # streamed, it reads every file; else it takes the files' bounds as they are stated
        streamed_exec=not all(_states_bounds(upserts.schema.field(name).type) for name in key),
        writer_properties=_as_delta_rs_should(upserts.schema),
        commit_properties=properties(commit),
    )
    if deletes.num_rows:
        merger = merger.when_matched_delete(f"s.{quoted(flag)}")
    merger = merger.when_matched_update(every).when_not_matched_insert(every, predicate=f"NOT s.{quoted(flag)}")
    target.demand_ours(commit)
    target.guarded(merger.execute)


def write(target: DeltaLocation, rows: pa.Table, mode: str, commit: Commit) -> None:
    """Add or replace all rows of a table that delta-rs has to write; an overwrite may change the columns."""
    demand_names(rows.column_names, target.location)
    target.demand_ours(commit)
    if mode == "append":
        target.demand_types(rows.schema)
    target.guarded(
        lambda: write_deltalake(
            target.table,
            rows,
            mode=mode,
            schema_mode="overwrite" if mode == "overwrite" else None,
            writer_properties=_as_delta_rs_should(rows.schema),
            commit_properties=properties(commit),
        )
    )


def compact(target: DeltaLocation, file_bytes: int, *, small: float) -> tuple[int, int]:
    """Put small files together where delta-rs has to write; return how many went, and how many came.

    :param small: part of the size that a file may lack before it is written again.
    """
    if sum(size < small * file_bytes for size in target.actions.column("size_bytes").to_pylist()) <= 1:
        return 0, 0
    as_it_should = _as_delta_rs_should(target.schema)
    with target.writing():
        metrics = target.table.optimize.compact(target_size=file_bytes, writer_properties=as_it_should)
    return metrics["numFilesRemoved"], metrics["numFilesAdded"]


def _states_bounds(kind: pa.DataType) -> bool:
    """Return whether all writers state bounds of a type that are not too narrow."""
    return bool(pa.types.is_integer(kind) or pa.types.is_string(kind) or pa.types.is_date32(kind))


def _as_delta_rs_should(schema: pa.Schema) -> WriterProperties | None:
    """Return how delta-rs has to write: it states bounds of decimals that are too narrow, so it states none of them."""
    wide = [f.name for f in schema if pa.types.is_decimal(f.type) and f.type.precision > _DOUBLE_DIGITS]
    none = ColumnProperties(statistics_enabled="NONE")
    return WriterProperties(column_properties=dict.fromkeys(wide, none)) if wide else None
