# SPDX-License-Identifier: Apache-2.0
"""Sources of type ``kafka``: topics of a cluster."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING

from airflow_provider_cdc.batch.findings import Finding, checked
from airflow_provider_cdc.batch.source_kinds.registered import registry_finding, schemas
from airflow_provider_cdc.batch.source_kinds.topics import counted
from airflow_provider_cdc.batch.source_log import ResolvedSource
from airflow_provider_cdc.connections import lookup as connections
from airflow_provider_cdc.core.config import CdcPipeline, KafkaSource
from airflow_provider_cdc.core.errors import CdcError

if TYPE_CHECKING:
    from airflow_provider_cdc.sources.canal_log import Right
    from airflow_provider_cdc.sources.kafka_log import KafkaLog


def open_log(pipeline: CdcPipeline, right: Right | None, first_contact: float | None) -> KafkaLog:
    """Return the log of a pipeline's source (``source_log.SourceKind``)."""
    from airflow_provider_cdc.connections.schema_registry import registry_settings
    from airflow_provider_cdc.sources.kafka_log import KafkaLog

    source = _of(pipeline)
    registry = partial(registry_settings, source.schema_registry)
    fetch = partial(schemas, pipeline, registry, partial(connections.storage_options, pipeline.lake.storage_connection))
    return KafkaLog(source.connection, first_contact=first_contact, fetch=fetch)


async def resolve(pipeline: CdcPipeline, owner: str, first_contact: float) -> ResolvedSource:
    """Resolve the connections of a pipeline's source (``source_log.SourceKind``)."""
    from airflow_provider_cdc.connections.schema_registry import async_registry_settings
    from airflow_provider_cdc.sources.kafka_log import ResolvedKafkaLog, async_client_config

    conn_id, registry_id = _of(pipeline).connection, pipeline.source.schema_registry
    config = await async_client_config(conn_id)
    registry = await async_registry_settings(registry_id)
    stored = await connections.async_storage_options(pipeline.lake.storage_connection) if registry else {}
    fetch = partial(schemas, pipeline, lambda: registry, lambda: stored)
    lake = (pipeline.lake.root, tuple(sorted(stored.items()))) if registry else ()
    servers = ",".join(sorted(config["bootstrap.servers"].split(",")))
    return ResolvedSource(
        (conn_id, pipeline.name) if registry else conn_id,  # each lake has the schemas of its own pipeline
        servers,
        (conn_id, tuple(sorted(config.items())), tuple(sorted(registry.items())), lake),
        lambda: ResolvedKafkaLog(conn_id, config, first_contact=first_contact, fetch=fetch),
    )


def findings(pipeline: CdcPipeline) -> Iterator[Finding]:
    """Check the cluster, its topics and the registry (``source_log.SourceKind``)."""
    yield checked("broker", lambda: counted(pipeline, open_log(pipeline, None, None)))
    yield _compaction(pipeline)
    if pipeline.source.schema_registry is not None:
        yield registry_finding(pipeline)


def connection_findings(log: KafkaLog) -> Iterator[Finding]:
    """Check what is the same for all pipelines over a connection: that the cluster answers, and accepts the login."""
    yield checked("broker", lambda: f"{len(log.topics())} topics")


def _compaction(pipeline: CdcPipeline) -> Finding:
    """Check that the topics keep all records: a compacted one loses changes, and deletes with them."""
    try:
        log = open_log(pipeline, None, None)
        topics = pipeline.source.data_topics(list(log.topics()))
        policies = log.cleanup_policies([*topics, *filter(None, [pipeline.source.schema_topic])])
    except (CdcError, OSError) as error:
        return Finding("compaction", None, f"cannot be looked at: {error}")
    compacted = sorted(topic for topic, policy in policies.items() if "compact" in policy)
    if compacted:
        shown = ", ".join(compacted[:5]) + (f" and {len(compacted) - 5} more" if len(compacted) > 5 else "")
        hint = "set cleanup.policy=delete with a retention that is longer than the pipeline may stand still"
        return Finding("compaction", False, f"compacted, so changes are missing in them: {shown}", hint)
    if len(policies) < len(topics):
        return Finding("compaction", None, "the login may not see the topics' settings (DescribeConfigs)")
    return Finding("compaction", True, f"{len(policies)} topics keep all records")


def _of(pipeline: CdcPipeline) -> KafkaSource:
    assert isinstance(pipeline.source, KafkaSource)
    return pipeline.source
