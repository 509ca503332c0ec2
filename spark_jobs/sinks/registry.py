# SPDX-License-Identifier: Apache-2.0
"""Open the sink of a job."""

from __future__ import annotations

import importlib
from collections.abc import Mapping

from airflow_provider_cdc.core.config.sink_kinds import SINKS
from airflow_provider_cdc.core.documents import JobDocument
from spark_jobs.sinks.contract import Sink, Stored


def open_sink(job: JobDocument, options: Mapping[str, str]) -> Sink[Stored]:
    """Return the sink of a job's tables.

    :param options: of the object store, secrets included (``Storage.options``).
    """
    kind = importlib.import_module(SINKS[job.sink_type].writer)
    sink: Sink[Stored] = kind.open_sink(options)
    return sink
