# SPDX-License-Identifier: Apache-2.0
"""Sources of type ``canal-tcp``: a destination of a Canal server, whose packets are kept in the lake."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING

from airflow_provider_cdc.batch.findings import Finding, checked
from airflow_provider_cdc.batch.source_log import ResolvedSource, when_free
from airflow_provider_cdc.connections import lookup as connections
from airflow_provider_cdc.core.config import CanalSource, CdcPipeline

if TYPE_CHECKING:
    from airflow_provider_cdc.connections.canal_address import CanalAddress
    from airflow_provider_cdc.sources.canal_log import CanalLog, Right


def open_log(pipeline: CdcPipeline, right: Right | None, first_contact: float | None) -> CanalLog:
    """Return the log of a pipeline's source (``source_log.SourceKind``)."""
    stored = connections.storage_options(pipeline.lake.storage_connection)
    return _log(pipeline, lambda: connections.canal_address(_of(pipeline).connection), stored, right)


async def resolve(pipeline: CdcPipeline, owner: str, first_contact: float) -> ResolvedSource:
    """Resolve the connections of a pipeline's source (``source_log.SourceKind``)."""
    conn_id = _of(pipeline).connection
    address = await connections.async_canal_address(conn_id)
    stored = await connections.async_storage_options(pipeline.lake.storage_connection)
    url = await connections.async_ledger_url(pipeline.ledger)
    key = (pipeline.name, address, pipeline.lake.root, tuple(sorted(stored.items())))
    opening = partial(_log, pipeline, lambda: address, stored, when_free(pipeline, owner, url))
    return ResolvedSource((conn_id, pipeline.name), f"{address.host}:{address.port}", key, opening)


def findings(pipeline: CdcPipeline) -> Iterator[Finding]:
    """Check the server (``source_log.SourceKind``)."""
    yield checked("canal", lambda: _subscribed(pipeline))


def connection_findings(conn_id: str, destination: str, timeout: float) -> Iterator[Finding]:
    """Check what is the same for all pipelines over a connection: that the server accepts the login."""
    yield checked("canal", lambda: _accepted(connections.canal_address(conn_id), destination, timeout))


def _accepted(address: CanalAddress, destination: str, timeout: float) -> str:
    from airflow_provider_cdc.sources.canal_session import CanalSession

    with CanalSession(address, destination, timeout=timeout):
        return f"{address.host}:{address.port} accepts the login, client id {address.client_id}"


def _subscribed(pipeline: CdcPipeline) -> str:
    """Log in and subscribe: that changes nothing on the server for a client that reads there already."""
    from airflow_provider_cdc.sources.canal_session import CanalSession

    source = _of(pipeline)
    address, destination = connections.canal_address(source.connection), source.destination
    with CanalSession(address, destination, timeout=15.0) as session:
        session.subscribe()
    packets = sum(open_log(pipeline, None, None).ends([destination]).highs[destination].values())
    server = f"{address.host}:{address.port}"
    return f"{server} runs {destination}, client id {address.client_id}, {packets} packets in the lake"


def _log(
    pipeline: CdcPipeline, address: Callable[[], CanalAddress], stored: dict[str, str], right: Right | None
) -> CanalLog:
    from airflow_provider_cdc.core.lake.segments import SegmentLog, segments_folder
    from airflow_provider_cdc.sources.canal_log import CanalLog

    source = _of(pipeline)
    folder = segments_folder(pipeline.name, source.destination)
    segments = SegmentLog(pipeline.lake.root, folder, {**stored, **pipeline.lake.storage_options})
    return CanalLog(source, address, segments, right)


def _of(pipeline: CdcPipeline) -> CanalSource:
    assert isinstance(pipeline.source, CanalSource)
    return pipeline.source
