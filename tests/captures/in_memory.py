# SPDX-License-Identifier: Apache-2.0
"""Captures read from memory, batch by batch: the broker has its part in ``test_captures.py``."""

from __future__ import annotations

import json
import lzma
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

from airflow_provider_cdc.demo.truth import differing, load
from spark_jobs.sinks.delta.table import DeltaLocation
from tests.histories.log import Log
from tests.histories.records import Record as LogRecord
from tests.histories.scripted import Script
from tests.locations import table_location
from tests.sample import ALL, TIMES
from tests.services.capture import Record, read

DATA = Path(__file__).parent / "data"
SEEDS = range(1, 1 + TIMES)
CUTS = (1, 3, 12) if ALL else (3,)  # of captures that are read up to each recorded point, too
Ends = dict[tuple[str, int], int]


@cache
def records(name: str) -> list[Record]:
    """Return a capture's records by partition."""
    return sorted(read(DATA / name), key=lambda record: (record.topic, record.partition, record.offset))


def checkpoints(name: str) -> Iterator[tuple[Path, Ends]]:
    """Return the recorded points: the source's content, and the end offsets of all partitions then."""
    for truth in sorted((DATA / name / "source_at").iterdir()):
        with lzma.open(truth, "rt") as lines:
            reported = json.loads(next(lines))["end_offsets"]
        yield truth, {(topic, part): end for topic, ends in reported.items() for part, end in enumerate(ends)}


def some_checkpoints(name: str) -> list[tuple[Path, Ends]]:
    """Return the recorded points, without CDC_SEEDS=2 each second one and the last."""
    points = list(checkpoints(name))
    return points if ALL else [*points[:-1:2], points[-1]]


def pipeline(
    name: str, log: Log, root: Path, *, prefix: str = "", options: dict[str, str] | None = None, **policy: Any
) -> Script:
    """Return a pipeline over a capture of Debezium.

    :param prefix: ``topic.prefix`` of the connector, where it is not the capture's name.
    """
    for record in records(name):
        partition = log.partitions.setdefault((record.topic, record.partition), [])
        assert record.offset == len(partition)
        partition.append(_logged(record))
    return Script(log, root, schema_topic=prefix or name.replace("-", "_"), options=options or {}, policy=policy)


def _logged(record: Record) -> LogRecord:
    headers = tuple((header, value) for header, value in record.headers if value is not None)
    return LogRecord(record.topic, record.partition, record.timestamp, record.key, record.value, headers)


def rising(ends: Ends, done: Ends) -> Ends:
    """Return ends that do not lie before others."""
    return {where: max(end, done.get(where, 0)) for where, end in ends.items()}


def wrong_tables(
    script: Script, truth: Path, left_out: frozenset[str] = frozenset(), *, null_as_default: bool = False
) -> list[str]:
    """Return in words what differs from the source's content."""
    wrong = []
    for table in load(truth):
        full = f"{table.database}.{table.table}"
        if full in left_out:
            continue
        states = [state for state in script.states_of(table.database, table.table) if state != "dropped"]
        if states != ["ok"]:
            wrong.append(f"{full} is {states}")
            continue
        location = DeltaLocation(table_location(str(script.root), table.database, table.table), {})
        texts = differing(table, location.rows(), set(), null_as_default=null_as_default)
        wrong += [f"{full}: {text}" for text in texts if not written_otherwise(text)]
    return wrong


def written_otherwise(problem: str) -> bool:
    """Say whether a cell differs as snapshots write it: JSON's spaces, FLOAT (docs/wire/debezium-dtle.md B3, B9)."""
    result, differs, expected = problem.partition('"}: ')[2].partition(" instead of ")
    if not differs:
        return False
    if result.startswith("'{"):
        return bool(json.loads(result.strip("'")) == json.loads(expected.strip("'")))
    return result.replace(".", "").isdigit() and f"{float(result):.6g}" == f"{float(expected):.6g}"
