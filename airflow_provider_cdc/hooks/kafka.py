# SPDX-License-Identifier: Apache-2.0
"""Offer ``KafkaLog`` as an Airflow hook; ``kafka_log`` itself works without Airflow."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

from airflow.providers.common.compat.sdk import BaseHook

from airflow_provider_cdc.sources.kafka_log import KafkaLog, KafkaRecord, TopicPartition, Watermarks

if TYPE_CHECKING:
    from airflow_provider_cdc.core.config import CdcPipeline
    from airflow_provider_cdc.core.plan.lag import Lag
    from airflow_provider_cdc.watch.condition import Answer


class KafkaProgressHook(KafkaLog, BaseHook):
    """Read a Kafka cluster without joining a group or committing anything.

    :param kafka_conn_id: Airflow connection of type ``cdc_kafka`` or ``kafka``; its extra holds librdkafka keys.
    :param timeout: seconds one request to the cluster may take.
    """

    conn_name_attr = "kafka_conn_id"
    default_conn_name = "kafka_default"
    conn_type = "cdc_kafka"
    hook_name = "Apache Kafka (CDC)"

    def __init__(self, kafka_conn_id: str = default_conn_name, *, timeout: float = 15.0) -> None:
        BaseHook.__init__(self)
        KafkaLog.__init__(self, kafka_conn_id, timeout=timeout)

    def lag(self, pipeline: CdcPipeline) -> Lag:
        """Return how far the tables of a pipeline are behind the source now, with this connection."""
        from airflow_provider_cdc.connections.lookup import ledger_url
        from airflow_provider_cdc.ledger import Ledger
        from airflow_provider_cdc.watch.lag import applied_offsets, observe_lag

        return observe_lag(pipeline, self, applied_offsets(Ledger(ledger_url(pipeline.ledger)), pipeline.name))

    def received(self, pipeline: CdcPipeline, until: datetime) -> Answer:
        """Return whether everything that the source committed before a time is in Kafka, and what holds it back."""
        from airflow_provider_cdc.watch.received import ReceivedCondition

        condition = ReceivedCondition(pipeline, until.isoformat())
        return condition.judge(None, condition.seen(self, None))

    def test_connection(self) -> tuple[bool, str]:
        """Return for the connection form what ``doctor`` finds of the cluster and the login."""
        from airflow_provider_cdc.batch.findings import verdict
        from airflow_provider_cdc.batch.source_kinds.kafka import connection_findings

        return verdict(connection_findings(self))


__all__ = ["KafkaProgressHook", "KafkaRecord", "TopicPartition", "Watermarks"]
