# SPDX-License-Identifier: Apache-2.0
"""Carry the names of the logs that records are of, next to their changes: a pipeline reads one log.

They are few, and of no single change: the metadata of a batch of changes has them, each with its first record.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec
import pyarrow as pa

from airflow_provider_cdc.core.formats.contract import Records

CONNECTORS = "connectors"
"""Option of formats whose records name their log: the names that may be there."""
CONNECTORS_MEANING = (
    "names of the connectors (source.name), with commas between, where one took the place of another and reads the "
    "same server's log (default: the first that is read)"
)
_KEY = b"log_names"


def stated_names(options: Mapping[str, str]) -> frozenset[str]:
    """Return the names that the option states; empty where it does not."""
    return frozenset(filter(None, (name.strip() for name in options.get(CONNECTORS, "").split(","))))


def with_names(changes: pa.RecordBatch, names: Mapping[str, int]) -> pa.RecordBatch:
    """Return changes with names of logs.

    :param names: name -> index of the first record that has it.
    """
    return changes.replace_schema_metadata({_KEY: msgspec.json.encode(names)}) if names else changes


def names_in(changes: pa.RecordBatch) -> dict[str, int]:
    """Return the names that :func:`with_names` put there."""
    metadata = changes.schema.metadata or {}
    return msgspec.json.decode(metadata.get(_KEY, b"{}"), type=dict[str, int])


def placed_names(changes: pa.RecordBatch, parts: Sequence[Records]) -> dict[str, str]:
    """Return the names with ``topic/partition:offset`` of their first records.

    :param parts: what the changes were decoded from, one behind the other.
    """
    records = {}
    for name, index in names_in(changes).items():
        for part in parts:
            if index < len(part):
                records[name] = f"{part.topic}/{part.partition}:{part.offsets[index]}"
                break
            index -= len(part)
    return records
