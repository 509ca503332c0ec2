# SPDX-License-Identifier: Apache-2.0
"""The segment reader: ranges of packets that the Airflow side wrote into the lake."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from airflow_provider_cdc.core.formats.common.joined_partitions import BATCH_BYTES
from airflow_provider_cdc.core.formats.contract import Records
from airflow_provider_cdc.core.lake.segments import SegmentLog, segments_folder
from airflow_provider_cdc.core.model.offsets import OffsetRange


def read_segments(
    chunks: Sequence[OffsetRange], pipeline: str, root: str, storage: Mapping[str, str]
) -> Iterator[Records]:
    """Yield the packets of chunks, each destination's in order.

    :param root: path or URL of the lake.
    :param storage: storage options in delta-rs' names.
    :raises SinkError: ``log.missing`` or ``log.damaged``, a segment is gone or not what was written.
    """
    for chunk in chunks:
        log = SegmentLog(root, segments_folder(pipeline, chunk.topic), storage)
        size = 0
        offsets: list[int] = []
        times: list[int | None] = []
        values: list[bytes | None] = []
        for number, packet in log.read(chunk.start, chunk.end):
            offsets.append(number)
            times.append(packet.received_ms)
            values.append(packet.data)
            size += len(packet.data)
            if size >= BATCH_BYTES:
                yield Records(chunk.topic, chunk.partition, offsets, times, [None] * len(offsets), values)
                offsets, times, values, size = [], [], [], 0
        if offsets:
            yield Records(chunk.topic, chunk.partition, offsets, times, [None] * len(offsets), values)
