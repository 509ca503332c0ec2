# SPDX-License-Identifier: Apache-2.0
"""Check a pipeline's tables after a batch: row counts against the source, age, parked tables."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import cached_property
from typing import Any

from airflow_provider_cdc.core.config import CdcPipeline
from airflow_provider_cdc.core.documents import TableState
from airflow_provider_cdc.core.errors import ConfigurationError, UnavailableError
from airflow_provider_cdc.core.model.status import TableStatus

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_SHOWN = 50


@dataclass(frozen=True)
class CheckResult:
    """Result of one check.

    :param seen: what was seen, ``expected`` what should have been; never a value of a row.
    :param tables: tables that do not pass.
    """

    check: str
    passed: bool
    seen: str
    expected: str
    tables: list[str] = field(default_factory=list)

    def document(self) -> dict[str, Any]:
        """Return plain JSON data."""
        return {
            "check": self.check,
            "passed": self.passed,
            "seen": self.seen,
            "expected": self.expected,
            "tables": self.tables[:_SHOWN],
            "tables_total": len(self.tables),
        }

    def __str__(self) -> str:
        return f"{self.check}: {self.seen}, expected {self.expected}"


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
    def _storage(self) -> dict[str, str] | None:
        from airflow_provider_cdc.hooks.connections import storage_options

        sink = self.pipeline.sink
        return {**storage_options(sink.storage_connection), **sink.storage_options} or None

    def rows_of(self, state: TableState) -> int:
        """Return the number of rows that a table has in its version of the last batch.

        :raises UnavailableError: it cannot be read.
        """
        from deltalake import DeltaTable
        from deltalake.exceptions import DeltaError

        try:
            table = DeltaTable(state.location, version=state.version, storage_options=self._storage)
            return int(table.count())
        except (DeltaError, OSError) as error:
            where = {"table": f"{state.database}.{state.table}", "version": state.version}
            raise UnavailableError(
                "check.table_unreadable", f"the table cannot be read: {type(error).__name__}", where=where,
                hint="check the location of the table; then run again",
            ) from None  # fmt: skip

    def rows_at_source(self, state: TableState) -> int:
        """Return the number of rows that a table has at the source now.

        :raises ConfigurationError: there is no connection to the source.
        :raises UnavailableError: the source does not answer.
        """
        if self.source is None:
            raise ConfigurationError(["source_conn_id: RowCount compares with the source and needs its connection"])
        mark = "`" if getattr(self.source, "conn_type", "") == "mysql" else '"'
        name = ".".join(_quoted(part, mark) for part in (state.database, state.table))
        try:
            return int(self.source.get_first(f"SELECT count(*) FROM {name}")[0])
        except Exception as error:  # each driver has its own errors, whose texts may hold the connection
            raise UnavailableError(
                "check.source_unreadable", f"the source does not count its rows: {type(error).__name__}",
                where={"table": f"{state.database}.{state.table}"},
                hint="check source_conn_id, and that its user may read the table; then run again",
            ) from None  # fmt: skip


def _quoted(name: str, mark: str) -> str:
    return f"{mark}{name.replace(mark, mark * 2)}{mark}"


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

    :param tolerance: rows by which the numbers of a table may differ.
    """

    tolerance: int = 0

    def run(self, tables: CheckedTables) -> CheckResult:
        """Return whether it holds."""
        different = {}
        counted = [state for state in tables.states if state.version is not None]
        for state in counted:
            here, there = tables.rows_of(state), tables.rows_at_source(state)
            if abs(here - there) > self.tolerance:
                different[_name(state)] = f"{_name(state)}: {here} rows, {there} at the source"
        seen = "; ".join(list(different.values())[:_SHOWN]) or f"{len(counted)} tables agree"
        return CheckResult("row_count", not different, seen, f"at most {self.tolerance} apart", list(different))


def _name(state: TableState) -> str:
    return f"{state.database}.{state.table}"
