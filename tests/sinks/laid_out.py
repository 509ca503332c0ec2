# SPDX-License-Identifier: Apache-2.0
"""A table whose rule states a layout, written by a task as batches write it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pyarrow as pa

from airflow_provider_cdc.core.apply.target_schema import TargetSchema
from airflow_provider_cdc.core.config.table_layout import TableLayout
from airflow_provider_cdc.core.documents import Maintenance, TableMaintenance
from spark_jobs.sinks.contract import Action, Verb
from spark_jobs.sinks.iceberg.table import IcebergTable
from tests.sinks.actions import columns_of, commit
from tests.sinks.kinds import sink_of


class LaidOutTable:
    """A table ``db.t`` of a kind; its key is ``id``.

    :param kind: one of ``kinds.OPTIONS``.
    """

    def __init__(self, kind: str, root: Path) -> None:
        self.sink, self.location, self.seq = sink_of(kind, root), str(root / "db" / "t"), 0

    def open(self) -> Any:
        return self.sink.open(self.location)

    def iceberg(self) -> IcebergTable:
        return cast(IcebergTable, self.open())

    def do(
        self, verb: Verb, some: pa.Table, layout: TableLayout, *gone: int, columns: TargetSchema | None = None
    ) -> None:
        """Commit rows, and for a merge remove those of some keys."""
        self.seq += 1
        columns = replace(columns or columns_of(some.schema, "id"), layout=layout)
        deletes = pa.table({"id": pa.array(gone, some.schema.field("id").type)})
        action = Action(verb, commit(self.seq), some, deletes, ["id"], columns=columns)
        self.sink.task_writer().commit(self.open(), action)

    def maintain(self, layout: TableLayout, file_bytes: int = 1 << 20, first: str = "id") -> TableMaintenance:
        report = TableMaintenance("db", "t")
        self.sink.maintain(self.open(), report, Maintenance(file_bytes, keep_hours=100), first, layout)
        return report

    def rows(self) -> list[dict[str, Any]]:
        rows: list[dict[str, Any]] = self.open().rows().sort_by("id").to_pylist()
        return rows
