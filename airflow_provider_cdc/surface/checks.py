# SPDX-License-Identifier: Apache-2.0
"""Check a pipeline's tables after a batch: rows against the source, age, parked tables, contradictions, quarantine."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cached_property
from typing import TYPE_CHECKING, Any

from airflow_provider_cdc.core.config import CdcPipeline
from airflow_provider_cdc.core.documents import TableState
from airflow_provider_cdc.core.errors import CdcError, ConfigurationError, UnavailableError
from airflow_provider_cdc.core.model.check_result import CheckResult
from airflow_provider_cdc.core.model.laid_columns import LaidColumns
from airflow_provider_cdc.core.model.schema import TableSchema
from airflow_provider_cdc.core.model.status import TableStatus
from airflow_provider_cdc.sinks.contract import UnreadableTableError
from airflow_provider_cdc.sinks.pipeline_tables import PipelineTables
from airflow_provider_cdc.surface.source_sample import (
    SampleComparison,
    compare,
    count_rows,
    newest_value,
    quoting,
    sample_rows,
    source_rows,
)

if TYPE_CHECKING:
    from airflow_provider_cdc.core.shapes.mode import ModeColumns
    from airflow_provider_cdc.sinks.contract import StoredTable

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_SHOWN = 50


@dataclass
class CheckedTables:
    """Hold what checks look at.

    :param states: the tables to check, as the ledger holds them.
    :param source: hook of the source database; None without one.
    """

    pipeline: CdcPipeline
    states: Sequence[TableState]
    source: Any = None
    now: Callable[[], datetime] = lambda: datetime.now(UTC)

    @cached_property
    def _stored(self) -> PipelineTables:
        from airflow_provider_cdc.connections.lookup import sink_options

        return PipelineTables(self.pipeline, sink_options)

    @contextmanager
    def version_of(self, state: TableState) -> Iterator[StoredTable]:
        """Open a table in its version of the last batch.

        :raises UnavailableError: it cannot be read, inside the block as well.
        """
        try:
            with self._stored.as_committed(state) as table:
                yield table
        except UnreadableTableError as error:
            where = {"table": _name(state), "version": state.version}
            raise UnavailableError(
                "check.table_unreadable", f"the table cannot be read: {error}", where=where,
                hint="check the location of the table; then run again",
            ) from None  # fmt: skip

    def filter_of(self, state: TableState) -> str:
        """Return the condition of the rows that a table has, empty for all."""
        return self.pipeline.tables.rule(_name(state)).filter or ""

    def mode_of(self, state: TableState) -> ModeColumns:
        """Return the mode of a table."""
        from airflow_provider_cdc.core.apply.modes import mode_of

        return mode_of(self.pipeline.tables, _name(state))

    @contextmanager
    def source_of(self, state: TableState, check: str) -> Iterator[tuple[Any, str]]:
        """Return the hook of the source and the quoted name of a table there.

        :param check: name of the check that asks.
        :raises ConfigurationError: there is no connection to the source.
        :raises UnavailableError: the source does not answer, inside the block as well.
        """
        if self.source is None:
            raise ConfigurationError([f"source_conn_id: {check} compares with the source and needs its connection"])
        try:
            yield self.source, ".".join(map(quoting(self.source), (state.database, state.table)))
        except CdcError:
            raise
        except Exception as error:  # each driver has its own errors, whose texts may hold the connection
            raise UnavailableError(
                "check.source_unreadable", f"the source cannot be read: {type(error).__name__}",
                where={"table": _name(state)},
                hint="check source_conn_id, and that its user may read the table; then run again",
            ) from None  # fmt: skip

    def quarantined(self) -> dict[str, int]:
        """Return how many records of each table wait in the quarantine; the name is empty where a record has none."""
        from airflow_provider_cdc.batch.quarantine import open_entries

        names = {_name(state) for state in self.states}
        waiting = {(entry.record, f"{entry.database}.{entry.table}" if entry.table else "")
                   for entry in open_entries(self.pipeline)}  # fmt: skip
        return dict(Counter(name for _, name in waiting if not name or name in names))

    def contradictions(self) -> tuple[dict[str, Counter[str]], list[dict[str, Any]]]:
        """Return the contradictions of the newest request by table and kind, and the first of them as results do."""
        from airflow_provider_cdc.batch.result import newest_results
        from airflow_provider_cdc.connections.lookup import ledger_url
        from airflow_provider_cdc.ledger import Ledger

        names, counts, first = {_name(state) for state in self.states}, dict[str, Counter[str]](), []
        for result in reversed(newest_results(Ledger(ledger_url(self.pipeline.ledger)), self.pipeline.name)):
            first += [one for one in result.contradictions or () if one["table"] in names]
            for line in result.tables:
                if line.contradictions and line.name in names:
                    counts.setdefault(line.name, Counter()).update(line.contradictions)
        return counts, first


class Check(ABC):
    """One thing that has to hold for a pipeline's tables."""

    @abstractmethod
    def run(self, tables: CheckedTables) -> CheckResult:
        """Return whether it holds."""


@dataclass(frozen=True)
class NoParked(Check):
    """No table is parked or waits for a schema change."""

    def run(self, tables: CheckedTables) -> CheckResult:
        """Return whether it holds."""
        unsettled = (TableStatus.PARKED, TableStatus.WAITING)
        names = [_name(state) for state in tables.states if state.state in unsettled]
        reasons = [f"{_name(state)} {state.state}: {state.reason}" for state in tables.states if _name(state) in names]
        seen = "; ".join(reasons[:_SHOWN]) or "none"
        return CheckResult("no_parked", not names, seen, "no parked or waiting table", names)


@dataclass(frozen=True)
class NoContradictions(Check):
    """No change of the newest sync contradicts the rows that it found, be it counted or its table parked for it.

    A sync that became several batches counts as one. The result names the first record, never values.
    """

    def run(self, tables: CheckedTables) -> CheckResult:
        """Return whether it holds."""
        counts, first = tables.contradictions()
        lines = [f"{name}: {', '.join(f'{n} {kind}' for kind, n in kinds.items())}" for name, kinds in counts.items()]
        seen = "; ".join(lines[:_SHOWN]) or "none"
        if first:
            one = first[0]
            column = f" in column {one['column']}" if one.get("column") else ""
            seen += f"; the first is {one['kind']}{column} of {one['table']}"
            seen += f" at {one['topic']}/{one['partition']}:{one['offset']}"
        return CheckResult("no_contradictions", not counts, seen, "no change that contradicts the table", list(counts))


@dataclass(frozen=True)
class Freshness(Check):
    """The newest change that the tables hold is not older than a time.

    A source that is idle looks stale: choose an age in which something surely changes.
    """

    max_age: timedelta

    def run(self, tables: CheckedTables) -> CheckResult:
        """Return whether it holds."""
        times = [state.source_time for state in tables.states if state.source_time is not None]
        expected = f"at most {self.max_age}"
        if not times:
            return CheckResult("freshness", False, "no change yet", expected)
        age = tables.now() - (_EPOCH + timedelta(microseconds=max(times)))
        return CheckResult("freshness", age <= self.max_age, f"the newest change is {age} old", expected)


@dataclass(frozen=True)
class RowCount(Check):
    """Each table has as many rows as at the source.

    The source is counted now, the tables at their last batch: the tolerance has to allow for what happens between.
    Tables that have a row for each change are left out.

    :param tolerance: rows by which the numbers of a table may differ.
    """

    tolerance: int = 0

    def run(self, tables: CheckedTables) -> CheckResult:
        """Return whether it holds."""
        different = {}
        counted = [s for s in tables.states if s.version is not None and tables.mode_of(s).has_key]
        for state in counted:
            with tables.version_of(state) as table:
                here = count_rows(table, tables.mode_of(state).of_source)
            condition = tables.filter_of(state)
            with tables.source_of(state, "RowCount") as (source, name):
                there = int(source.get_first(f"SELECT count(*) FROM {name}{condition and f' WHERE {condition}'}")[0])
            if abs(here - there) > self.tolerance:
                different[_name(state)] = f"{_name(state)}: {here} rows, {there} at the source"
        seen = "; ".join(list(different.values())[:_SHOWN]) or f"{len(counted)} tables agree"
        return CheckResult("row_count", not different, seen, f"at most {self.tolerance} apart", list(different))


@dataclass(frozen=True)
class QuarantineBelow(Check):
    """Fewer records than a number wait in the quarantine, of the tables that are checked or of no known table.

    :param number: 1 accepts none.
    """

    number: int = 1

    def run(self, tables: CheckedTables) -> CheckResult:
        """Return whether it holds."""
        waiting = tables.quarantined()
        total, names = sum(waiting.values()), sorted(filter(None, waiting))
        passed = total < self.number
        seen = f"{total} records" + (f" of {', '.join(names[:_SHOWN])}" if names else "")
        return CheckResult("quarantine_below", passed, seen, f"fewer than {self.number}", [] if passed else names)


@dataclass(frozen=True)
class SourceEquals(Check):
    """Random rows of each table are as at the source.

    The source is read now, the tables at their last batch. Name the ``changed_column`` of busy tables, or allow for
    what happens in between with ``tolerance``. Use ``RowCount`` to see rows that a table lacks. Tables without key are
    left out. The result names columns, never values. The session of the connection has to use UTC where a table has
    TIMESTAMP columns.

    :param sample: rows of each table, at most.
    :param columns: names of the columns to compare; all of them without.
    :param changed_column: column that the source sets with each change of a row; rows that changed since the newest one
        in the table are left out.
    :param tolerance: rows of a table that may differ.
    """

    sample: int = 1000
    columns: Sequence[str] = ()
    changed_column: str | None = None
    tolerance: int = 0

    def run(self, tables: CheckedTables) -> CheckResult:
        """Return whether it holds."""
        results = {}
        for state in tables.states:
            schema = None if state.schema is None else TableSchema.from_document(state.schema)
            if state.version is None or schema is None or not schema.key:
                continue
            names = LaidColumns.from_document(state.laid).names(schema)
            if names.keys() >= set(schema.key):  # a masked key finds no row of the source
                own = TableSchema(tuple(column for column in schema.columns if column.id in names), schema.key)
                stored = {column.name: names[column.id] for column in own.columns}
                results[_name(state)] = self._compare(tables, state, own, stored)
        wrong = {name: result for name, result in results.items() if result.wrong > self.tolerance}
        seen = "; ".join([f"{name}: {result}" for name, result in wrong.items()][:_SHOWN])
        if not wrong:
            compared = sum(result.compared for result in results.values())
            since = sum(result.changed_since for result in results.values())
            seen = f"{compared} rows of {len(results)} tables agree, {since} changed since"
        return CheckResult("source_equals", not wrong, seen, f"at most {self.tolerance} rows differ", list(wrong))

    def _compare(
        self, tables: CheckedTables, state: TableState, schema: TableSchema, stored: Mapping[str, str]
    ) -> SampleComparison:
        """Compare the columns that a table has as the source has them.

        :param schema: those columns.
        :param stored: their names in the table.
        """
        key = [column.name for column in schema.key_columns]
        columns = [column.name for column in schema.columns]
        absent = [name for name in (*self.columns, *filter(None, [self.changed_column])) if name not in columns]
        if absent:
            raise ConfigurationError([f"SourceEquals: {_name(state)} has no column {', '.join(absent)}"])
        compared = [name for name in self.columns or columns if name not in key]
        changed = [] if self.changed_column is None or self.changed_column in compared else [self.changed_column]
        with tables.version_of(state) as table:
            names = [*key, *compared]
            condition = tables.mode_of(state).of_source
            rows = sample_rows(table, [stored[name] for name in names], self.sample, state.applied_seq, condition)
            mine = [{name: row[stored[name]] for name in names} for row in rows]
            newest = None if self.changed_column is None else newest_value(table, stored[self.changed_column])
        keys = [tuple(row[name] for name in key) for row in mine]
        with tables.source_of(state, "SourceEquals") as (source, name):
            theirs = source_rows(source, name, key, [*compared, *changed], keys)
        json_columns = {column.name for column in schema.columns if column.type.name == "json"}
        return compare(mine, theirs, key, compared, json_columns, self.changed_column, newest)


def _name(state: TableState) -> str:
    return f"{state.database}.{state.table}"
