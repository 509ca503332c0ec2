# SPDX-License-Identifier: Apache-2.0
"""Open the sink of a job."""

from __future__ import annotations

import importlib

from airflow_provider_cdc.core.config.sinks.kinds import SINKS
from airflow_provider_cdc.core.documents import JobDocument
from spark_jobs.lake.scratch import storage_options
from spark_jobs.sinks.contract import Sink, Stored


def open_sink(job: JobDocument, secrets: dict[str, dict[str, str]]) -> Sink[Stored]:
    """Return the sink of a job's tables."""
    options = storage_options(job, secrets)
    if job.sink_options is not None:
        options = {**job.sink_options, **secrets.get("sink", {})}
    return _opened(job.sink_type, options)


def open_own_tables(options: dict[str, str]) -> Sink[Stored]:
    """Return the sink of tables that are files by path: those kept in the lake, and those that an operator provides.

    :param options: of their object store, secrets included (``Storage.options``).
    """
    return _opened("delta", options)


def _opened(kind: str, options: dict[str, str]) -> Sink[Stored]:
    sink: Sink[Stored] = importlib.import_module(SINKS[kind].writer).open_sink(options)
    return sink
