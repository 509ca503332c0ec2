# SPDX-License-Identifier: Apache-2.0
"""Keep tables from being made of changes that batches read in another format, or without values that they need."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase
from typing import Any

from airflow_provider_cdc.core.apply.stored_layout import LayoutChange
from airflow_provider_cdc.core.config.option_kinds import OptionKind
from airflow_provider_cdc.core.documents import JobDocument
from airflow_provider_cdc.core.errors import DataError
from airflow_provider_cdc.core.timeline.timeline import TableTimeline
from spark_jobs.lake.layout import batch_of
from spark_jobs.tasks.table_task import Span

Formats = list[list[Any]]  # number of a batch, and the format of it and those after it; ascending


def formats_after(formats: Formats, job: JobDocument) -> Formats:
    """Return the formats of all batches with that of a job."""
    return formats if formats and formats[-1][1] == job.format else [*formats, [job.seq, job.format]]


def demand_values(timeline: TableTimeline, spans: Sequence[Span]) -> None:
    """Refuse changes whose values a rule kept out of the change log, of columns that are to have them now.

    :raises DataError: ``apply.values_unlogged``.
    """
    for group in (group for span in spans for group in span.groups if group.unlogged):
        versions = timeline.versions[timeline.version_at(group.min_position) :]
        names = {column.name for version in versions for column in version.schema.columns_in_rows}
        lacking = sorted(
            name for name in names if any(fnmatchcase(name.lower(), one.lower()) for one in group.unlogged)
        )
        if lacking:
            table = str(timeline.last_name)
            raise DataError(
                "apply.values_unlogged",
                f"the change log has no values of {', '.join(lacking)} in batch {batch_of(group.file)}: "
                "columns.unlogged kept them out",
                where={"table": table},
                hint="state columns.unlogged again; or take a snapshot, and "
                f"`airflow-cdc rebuild PIPELINE.yaml {table} --from snapshot`",
            )


def demand_one_format(job: JobDocument, formats: Formats, spans: Iterable[Span], table: str) -> None:
    """Refuse a table whose changes were read in another format than that of now.

    :raises DataError: ``apply.made_otherwise``.
    """
    if all(name == job.format for _, name in formats):
        return
    for span in spans:
        for group in span.groups:
            was = _format_of(formats, batch_of(group.file), job.format)
            if was != job.format:
                raise LayoutChange(OptionKind.LOG, "source.format", was, job.format).error(table)


def _format_of(formats: Sequence[Sequence[Any]], seq: int, otherwise: str) -> str:
    names = [name for first, name in formats if first <= seq]
    return str(names[-1]) if names else otherwise
