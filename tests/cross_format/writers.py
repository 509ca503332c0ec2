# SPDX-License-Identifier: Apache-2.0
"""Find the writer of a format, and the places at which a log may be cut."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from contextlib import contextmanager

from airflow_provider_cdc.core.formats.common.record_groups import last_cut
from airflow_provider_cdc.core.formats.contract import Format, Grouped
from tests.cross_format.events import Writer
from tests.services.capture import Record
from tests.services.registered_schemas import ServedSchemas


def writer_of(name: str) -> Writer:
    writer: Writer = importlib.import_module(f"tests.cross_format.{name.replace('-', '_')}_writer").Writer()
    assert writer.format == name
    return writer


@contextmanager
def registry_of(writer: Writer) -> Iterator[dict[str, str]]:
    """Serve the schemas that a writer registered; give the settings of its client."""
    schemas = getattr(writer, "schemas", None)
    if schemas is None:
        yield {}
        return
    server = ServedSchemas(schemas)
    try:
        yield {"url": server.url}
    finally:
        server.stop()


def between_groups(ends: dict[tuple[str, int], int], records: list[Record], wire: Format) -> dict[tuple[str, int], int]:
    """Move ends back to where no group of records is open, as the planner does."""
    if not isinstance(wire, Grouped):
        return ends
    moved = {}
    for partition, end in ends.items():
        values = [r for r in records if (r.topic, r.partition) == partition and r.offset < end]
        moved[partition] = last_cut([wire.part_of(r.value, r.headers) for r in values], from_start=True) or 0
    return moved
