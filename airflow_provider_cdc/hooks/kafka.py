# SPDX-License-Identifier: Apache-2.0
"""Offer ``KafkaLog`` as an Airflow hook; ``kafka_log`` itself works without Airflow."""

from __future__ import annotations

from airflow.sdk import BaseHook

from airflow_provider_cdc.core.errors import CdcError
from airflow_provider_cdc.hooks.kafka_log import KafkaLog, KafkaRecord, TopicPartition, Watermarks


class KafkaProgressHook(KafkaLog, BaseHook):
    """Read a Kafka cluster without joining a group or committing anything.

    :param kafka_conn_id: Airflow connection of type ``kafka``; its extra holds librdkafka keys.
    :param timeout: seconds one request to the cluster may take.
    """

    conn_name_attr = "kafka_conn_id"
    default_conn_name = "kafka_default"
    conn_type = "kafka"
    hook_name = "Apache Kafka (CDC progress)"

    def __init__(self, kafka_conn_id: str = default_conn_name, *, timeout: float = 15.0) -> None:
        BaseHook.__init__(self)
        KafkaLog.__init__(self, kafka_conn_id, timeout=timeout)

    def test_connection(self) -> tuple[bool, str]:
        """Return for the connection form whether the cluster answers."""
        try:
            return True, f"{len(self.topics())} topics"
        except CdcError as error:
            return False, str(error)


__all__ = ["KafkaProgressHook", "KafkaRecord", "TopicPartition", "Watermarks"]
