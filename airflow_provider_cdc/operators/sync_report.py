# SPDX-License-Identifier: Apache-2.0
"""Report what came of a sync to others: metrics, lineage, and how far the tables are behind the source now."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from airflow_provider_cdc.connections.settings import metrics_table_tags
from airflow_provider_cdc.core.errors import CdcError
from airflow_provider_cdc.core.printable import printable

if TYPE_CHECKING:
    from airflow_provider_cdc.batch.result import BatchResult
    from airflow_provider_cdc.core.config import CdcPipeline
    from airflow_provider_cdc.ledger import Batch, Ledger
    from airflow_provider_cdc.observability.lineage import BatchLineage


def report_batch(
    pipeline: CdcPipeline, ledger: Ledger, result: BatchResult, batch: Batch | None, log: Any
) -> Callable[[], BatchLineage] | None:
    """Send the batch's metrics and record the lag after it; return what makes its lineage, None where nothing can.

    :param log: the task's logger.
    """
    from airflow_provider_cdc.batch.quarantine import open_records
    from airflow_provider_cdc.batch.source_log import open_log
    from airflow_provider_cdc.observability.lineage import batch_lineage
    from airflow_provider_cdc.observability.metrics import batch_metrics, error_metrics, quarantine_metrics, send
    from airflow_provider_cdc.watch.lag import applied_offsets, observe_lag, report_lag

    send(pipeline, batch_metrics(result, of_tables=metrics_table_tags()))
    if result.error is not None:
        send(pipeline, error_metrics(result.error))
    lineage = None
    try:
        source_log = open_log(pipeline)
        lineage = partial(batch_lineage, pipeline, ledger, source_log.namespace(), result, batch)
        if result.repeated or result.error is not None:
            return lineage
        lag = observe_lag(pipeline, source_log, applied_offsets(ledger, pipeline.name))
        ledger.record_progress(pipeline.name, report_lag(pipeline, lag))
    except CdcError as error:  # the batch is committed all the same
        log.warning("the lag after the batch is not known: %s", printable(str(error)))
    try:
        send(pipeline, quarantine_metrics(open_records(pipeline, ledger)))
    except CdcError as error:
        log.warning("the quarantine after the batch is not known: %s", printable(str(error)))
    return lineage
