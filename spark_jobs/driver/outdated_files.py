# SPDX-License-Identifier: Apache-2.0
"""Refuse to go on from an operator's files where something from before their time came only since."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from airflow_provider_cdc.core.documents import TableState
from airflow_provider_cdc.core.errors import DataError
from airflow_provider_cdc.core.timeline.timeline import TableTimeline
from spark_jobs.driver.batch_history import History
from spark_jobs.driver.source_times import is_dated_before
from spark_jobs.tasks.table_task import Span


def demand_in_files(timeline: TableTimeline, files: TableState, spans: list[Span], history: History) -> None:
    """Demand that the rows before an operator's files are from before their time: those are in the files.

    :param files: state of the files.
    :raises DataError: ``rebuild.files_outdated``.
    """
    begin, since = files.applied_position, (files.provided or {})["since"]
    for span in spans:
        for group in span.groups:
            oldest = max(group.min_position, span.start)
            in_time = group.max_source_time is not None and is_dated_before(group.max_source_time, since)
            if oldest >= begin or in_time:
                continue
            rows = history.rows([group], ["position", "source_time"])
            rows = rows.filter(
                pc.and_(pc.greater_equal(rows.column("position"), span.start), pc.less(rows.column("position"), begin))
            )
            times = rows.column("source_time").cast(pa.int64()).to_pylist()
            if any(time is None or not is_dated_before(time, since) for time in times):
                raise outdated(timeline, files, "rows that the table was rebuilt without")


def demand_same_changes(timeline: TableTimeline, files: TableState) -> None:
    """Refuse to start from an operator's files where a schema change from before them came since.

    :param files: state of the files.
    :raises DataError: ``rebuild.files_outdated``.
    """
    if timeline.mark(files.applied_position) != files.timeline_mark:
        raise outdated(timeline, files, "a schema change")


def outdated(timeline: TableTimeline, files: TableState, what: str) -> DataError:
    """Return why a table cannot start from an operator's files: something came after they were taken over.

    :param files: state of the files.
    :param what: what came, a noun.
    """
    return DataError(
        "rebuild.files_outdated",
        f"{what} from before the position of the files that the table was rebuilt from came only after that",
        where={"table": str(timeline.last_name), "position": files.applied_position},
        hint="rebuild the table again from newer files, or from a snapshot",
    )
