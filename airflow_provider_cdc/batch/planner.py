# SPDX-License-Identifier: Apache-2.0
"""Plan one batch under the pipeline's lease: compute its range from the ledger and from Kafka."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING

from airflow_provider_cdc.batch.request_cuts import first_part, most_records, row_records
from airflow_provider_cdc.batch.result import empty_result
from airflow_provider_cdc.batch.source_log import SourceLog
from airflow_provider_cdc.core.config import CdcPipeline
from airflow_provider_cdc.core.errors import SourceError, UnavailableError
from airflow_provider_cdc.core.model.offsets import Offsets
from airflow_provider_cdc.core.model.status import BatchStatus
from airflow_provider_cdc.core.plan.progress import SLACK_MS, Mark, PartitionFacts
from airflow_provider_cdc.core.plan.ranges import Range, plan_range
from airflow_provider_cdc.ledger import SYNC, Batch, Lease, Ledger
from airflow_provider_cdc.sources.kafka_reading import KafkaRecord, Watermarks

if TYPE_CHECKING:
    from airflow_provider_cdc.core.formats.contract import Format, SliceInfo

MarkOf = Callable[[KafkaRecord], Mark | None]
"""Returns the source time that a record states, None if it states none."""

PROBE_RECORDS = 200
"""Records of one partition read from a time on, to find the first that is certainly beyond it."""

TAIL_RECORDS = 20
"""Last records of one partition read to learn its progress."""

GROUP_RECORDS = 20
"""Last records of one partition read first, to find an offset where no group of records is open."""

INTERLEAVED_RECORDS = 200
"""Least number where several senders share a partition: the last records may be of another sender than the group."""


def marks_of(pipeline: CdcPipeline, log: SourceLog) -> MarkOf:
    """Return the function of the pipeline's format that reads a record's source time.

    :param log: has the schemas that records name; where they cannot be had, the function raises what it does.
    """
    fmt, schemas = _format(pipeline), log.schemas

    def mark(record: KafkaRecord) -> Mark | None:
        schemas.provide(fmt, [record.value])
        try:
            progress = fmt.progress_of(record.topic, record.key, record.value)
        except Exception:  # landing reports the record's problem; here it only has no time
            return None
        if progress is None:
            return None
        return Mark(record.offset, progress.source_time_ms, record.timestamp_ms, progress.heartbeat)

    return mark


def _format(pipeline: CdcPipeline) -> Format:
    from airflow_provider_cdc.core.formats.registry import open_format

    return open_format(pipeline.source.format, pipeline.source.options)


def observe(
    pipeline: CdcPipeline, log: SourceLog, mark_of: MarkOf | None = None, *, count: int = TAIL_RECORDS
) -> tuple[list[PartitionFacts], list[PartitionFacts]]:
    """Return the arguments of ``received()``: facts of the data partitions, and of the heartbeat topic's.

    :param mark_of: reads the source time of a record; the pipeline's format if None.
    :param count: number of last records of each partition to read.
    """
    source = pipeline.source
    log.collect()
    existing = log.topics()
    data = _demanded(pipeline, list(existing))
    mark_of = mark_of or marks_of(pipeline, log)
    # The heartbeats first: records that they cover are below ends that are read after them.
    beats = [str(source.heartbeat_topic)] if source.heartbeat_topic in existing else []
    heartbeats = _facts(log, beats, mark_of, count)
    return _facts(log, data, mark_of, count), heartbeats


def _facts(log: SourceLog, topics: list[str], mark_of: MarkOf, count: int) -> list[PartitionFacts]:
    if not topics:
        return []
    ends = log.ends(topics)
    facts = []
    for (topic, partition), records in sorted(log.tails(topics, count, ends=ends).items()):
        marks = tuple(mark for mark in map(mark_of, records) if mark is not None)
        facts.append(PartitionFacts(topic, partition, ends.lows[topic][partition], ends.highs[topic][partition], marks))
    return facts


def propose_batch(
    pipeline: CdcPipeline,
    ledger: Ledger,
    log: SourceLog,
    until: datetime | None = None,
    *,
    mark_of: MarkOf | None = None,
    accept_loss: bool = False,
    again: bool = False,
) -> Batch | Range:
    """Return the batch that a request has already, or the range of a new one; records nothing.

    In this order: the batch planned for it before; an unfinished batch of any request (finish it and ask again); a
    committed batch that reaches as far; a new range.

    :param until: the batch holds everything the source committed before it, given that ``received(until)`` held; None
        means everything up to the present ends.
    :param mark_of: reads the source time of a record; the pipeline's format if None.
    :param accept_loss: continue although Kafka deleted records that no batch has read.
    :param again: read on for a request that has its batch already: a schema change may have arrived since.
    :raises SourceError: the log lacks topics or records of the batch.
    :raises ConfigurationError: the format does not take its options.
    """
    from airflow_provider_cdc.core.formats.registry import demand_options

    demand_options(pipeline.source.format, pipeline.source.options)
    stored = ledger.open(pipeline.name) if again else _stored(ledger, pipeline.name, until)
    if stored is not None:
        return stored
    last = ledger.last(pipeline.name, SYNC, abandoned=True)
    planned = _range(pipeline, log, last, until, mark_of, accept_loss)
    if planned.empty:
        return planned
    topics = pipeline.source.data_topics(list(planned.end))
    settle = _settling(pipeline, log, topics)
    whole = settle(planned)
    most = most_records(pipeline, row_records(whole, topics))
    if most is None or again:
        return whole
    return first_part(
        whole,
        log,
        most,
        counted=topics,
        schema_topic=pipeline.source.schema_topic,
        settle=settle,
    )


def _settling(pipeline: CdcPipeline, log: SourceLog, topics: Sequence[str]) -> Callable[[Range], Range]:
    """Return what moves the ends of a range back to where no group of records is open.

    :param topics: topics with rows.
    """
    from airflow_provider_cdc.core.formats.registry import is_planned_unopened

    if is_planned_unopened(pipeline.source.format, pipeline.source.options):
        return lambda planned: planned
    return partial(end_between_groups, log=log, fmt=_format(pipeline), topics=topics)


def plan_batch(
    pipeline: CdcPipeline,
    ledger: Ledger,
    lease: Lease,
    log: SourceLog,
    until: datetime | None = None,
    *,
    mark_of: MarkOf | None = None,
    accept_loss: bool = False,
    again: bool = False,
    say: Callable[[str], None] = lambda line: None,
) -> Batch:
    """Return the batch of a request, or the next part of one that is cut; the same request always gets the same batch.

    A new batch is recorded in the ledger; one without records is committed at once, and not made at all where the
    request has its batch already. A part does not carry the request's time: only the last batch of a request has it.
    Parameters and errors are those of :func:`propose_batch`.

    :param say: takes a line where a batch has more records than ``policy.batch_records``.
    """
    proposal = propose_batch(pipeline, ledger, log, until, mark_of=mark_of, accept_loss=accept_loss, again=again)
    if isinstance(proposal, Batch):
        return proposal
    newest = ledger.last_committed(pipeline.name) if again and proposal.empty else None
    if newest is not None:
        return newest
    lost = [asdict(loss) for loss in proposal.lost]
    reached, cut_at = (until if proposal.cut_at is None else None), proposal.cut_at
    batch = ledger.plan(
        lease, proposal.start, proposal.end, reached, SYNC, topics=proposal.topics, lost=lost, cut_at=cut_at
    )
    if proposal.empty:
        return ledger.commit(lease, batch.seq, empty_result(pipeline.name, batch.seq))
    records = row_records(proposal, pipeline.source.data_topics(list(proposal.end)))
    most = most_records(pipeline, records)
    if most is not None and records > most and not again:
        say(
            f"batch {batch.seq} reads {records} records, more than policy.batch_records ({most}): they came into the "
            "log at one time or are one group"
        )
    return batch


def has_rows_before(pipeline: CdcPipeline, ledger: Ledger, log: SourceLog, until: datetime) -> bool:
    """Return whether the log has rows before a time that no committed batch has read.

    The schema topic does not count: every batch reads it to its present end.
    """
    before = propose_batch(pipeline, ledger, log, until)
    if isinstance(before, Batch):
        return not before.committed
    data = pipeline.source.data_topics(list(before.end))
    return any(part.start < part.end for part in before.offset_ranges() if part.topic in data)


def plan_settling(ledger: Ledger, lease: Lease, name: str) -> Batch:
    """Return a new batch that reads nothing: it retries the tables that are parked or wait."""
    last = ledger.last(name, SYNC)
    end, topics = ({}, None) if last is None else (last.end, last.topics)
    return ledger.plan(lease, end, end, None, SYNC, topics=topics)


def made_again(log: SourceLog, batch: Batch, heartbeat_topic: str | None = None) -> list[str]:
    """Return the topics of a batch that have another id now than when it was planned; none if Kafka does not answer."""
    known = {topic: topic_id for topic, topic_id in (batch.topics or {}).items() if topic != heartbeat_topic}
    try:
        ids = log.topic_ids(set(known) & set(log.topics()))
    except UnavailableError:
        return []  # reading them reports the problem
    return [topic for topic in sorted(ids) if ids[topic] != known[topic]]


def _stored(ledger: Ledger, name: str, until: datetime | None) -> Batch | None:
    if until is None:
        return ledger.open(name)
    return ledger.planned(name, until) or ledger.open(name) or ledger.covering(name, until)


def _range(
    pipeline: CdcPipeline,
    log: SourceLog,
    last: Batch | None,
    until: datetime | None,
    mark_of: MarkOf | None,
    accept_loss: bool,
) -> Range:
    source = pipeline.source
    log.collect(None if until is None else _beyond(pipeline, log, until, mark_of))
    existing = log.topics()
    data = _demanded(pipeline, list(existing))
    if source.heartbeat_topic in existing:
        data.append(str(source.heartbeat_topic))
    marks = log.ends(data)
    until_offsets = (
        None if until is None else _until_offsets(log, data, marks, until, mark_of or marks_of(pipeline, log))
    )
    # After the ends of the data: the schema topic then holds every change that precedes the rows of this range.
    changes = log.ends([source.schema_topic]) if source.schema_topic in existing else Watermarks({}, {})
    # After all ends: ends of a topic that was created again in between then come with its new id.
    ids = log.topic_ids([*data, *changes.highs])
    return plan_range(
        None if last is None else last.start if last.status == BatchStatus.ABANDONED else last.end,
        {**marks.lows, **changes.lows},
        {**marks.highs, **changes.highs},
        until_offsets,
        schema_topic=source.schema_topic,
        heartbeat_topic=source.heartbeat_topic,
        selects=lambda topic: topic == source.schema_topic or bool(source.data_topics([topic])),
        accept_loss=accept_loss,
        known_ids=None if last is None else last.topics,
        ids=ids,
    )


def end_between_groups(planned: Range, log: SourceLog, fmt: Format, topics: Sequence[str]) -> Range:
    """Move a range's ends back to offsets where no group of records is open; the next batch reads the rest.

    A partition that is one open group gets no records. Nothing changes for formats without groups.

    :param topics: topics with such records.
    """
    from airflow_provider_cdc.core.formats.common.record_groups import last_cut
    from airflow_provider_cdc.core.formats.contract import Grouped

    if not isinstance(fmt, Grouped):
        return planned
    ends = {topic: dict(partitions) for topic, partitions in planned.end.items()}
    left = {
        (part.topic, part.partition): (part.start, part.end) for part in planned.offset_ranges() if part.topic in topics
    }
    count = GROUP_RECORDS
    while left:
        windows = {tp: (max(start, end - count), end) for tp, (start, end) in left.items()}
        for tp, records in log.read(windows, count).items():
            start = left[tp][0]
            parts = [fmt.part_of(record.value, record.headers) for record in records]
            all_seen = windows[tp][0] == start
            cut = last_cut(parts, from_start=all_seen)
            if not all_seen and (cut is None or (_interleaved(parts) and count < INTERLEAVED_RECORDS)):
                continue
            if cut != len(records):
                topic, partition = tp
                ends[topic][partition] = records[cut].offset if cut else start
            del left[tp]
        count *= 10
    return replace(planned, end=ends)


def _interleaved(parts: Sequence[SliceInfo | None]) -> bool:
    return any(part is not None and part.sender for part in parts)


def data_topics(pipeline: CdcPipeline, log: SourceLog) -> list[str]:
    """Return the topics that carry rows of a pipeline.

    :raises SourceError: ``kafka.topic_unknown``.
    """
    return _demanded(pipeline, list(log.topics()))


def _demanded(pipeline: CdcPipeline, existing: list[str]) -> list[str]:
    """Return the topics that carry rows; raise if topics that the pipeline names do not exist."""
    source = pipeline.source
    data = source.data_topics(existing)
    missing = [] if isinstance(source.topics, str) else [name for name in source.topics if name not in existing]
    # Not the heartbeat topic: tools create it with their first heartbeat.
    missing += [name for name in (source.schema_topic,) if name and name not in existing]
    where = {"pipeline": pipeline.name, **source.where}
    shown = ", ".join(sorted(existing)[:10]) or "none"
    hint = f"topics there: {shown}{' …' if len(existing) > 10 else ''}"
    if missing:
        text = f"there is no topic {', '.join(sorted(missing))}"
        raise SourceError("kafka.topic_unknown", text, where=where, hint=hint)
    if not data:
        raise SourceError("kafka.topic_unknown", f"no topic matches {source.topics!r}", where=where, hint=hint)
    return data


def _until_offsets(log: SourceLog, topics: list[str], marks: Watermarks, until: datetime, mark_of: MarkOf) -> Offsets:
    """Return the ends for a time; partitions that must be read to their present end are missing.

    Kafka's record times alone would cut too early: a tool that was down writes an old change late. So each partition is
    read from the offset of that time on, until a row that is certainly beyond it.
    """
    needed = _needed(until)
    first = log.offsets_at(topics, _millis(until.astimezone(UTC)))
    windows = {
        (topic, partition): (start, marks.highs[topic][partition])
        for topic, partitions in first.items()
        for partition, start in partitions.items()
        if partition in marks.highs.get(topic, {})
    }
    ends: Offsets = {}
    for (topic, partition), records in log.read(windows, PROBE_RECORDS).items():
        for record in records:
            if _is_beyond(mark_of(record), needed):
                ends.setdefault(topic, {})[partition] = record.offset
                break
    return ends


def _beyond(
    pipeline: CdcPipeline, log: SourceLog, until: datetime, mark_of: MarkOf | None
) -> Callable[[KafkaRecord], bool]:
    """Return whether a record is certainly later than a time; the format is opened with the first question."""
    needed, marks = _needed(until), [mark_of] if mark_of else []

    def is_beyond(record: KafkaRecord) -> bool:
        if not marks:
            marks.append(marks_of(pipeline, log))
        return _is_beyond(marks[0](record), needed)

    return is_beyond


def _needed(until: datetime) -> int:
    """Return the source time from which a row is certainly later than a time, milliseconds since 1970."""
    if until.tzinfo is None:
        raise ValueError("until needs a time zone")
    return _millis(until.astimezone(UTC) + timedelta(milliseconds=SLACK_MS))


def _is_beyond(mark: Mark | None, needed: int) -> bool:
    return mark is not None and not mark.heartbeat and mark.source_time_ms >= needed


def _millis(instant: datetime) -> int:
    return int(instant.timestamp() * 1000)
