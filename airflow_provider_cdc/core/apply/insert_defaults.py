# SPDX-License-Identifier: Apache-2.0
"""Give inserted rows the defaults of columns that they lack, unless the tool leaves those columns out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from airflow_provider_cdc.core.apply.ordered_changes import Changes
from airflow_provider_cdc.core.apply.row_images import LEFT_OUT, SchemaMissing, are_whole, is_in_any
from airflow_provider_cdc.core.arrays import BoolArray, IntArray
from airflow_provider_cdc.core.formats.contract import Format
from airflow_provider_cdc.core.model.schema import Column, Default, TableSchema
from airflow_provider_cdc.core.timeline.timeline import TableTimeline
from airflow_provider_cdc.core.values.images import constant
from airflow_provider_cdc.core.values.types import GEOMETRIES

_WITHOUT_IMPLICIT = GEOMETRIES | {"json", "vector"}  # types whose NOT NULL columns have no implicit default


@dataclass(slots=True)
class InsertDefaults:
    """Give defaults to the inserted rows of one table.

    :param versions: schema version index of each change.
    :param mark_of: returns how a column stands in an image.
    :param record_of: returns the record of a change, for errors.
    """

    changes: Changes
    versions: IntArray
    timeline: TableTimeline
    wire: Format
    mark_of: Callable[[Column], str]
    record_of: Callable[[int], dict[str, Any]]
    _in_images: dict[str, bool] = field(default_factory=dict)  # by mark
    _whole_images: dict[int, bool | None] = field(default_factory=dict)  # by schema version

    def give(
        self, row_indexes: IntArray, schema: TableSchema, arrays: dict[int, pa.Array], absent: dict[int, BoolArray]
    ) -> None:
        """Set the columns that inserted rows lack to the default that their schema has, where that is certain.

        :param arrays: values by column id; changed in place, as ``absent`` is.
        :raises SchemaMissing: no row shows whether the tool leaves a column out.
        """
        inserts = self.changes.are("insert", rows=row_indexes)
        for column_id, lacks in absent.items():
            lacking, column = lacks & inserts, schema.column(column_id)
            default = _certain_default(schema, column) if column is not None and lacking.any() else None
            if column is None or default is None or self._is_left_out(column, int(row_indexes[lacking][0])):
                continue
            value = constant(default.text, column.type, arrays[column_id].type)
            arrays[column_id] = pc.if_else(pa.array(lacking), value, arrays[column_id])
            absent[column_id] = lacks & ~inserts

    def _is_left_out(self, column: Column, row_index: int) -> bool:
        """Return whether a column that inserts lack is one that the tool leaves out, so that its value is not known.

        A column that a row has is not left out. Where images before changes have more than the key, row images are
        whole (``binlog_row_image=FULL``), and a column that no row has is left out; where they have only the key, it
        has its default.
        """
        if self.wire.inserts_lack_defaults or self._is_in_any(column):
            return False
        whole = self._are_images_whole(column)
        if whole is None:
            text = f"no row has the column {column.name}, and none shows whether inserts leave out what has its default"
            where = {"table": str(self.timeline.last_name), **self.record_of(row_index)}
            hint = f"{LEFT_OUT}; if the server writes no whole rows, state source.options.binlog_row_image: minimal"
            raise SchemaMissing("apply.schema_missing", text, where=where, hint=hint)
        return whole

    def _is_in_any(self, column: Column) -> bool:
        """Return whether an image has a column; the images are searched once for each."""
        mark = self.mark_of(column)
        if mark not in self._in_images:
            self._in_images[mark] = is_in_any(self.changes, mark)
        return self._in_images[mark]

    def _are_images_whole(self, lacking: Column) -> bool | None:
        """Return whether images before changes have columns beyond the key; None where no change shows it.

        Without a key MINIMAL writes whole images before changes, too: they show of their own columns that they lack.
        """
        numbers = [
            number
            for number in np.unique(self.versions).tolist()
            if (schema := self.timeline.versions[number].schema).key or schema.column(lacking.id) is not None
        ]
        answers = [answer for number in numbers if (answer := self._are_whole(number)) is not None]
        return any(answers) if answers else None

    def _are_whole(self, number: int) -> bool | None:
        """Return whether images before changes of one schema version have columns beyond the key."""
        if number not in self._whole_images:
            schema = self.timeline.versions[number].schema
            beyond_key = [column for column in schema.columns_in_rows if column.id not in schema.key]
            marks = [self.mark_of(column) for column in beyond_key if self._is_in_any(column)]
            self._whole_images[number] = are_whole(self.changes, marks, self.versions == number)
        return self._whole_images[number]


def _certain_default(schema: TableSchema, column: Column) -> Default | None:
    """Return what an INSERT that does not name a column stores in it; None where the schema does not decide it.

    Defaults that the server computes it also writes. A TIMESTAMP's literal is of the time zone of the session that
    defined it. A schema taken from rows has no defaults.
    """
    if column.generated or column.auto_increment:
        return None
    default = column.default
    has_implicit = not column.nullable and column.id not in schema.key and column.type.name not in _WITHOUT_IMPLICIT
    if default is None and has_implicit:
        default = Default("constant", column.type.implicit_default())
    if default is None or default.kind != "constant":
        return None
    zoned = column.type.name == "timestamp" and default.text is not None and default.text[:10] != "0000-00-00"
    return None if zoned else default
