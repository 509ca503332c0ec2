# SPDX-License-Identifier: Apache-2.0
"""Ask a Debezium connector for an incremental snapshot of tables, with a signal through Kafka.

Debezium's documentation, "Sending signals to a Debezium connector": the key of the record is the connector's
``topic.prefix``; ``data-collections`` are regular expressions (Java's) that match whole names.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from airflow_provider_cdc.batch.result import table_states
from airflow_provider_cdc.connections.lookup import ledger_url
from airflow_provider_cdc.core.config import CdcPipeline, KafkaSource
from airflow_provider_cdc.core.errors import ConfigurationError, SourceError
from airflow_provider_cdc.core.formats.contract import NamesTopics
from airflow_provider_cdc.core.formats.registry import open_format
from airflow_provider_cdc.core.model.status import TableStatus
from airflow_provider_cdc.ledger import Ledger

_TIMEOUT = 30.0
_SNAPSHOTS = "ad_hoc_snapshots"
_SLACK = timedelta(seconds=5)  # by which the clocks of this machine and of the source may differ


@dataclass(frozen=True)
class SnapshotSignal:
    """A signal that was sent.

    :param since: time to state where tables are rebuilt from the snapshot, shortly before the signal.
    """

    pipeline: str
    tables: tuple[str, ...]
    topic: str
    since: datetime

    def document(self) -> dict[str, Any]:
        """Return plain JSON data."""
        since = self.since.isoformat(timespec="milliseconds")
        return {"pipeline": self.pipeline, "tables": list(self.tables), "topic": self.topic, "since": since}


def signal_snapshot(pipeline: CdcPipeline, tables: Sequence[str]) -> SnapshotSignal:
    """Send the signal, and return when Kafka has it; the connector carries it out when it reads it.

    :param tables: ``database.table`` of each.
    :raises ConfigurationError: the pipeline has no signal topic, or no such table.
    :raises SourceError: the topic does not exist, or refuses the record.
    :raises UnavailableError: Kafka does not answer.
    """
    from airflow_provider_cdc.batch.orders import demand_tables
    from airflow_provider_cdc.sources.kafka_log import KafkaLog
    from airflow_provider_cdc.sources.kafka_writer import KafkaWriter

    topic, prefix = address_of(pipeline)
    states = table_states(Ledger(ledger_url(pipeline.ledger)), pipeline.name).values()
    demand_tables(tables, [state for state in states if state.state != TableStatus.DROPPED])
    assert isinstance(pipeline.source, KafkaSource)
    connection = pipeline.source.connection
    if topic not in KafkaLog(connection).topics():
        raise SourceError(
            "kafka.topic_unknown", "the signal topic does not exist", where={"topic": topic, "connection": connection},
            hint="create it with one partition, and name it in signal.kafka.topic of the connector",
        )  # fmt: skip
    since = datetime.now(UTC) - _SLACK
    writer = KafkaWriter(topic, connection, _TIMEOUT, "check the brokers, then run again; two signals do no harm")
    writer.write([snapshot_record(prefix, tables)])
    return SnapshotSignal(pipeline.name, tuple(tables), topic, since)


def snapshot_record(prefix: str, tables: Sequence[str]) -> tuple[bytes, bytes]:
    """Return key and value of the signal.

    :param prefix: the connector's ``topic.prefix``.
    """
    data = {"data-collections": [re.escape(table) for table in tables], "type": "INCREMENTAL"}
    return prefix.encode(), json.dumps({"type": "execute-snapshot", "data": data}).encode()


def address_of(pipeline: CdcPipeline) -> tuple[str, str]:
    """Return the topic of a pipeline's signals, and the ``topic.prefix`` of the connector that they are for.

    :raises ConfigurationError: the pipeline does not say them.
    """
    source = pipeline.source
    wire = open_format(source.format, source.options)
    if not isinstance(source, KafkaSource) or not isinstance(wire, NamesTopics) or _SNAPSHOTS not in wire.carries:
        raise ConfigurationError([f"source.format: {source.format} has no ad hoc snapshots that a signal could start"])
    prefix, named = wire.topic_prefix(source.schema_topic), source.schema_topic
    if source.signal_topic is not None and prefix is not None:
        return source.signal_topic, prefix
    problems = []
    if source.signal_topic is None:
        problems.append("source.signal_topic: name the topic that the connector has as signal.kafka.topic")
    if prefix is None:
        subject = "its name says" if named is None else f"{named!r} does not say"
        problems.append(f"source.schema_topic: {subject} the connector's topic.prefix, which a signal is addressed to")
    raise ConfigurationError(problems)
