# SPDX-License-Identifier: Apache-2.0
"""Look whether a log has the topics that a pipeline names."""

from __future__ import annotations

from airflow_provider_cdc.batch.source_log import SourceLog
from airflow_provider_cdc.core.config import CdcPipeline
from airflow_provider_cdc.core.errors import SourceError


def counted(pipeline: CdcPipeline, log: SourceLog) -> str:
    """Return how many topics and offsets there are.

    :raises SourceError: ``kafka.topic_unknown``, or the log cannot be read.
    """
    existing = log.topics()
    topics = pipeline.source.data_topics(list(existing))
    for name in (pipeline.source.schema_topic, *([] if topics else [str(pipeline.source.topics)])):
        if name is not None and (name not in existing or not topics):
            shown = ", ".join(sorted(existing)[:10]) or "none"
            raise SourceError("kafka.topic_unknown", f"no topic {name!r}", hint=f"topics there: {shown}")
    ends = log.ends(topics)
    records = sum(sum(partitions.values()) for partitions in ends.highs.values())
    return f"{len(topics)} data topics, {records} offsets"
