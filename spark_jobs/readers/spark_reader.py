# SPDX-License-Identifier: Apache-2.0
"""Read the same offset ranges through Spark's Kafka source, for brokers that only Java can log in to."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from airflow_provider_cdc.core.documents import JobDocument
from airflow_provider_cdc.core.errors import ConfigurationError, SourceError, UnavailableError
from airflow_provider_cdc.core.formats.contract import Format, Headers, Records, needs_headers
from airflow_provider_cdc.core.formats.registry import open_format
from airflow_provider_cdc.core.kafka_login import MSK_IAM
from airflow_provider_cdc.core.model.offsets import OffsetRange
from spark_jobs.lake.manifest import LandReport

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# librdkafka's name -> the Java client's, where the value means the same
_SAME = {
    "bootstrap.servers": "bootstrap.servers",
    "security.protocol": "security.protocol",
    "sasl.mechanism": "sasl.mechanism",
    "sasl.mechanisms": "sasl.mechanism",
    "client.id": "client.id",
    "ssl.endpoint.identification.algorithm": "ssl.endpoint.identification.algorithm",
}
_LOGIN = {
    "PLAIN": "org.apache.kafka.common.security.plain.PlainLoginModule",
    "SCRAM-SHA-256": "org.apache.kafka.common.security.scram.ScramLoginModule",
    "SCRAM-SHA-512": "org.apache.kafka.common.security.scram.ScramLoginModule",
}


def java_client(config: dict[str, Any]) -> dict[str, str]:
    """Return a librdkafka configuration as the Java client's.

    :raises ConfigurationError: names every key that has no counterpart.
    """
    rest = {key: str(value) for key, value in config.items()}
    java = {_SAME[key]: rest.pop(key) for key in list(rest) if key in _SAME}
    user, password = rest.pop("sasl.username", None), rest.pop("sasl.password", None)
    mechanism = java.get("sasl.mechanism", "")
    if mechanism == MSK_IAM or (user is not None and mechanism not in _LOGIN):
        raise ConfigurationError([f"kafka connection: the Spark reader cannot log in with {mechanism or 'a password'}"])
    if user is not None:
        module = _LOGIN[mechanism]
        java["sasl.jaas.config"] = f"{module} required username={_quoted(user)} password={_quoted(password or '')};"
    if "ssl.ca.location" in rest:
        java.update({"ssl.truststore.type": "PEM", "ssl.truststore.location": rest.pop("ssl.ca.location")})
    tuning = (
        "socket.",
        "fetch.",
        "queued.",
        "request.timeout",
        "session.timeout",
        "reconnect.",
        "retry.",
        "metadata.",
        "broker.",
        "log.",
    )
    unknown = [key for key in rest if not key.startswith(tuning)]
    if unknown:
        raise ConfigurationError(
            [f"kafka connection: {key} has no counterpart for policy.reader: spark" for key in unknown]
        )
    return java


def _quoted(text: str) -> str:
    """Return a value of a JAAS configuration; a line break would end it, and what follows would name a login module."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\r", "\\r")
    return f'"{escaped}"'


Land = Callable[[JobDocument, Iterator[Records], dict[str, dict[str, str]], Format], LandReport]


def read_with_spark(
    session: SparkSession, job: JobDocument, secrets: dict[str, dict[str, str]], land: Land
) -> list[LandReport]:
    """Land a batch through Spark's Kafka source; returns the land reports.

    :param land: decodes records in a task, and writes their rows to the change log (``tasks.land.land``).
    :raises SourceError: Kafka no longer has the range.
    :raises UnavailableError: Spark or the broker failed.
    """
    start, end = _offsets(job.chunks)
    if not start:
        return []
    wire = open_format(job.format, job.format_options)
    stall = str(int(job.policy.land_deadline_seconds) * 1000)
    reader = session.read.format("kafka").options(
        **{f"kafka.{key}": value for key, value in java_client({**job.kafka, **secrets.get("kafka", {})}).items()}
    )
    frame = reader.options(
        **{
            "assign": json.dumps({topic: sorted(int(p) for p in parts) for topic, parts in start.items()}),
            "startingOffsets": json.dumps(start),
            "endingOffsets": json.dumps(end),
            "failOnDataLoss": "true",
            "kafka.isolation.level": "read_committed",
            "kafkaConsumer.pollTimeoutMs": stall,
            "includeHeaders": str(bool(_headers(wire))).lower(),
            **({"minPartitions": str(job.parallelism)} if wire.splits_partitions else {}),
        }
    ).load()
    columns = frame.select("topic", "partition", "offset", "timestamp", "key", "value", *_headers(wire))
    try:
        rows = columns.mapInArrow(_landing(job, secrets, land), "report string").collect()
    except Exception as error:  # Py4J gives no narrower type
        raise _explained(error, job) from None
    return [LandReport.from_document(json.loads(row["report"])) for row in rows]


def _headers(wire: Format) -> list[str]:
    return ["headers"] if needs_headers(wire) else []


def _offsets(chunks: Sequence[OffsetRange]) -> tuple[dict[str, dict[str, int]], dict[str, dict[str, int]]]:
    start: dict[str, dict[str, int]] = {}
    end: dict[str, dict[str, int]] = {}
    for chunk in chunks:
        part = str(chunk.partition)
        first = start.setdefault(chunk.topic, {})
        first[part] = min(first.get(part, chunk.start), chunk.start)
        last = end.setdefault(chunk.topic, {})
        last[part] = max(last.get(part, chunk.end), chunk.end)
    return start, end


def _landing(job: JobDocument, secrets: dict[str, dict[str, str]], land: Land) -> Any:
    def land_part(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        fmt = open_format(job.format, job.format_options)
        needed = {kind: secrets.get(kind, {}) for kind in ("storage", "registry")}
        report = land(job, _records(batches), needed, fmt)
        yield pa.RecordBatch.from_pydict({"report": [json.dumps(report.document())]})

    return land_part


def _records(batches: Iterable[pa.RecordBatch]) -> Iterator[Records]:
    """Cut Arrow batches where topic or partition changes."""
    for batch in batches:
        while batch.num_rows:
            topic, partition = batch.column("topic")[0].as_py(), batch.column("partition")[0].as_py()
            same = pc.and_(pc.equal(batch.column("topic"), topic), pc.equal(batch.column("partition"), partition))
            other = pc.index(same, False).as_py()
            part = batch if other < 0 else batch.slice(0, other)
            batch = batch.slice(part.num_rows)
            times = part.column("timestamp").cast(pa.timestamp("ms", "UTC"), safe=False).cast(pa.int64())
            yield Records(
                topic,
                partition,
                part.column("offset").to_pylist(),
                times.to_pylist(),
                part.column("key").to_pylist(),
                part.column("value").to_pylist(),
                _header_pairs(part.column("headers")) if "headers" in part.schema.names else [],
            )


def _header_pairs(headers: pa.Array) -> list[Headers]:
    return [pairs and [(item["key"], item["value"]) for item in pairs] for pairs in headers.to_pylist()]


def _explained(error: Exception, job: JobDocument) -> Exception:
    text = str(error)
    where = {"pipeline": job.pipeline, "seq": job.seq}
    if "Some data may have been lost" in text or "OffsetOutOfRange" in text:
        return SourceError(
            "kafka.offsets_expired",
            "Kafka does not have the range's offsets",
            where=where,
            hint="raise the topic's retention; the records are lost: take a new snapshot",
        )
    if "UnknownTopicOrPartition" in text:
        return SourceError("kafka.topic_unknown", "a topic or partition does not exist", where=where)
    kind = next(
        (word for word in ("SaslAuthenticationException", "TimeoutException") if word in text), type(error).__name__
    )
    return UnavailableError(
        "spark.read_failed", f"Spark's Kafka source failed: {kind}", where=where, hint="see the log above; run again"
    )
