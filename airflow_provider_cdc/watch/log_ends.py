# SPDX-License-Identifier: Apache-2.0
"""Read where the topics of a pipeline end and what of them is applied."""

from __future__ import annotations

from collections.abc import Hashable
from typing import TYPE_CHECKING

from airflow_provider_cdc.batch.planner import data_topics
from airflow_provider_cdc.batch.source_log import SourceLog
from airflow_provider_cdc.core.model.offsets import Offsets
from airflow_provider_cdc.watch.bells import LogEnds
from airflow_provider_cdc.watch.condition import Answer, Condition
from airflow_provider_cdc.watch.lag import Applied, applied_offsets

if TYPE_CHECKING:
    from airflow_provider_cdc.ledger import Ledger


class LogEndsCondition(Condition[Applied, LogEnds]):
    """Every record in Kafka is applied; reads only offsets, no records."""

    reads_ledger = True
    reads_log = True

    def stored(self, ledger: Ledger) -> Applied:
        """Read what is applied."""
        return applied_offsets(ledger, self.pipeline.name)

    def seen(self, log: SourceLog, stored: Applied | None) -> LogEnds:
        """Read the ends of the topics that carry rows or schema changes."""
        assert stored is not None
        log.collect()
        topics = data_topics(self.pipeline, log)
        if self.pipeline.source.schema_topic:
            topics.append(self.pipeline.source.schema_topic)
        marks = log.ends(topics)
        return LogEnds(marks.highs, _from_lows(stored.offsets, marks.lows))

    def log_key(self, stored: Applied | None) -> Hashable:
        """Return what decides the ends."""
        return "ends", self.pipeline.name, stored and stored.seq, super().log_key(stored)

    def judge(self, stored: Applied | None, seen: LogEnds | None) -> Answer:
        """Return whether nothing is left to apply."""
        assert seen is not None
        return Answer(seen.ends == seen.applied, "every record in Kafka is applied")


def _from_lows(applied: Offsets, lows: Offsets) -> Offsets:
    return {
        topic: {partition: max(low, applied.get(topic, {}).get(partition, 0)) for partition, low in partitions.items()}
        for topic, partitions in lows.items()
    }
