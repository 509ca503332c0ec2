# SPDX-License-Identifier: Apache-2.0
"""Job of one batch, as the Airflow side hands it to the Spark side."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Self

from airflow_provider_cdc.core.config import RunPolicy, TableRules, TargetRule
from airflow_provider_cdc.core.documents.orders import Order
from airflow_provider_cdc.core.documents.table_state import TableState
from airflow_provider_cdc.core.lake.own_lake import LakeIdentity
from airflow_provider_cdc.core.lake.roots import canonical_root, located
from airflow_provider_cdc.core.model.offsets import OffsetRange
from airflow_provider_cdc.core.plain_data import Document, from_plain

DOCUMENT_VERSION = 1

SECRETS_VARIABLE = "AIRFLOW_CDC_SECRETS"
"""Environment variable of the engine's process with the secrets: no argument, document or log holds one."""
ALLOW_UNENCRYPTED = "spark.airflowCdc.allowUnencrypted"
"""Key of Spark's configuration with which a pipeline's author accepts that secrets travel readable."""


@dataclass(slots=True)
class JobDocument(Document):
    """Everything a batch needs but secrets.

    :param sink_root: what all tables lie below, in its canonical spelling.
    :param chunks: what land reads; its tasks may read pieces of them (``tasks.land.chunks_of``).
    :param earlier: numbers of the batches committed before, ascending.
    :param kafka: what the reader needs to open the log, without secrets: librdkafka's configuration, or of other
        sources what ``SourceLog.client_config`` gives.
    :param schema_changes: documents of the schema changes known before this batch.
    :param tables: per-table rules by ``database.table``.
    :param target: rules that name tables in the target.
    :param created_at: ISO time of planning, the batch's only clock.
    :param parallelism: tasks that run at a time; 0 leaves it to the engine.
    :param until: ISO time of the request: later schema changes stay for later batches; None takes all there are.
    :param cut_at: ISO time at which a larger request was cut, in place of ``until``: other batches of it follow.
    :param session: Spark was started with the jars that the Spark reader and the Spark writer need.
    :param spark_reaches_sink: Spark is known to reach the tables, so that ``writer: auto`` may choose its writer.
    :param sink_type: kind of the tables (``kinds.SINKS``).
    :param sink_options: options of the tables' store without secrets; None where it is that of the lake.
    :param lake_root: what change log and documents lie below; empty for ``sink_root``.
    :param storage: options of the lake's store without secrets.
    :param start: first offsets of the batch's range by topic and partition (``offsets_document``).
    :param end: offsets after the last, exclusive.
    :param topics: Kafka's id of each topic in the range, as far as the brokers give one.
    :param ledger: id of the ledger that planned the batch; empty where there is none.
    :param fingerprint: digest of the configuration that decides what tables become.
    :param recreated: topics that were deleted and made again since the batch was planned; they cannot be landed.
    :param clocks: of formats without positions the clocks of partitions after the batch before (topic, partition, tool
        time, source time); the Spark side takes them from the lake.
    :param begins: where generations of the source's log began in the batches before (``generations.Begin``); the Spark
        side takes them from the lake.
    :param marks: of formats with positions the newest position that each ``topic/partition`` has shown, this batch
        included; the Spark side takes them from the lake.
    :param last_records: ``topic/partition`` -> last record of the batches before (``LandReport``); the Spark side takes
        them from the lake.
    :param new_generation: ``topic/partition:offset`` of the record with which a generation may begin; empty for none.
    :param registry: settings of the schema registry's client without secrets; empty for none.
    :param reader: where tasks read records: ``kafka``, ``segments`` of the lake, or ``files``.
    :param order: what an operator asks for with the batch, or instead of one: then the job maintains the tables in
        ``states``, reads the quarantine of the batches ``earlier``, or adopts a lake.
    :param scratch: local folder that takes all that the job writes: it only shows what the batch would do.
    :param lake: the lake that the ledger remembers, None for none; the Spark side takes it from the lake.
    """

    pipeline: str
    seq: int
    created_at: str
    sink_root: str
    format: str
    format_options: dict[str, str]
    schema_topic: str | None
    kafka: dict[str, Any]
    chunks: list[OffsetRange]
    policy: RunPolicy
    tables: TableRules
    earlier: list[int]
    schema_changes: list[dict[str, Any]]
    states: list[TableState]
    storage: dict[str, str] = field(default_factory=dict)
    parallelism: int = 2
    session: bool = False
    spark_reaches_sink: bool = False
    sink_type: str = "delta"
    sink_options: dict[str, str] | None = None
    lake_root: str = ""
    until: str | None = None
    cut_at: str | None = None
    start: dict[str, dict[str, int]] = field(default_factory=dict)
    end: dict[str, dict[str, int]] = field(default_factory=dict)
    topics: dict[str, str] = field(default_factory=dict)
    ledger: str = ""
    fingerprint: str = ""
    recreated: list[str] = field(default_factory=list)
    clocks: list[list[Any]] = field(default_factory=list)
    begins: list[list[Any]] = field(default_factory=list)
    marks: dict[str, str] = field(default_factory=dict)
    last_records: dict[str, list[Any]] = field(default_factory=dict)
    new_generation: str = ""
    registry: dict[str, str] = field(default_factory=dict)
    reader: str = "kafka"
    order: Order | None = None
    scratch: str = ""
    lake: LakeIdentity | None = None
    target: tuple[TargetRule, ...] = ()
    version: int = DOCUMENT_VERSION

    def __post_init__(self) -> None:
        self.sink_root = canonical_root(self.sink_root)
        self.lake_root = canonical_root(self.lake_root or self.sink_root)

    @property
    def on_s3(self) -> bool:
        """True when tables or change log are on S3."""
        return any(root.startswith("s3://") for root in (self.sink_root, self.lake_root))

    def at(self, path: str) -> str:
        """Return where a table's place lies, empty for no place."""
        return located(self.sink_root, path)

    def for_tasks(self) -> JobDocument:
        """Return the job as tasks get it: what only the driver reads grows with the tables and batches there are."""
        return replace(self, states=[], schema_changes=[], earlier=[])

    @classmethod
    def from_document(cls, data: Mapping[str, Any]) -> Self:
        """Rebuild from :meth:`document`.

        :raises ValueError: written by another version of this package.
        """
        if data.get("version") != DOCUMENT_VERSION:
            raise ValueError(f"job document version {data.get('version')}, this side knows {DOCUMENT_VERSION}")
        return from_plain(cls, data)
