# SPDX-License-Identifier: Apache-2.0
"""The file reader: ranges of topics that lie in files."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from airflow_provider_cdc.core.file_log.line_kinds import FileRecord
from airflow_provider_cdc.core.file_log.topic_files import TopicFiles
from airflow_provider_cdc.core.formats.common.joined_partitions import BATCH_BYTES, BATCH_RECORDS
from airflow_provider_cdc.core.formats.contract import Records
from airflow_provider_cdc.core.model.offsets import OffsetRange
from spark_jobs.readers.task_reader import LOOK_BACK


def read_files(chunks: Sequence[OffsetRange], config: Mapping[str, str], *, grouped: bool = False) -> Iterator[Records]:
    """Yield the records of chunks, each partition's in offset order.

    :param config: as ``FileLog.client_config`` gives it: folder, lines, gaps and the options of the object store.
    :param grouped: begin a few records before each chunk.
    :raises SourceError: files are gone, or not as they have to be.
    :raises UnavailableError: ``files.unavailable``, the store failed.
    """
    options = dict(config)
    folder, lines, gaps = (options.pop(name) for name in ("folder", "lines", "gaps"))
    files = TopicFiles(folder, lines, gaps=gaps == "accept", options=options)
    for chunk in chunks:
        start = chunk.start
        if grouped and chunk.start < chunk.end:
            start = min(chunk.start, max(files.first(chunk.topic, chunk.partition), chunk.start - LOOK_BACK))
        held: list[FileRecord] = []
        size = 0
        for record in files.read(chunk.topic, chunk.partition, start, chunk.end):
            held.append(record)
            size += len(record.value or b"")
            if size >= BATCH_BYTES or len(held) >= BATCH_RECORDS:
                yield _columns(chunk, held)
                held, size = [], 0
        if held:
            yield _columns(chunk, held)


def _columns(chunk: OffsetRange, records: Sequence[FileRecord]) -> Records:
    offsets, times, keys, values, headers = zip(*records, strict=True)
    return Records(chunk.topic, chunk.partition, offsets, times, keys, values, headers)
