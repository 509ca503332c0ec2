# SPDX-License-Identifier: Apache-2.0
"""Records that could not be decoded: each counts against its table's limit, and parks only that table."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from airflow_provider_cdc.core.config import TableRules
from airflow_provider_cdc.core.documents import JobDocument, TableState
from airflow_provider_cdc.core.errors import DataError
from airflow_provider_cdc.core.model.schema import TableName
from airflow_provider_cdc.core.timeline.timeline import TableTimeline, Timeline
from spark_jobs.driver.batch_history import History
from spark_jobs.lake.manifest import Manifest, Settled, Unreadable


class Quarantine:
    """Finds the tables that have more unreadable records in one batch than they may leave out.

    A table stands before such a batch until its limit allows the records or an operator settles them: later batches
    look at it again.

    :ivar settled: all records that operators settled, in this batch or before.
    """

    def __init__(
        self, job: JobDocument, rules: TableRules, now: Timeline, manifest: Manifest, history: History
    ) -> None:
        self._job, self._rules, self._now = job, rules, now
        self._manifest, self._history = manifest, history
        self.settled = [*(Settled(**one) for one in history.settled()), *manifest.settled]

    def exceeded(self, timeline: TableTimeline, state: TableState | None) -> str | None:
        """Return why a table cannot go on, None where it can."""
        names = {name for _, name in timeline.names if name is not None}
        if state is not None and state.version is not None:
            batches = [seq for seq in self._history.earlier if seq > state.applied_seq]
        else:
            batches = self._history.since(timeline.versions[0].position)
        return self._reason(timeline.last_name, names, batches)

    def exceeded_by_name(self, name: TableName, first_seq: int) -> str | None:
        """Return the same for a table that nobody is known to have created.

        :param first_seq: batch that named it first.
        """
        return self._reason(name, {name}, [seq for seq in self._history.earlier if seq >= first_seq])

    def settles(self, timeline: TableTimeline) -> bool:
        """Return whether operators settle records of a table in this batch: it may go on then."""
        names = {name for _, name in timeline.names if name is not None}
        return any(TableName(one.database, one.table) in names for one in self._manifest.settled)

    def unowned(self) -> Iterator[TableName]:
        """Yield the names among this batch's unreadable records that no table has ever had."""
        for item in self._manifest.unreadable:
            name = TableName(item.database, item.table)
            if item.table and name not in self._now.names:
                yield name

    def _reason(self, name: TableName, names: set[TableName], batches: Sequence[int]) -> str | None:
        limit = self._rules.policy(name, self._job.policy).quarantine_limit
        for manifest in [*map(self._history.manifest, batches), self._manifest]:
            unreadable = [item for item in manifest.unreadable if TableName(item.database, item.table) in names]
            count = sum(item.count for item in unreadable) - sum(
                one.kind == "record" and one.of == manifest.seq and TableName(one.database, one.table) in names
                for one in self.settled
            )
            if count > limit:
                return str(_error(name, unreadable[0], count, limit))
        return None


def _error(name: TableName, first: Unreadable, count: int, limit: int) -> DataError:
    return DataError(
        "land.quarantine_exceeded",
        f"{count} records of the table could not be decoded ({first.error_code}: {first.error}), "
        f"its quarantine_limit is {limit}",
        where={"topic": first.topic, "partition": first.partition, "offset": first.offset},
        hint=f"see the record; tables.{name}.quarantine_limit lets the table go on without it",
    )
