# SPDX-License-Identifier: Apache-2.0
"""Assign positions in formats without any: by offset within a partition, by the tool's clock across partitions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from airflow_provider_cdc.core.arrays import IntArray
from airflow_provider_cdc.core.formats.common.joined_partitions import partition_runs
from airflow_provider_cdc.core.formats.common.sortable_texts import padded_texts
from airflow_provider_cdc.core.model.clock_position import BATCH_DIGITS, PREFIX, SOURCE, TOOL, WIDTHS, partition_number

# topic, partition, newest tool time (ms) and the source time (s) that came with it
Clock = tuple[str, int, int, int]


class ClockPositions:
    """Assign positions to changes (:mod:`core.model.clock_position`).

    The clock of a partition never runs backwards: a change counts as built at the newest time that its partition showed
    up to it. So the order of one partition is exact, and two partitions are ordered as well as their tool's clock can
    (docs/wire/canal.md 5.3: flat JSON has no position).

    :param carried: the clocks of partitions at the end of the batch before.
    """

    def __init__(self, carried: Iterable[Sequence[Any]] = ()) -> None:
        self._newest = {(topic, partition): (tool, source) for topic, partition, tool, source in carried}
        self._seen: set[tuple[str, int]] = set()

    def fill(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return changes with positions; call it for all of a partition in offset order."""
        if not batch.num_rows:
            return batch
        positions = pa.concat_arrays([self._positions(run) for run in partition_runs(batch)])
        return batch.set_column(batch.schema.get_field_index("position"), "position", positions)

    def _positions(self, batch: pa.RecordBatch) -> pa.StringArray:
        topic_partition = (batch.column("topic")[0].as_py(), batch.column("partition")[0].as_py())
        self._seen.add(topic_partition)
        tool, source = self._times(batch, topic_partition)
        partition: IntArray = np.full(len(tool), partition_number(*topic_partition))
        # of the tool's batch it counts only whether two are the same
        batches = pc.fill_null(batch.column("tool_batch"), 0).to_numpy(zero_copy_only=False) % 10**BATCH_DIGITS
        index = batch.column("index").cast(pa.int64())
        numbers = (tool, source, partition, batch.column("offset"), index, batches)
        return padded_texts(PREFIX, list(zip(numbers, WIDTHS, strict=True)))

    def clocks(self) -> list[Clock]:
        """Return the clocks of the partitions that changes were filled of."""
        return [(*topic_partition, *self._newest[topic_partition]) for topic_partition in sorted(self._seen)]

    def _times(self, batch: pa.RecordBatch, topic_partition: tuple[str, int]) -> tuple[IntArray, IntArray]:
        """Return the newest (tool time, source time) that the partition showed up to each change."""
        sources = pc.fill_null(batch.column("source_time").cast(pa.int64()), 0)
        # records that are not changes may lack the tool's time: Kafka's would then set the partition's clock ahead
        counts = pc.is_in(batch.column("kind").cast(pa.string()), pa.array(["row", "schema"]))
        kafka = pc.if_else(counts, batch.column("kafka_time").cast(pa.int64()), None)
        tools = pc.coalesce(batch.column("tool_time").cast(pa.int64()), kafka, pa.scalar(0))
        before = self._newest.get(topic_partition, (0, 0))
        tool: IntArray = np.concatenate([[before[0]], np.maximum(tools.to_numpy(zero_copy_only=False), 0)])
        seconds = np.maximum(sources.to_numpy(zero_copy_only=False), 0) // 1_000_000
        source: IntArray = np.concatenate([[before[1]], seconds])
        # the running maximum of pairs is that of their ranks
        order = np.lexsort((source, tool))
        ranks: IntArray = np.empty(len(order), dtype=np.int64)
        ranks[order] = np.arange(len(order))
        newest = order[np.maximum.accumulate(ranks)]
        self._newest[topic_partition] = (int(tool[newest[-1]]), int(source[newest[-1]]))
        return tool[newest][1:], source[newest][1:]


class FixedClocks(ClockPositions):
    """Assign positions to records that come again alone, by the clock that their partition showed when they were read.

    :param clocks: tool time and source time by topic, partition and offset.
    """

    def __init__(self, clocks: Mapping[tuple[str, int, int], tuple[int, int]]) -> None:
        super().__init__()
        self._clocks = clocks

    def clocks(self) -> list[Clock]:
        """Return nothing: the clocks of the partitions are further on."""
        return []

    def _times(self, batch: pa.RecordBatch, topic_partition: tuple[str, int]) -> tuple[IntArray, IntArray]:
        clocks = [self._clocks[(*topic_partition, offset)] for offset in batch.column("offset").to_pylist()]
        numbers: IntArray = np.array(clocks, dtype=np.int64).reshape(-1, 2)
        return numbers[:, 0], numbers[:, 1]


def clock_of(position: str) -> tuple[int, int]:
    """Return the tool time and the source time of a position."""
    return int(position[TOOL]), int(position[SOURCE])
