# SPDX-License-Identifier: Apache-2.0
"""Return whether the tables in the lake equal the database's own content at a moment."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from airflow_provider_cdc.core.model.status import TableStatus
from airflow_provider_cdc.demo.truth import differing, load

if TYPE_CHECKING:
    import pyarrow as pa

    from airflow_provider_cdc.core.documents import TableState


@dataclass(frozen=True)
class Verdict:
    """Report what a comparison found.

    :param problems: by ``database.table``, what differs, in words; empty where a table is equal.
    """

    rows: int
    problems: dict[str, list[str]]

    @property
    def equal(self) -> int:
        """Number of tables that equal the database's."""
        return sum(not result for result in self.problems.values())

    @property
    def complete(self) -> bool:
        """Return whether all do."""
        return self.equal == len(self.problems)


def compare(rows_of: Callable[[str, str], pa.Table | None], truth: Path, states: Iterable[TableState]) -> Verdict:
    """Compare the lake with the database's own content.

    :param rows_of: returns the rows of the table of a database and name, None where there is no such table.
    :param truth: a ``source_at`` file.
    :param states: tables as the ledger knows them; one the database does not have must be marked dropped.
    """
    problems: dict[str, list[str]] = {}
    rows = 0
    for source in load(truth):
        rows += len(source.rows)
        stored = rows_of(source.database, source.table)
        result = ["there is no such table in the lake"] if stored is None else differing(source, stored)
        problems[f"{source.database}.{source.table}"] = result
    for state in states:
        name = f"{state.database}.{state.table}"
        if state.state != TableStatus.DROPPED and name not in problems:
            problems[name] = ["the database has no such table"]
        elif state.state not in (TableStatus.OK, TableStatus.DROPPED):
            problems[name] = [f"is {state.state}: {state.reason}", *problems[name]]
    return Verdict(rows, problems)
