# SPDX-License-Identifier: Apache-2.0
"""Open the log of a pipeline's source: what planner, runner and sensors read, of whichever kind it is."""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Protocol

from airflow_provider_cdc.core.config import CanalSource, CdcPipeline
from airflow_provider_cdc.sources.kafka_reading import KafkaRecord, TopicPartition, Watermarks

if TYPE_CHECKING:
    from airflow_provider_cdc.connections.canal_address import CanalAddress
    from airflow_provider_cdc.core.formats.common.schema_supply import Answers, SchemaSupply
    from airflow_provider_cdc.core.model.offsets import Offsets
    from airflow_provider_cdc.ledger import Lease
    from airflow_provider_cdc.sources.canal_log import CanalLog, Right


class SourceLog(Protocol):
    """A log of topics, partitions and offsets that means the same records whenever it is read."""

    def collect(self, enough: Callable[[KafkaRecord], bool] | None = None) -> None:
        """Bring what the source holds into the log; nothing to do where the source writes the log itself.

        :param enough: whether a record is beyond what is needed; None takes as much as the source's limits allow.
        """

    def topics(self) -> dict[str, list[int]]:
        """Return the partitions of every topic."""

    def topic_ids(self, topics: Iterable[str]) -> dict[str, str]:
        """Return the ids of topics, as far as the source gives them."""

    def ends(self, topics: Iterable[str]) -> Watermarks:
        """Return where partitions begin and end now."""

    def offsets_at(self, topics: Iterable[str], timestamp_ms: int) -> Offsets:
        """Return the first offset written at or after a time."""

    def read(
        self, windows: Mapping[TopicPartition, tuple[int, int]], count: int
    ) -> dict[TopicPartition, list[KafkaRecord]]:
        """Return the first records of windows of offsets."""

    def tails(self, topics: Iterable[str], count: int, *, ends: Watermarks) -> dict[TopicPartition, list[KafkaRecord]]:
        """Return the last records below the given ends."""

    def client_config(self) -> dict[str, str]:
        """Return what tasks need to read the log, secrets included."""

    @property
    def schemas(self) -> SchemaSupply:
        """Teach a format what the records of the log name."""

    def namespace(self) -> str:
        """Return the servers as OpenLineage names them: ``kafka://host:port``."""

    def close(self) -> None:
        """Drop connections."""


@dataclass(frozen=True)
class ResolvedSource:
    """A source whose connections were resolved, for looks that must not block an event loop.

    :param name: what is read.
    :param address: names the servers: whether they answer concerns all who ask there.
    :param key: the settings of a client, secrets included; another client is needed where they changed.
    :param open: returns a client; blocks.
    """

    name: Hashable
    address: str
    key: Hashable = field(repr=False)
    open: Callable[[], SourceLog]


def open_log(pipeline: CdcPipeline, *, right: Right | None = None, first_contact: float | None = None) -> SourceLog:
    """Return the log of a pipeline's source.

    :param right: of :meth:`SourceLog.collect`; None where the log is only looked at.
    :param first_contact: seconds within which a cluster of Kafka has to answer a new client.
    """
    if isinstance(pipeline.source, CanalSource):
        from airflow_provider_cdc.connections.lookup import canal_address, storage_options

        stored = storage_options(pipeline.lake.storage_connection)
        return _canal_log(pipeline, lambda: canal_address(pipeline.source.connection), stored, right)
    from airflow_provider_cdc.connections.lookup import storage_options
    from airflow_provider_cdc.connections.schema_registry import registry_settings
    from airflow_provider_cdc.sources.kafka_log import KafkaLog

    registry = partial(registry_settings, pipeline.source.schema_registry)
    fetch = partial(_schemas, pipeline, registry, partial(storage_options, pipeline.lake.storage_connection))
    return KafkaLog(pipeline.source.connection, first_contact=first_contact, fetch=fetch)


async def resolve_source(pipeline: CdcPipeline, owner: str, first_contact: float) -> ResolvedSource:
    """Resolve the connections of a pipeline's source without blocking the event loop.

    :param owner: shown to others while the pipeline's lease is taken.
    :param first_contact: seconds within which a cluster of Kafka has to answer a new client.
    :raises ConfigurationError: a connection is not there, of another type, or has a key that is not allowed.
    """
    from airflow_provider_cdc.connections import lookup as connections

    conn_id = pipeline.source.connection
    if isinstance(pipeline.source, CanalSource):
        address = await connections.async_canal_address(conn_id)
        stored = await connections.async_storage_options(pipeline.lake.storage_connection)
        url = await connections.async_ledger_url(pipeline.ledger)
        key = (pipeline.name, address, pipeline.lake.root, tuple(sorted(stored.items())))
        right = when_free(pipeline, owner, url)
        where = f"{address.host}:{address.port}"
        opening = partial(_canal_log, pipeline, lambda: address, stored, right)
        return ResolvedSource((conn_id, pipeline.name), where, key, opening)
    from airflow_provider_cdc.connections.schema_registry import async_registry_settings
    from airflow_provider_cdc.sources.kafka_log import ResolvedKafkaLog, async_client_config

    config = await async_client_config(conn_id)
    registry = await async_registry_settings(pipeline.source.schema_registry)
    stored = await connections.async_storage_options(pipeline.lake.storage_connection) if registry else {}
    fetch = partial(_schemas, pipeline, lambda: registry, lambda: stored)
    lake = (pipeline.lake.root, tuple(sorted(stored.items()))) if registry else ()
    servers = ",".join(sorted(config["bootstrap.servers"].split(",")))
    return ResolvedSource(
        (conn_id, pipeline.name) if registry else conn_id,  # each lake has the schemas of its own pipeline
        servers,
        (conn_id, tuple(sorted(config.items())), tuple(sorted(registry.items())), lake),
        lambda: ResolvedKafkaLog(conn_id, config, first_contact=first_contact, fetch=fetch),
    )


def _schemas(
    pipeline: CdcPipeline,
    registry: Callable[[], dict[str, str]],
    stored: Callable[[], dict[str, str]],
    ids: Collection[int],
) -> Answers:
    """Return the schemas that records name: of the lake first, which outlives the registry."""
    from airflow_provider_cdc.core.schema_registry.kept_schemas import kept_or_asked

    lake = pipeline.lake
    return kept_or_asked(pipeline.name, lake.root, lambda: {**stored(), **lake.storage_options}, registry(), ids)


def _canal_log(
    pipeline: CdcPipeline, address: Callable[[], CanalAddress], stored: dict[str, str], right: Right | None
) -> CanalLog:
    from airflow_provider_cdc.core.lake.segments import SegmentLog, segments_folder
    from airflow_provider_cdc.sources.canal_log import CanalLog

    assert isinstance(pipeline.source, CanalSource)
    folder = segments_folder(pipeline.name, pipeline.source.destination)
    segments = SegmentLog(pipeline.lake.root, folder, {**stored, **pipeline.lake.storage_options})
    return CanalLog(pipeline.source, address, segments, right)


def held(lease: Lease, check: Callable[[], None]) -> Right:
    """Return the right of the holder of a pipeline's lease.

    :param check: raises where the work was stopped.
    """

    @contextmanager
    def right() -> Iterator[Callable[[], None]]:
        def go_on() -> None:
            check()
            lease.check()

        yield go_on

    return right


def when_free(pipeline: CdcPipeline, owner: str, url: str | None = None) -> Right:
    """Return a right that takes the pipeline's lease where nobody has it.

    :param owner: shown to others meanwhile.
    :param url: of the ledger; resolved when it is needed if None.
    """

    @contextmanager
    def right() -> Iterator[Callable[[], None]]:
        from airflow_provider_cdc.connections.lookup import ledger_url
        from airflow_provider_cdc.ledger import Ledger

        with Ledger(url or ledger_url(pipeline.ledger)).lease(
            pipeline.name, owner, pipeline.policy.lease_seconds
        ) as lease:
            yield lease.check

    return right
