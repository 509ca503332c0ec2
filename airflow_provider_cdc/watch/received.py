# SPDX-License-Identifier: Apache-2.0
"""Condition: everything that the source committed before a time is in Kafka."""

from __future__ import annotations

from datetime import UTC, datetime

from airflow_provider_cdc.batch.planner import observe
from airflow_provider_cdc.batch.source_log import SourceLog
from airflow_provider_cdc.core.config import CdcPipeline
from airflow_provider_cdc.core.plan.lag import iso_time
from airflow_provider_cdc.core.plan.progress import PartitionFacts, received
from airflow_provider_cdc.observability.metrics import Metric, send
from airflow_provider_cdc.watch.condition import Answer, Condition, name_some

Facts = tuple[list[PartitionFacts], list[PartitionFacts]]


class ReceivedCondition(Condition[None, Facts]):
    """Everything that the source committed before a time is in Kafka.

    :param until: the time, ISO text with a zone.
    """

    reads_log = True

    def __init__(self, pipeline: CdcPipeline, until: str) -> None:
        super().__init__(pipeline)
        self.until = datetime.fromisoformat(until).astimezone(UTC)

    def seen(self, log: SourceLog, stored: None) -> Facts:
        """Read the ends of the pipeline's partitions, and send how old what they prove is."""
        facts = observe(self.pipeline, log)
        proved = received(0, *facts).progress_ms
        if proved is not None:
            age = datetime.now(UTC).timestamp() - proved / 1000
            send(self.pipeline, [Metric("gauge", "cdc.received.age_seconds", age)])
        return facts

    def judge(self, stored: None, seen: Facts | None) -> Answer:
        """Return whether all partitions reach the time."""
        assert seen is not None
        state = received(int(self.until.timestamp() * 1000), *seen)
        progress, text = iso_time(state.progress_ms), self.until.isoformat()
        names = tuple(f"{hold.topic}/{hold.partition}" for hold in state.holds)
        document = {"until": text, "received": progress, "holds": list(names)}
        if state.reached:
            return Answer(True, f"everything before {text} is in Kafka; received up to {progress}", document)
        behind = [
            f"{name} (known up to {iso_time(hold.progress_ms) or 'nothing'}: {hold.why})"
            for name, hold in zip(names, state.holds, strict=True)
        ]
        message = f"not everything before {text} is in Kafka; held back by {name_some(behind)}"
        return Answer(False, message, document, names)
