# SPDX-License-Identifier: Apache-2.0
"""Land a few offset ranges: one file of the change log and a small report."""

from __future__ import annotations

import base64
import gc
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from airflow_provider_cdc.core.documents import JobDocument
from airflow_provider_cdc.core.errors import SourceError, out_of_memory
from airflow_provider_cdc.core.formats.common.clock_positions import ClockPositions, FixedClocks
from airflow_provider_cdc.core.formats.common.joined_partitions import decode_joined, joined_partitions
from airflow_provider_cdc.core.formats.common.log_names import placed_names
from airflow_provider_cdc.core.formats.common.record_faults import decode_all
from airflow_provider_cdc.core.formats.common.record_groups import unbroken_stretches, whole_groups
from airflow_provider_cdc.core.formats.contract import (
    Format,
    Grouped,
    IdentifiesTables,
    Records,
    Tombstoned,
    needs_headers,
)
from airflow_provider_cdc.core.formats.registry import open_format
from airflow_provider_cdc.core.model.clock_position import is_clock_position, is_stale
from airflow_provider_cdc.core.model.gtid import server_of
from airflow_provider_cdc.core.model.offsets import OffsetRange
from airflow_provider_cdc.core.plan.chunks import cut_ranges
from spark_jobs.lake.begins import Begin, Begins
from spark_jobs.lake.change_log import LogWriter
from spark_jobs.lake.coded_rows import is_word
from spark_jobs.lake.layout import log_folder
from spark_jobs.lake.manifest import LandReport, Unreadable, merged
from spark_jobs.lake.schemas import schema_supply
from spark_jobs.lake.scratch import lake_of, storage_options
from spark_jobs.lake.stretches import Stretches
from spark_jobs.lake.tables_of_topics import joined_topics, tables_of
from spark_jobs.lake.tombstones import Tombstones
from spark_jobs.lake.transaction_counts import commits_of, joined_commits
from spark_jobs.readers.file_reader import read_files
from spark_jobs.readers.segment_reader import read_segments
from spark_jobs.readers.task_reader import read_chunks
from spark_jobs.tasks.unlogged import Unlogged
from spark_jobs.workers.malloc import keep_memory, release_memory
from spark_jobs.workers.progress import advance

_FILE_BYTES = 128 << 20  # of changes in memory; of many tables in turn a file's are all held until it ends
_REPORTED_PARTITIONS = 5
_OFFSET_BITS = 40
_REPORTED_ERRORS = 20  # a report names so many records; the change log has all


def demand_same_topics(job: JobDocument) -> None:
    """Refuse to land a range of topics that were deleted and made again since: other records have its offsets now.

    :raises SourceError: ``kafka.topic_recreated``.
    """
    lost = sorted({chunk.topic for chunk in job.chunks} & set(job.recreated))
    if lost:
        raise SourceError(
            "kafka.topic_recreated",
            "the topic was deleted and made again after the batch was planned",
            where={"topic": lost[0], "topics": " ".join(lost)},
            hint="take a new snapshot and rebuild the pipeline, or run `airflow-cdc sync --accept-loss` once to read "
            "the new topic from its beginning",
        )


def chunks_of(job: JobDocument) -> list[OffsetRange]:
    """Return what land's tasks read: large ranges are cut, where the format lets their pieces be read apart."""
    chunks = cut_ranges(job.chunks, job.policy.chunk_records, parallelism=job.parallelism)
    if len(chunks) == len(job.chunks) or open_format(job.format, job.format_options).splits_partitions:
        return chunks
    return job.chunks


def land_chunks(job: JobDocument, chunks: Sequence[OffsetRange], secrets: dict[str, dict[str, str]]) -> LandReport:
    """Read chunks with the reader of the job's source and land them."""
    fmt = open_format(job.format, job.format_options)
    source = _READERS[job.reader](job, chunks, secrets, fmt)
    begin: dict[tuple[str, int], int] = {}
    for chunk in job.chunks:
        where = chunk.topic, chunk.partition
        begin[where] = min(chunk.start, begin.get(where, chunk.start))
    first = {(c.topic, c.partition) for c in chunks if begin.get((c.topic, c.partition)) == c.start}
    tombstones = Tombstones(fmt.may_delete, job.last_records, first) if isinstance(fmt, Tombstoned) else None
    return land(job, source, secrets, fmt, tombstones=tombstones)


def _read_kafka(
    job: JobDocument, chunks: Sequence[OffsetRange], secrets: dict[str, dict[str, str]], fmt: Format
) -> Iterator[Records]:
    config = {**job.kafka, **secrets.get("kafka", {})}
    seconds, grouped = job.policy.land_deadline_seconds, isinstance(fmt, Grouped)
    return read_chunks(chunks, config, deadline_seconds=seconds, grouped=grouped, headers=needs_headers(fmt))


def _read_segments(
    job: JobDocument, chunks: Sequence[OffsetRange], secrets: dict[str, dict[str, str]], fmt: Format
) -> Iterator[Records]:
    return read_segments(chunks, job.pipeline, job.lake_root, storage_options(job, secrets))


def _read_files(
    job: JobDocument, chunks: Sequence[OffsetRange], secrets: dict[str, dict[str, str]], fmt: Format
) -> Iterator[Records]:
    return read_files(chunks, {**job.kafka, **secrets.get("kafka", {})}, grouped=isinstance(fmt, Grouped))


def land_repaired(
    job: JobDocument,
    records: Sequence[Mapping[str, Any]],
    secrets: dict[str, dict[str, str]],
    clocks: Mapping[tuple[str, int, int], tuple[int, int]],
    begins: Begins,
    seqs: Mapping[tuple[str, int, int], int],
) -> LandReport:
    """Land records that are repaired, as they are stated (``Decision.repaired``).

    :param clocks: of a format without positions: the clock that each record's partition showed when it was read.
    :param begins: of a format with positions: put the generation in front of them.
    :param seqs: batch that read each record first: statements of one position have the order of batches and offsets.
    """
    fmt = open_format(job.format, job.format_options)
    alone = replace(job, chunks=[])
    result = LandReport()
    for seq, some in _by_batch(records, seqs, isinstance(fmt, Grouped)):
        positions = FixedClocks(clocks) if fmt.order == "clock" else None
        tombstones = Tombstones(fmt.may_delete, {}, alone_at_start=True) if isinstance(fmt, Tombstoned) else None
        report = land(alone, _columns(some), secrets, fmt, positions, begins, tombstones)
        result.groups += report.groups
        earlier = (seq - job.seq) << _OFFSET_BITS
        result.schema_changes += [{**change, "order": change["order"] + earlier} for change in report.schema_changes]
        result.descriptions += report.descriptions
        result.stretches += report.stretches
        result.statements += report.statements
        result.records += report.records
        result.changes = dict(Counter(result.changes) + Counter(report.changes))
        result.unreadable = merged(result.unreadable, report.unreadable)
    return result


def _by_batch(
    records: Sequence[Mapping[str, Any]], seqs: Mapping[tuple[str, int, int], int], grouped: bool
) -> Iterator[tuple[int, Sequence[Mapping[str, Any]]]]:
    """Yield stated records by the batch that read them first; where several make a message, without those between."""
    parts: dict[int, list[Mapping[str, Any]]] = {}
    for record in records:
        parts.setdefault(seqs[record["topic"], record["partition"], record["offset"]], []).append(record)
    for seq, part in sorted(parts.items()):
        yield from ((seq, some) for some in (unbroken_stretches(part) if grouped else [part]))


def _columns(records: Sequence[Mapping[str, Any]]) -> list[Records]:
    """Return stated records by partition, in offset order."""
    parts: dict[tuple[str, int], Records] = {}
    for entry in sorted(records, key=lambda record: (record["topic"], record["partition"], record["offset"])):
        here = (entry["topic"], entry["partition"])
        part = parts.setdefault(here, Records(*here, [], [], [], [], []))
        columns: tuple[Any, ...] = (part.offsets, part.timestamps, part.keys, part.values, part.headers)
        headers = [(name, _bytes(value)) for name, value in entry.get("headers") or ()] or None
        cells = (entry["offset"], entry.get("timestamp"), _bytes(entry.get("key")), _bytes(entry.get("value")), headers)
        for column, cell in zip(columns, cells, strict=True):
            column.append(cell)
    return list(parts.values())


def _bytes(text: str | None) -> bytes | None:
    return None if text is None else base64.b64decode(text)


_READERS = {"kafka": _read_kafka, "segments": _read_segments, "files": _read_files}


def land(
    job: JobDocument,
    source: Iterable[Records],
    secrets: dict[str, dict[str, str]],
    fmt: Format,
    positions: ClockPositions | None = None,
    begins: Begins | None = None,
    tombstones: Tombstones | None = None,
) -> LandReport:
    """Decode records and write their rows to the change log; a reader gives each partition's in offset order.

    :param positions: for a format without positions; those that follow the job's clocks if None.
    :param begins: for a format with positions; those of the job if None.
    :param tombstones: for a format that has them.
    """
    source, decode = _decoding(job, secrets, source, fmt)
    if positions is None and fmt.order == "clock":
        positions = ClockPositions(job.clocks)
    described, snapshots = job.schema_topic is None, fmt.snapshot_rows == "shared"
    folder = log_folder(job.pipeline, job.seq)
    new_writer = partial(LogWriter, lake_of(job, secrets), folder, describe=described, snapshots=snapshots)
    writer = new_writer()
    report, stretches = LandReport(), Stretches(own_ddl="ddl" not in fmt.carries)
    unlogged = Unlogged.of(job, fmt)
    begins = begins or Begins(Begin(*begin) for begin in job.begins)
    with _lean_memory(job):
        for parts in _decoded_at_once(job, source, fmt):
            records = sum(map(len, parts))
            report.records += records
            changes = decode_joined(decode, parts)
            report.log_names = {**placed_names(changes, parts), **report.log_names}
            changes = _without_ignored(changes.replace_schema_metadata(), report)
            if positions is None:
                changes = begins.fill(changes)
                stretches.add(changes)
            else:
                changes = positions.fill(changes)
            _take(fmt, changes, writer, report, job.seq, unlogged)
            for errors in () if tombstones is None else tombstones.errors_in(parts):
                _take(fmt, errors, writer, report, job.seq, unlogged)
            advance(rows=records)
            # many small files would be expensive to read
            if writer.size >= _FILE_BYTES or writer.rows >= job.policy.chunk_records:
                _finish(writer, report, unlogged)
                writer = new_writer()
        _finish(writer, report, unlogged)
        report.clocks = [] if positions is None else list(map(list, positions.clocks()))
    report.stretches, report.statements = stretches.documents(), stretches.statements
    report.last_records = {} if tombstones is None else tombstones.last
    return report


def _decoded_at_once(job: JobDocument, source: Iterable[Records], fmt: Format) -> Iterator[Sequence[Records]]:
    """Return records in the pieces in which they are decoded, groups whole."""
    if isinstance(fmt, Grouped):
        starts = {(chunk.topic, chunk.partition): chunk.start for chunk in job.chunks}
        # what is held back may count on what stands before it in its partition
        return ([records] for records in whole_groups(source, fmt, starts))
    return joined_partitions(source)


@contextmanager
def _lean_memory(job: JobDocument) -> Iterator[None]:
    """Keep memory from growing in the block.

    :raises DataError: code ``land.memory``.
    """
    keep_memory()
    gc.disable()  # nothing here makes cycles, and millions of small objects make collections expensive
    try:
        yield
    except MemoryError:
        raise out_of_memory("land.memory", "the records", {"partitions": _partitions(job)}) from None
    finally:
        gc.enable()
        release_memory(large=False)


def _decoding(
    job: JobDocument, secrets: dict[str, dict[str, str]], source: Iterable[Records], fmt: Format
) -> tuple[Iterable[Records], Callable[[Records], pa.RecordBatch]]:
    """Return records whose schemas the format knows when they come, and what decodes them."""
    schemas = schema_supply(job, secrets)

    def reopened() -> Format:
        return schemas.taught(open_format(job.format, job.format_options))

    return schemas.ahead_of(source, fmt), partial(decode_all, fmt, reopen=reopened)


def _partitions(job: JobDocument) -> str:
    """Return the first partitions of a job, for an error."""
    names = sorted({f"{chunk.topic}/{chunk.partition}" for chunk in job.chunks})
    return " ".join(names[:_REPORTED_PARTITIONS])


def _finish(writer: LogWriter, report: LandReport, unlogged: Unlogged) -> None:
    groups = writer.close()
    for group in groups:
        group.unlogged = unlogged.patterns(group.database, group.table)
    report.groups += groups
    report.descriptions += writer.descriptions


def _without_ignored(batch: pa.RecordBatch, report: LandReport) -> pa.RecordBatch:
    """Count and leave out what a format ignores: each record of a delete may be followed by an empty one."""
    kinds = batch.column("kind")
    count = _counts(kinds).get("ignored", 0)
    if not count:
        return batch
    report.changes["ignored"] = report.changes.get("ignored", 0) + count
    ignored = is_word(kinds, "ignored")
    if ignored[-count:].all():  # where most formats put them: leaving out others copies all the rest
        return batch.slice(0, len(batch) - count)
    return batch.filter(pa.array(~ignored))


def _take(
    fmt: Format, batch: pa.RecordBatch, writer: LogWriter, report: LandReport, seq: int, unlogged: Unlogged
) -> None:
    kinds = batch.column("kind")
    counts = _counts(kinds)
    rows = batch if counts.keys() == {"row"} else batch.filter(pa.array(is_word(kinds, "row")))
    ops = rows.column("op")
    for name, count in [*counts.items(), *((f"row.{op}", count) for op, count in _counts(ops).items())]:
        report.changes[name] = report.changes.get(name, 0) + count
    if "row" in counts:
        writer.add(unlogged.without_values(rows))
        report.topics = joined_topics(report.topics, tables_of(rows))
    if "schema" in counts:
        report.schema_changes += schema_changes(fmt, batch.filter(pa.array(is_word(kinds, "schema"))), seq)
    if "transaction" in counts and "transaction_counts" in fmt.carries:
        read = commits_of(batch.filter(pa.array(is_word(kinds, "transaction"))))
        report.commits = joined_commits(report.commits, read)
    if "progress" in counts:
        newest = pc.max(
            batch.column("source_time").filter(pa.array(is_word(kinds, "progress"))).cast(pa.int64())
        ).as_py()
        report.progress = max(report.progress or newest, newest) if newest is not None else report.progress
    if "error" in counts:
        bad = batch.filter(pa.array(is_word(kinds, "error")))
        writer.add_errors(unlogged.without_bytes(bad))
        _note_errors(bad, report)


def _note_errors(bad: pa.RecordBatch, report: LandReport) -> None:
    names = ["topic", "partition", "offset", "database", "table", "error_code", "error"]
    errors = bad.select(names).to_pylist()
    report.errors += errors[: max(0, _REPORTED_ERRORS - len(report.errors))]
    times = bad.column("kafka_time").cast(pa.int64()).to_pylist()
    firsts = (
        Unreadable(
            **{**item, "database": item["database"] or "", "table": item["table"] or ""},
            sent=[] if time is None else [time, time],
        )
        for item, time in zip(errors, times, strict=True)
    )
    report.unreadable = merged(report.unreadable, firsts)


def _counts(words: pa.DictionaryArray) -> dict[str, int]:
    codes = words.indices.drop_null() if words.null_count else words.indices
    counts = np.bincount(codes.to_numpy(), minlength=len(words.dictionary)).tolist()
    return {name: count for name, count in zip(words.dictionary.to_pylist(), counts, strict=True) if count}


def schema_changes(fmt: Format, batch: pa.RecordBatch, seq: int) -> list[dict[str, Any]]:
    """Return the documents of schema changes (``SchemaChange.document``).

    :param seq: number of the batch: offsets begin again where a topic is made again.
    """
    documents = []
    names = ("source_time", "kafka_time", "tool_time")
    times, sent, built = (batch.column(name).cast(pa.int64()).to_pylist() for name in names)
    # Kafka's times may lie outside of the years that Python knows: they stay numbers
    plain = batch.drop_columns(["source_time", "kafka_time", "tool_time"]).to_pylist()
    for row, time, sent_ms, built_ms in zip(plain, times, sent, built, strict=True):
        relation = None
        try:
            if row["table_changes"] and isinstance(fmt, IdentifiesTables):
                relation = fmt.relation(row["table_changes"])
            structure = fmt.structure(row["table_changes"]) if row["table_changes"] and relation is None else []
        except Exception:
            structure = []  # the statement's text says what it can
        server = server_of(row["transaction_id"])
        documents.append(
            {
                "position": row["position"],
                "order": (seq << _OFFSET_BITS) + row["offset"],
                "database": row["default_database"] or "",
                "statement": row["statement"] or "",
                "structure": [[d, t, s.document() if s else None] for d, t, s in structure],
                "time": time,
                **({} if relation is None else {"relation": relation.document()}),
                **({} if server is None else {"server": server}),
                **({"snapshot": sent_ms or 0} if row["op"] == "snapshot" else {}),
                **({} if row["dialect"] is None else {"dialect": row["dialect"]}),
                **({"stale": True} if is_stale(row["position"], built_ms) else {}),
                **({"sent": sent_ms} if is_clock_position(row["position"]) and sent_ms is not None else {}),
            }
        )
    return documents
