# SPDX-License-Identifier: Apache-2.0
"""Sources of type ``files``: topics in a folder or on an object store."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING

from airflow_provider_cdc.batch.findings import Finding, checked
from airflow_provider_cdc.batch.source_kinds.registered import registry_finding, schemas
from airflow_provider_cdc.batch.source_kinds.topics import counted
from airflow_provider_cdc.batch.source_log import ResolvedSource
from airflow_provider_cdc.connections import lookup as connections
from airflow_provider_cdc.core.config import CdcPipeline, FilesSource

if TYPE_CHECKING:
    from airflow_provider_cdc.sources.canal_log import Right
    from airflow_provider_cdc.sources.file_log import FileLog


def open_log(pipeline: CdcPipeline, right: Right | None, first_contact: float | None) -> FileLog:
    """Return the log of a pipeline's source (``source_log.SourceKind``)."""
    from airflow_provider_cdc.connections.schema_registry import registry_settings
    from airflow_provider_cdc.sources.file_log import FileLog

    source = _of(pipeline)
    registry = partial(registry_settings, source.schema_registry)
    fetch = partial(schemas, pipeline, registry, partial(connections.storage_options, pipeline.lake.storage_connection))
    options = {**connections.storage_options(source.storage_connection), **source.storage_options}
    return FileLog(source, options, fetch)


async def resolve(pipeline: CdcPipeline, owner: str, first_contact: float) -> ResolvedSource:
    """Resolve the connections of a pipeline's source (``source_log.SourceKind``)."""
    from airflow_provider_cdc.connections.schema_registry import async_registry_settings
    from airflow_provider_cdc.sources.file_log import FileLog

    source = _of(pipeline)
    registry = await async_registry_settings(source.schema_registry)
    stored = await connections.async_storage_options(pipeline.lake.storage_connection) if registry else {}
    fetch = partial(schemas, pipeline, lambda: registry, lambda: stored)
    options = {**await connections.async_storage_options(source.storage_connection), **source.storage_options}
    settings = (options, registry, stored)
    key = (repr(source), pipeline.lake.root, *(tuple(sorted(one.items())) for one in settings))
    return ResolvedSource((source.folder, pipeline.name), source.folder, key, lambda: FileLog(source, options, fetch))


def findings(pipeline: CdcPipeline) -> Iterator[Finding]:
    """Check the files' names and last lines, and the registry (``source_log.SourceKind``)."""
    yield checked("files", lambda: f"{_of(pipeline).folder}: {counted(pipeline, open_log(pipeline, None, None))}")
    if pipeline.source.schema_registry is not None:
        yield registry_finding(pipeline)


def _of(pipeline: CdcPipeline) -> FilesSource:
    assert isinstance(pipeline.source, FilesSource)
    return pipeline.source
