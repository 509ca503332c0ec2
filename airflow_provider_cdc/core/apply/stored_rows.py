# SPDX-License-Identifier: Apache-2.0
"""Read the stored rows of a table as the changes of a step find them, only where changes say too little."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import pyarrow as pa

from airflow_provider_cdc.core.apply.merge_plan import Emptied, MergeStep
from airflow_provider_cdc.core.apply.modes import rows_of
from airflow_provider_cdc.core.apply.schema_mapping import Mapper
from airflow_provider_cdc.core.apply.table_rewrite import after_steps
from airflow_provider_cdc.core.model.schema import TableSchema
from airflow_provider_cdc.core.timeline.timeline import SchemaVersion

# returns stored rows that have these keys, maybe among others; all rows for None
ReadRows = Callable[[pa.Table | None], pa.Table]


@dataclass(frozen=True, slots=True)
class Stored:
    """Read the rows that the changes start from.

    :param read: reads the stored rows, None when nothing is stored.
    :param schema: schema that they lie under, None when nothing is stored.
    """

    read: ReadRows | None
    schema: TableSchema | None
    mapper: Mapper
    versions: Sequence[SchemaVersion]

    def before(self, steps: Sequence[MergeStep], emptied: Emptied | None, target: int, keys: pa.Table) -> pa.Table:
        """Return the rows with these values as they are after some steps, under the schema of version ``target``.

        :param keys: columns of the table, those of its key or others.
        :param emptied: what emptied the source's table right before the step that they are for, None without.
        """
        if emptied is not None and emptied.restated:
            return rows_of(self.mapper.mode).emptied(self.before(steps, None, target, keys), emptied)
        if emptied is not None or (self.read is None and not steps):
            return self.mapper.nothing(target)
        if self.read is not None and not steps:
            assert self.schema is not None  # what can be read has a schema
            rows = self.read(keys if self._has(keys.column_names, target) else None)
            return self.mapper.content(rows, self.schema, target)
        content = None if self.read is None or steps[0].clear else self.read(None)
        rows, _ = after_steps(content, self.schema, steps, self.mapper)
        return self.mapper.content(rows, steps[-1].schema, target, steps[-1].version)

    def _has(self, names: Sequence[str], target: int) -> bool:
        """Return whether columns of a version stand in the stored rows under the same names and types."""
        assert self.schema is not None
        was, now = self.schema, self.versions[target].schema
        laid = {one.id: one for one in self.mapper.laid.of(was)}
        for column in (one for one in self.mapper.columns(target) if one.name in names):
            old, one, new = was.column(column.id), laid.get(column.id), now.column(column.id)
            if old is None or one is None or new is None or (one.name, one.mark) != (column.name, column.mark):
                return False
            if old.type != new.type:
                return False
        return True
