"""Planning one batch: what the ledger says, what Kafka has, and the range that follows; under the pipeline's lease."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Protocol

from airflow_provider_cdc.core.config import CdcPipeline
from airflow_provider_cdc.core.errors import SourceError, UnavailableError
from airflow_provider_cdc.core.ledger import SYNC, Batch, Lease, Ledger, Offsets
from airflow_provider_cdc.core.ledger.records import ABANDONED
from airflow_provider_cdc.core.plan.progress import SLACK_MS, Mark, PartitionFacts
from airflow_provider_cdc.core.plan.ranges import Range, plan_range
from airflow_provider_cdc.hooks.kafka_reading import KafkaRecord, Place, Watermarks

if TYPE_CHECKING:
    from airflow_provider_cdc.core.formats.contract import Format, Part

MarkOf = Callable[[KafkaRecord], Mark | None]
"""What a record says about time; None where it says nothing."""

PROBE_RECORDS = 200
"""Records of one partition looked at, from a time on, to find the first that is certainly beyond it."""

TAIL_RECORDS = 20
"""Last records of one partition looked at to learn how far it is."""

GROUP_RECORDS = 20
"""Last records of one partition looked at first, to find where no group of records is open."""

INTERLEAVED_RECORDS = 200
"""As many at least where several senders share a partition: the open group's sender may not be the last heard of."""


class Log(Protocol):
    """What planning needs of Kafka; ``KafkaProgressHook`` has it."""

    def topics(self) -> dict[str, list[int]]:
        """Return the partitions of every topic."""

    def topic_ids(self, topics: Iterable[str]) -> dict[str, str]:
        """Return the ids of topics, as far as the brokers give them."""

    def ends(self, topics: Iterable[str]) -> Watermarks:
        """Return where partitions begin and end now."""

    def offsets_at(self, topics: Iterable[str], timestamp_ms: int) -> Offsets:
        """Return the first offset written at or after a time."""

    def read(self, windows: Mapping[Place, tuple[int, int]], count: int) -> dict[Place, list[KafkaRecord]]:
        """Return the first records of windows of offsets."""

    def tails(self, topics: Iterable[str], count: int, *, ends: Watermarks) -> dict[Place, list[KafkaRecord]]:
        """Return the last records below the given ends."""


def marks_of(pipeline: CdcPipeline) -> MarkOf:
    """Return what the pipeline's format knows of a record's time."""
    wire = _format(pipeline)

    def mark(record: KafkaRecord) -> Mark | None:
        try:
            progress = wire.progress_of(record.topic, record.key, record.value)
        except Exception:  # landing says what is wrong with the record; here it only says nothing about time
            return None
        if progress is None:
            return None
        return Mark(record.offset, progress.source_time_ms, record.timestamp_ms, progress.heartbeat)

    return mark


def _format(pipeline: CdcPipeline) -> Format:
    from airflow_provider_cdc.core.formats.registry import open_format

    return open_format(pipeline.source.format, pipeline.source.options)


def observe(
    pipeline: CdcPipeline, log: Log, mark_of: MarkOf | None = None, *, count: int = TAIL_RECORDS
) -> tuple[list[PartitionFacts], list[PartitionFacts]]:
    """Return what ``received()`` asks for: facts of the data partitions, and of the heartbeat topic's.

    :param mark_of: what a record says about time; the pipeline's format if None.
    :param count: last records of each partition to look at.
    """
    source = pipeline.source
    existing = log.topics()
    data = source.data_topics(list(existing))
    _demand(pipeline, data, list(existing))
    told = mark_of or marks_of(pipeline)
    # The heartbeats first: what they vouch for lies below ends that are read after them.
    beats = [str(source.heartbeat_topic)] if source.heartbeat_topic in existing else []
    heartbeats = _facts(log, beats, told, count)
    return _facts(log, data, told, count), heartbeats


def _facts(log: Log, topics: list[str], mark_of: MarkOf, count: int) -> list[PartitionFacts]:
    if not topics:
        return []
    ends = log.ends(topics)
    facts = []
    for (topic, partition), records in sorted(log.tails(topics, count, ends=ends).items()):
        marks = tuple(mark for mark in map(mark_of, records) if mark is not None)
        facts.append(PartitionFacts(topic, partition, ends.lows[topic][partition], ends.highs[topic][partition], marks))
    return facts


def plan_batch(
    pipeline: CdcPipeline,
    ledger: Ledger,
    lease: Lease,
    log: Log,
    until: datetime | None = None,
    *,
    mark_of: MarkOf | None = None,
    accept_loss: bool = False,
    again: bool = False,
) -> Batch:
    """Return the batch of a request; the same request always gets the same batch.

    In this order: the batch planned for it before; a batch that is planned and not finished, whatever it was asked for
    (finish it and ask again); a committed batch that reaches as far; a new one. A new one without records is
    committed at once.

    :param until: the batch holds everything the source committed before it, given that ``received(until)`` held; None
        means all there is now.
    :param mark_of: what a record says about time; the pipeline's format if None.
    :param accept_loss: go on although Kafka deleted records that no batch has read.
    :param again: read on for a request that has its batch already: a schema change may have arrived since.
    :raises SourceError: the log cannot give what the batch needs.
    """
    stored = ledger.open(pipeline.name) if again else _stored(ledger, pipeline.name, until)
    if stored is not None:
        return stored
    last = ledger.last(pipeline.name, SYNC, abandoned=True)
    planned = _range(pipeline, log, last, until, mark_of, accept_loss)
    if not planned.empty:  # opening a format costs a quarter of a second, most of an empty batch
        planned = end_between_groups(planned, log, _format(pipeline), pipeline.source.data_topics(list(planned.end)))
    lost = [asdict(loss) for loss in planned.lost]
    batch = ledger.plan(lease, planned.start, planned.end, until, SYNC, topics=planned.topics, lost=lost)
    if planned.empty:
        result = {"pipeline": pipeline.name, "seq": batch.seq, "status": "empty", "records": 0}
        return ledger.commit(lease, batch.seq, result)
    return batch


def plan_settling(ledger: Ledger, lease: Lease, name: str) -> Batch:
    """Return a new batch that reads nothing: it tries again the tables that stand aside."""
    last = ledger.last(name, SYNC)
    end, topics = ({}, None) if last is None else (last.end, last.topics)
    return ledger.plan(lease, end, end, None, SYNC, topics=topics)


def made_again(log: Log, batch: Batch, heartbeat_topic: str | None = None) -> list[str]:
    """Return the topics of a batch that have another id now than when it was planned; none if Kafka does not answer."""
    known = {topic: found for topic, found in (batch.topics or {}).items() if topic != heartbeat_topic}
    try:
        ids = log.topic_ids(set(known) & set(log.topics()))
    except UnavailableError:
        return []  # whoever reads them says more
    return [topic for topic in sorted(ids) if ids[topic] != known[topic]]


def _stored(ledger: Ledger, name: str, until: datetime | None) -> Batch | None:
    if until is None:
        return ledger.open(name)
    return ledger.planned(name, until) or ledger.open(name) or ledger.covering(name, until)


def _range(
    pipeline: CdcPipeline,
    log: Log,
    last: Batch | None,
    until: datetime | None,
    mark_of: MarkOf | None,
    accept_loss: bool,
) -> Range:
    source = pipeline.source
    existing = log.topics()
    data = source.data_topics(list(existing))
    _demand(pipeline, data, list(existing))
    if source.heartbeat_topic in existing:
        data.append(str(source.heartbeat_topic))
    marks = log.ends(data)
    until_offsets = None if until is None else _until_offsets(log, data, marks, until, mark_of or marks_of(pipeline))
    # After the ends of the data: the schema topic then holds every change that precedes the rows of this range.
    changes = log.ends([source.schema_topic]) if source.schema_topic in existing else Watermarks({}, {})
    # After all ends: ends of a topic made again in between then come with its new id.
    ids = log.topic_ids([*data, *changes.highs])
    return plan_range(
        None if last is None else last.start if last.status == ABANDONED else last.end,
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


def end_between_groups(planned: Range, log: Log, wire: Format, topics: Sequence[str]) -> Range:
    """Move a range's ends back to where no group of records is open; what is left out comes with the next batch.

    A partition that is one open group gets no records. Nothing changes for formats without groups.

    :param topics: those with such records.
    """
    from airflow_provider_cdc.core.formats.contract import Grouped
    from airflow_provider_cdc.core.formats.groups import last_cut

    if not isinstance(wire, Grouped):
        return planned
    ends = {topic: dict(partitions) for topic, partitions in planned.end.items()}
    left = {(part.topic, part.partition): (part.start, part.end) for part in planned.slices() if part.topic in topics}
    count = GROUP_RECORDS
    while left:
        windows = {place: (max(start, end - count), end) for place, (start, end) in left.items()}
        for place, records in log.read(windows, count).items():
            start = left[place][0]
            parts = [wire.part_of(record.value, record.headers) for record in records]
            all_seen = windows[place][0] == start
            cut = last_cut(parts, from_start=all_seen)
            if not all_seen and (cut is None or (_interleaved(parts) and count < INTERLEAVED_RECORDS)):
                continue
            if cut != len(records):
                topic, partition = place
                ends[topic][partition] = records[cut].offset if cut else start
            del left[place]
        count *= 10
    return replace(planned, end=ends)


def _interleaved(parts: Sequence[Part | None]) -> bool:
    return any(part is not None and part.sender for part in parts)


def _demand(pipeline: CdcPipeline, data: list[str], existing: list[str]) -> None:
    """Refuse to plan without the topics the pipeline names."""
    source = pipeline.source
    missing = [] if isinstance(source.topics, str) else [name for name in source.topics if name not in existing]
    # Not the heartbeat topic: tools make it with their first heartbeat.
    missing += [name for name in (source.schema_topic,) if name and name not in existing]
    where = {"pipeline": pipeline.name, "connection": source.connection}
    shown = ", ".join(sorted(existing)[:10]) or "none"
    hint = f"topics there: {shown}{' …' if len(existing) > 10 else ''}"
    if missing:
        text = f"there is no topic {', '.join(sorted(missing))}"
        raise SourceError("kafka.topic_unknown", text, where=where, hint=hint)
    if not data:
        raise SourceError("kafka.topic_unknown", f"no topic matches {source.topics!r}", where=where, hint=hint)


def _until_offsets(log: Log, topics: list[str], marks: Watermarks, until: datetime, mark_of: MarkOf) -> Offsets:
    """Return the ends for a time; partitions that must be read to their present end are missing.

    Kafka's record times alone would cut too early: a tool that was down writes an old change late. So each partition is
    read from that place on until a row that is certainly beyond the time.
    """
    if until.tzinfo is None:
        raise ValueError("until needs a time zone")
    moment = until.astimezone(UTC)
    needed = _millis(moment + timedelta(milliseconds=SLACK_MS))
    found = log.offsets_at(topics, _millis(moment))
    windows = {
        (topic, partition): (start, marks.highs[topic][partition])
        for topic, partitions in found.items()
        for partition, start in partitions.items()
        if partition in marks.highs.get(topic, {})
    }
    ends: Offsets = {}
    for (topic, partition), records in log.read(windows, PROBE_RECORDS).items():
        for record in records:
            mark = mark_of(record)
            if mark is not None and not mark.heartbeat and mark.source_time_ms >= needed:
                ends.setdefault(topic, {})[partition] = record.offset
                break
    return ends


def _millis(moment: datetime) -> int:
    return int(moment.timestamp() * 1000)
