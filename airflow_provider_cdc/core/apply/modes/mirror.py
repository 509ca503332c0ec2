# SPDX-License-Identifier: Apache-2.0
"""Keep a stored table equal to the table of the source."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

import pyarrow as pa
import pyarrow.compute as pc

from airflow_provider_cdc.core.apply.merge_plan import Emptied, MergeStep
from airflow_provider_cdc.core.apply.modes.contract import KeyedRows, NewestEvents, TableMode
from airflow_provider_cdc.core.apply.rows_without_key import KeylessRows, of_rows_without_key
from airflow_provider_cdc.core.config.tables import TableRule
from airflow_provider_cdc.core.shapes.mode import AsAtSource


class Mirror(AsAtSource):
    """The stored table has the rows of the source's table."""

    def of(self, rule: TableRule) -> TableMode:
        """Return this mode: it has no options."""
        return self

    def merged(self, newest: NewestEvents) -> KeyedRows:
        """Return the newest row of each key, and the keys whose row is gone or leaves the filter."""
        events, winners = newest.events, newest.winners
        takes = events.fills[winners]
        upserts, deletes = newest.rows_after(winners[takes]), newest.keys_of(winners[~takes])
        if upserts.passes is None or upserts.passes.all():
            return KeyedRows(upserts, deletes)
        leaving = upserts.rows.select(deletes.column_names).filter(pa.array(~upserts.passes))
        return KeyedRows(upserts.in_target(), pa.concat_tables([deletes, leaving]))

    def without_key(self, keyless: KeylessRows) -> MergeStep:
        """Return what the changes add and take away."""
        return of_rows_without_key(keyless)

    def of_truncates(self, truncates: Sequence[Emptied], nothing: pa.Table) -> pa.Table:
        """Return no rows."""
        return nothing

    def emptied(self, rows: pa.Table, emptied: Emptied) -> pa.Table:
        """Return no rows."""
        return rows.schema.empty_table()

    def expired(self, now: datetime) -> pc.Expression | None:
        """Return None: all rows stay."""
        return None

    def rekeyed(self, rows: pa.Table, key: Sequence[str]) -> pa.Table:
        """Return all rows: the source would have refused the key."""
        return rows
