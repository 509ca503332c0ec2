# SPDX-License-Identifier: Apache-2.0
"""Choose the engine that runs a batch."""

from __future__ import annotations

from airflow_provider_cdc.connections.lookup import spark_target
from airflow_provider_cdc.core.config import CdcPipeline

INLINE_RECORDS = 900_000  # up to so many one process ends sooner than a local application of Spark (design/performance)


def engine_of(pipeline: CdcPipeline, records: int, *, reads_log: bool = False) -> str:
    """Return ``inline``, ``spark`` or the platform that runs Spark, as ``policy.engine`` and ``spark.submit`` say.

    :param records: offsets in the batch's range.
    :param reads_log: whether the batch reads the change log of earlier batches too, so that its size is not known.
    """
    policy = pipeline.policy
    if pipeline.spark.elsewhere and policy.engine != "inline":
        return pipeline.spark.submit
    if policy.engine != "auto":
        return policy.engine
    writers = {policy.writer, *(rule.writer for rule in pipeline.tables.tables.values())}
    if reads_log or records > INLINE_RECORDS or "spark" in {policy.reader, *writers}:
        return "spark"
    master = spark_target(pipeline.spark.connection).master
    return "inline" if master == "local" or master.startswith("local[") else "spark"
