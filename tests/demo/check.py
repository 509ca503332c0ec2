# SPDX-License-Identifier: Apache-2.0
"""Return whether the tables in the lake equal the database's own content at a moment."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from airflow_provider_cdc.core.lake.roots import located
from spark_jobs.lake.storage import table_place
from spark_jobs.sinks.contract import Sink, Stored
from spark_jobs.sinks.delta.sink import open_sink
from tests.captures.truth import differing, load


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


def compare(
    root: Path,
    truth: Path,
    states: Iterable[Mapping[str, Any]],
    sink: Sink[Stored] | None = None,
    path: Callable[[str, str], str] = table_place,
) -> Verdict:
    """Compare the lake with the database's own content.

    :param root: of the lake.
    :param truth: a ``source_at`` file.
    :param sink: opens the tables, None for Delta's.
    :param path: returns where the table of a database and name lies below the root.
    :param states: tables as the ledger knows them; one the database does not have must be marked dropped.
    """
    problems: dict[str, list[str]] = {}
    rows = 0
    for source in load(truth):
        rows += len(source.rows)
        stored = (sink or open_sink({})).open(located(str(root), path(source.database, source.table)))
        result = differing(source, stored.rows()) if stored.exists else ["there is no such table in the lake"]
        problems[f"{source.database}.{source.table}"] = result
    for state in states:
        name = f"{state['database']}.{state['table']}"
        if state["state"] != "dropped" and name not in problems:
            problems[name] = ["the database has no such table"]
        elif state["state"] not in ("ok", "dropped"):
            problems[name] = [f"is {state['state']}: {state['reason']}", *problems[name]]
    return Verdict(rows, problems)
