"""Positions for formats without any: inside a partition the offset orders, across partitions the tool's clock."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from airflow_provider_cdc.core.formats.padded_numbers import padded_texts

# digits of batch, tool time (ms), source time (s), partition, offset, index
_WIDTHS = (8, 14, 11, 6, 20, 10)
# What the tool built in one millisecond is one moment: source times inside it are those of statements' starts, which
# run backwards (characters of batch and tool time, and where the partition's number begins)
_MOMENT = sum(_WIDTHS[:2]) + 1
_PARTITION = sum(_WIDTHS[:3]) + 3
_Numbers = np.ndarray[Any, np.dtype[np.int64]]


class GivenPositions:
    """Gives the changes of one batch their place: a later batch is later, whatever its clocks say.

    Clocks never put a record before one that stands before it in its partition: what counts is the newest time that
    the partition showed so far. So the order of one partition is exact, and two partitions are ordered as well as
    their tool's clock can (canal sheet 5.3: flat JSON has no position).

    :param seq: number of the batch.
    :param partitions: every (topic, partition) of the batch; ties between partitions go by their order.
    """

    def __init__(self, seq: int, partitions: Iterable[tuple[str, int]]) -> None:
        self._seq = seq
        self._numbers = {place: number for number, place in enumerate(sorted(set(partitions)))}
        self._newest: dict[tuple[str, int], tuple[int, int]] = {}

    def fill(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return changes of one partition, in offset order, with positions; call it for all of a partition in order."""
        if not batch.num_rows:
            return batch
        place = (batch.column("topic")[0].as_py(), batch.column("partition")[0].as_py())
        tool, source = self._times(batch, place)
        partition: _Numbers = np.full(len(tool), self._numbers[place])
        numbers = (tool, source, partition, batch.column("offset"), batch.column("index").cast(pa.int64()))
        positions = padded_texts(f"{self._seq:0{_WIDTHS[0]}d}", list(zip(numbers, _WIDTHS[1:], strict=True)))
        return batch.set_column(batch.schema.get_field_index("position"), "position", positions)

    def _times(self, batch: pa.RecordBatch, place: tuple[str, int]) -> tuple[_Numbers, _Numbers]:
        """Return the newest (tool time, source time) that the partition showed up to each change."""
        sources = pc.fill_null(batch.column("source_time").cast(pa.int64()), 0)
        # what is no change may lack the tool's time: Kafka's would then set the partition's clock ahead
        counts = pc.is_in(batch.column("kind").cast(pa.string()), pa.array(["row", "schema"]))
        kafka = pc.if_else(counts, batch.column("kafka_time").cast(pa.int64()), None)
        tools = pc.coalesce(batch.column("tool_time").cast(pa.int64()), kafka, pa.scalar(0))
        before = self._newest.get(place, (0, 0))
        tool: _Numbers = np.concatenate([[before[0]], np.maximum(tools.to_numpy(zero_copy_only=False), 0)])
        seconds = np.maximum(sources.to_numpy(zero_copy_only=False), 0) // 1_000_000
        source: _Numbers = np.concatenate([[before[1]], seconds])
        # the running maximum of pairs is that of their ranks
        order = np.lexsort((source, tool))
        ranks: _Numbers = np.empty(len(order), dtype=np.int64)
        ranks[order] = np.arange(len(order))
        newest = order[np.maximum.accumulate(ranks)]
        self._newest[place] = (int(tool[newest[-1]]), int(source[newest[-1]]))
        return tool[newest][1:], source[newest][1:]


def moments_and_partitions(positions: pa.ChunkedArray) -> tuple[_Numbers, _Numbers]:
    """Return, of given positions, a number per moment (equal where the clocks are) and the partition's number."""
    texts = positions.combine_chunks() if isinstance(positions, pa.ChunkedArray) else positions
    moments = pc.utf8_slice_codeunits(texts, 0, _MOMENT).dictionary_encode().indices
    partitions = pc.utf8_slice_codeunits(texts, _PARTITION, _PARTITION + _WIDTHS[3])
    return moments.to_numpy(zero_copy_only=False).astype(np.int64), partitions.cast(pa.int64()).to_numpy()


def same_moment(position: str, positions: pa.ChunkedArray) -> bool:
    """Say whether one of these given positions is of the same moment as another, but of another partition."""
    moment, partition = position[:_MOMENT], position[_PARTITION : _PARTITION + _WIDTHS[3]]
    near = positions.filter(pc.starts_with(positions, moment))
    others = pc.not_equal(pc.utf8_slice_codeunits(near, _PARTITION, _PARTITION + _WIDTHS[3]), partition)
    return bool(pc.any(others).as_py())
