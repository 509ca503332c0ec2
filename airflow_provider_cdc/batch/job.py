# SPDX-License-Identifier: Apache-2.0
"""Make the job document of a batch from the pipeline, the ledger and the connections."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

from airflow_provider_cdc.batch.engine_choice import engine_of
from airflow_provider_cdc.connections.lookup import sink_options, spark_target, storage_options
from airflow_provider_cdc.core.config import CdcPipeline
from airflow_provider_cdc.core.config.sinks.kinds import SINKS
from airflow_provider_cdc.core.documents import BatchOrder, JobDocument, Rebuild, Replay, TableState
from airflow_provider_cdc.core.lake.own_lake import LakeIdentity
from airflow_provider_cdc.core.lake.store_kinds import S3, STORE_SECRETS, store_kind
from airflow_provider_cdc.core.plan.ranges import Range
from airflow_provider_cdc.ledger import Batch, Ledger
from airflow_provider_cdc.ledger.records import offsets_document


@dataclass
class JobMaker:
    """Make the job document of one batch.

    :param kafka: configuration of a client of the source, secrets included.
    :param states: of all tables, by table id.
    :param new_generation: record with which a new log of the source may begin.
    :param recreated: topics that were made again since the batch was planned.
    :param order: what the batch carries out for an operator.
    :param staged: another platform runs the job, which knows how many tasks it runs at a time.
    """

    pipeline: CdcPipeline
    ledger: Ledger
    batch: Batch
    kafka: Mapping[str, str]
    states: Mapping[str, TableState]
    new_generation: str = ""
    recreated: list[str] = field(default_factory=list)
    order: BatchOrder | None = None
    staged: bool = False

    @property
    def engine(self) -> str:
        """Return the engine that runs the batch."""
        return engine_of(self.pipeline, self.batch.records, reads_log=isinstance(self.order, Replay | Rebuild))

    def make(self) -> tuple[JobDocument, dict[str, dict[str, str]]]:
        """Return the job document, and the secrets that go with it another way."""
        from airflow_provider_cdc.core.formats.registry import portable_options

        pipeline, batch, settings = self.pipeline, self.batch, job_settings(self.pipeline, self.kafka)
        lake = self.ledger.lake(pipeline.name)
        job = JobDocument(
            pipeline=pipeline.name,
            seq=batch.seq,
            created_at=batch.planned_at.isoformat(),
            sink_root=pipeline.sink.root,
            sink_type=pipeline.sink.type,
            sink_options=settings["sink"][0] if "sink" in settings else None,
            lake_root=pipeline.lake.root,
            format=pipeline.source.format,
            format_options=portable_options(pipeline.source.format, pipeline.source.options),
            schema_topic=pipeline.source.schema_topic,
            reader=pipeline.source.reader,
            kafka=settings["kafka"][0],
            registry=settings["registry"][0],
            chunks=Range(batch.start, batch.end).offset_ranges(),
            policy=pipeline.policy,
            tables=pipeline.tables,
            target=tuple(pipeline.target),
            earlier=self.ledger.applied(pipeline.name, before=batch.seq),
            schema_changes=[_without_id(change) for change in self.ledger.schema_changes(pipeline.name)],
            states=list(self.states.values()),
            storage=settings["storage"][0],
            parallelism=self._parallelism(),
            session=self._needs_session(),
            spark_reaches_sink=self._spark_reaches_sink(),
            until=batch.until.isoformat() if batch.until else None,
            cut_at=batch.cut_at.isoformat() if batch.cut_at else None,
            start=offsets_document(batch.start),
            end=offsets_document(batch.end),
            topics=batch.topics or {},
            ledger=self.ledger.id,
            fingerprint=pipeline.fingerprint(),
            lake=None if lake is None else LakeIdentity.from_document(lake),
            recreated=self.recreated,
            new_generation=self.new_generation,
            order=self.order,
        )
        return job, {kind: secrets for kind, (_, secrets) in settings.items()}

    def _needs_session(self) -> bool:
        """Return whether the Spark reader or writer may be used; plain tasks start several seconds sooner."""
        policy = self.pipeline.policy
        if self.engine == "inline":
            return False
        rules = self.pipeline.tables
        writers = {policy.writer, *(rule.writer for rule in rules.tables.values())}
        if policy.reader == "spark" or ("spark" in writers and SINKS[self.pipeline.sink.type].session):
            return True
        large = [state for state in self.states.values() if state.spark_may_write]
        return self._spark_reaches_sink() and any(
            (rules.rule(f"{one.database}.{one.table}").writer or policy.writer) == "auto" for one in large
        )

    def _spark_reaches_sink(self) -> bool:
        """Return whether Spark can write the tables as far as the settings show: of S3 it has to be taught."""
        roots = self.pipeline.sink.root, self.pipeline.lake.root
        kinds = {store_kind(root) for root in roots} - {None}
        if not kinds <= {S3}:
            return False
        if not kinds:
            return True
        conf = self.pipeline.spark.conf
        jars = " ".join(str(conf.get(key, "")) for key in ("spark.jars", "spark.jars.packages"))
        return "hadoop-aws" in jars or any(key.startswith("spark.hadoop.fs.s3a.") for key in conf)

    def _parallelism(self) -> int:
        if self.pipeline.policy.parallelism:
            return self.pipeline.policy.parallelism
        if self.staged:
            return 0
        if self.engine == "inline":
            return 1
        from airflow_provider_cdc.engine.spark import local_cores

        return local_cores(spark_target(self.pipeline.spark.connection).master)


def job_settings(pipeline: CdcPipeline, kafka: Mapping[str, str]) -> dict[str, tuple[dict[str, str], dict[str, str]]]:
    """Return by what they are of a job's settings that are not secret, and those that may be.

    :param kafka: configuration of a client of the source, secrets included.
    """
    from airflow_provider_cdc.connections.kafka_config import SECRETS
    from airflow_provider_cdc.connections.mask_salt import mask_settings
    from airflow_provider_cdc.connections.schema_registry import registry_settings
    from airflow_provider_cdc.core.schema_registry.client import SECRETS as REGISTRY_SECRETS

    store = {**storage_options(pipeline.lake.storage_connection), **pipeline.lake.storage_options}
    tables = sink_options(pipeline.sink)
    return {
        "kafka": _apart(kafka, (*SECRETS, *STORE_SECRETS)),
        "registry": _apart(registry_settings(pipeline.source.schema_registry), REGISTRY_SECRETS),
        "storage": _apart(store),
        "mask": _apart(mask_settings(pipeline.mask_connection), ("salt",)),
        **({} if tables == store else {"sink": _apart(tables)}),
    }


def _apart(options: Mapping[str, str], names: Collection[str] = STORE_SECRETS) -> tuple[dict[str, str], dict[str, str]]:
    """Return options that are no secrets, and those that may be: so are all properties of a catalog.

    :param names: of the secrets.
    """
    secrets = {key: value for key, value in options.items() if key in names or key.startswith("iceberg.")}
    return {key: value for key, value in options.items() if key not in secrets}, secrets


def _without_id(change: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in change.items() if name != "id"}
