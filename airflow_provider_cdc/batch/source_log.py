# SPDX-License-Identifier: Apache-2.0
"""Open the log of a pipeline's source: what planner, runner and sensors read, of whichever kind it is."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol, cast

from airflow_provider_cdc.core.config import CdcPipeline
from airflow_provider_cdc.sources.kafka_reading import KafkaRecord, TopicPartition, Watermarks

if TYPE_CHECKING:
    from airflow_provider_cdc.batch.findings import Finding
    from airflow_provider_cdc.core.formats.common.schema_supply import SchemaSupply
    from airflow_provider_cdc.core.model.offsets import Offsets
    from airflow_provider_cdc.ledger import Lease
    from airflow_provider_cdc.sources.canal_log import Right


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


class SourceKind(Protocol):
    """Define the functions that a module of ``source_kinds`` has for the sources of one type."""

    def open_log(self, pipeline: CdcPipeline, right: Right | None, first_contact: float | None) -> SourceLog:
        """Return the log of a pipeline's source; parameters are those of :func:`open_log`."""
        ...

    async def resolve(self, pipeline: CdcPipeline, owner: str, first_contact: float) -> ResolvedSource:
        """Resolve the source's connections; parameters and errors are those of :func:`resolve_source`."""
        ...

    def findings(self, pipeline: CdcPipeline) -> Iterator[Finding]:
        """Check what the source needs, for ``doctor``."""
        ...


_KINDS = {"kafka": "kafka", "canal-tcp": "canal", "files": "files"}  # modules of source_kinds by ``source.type``


def source_kind(pipeline: CdcPipeline) -> SourceKind:
    """Return the module for a pipeline's source."""
    name = f"airflow_provider_cdc.batch.source_kinds.{_KINDS[pipeline.source.type]}"
    return cast("SourceKind", importlib.import_module(name))


def open_log(pipeline: CdcPipeline, *, right: Right | None = None, first_contact: float | None = None) -> SourceLog:
    """Return the log of a pipeline's source.

    :param right: of :meth:`SourceLog.collect`; None where the log is only looked at.
    :param first_contact: seconds within which a cluster of Kafka has to answer a new client.
    """
    return source_kind(pipeline).open_log(pipeline, right, first_contact)


async def resolve_source(pipeline: CdcPipeline, owner: str, first_contact: float) -> ResolvedSource:
    """Resolve the connections of a pipeline's source without blocking the event loop.

    :param owner: shown to others while the pipeline's lease is taken.
    :param first_contact: seconds within which a cluster of Kafka has to answer a new client.
    :raises ConfigurationError: a connection is not there, of another type, or has a key that is not allowed.
    """
    return await source_kind(pipeline).resolve(pipeline, owner, first_contact)


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
