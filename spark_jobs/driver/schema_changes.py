# SPDX-License-Identifier: Apache-2.0
"""Find the schema changes of a batch: those read that are due, and those that only its rows show."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from airflow_provider_cdc.core.documents import JobDocument
from airflow_provider_cdc.core.faults import summary
from airflow_provider_cdc.core.formats.registry import open_format
from airflow_provider_cdc.core.model.schema import TableName
from airflow_provider_cdc.core.plan.progress import SLACK_MS
from airflow_provider_cdc.core.timeline.timeline import SchemaChange
from spark_jobs.lake.manifest import LandReport


def due(job: JobDocument, changes: Sequence[dict[str, Any]]) -> tuple[list[SchemaChange], list[dict[str, Any]]]:
    """Split schema changes into those of this batch and those that the source made after its time.

    The schema topic is read to its present end, so that no row waits for its DDL; a past hour that is caught up on must
    all the same give the tables of that hour.
    """
    time = job.cut_at or job.until
    if time is None:
        return [SchemaChange.from_document(item) for item in changes], []
    # rows of so much after that time may be in the batch
    end = datetime.fromisoformat(time).timestamp() * 1_000_000 + SLACK_MS * 1_000
    due = [item for item in changes if item["time"] is None or item["time"] < end]
    return [SchemaChange.from_document(item) for item in due], [item for item in changes if item not in due]


def observed(job: JobDocument, landed: LandReport) -> tuple[list[SchemaChange], dict[TableName, str]]:
    """Return structures that the rows themselves describe, where nothing else states them.

    Where DDL comes among the rows, rows only describe tables that are older than the log: each change of a table then
    comes as a statement, and a row that does not fit waits for it.

    :return: the structures, and by table why what its rows say of their columns cannot be read.
    """
    if job.schema_topic is not None:
        return [], {}
    wire = open_format(job.format, job.format_options)
    without_ddl = "full_snapshots" in wire.carries
    changes: list[SchemaChange] = []
    unclear: dict[TableName, str] = {}
    for number, item in enumerate(
        sorted(landed.descriptions, key=lambda d: (d["position"], d["database"], d["table"]))
    ):
        try:
            description = wire.describe(item["columns"])
            schema = wire.infer(description)
        except Exception as error:
            reason = "[schema.fault] what a row says of its columns cannot be read"
            unclear[TableName(item["database"], item["table"])] = (
                f"{reason} ({summary(error)}) -> please report this; state tables.<name>.create to go on"
            )
            continue
        if schema is not None:
            structure = ((item["database"], item["table"], schema),)
            change = SchemaChange(
                item["position"],
                number,
                item["database"],
                "",
                structure,
                time=item.get("time"),
                fallback=wire.ddl_among_rows,
                chosen_key=wire.chosen_keys,
                keyless=without_ddl and description.key is None,
                rows=("read" if item.get("read") else "streamed") if without_ddl else "",
            )
            changes.append(change)
            # a name may be free, or another table's, at the last row and not at the first. Where only rows show what
            # changed, another partition may have other columns in between.
            if (wire.ddl_among_rows or without_ddl) and item.get("last", "") > item["position"]:
                changes.append(replace(change, position=item["last"]))
    return sorted(changes, key=lambda change: change.position), unclear
