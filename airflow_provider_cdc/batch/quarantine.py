# SPDX-License-Identifier: Apache-2.0
"""Read a pipeline's quarantine, and replay or discard what is in it."""

from __future__ import annotations

import base64
import json
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from itertools import chain
from typing import TYPE_CHECKING, Any

from airflow_provider_cdc.batch.job import JobMaker
from airflow_provider_cdc.batch.lake_question import ask
from airflow_provider_cdc.batch.orders import run_decision
from airflow_provider_cdc.batch.planned_batch import this_process
from airflow_provider_cdc.batch.planner import made_again
from airflow_provider_cdc.batch.result import BatchResult, stored_result, table_states
from airflow_provider_cdc.batch.source_log import open_log
from airflow_provider_cdc.connections.lookup import ledger_url
from airflow_provider_cdc.core.config import CdcPipeline
from airflow_provider_cdc.core.documents import Decision, DecisionAction, Look, QuarantineEntry
from airflow_provider_cdc.core.errors import DataError
from airflow_provider_cdc.ledger import Ledger

if TYPE_CHECKING:
    from airflow_provider_cdc.sources.kafka_reading import KafkaRecord

RecordId = tuple[str, int, int]
"""Topic, partition and offset."""


def entries(pipeline: CdcPipeline, *, contents: bool = False) -> list[QuarantineEntry]:
    """Return all that is in a pipeline's quarantine, and what operators decided about before.

    :param contents: whether bytes and row images are read, too.
    :raises CdcError: ledger or lake cannot be read.
    """
    ledger = Ledger(ledger_url(pipeline.ledger))
    newest = ledger.last(pipeline.name)
    if newest is None:
        return []
    job, secrets = JobMaker(pipeline, ledger, replace(newest, seq=newest.seq + 1, start=newest.end), {}, {}).make()
    job.earlier = sorted({*job.earlier, *([] if newest.committed else [newest.seq])})
    job.schema_changes, job.session, job.order = [], False, Look(contents)
    result = ask(job, secrets, f"quarantine of {pipeline.name}")
    if result.error is not None:
        raise result.error
    return result.entries


def open_entries(pipeline: CdcPipeline, *, contents: bool = False) -> list[QuarantineEntry]:
    """Return what is in the quarantine and waits for a decision; parameters and errors are those of :func:`entries`."""
    return [entry for entry in entries(pipeline, contents=contents) if entry.decision is None]


def open_records(pipeline: CdcPipeline, ledger: Ledger) -> int:
    """Return how many records are in the quarantine and wait for a decision.

    Reads the lake only if a batch reported such records.

    :raises CdcError: ledger or lake cannot be read.
    """
    return len({entry.record for entry in open_entries(pipeline)}) if _was_used(pipeline, ledger) else 0


def _was_used(pipeline: CdcPipeline, ledger: Ledger) -> bool:
    """Return whether a batch put anything into the quarantine, or a table had too much of it."""
    results = map(stored_result, ledger.batches(pipeline.name))
    parked = any(state.code.endswith(".quarantine_exceeded") for state in table_states(ledger, pipeline.name).values())
    return parked or any(result is not None and result.quarantined for result in results)


def stale_rows(pipeline: CdcPipeline, ledger: Ledger) -> dict[str, int]:
    """Return how many rows of each table, by ``database.table``, may be stale: the table lacks what records of it say.

    They are in the quarantine, or discarded, and the table was not rebuilt from a snapshot or files since.
    Reads the lake only if a batch reported such records.
    """
    if not _was_used(pipeline, ledger):
        return {}
    begun = {
        (state.database, state.table): state.rebuilt_seq
        for state in table_states(ledger, pipeline.name).values()
        if state.snapshot_position or state.provided is not None
    }
    stale = {
        (entry.record, entry.database, entry.table)
        for entry in entries(pipeline)
        if entry.decision is None
        or (
            entry.decision["action"] == DecisionAction.DISCARD
            and entry.decision["seq"] > begun.get((entry.database, entry.table), 0)
        )
    }
    return dict(Counter(f"{database}.{table}" for _, database, table in stale if table))


def record_lines(pipeline: CdcPipeline, selected: Sequence[QuarantineEntry]) -> list[dict[str, Any]]:
    """Return records in the form that ``decode`` reads: from the source's log, or as far as the quarantine has them.

    :param selected: entries with their contents.
    :return: a record that is in neither is missing.
    """
    records, remade = _from_log(pipeline, {entry.record for entry in selected})
    lines: dict[RecordId, dict[str, Any]] = {}
    for entry in selected:
        record = records.get(entry.record)
        if record is not None and _is_same(record, entry, remade):
            lines[entry.record] = _line(record)
        elif entry.raw is not None:
            topic, partition, offset = entry.record
            lines[entry.record] = {"topic": topic, "partition": partition, "offset": offset, "value": entry.raw}
    return list(lines.values())


def _from_log(
    pipeline: CdcPipeline, identities: Iterable[RecordId]
) -> tuple[dict[RecordId, KafkaRecord], frozenset[str]]:
    """Return the records that the source's log still has, and its topics that were made again since some batch."""
    ledger = Ledger(ledger_url(pipeline.ledger))
    log = open_log(pipeline)
    newest = ledger.last(pipeline.name)
    again = made_again(log, newest) if newest is not None else []
    there = log.topics()
    identities = [one for one in identities if one[0] in there and one[0] not in again]
    topics = sorted({topic for topic, _, _ in identities})
    ends = log.ends(topics)
    records = {}
    for topic, partition, offset in identities:
        low, high = (marks.get(topic, {}).get(partition, 0) for marks in (ends.lows, ends.highs))
        if low <= offset < high:
            for record in log.read({(topic, partition): (offset, offset + 1)}, 1).get((topic, partition), ()):
                if record.offset == offset:
                    records[topic, partition, offset] = record
    ids = log.topic_ids(topics) if topics else {}
    known = [pair for batch in ledger.batches(pipeline.name) for pair in (batch.topics or {}).items()]
    return records, frozenset(topic for topic, topic_id in known if ids.get(topic, topic_id) != topic_id)


def _is_same(record: KafkaRecord, entry: QuarantineEntry, remade: Collection[str]) -> bool:
    """Return whether a record of the log is that of an entry.

    :param remade: topics that were made again: nothing shows whether the one with a row's offset is the row's.
    """
    if entry.raw is None:
        return record.topic not in remade
    return (record.value or b"").startswith(base64.b64decode(entry.raw))


def _line(record: KafkaRecord) -> dict[str, Any]:
    """Return a record in the form that ``decode`` reads."""
    return {
        "topic": record.topic,
        "partition": record.partition,
        "offset": record.offset,
        "timestamp": record.timestamp_ms,
        "key": _text(record.key),
        "value": _text(record.value),
        **({"headers": [[name, _text(value)] for name, value in record.headers]} if record.headers else {}),
    }


def _text(value: bytes | None) -> str | None:
    return None if value is None else base64.b64encode(value).decode("ascii")


def discard(
    pipeline: CdcPipeline, selected: Sequence[QuarantineEntry], *, why: str, by: str = "", **course: Any
) -> BatchResult:
    """Do without quarantined records for good: they count against no limit any more, and their tables go on.

    :param why: is recorded with who and when.
    :param by: who; the user and the host of this process if empty.
    :param course: ``say``, ``kill`` and ``owner`` as of ``run_batch``.
    """
    return run_decision(pipeline, _decision(DecisionAction.DISCARD, selected, [], why, by), **course)


def replay(
    pipeline: CdcPipeline,
    selected: Sequence[QuarantineEntry],
    lines: Sequence[Mapping[str, Any]],
    *,
    why: str = "",
    by: str = "",
    **course: Any,
) -> BatchResult:
    """Decode quarantined records again and apply them in their own place in the order: newer changes of a key win.

    :param lines: the records, repaired or not, in the form that ``decode`` reads, one for each entry.
    :param why: is recorded with who and when.
    :param by: who; the user and the host of this process if empty.
    :param course: ``say``, ``kill`` and ``owner`` as of ``run_batch``.
    :raises DataError: ``quarantine.unreadable``, a record still cannot be decoded; ``quarantine.not_there``.
    """
    _demand_readable(pipeline, lines)
    return run_decision(pipeline, _decision(DecisionAction.REPLAY, selected, lines, why, by), **course)


def _decision(
    action: DecisionAction,
    selected: Sequence[QuarantineEntry],
    lines: Sequence[Mapping[str, Any]],
    why: str,
    by: str,
) -> Decision:
    records: list[list[Any]] = [list(record) for record in dict.fromkeys(entry.record for entry in selected)]
    now = datetime.now(UTC).isoformat(timespec="seconds")
    return Decision(action, records, [dict(line) for line in lines], by or this_process(), why, now)


def _demand_readable(pipeline: CdcPipeline, lines: Sequence[Mapping[str, Any]]) -> None:
    """Decode records once without consequences.

    :raises DataError: ``quarantine.unreadable``.
    """
    from functools import partial

    from airflow_provider_cdc.batch.recorded_changes import changes
    from airflow_provider_cdc.batch.source_log import open_log
    from airflow_provider_cdc.core.formats.common.record_groups import unbroken_stretches
    from airflow_provider_cdc.core.formats.contract import Grouped
    from airflow_provider_cdc.core.formats.registry import open_format

    reopen = partial(open_format, pipeline.source.format, pipeline.source.options)
    parts = unbroken_stretches(lines) if isinstance(reopen(), Grouped) else [lines]
    schemas = open_log(pipeline).schemas
    every = (changes(reopen, [json.dumps(line).encode() for line in part], schemas) for part in parts)
    for change in chain.from_iterable(every):
        if change["kind"] == "error":
            raise DataError(
                "quarantine.unreadable",
                f"the record cannot be decoded ({change['error_code']}: {change['error']}); nothing is changed",
                where={name: change[name] for name in ("topic", "partition", "offset") if change[name] is not None},
                hint="export the record, correct the file, look at it with `airflow-cdc decode`, and replay the file",
            )


def choose(
    waiting: Sequence[QuarantineEntry], records: Sequence[RecordId] = (), tables: Sequence[str] = ()
) -> list[QuarantineEntry]:
    """Return the entries of records and tables; all without either.

    :param tables: ``database.table`` of each.
    :raises DataError: ``quarantine.not_there``, nothing in the quarantine has that name.
    """
    known = {entry.record for entry in waiting}
    names = {f"{entry.database}.{entry.table}" for entry in waiting}
    for record in records:
        if record not in known:
            raise not_there({"topic": record[0], "partition": record[1], "offset": record[2]})
    for table in tables:
        if table not in names:
            raise not_there({"table": table})
    every = not records and not tables
    return [e for e in waiting if every or e.record in records or f"{e.database}.{e.table}" in tables]


def not_there(where: dict[str, Any]) -> DataError:
    """Return the error of a record or table of which nothing waits for a decision."""
    return DataError(
        "quarantine.not_there",
        "nothing of it is in the quarantine and waits for a decision",
        where=where,
        hint="`airflow-cdc quarantine PIPELINE.yaml list` names the records",
    )
