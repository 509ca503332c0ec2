# SPDX-License-Identifier: Apache-2.0
"""Maintain one table that is ours, next to the batches that run."""

from __future__ import annotations

import pyarrow.compute as pc

from airflow_provider_cdc.core.config.table_layout import TableLayout
from airflow_provider_cdc.core.documents import Maintenance, TableMaintenance, TableState
from airflow_provider_cdc.core.errors import DataError, Transient, UnavailableError
from airflow_provider_cdc.core.faults import may_be_caught
from airflow_provider_cdc.core.lake.roots import located
from airflow_provider_cdc.core.model.schema import TableSchema
from airflow_provider_cdc.core.model.status import TableStatus
from spark_jobs.sinks.commits import Owner
from spark_jobs.sinks.contract import Sink, Stored
from spark_jobs.sinks.ownership import demand_ours, is_left_to_another
from spark_jobs.tasks.expired_rows import remove_expired
from spark_jobs.tasks.parking import as_cdc_error
from spark_jobs.tasks.table_shape import laid_of

_TRIES = 3


def maintain_table(
    sink: Sink[Stored],
    state: TableState,
    maintenance: Maintenance,
    root: str,
    pipeline: str,
    layout: TableLayout | None = None,
    expired: pc.Expression | None = None,
) -> TableMaintenance:
    """Do to a table what is due; doing it again does nothing.

    A batch may commit at the same time: its commit comes first then, and what met it is done again. Errors are
    reported.

    :param root: of the sink.
    :param layout: how the table's files are to lie, None as they do.
    :param expired: is true of rows that are too old, None for no row.
    """
    report, location = TableMaintenance(state.database, state.table), located(root, state.location)
    owner = Owner(f"cdc/{pipeline}/", {state.table_id})
    try:
        key = _key_columns(state)
        for left in reversed(range(_TRIES)):
            try:
                target = sink.open(location)
                if state.state != TableStatus.OK and is_left_to_another(target, owner):
                    if maintenance.purge:
                        raise nothing_to_purge(maintenance.purge)
                    break  # it goes on from older files there
                demand_ours(target, owner)
                if expired is not None:
                    report.expired += remove_expired(sink, target, f"{owner.prefix}{state.table_id}/0", key, expired)
                    target = sink.open(location)
                    target.is_checked = True
                sink.maintain(target, report, maintenance, next(iter(key), None), layout)
                break
            except UnavailableError as error:
                if error.code != "sink.commit_conflict" or not left:
                    raise
    except BaseException as error:
        if not may_be_caught(error):
            raise
        cdc_error = as_cdc_error(error, {"table": f"{state.database}.{state.table}", "location": location})
        report.error, report.transient = cdc_error.document(), isinstance(cdc_error, Transient)
    return report


def nothing_to_purge(table: str) -> DataError:
    """Return the error of a name at whose location no table of it lies."""
    return DataError(
        "maintain.no_table",
        f"{table} is not there, was dropped, or rows of another table are at its location",
        where={"table": table},
        hint="`airflow-cdc tables` shows names and locations; a table that waits has to go on first",
    )


def _key_columns(state: TableState) -> list[str]:
    """Return the names of the columns of the source's key in a table."""
    schema = TableSchema.from_document(state.schema) if state.schema is not None else TableSchema(())
    names = {one.id: one.name for one in laid_of(state).of(schema)}
    return [names[one] for one in schema.key]
