# SPDX-License-Identifier: Apache-2.0
"""Send metrics to the backend that Airflow is configured with (``[metrics]``: StatsD or OpenTelemetry)."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Literal

from airflow_provider_cdc.core.errors import CdcError
from airflow_provider_cdc.core.model.status import ResultStatus
from airflow_provider_cdc.core.printable import printable

if TYPE_CHECKING:
    from airflow_provider_cdc.batch.result import BatchResult
    from airflow_provider_cdc.core.config import CdcPipeline
    from airflow_provider_cdc.core.plan.lag import Lag

_OUTCOMES = {
    ResultStatus.DONE: "done",
    ResultStatus.EMPTY: "empty",
    ResultStatus.NOTHING_TO_DO: "empty",
    ResultStatus.PARKED: "parked",
    ResultStatus.WAITING: "waiting",
}
_OF_ERRORS = {"ledger.busy": "cdc.lease.busy", "kafka.unavailable": "cdc.kafka.unavailable"}


@dataclass(frozen=True)
class Metric:
    """One value of a metric.

    :param kind: a gauge is set, a counter is increased, a timer takes seconds.
    :param table: ``database.table`` that the value is of; empty for the whole pipeline.
    """

    kind: Literal["gauge", "counter", "timer"]
    name: str
    value: float
    table: str = ""


def lag_metrics(lag: Lag) -> list[Metric]:
    """Return the metrics of a look at a pipeline's lag; a value that is unknown is left out."""
    values = {
        "cdc.lag.seconds": lag.seconds,
        "cdc.lag.records": lag.records,
        "cdc.received.age_seconds": lag.received_seconds,
    }
    return [Metric("gauge", name, value) for name, value in values.items() if value is not None]


def batch_metrics(result: BatchResult, *, of_tables: bool = False) -> list[Metric]:
    """Return the metrics of a batch; of one that was done before only that it was repeated.

    :param of_tables: whether the numbers of applied rows are those of each table instead of their sums.
    """
    if result.repeated:
        return [Metric("counter", "cdc.batch.repeated", 1), *_catalog_metrics(result)]
    if result.error is not None or result.status not in _OUTCOMES:
        return [Metric("counter", "cdc.batch.failed", 1)]
    counts = {
        f"cdc.batch.{_OUTCOMES[result.status]}": 1,
        "cdc.records": result.records,
        "cdc.quarantined": result.quarantined,
        "cdc.applied.upserts": 0 if of_tables else sum(table.upserts for table in result.tables),
        "cdc.applied.deletes": 0 if of_tables else sum(table.deletes for table in result.tables),
        "cdc.added.bytes": result.added_bytes or 0,
        "cdc.ddl.applied": result.schema_changes,
        **{f"cdc.contradictions.{kind}": count for kind, count in _contradictions(result).items()},
        **{f"cdc.lossy.{kind}": count for kind, count in (result.lossy or {}).items()},
    }
    metrics = [Metric("counter", name, count) for name, count in counts.items() if count]
    metrics += (_table_metrics(result) if of_tables else []) + _catalog_metrics(result)
    if result.parked is not None:
        metrics.append(Metric("gauge", "cdc.tables.parked", len(result.parked)))
        metrics.append(Metric("gauge", "cdc.tables.waiting", len(result.waiting or ())))
    metrics.append(Metric("timer", "cdc.batch.duration", result.seconds))
    if result.cpu_seconds is not None:
        metrics.append(Metric("timer", "cdc.batch.cpu", result.cpu_seconds))
    phases = sorted((result.phases or {}).items())
    return metrics + [Metric("timer", f"cdc.phase.{name}", seconds) for name, seconds in phases]


def _contradictions(result: BatchResult) -> Counter[str]:
    """Return by kind the changes of all tables that did not find what the log says."""
    counts = Counter[str]()
    for table in result.tables:
        counts.update(table.contradictions)
    return counts


def _catalog_metrics(result: BatchResult) -> list[Metric]:
    """Return the number of things that a catalog did not do."""
    return [Metric("counter", "cdc.catalog.warnings", len(result.warnings))] if result.warnings else []


def _table_metrics(result: BatchResult) -> list[Metric]:
    """Return the numbers of applied rows of each table."""
    counts = [
        Metric("counter", f"cdc.applied.{what}", count, table.name)
        for table in result.tables
        for what, count in (("upserts", table.upserts), ("deletes", table.deletes))
    ]
    return [metric for metric in counts if metric.value]


def quarantine_metrics(records: int) -> list[Metric]:
    """Return the metric of a pipeline's quarantine.

    :param records: number of records in it that wait for a decision.
    """
    return [Metric("gauge", "cdc.quarantine.open", records)]


def error_metrics(error: CdcError) -> list[Metric]:
    """Return the metrics of an error that ended a look or a request."""
    return [Metric("counter", _OF_ERRORS[error.code], 1)] if error.code in _OF_ERRORS else []


@contextmanager
def failure_sent(pipeline: CdcPipeline) -> Iterator[None]:
    """Send the metrics of a request that fails before it has a result."""
    try:
        yield
    except CdcError as error:
        send(pipeline, [Metric("counter", "cdc.batch.failed", 1), *error_metrics(error)])
        raise


def send(pipeline: CdcPipeline, metrics: Iterable[Metric]) -> None:
    """Send metrics with the tags ``pipeline``, ``format``, ``engine`` and ``table``; do nothing outside of Airflow."""
    if "airflow.sdk" not in sys.modules:
        return
    from airflow.providers.common.compat.sdk import Stats

    common = {"pipeline": pipeline.name, "format": pipeline.source.format, "engine": pipeline.policy.engine}
    for metric in metrics:
        tags = {**common, "table": printable(metric.table)} if metric.table else common
        if metric.kind == "gauge":
            Stats.gauge(metric.name, metric.value, tags=tags)
        elif metric.kind == "counter":
            Stats.incr(metric.name, int(metric.value), tags=tags)
        else:
            Stats.timing(metric.name, timedelta(seconds=metric.value), tags=tags)
